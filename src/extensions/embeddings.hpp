// llmbench_embeddings: APIs of embeddings, rerankers and scores. Include it after llmbench.hpp.
//
// Part one: declarations
// Part three: their requests and answers
//
// SPDX-License-Identifier: MIT

#ifndef LLMBENCH_HPP
#error "llmbench_embeddings.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_EMBEDDINGS_HPP
#define LLMBENCH_EMBEDDINGS_HPP
#include "extensions/embeddings/api.hpp"
#endif  // LLMBENCH_EMBEDDINGS_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_EMBEDDINGS_IMPLEMENTED)
#define LLMBENCH_EMBEDDINGS_IMPLEMENTED
#include "extensions/embeddings/known_inputs.hpp"
#endif  // LLMBENCH_EMBEDDINGS_IMPLEMENTED
