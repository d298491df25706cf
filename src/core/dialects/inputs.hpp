// APIs that generate nothing: embeddings and rerankers
#pragma once

#include "core/base/json.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/stream_event.hpp"

#include <algorithm>  // max, min
#include <string>
#include <string_view>
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

inline void write_embeddings(body_writer& b, const std::string& model, const request_spec& r) {
    b.string("model", model);
    b.raw("input", r.token_ids.empty() ? json_quoted(r.prompt) : r.token_ids);
}

/// A query and documents of about as many words each, cut from one text in its order. A text of
/// fewer words makes fewer documents, that of one word is both.
struct ranked_texts {
    std::string query{};
    std::vector<std::string> documents{};
};
inline ranked_texts ranked_texts_of(std::string_view text, int documents) {
    const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
    std::vector<std::size_t> words;  // where they begin
    for (std::size_t i = 0; i < text.size(); ++i)
        if (!is_blank(text[i]) && (i == 0 || is_blank(text[i - 1]))) words.push_back(i);
    if (words.size() < 2) return {std::string(text), {std::string(text)}};
    const std::size_t parts =
        1 + std::min(static_cast<std::size_t>(std::max(documents, 1)), words.size() - 1);
    const auto part = [&](std::size_t k) {
        const std::size_t from = k == 0 ? 0 : words[k * words.size() / parts];
        std::size_t to = k + 1 == parts ? text.size() : words[(k + 1) * words.size() / parts];
        while (to > from && is_blank(text[to - 1])) --to;
        return std::string(text.substr(from, to - from));
    };
    ranked_texts t{part(0), {}};
    for (std::size_t k = 1; k < parts; ++k) t.documents.push_back(part(k));
    return t;
}
inline void write_rerank(body_writer& b, const std::string& model, const request_spec& r) {
    const ranked_texts t = ranked_texts_of(r.prompt, r.documents);
    std::string documents;
    for (const std::string& d : t.documents)
        documents += (documents.empty() ? "[" : ",") + json_quoted(d);
    b.string("model", model).string("query", t.query).raw("documents", documents + "]");
}

/// What came is an answer where the list of this name has something in it. Tokens of the input are
/// the prompt's or all there are; Cohere tells them apart from what it bills.
inline void read_scored(const picojson::value& v, stream_event& e, const char* list) {
    e.tokenless = true;
    e.completion_tokens = 0;
    e.content = e.answer = !array_member(v, list).empty();
    e.finish_reason = e.content ? "stop" : "";
    if (const picojson::value* usage = member(v, "usage")) {
        e.prompt_tokens = count_member(*usage, "prompt_tokens");
        if (e.prompt_tokens <= 0) e.prompt_tokens = count_member(*usage, "total_tokens");
    }
    const picojson::value* meta = member(v, "meta");
    const picojson::value* tokens = meta ? member(*meta, "tokens") : nullptr;
    if (tokens && e.prompt_tokens < 0) e.prompt_tokens = count_member(*tokens, "input_tokens");
}
inline void read_embeddings(const picojson::value& v, stream_event& e, stream_memory&) {
    read_scored(v, e, "data");
}
inline void read_rerank(const picojson::value& v, stream_event& e, stream_memory&) {
    read_scored(v, e, "results");
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
