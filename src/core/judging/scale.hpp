// distances from a limit
// Times, speeds and rates differ from run to run by a share of themselves: they are held against
// their limit on the logarithm. What a server tells of itself may be zero, or no more than a few
// whole requests: that is held against its limit in parts of the limit.
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/metric/table.hpp"

#include <algorithm>  // max
#include <cmath>  // exp, expm1, fabs, log, log1p

namespace llmbench {
inline namespace v0 {
namespace detail {

inline bool is_on_the_log(const slo& s) {
    const metric_facts& f = facts_of(s.what.metric);
    return s.factor > 0 || f.of != metric_of::server ||
           (f.grain == 0 && f.id != metric_id::server_metric);
}
/// The limit as values are held against it: half a request beyond one on whole requests, so that
/// what is equal to it meets it.
inline double line_of(const slo& s, double limit) {
    if (!facts_of(s.what.metric).is_whole) return limit;
    return limit + (s.at_most ? 0.5 : -0.5);
}
inline double step_of(double line) { return line == 0 ? 1 : std::fabs(line); }

/// Negative where a value keeps the limit.
inline double distance_of(const slo& s, double value, double limit) {
    const double sign = s.at_most ? 1 : -1;
    if (is_on_the_log(s)) return sign * (std::log(std::max(value, 1e-12)) - std::log(limit));
    const double line = line_of(s, limit);
    return sign * (value - line) / step_of(line);
}
/// The value at a distance.
inline double at_distance(const slo& s, double distance, double limit) {
    const double sign = s.at_most ? 1 : -1;
    if (is_on_the_log(s)) return limit * std::exp(sign * distance);
    const double line = line_of(s, limit), value = line + sign * distance * step_of(line);
    return s.what.metric == metric_id::server_metric ? value : std::max(value, 0.0);
}
/// A distance as a share of the limit.
inline double share_of_limit(const slo& s, double distance) {
    return is_on_the_log(s) ? std::expm1(distance) : distance;
}

/// Of two values that are compared with each other. What may be near zero has a grain, below which
/// its ratios mean nothing: it is added to both (a started logarithm; Tukey, Exploratory Data
/// Analysis, 1977).
inline double started(metric_id m, double value) { return value + facts_of(m).grain; }

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
