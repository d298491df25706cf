// what evidence is held against
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/history_terms.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // max
#include <cmath>  // sqrt
#include <map>
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// An earlier run's statistics, one value a repeat, under their names.
struct stored_baseline {
    std::string file{};
    double day_sd = 0;
    std::map<std::string, std::vector<double>> values{};
    double carried = 0;  // the load that it was shown to carry, 0: none was searched
};

/// The objectives of a gate, and how sure of them it must be. The same evidence can be held against
/// other terms.
struct terms {
    std::vector<slo> slos{};
    // what a searched load must hold: then `slos` are of its capacity
    std::vector<slo> objectives_held{};
    judging_rule rule{};
    std::map<std::string, double> noise{};  // calibrated sd of the log statistic, under its name
    std::string noise_file{};               // where that was read
    stored_baseline stored{};
    history_terms history{};
    double day_sd = 0;  // of what today's server is held against, where that is an earlier day's
    // of the candidate; of a live baseline the other way
    timing_bound read = timing_bound::measured;
};

/// Under which a calibration is kept: the ratio to a baseline has a noise of its own.
inline std::string noise_name(const slo& s) {
    return str(s.what.name) + (s.factor > 0 ? " / baseline" : "");
}
/// What is believed of the noise of a statistic, and whether a calibration says so.
struct believed_noise {
    double sd = prior_sd;
    bool is_calibrated = false;
};
inline believed_noise believed_noise_of(const evidence& e, const terms& t, const slo& s) {
    if (is_of_start(s.what.metric)) return {prior_startup_sd, false};
    if (is_of_recovery(s.what.metric)) return {prior_startup_sd, false};
    // Of the same questions, most of which are always right or always wrong.
    if (s.what.metric == metric_id::accuracy) return {prior_accuracy_sd, false};
    // The log ratio of a pair has the noise of both its runs, that of two statistics theirs.
    const bool is_of_two = is_ratio(s.what.metric) || (s.factor > 0 && e.has_live_baseline());
    const double uncalibrated =
        is_of_two ? prior_sd * std::sqrt(2.0) : prior_sd;
    const auto at = t.noise.find(noise_name(s));
    if (at == t.noise.end()) return {uncalibrated, false};
    return {t.rule.knows_noise ? at->second : std::max(at->second, uncalibrated), true};
}
inline double prior_sd_of(const evidence& e, const terms& t, const slo& s) {
    return believed_noise_of(e, t, s).sd;
}
/// The rule for a statistic: a calibration that has it is trusted, and so is what is believed of a
/// start, of which a gate often has one.
inline judging_rule rule_for(const evidence& e, const terms& t, const slo& s) {
    judging_rule r = t.rule;
    r.trusts_belief = r.trusts_belief || is_of_start(s.what.metric) ||
                      believed_noise_of(e, t, s).is_calibrated;
    return r;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
