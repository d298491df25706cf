// llmbench_compare: compare() and curve(). Include it after llmbench.hpp.
//
// Part one: declarations
// Part three: turns of settings, loads one after the other, and what reports tell of them
//
// SPDX-License-Identifier: MIT

#ifndef LLMBENCH_HPP
#error "llmbench_compare.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_COMPARE_HPP
#define LLMBENCH_COMPARE_HPP
#include "extensions/compare/api.hpp"
#endif  // LLMBENCH_COMPARE_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_COMPARE_IMPLEMENTED)
#define LLMBENCH_COMPARE_IMPLEMENTED
#include "extensions/compare/bodies.hpp"
#endif  // LLMBENCH_COMPARE_IMPLEMENTED
