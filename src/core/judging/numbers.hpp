// decisions by the numbers alone
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/pooled.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/drift.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/judging_parameters.hpp"
#include "core/judging/values.hpp"

#include <cmath>  // isnan
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Decides one SLO by its repeats, at the first analysis that decides or at the last one.
inline decision judge_repeats(const measurements& e, const judging_parameters& t, const slo& s,
                              bool to_the_end, bool is_guard = false) {
    const bool counts = is_request_fraction(s.what.metric) && s.factor <= 0;
    const bool by_past = s.factor > 0 && t.past;
    decision d = is_drift(s.what.metric) ? judge_drift(e, t, s, to_the_end)
                 : counts                ? judge_counts(e, t, s, to_the_end, is_guard)
                 : by_past               ? t.past->judged(e, t, s, to_the_end)
                                         : judge_values(e, t, s, to_the_end);
    if (counts) d.measured = pooled_value(s.what, e.candidate, t.read);
    d.counted_in = counting_unit(needs_baseline(s) && e.has_live_baseline());
    d.rule = t.rule;
    if (const auto at = t.noise.find(noise_name(s)); at != t.noise.end()) {
        d.calibrated_sd = at->second;
        d.calibrated_in = t.noise_file;
    }
    return d;
}

/// Adds the estimate, the smallest miss that could be shown and a better limit.
inline decision estimated(decision d, const measurements& e) {
    const double worst = d.what.at_most ? infinity : 0;
    switch (d.outcome == verdict::invalid ? verdict_method::none : d.decided_by) {
    case verdict_method::counts: estimate_counts(d, e); break;
    case verdict_method::counted_misses:
        if (d.counted) estimate_counts(d, e);
        if (std::isnan(d.estimate.value)) d.estimate = {worst, worst, worst};
        break;
    case verdict_method::moderated_t:
    case verdict_method::noisy_t:
    case verdict_method::t:
        estimate_analysis(d, d.rule.most, static_cast<double>(d.distances.size()), d.stored);
        break;
    case verdict_method::predictive_t: d.past->estimate(d); break;
    case verdict_method::slices:
        estimate_analysis(d, d.rule.most, d.rule.most);
        d.advice = advice_on_drift(d);
        break;
    default: break;
    }
    return d;
}

/// Whether the pooled data are on the other side of the limit than the verdict.
inline bool is_contradicted(const verdict_numbers& v) {
    const bool is_met =
        v.what.at_most ? v.measured <= v.limit : v.measured >= v.limit;  // false for NaN
    return (v.outcome == verdict::pass && !is_met) || (v.outcome == verdict::fail && is_met);
}
/// Both sides of a contradiction: all repeats, and an early decision or the typical repeat. The
/// third number: repeats of the early decision, 0 for the typical repeat, NaN if equal.
inline cause contradiction(const decision& early, const decision& late) {
    const double typical = late.estimate.value, first = early.estimate.value;
    if (!is_counted(late)) return {because::all_together, {late.measured, typical, 0}};
    const bool is_the_same = std::isnan(first) || (is_counted(early) && first == early.measured);
    const double repeats = is_the_same ? not_a_number : is_counted(early) ? early.repeats : 0;
    return {because::all_together, {late.measured, first, repeats}};
}

/// Decides one SLO by the numbers alone. A verdict never contradicts the pooled data: where it
/// does, for example because one repeat has nearly all slow requests, all repeats are analysed, and
/// a remaining contradiction is inconclusive.
inline decision decide_measurements(const measurements& e, const judging_parameters& t,
                                    const slo& s, bool to_the_end = false, bool is_guard = false) {
    decision early = judge_repeats(e, t, s, to_the_end, is_guard);
    if (to_the_end || !is_contradicted(early)) return early;
    decision d = judge_repeats(e, t, s, true);
    if (is_contradicted(d)) d.outcome = verdict::inconclusive;
    if (d.outcome == verdict::inconclusive)
        d.why.insert(d.why.begin(), contradiction(estimated(std::move(early), e), estimated(d, e)));
    return d;
}
/// The same with the estimate.
inline decision judge_measurements(const measurements& e, const judging_parameters& t, const slo& s,
                               bool to_the_end = false, bool is_guard = false) {
    return estimated(decide_measurements(e, t, s, to_the_end, is_guard), e);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
