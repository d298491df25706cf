// what the numbers alone say of an objective
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/pooled.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/drift.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/terms.hpp"
#include "core/judging/values.hpp"
#include "core/judging/words.hpp"

#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What the repeats alone say of one SLO: at the first look that decides, or at the last one.
inline slo_verdict judge_repeats(const evidence& e, const terms& t, const slo& s, bool to_the_end,
                                 bool is_guard = false) {
    if (is_drift(s.what.metric)) return judge_drift(e, t, s, to_the_end);
    const bool is_fresh = t.rule.traffic == fresh && !is_of_start(s.what.metric);
    const bool counts = is_share(s.what.metric) ||
                        (is_fresh && s.what.kind == statistic_kind::percentile);
    const bool mean = is_fresh && s.what.kind == statistic_kind::mean;
    slo_verdict v = counts ? judge_counts(e, t, s, to_the_end, is_guard)
                    : mean ? judge_fresh_mean(e, t, s, to_the_end)
                           : judge_values(e, t, s, to_the_end);
    if (counts || mean) v.measured = pooled_value(s.what, e.candidate, t.read);
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
    const bool counts = is_counted(late);
    return "all repeats together: " + verdict_value_text(late, late.measured) + ", " +
           (is_met ? "within" : is_over ? "over" : "under") + " the limit; the " +
           (counts ? basis_name(early) : "typical " + str(late.unit)) + ": " +
           verdict_value_text(late, (counts ? early : late).estimate.value);
}

/// What the numbers alone say of one SLO. A verdict and the data never contradict each other: where
/// they do, as when one repeat has nearly all that is slow, or those after a decision are unlike
/// those before it, all of them are looked at, and what is contradictory still is inconclusive.
inline slo_verdict judge_evidence(const evidence& e, const terms& t, const slo& s,
                                  bool to_the_end = false, bool is_guard = false) {
    const slo_verdict early = judge_repeats(e, t, s, to_the_end, is_guard);
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

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
