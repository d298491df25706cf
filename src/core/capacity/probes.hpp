// the result of single probes
#pragma once

#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/server.hpp"
#include "core/capacity/search.hpp"

#include <algorithm>  // all_of, clamp, max, none_of
#include <cmath>  // isnan, log
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The log ratio of a statistic to its limit, for fractions the difference of logits. It is
/// positive on the side of a miss.
inline double margin_of(const slo& s, const repeat_data& d,
                        timing_bound how = timing_bound::measured) {
    const double value = evaluate(s.what, d, how);
    const double sign = s.at_most ? 1 : -1;
    if (std::isnan(value)) return infinity;
    if (!is_request_fraction(s.what.metric)) return sign * std::log(value / s.bound);
    const double n = static_cast<double>(std::max<std::size_t>(d.records.size(), 1));
    const auto logit = [&](double fraction) {
        const double inside = std::clamp(fraction, 0.5 / n, 1 - 0.5 / n);
        return std::log(inside / (1 - inside));
    };
    return sign * (logit(value) - logit(s.bound));
}
/// The margin of the objective nearest to a miss, or furthest beyond it.
inline double worst_margin(const std::vector<slo>& slos, const repeat_data& d,
                           timing_bound how = timing_bound::measured) {
    double worst = -infinity;
    for (const slo& s : slos)
        if (!s.is_advisory) worst = std::max(worst, margin_of(s, d, how));
    return worst;
}
inline bool is_all_failed(const repeat_data& d) {
    return std::none_of(d.records.begin(), d.records.end(), is_pooled);
}
/// Whether the load exceeded the server, or all requests failed.
inline bool is_over(const repeat_data& d, double arrival_cv2) {
    return is_all_failed(d) ||
           (!std::isnan(arrival_cv2) && oversaturation_of(d, arrival_cv2));
}

/// The error levels of either end: 2.5 % for a load that misses and is shown to hold, and 2.5 % for
/// the reverse.
inline judging_options options_of_an_end() {
    judging_options o;
    o.false_pass = o.false_fail = fraction(0.025);
    return o;
}
/// The rule for a load. It holds if each objective holds, and misses if one misses, including the
/// guard on errors.
inline judging_rule rule_of_a_load(judging_options o, const std::vector<slo>& objectives_held,
                                   int most = last_analysis) {
    double blocking = 1;  // the guard
    for (const slo& s : objectives_held) blocking += !s.is_advisory;
    o.false_fail = fraction(o.false_fail.value / blocking);
    o.holm = false;
    judging_rule r = rule_of(o, first_analysis, std::max(most, last_analysis));
    r.trusts_prior = true;  // a search measures many loads at least twice
    return r;
}

/// The result of all measurements at one load.
inline carried carried_at(const measurements& e, const judging_parameters& t) {
    if (e.candidate.size() < static_cast<std::size_t>(first_analysis)) return carried::open;
    const analysis f = analyse(e, t);
    const bool all_failed = std::all_of(e.candidate.begin(), e.candidate.end(), is_all_failed);
    if (all_failed || f.on.saturated) return carried::misses;
    bool holds = true;
    for (const decision& v : f.verdicts) {
        if (v.what.is_advisory) continue;
        if (v.outcome == verdict::fail) return carried::misses;
        holds = holds && v.outcome == verdict::pass;
    }
    return holds ? carried::holds : carried::open;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
