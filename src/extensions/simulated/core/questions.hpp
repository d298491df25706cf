// requests to the simulated server
#pragma once

#include "api/target.hpp"
#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/wire/http.hpp"
#include "extensions/simulated/api.hpp"

#include <algorithm>  // min, max
#include <charconv>  // from_chars
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <deque>
#include <initializer_list>
#include <iterator>  // size
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Only for requests of ours and of clients like curl.
class request_parser {
public:
    std::string method{}, path{}, body{};  // the path without its query
    vector<header_field> fields{};
    bool keep_alive = true;

    std::string_view header(std::string_view name) const {
        for (const header_field& f : fields)
            if (same_ignoring_case(f.name, name)) return f.value;
        return {};
    }
    /// Returns true for a complete request; false with `broken()` for an invalid one.
    bool feed(std::string_view bytes) {
        raw_.append(bytes);
        if (!head_done_ && !read_head()) return false;
        if (is_chunked_) return take_chunks();
        if (raw_.size() < length_) return false;
        body = raw_.substr(0, length_);
        raw_.erase(0, length_);
        return true;
    }
    bool broken() const { return broken_; }
    /// Whether the client waits for "100 Continue" before it sends the body; asked once.
    bool waits_to_continue() { return head_done_ && std::exchange(waits_to_continue_, false); }
    /// Prepares for the next request on the connection; early bytes are kept.
    void reset() {
        std::string rest = std::move(raw_);
        *this = request_parser();
        raw_ = std::move(rest);
    }

private:
    bool read_head() {
        const std::size_t end = raw_.find("\r\n\r\n", searched_to_);
        if (end == std::string::npos) {
            broken_ = raw_.size() > most_head;
            searched_to_ = std::max<std::size_t>(raw_.size(), 3) - 3;
            return false;
        }
        const std::string_view head = std::string_view(raw_).substr(0, end);
        const std::string_view line = head.substr(0, head.find("\r\n"));
        const std::size_t a = line.find(' '), b = line.rfind(' ');
        if (a == std::string_view::npos || a == b || line.substr(b + 1, 7) != "HTTP/1.")
            return !(broken_ = true);
        method = line.substr(0, a);
        path = line.substr(a + 1, b - a - 1);
        path.resize(std::min(path.find('?'), path.size()));
        keep_alive = line.back() == '1';
        const bool has_fields = for_each_field(
            head, [&](std::string_view name, std::string_view value, std::string_view) {
                fields.push_back({std::string(name), std::string(value)});
            });
        if (!has_fields) return !(broken_ = true);
        for (const header_field& f : fields) {
            if (!same_ignoring_case(f.name, "content-length")) continue;
            const auto length = parsed_number<std::size_t>(f.value);
            if (!length) return !(broken_ = true);
            length_ = *length;
        }
        is_chunked_ = same_ignoring_case(header("transfer-encoding"), "chunked");
        if (length_ > max_body || (!is_chunked_ && !header("transfer-encoding").empty()))
            return !(broken_ = true);
        if (lists(header("connection"), "close")) keep_alive = false;
        waits_to_continue_ = same_ignoring_case(header("expect"), "100-continue");
        raw_.erase(0, end + 4);
        return head_done_ = true;
    }
    /// Returns true once the last chunk is there. Trailers are not read.
    bool take_chunks() {
        std::size_t at = 0;
        bool is_whole = false;
        for (std::size_t eol; !is_whole && (eol = raw_.find("\r\n", at)) != std::string::npos;) {
            std::size_t n = max_body;
            std::from_chars(raw_.data() + at, raw_.data() + eol, n, 16);
            if ((broken_ = n >= max_body || body.size() + n >= max_body)) return false;
            if (raw_.size() < eol + n + 4) break;
            body.append(raw_, eol + 2, n);
            at = eol + n + 4;
            is_whole = n == 0;
        }
        raw_.erase(0, at);
        broken_ = !is_whole && raw_.size() > most_head && raw_.find("\r\n") == std::string::npos;
        return is_whole;
    }
    static constexpr std::size_t max_body = 64u << 20, most_head = 64 * 1024;
    std::string raw_{};
    std::size_t length_ = 0;
    std::size_t searched_to_ = 0;  // there is no end of the head before
    bool head_done_ = false;
    bool waits_to_continue_ = false;
    bool is_chunked_ = false;
    bool broken_ = false;
};

