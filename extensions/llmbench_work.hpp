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
extern const extension* const include_llmbench_work_hpp_where_LLMBENCH_MAIN_is;
}  // namespace detail

/// The last step of .prepare, after the one that empties the cache: sends the starts that prompts
/// of the load share, one after the other, for one token each. Without it, how many users at once
/// compute a shared start depends on time on servers that cache a prompt when it ends (SGLang).
inline task_step prime() {
    return {.path = "prime()", .by = detail::include_llmbench_work_hpp_where_LLMBENCH_MAIN_is};
}

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

#include <algorithm>  // min, mismatch, sort, equal, max
#include <cmath>  // isfinite, floor, isnan, fabs
#include <cstddef>  // size_t
#include <map>
#include <string>
#include <string_view>
#include <utility>  // pair, move, exchange

#include <picojson.h>  // JSON of servers

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
/// What a prompt costs.
struct work_done {
    long long prefilled = 0, cached = 0;
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
        each.push_back({static_cast<long long>(r.prompt.size()) - cached, cached});
        cache.add(left_behind);
    }
    return each;
}

// ===== [E] objectives on work and their text, which is all that an slo has of one ================

/// Whether a count is of the model's prefix cache, so that it needs token ids.
inline bool is_of_prompts(const std::string& count) {
    return count == "prefilled_tokens" || count == "cached_tokens";
}

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

// ===== [E] which gates can have objectives on work ===============================================

inline bool is_expected(const slo& s) {
    return is_of_work(s.statistic.metric) && terms_of(s).from == work_limit::source::model;
}
/// Whether a count depends on what the server's prefix cache has before the load.
inline bool depends_on_cache(const std::string& count) {
    return is_of_prompts(count) || count == "engine_steps" || count == "preemptions";
}

/// Whether each repeat finds a server without the prompts of the one before.
inline bool is_reset(const scenario& s) {
    const auto* const p = s.target.what().get<process>();
    return any_of(s.prepare, [](const task_step& step) { return !step.by; }) ||
           (p && (p->restart_between_repeats || s.repeats == 1));
}
/// prime() is of use after the reset alone, in a gate whose prompts are the same each time.
inline void check_primed(const scenario& s, bool counts_work) {
    for (const task_step& step : s.prepare) {
        if (!step.by) continue;
        if (!counts_work)
            refuse({"prepare has prime(), and no objective is on work: a warm-up serves others"});
        if (&step != &*s.prepare.begin() + (s.prepare.size() - 1))
            refuse({"prepare has a step after prime(), which is the last: a reset would empty the "
                    "cache again"});
    }
}
/// Work is counted of one load of a known number of requests, from a server that is reset.
inline void check_load(const slo& first, const scenario& s) {
    const std::string given = "the SLO " + str(first.text()) + " is refused: ";
    for (const slo& x : s.slos)
        if (!is_of_work(x.statistic.metric) && x.statistic.metric != metric_id::error_rate)
            refuse({given, "it counts the work of a load whose prompts are the same each time, and ",
                    str(x.text()), " needs new ones: give each a gate of its own"});
    if (s.duration.seconds() > 0)
        refuse({given, "duration is set, which sends another number of requests each time: give "
                       "requests alone"});
    if (s.pairs == at_once)
        refuse({given, "pairs is at_once: work is counted of one server after the other"});
    if (s.baseline.is_of_extension())
        refuse({given, "the baseline is a history, and work is held against a number, a live "
                       "baseline or a stored run"});
    if (s.warmup.until_stable() || s.warmup.seconds() > 0)
        refuse({given, "warmup is a time, in which another number of requests is sent each time: "
                       "give it a number of requests"});
}
inline void check_reset(const slo& x, const scenario& s) {
    if (!depends_on_cache(terms_of(x).what) || is_reset(s)) return;
    refuse({"the SLO ", str(x.text()), " is refused: nothing resets the server before a repeat, "
            "which would find the prompts of the one before: give .prepare = "
            "{post(\"/reset_prefix_cache\")} (vLLM, with VLLM_SERVER_DEV_MODE=1) or "
            "{post(\"/flush_cache\")} (SGLang), or a process with .restart_between_repeats"});
}

/// A count is a whole number.
inline void check_number(const work_terms& t, const std::string& given) {
    const bool is_exact = t.side == work_side::equal;
    if (is_exact && t.factor != 1)
        refuse({given, "a part of a count is seldom a whole number: write <= or >="});
    if (t.from == work_limit::source::number &&
        !(t.number >= 0 && t.number < 0x1p53 && std::floor(t.number) == t.number))
        refuse({given, "a count is a whole number from 0 on"});
    if (!(t.factor > 0)) refuse({given, "the factor must be above zero"});
}
/// Whether the server has all requests before its first step, so that no time decides which run
/// together.
inline bool is_held(const planned_traffic& sent) {
    return !sent.arrivals.held.empty() && sent.stride == 1;
}
inline constexpr const char* how_to_hold =
    "hold a burst, all_at_once().held(post(\"/pause?mode=keep\"), post(\"/resume\")) (vLLM)";
