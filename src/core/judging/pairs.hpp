// pairs: repeats in turns with those of a baseline
#pragma once

#include "core/base/statistics.hpp"
#include "core/judging/rule.hpp"

#include <cmath>  // sqrt
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A look at the log ratios of pairs. What is believed of a machine's noise may widen what they
/// leave open and never narrows it: four pairs know their own spread well enough to be asked, and a
/// machine whose level shifts within them spreads them far beyond any belief.
inline look look_at_pairs(const std::vector<double>& distances, double s0,
                          const judging_rule& rule) {
    const look believed = look_at(distances, s0, rule);
    if (distances.size() < 2) return believed;
    const double n = static_cast<double>(distances.size());
    look measured;
    measured.spread = spread_of::measured;
    measured.mean = believed.mean;
    measured.prior_sd = s0;
    measured.df = n - 1;
    measured.sd = std::sqrt(sample_variance(distances));
    measured.se = measured.sd / std::sqrt(n);
    decide(measured, rule);
    return measured.pass_t * measured.se > believed.pass_t * believed.se ? measured : believed;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
