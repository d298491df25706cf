// llmbench_switched: servers that have one GPU in turns. Include it after llmbench.hpp.
//
// Part one: declarations
// Part two: core, as pure functions
// Part three: sleeping, waking and what servers say of it
//
// SPDX-License-Identifier: MIT

#ifndef LLMBENCH_HPP
#error "llmbench_switched.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_SWITCHED_HPP
#define LLMBENCH_SWITCHED_HPP
#include "extensions/switched/api.hpp"
#endif  // LLMBENCH_SWITCHED_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_SWITCHED_IMPLEMENTED)
#define LLMBENCH_SWITCHED_IMPLEMENTED
#include "extensions/switched/bodies.hpp"
#endif  // LLMBENCH_SWITCHED_IMPLEMENTED