/// The objective may only ask for what a load determines.
inline void check_steps(const work_terms& t, const planned_traffic& sent,
                        const std::string& given) {
    const bool is_exact = t.side == work_side::equal;
    const bool is_alone = !sent.is_open_loop() && users_of(sent) == 1;
    if (t.what == "engine_steps" && is_exact && !is_alone && !is_held(sent))
        refuse({given, "which requests share a pass depends on time: write <=, send one after the "
                       "other, closed_loop(1), or ", how_to_hold});
    if (t.what == "preemptions" && t.number != 0 && !is_held(sent))
        refuse({given, "how often a server preempts depends on time: only none, == 0, is the same "
                       "each time, or ", how_to_hold});
    if (t.what == "engine_steps" && sent.is_open_loop() && sent.arrivals.rate > 0)
        refuse({given, "at a rate, which requests share a pass depends on time: give it a closed "
                       "loop, or all_at_once()"});
}
/// Whether all answers have the lengths that are asked for.
inline bool forces_all_lengths(const planned_traffic& sent) {
    return !any_part(sent, [](const plan_part& part) { return !part.forces_length; });
}
inline bool is_greedy(const planned_traffic& sent) {
    return !any_part(sent, [](const plan_part& part) { return part.common.temperature != 0; });
}
inline void check_answers(const work_terms& t, const planned_traffic& sent,
                          const std::string& given) {
    const bool is_expected = t.from == work_limit::source::model;
    if (t.what == "generated_tokens" && !forces_all_lengths(sent)) {
        if (is_expected)
            refuse({given, "answers end where the model ends them, so no length is expected: use a "
                           "workload that forces lengths"});
        if (!is_greedy(sent))
            refuse({given, "answers end where the model ends them, by chance with this "
                           "temperature: force their lengths, or set options.temperature to 0"});
    }
    if ((t.what == "drafted_tokens" || t.what == "accepted_tokens") && !is_greedy(sent))
        refuse({given, "drafts are accepted by chance unless options.temperature is 0"});
}
inline void check_objective(const slo& s, const planned_traffic& sent,
                            const planned_judging& judged) {
    const std::string given = "the SLO " + str(s.text()) + " is refused: ";
    const work_terms t = terms_of(s);
    check_number(t, given);
    if (t.from == work_limit::source::baseline && !judged.has_baseline &&
        !judged.has_stored_baseline)
        refuse({given, "the scenario has no baseline"});
    check_steps(t, sent, given);
    check_answers(t, sent, given);
    if (t.from != work_limit::source::model) return;
    if (t.what != "server_requests" && t.what != "generated_tokens" && !is_of_prompts(t.what))
        refuse({given, "what is expected is known of server_requests, prefilled_tokens, "
                       "cached_tokens and generated_tokens: write a number, or baseline"});
    if (is_of_prompts(t.what) && any_part(sent, [&](const plan_part& part) {
            return part.common.model != sent.common.model;
        }))
        refuse({given, "parts of the mix ask for several models, and whether these share a cache "
                       "nobody knows: write a number, or baseline"});
}
/// Without a temperature answers are greedy, so that later turns have the same prompts each time.
inline void make_greedy(planned_workloads& all) {
    for_each_part(all, [](plan_part& part) {
        const bool is_set = part.common.extra_fields.find("\"temperature\"") != std::string::npos;
        if (std::isnan(part.common.temperature) && !is_set) part.common.temperature = 0;
    });
}
/// A gate that counts work has no warm-up and two repeats, unless it asks for others.
inline void add_counts_to_plan(const scenario& s, planned_traffic& sent, planned_judging& judged) {
    const slo* first = nullptr;
    for (const slo& x : judged.slos) {
        if (!is_of_work(x.statistic.metric)) continue;
        if (!first) check_load(x, s);
        first = &x;
        check_reset(x, s);
    }
    check_primed(s, first != nullptr);
    if (!first) return;
    sent.counts_work = true;
    if (s.warmup.requests() == warmup_amount().requests()) sent.warmup_requests = 0;
    judged.first_repeats = judged.max_repeats =
        s.repeats > 0 ? static_cast<int>(static_cast<long long>(s.repeats)) : 2;
    judged.max_if_noisy = 0;
    make_greedy(sent);
    if (sent.otherwise) {
        planned_workloads other = *sent.otherwise;
        make_greedy(other);
        sent.otherwise = std::move(other);
    }
    for (const slo& x : judged.slos)
        if (is_of_work(x.statistic.metric)) check_objective(x, sent, judged);
}

