// APIs that generate nothing: embeddings, rerankers and scores
#pragma once

#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/stream_event.hpp"

#include <algorithm>  // max, min
#include <cstdint>  // uint64_t
#include <set>
#include <string>
#include <string_view>
#include <utility>  // move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Where the words of a text, or the numbers of a list, begin.
inline constexpr std::string_view blanks = " \t\n\r";
inline vector<std::size_t> word_starts(std::string_view text, std::string_view between = blanks) {
    const auto is_blank = [&](std::size_t i) { return between.find(text[i]) != text.npos; };
    vector<std::size_t> words;
    for (std::size_t i = 0; i < text.size(); ++i)
        if (!is_blank(i) && (i == 0 || is_blank(i - 1))) words.push_back(i);
    return words;
}
/// Splits a text into parts with about equally many words, at most one part per word.
inline vector<std::string> parts_of(std::string_view text, std::size_t n,
                                    std::string_view between = blanks) {
    const vector<std::size_t> words = word_starts(text, between);
    n = std::max<std::size_t>(std::min(n, words.size()), 1);
    vector<std::string> parts;
    for (std::size_t k = 0; k < n; ++k) {
        const std::size_t from = k == 0 ? 0 : words[k * words.size() / n];
        const std::string_view part =
            text.substr(from, k + 1 == n ? text.npos : words[(k + 1) * words.size() / n] - from);
        parts.emplace_back(k + 1 == n ? part : part.substr(0, part.find_last_not_of(between) + 1));
    }
    return parts;
}
/// A JSON list of texts.
inline std::string quoted_list(const vector<std::string>& texts) {
    std::string all;
    for (const std::string& t : texts) all += (all.empty() ? "[" : ",") + json_quoted(t);
    return all + "]";
}

inline void write_embeddings(body_writer& b, const std::string& model, const request_spec& r) {
    const auto n = static_cast<std::size_t>(std::max(r.documents, 1));
    const std::string_view ids = r.token_ids;
    std::string lists;
    if (n > 1 && !ids.empty())
        for (const std::string& list : parts_of(ids.substr(1, ids.size() - 2), n, ", "))
            lists += (lists.empty() ? "[[" : "],[") + list;
    b.string("model", model);
    b.raw("input", !lists.empty()  ? lists + "]]"
                   : !ids.empty()  ? r.token_ids
                   : n > 1         ? quoted_list(parts_of(r.prompt, n))
                                   : json_quoted(r.prompt));
}
/// A query and documents. A text of one word is both.
inline void write_texts(body_writer& b, const std::string& model, const request_spec& r,
                        const char* query, const char* documents) {
    vector<std::string> texts =
        parts_of(r.prompt, 1 + static_cast<std::size_t>(std::max(r.documents, 1)));
    b.string("model", model).string(query, texts[0]);
    if (texts.size() > 1) texts.erase(texts.begin());
    b.raw(documents, quoted_list(texts));
}
inline void write_rerank(body_writer& b, const std::string& model, const request_spec& r) {
    write_texts(b, model, r, "query", "documents");
}
inline void write_score(body_writer& b, const std::string& model, const request_spec& r) {
    write_texts(b, model, r, "text_1", "text_2");
}
inline void write_sglang_score(body_writer& b, const std::string& model, const request_spec& r) {
    write_texts(b, model, r, "query", "items");
}

/// As many texts as asked for, at most one per word besides the query.
inline int texts_in(const request_spec& r, std::size_t queries) {
    const std::size_t words = r.token_ids.empty() ? word_starts(r.prompt).size()
                                                  : word_starts(r.token_ids, "[, ]").size();
    const std::size_t most = words > queries ? words - queries : 1;
    return static_cast<int>(std::min(most, static_cast<std::size_t>(std::max(r.documents, 1))));
}
/// Characters of these texts, where the first one is read so many times; 0 for token ids.
inline int characters_in(const request_spec& r, int n, int times_of_first) {
    if (!r.token_ids.empty()) return 0;
    const vector<std::string> texts = parts_of(r.prompt, static_cast<std::size_t>(n));
    double all = 0;  // more than an int holds, if a long query has many texts
    for (std::size_t k = 0; k < texts.size(); ++k) {
        const auto characters = std::count_if(texts[k].begin(), texts[k].end(), [](char c) {
            return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
        });
        all += static_cast<double>(characters) * (k == 0 ? times_of_first : 1);
    }
    return static_cast<int>(std::min(all, max_text_bytes));
}
inline asked_answer asked_embeddings(const request_spec& r) {
    const int n = texts_in(r, 0);
    return {.results = n, .characters = characters_in(r, n, 1)};
}
inline asked_answer asked_score(const request_spec& r) {
    const int n = texts_in(r, 1);
    return {.results = n, .documents = n, .characters = characters_in(r, n + 1, n)};
}
/// A reranker may return only the best few.
inline asked_answer asked_rerank(const request_spec& r) {
    asked_answer a = asked_score(r);
    picojson::value own;
    if (!r.extra_fields.empty() && parse_json("{" + r.extra_fields.substr(1) + "}", own))
        if (const int best = count_member(own, "top_n"); best > 0)
            a.results = std::min(a.results, best);
    return a;
}

