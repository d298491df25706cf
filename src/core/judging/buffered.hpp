// verdicts that hold although tokens were buffered
#pragma once

#include "api/result.hpp"
#include "core/metric/table.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/numbers.hpp"
#include "core/judging/server.hpp"
#include "core/judging/judging_parameters.hpp"
#include "core/judging/values.hpp"

#include <algorithm>  // max, min
#include <cmath>  // isfinite

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Whether times or speeds also pass at a limit that is closer by the most that coalesced tokens
/// can hide in any repeat. The spread is that of the measured values: tokens that coalesce in one
/// repeat only are not the server's noise.
inline bool passes_by_more_than(const measurements& e, const judging_parameters& t,
                                const judging_parameters& buffered, slo s) {
    if (!is_judged_by_spread(s.what.metric) || is_drift(s.what.metric)) return false;
    const comparison as_is = comparison_of(e, t, s), worst = comparison_of(e, buffered, s);
    double most = 1;
    const std::size_t n =
        as_is.paired ? std::min(e.candidate.size(), e.baseline.size()) : e.candidate.size();
    for (std::size_t i = 0; i < n; ++i) {
        const double a = as_is.of_repeat(i), b = worst.of_repeat(i);
        const double hidden = s.at_most ? b / a : a / b;
        if (!std::isfinite(hidden)) return false;
        most = std::max(most, hidden);
    }
    double& limit = s.factor > 0 ? s.factor : s.bound;
    limit = s.at_most ? limit / most : limit * most;
    return decide_measurements(e, t, s).outcome == verdict::pass;
}

/// Whether a verdict on a mostly unbuffered stream holds: on a shared machine a few answers
/// coalesce. A pass, or an open verdict, must hold if coalesced tokens took all the time before
/// them. A missed time per token holds, as that time only adds to it. Gaps that were merged may
/// have been longer than any measured one.
inline bool stands_though_buffered(const measurements& e, const judging_parameters& t,
                                   const answer_counts& variant, const verdict_numbers& v) {
    const statistic_data& what = v.what.what;
    if (variant.in_a_burst * 2 > variant.paced || variant.read_together * 2 > variant.events)
        return false;
    const bool of_gaps = concerns(what, &metric_facts::is_of_gaps);
    bool listed = true;
    for_each_repeat(e, [&](const repeat_data& d) { listed = listed && !d.gaps_counted; });
    const bool of_rate = concerns_a_metric(what, [](metric_id m) { return is_throughput(m); });
    if (of_rate || (of_gaps && !listed)) return false;
    if (v.outcome == verdict::fail && of_gaps) return false;
    judging_parameters other = t;
    other.read =
        v.outcome == verdict::fail ? timing_bound::baseline_buffered : timing_bound::buffered;
    return decide_measurements(e, other, v.what).outcome == v.outcome ||
           (v.outcome == verdict::pass && passes_by_more_than(e, t, other, v.what));
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