// ===== [E] what prompts of a load share at their beginnings ======================================

/// A text, and how much of its beginning another one has, too.
struct shared_start {
    std::size_t which = 0, length = 0;
};
inline std::size_t common_length(const std::string& a, const std::string& b) {
    const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return static_cast<std::size_t>(end.first - a.begin());
}
/// The fewest starts among which any two of the texts find all that they share. In the order of
/// the texts, each is where neighbours share more than those before and after them. Two texts have
/// one even if they share nothing: a server may put the same words before both.
inline vector<shared_start> shared_starts(const vector<std::string>& texts) {
    vector<std::size_t> order;
    for (std::size_t i = 0; i < texts.size(); ++i) order.push_back(i);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return texts[a] < texts[b]; });
    vector<shared_start> all;
    bool rises = false;
    for (std::size_t i = 0, before = 0; i < order.size(); ++i) {
        const bool is_last = i + 1 == order.size();
        const std::size_t next =
            is_last ? 0 : 1 + common_length(texts[order[i]], texts[order[i + 1]]);
        if (next < before && rises) all.push_back({order[i], before - 1});
        if (next != before) rises = next > before;
        before = next;
    }
    return all;
}

/// The request up to the word with which its first so many characters end, for one token.
inline request_spec begun(request_spec r, std::size_t length) {
    const std::size_t before = joined_prompt(r).size() - r.prompt.size();
    const std::size_t at_least = length > before + 1 ? length - before - 1 : 1;
    r.prompt = r.prompt.substr(0, r.prompt.find_first_of(" \n", at_least));
    if (!r.token_ids.empty()) r.token_ids = id_list(r.prompt);
    r.max_tokens = 1;
    return r;
}
/// Requests for what conversations of the load share: their later turns begin with the first.
inline vector<request_spec> primers_of(const plan& p, const token_fit& fit) {
    const planned_traffic& sent = *p.sent;
    const conversation_counts all = counted_conversations(sent);
    vector<request_spec> first;
    vector<std::string> texts;
    for (std::size_t c = 0; c < all.warmup + all.measured; ++c)
        for (std::size_t i = c * sent.stride, n = turns_of(sent, c); n > 0; ++i, --n) {
            if (sent.stride > 1 && step_of(sent, i).turn > 0) continue;
            first.push_back(request_of(p, run_variant::candidate, 0, i, {}, fit));
            texts.push_back(joined_prompt(first.back()));
        }
    vector<request_spec> primers;
    for (const shared_start& s : shared_starts(texts))
        primers.push_back(begun(first[s.which], s.length));
    return primers;
}

// ===== [E] what the requests of a load should have cost ==========================================

/// Ids of tokens, or why there are none.
struct told_ids {
    token_ids ids{};
    std::string problem{};
};
inline bool add_ids(const picojson::value* list, token_ids& to) {
    if (!list || !list->is<picojson::array>()) return false;
    for (const picojson::value& id : list->get<picojson::array>()) {
        if (!id.is<double>()) return false;
        to.push_back(static_cast<int>(id.get<double>()));
    }
    return !to.empty();
}
inline http_answer asked_of(const load_target& to, const char* path, const std::string& body) {
    constexpr double within_s = 10;
    return blocking_post(to, inquiry_path(to, path), to.fields, body, within_s);
}
inline told_ids tokenized(const load_target& to, const std::string& body) {
    told_ids told;
    picojson::value answered;
    const http_answer a = asked_of(to, "/tokenize", body);
    if (a.status == 200 && parse_json(a.body, answered) &&
        add_ids(member(answered, "tokens"), told.ids))
        return told;
    told.ids.clear();
    told.problem = a.status == 0     ? "POST /tokenize has no answer"
                   : a.status != 200 ? printed("POST /tokenize answers HTTP %d", a.status)
                                     : "POST /tokenize lists no tokens";
    return told;
}
/// The tokens of the prompt of a request: those that it lists itself, or those that the server's
/// /tokenize makes of the same body, chat template included. llama-server tokenizes texts alone,
/// and its /apply-template makes one of a chat.
inline told_ids ids_of_prompt(const load_target& to, const std::string& body) {
    told_ids told;
    picojson::value asked, answered;
    if (parse_json(body, asked) && add_ids(member(asked, "prompt"), told.ids)) return told;
    if (asked.is<picojson::object>())  // SGLang refuses to stream tokens of a prompt
        for (const char* field : {"stream", "stream_options"})
            asked.get<picojson::object>().erase(field);
    told = tokenized(to, asked.serialize());
    if (told.problem.empty()) return told;
    const http_answer a = asked_of(to, "/apply-template", asked.serialize());
    const bool is_text = a.status == 200 && parse_json(a.body, answered);
    const picojson::value* const text = is_text ? member(answered, "prompt") : nullptr;
    if (!text) return told;
    return tokenized(to, R"({"add_special":true,"parse_special":true,"content":)" +
                             text->serialize() + "}");
}