/// One request for tokens, by any API.
struct question {
    api_format api = openai_chat;
    bool streamed = true;
    bool wants_usage = false;  // with a stream, where it is optional
    bool stops = false;        // ends by itself before the length asked for
    int prompt_tokens = 1;
    int output_tokens = 1;
    int most_tokens = 0;       // asked for; 0: the request names none
    bool is_forced = false;    // it must not end before that
    int reasoning_tokens = 0;  // included in output_tokens
    int documents = 1;         // documents to rank, or inputs
    maybe<long long> result{};  // of the arithmetic in the prompt
    double rank = 0;            // of its words among all questions, 0 to 1
    std::uint64_t words = 0;    // seed of the answer's words, 0: the request's number
    vector<std::uint64_t> hashes{};  // of each prompt token with all before it
    std::uint64_t last_hash = 0;     // of them, later of the answer's words so far
};

inline maybe<api_format> api_at(std::string_view path) {
    if (path.substr(0, 11) == "/v2/models/") return triton;
    if (path.ends_with("/rerank") && api_named("rerank")) return api_format::rerank;
    for (std::size_t i = 0; i < std::size(apis); ++i)
        if (path == apis[i].path || path == apis[i].whole_path) return static_cast<api_format>(i);
    return {};
}
/// Three APIs have the path /generate, two /v1/score; their requests differ.
inline api_format api_of(api_format at, const picojson::value& body) {
    if (at == api_format::score) return member(body, "items") ? api_format::sglang_score : api_format::score;
    if (at != tgi && at != sglang) return at;
    if (member(body, "inputs")) return tgi;
    return member(body, "text") || member(body, "input_ids") ? sglang : plain_text;
}

/// Adds text and token ids at any depth.
inline void add_prompt(std::string& prompt, const picojson::value& v) {
    if (v.is<std::string>() || v.is<double>()) prompt += v.to_str() + " ";
    if (v.is<picojson::array>())
        for (const picojson::value& one : v.get<picojson::array>()) add_prompt(prompt, one);
    for (const char* name : {"content", "text"})
        if (const picojson::value* said = member(v, name)) add_prompt(prompt, *said);
}
/// Returns all text and token ids, separated by spaces.
inline std::string prompt_of(const picojson::value& body) {
    std::string prompt;
    for (const char* name : {"prompt", "inputs", "text", "input_ids", "text_input", "system",
                             "instructions", "input", "query", "text_1", "documents", "text_2",
                             "items", "messages"})
        if (const picojson::value* said = member(body, name)) add_prompt(prompt, *said);
    return prompt;
}
/// One token each.
inline vector<std::string_view> words_of(std::string_view s) {
    vector<std::string_view> words;
    std::size_t at = 0;
    while ((at = s.find_first_not_of(" \t\n\r", at)) != std::string_view::npos) {
        const std::size_t end = std::min(s.find_first_of(" \t\n\r", at), s.size());
        words.push_back(s.substr(at, end - at));
        at = end;
    }
    return words;
}
/// A hash of a word with all before it, of which `before` is one.
inline std::uint64_t continued_hash(std::uint64_t before, std::string_view word) {
    fnv1a h;
    h.add(static_cast<long long>(before));
    h.add(word.data(), word.size());
    return mixed(h.value());
}
inline vector<std::uint64_t> hashes_of(const vector<std::string_view>& words) {
    vector<std::uint64_t> hashes;
    std::uint64_t hash = 0;
    for (const std::string_view word : words)
        hashes.push_back(hash = continued_hash(hash, word));
    return hashes;
}
/// The hash of each whole block: that of its last token.
inline vector<std::uint64_t> blocks_of(const vector<std::uint64_t>& hashes,
                                       int block_tokens) {
    vector<std::uint64_t> blocks;
    const auto step = static_cast<std::size_t>(block_tokens);
    for (std::size_t end = step; end <= hashes.size(); end += step)
        blocks.push_back(hashes[end - 1]);
    return blocks;
}

/// The largest number with these names, at the top of the body or at the API's place; -1: none.
inline int asked_count(const picojson::value& body, std::initializer_list<const char*> names) {
    int n = -1;
    const std::initializer_list<const picojson::value*> places = {
        &body, member(body, "parameters"), member(body, "options"),
        member(body, "sampling_params")};
    for (const picojson::value* at : places)
        for (const char* name : names)
            if (at) n = std::max(n, count_member(*at, name));
    return n;
}
inline std::optional<bool> flag_in(const picojson::value* at, const char* name) {
    const picojson::value* m = at ? member(*at, name) : nullptr;
    return m && m->is<bool>() ? std::optional(m->get<bool>()) : std::nullopt;
}
/// Greedy decoding gives the same words for the same prompt.
inline bool asks_for_greedy(const picojson::value& body) {
    for (const picojson::value* at : {&body, member(body, "parameters"), member(body, "options"),
                                      member(body, "sampling_params")}) {
        const picojson::value* t = at ? member(*at, "temperature") : nullptr;
        if ((t && t->is<double>() && t->get<double>() == 0) ||
            (at && member(*at, "do_sample") && flag_in(at, "do_sample") != true))
            return true;
    }
    return false;
}
inline bool asks_for_stream(api_format api, std::string_view path, const picojson::value& body) {
    if (api == plain_text) return true;
    if (api == tgi || api == triton) return path.ends_with("generate_stream");
    return flag_in(&body, "stream").value_or(api == ollama || api == ollama_generate);
}

