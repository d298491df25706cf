// embeddings, rerankers and scores in the table of APIs
#pragma once

#include "core/dialects/table.hpp"
#include "extensions/embeddings/api.hpp"
#include "extensions/embeddings/core/inputs.hpp"

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr api_traits input_apis[] = {
    {.name = "openai_embeddings", .path = "/v1/embeddings", .framed = framing::document,
     .generates = false, .takes_token_ids = true, .asks = asked_embeddings,
     .write = write_embeddings, .read = read_embeddings},
    {.name = "rerank", .path = "/v1/rerank", .framed = framing::document,
     .generates = false, .documents = 8, .asks = asked_rerank, .write = write_rerank,
     .read = read_rerank},
    {.name = "score", .path = "/v1/score", .framed = framing::document, .generates = false,
     .documents = 8, .asks = asked_score, .write = write_score, .read = read_score},
    {.name = "sglang_score", .path = "/v1/score", .framed = framing::document, .generates = false,
     .documents = 8, .needs_field = "label_token_ids", .asks = asked_score,
     .write = write_sglang_score, .read = read_sglang_score},
};
inline void make_inputs_known() {
    apis.known = static_cast<std::size_t>(api_format::openai_embeddings);
    for (const api_traits& a : input_apis) apis.rows[apis.known++] = a;
}

extern constinit const bool include_llmbench_embeddings_hpp_where_LLMBENCH_MAIN_is = true;
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void know_inputs() { make_inputs_known(); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
