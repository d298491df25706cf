// verdicts on work: number against number
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "core/described/verdict_text.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/measured/server_values.hpp"
#include "extensions/work/core/objective.hpp"

#include <algorithm>  // min
#include <cmath>  // fabs, floor, isnan
#include <cstddef>  // size_t
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

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

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
