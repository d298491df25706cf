// limits that have become too easy
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/terms.hpp"

#include <algorithm>  // max
#include <cmath>  // exp, isfinite, log, sqrt
#include <optional>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr double slips_through = 0.25;  // a regression that nobody would want to pass

/// What is known of the noise of a statistic, from a calibration or from the repeats of a stored
/// run; NaN where nothing is.
inline double known_noise(const terms& t, const slo& s) {
    const auto at = t.noise.find(noise_name(s));
    if (at != t.noise.end()) return std::max(at->second, prior_sd);
    const auto old = t.stored.values.find(str(s.what.name));
    if (s.factor <= 0 || old == t.stored.values.end() || old->second.size() < 3)
        return not_a_number;
    std::vector<double> logs;
    for (const double v : old->second) logs.push_back(std::log(v));
    const double own = std::max(std::sqrt(sample_variance(logs)), prior_sd);
    // Both runs have it, and what days differ by.
    const double of_old = own * own / static_cast<double>(logs.size());
    return std::sqrt(own * own + last_analysis * (of_old + t.stored.day_sd * t.stored.day_sd));
}

/// A limit with room: which regression it would pass, and one that would seldom be inconclusive.
struct easy_limit {
    slo what{};
    double slips = 0, to_write = 0;
};
/// Nothing where a limit is as close as its noise lets it be, or where that is not known.
inline std::optional<easy_limit> too_easy(const terms& t, const verdict_numbers& v) {
    const slo& s = v.what;
    const double sd = known_noise(t, s), value = v.estimate.value;
    const bool passes = v.outcome == verdict::pass && std::isfinite(value) && value > 0;
    if (!passes || !(sd > 0) || !(v.limit > 0)) return {};
    const double z = student_t_quantile(normal_cdf(t.rule.pass_z), prior_df + last_analysis - 1);
    const double se = sd / std::sqrt(static_cast<double>(last_analysis)), sign = s.at_most ? 1 : -1;
    // What would still be shown to meet the limit in most runs.
    const double slips = std::exp(sign * std::log(v.limit / value) - z * se) - 1;
    if (slips < slips_through) return {};
    return easy_limit{s, s.at_most ? slips : slips / (1 + slips),  // of a rate that is lost
                      value * std::exp(sign * (z + 1.645) * se)};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