/// Whether the last step of the preparation is prime().
inline bool is_primed(const planned_traffic& sent) {
    return any_of(sent.prepare, [](const task_step& s) { return s.by != nullptr; });
}
inline vector<task_step> posts_of_prime(const plan& p, const live_target& on) {
    const load_target& to = on.load();
    vector<task_step> posts;
    for (const request_spec& r : primers_of(p, on.facts().tokens)) {
        const std::string body = request_body(*to.api, to.model, r);
        // {n} is a prompt's own, and no number of a repeat.
        posts.push_back(post(path_of(to, r), filled_in(body, "{n}", "\\u007bn}")));
    }
    return posts;
}

/// Where each request of a model's order is in the repeat's records.
struct request_in_order {
    std::size_t place = 0;  // among the records
    model_request what{};
};
inline bool goes_on(const token_ids& from, const token_ids& to) {
    return to.size() > from.size() && std::equal(from.begin(), from.end(), to.begin());
}
/// Sets the ids of answers, as far as a later prompt of the same conversation has them: it begins
/// with the earlier one, and no reasoning is left out. Others have ids that no prompt has.
inline void add_answers(vector<request_in_order>& all, const vector<record>& records) {
    std::map<long long, vector<std::size_t>> later;  // of a conversation, from its last request on
    for (std::size_t i = all.size(); i-- > 0;) {
        model_request& r = all[i].what;
        const record& own = records[all[i].place];
        const token_ids* next = nullptr;
        for (const std::size_t k : later[own.conversation])
            if (goes_on(r.prompt, all[k].what.prompt)) next = &all[k].what.prompt;
        if (std::max(own.reasoning_tokens, own.hidden_tokens) > 0) next = nullptr;
        const auto said = static_cast<std::size_t>(std::max(own.output_tokens, 0));
        const std::size_t n = r.prompt.size();
        for (std::size_t k = n; next && k < std::min(next->size(), n + said); ++k)
            r.answer.push_back((*next)[k]);
        while (r.answer.size() < said) r.answer.push_back(-1 - static_cast<int>(i));
        later[own.conversation].push_back(i);
    }
}
inline constexpr const char* no_block_size =
    "the server's page does not tell the size of a block of its prefix cache (vLLM: "
    "cache_config_info, SGLang: page_size)";
/// The tokens of a block, 1 of a cache that finds single ones; NaN: unknown.
inline double block_of(const std::string& server, const page_reading& page) {
    constexpr double most = 1 << 20;  // more is no size of a block
    const double block =
        server == "llama.cpp" ? 1 : page.value(server_quantity::block_tokens);
    return block >= 1 && block <= most ? block : not_a_number;
}
/// Sets what the requests of a repeat should have cost, in the order in which they were sent.
inline void foresee(const plan& p, const live_target& on, repeat_data& d) {
    foreseen_work& w = d.foreseen;
    std::map<std::size_t, std::string> bodies;
    for (kept_text& b : std::exchange(d.bodies, {})) bodies[b.index] = std::move(b.said);
    const double block = d.server.readings.empty()
                             ? not_a_number
                             : block_of(d.server.of, d.server.readings.back());
    if (std::isnan(block)) {
        w.unknown = no_block_size;
        return;
    }
    const auto ids_of = [&](const std::string& body) {
        if (!w.unknown.empty()) return token_ids();
        told_ids told = ids_of_prompt(on.load(), body);
        w.unknown = std::move(told.problem);
        return std::move(told.ids);
    };
    vector<model_request> in_order;
    if (is_primed(*p.sent))
        for (const task_step& s : posts_of_prime(p, on))
            in_order.push_back({ids_of(str(s.body)), {}});
    const std::size_t primed = in_order.size();
    vector<request_in_order> all;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        const auto body = bodies.find(index_of(d.records[i], i));
        if (body == bodies.end()) continue;
        token_ids ids = ids_of(body->second);
        const int counted = d.records[i].prompt_tokens;
        if (w.unknown.empty() && counted > 0 && static_cast<std::size_t>(counted) != ids.size())
            w.unknown = printed("POST /tokenize finds %zu tokens in the prompt of request %zu, "
                                "and its answer's usage %d", ids.size(), i + 1, counted);
        all.push_back({i, {std::move(ids), {}}});
    }
    if (!w.unknown.empty()) return;
    sort_by(all, [&](const request_in_order& r) { return d.records[r.place].sent_ns; });
    add_answers(all, d.records);
    for (request_in_order& r : all) in_order.push_back(std::move(r.what));
    const vector<work_done> each = expected_work(in_order, static_cast<int>(block));
    w.prompt.resize(d.records.size(), 0);
    w.cached.resize(d.records.size(), 0);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const work_done& done = each[primed + i];
        w.prompt[all[i].place] = static_cast<double>(done.prefilled + done.cached);
        w.cached[all[i].place] = static_cast<double>(done.cached);
    }
}

