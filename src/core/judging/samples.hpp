// the least number of requests for a verdict
// Checked for a plan before its load, and again afterwards: the requests of a run with a time limit
// depend on the server.
#pragma once

#include "api/metrics.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/pooled.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // count_if, max, min
#include <cmath>  // log
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
/// The values of a repeat behind a statistic. A percentile includes failed requests.
inline std::size_t values_behind(const statistic_data& w, const repeat_data& d) {
    if (is_ratio(w.metric))
        return std::min(values_behind(w.parts[0], d), values_behind(w.parts[1], d));
    const bool of_completed = w.kind == statistic_kind::mean || is_throughput(w.metric);
    if (is_throughput(w.metric) || is_of_prompts(w.metric)) {
        const selects selected(w, d);
        return static_cast<std::size_t>(
            std::count_if(d.records.begin(), d.records.end(),
                          [&](const record& r) { return selected.completed(r); }));
    }
    if (is_of_server(w.metric)) return 0;  // no requests
    if (is_drift(w.metric)) return static_cast<std::size_t>(selected_requests(w, d));
    const metric_values v = values_in_repeat(w, d);
    return (of_completed ? 0 : v.failed) +
           (pools_gaps(w.metric) ? pooled_gap_count(d, w.which) : v.all.size() - v.failed);
}

/// Whether more requests would not help because most of them fail.
inline bool mostly_fails(const repeat_data& d, const statistic_data& what) {
    const selects selected(what, d);
    std::size_t all = 0, failed = 0;
    for (const record& r : d.records) {
        all += selected(r);
        failed += selected(r) && has_failed(r);
    }
    return failed * 2 > all;
}
/// Why there are too few values for an objective. The plan is at fault.
inline cause sample_fault(const measurements& e, const slo& s) {
    const statistic_data& w = s.statistic;
    const auto needed = static_cast<std::size_t>(least_values_of(w));
    const bool is_tail = w.kind == statistic_kind::percentile && !is_drift(w.metric);
    for (const auto* variant : variants_of(e, s))
        for (std::size_t i = 0; i < variant->size(); ++i) {
            const std::size_t n = values_behind(w, (*variant)[i]);
            if (n >= needed) continue;
            const char* const of = is_of_sessions(w.metric)          ? "session"
                                   : pools_gaps(w.metric) ? "gap"
                                                                   : "request";
            return {
                because::small_sample,
                {as_number(i + 1), as_number(variant == &e.baseline), as_number(n),
                 as_number(needed), as_number(is_tail), as_number(mostly_fails((*variant)[i], w))},
                whose::plan,
                of};
        }
    return {};
}

/// Whether a rate counts an answer only at its end.
inline bool is_counted_at_end(metric_id m, const record& r) {
    return m == metric_id::request_throughput || m == metric_id::input_throughput || r.events < 2;
}
/// Why a throughput below its limit may be above it: the steady window omits unfinished answers in
/// one piece at its end, and without a warm-up has none at its start.
inline cause window_fault(const measurements& e, const verdict_numbers& v) {
    const slo& s = v.objective;
    if (v.outcome != verdict::fail || !is_throughput(s.statistic.metric) || s.factor > 0) return {};
    double ended = 0, begun = 0, left = 0;
    for (const repeat_data& d : e.candidate)
        for (const record& r : d.records) {
            if (r.status != request_status::ok || !is_counted_at_end(s.statistic.metric, r))
                continue;
            const bool is_late = r.end_ns >= d.window.to_ns();
            ended += d.window.holds(r.end_ns);
            begun += d.window.holds(r.end_ns) && r.sent_ns < d.window.from_ns();
            left += is_late && d.window.holds(r.sent_ns);
        }
    const double more = left - begun;
    const double most = ended > 0 ? 1 + more / ended : infinity;
    const bool stays = s.at_most ? v.measured > s.bound * most : v.measured * most < s.bound;
    if (!(more > 0) || stays) return {};
    const double repeats = as_number(e.candidate.size());
    return {because::window_ends, {ended / repeats, more / repeats}, whose::plan};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
