// repeats whose noise a history knows
#pragma once

#include "core/base/statistics.hpp"
#include "core/history/noise.hpp"
#include "core/judging/rule.hpp"

#include <cmath>  // sqrt
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// An analysis of repeats whose noise is believed as a calibration is, with less weight: a history
/// is of other days. Where they spread by more, nothing is known of it.
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