/// Refuses a count of prompts that is exact, if it depends on time on this server.
inline void check_users(const std::string& of, const planned_traffic& sent,
                        const std::string& given) {
    if (!sent.is_open_loop() && users_of(sent) == 1) return;
    if (of == "llama.cpp")
        refuse({given, "llama-server has a cache for each of its slots, and which slot takes a "
                       "request of several users depends on time: send one after the other, "
                       "closed_loop(1)"});
    if (of == "SGLang" && !is_primed(sent))
        refuse({given, "SGLang caches a prompt once it is computed, so how many of several users "
                       "compute what they share depends on time: end .prepare with prime(), or "
                       "send one after the other, closed_loop(1)"});
}
inline double slots_of_llama(const load_target& to) {
    constexpr double within_s = 10;
    picojson::value props;
    const http_answer a = blocking_get(to, inquiry_path(to, "/props"), to.fields, within_s);
    const picojson::value* const slots =
        a.status == 200 && parse_json(a.body, props) ? member(props, "total_slots") : nullptr;
    return slots && slots->is<double>() ? slots->get<double>() : not_a_number;
}
/// Refuses what is expected of prompts, if the server does not tell their tokens or the size of its
/// blocks, or has not one cache of this kind.
inline void check_model(const live_target& on, const plan& p, const std::string& given) {
    const auto cannot = [&](const std::string& why) {
        refuse({given, why, "; a number or baseline in place of expected needs none of it"});
    };
    const load_target& to = on.load();
    const std::string api = to.api->name;
    if ((api != "openai_chat" && api != "openai_completions") || to.transport)
        cannot("what is expected needs the tokens of each prompt, which are known of openai_chat "
               "and openai_completions over HTTP, and the API is " + api);
    const page_reading page =
        on.pages().first_is_servers ? reading_of_server(on.pages()) : page_reading();
    if (std::isnan(block_of(on.pages().of, page))) cannot(no_block_size);
    const auto& engines = page.places[static_cast<std::size_t>(server_quantity::prompt_tokens)];
    if (engines.size() > 1)
        cannot(printed("the server has %zu engines, each with a prefix cache of its own, and which "
                       "of them takes a request nobody knows", engines.size()));
    // llama-server counts drafts also where there are none, and computes no block again.
    const bool is_llama = on.pages().of == "llama.cpp";
    if (is_llama && slots_of_llama(to) != 1)
        cannot("llama-server has a prefix cache for each of its slots, and its /props does not say "
               "that it has one: start it with --parallel 1");
    if (!is_llama && !std::isnan(page.value(server_quantity::drafts)))
        cannot("the server drafts tokens, and then some (EAGLE, MTP) compute the last block of a "
               "prompt again");
    const request_spec r = request_of(p, run_variant::candidate, 0, 0);
    const told_ids told = ids_of_prompt(to, request_body(*to.api, to.model, r));
    if (!told.problem.empty())
        cannot("what is expected needs the tokens of each prompt: " + told.problem);
}
/// Refuses objectives that the server, as it is, cannot be held to.
inline void check_counters(const live_target& on, const plan& p) {
    for (const slo& s : p.judged->slos) {
        if (!is_of_work(s.statistic.metric)) continue;
        const std::string given = "the SLO " + str(s.text()) + " is refused: ";
        const work_terms t = terms_of(s);
        if (!p.shard.is_whole())
            refuse({given, "several programs share the load, and none of them has all requests "
                           "whose work is counted: run one"});
        if (!is_of_prompts(t.what)) continue;
        if (is_expected(s) || t.side == work_side::equal)
            check_users(on.pages().of, *p.sent, given);
        if (is_expected(s)) check_model(on, p, given);
    }
}

// ===== [E] verdicts on work: number against number ===============================================

inline std::string counted_text(double n) { return printed("%.15g", n); }
inline bool are_one(const vector<double>& all) {
    return all_of(all, [&](double x) { return x == all.front(); });
}

// ---- what makes a repeat unfit

