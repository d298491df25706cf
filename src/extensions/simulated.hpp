// llmbench_simulated: simulated(), virtual time and rehearsals. Include it after llmbench.hpp.
//
// Part one: declarations
// Part three: the simulated server, its virtual world, rehearsals
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
#error "llmbench_simulated.hpp's implementation needs RTTI, as asio does: compile the one file that \
has it without -fno-rtti; files with gates may go without"
#include <llmbench stops here>
#elif !__has_include(<asio.hpp>)
#error "llmbench_simulated.hpp's implementation needs asio without Boost (apt-get install \
libasio-dev, brew install asio), or the option -I with the folder that has asio.hpp"
#include <llmbench stops here>
#endif
#include "extensions/simulated/bodies.hpp"
#include "extensions/simulated/rehearsal.hpp"
#endif  // LLMBENCH_SIMULATED_IMPLEMENTED
