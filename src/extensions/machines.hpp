// llmbench_machines: one load that several programs send, on one machine or on many, as shards
// or as ranks of MPI. Include it after llmbench.hpp.
//
// Part one: declarations
// Part three: what each of these programs does, and what is made of their parts
//
// Macros, optional, in the file with the implementation:
//   LLMBENCH_WITH_MPI          ranks of MPI share the load of each gate: compile with mpicxx
//
// SPDX-License-Identifier: MIT

#ifndef LLMBENCH_HPP
#error "llmbench_machines.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_MACHINES_HPP
#define LLMBENCH_MACHINES_HPP
#include "extensions/machines/api.hpp"
#endif  // LLMBENCH_MACHINES_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_MACHINES_IMPLEMENTED)
#define LLMBENCH_MACHINES_IMPLEMENTED
#include "extensions/machines/sharing.hpp"
#endif  // LLMBENCH_MACHINES_IMPLEMENTED