inline double requests_sent(const repeat_data& d) {
    double n = 0;
    for (const record& r : d.records) n += r.sent_ns > 0;
    return n;
}
/// Requests whose work is not that of a whole answer; "" for none.
inline std::string fault_of_requests(const repeat_data& d) {
    std::size_t failed = 0, again = 0;
    const record* example = nullptr;
    for (const record& r : d.records) {
        again += r.resends > 0;
        if (r.status == request_status::ok) continue;
        ++failed;
        if (!example) example = &r;
    }
    if (failed > 0)
        return printed("%zu of %zu requests did not end well, and nobody knows what they cost "
                       "(%s%s%s)", failed, d.records.size(), to_string(example->status),
                       example->error.empty() ? "" : ": ", example->error.c_str());
    if (again > 0)
        return printed("%zu of %zu requests were sent again, as their connection was lost, and "
                       "may have cost twice as much", again, d.records.size());
    return {};
}
/// Requests or tokens of somebody else on the page, or ours that it lacks; "" for none. Requests that
/// are too many are what `server_requests` counts.
inline std::string fault_of_others(const repeat_data& d, bool counts_requests) {
    const reading_span s = *whole_span(d.server);
    const double ours = requests_sent(d);
    const auto change = [&](server_quantity q) {
        return counted_between(s.from->value(q), s.to->value(q));
    };
    const double reported = change(server_quantity::requests_done);
    if (reported > ours)
        return counts_requests
                   ? ""
                   : printed("its page counts %.0f finished requests, and %.0f were sent: somebody "
                             "else uses it, or something sends requests twice", reported, ours);
    if (reported < ours)
        return printed("its page counts %.0f finished requests of the %.0f sent: it is behind, or "
                       "is the page of another server or model", reported, ours);
    if (!std::isnan(reported)) return {};
    double tokens = 0;
    for (const record& r : d.records)
        tokens += r.token_source == token_origin::usage ? r.output_tokens : not_a_number;
    const double generated = change(server_quantity::generation_tokens);
    if (std::isnan(tokens) || std::isnan(generated) || generated == tokens) return {};
    return printed("its page counts %.0f generated tokens, and the usage of the answers %.0f: "
                   "somebody else uses it, or it is the page of another server", generated, tokens);
}
/// The cached tokens of the usage of all answers; NaN: one has none.
inline double cached_by_usage(const repeat_data& d) {
    double n = 0;
    for (const record& r : d.records) n += r.cached_tokens >= 0 ? r.cached_tokens : not_a_number;
    return n;
}
/// Why a count of a repeat says nothing, "" if it does.
inline std::string fault_of_count(const repeat_data& d, const statistic_data& what) {
    const server_metrics& w = d.server;
    const std::string why = w.problem.empty() ? "" : " (" + w.problem + ")";
    if (std::string fault = fault_of_requests(d); !fault.empty()) return fault;
    if (!w.is_read || w.readings.size() < 2 || !w.has_both_ends)
        return "its page was not read when it was idle, before the load and after it" + why;
    if (history_of(w) == page_history::several_servers)
        return "its page is of several servers in turns";
    if (history_of(w) == page_history::restarted) return "it restarted";
    if (std::isnan(work_of(what, d))) {
        const bool fell = have_fallen(w.readings.front(), w.readings.back());
        return fell ? "its counters fell: it began anew"
                    : "its page does not report " + str(what.name) + ", or the counter fell";
    }
    const std::string name = str(what.name);
    // A page without a counter of hits has had none so far, or does not tell.
    if (name == "cached_tokens" && cached_by_usage(d) > 0 &&
        std::isnan(w.readings.back().value(server_quantity::prefix_hits)))
        return printed("its page does not report cached_tokens, and the usage of its answers says "
                       "%.0f", cached_by_usage(d));
    return fault_of_others(d, name == "server_requests");
}

// ---- what a count is held against

/// What the model expects of the prompts of a repeat; NaN: unknown, or another count.
inline double expected_of_prompts(const repeat_facts& d, const std::string& count) {
    const foreseen_work& w = d.foreseen;
    const bool is_cached = count == "cached_tokens";
    if (!is_of_prompts(count) || w.prompt.empty() || w.cached.size() != w.prompt.size())
        return not_a_number;
    double n = 0;
    for (std::size_t i = 0; i < w.prompt.size(); ++i)
        n += is_cached ? w.cached[i] : w.prompt[i] - w.cached[i];
    return n;
}
/// What the model expects of a repeat; NaN: unknown.
inline double expected_in(const repeat_data& d, const std::string& count) {
    double n = 0;
    if (count == "server_requests") return requests_sent(d);
    if (count == "generated_tokens") {
        for (const record& r : d.records)
            n += r.most_output_tokens > 0 ? r.most_output_tokens : not_a_number;
        return n;
    }
    return expected_of_prompts(d, count);
}
/// What a repeat is held against: a number, or why there is none.
struct count_limit {
    double limit = not_a_number;
    std::string fault{};
};
inline count_limit limit_in_stored(const judging_parameters& t, const std::string& count) {
    const auto stored = t.stored.values.find(count);
    if (stored == t.stored.values.end() || stored->second.empty())
        return {.fault = "the stored run has no " + count};
    if (!are_one(stored->second))
        return {.fault = "the repeats of the stored run have different counts of " + count};
    return {stored->second.front()};
}
inline count_limit limit_of_repeat(const measurements& e, const objective_columns& c,
                                   const judging_parameters& t, const slo& s,
                                   const work_terms& terms, std::size_t i) {
    if (terms.from == work_limit::source::number) return {terms.number};
    if (terms.from == work_limit::source::model) {
        const double n = expected_in(e.candidate[i], terms.what);
        const std::string& why = e.candidate[i].foreseen.unknown;
        return {n, std::isnan(n) ? "what is expected is not known" + (why.empty() ? "" : ": " + why)
                                 : ""};
    }
    if (!e.has_live_baseline()) return limit_in_stored(t, terms.what);
    const std::string fault = fault_of_count(e.baseline[i], s.statistic);
    return {c.other.each[i]->value, fault.empty() ? "" : "baseline: " + fault};
}

