// pairs: repeats that alternate with a baseline's
#pragma once

#include "core/base/statistics.hpp"
#include "core/judging/rule.hpp"

#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// An analysis of the log ratios of pairs. The prior noise only widens the interval: four pairs
/// estimate their own spread well, and a machine whose speed shifts spreads far beyond any prior.
inline interim_analysis analysis_of_pairs(const std::vector<double>& distances, double s0,
                                          const judging_rule& rule) {
    const interim_analysis believed = analysis_of(distances, s0, rule);
    if (distances.size() < 2) return believed;
    const double n = static_cast<double>(distances.size());
    return unless_wider(believed, sample_variance(distances), n - 1, n, s0, rule);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
