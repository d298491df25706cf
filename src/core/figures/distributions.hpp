// distributions: each repeat's quantiles as a line
#pragma once

#include "api/metrics.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/figures/rows.hpp"
#include "core/figures/steps.hpp"

#include <algorithm>  // clamp, max, min
#include <cmath>  // log10, pow, isfinite
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A metric over the repeats of one arm: its row of numbers, and each repeat's quantiles as a line.
struct arm_distribution {
    metric_row row{};
    std::vector<std::vector<curve_point>> lines{};  // value, quantile
    double least = infinity, most = 0;             // of the finite values above zero
    std::size_t values = 0;                        // of the smallest repeat
};
inline constexpr int line_points = 96;
/// How far into the tail a sample of n can tell, as -log10(1 - q).
inline double nines_of(std::size_t n) {
    return std::clamp(std::log10(static_cast<double>(std::max<std::size_t>(n, 1))), 1.0, 5.0);
}
inline arm_distribution distribution_of(metric_id id, const std::vector<repeat_data>& arm) {
    arm_distribution out;
    const statistic_data columns[] = {make_statistic(statistic_kind::mean, id, 0),
                                      make_statistic(statistic_kind::percentile, id, 0.5),
                                      make_statistic(statistic_kind::percentile, id, 0.9),
                                      make_statistic(statistic_kind::percentile, id, 0.99),
                                      make_statistic(statistic_kind::max, id, 0)};
    std::vector<double> of_column[std::size(columns)];
    for (const repeat_data& d : arm) {
        const sorted_values sorted = sorted_values_of(id, d);
        for (std::size_t c = 0; c < std::size(columns); ++c)
            of_column[c].push_back(value_among(columns[c], sorted));
        std::vector<curve_point> line;
        const double deepest = nines_of(sorted.size());
        for (int k = 0; k <= line_points && sorted.size() > 0; ++k) {
            const double share = static_cast<double>(k) / line_points;
            const double q = is_speed(id) ? share : 1 - std::pow(10, -deepest * share);
            const double v = sorted.at(nearest_rank_of(sorted.size(), q));
            line.push_back({v, q});
            if (!std::isfinite(v) || v <= 0) continue;
            out.least = std::min(out.least, v);
            out.most = std::max(out.most, v);
        }
        out.values = out.lines.empty() ? sorted.size() : std::min(out.values, sorted.size());
        out.lines.push_back(std::move(line));
    }
    out.row = {id,
               geometric_mean(of_column[0]),
               geometric_mean(of_column[1]),
               geometric_mean(of_column[2]),
               geometric_mean(of_column[3]),
               geometric_mean(of_column[4])};
    return out;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
