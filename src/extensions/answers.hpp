// llmbench_answers: questions whose answers are known. Include it after llmbench.hpp.
//
// Part one: declarations
// Part three: graders, files of questions, and what is sent of them
//
// SPDX-License-Identifier: MIT

#ifndef LLMBENCH_HPP
#error "llmbench_answers.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_ANSWERS_HPP
#define LLMBENCH_ANSWERS_HPP
#include "extensions/answers/api.hpp"
#endif  // LLMBENCH_ANSWERS_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_ANSWERS_IMPLEMENTED)
#define LLMBENCH_ANSWERS_IMPLEMENTED
#include "extensions/answers/read_questions.hpp"
#endif  // LLMBENCH_ANSWERS_IMPLEMENTED
