// llmbench_capacity: the highest load that meets objectives. Include it after llmbench.hpp.
//
// Part one: declarations
// Part three: loads searched, judged and shown
//
// SPDX-License-Identifier: MIT

#ifndef LLMBENCH_HPP
#error "llmbench_capacity.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_CAPACITY_HPP
#define LLMBENCH_CAPACITY_HPP
#include "extensions/capacity/api.hpp"
#endif  // LLMBENCH_CAPACITY_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_CAPACITY_IMPLEMENTED)
#define LLMBENCH_CAPACITY_IMPLEMENTED
#include "extensions/capacity/bodies.hpp"
#endif  // LLMBENCH_CAPACITY_IMPLEMENTED