// ---- words

/// "request 7 (turn 2) had 0 of 192": the first request whose answer says another number of cached
/// tokens than expected; "" if none does.
inline std::string first_other_request(const repeat_data& d) {
    const foreseen_work& w = d.foreseen;
    if (w.cached.size() != d.records.size()) return {};
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        const record& r = d.records[i];
        if (r.cached_tokens < 0 || r.cached_tokens == w.cached[i]) continue;
        return printed("request %zu (turn %d) had %d of %.0f", i + 1, r.turn + 1, r.cached_tokens,
                       w.cached[i]);
    }
    return {};
}
/// "64 fewer than expected, 2 blocks of 32".
inline std::string distance_text(const work_terms& terms, double count, double limit,
                                 const repeat_data& d) {
    const double off = std::fabs(count - limit);
    const char* const than = terms.from == work_limit::source::model      ? " than expected"
                             : terms.from == work_limit::source::baseline ? " than the baseline"
                                                                          : "";
    std::string text = counted_text(off) + (count < limit ? " fewer" : " more") + than;
    if (d.server.readings.empty()) return text;
    const double block = d.server.readings.back().value(server_quantity::block_tokens);
    const bool is_of_blocks = block > 1 && std::floor(off / block) * block == off &&
                              is_of_prompts(terms.what);
    if (is_of_blocks) text += printed(", %.0f block%s of %.0f", off / block,
                                      off == block ? "" : "s", block);
    return text;
}
/// What answers say of their cached tokens, where that is not what the page counts.
inline std::string usage_text(const repeat_data& d, const work_terms& terms, double count) {
    if (terms.what != "cached_tokens") return {};
    const double told = cached_by_usage(d);
    if (std::isnan(told) || told == count) return {};
    return printed("the usage of its answers says %.0f", told);
}
/// Whether so few tokens were computed that the others came from an earlier repeat.
inline bool is_far_less(double computed, double first) { return computed < first / 2; }
inline bool is_left_warm(const repeat_list& all) {
    const statistic_data computed = slo_of({.what = "prefilled_tokens"}).statistic;
    return is_far_less(work_of(computed, all[all.size() - 1]), work_of(computed, all[0]));
}
/// The rule by which repeats of one load may differ.
inline std::string why_unequal(const work_terms& terms, const repeat_list& all) {
    if (is_of_prompts(terms.what) && is_left_warm(all))
        return "the last repeat found in the cache what the first one had computed: nothing "
               "emptied it before, whatever a post in .prepare answered";
    if (terms.what == "engine_steps") return "which requests share a pass depends on time";
    if (terms.what == "preemptions") return "which requests are in memory together depends on time";
    if (terms.what == "server_requests") return "something sends requests twice, or sends its own";
    if (terms.what == "generated_tokens") return "answers end where the model ends them";
    if (terms.what == "drafted_tokens" || terms.what == "accepted_tokens")
        return "drafts depend on which requests run together";
    return "requests with one prefix that run at once compute it once or several times; if one "
           "user, closed_loop(1), changes nothing, the cache is too small or shared";
}
inline std::string enumerated(const vector<double>& counts) {
    std::string text;
    for (const double x : counts) text += (text.empty() ? "" : ", ") + counted_text(x);
    return text;
}

// ---- the verdict

