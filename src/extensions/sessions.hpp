// llmbench_sessions: recorded sessions of agents as a workload. Include it after llmbench.hpp.
//
// Part one: declarations
// Part three: sessions as graphs of model calls, and their files
//
// SPDX-License-Identifier: MIT

#ifndef LLMBENCH_HPP
#error "llmbench_sessions.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_SESSIONS_HPP
#define LLMBENCH_SESSIONS_HPP
#include "extensions/sessions/api.hpp"
#endif  // LLMBENCH_SESSIONS_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_SESSIONS_IMPLEMENTED)
#define LLMBENCH_SESSIONS_IMPLEMENTED
#include "extensions/sessions/read_sessions.hpp"
#endif  // LLMBENCH_SESSIONS_IMPLEMENTED
