// noise of repeats by a history, for limits without a baseline
#pragma once

#include "core/base/statistics.hpp"
#include "core/judging/by_history.hpp"
#include "extensions/history/core/against.hpp"
#include "extensions/history/core/learned.hpp"

#include <algorithm>  // max
#include <cmath>  // sqrt

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Degrees of freedom within runs that make their noise a prior.
inline constexpr double noise_known_from = 20;
// The floor of the prior: without it, a day with four times the noise of a quiet history would
// exceed the error levels.
inline constexpr double least_believed_sd = 0.04;

/// The prior standard deviation between repeats of a statistic's logarithm: a bound that is high
/// enough in four of five cases; 0: the history is too short.
inline double believed_sd(const repeats_spread& r) {
    if (r.df < noise_known_from) return 0;
    return std::max(least_believed_sd, std::sqrt(r.variance * r.df / chi_square_20(r.df)));
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
