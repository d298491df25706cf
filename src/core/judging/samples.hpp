// how many requests a verdict rests on at least
// A plan is held against it before its load, and what came in once more: a run that is bounded by
// time measures as many requests as the server answers in it.
#pragma once

#include "api/metrics.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/drift.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // count_if, max, min
#include <cmath>  // log
#include <cstddef>  // size_t

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The part of all requests that lies beyond a percentile.
inline double tail_of(const statistic_data& w) { return is_speed(w.metric) ? w.q : 1 - w.q; }

/// Values of a repeat without which its mean, maximum or throughput is hardly more than one
/// request's: those differ by 10 % and more from run to run, and the rule believes in 4 %.
inline constexpr long long least_values = 10;

/// Values in each repeat of replayed traffic without which a statistic of it says nothing: three
/// beyond a percentile. 0: there is no such number.
inline long long least_replayed(const statistic_data& w) {
    if (is_request_fraction(w.metric) || is_of_start(w.metric) || is_of_server(w.metric) ||
        is_of_recovery(w.metric))
        return 0;
    if (is_ratio(w.metric))
        return std::max(least_replayed(w.parts[0]), least_replayed(w.parts[1]));
    if (is_drift(w.metric)) return least_of_drift(w);
    if (w.kind != statistic_kind::percentile) return least_values;
    return static_cast<long long>(rounded_up(3 / tail_of(w)));
}
/// Requests in the first stage of fresh traffic without which no verdict could be a pass: at 95 %,
/// and at the last analysis at its own level.
inline long long least_fresh(const statistic_data& w, const judging_rule& rule) {
    if (w.kind == statistic_kind::mean) return 40;
    if (w.kind != statistic_kind::percentile) return least_values;
    const double all_stages = rule.most == last_stage ? 4 : rule.most;
    const double last_level = 1 - normal_cdf(rule.pass_z);
    return static_cast<long long>(
        rounded_up(std::min(std::log(0.05), std::log(last_level) / all_stages) /
                   std::log(1 - tail_of(w))));
}

/// Values that a statistic of a repeat is of. Failed requests are among those of a percentile.
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
    if (is_of_server(w.metric)) return 0;  // no request is behind it
    if (is_drift(w.metric)) return static_cast<std::size_t>(selected_requests(w, d));
    const metric_sample s = sample_of(w, d);
    const std::size_t values =
        facts_of(w.metric).is_of_gaps ? pooled_gap_count(d, w.which) : s.values.size();
    return values + (of_completed ? 0 : s.failed);
}

/// Why a sample does not support an objective, nothing where it does. Nobody but the plan is at
/// fault.
inline cause sample_fault(const evidence& e, const judging_rule& rule, const slo& s) {
    const statistic_data& w = s.what;
    const bool is_fresh =
        rule.traffic == fresh && !is_request_fraction(w.metric) && !is_of_start(w.metric);
    const auto needed =
        static_cast<std::size_t>(is_fresh ? least_fresh(w, rule) : least_replayed(w));
    const bool is_tail =
        w.kind == statistic_kind::percentile && !is_fresh && !is_drift(w.metric);
    for (const auto* arm : arms_of(e, s))
        for (std::size_t i = 0; i < arm->size(); ++i) {
            const std::size_t n = values_behind(w, (*arm)[i]);
            if (n >= needed) continue;
            const char* const of = is_of_sessions(w.metric)          ? "session"
                                   : facts_of(w.metric).is_of_gaps ? "gap"
                                                                   : "request";
            return {because::small_sample,
                    {as_number(i + 1), as_number(arm == &e.baseline), as_number(n),
                     as_number(needed), as_number(is_tail)},
                    whose::plan, of};
        }
    return {};
}

/// Whether a rate counts an answer as it ends, and nothing of it before.
inline bool is_counted_at_end(metric_id m, const record& r) {
    return m == metric_id::request_throughput || m == metric_id::input_throughput || r.events < 2;
}
/// Why a throughput that is under its limit may be above it, nothing where it is not: of answers in
/// one piece the steady window counts none that is under way at its end, and where there was no
/// warm-up, it began with none that had been.
inline cause window_fault(const evidence& e, const verdict_numbers& v) {
    const slo& s = v.what;
    if (v.outcome != verdict::fail || !is_throughput(s.what.metric) || s.factor > 0) return {};
    double ended = 0, begun = 0, left = 0;
    for (const repeat_data& d : e.candidate)
        for (const record& r : d.records) {
            if (r.status != request_status::ok || !is_counted_at_end(s.what.metric, r)) continue;
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
}  // inline namespace v0
}  // namespace llmbench
