// llmbench_simulated: simulated(), virtual time and rehearsals. Include it after llmbench.hpp.
//
// Part one: declarations
// Part three: the simulated server, its virtual world, rehearsals
//
// SPDX-License-Identifier: MIT

#ifndef LLMBENCH_HPP
#error "llmbench_simulated.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_SIMULATED_HPP
#define LLMBENCH_SIMULATED_HPP
#include "extensions/simulated/api.hpp"
#endif  // LLMBENCH_SIMULATED_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_SIMULATED_IMPLEMENTED)
#define LLMBENCH_SIMULATED_IMPLEMENTED
#if !defined(__GXX_RTTI)
#error "llmbench_simulated.hpp's implementation needs RTTI: compile the one file that \
has it without -fno-rtti; files with gates may go without"
#include <llmbench stops here>
#endif
#include "extensions/simulated/bodies.hpp"
#include "extensions/simulated/rehearsal.hpp"
#endif  // LLMBENCH_SIMULATED_IMPLEMENTED
