// llmbench_work 1.0.0-rc.1: what a load costs its server, in counts that need no tolerance. Include it after
// Put together from src/ by ci/assemble.py: edit there, not here.
// llmbench.hpp.
//
// Part one: declarations
//   [A] objectives on the work of a server
// Part three: counts expected, read, judged and shown
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
#error "llmbench_work.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_WORK_HPP
#define LLMBENCH_WORK_HPP
static_assert(__builtin_strcmp(LLMBENCH_RELEASE_, "llmbench_1.0.0rc.1") == 0,
              "llmbench_work.hpp is of 1.0.0-rc.1, but llmbench.hpp is " LLMBENCH_RELEASE_
              ": take both from one release");

// ===== [A] objectives on the work of a server ====================================================

namespace llmbench {
inline namespace v1 {

/// What a load costs its server, in whole numbers: a counter on the server's metrics page when it
/// is idle after the load, less the same when it was idle before.
enum class work_count : unsigned char {
    server_requests,   ///< finished by the engine
    prefilled_tokens,  ///< of prompts, computed
    cached_tokens,     ///< of prompts, found in the prefix cache
    generated_tokens,  ///< of answers
    engine_steps,      ///< passes of the model
    drafted_tokens,    ///< of speculative decoding
    accepted_tokens,   ///< of these, the drafts that became tokens of answers
    preemptions        ///< requests stopped to make room for others
};
// `preemptions` itself is the metric of llmbench.hpp, of which == makes an objective on work.
using work_count::server_requests;
using work_count::prefilled_tokens;
using work_count::cached_tokens;
using work_count::generated_tokens;
using work_count::engine_steps;
using work_count::drafted_tokens;
using work_count::accepted_tokens;

/// A counter that has no name above, by its name on the page and enough labels to be unique:
/// `counted("vllm:corrupted_requests_total{model_name=\"m\"}") == 0`.
struct server_counter {
    types::text series{};
};
inline server_counter counted(const types::text& series) { return {series}; }

/// What the load should cost, by a model of a prefix cache of blocks: `cached_tokens == expected`,
/// `cached_tokens >= 0.98 * expected`. It knows server_requests, prefilled_tokens, cached_tokens
/// and generated_tokens.
enum class expected_t : unsigned char { expected };
using enum expected_t;
struct part_of_expected {
    double factor = 1;
};
constexpr part_of_expected operator*(double f, expected_t) { return {f}; }
constexpr part_of_expected operator*(fraction f, expected_t) { return {f.value}; }

/// The right side of a comparison: a whole number, what is expected, or the baseline's count. The
/// constructors run in the user's line, so that their default arguments capture it.
struct work_limit {
    enum class source : unsigned char { number, model, baseline } from = source::number;
    long long number = 0;
    double factor = 1;  ///< of what is expected, or of the baseline
    source_line at{};
    template <detail::integer I>
    work_limit(I n, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : number(static_cast<long long>(n)), at{file, line} {}
    work_limit(expected_t, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : from(source::model), at{file, line} {}
    work_limit(part_of_expected p, const char* file = __builtin_FILE(),
               int line = __builtin_LINE())
        : from(source::model), factor(p.factor), at{file, line} {}
    work_limit(baseline_t, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : from(source::baseline), at{file, line} {}
    work_limit(relative_limit r, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : from(source::baseline), factor(r.factor), at{file, line} {}
};

namespace detail {
enum class work_side : unsigned char { equal, at_most, at_least };
/// Defined in this extension's implementation. If it is missing, the linker shows the name.
slo work_objective(work_count count, const types::text& series, work_side side,
                   const work_limit& limit)
    asm("include_llmbench_work_hpp_where_LLMBENCH_MAIN_is");
}  // namespace detail

inline slo operator==(work_count c, const work_limit& l) {
    return detail::work_objective(c, {}, detail::work_side::equal, l);
}
inline slo operator<=(work_count c, const work_limit& l) {
    return detail::work_objective(c, {}, detail::work_side::at_most, l);
}
inline slo operator>=(work_count c, const work_limit& l) {
    return detail::work_objective(c, {}, detail::work_side::at_least, l);
}
inline slo operator==(const server_counter& c, const work_limit& l) {
    return detail::work_objective({}, c.series, detail::work_side::equal, l);
}
inline slo operator<=(const server_counter& c, const work_limit& l) {
    return detail::work_objective({}, c.series, detail::work_side::at_most, l);
}
inline slo operator>=(const server_counter& c, const work_limit& l) {
    return detail::work_objective({}, c.series, detail::work_side::at_least, l);
}
/// `preemptions == 0`. Its first argument alone is exact, so that it is preferred to the deleted
/// == of other metrics.
template <detail::integer I>
slo operator==(server_count, const I& n) {
    return detail::work_objective(work_count::preemptions, {}, detail::work_side::equal, n);
}

}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_WORK_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_WORK_IMPLEMENTED)
#define LLMBENCH_WORK_IMPLEMENTED

#include <algorithm>  // min
#include <cmath>  // isfinite
#include <cstddef>  // size_t
#include <iterator>  // size
#include <map>
#include <string>
#include <string_view>
#include <utility>  // pair

// ===== [E] what requests should cost a server that has a prefix cache ============================
// A cache of whole blocks, as vLLM and SGLang have, which forgets nothing. The model knows tokens
// and their order alone: no time, no memory.

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Ids of tokens. Where only their number is known, as of answers that nobody reads again, any
/// ids do that no prompt has.
using token_ids = vector<int>;

/// One request: its prompt as the server tokenizes it, and its answer.
struct model_request {
    token_ids prompt{};
    token_ids answer{};
};
/// What requests cost; of one, `requests` is 1.
struct work_done {
    long long requests = 0, prefilled = 0, cached = 0, generated = 0;
    work_done& operator+=(const work_done& w) {
        requests += w.requests;
        prefilled += w.prefilled;
        cached += w.cached;
        generated += w.generated;
        return *this;
    }
    friend bool operator==(const work_done&, const work_done&) = default;
};

/// The blocks of tokens that a server has computed, each after those before it.
class block_cache {
public:
    /// `block_tokens`: 1 for a cache that finds single tokens.
    explicit block_cache(int block_tokens)
        : block_tokens_(static_cast<std::size_t>(block_tokens)) {}

    /// The first tokens of a sequence that are in the cache, in whole blocks.
    std::size_t found(const token_ids& sequence) const {
        std::size_t at = 0;
        for (int after = root; at + block_tokens_ <= sequence.size(); at += block_tokens_) {
            const auto next = blocks_.find({after, block_of(sequence, at)});
            if (next == blocks_.end()) break;
            after = next->second;
        }
        return at;
    }
    void add(const token_ids& sequence) {
        int after = root;
        for (std::size_t at = 0; at + block_tokens_ <= sequence.size(); at += block_tokens_) {
            const int number = static_cast<int>(blocks_.size()) + 1;
            after = blocks_.try_emplace({after, block_of(sequence, at)}, number).first->second;
        }
    }

private:
    static constexpr int root = 0;
    token_ids block_of(const token_ids& sequence, std::size_t at) const {
        const int* const from = sequence.begin() + at;
        return {from, from + block_tokens_};
    }
    std::size_t block_tokens_;
    std::map<std::pair<int, token_ids>, int> blocks_{};  // by the block before: their numbers
};

/// What each request costs, in the order in which the server begins them. A prompt's last token is
/// computed even if all of it is cached, since the first token of the answer follows from it. The
/// answer's last token is never an input.
inline vector<work_done> expected_work(const vector<model_request>& in_order, int block_tokens) {
    block_cache cache(block_tokens);
    vector<work_done> each;
    for (const model_request& r : in_order) {
        token_ids left_behind = r.prompt;
        for (std::size_t i = 0; i + 1 < r.answer.size(); ++i) left_behind.push_back(r.answer[i]);
        token_ids looked_up = r.prompt;
        if (!looked_up.empty()) looked_up.pop_back();
        const auto cached = static_cast<long long>(cache.found(looked_up));
        each.push_back({1, static_cast<long long>(r.prompt.size()) - cached, cached,
                        static_cast<long long>(r.answer.size())});
        cache.add(left_behind);
    }
    return each;
}
inline work_done sum_of(const vector<work_done>& each) {
    work_done all;
    for (const work_done& w : each) all += w;
    return all;
}

// ===== [E] objectives on work and their text, which is all that an slo has of one ================

/// In the order of work_count.
inline constexpr const char* work_names[] = {
    "server_requests", "prefilled_tokens", "cached_tokens", "generated_tokens",
    "engine_steps", "drafted_tokens", "accepted_tokens", "preemptions"};

/// What an objective on work says.
struct work_terms {
    std::string what{};  // one of the names, or counted("...")
    work_side side = work_side::equal;
    work_limit::source from = work_limit::source::number;
    double number = 0;
    double factor = 1;  // of what is expected, or of the baseline
};

inline const char* sign_of(work_side s) { return name_at({"==", "<=", ">="}, s); }
/// "2200", "expected", "0.98 * expected", "1.05 * baseline".
inline std::string limit_text(const work_terms& t) {
    if (t.from == work_limit::source::number) return printed("%.0f", t.number);
    const char* const of = t.from == work_limit::source::model ? "expected" : "baseline";
    return (t.factor == 1 ? "" : printed("%g * ", t.factor)) + of;
}
inline slo slo_of(const work_terms& t, const source_line& at = {}) {
    slo s;
    s.statistic.metric = metric_id::work;
    s.statistic.name = t.what;
    s.statistic.gauge = t.what + " " + sign_of(t.side) + " " + limit_text(t);
    s.at_most = t.side != work_side::at_least;
    s.bound = t.from == work_limit::source::number ? t.number : 0;
    s.factor = t.from == work_limit::source::baseline ? t.factor : 0;
    s.at = at;
    return s;
}
/// The terms of such an slo. Throws std::invalid_argument if its text, as of a file, is of none.
inline work_terms terms_of(const slo& s) {
    const std::string text = str(s.statistic.gauge), name = str(s.statistic.name);
    const auto no_terms = [&] {
        refuse({"\"", printable(text, 200), "\" is no objective on work"});
    };
    work_terms t{.what = name};
    std::string_view rest = text;
    if (!rest.starts_with(name + " ") || rest.size() < name.size() + 4) no_terms();
    rest.remove_prefix(name.size() + 1);
    const std::string_view sign = rest.substr(0, 2);
    t.side = sign == "<=" ? work_side::at_most : sign == ">=" ? work_side::at_least
                                                              : work_side::equal;
    rest.remove_prefix(3);
    const auto number = leading_number<double>(rest);
    if (number && rest.starts_with(" * ")) rest.remove_prefix(3);
    if (rest == "expected") t.from = work_limit::source::model;
    else if (rest == "baseline") t.from = work_limit::source::baseline;
    else if (!number || !rest.empty() || sign != sign_of(t.side)) no_terms();
    (t.from == work_limit::source::number ? t.number : t.factor) = number.value_or(1);
    return t;
}
/// The place of a name in `work_names`, their number for another.
inline std::size_t work_named(std::string_view name) {
    std::size_t i = 0;
    while (i < std::size(work_names) && name != work_names[i]) ++i;
    return i;
}

}  // namespace detail

// ===== [E] objectives on work as a gate file says them ===========================================

slo detail::work_objective(work_count count, const types::text& series, work_side side,
                           const work_limit& limit) {
    return slo_of({.what = series.empty() ? work_names[static_cast<std::size_t>(count)]
                                          : "counted(\"" + str(series) + "\")",
                   .side = side,
                   .from = limit.from,
                   .number = static_cast<double>(limit.number),
                   .factor = limit.factor},
                  limit.at);
}

}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_WORK_IMPLEMENTED
