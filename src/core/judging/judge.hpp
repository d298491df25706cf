// the verdicts of a gate
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/pooled.hpp"
#include "core/judging/baseline_errors.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/terms.hpp"
#include "core/judging/validity.hpp"
#include "core/judging/values.hpp"
#include "core/judging/words.hpp"

#include <algorithm>  // any_of, count_if, find_if, max, none_of
#include <cmath>  // isfinite
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What the repeats alone say of one SLO: at the first look that decides, or at the last one.
inline slo_verdict judge_repeats(const evidence& e, const terms& t, const slo& s, bool to_the_end) {
    const bool is_fresh = t.rule.traffic == fresh && !is_of_start(s.what.metric);
    const bool counts = is_share(s.what.metric) ||
                        (is_fresh && s.what.kind == statistic_kind::percentile);
    const bool mean = is_fresh && s.what.kind == statistic_kind::mean;
    slo_verdict v = counts ? judge_counts(e, t, s, to_the_end)
                    : mean ? judge_fresh_mean(e, t, s, to_the_end)
                           : judge_values(e, t, s, to_the_end);
    if (counts || mean) v.measured = pooled_value(s.what, e.candidate);
    v.unit = repeat_word(t.rule, s.factor > 0 && e.has_live_baseline());
    return v;
}

/// Whether the data as a whole lie on the other side of the limit than a verdict says.
inline bool is_contradicted(const slo_verdict& v) {
    const bool is_met =
        v.what.at_most ? v.measured <= v.limit : v.measured >= v.limit;  // not by what is NaN
    return (v.outcome == verdict::pass && !is_met) || (v.outcome == verdict::fail && is_met);
}

/// "all repeats together: 305 ms, over the limit; the typical repeat: 292 ms".
inline std::string contradiction_text(const slo_verdict& early, const slo_verdict& late) {
    const slo& s = late.what;
    const bool is_over = late.measured > late.limit;
    const bool is_met = s.at_most ? !is_over : late.measured >= late.limit;
    const bool counts = str(late.method) == method_counts;
    return "all repeats together: " + verdict_value_text(late, late.measured) + ", " +
           (is_met ? "within" : is_over ? "over" : "under") + " the limit; the " +
           (counts ? basis_name(early) : "typical " + str(late.unit)) + ": " +
           verdict_value_text(late, (counts ? early : late).estimate.value);
}

/// What the numbers alone say of one SLO. A verdict and the data never contradict each other: where
/// they do, as when one repeat has nearly all that is slow, or those after a decision are unlike
/// those before it, all of them are looked at, and what is contradictory still is inconclusive.
inline slo_verdict judge_evidence(const evidence& e, const terms& t, const slo& s,
                                  bool to_the_end = false) {
    const slo_verdict early = judge_repeats(e, t, s, to_the_end);
    if (to_the_end || !is_contradicted(early)) return early;
    slo_verdict v = judge_repeats(e, t, s, true);
    if (is_contradicted(v)) v.outcome = verdict::inconclusive;
    if (v.outcome == verdict::inconclusive)
        v.reason = contradiction_text(early, v) + (v.reason.empty() ? "" : "; " + str(v.reason));
    return v;
}

/// A verdict that says why it cannot say more.
inline slo_verdict without_advice(slo_verdict v, verdict outcome, const std::string& reason) {
    v.outcome = outcome;
    v.reason = reason;
    v.advice = text();
    return v;
}

inline slo error_guard() {
    slo s;
    s.what = make_statistic(statistic_kind::value, metric_id::error_rate, 0);
    s.bound = 0.01;
    return s;
}
inline bool states_error_rate(const std::vector<slo>& slos) {
    return std::any_of(slos.begin(), slos.end(), [](const slo& s) {
        return s.what.metric == metric_id::error_rate && !s.is_advisory;
    });
}
/// What errors are held against: what the gate states, or else the guard.
inline slo error_limit(const std::vector<slo>& slos) {
    const auto stated = std::find_if(slos.begin(), slos.end(), [](const slo& s) {
        return s.what.metric == metric_id::error_rate && !s.is_advisory;
    });
    return stated == slos.end() ? error_guard() : *stated;
}

