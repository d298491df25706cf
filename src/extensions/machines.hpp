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
//
// Copyright (c) 2026 the llmbench authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
// associated documentation files (the "Software"), to deal in the Software without restriction,
// including without limitation the rights to use, copy, modify, merge, publish, distribute,
// sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all copies or
// substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
// NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
// NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
// DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

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
