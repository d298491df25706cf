// how a run changes from its first third to its last
// Each third of the steady window has slices of equal length. The spread of the slices within a
// third shows how well it is known, whatever its traffic.
#pragma once

#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/time_interval.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/rates.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // clamp, max
#include <cstddef>  // size_t

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr std::size_t least_slices = 5, max_slices = 20;  // of a third

/// The fewest requests of a slice: one beyond a percentile.
inline double least_of_slice(const statistic_data& drift) {
    if (drift.kind != statistic_kind::percentile) return 10;
    const double tail = is_speed(drift.of) ? drift.q : 1 - drift.q;
    return std::max(10.0, rounded_up(1 / tail));
}
/// The fewest measured requests of a run with a drift.
inline long long least_of_drift(const statistic_data& drift) {
    return static_cast<long long>(3 * least_slices * least_of_slice(drift));
}
inline std::size_t slices_of_third(const statistic_data& drift, double measured_requests) {
    const double fit = measured_requests / (3 * least_of_slice(drift));
    return std::clamp(static_cast<std::size_t>(fit), least_slices, max_slices);
}

/// The statistic over the requests planned in one of the equal parts of the steady window.
inline double value_of_part(const statistic_data& drift, const repeat_data& d, std::size_t part,
                            std::size_t parts, timing_bound how = timing_bound::measured) {
    const auto at = [&](std::size_t i) {
        const double fraction = static_cast<double>(i) / static_cast<double>(parts);
        const double into_ns = fraction * d.window.length_ns();
        return d.window.from_ns() + static_cast<long long>(into_ns) + (i == parts);
    };
    const auto when = time_interval::between(at(part), at(part + 1));
    if (is_throughput(drift.of)) return rate_in(drift.of, d, when, how, drift.which);
    const statistic_data what = drifting(drift);
    return statistic_among(what, request_values_of(what, d, how, &when).sorted);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