/// The verdict of one SLO. A guard fails where the miss is shown, and else says nothing.
inline slo_verdict judged(const evidence& e, const terms& t, const grounds& g, const slo& s,
                          bool guard = false) {
    if (e.candidate.empty() && !e.stopped.empty())
        return without_advice(undecided(s), verdict::inconclusive, e.stopped);
    slo_verdict v = judge_evidence(e, t, s);
    if (!g.invalid.empty()) return without_advice(v, verdict::invalid, g.invalid);
    if (const std::string why = slo_invalid_reason(e, t, g, s); !why.empty())
        return without_advice(v, verdict::invalid, why);
    const bool of_the_server =
        s.what.metric != metric_id::error_rate && !is_of_start(s.what.metric);
    if (!g.saturated.empty() && of_the_server)
        return without_advice(v, v.outcome == verdict::fail ? verdict::fail : verdict::invalid,
                              g.saturated);
    if (s.factor > 0 && e.has_live_baseline()) {
        const baseline_errors b = baseline_errors_of(e, t, error_limit(t.slos));
        if (b.outcome != verdict::pass) return without_advice(v, b.outcome, b.why);
    }
    if (guard && v.outcome == verdict::inconclusive) {
        v.outcome = verdict::pass;
        v.reason = "not shown to be exceeded";
    }
    if (v.outcome == verdict::inconclusive && !e.stopped.empty())
        return without_advice(v, v.outcome,
                              e.stopped + (v.reason.empty() ? "" : "; " + str(v.reason)));
    if (v.outcome == verdict::inconclusive && v.reason.empty()) {
        v.reason = "too close to call";
        const double would_pass = s.at_most ? v.estimate.high : v.estimate.low;
        if (v.advice.empty() && std::isfinite(would_pass) && would_pass > 0)
            v.advice = limit_to_write(s, would_pass * (s.at_most ? 1.02 : 0.98)) + " would pass";
    }
    return v;
}

/// One verdict per SLO in order, then the guard on errors unless the gate states its own limit.
inline std::vector<slo_verdict> judge_each(const evidence& e, const terms& t, const grounds& g) {
    std::vector<slo_verdict> out;
    for (const slo& s : t.slos) out.push_back(judged(e, t, g, s));
    if (!states_error_rate(t.slos)) out.push_back(judged(e, t, g, error_guard(), true));
    return out;
}

/// The same under Holm (1979): the level is divided by the number of SLOs that are not shown to be
/// missed.
inline std::vector<slo_verdict> judge_stepwise(const evidence& e, const terms& t,
                                               const grounds& g) {
    terms stricter = t;
    auto left = std::count_if(t.slos.begin(), t.slos.end(),
                              [](const slo& s) { return !s.is_advisory; });
    const auto blocking = left;
    for (;;) {
        stricter.rule.fail_level = t.rule.fail_level / static_cast<double>(std::max(1l, left));
        stricter.rule.fail_z = std::max(
            t.rule.fail_z, pocock_constant(t.rule.looks, stricter.rule.fail_level));
        std::vector<slo_verdict> out = judge_each(e, stricter, g);
        long failed = 0;  // the guard is none of them
        for (std::size_t i = 0; i < t.slos.size(); ++i)
            failed += !out[i].what.is_advisory && out[i].outcome == verdict::fail;
        if (blocking - failed >= left) return out;
        left = blocking - failed;
    }
}

/// What a look at the evidence finds. Made once per look; whoever reports reads it and computes
/// nothing.
struct findings {
    grounds on{};
    std::vector<slo_verdict> verdicts{};
};
inline findings assess(const evidence& e, const terms& t) {
    const grounds g = grounds_of(e, t);
    return {g, t.rule.holm ? judge_stepwise(e, t, g) : judge_each(e, t, g)};
}
/// The verdict on one more SLO, as if the gate had stated it too.
inline slo_verdict judged_also(const evidence& e, terms t, const slo& s) {
    t.slos.push_back(s);
    return judged(e, t, grounds_of(e, t), s);
}

inline bool all_decided(const std::vector<slo_verdict>& verdicts) {
    return std::none_of(verdicts.begin(), verdicts.end(),
                        [](const slo_verdict& v) { return v.outcome == verdict::inconclusive; });
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
