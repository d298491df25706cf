// llmbench_work: what a load costs its server, in counts that need no tolerance. Include it after
// llmbench.hpp.
//
// Part one: declarations
// Part three: counts expected, read, judged and shown
//
// SPDX-License-Identifier: MIT

#ifndef LLMBENCH_HPP
#error "llmbench_work.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_WORK_HPP
#define LLMBENCH_WORK_HPP
#include "extensions/work/api.hpp"
#endif  // LLMBENCH_WORK_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_WORK_IMPLEMENTED)
#define LLMBENCH_WORK_IMPLEMENTED
#include "extensions/work/bodies.hpp"
#endif  // LLMBENCH_WORK_IMPLEMENTED
