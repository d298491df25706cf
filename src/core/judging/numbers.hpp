// what the numbers alone say of an objective
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
#include "core/judging/evidence.hpp"
#include "core/judging/nights.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/terms.hpp"
#include "core/judging/values.hpp"

#include <cmath>  // isnan
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What the repeats alone decide of one SLO: at the first analysis that decides, or at the last
/// one.
inline decision judge_repeats(const evidence& e, const terms& t, const slo& s, bool to_the_end,
                              bool is_guard = false) {
    const bool is_fresh = t.rule.traffic == fresh && !is_of_start(s.what.metric);
    const bool counts = (is_request_fraction(s.what.metric) && s.factor <= 0) ||
                        (is_fresh && s.what.kind == statistic_kind::percentile);
    const bool mean = is_fresh && s.what.kind == statistic_kind::mean;
    const bool by_nights = s.factor > 0 && t.history.is_there();
    decision d = is_drift(s.what.metric) ? judge_drift(e, t, s, to_the_end)
                 : counts                ? judge_counts(e, t, s, to_the_end, is_guard)
                 : mean                  ? judge_fresh_mean(e, t, s, to_the_end)
                 : by_nights             ? judge_by_nights(e, t, s, to_the_end)
                                         : judge_values(e, t, s, to_the_end);
    if (counts || mean) d.measured = pooled_value(s.what, e.candidate, t.read);
    d.counted_in = counting_unit(t.rule, needs_baseline(s) && e.has_live_baseline());
    d.rule = t.rule;
    if (const auto at = t.noise.find(noise_name(s)); at != t.noise.end()) {
        d.calibrated_sd = at->second;
        d.calibrated_in = t.noise_file;
    }
    return d;
}

/// A decision with the reader's numbers: the estimate, what would have been shown, a better limit.
inline decision estimated(decision d, const evidence& e) {
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
    case verdict_method::batch_means:
        estimate_analysis(d, batches_of_fresh, batches_of_fresh, d.stored);
        break;
    case verdict_method::predictive_t: estimate_by_nights(d); break;
    case verdict_method::slices:
        estimate_analysis(d, d.rule.most, d.rule.most);
        d.advice = {};  // on limits, which would be of repeats
        break;
    default: break;
    }
    return d;
}

/// Whether the data as a whole lie on the other side of the limit than a verdict says.
inline bool is_contradicted(const verdict_numbers& v) {
    const bool is_met =
        v.what.at_most ? v.measured <= v.limit : v.measured >= v.limit;  // not by what is NaN
    return (v.outcome == verdict::pass && !is_met) || (v.outcome == verdict::fail && is_met);
}
/// What all repeats together show, and what an early decision rests on or the typical repeat shows;
/// of how many repeats the first is, 0 where it is the second, NaN where it is all the same.
inline cause contradiction(const decision& early, const decision& late) {
    const double typical = late.estimate.value, first = early.estimate.value;
    if (!is_counted(late)) return {because::all_together, {late.measured, typical, 0}};
    const bool is_the_same = std::isnan(first) || (is_counted(early) && first == early.measured);
    const double repeats = is_the_same ? not_a_number : is_counted(early) ? early.repeats : 0;
    return {because::all_together, {late.measured, first, repeats}};
}

/// What the numbers alone decide of one SLO. A verdict and the data never contradict each other:
/// where they do, as when one repeat has nearly all that is slow, or those after a decision are
/// unlike those before it, all of them are looked at, and what is contradictory still is
/// inconclusive.
inline decision decide_evidence(const evidence& e, const terms& t, const slo& s,
                                bool to_the_end = false, bool is_guard = false) {
    decision early = judge_repeats(e, t, s, to_the_end, is_guard);
    if (to_the_end || !is_contradicted(early)) return early;
    decision d = judge_repeats(e, t, s, true);
    if (is_contradicted(d)) d.outcome = verdict::inconclusive;
    if (d.outcome == verdict::inconclusive)
        d.why.insert(d.why.begin(), contradiction(estimated(std::move(early), e), estimated(d, e)));
    return d;
}
/// The same with the reader's numbers.
inline decision judge_evidence(const evidence& e, const terms& t, const slo& s,
                               bool to_the_end = false, bool is_guard = false) {
    return estimated(decide_evidence(e, t, s, to_the_end, is_guard), e);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
