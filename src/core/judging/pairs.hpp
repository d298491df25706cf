// pairs: repeats in turns with those of a baseline
#pragma once

#include "core/base/statistics.hpp"
#include "core/judging/rule.hpp"

#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// An analysis of the log ratios of pairs. What is believed of a machine's noise may widen what
/// they leave open and never narrows it: four pairs know their own spread well enough to be asked,
/// and a machine whose level shifts within them spreads them far beyond any belief.
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