/// Number against number: a verdict where all repeats are on one side of their limits, however they
/// differ.
inline decision judge_work(const measurements& e, const objective_columns& c,
                           const judging_parameters& t, const slo& s) {
    const work_terms terms = terms_of(s);
    decision d = undecided(s);
    d.is_at_its_end = true;
    const auto invalid = [&](cause why) {
        return decided(std::move(d), verdict::invalid, std::move(why));
    };
    const std::size_t n = e.has_live_baseline()
                              ? std::min(e.candidate.size(), e.baseline.size())
                              : e.candidate.size();
    vector<double> counts, limits;
    std::size_t lowest = 0, highest = 0;  // the repeats farthest below and above their limits
    const auto off = [&](std::size_t i) { return counts[i] - limits[i]; };
    for (std::size_t i = 0; i < n; ++i) {
        std::string fault = fault_of_count(e.candidate[i], s.statistic);
        if (!fault.empty()) fault = printed("repeat %zu: ", i + 1) + fault;
        count_limit held{};
        if (fault.empty()) held = limit_of_repeat(e, c, t, s, terms, i);
        if (!held.fault.empty()) fault = std::move(held.fault);
        if (!fault.empty()) return invalid({because::work, whose::server, std::move(fault)});
        counts.push_back(c.mine.each[i]->value);
        limits.push_back(terms.factor * held.limit);
        if (off(i) < off(lowest)) lowest = i;
        if (off(i) > off(highest)) highest = i;
    }
    if (n == 0) return invalid({because::nothing_measured});
    const bool is_above = terms.side != work_side::at_least && off(highest) > 0;
    const bool is_below = terms.side != work_side::at_most && off(lowest) < 0;
    const bool all_are = (is_above && off(lowest) > 0) || (is_below && off(highest) < 0);
    d.outcome = all_are                ? verdict::fail
                : is_above || is_below ? verdict::inconclusive
                                       : verdict::pass;
    const std::size_t worst =
        terms.side == work_side::at_least || (is_below && -off(lowest) > off(highest)) ? lowest
                                                                                       : highest;
    const repeat_data& repeat = e.candidate[worst];
    d.decided_by = verdict_method::equal_counts;
    d.counted_in = verdict_unit::repeat;
    d.repeats = static_cast<int>(n);
    d.requests = static_cast<long long>(d.repeats * requests_sent(repeat));
    d.measured = counts[worst];
    d.limit = limits[worst];
    std::string said, which;
    if (d.outcome == verdict::fail)
        said = counted_text(d.measured) + " " + sign_of(terms.side) + " " + counted_text(d.limit) +
               ": " + distance_text(terms, d.measured, d.limit, repeat);
    if (d.outcome == verdict::inconclusive)
        said = "repeats differ, " + enumerated(counts) +
               (are_one(limits) ? "" : " for " + enumerated(limits)) + ": " +
               why_unequal(terms, e.candidate);
    if (d.outcome != verdict::pass && terms.from == work_limit::source::model &&
        is_of_prompts(terms.what))
        which = first_other_request(repeat);
    std::string text =
        joined_texts({said, which, usage_text(repeat, terms, d.measured)}, "; ");
    if (!text.empty()) d.why.push_back({because::work, whose::nobody, std::move(text)});
    d.values = std::move(counts);
    return d;
}

// ===== [E] counts of work in reports =============================================================

/// What the model expects of the prompts of a repeat, "" for other counts.
inline std::string expected_text(const repeat_facts& d, const std::string& count) {
    const double n = expected_of_prompts(d, count);
    return std::isnan(n) ? "" : counted_text(n);
}
/// A table of all counts that the server's page has, whether or not an objective is on them.
inline void show_work(const gate_report& g, report_parts& into) {
    if (!g.under.counts_work) return;
    report_table t{{"count", "arm", "repeat", "counted", "expected"}, 2};
    for (const count_name& c : count_names)
        for (const variant_figures* variant : {&g.figures.candidate, &g.figures.baseline})
            for (const repeat_figures& d : variant->repeats) {
                statistic_data what;
                what.metric = metric_id::work;
                what.name = c.name;
                const double n = work_of(what, d);
                if (std::isnan(n)) continue;
                t.add({c.name, to_string(d.variant), d.index + 1, counted_text(n),
                       expected_text(d, c.name)});
            }
    if (t.rows.empty()) return;
    into.results += folded("Work of the server", "from one idle page to another", fold::open,
                           page_table(filled("Counts of {name}", {{"name", g.what.name}}), t));
}

}  // namespace detail

// ===== [E] objectives on work as a gate file says them ===========================================

slo detail::work_objective(work_count count, const types::text& series, work_side side,
                           const work_limit& limit) {
    return slo_of({.what = series.empty() ? count_names[static_cast<std::size_t>(count)].name
                                          : "counted(\"" + str(series) + "\")",
                   .side = side,
                   .from = limit.from,
                   .number = static_cast<double>(limit.number),
                   .factor = limit.factor},
                  limit.at);
}

// ===== [E] the hooks of counts of work ===========================================================

namespace detail {

inline constinit const extension work_counted{.name = "work",
                                              .add_to_plan = add_counts_to_plan,
                                              .posts_of_step = posts_of_prime,
                                              .check_counters = check_counters,
                                              .foresee = foresee,
                                              .judge_work = judge_work,
                                              .show = show_work};
constinit const extension* const include_llmbench_work_hpp_where_LLMBENCH_MAIN_is =
    &work_counted;
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_counts_of_work() { add(work_counted); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_WORK_IMPLEMENTED
