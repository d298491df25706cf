// quantiles as lines, of each repeat and of all repeats
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/figures/rows.hpp"
#include "core/figures/timelines.hpp"

#include <algorithm>  // clamp, max, min
#include <cmath>  // log10, pow, isfinite
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The distribution of a metric over a variant: its table row and its quantiles as lines.
struct variant_distribution {
    metric_row row{};
    std::vector<curve_point> pooled{};             // value, quantile
    std::vector<std::vector<curve_point>> lines{};
    double least = infinity, most = 0;             // of the finite values above zero
    std::size_t values = 0;                        // of all repeats
};
inline constexpr int line_points = 96;
/// Returns how far into the tail n values reach, as -log10(1 - q).
inline double nines_of(std::size_t n) {
    return std::clamp(std::log10(static_cast<double>(std::max<std::size_t>(n, 1))), 1.0, 5.0);
}
inline std::vector<curve_point> quantile_line(metric_id id, const sorted_values& sorted) {
    std::vector<curve_point> line;
    const double deepest = nines_of(sorted.size());
    for (int k = 0; k <= line_points && sorted.size() > 0; ++k) {
        const double fraction = static_cast<double>(k) / line_points;
        const double q = is_speed(id) ? fraction : 1 - std::pow(10, -deepest * fraction);
        line.push_back({sorted.at(nearest_rank_of(sorted.size(), q)), q});
    }
    // The largest value ends the last step.
    if (!line.empty() && !is_speed(id))
        line.push_back({sorted.at(sorted.size() - 1), line.back().y});
    return line;
}
inline variant_distribution distribution_of(metric_id id, const repeat_list& variant) {
    variant_distribution out;
    sorted_values all;
    for (const repeat_data& d : variant) {
        const sorted_values sorted =
            sorted_values_of(make_statistic(statistic_kind::mean, id, 0), d);
        out.lines.push_back(quantile_line(id, sorted));
        for (const curve_point& p : out.lines.back()) {
            if (!std::isfinite(p.x) || p.x <= 0) continue;
            out.least = std::min(out.least, p.x);
            out.most = std::max(out.most, p.x);
        }
        all.add(sorted);
    }
    out.values = all.size();
    out.pooled = quantile_line(id, all);
    out.row = row_of(id, all);
    return out;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