/// The simulated server only knows arithmetic: the result of the last two whole numbers with +, -
/// or * between them.
inline maybe<long long> result_of(const vector<std::string_view>& words) {
    maybe<long long> result;
    for (std::size_t i = 2; i < words.size(); ++i) {
        const auto number = [](std::string_view s) {
            while (!s.empty() && (s.back() == '?' || s.back() == '.')) s.remove_suffix(1);
            const auto n = parsed_number<int>(s);
            return n && *n >= 0 ? n : std::nullopt;
        };
        const auto a = number(words[i - 2]), b = number(words[i]);
        if (!a || !b) continue;
        const long long x = *a, y = *b;
        if (words[i - 1] == "+") result = x + y;
        if (words[i - 1] == "-") result = x - y;
        if (words[i - 1] == "*") result = x * y;
    }
    return result;
}

/// Responses that the server stores: by its id all that was said up to its end.
class stored_responses {
public:
    explicit stored_responses(std::size_t most) : most_(most) {}
    maybe<std::string> find(const std::string& id) const {
        const auto found = said_.find(id);
        return found == said_.end() ? maybe<std::string>() : found->second;
    }
    void add(const std::string& id, std::string said) {
        said_[id] = std::move(said);
        in_order_.push_back(id);
        for (; in_order_.size() > most_; in_order_.pop_front()) said_.erase(in_order_.front());
    }

private:
    std::size_t most_;
    std::map<std::string, std::string> said_{};
    std::deque<std::string> in_order_{};
};
inline std::string input_of(const picojson::value& body) {
    std::string said;
    if (const picojson::value* input = member(body, "input")) add_prompt(said, *input);
    return said;
}
/// The request with what was said before in front of its input.
inline picojson::value with_history(const picojson::value& body, const std::string& said) {
    if (said.empty()) return body;
    picojson::object all = body.get<picojson::object>();
    picojson::array input{picojson::value(said)};
    if (const picojson::value* own = member(body, "input")) input.push_back(*own);
    all["input"] = picojson::value(input);
    return picojson::value(all);
}

inline question question_of(api_format api, std::string_view path, const picojson::value& body) {
    question q;
    q.api = api;
    q.streamed = asks_for_stream(api, path, body);
    q.wants_usage = true == (api == triton
                                 ? flag_in(&body, "return_num_output_tokens")
                                 : flag_in(member(body, "stream_options"), "include_usage"));
    const std::string prompt = prompt_of(body);
    const vector<std::string_view> words = words_of(prompt);
    q.hashes = hashes_of(words);
    const vector<std::uint64_t>& hashes = q.hashes;
    if (!hashes.empty()) q.last_hash = hashes.back();
    q.result = result_of(words);
    if (q.result) q.rank = generator(hashes.back(), 98).uniform();
    if (asks_for_greedy(body) && !hashes.empty()) q.words = hashes.back();
    q.prompt_tokens = std::max(1, static_cast<int>(hashes.size()));
    int most = asked_count(body, {"max_tokens", "max_completion_tokens", "max_output_tokens",
                                  "max_new_tokens", "n_predict", "num_predict"});
    q.most_tokens = std::max(most, 0);
    if (most <= 0) most = 128;
    q.is_forced =
        traits_of(api).forces_lengths &&
        (flag_in(&body, "ignore_eos") == true ||
         flag_in(member(body, "sampling_params"), "ignore_eos") == true);
    // Unforced answers end by themselves, at the same length for the same prompt.
    const int natural =
        16 + static_cast<int>(hashes.empty() ? 0 : hashes.back() % (q.result ? 64 : 256));
    q.output_tokens = q.is_forced ? most : std::min(most, natural);
    q.stops = q.output_tokens < most;
    for (const char* name : {"documents", "text_2", "items", "input"})
        if (const picojson::array& texts = array_member(body, name);
            !texts.empty() && !texts[0].is<double>())
            q.documents = static_cast<int>(texts.size());
    if (!traits_of(api).generates) q.output_tokens = 1;  // one step that reads the prompt
    return q;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
