// APIs that generate nothing: embeddings and rerankers
#pragma once

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/stream_event.hpp"

#include <algorithm>  // all_of, max, min
#include <cstdint>  // uint64_t
#include <set>
#include <string>
#include <string_view>
#include <utility>  // move
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
inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
/// Where its words begin.
inline std::vector<std::size_t> word_starts(std::string_view text) {
    std::vector<std::size_t> words;
    for (std::size_t i = 0; i < text.size(); ++i)
        if (!is_blank(text[i]) && (i == 0 || is_blank(text[i - 1]))) words.push_back(i);
    return words;
}
inline std::size_t documents_of(std::size_t words, int documents) {
    return words < 2 ? 1 : std::min(static_cast<std::size_t>(std::max(documents, 1)), words - 1);
}
inline ranked_texts ranked_texts_of(std::string_view text, int documents) {
    const std::vector<std::size_t> words = word_starts(text);
    if (words.size() < 2) return {std::string(text), {std::string(text)}};
    const std::size_t parts = 1 + documents_of(words.size(), documents);
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

/// A request for embeddings has one input. A reranker may be asked for the best few alone.
inline asked_answer asked_embeddings(const request_spec&) { return {.results = 1}; }
inline asked_answer asked_rerank(const request_spec& r) {
    asked_answer a;
    a.results = a.documents =
        static_cast<int>(documents_of(word_starts(r.prompt).size(), r.documents));
    picojson::value own;
    if (!r.extra_fields.empty() && parse_json("{" + r.extra_fields.substr(1) + "}", own))
        if (const int best = count_member(own, "top_n"); best > 0)
            a.results = std::min(a.results, best);
    return a;
}

/// Whether base64 tells numbers of four bytes that are finite: in one that is none, all bits of the
/// exponent are set. Those of two bytes have theirs at the same place.
inline bool is_finite_base64(std::string_view text) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    while (text.ends_with('=')) text.remove_suffix(1);
    std::uint64_t bits = 0;
    std::size_t bytes = 0;
    int held = 0;
    for (const char c : text) {
        const std::size_t digit = digits.find(c);
        if (digit == std::string_view::npos) return false;
        bits = bits << 6 | digit;
        if ((held += 6) < 8) continue;
        held -= 8;
        ++bytes;  // the lowest byte comes first
        if (bytes % 4 == 0 && (bits >> held & 0x7f) == 0x7f && (bits >> (held + 8) & 0x80) != 0)
            return false;
    }
    return bytes > 0;
}
/// A vector, or one for each token. JSON has no number that is not finite.
inline bool is_vector(const picojson::value& v, int depth = 3) {
    if (v.is<std::string>()) return is_finite_base64(v.get<std::string>());
    if (depth == 0 || !v.is<picojson::array>()) return false;
    const picojson::array& all = v.get<picojson::array>();
    return !all.empty() && std::all_of(all.begin(), all.end(), [&](const picojson::value& x) {
        return x.is<double>() || (x.is<picojson::array>() && is_vector(x, depth - 1));
    });
}

/// What is not as asked for is no answer.
inline void note_wrong_result(stream_event& e, std::string why) {
    e.malformed = true;
    e.error = std::move(why);
}
/// What came is an answer where the list of this name has a sound result for all that was asked.
/// Tokens of the input are the prompt's or all there are; Cohere tells them apart from what it
/// bills.
template <class IsSound>
void read_scored(const picojson::value& v, stream_event& e, const asked_answer& asked,
                 const char* list, const char* result, IsSound&& is_sound) {
    const picojson::array& all = array_member(v, list);
    const auto n = static_cast<int>(all.size());
    e.tokenless = true;
    e.completion_tokens = 0;
    e.content = e.answer = n > 0;
    e.finish_reason = e.content ? "stop" : "";
    if (n > 0 && asked.results > 0 && n != asked.results && n != asked.documents)
        return note_wrong_result(e, printed("the answer has %d %ss, %d were asked for", n, result,
                                            asked.results));
    for (int i = 0; i < n; ++i)
        if (const picojson::value& x = all[static_cast<std::size_t>(i)]; !is_sound(x))
            return note_wrong_result(e, printed("%s %d of %d of the answer is no finite one: ",
                                                result, i + 1, n) + printable(x.serialize(), 60));
    if (const picojson::value* usage = member(v, "usage")) {
        e.prompt_tokens = count_member(*usage, "prompt_tokens");
        if (e.prompt_tokens <= 0) e.prompt_tokens = count_member(*usage, "total_tokens");
    }
    const picojson::value* meta = member(v, "meta");
    const picojson::value* tokens = meta ? member(*meta, "tokens") : nullptr;
    if (tokens && e.prompt_tokens < 0) e.prompt_tokens = count_member(*tokens, "input_tokens");
}
inline void read_embeddings(const picojson::value& v, stream_event& e, stream_memory& memory) {
    read_scored(v, e, memory.asked, "data", "embedding", [](const picojson::value& x) {
        const picojson::value* vector = member(x, "embedding");
        return vector && is_vector(*vector);
    });
}
/// A document that is scored twice leaves another one out.
inline void read_rerank(const picojson::value& v, stream_event& e, stream_memory& memory) {
    std::set<int> seen;
    read_scored(v, e, memory.asked, "results", "score", [&](const picojson::value& x) {
        const picojson::value* score = member(x, "relevance_score");
        if (!score) score = member(x, "score");
        const int index = count_member(x, "index");
        return score && score->is<double>() && (index < 0 || seen.insert(index).second);
    });
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
