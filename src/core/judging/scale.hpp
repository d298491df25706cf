// distances from a limit
// Values vary in proportion to their size, so they are compared on a log scale. A metric that can
// be zero is compared on log(x + offset) (Tukey's started logarithm, 1977).
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/metric/table.hpp"

#include <algorithm>  // clamp, max
#include <cmath>  // exp, expm1, fabs, log, log1p

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A series that an objective names may be negative: its distance is relative to the limit.
inline bool is_on_the_log(const slo& s) {
    return s.factor > 0 || s.what.metric != metric_id::server_metric;
}
inline double with_offset(metric_id m, double value) { return value + facts_of(m).offset; }
/// Returns the limit for comparisons. For integers it is half a unit looser, so that equality
/// passes.
inline double line_of(const slo& s, double limit) {
    if (!facts_of(s.what.metric).is_whole) return limit;
    return std::max(limit + (s.at_most ? 0.5 : -0.5), 0.0);
}
// Stand for zero and infinity.
inline constexpr double least_value = 1e-12, max_value = 1e300;
inline double step_of(double line) { return line == 0 ? 1 : std::fabs(line); }

/// Negative where the value meets the limit.
inline double distance_of(const slo& s, double value, double limit) {
    const double sign = s.at_most ? 1 : -1;
    const auto log_of = [](double v) { return std::log(std::clamp(v, least_value, max_value)); };
    if (s.factor > 0) return sign * (log_of(value) - std::log(limit));
    const double line = line_of(s, limit);
    // Distances are clamped so that their squares are finite.
    if (!is_on_the_log(s)) return std::clamp(sign * (value - line) / step_of(line), -1e6, 1e6);
    const metric_id m = s.what.metric;
    return sign * (log_of(with_offset(m, value)) - std::log(with_offset(m, line)));
}
inline double at_distance(const slo& s, double distance, double limit) {
    const double sign = s.at_most ? 1 : -1;
    if (s.factor > 0) return limit * std::exp(sign * distance);
    const double line = line_of(s, limit);
    if (!is_on_the_log(s)) return line + sign * distance * step_of(line);
    const double offset = facts_of(s.what.metric).offset;
    const double value = (line + offset) * std::exp(sign * distance) - offset;
    return value < 10 * least_value ? 0 : value;
}
/// The distance as a fraction of the limit.
inline double fraction_of_limit(const slo& s, double distance) {
    return is_on_the_log(s) ? std::expm1(distance) : distance;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
