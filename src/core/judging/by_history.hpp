// repeats whose noise is known from earlier runs
#pragma once

#include "core/base/statistics.hpp"
#include "core/judging/past_judge.hpp"
#include "core/judging/rule.hpp"

#include <cmath>  // sqrt
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr double history_prior_df = 4;

/// 80 % quantile of the F distribution.
inline double f_quantile_80(double df1, double df2) {
    double high = 2;
    const auto cdf = [&](double f) {
        return incomplete_beta(df1 / 2, df2 / 2, df1 * f / (df1 * f + df2));
    };
    while (cdf(high) < 0.8 && high < 1e12) high *= 2;
    return bisect(0, high, 0.8, cdf);
}
/// Whether repeats spread by more than their history explains. Then the history is not used.
inline bool is_beyond_belief(double own_variance, std::size_t repeats, double believed,
                             double df) {
    return own_variance >
           believed * believed * f_quantile_80(static_cast<double>(repeats) - 1, df);
}
/// Returns an analysis with the noise of a history, at less weight than a calibration because it is
/// of other days. The history is not used where the repeats spread by more.
inline interim_analysis analysis_believing(const std::vector<double>& distances,
                                           const history_noise& known,
                                           const judging_rule& rule) {
    const std::size_t n = distances.size();
    const double own = sample_variance(distances), df = static_cast<double>(n) - 1;
    if (!(known.sd > 0) || n < 2 || is_beyond_belief(own, n, known.sd, known.df))
        return analysis_of_repeats(distances, prior_sd, rule);
    interim_analysis l = moderated_analysis(mean_of(distances), df * own, df, known.sd,
                                            history_prior_df);
    l.se = l.sd / std::sqrt(df + 1);
    decide(l, rule);
    return l;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
