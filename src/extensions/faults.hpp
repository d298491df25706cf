// llmbench_faults: side tasks under load, recovery, profiles. Include it after llmbench.hpp.
//
// Part one: declarations
// Part three: tasks done beside a load, and profiles of servers
//
// SPDX-License-Identifier: MIT

#ifndef LLMBENCH_HPP
#error "llmbench_faults.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_FAULTS_HPP
#define LLMBENCH_FAULTS_HPP
#include "extensions/faults/api.hpp"
#endif  // LLMBENCH_FAULTS_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_FAULTS_IMPLEMENTED)
#define LLMBENCH_FAULTS_IMPLEMENTED
#include "extensions/faults/bodies.hpp"
#endif  // LLMBENCH_FAULTS_IMPLEMENTED
