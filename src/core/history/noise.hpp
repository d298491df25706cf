// what a history says of the noise of repeats, for limits that are no baseline's
#pragma once

#include "core/base/statistics.hpp"
#include "core/history/against.hpp"
#include "core/history/learned.hpp"

#include <algorithm>  // max
#include <cmath>  // sqrt

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Degrees of freedom within nights from which on their noise is believed.
inline constexpr double noise_known_from = 20;
// The floor under what is believed: without it, a day of four times the noise of a quiet history
// would exceed the error levels.
inline constexpr double least_believed_sd = 0.04;
inline constexpr double history_prior_df = 4;

/// The standard deviation of the logarithm of a statistic between repeats that a history lets one
/// believe, at four chances in five no less than it is; 0 where it is too short to say.
inline double believed_sd(const repeats_spread& r) {
    if (r.df < noise_known_from) return 0;
    return std::max(least_believed_sd, std::sqrt(r.variance * r.df / chi_square_20(r.df)));
}
/// The noise of repeats as a history knows it; `sd` is 0 where it does not.
struct history_noise {
    double sd = 0, df = 0;
};
/// Whether today's repeats spread by more than that allows: then nothing is believed of them.
inline bool is_beyond_belief(double own_variance, std::size_t repeats, double believed,
                             double df) {
    return own_variance >
           believed * believed * f_quantile_80(static_cast<double>(repeats) - 1, df);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
