// the objectives and rule of a gate
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/past_judge.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // max
#include <cmath>  // sqrt
#include <map>
#include <memory>  // shared_ptr
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Statistics of an earlier run by name, one value per repeat.
struct stored_baseline {
    std::string file{};
    double day_sd = 0;
    std::map<std::string, std::vector<double>> values{};
};

/// The objectives of a gate and their error levels. The same measurements can be judged again with
/// others.
struct judging_parameters {
    std::vector<slo> slos{};
    // for a searched load, whose `slos` are capacities
    std::vector<slo> objectives_held{};
    judging_rule rule{};
    std::map<std::string, double> noise{};  // calibrated sd of the log statistic, by name
    std::string noise_file{};               // its file
    stored_baseline stored{};
    std::shared_ptr<const past_judge> past{};  // null: no extension
    double day_sd = 0;  // between days, for a stored baseline
    // for the candidate; a live baseline gets the opposite bound
    timing_bound read = timing_bound::measured;
};

/// The name under which a calibration is stored: the ratio to a baseline has its own noise.
inline std::string noise_name(const slo& s) {
    return str(s.what.name) + (s.factor > 0 ? " / baseline" : "");
}
/// The prior noise of a statistic, and whether it is calibrated.
struct believed_noise {
    double sd = prior_sd;
    bool is_calibrated = false;
};
inline believed_noise believed_noise_of(const measurements& e, const judging_parameters& t,
                                        const slo& s) {
    if (is_of_start(s.what.metric)) return {prior_startup_sd, false};
    if (is_of_recovery(s.what.metric)) return {prior_startup_sd, false};
    // Of the same questions most are always right or always wrong.
    if (s.what.metric == metric_id::accuracy) return {prior_accuracy_sd, false};
    // A log ratio has the noise of both its runs or statistics.
    const bool is_of_two = is_ratio(s.what.metric) || (s.factor > 0 && e.has_live_baseline());
    const double uncalibrated =
        is_of_two ? prior_sd * std::sqrt(2.0) : prior_sd;
    const auto at = t.noise.find(noise_name(s));
    if (at == t.noise.end()) return {uncalibrated, false};
    return {std::max(at->second, uncalibrated), true};
}
inline double prior_sd_of(const measurements& e, const judging_parameters& t, const slo& s) {
    return believed_noise_of(e, t, s).sd;
}
/// The rule for a statistic. A calibration is trusted, and so is the prior of a start, since a gate
/// often has just one.
inline judging_rule rule_for(const measurements& e, const judging_parameters& t, const slo& s) {
    judging_rule r = t.rule;
    r.trusts_belief = r.trusts_belief || is_of_start(s.what.metric) ||
                      believed_noise_of(e, t, s).is_calibrated;
    return r;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
