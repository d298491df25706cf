// the least number of requests for a verdict
// Checked for a plan before its load, and again afterwards: the requests of a run with a time limit
// depend on the server.
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/drift.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/decision.hpp"

#include <algorithm>  // max
#include <cstddef>  // size_t

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The fraction of requests beyond a percentile.
inline double tail_of(const statistic_data& w) { return is_speed(w.metric) ? w.q : 1 - w.q; }

/// The fewest values of a repeat for a mean, maximum or throughput. With fewer, single requests
/// move it by 10 % and more, against a prior noise of 4 %.
inline constexpr long long least_values = 10;

/// The fewest values in each repeat for a statistic: three beyond a percentile. 0: no limit.
inline long long least_values_of(const statistic_data& w) {
    if (is_request_fraction(w.metric) || is_of_start(w.metric) || is_of_server(w.metric) ||
        is_of_recovery(w.metric))
        return 0;
    if (is_ratio(w.metric))
        return std::max(least_values_of(w.parts[0]), least_values_of(w.parts[1]));
    if (is_drift(w.metric)) return least_of_drift(w);
    if (w.kind != statistic_kind::percentile) return least_values;
    return static_cast<long long>(rounded_up(3 / tail_of(w)));
}
/// Whether too few values leave nothing beyond it.
inline bool is_tail(const statistic_data& w) {
    return w.kind == statistic_kind::percentile && !is_drift(w.metric);
}
inline const char* counted_by(const statistic_data& w) {
    return is_of_sessions(w.metric) ? "session" : pools_gaps(w.metric) ? "gap" : "request";
}
/// The values of a repeat that are fewer than an objective needs. The plan is at fault.
struct few_values {
    std::size_t repeat = 0;
    bool is_of_baseline = false;
    double measured = 0, needed = 0;
    bool is_tail = false, mostly_failed = false;
    cause of(const char* unit) const {
        return cause_with<because::small_sample>({{"repeat", repeat + 1},
                                                  {"is_baseline", is_of_baseline},
                                                  {"measured", measured},
                                                  {"needed", needed},
                                                  {"is_tail", is_tail},
                                                  {"mostly_failed", mostly_failed}},
                                                 whose::plan, unit);
    }
};
inline cause sample_fault(const objective_columns& c, const verdict_numbers& v) {
    if (v.outcome == verdict::invalid) return {};
    const statistic_data& w = v.objective.statistic;
    const auto needed = static_cast<std::size_t>(least_values_of(w));
    for (const variant_columns* variant : {&c.mine, &c.other})
        for (std::size_t i = 0; i < variant->each.size(); ++i) {
            const column& d = *variant->each[i];
            if (d.behind >= needed) continue;
            return few_values{i, variant == &c.other, as_number(d.behind), as_number(needed),
                              is_tail(w), d.failed * 2 > d.requests}
                .of(counted_by(w));
        }
    return {};
}

/// Why a throughput below its limit may be above it: the steady window omits unfinished answers in
/// one piece at its end, and without a warm-up has none at its start.
inline cause window_fault(const objective_columns& c, const verdict_numbers& v) {
    const slo& s = v.objective;
    const bool is_of_window = is_throughput(s.statistic.metric) && is_absolute(s);
    if (v.outcome != verdict::fail || !is_of_window) return {};
    double ended = 0, more = 0;
    for (const shared_column& d : c.mine.each) {
        ended += d->ends.ended;
        more += d->ends.ended_after - d->ends.begun_before;
    }
    const double most = ended > 0 ? 1 + more / ended : infinity;
    const bool stays = s.at_most ? v.measured > s.bound * most : v.measured * most < s.bound;
    if (!(more > 0) || stays) return {};
    const double repeats = as_number(c.repeats());
    return cause_with<because::window_ends>(
        {{"ended", ended / repeats}, {"more", more / repeats}}, whose::plan);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
