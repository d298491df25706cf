// llmbench_history: history(), the runs of main, LLMBENCH_HISTORY. Include it after llmbench.hpp.
//
// Part one: declarations
// Part three: runs read, learned from, judged by and added
//
// SPDX-License-Identifier: MIT

#ifndef LLMBENCH_HPP
#error "llmbench_history.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_HISTORY_HPP
#define LLMBENCH_HISTORY_HPP
#include "extensions/history/api.hpp"
#endif  // LLMBENCH_HISTORY_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_HISTORY_IMPLEMENTED)
#define LLMBENCH_HISTORY_IMPLEMENTED
#include "extensions/history/keeper.hpp"
#endif  // LLMBENCH_HISTORY_IMPLEMENTED