/// Whether base64 of four-byte numbers is finite: otherwise all bits of an exponent are set. The
/// exponent of two-byte numbers is at the same place.
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
        ++bytes;  // little-endian
        if (bytes % 4 == 0 && (bits >> held & 0x7f) == 0x7f && (bits >> (held + 8) & 0x80) != 0)
            return false;
    }
    return bytes > 0;
}
/// A vector, or one per token. JSON has only finite numbers.
inline bool is_vector(const json_view& v, int depth = 3) {
    if (v.is_string()) return is_finite_base64(v.text);
    if (depth == 0 || !is_list(v)) return false;
    const json_items all = items_of(v);
    return !all.empty() && all_of(all, [&](const json_view& x) {
        return x.is_number() || (is_list(x) && is_vector(x, depth - 1));
    });
}

inline void note_wrong_result(stream_event& e, std::string why) {
    e.malformed = true;
    e.error = std::move(why);
}
/// The answer is valid if the named list has a sound result for each item asked. Input tokens are
/// the prompt's, or all. Cohere reports them apart from billed ones.
template <class IsSound>
void read_scored(const json_view& v, stream_event& e, const asked_answer& asked,
                 const char* list, const char* result, IsSound&& is_sound) {
    const json_items all = array_member(v, list);
    const int n = all.size();
    e.tokenless = true;
    e.completion_tokens = 0;
    e.content = e.answer = n > 0;
    e.finish_reason = e.content ? "stop" : "";
    if (n > 0 && asked.results > 0 && n != asked.results && n != asked.documents)
        return note_wrong_result(e, printed("the answer has %d %ss, %d were asked for", n, result,
                                            asked.results));
    int i = 0;
    for (const json_view& x : all)
        if (++i; !is_sound(x))
            return note_wrong_result(e, printed("%s %d of %d of the answer is no finite one: ",
                                                result, i, n) + printable(serialized(x), 60));
    if (const json_view* usage = member(v, "usage")) {
        e.prompt_tokens = count_member(*usage, "prompt_tokens");
        if (e.prompt_tokens <= 0) e.prompt_tokens = count_member(*usage, "total_tokens");
    }
    if (e.prompt_tokens < 0) e.prompt_tokens = count_at(v, "meta.tokens.input_tokens");
    // By default Infinity counts characters. For one word they may be tokens.
    if (asked.characters >= 8 && e.prompt_tokens == asked.characters) e.prompt_tokens = -1;
}
inline void read_embeddings(const json_view& v, stream_event& e, stream_memory& memory) {
    read_scored(v, e, memory.asked, "data", "embedding", [](const json_view& x) {
        const json_view* vector = member(x, "embedding");
        return vector && is_vector(*vector);
    });
}
/// A document that is scored twice leaves out another one.
inline void read_ranks(const json_view& v, stream_event& e, stream_memory& memory,
                       const char* list) {
    std::set<int> seen;
    read_scored(v, e, memory.asked, list, "score", [&](const json_view& x) {
        const json_view* found = member(x, "relevance_score");
        if (!found) found = member(x, "score");
        const int index = count_member(x, "index");
        return found && found->is_number() && (index < 0 || seen.insert(index).second);
    });
}
inline void read_rerank(const json_view& v, stream_event& e, stream_memory& memory) {
    read_ranks(v, e, memory, "results");
}
inline void read_score(const json_view& v, stream_event& e, stream_memory& memory) {
    read_ranks(v, e, memory, "data");
}
/// A probability of each label's token for each item.
inline void read_sglang_score(const json_view& v, stream_event& e, stream_memory& memory) {
    read_scored(v, e, memory.asked, "scores", "score", [](const json_view& x) {
        return is_list(x) && is_vector(x, 1);
    });
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
