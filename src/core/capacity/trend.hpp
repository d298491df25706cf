// whether a server changed during its capacity search
#pragma once

#include "core/base/statistics.hpp"
#include "core/judging/rule.hpp"
#include "core/capacity/search.hpp"

#include <algorithm>  // max, min
#include <cmath>  // fabs, sqrt
#include <map>
#include <optional>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr double false_trend = 0.01;  // of searches on a constant server
// A noisy machine's speed varies by this much between probes, which few probes cannot tell from a
// trend.
inline constexpr double noisy_wander = 0.03;

/// Growth of the margins at equal loads from the first to the last probe, if it is shown. Then no
/// load in between was carried before and after, so there is no single capacity.
inline std::optional<double> trend_of(const std::vector<probe>& probes, double slope) {
    struct seen_at { double n = 0, when = 0, margin = 0; };
    std::map<double, seen_at> loads;
    const auto each = [&](auto&& f) {
        for (std::size_t i = 0; i < probes.size(); ++i)
            if (has_size(probes[i]))
                f(loads[probes[i].load], static_cast<double>(i), probes[i].margin);
    };
    each([](seen_at& at, double when, double margin) {
        ++at.n;
        at.when += when;
        at.margin += margin;
    });
    double when2 = 0, both = 0, margin2 = 0, df = -1;
    each([&](const seen_at& at, double when, double margin) {
        const double x = when - at.when / at.n, y = margin - at.margin / at.n;
        when2 += x * x;
        both += x * y;
        margin2 += y * y;
        df += 1 - 1 / at.n;
    });
    if (df < 0.5) return std::nullopt;
    const double by = both / when2, moved = noisy_wander * std::min(slope, steepest);
    const double believed = wander_df * (prior_sd * prior_sd + moved * moved);
    const double left = std::max(margin2 - by * both, 0.0), all_df = wander_df + df;
    const double se = std::sqrt((believed + left) / all_df / when2);
    if (std::fabs(by) < student_t_quantile(1 - false_trend / 2, all_df) * se) return std::nullopt;
    return by * static_cast<double>(probes.size() - 1);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
