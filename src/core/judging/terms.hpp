// what evidence is held against
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/judging/evidence.hpp"
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
};

/// The objectives of a gate, and how sure of them it must be. The same evidence can be held against
/// other terms.
struct terms {
    std::vector<slo> slos{};  // lateness is held against the tightest of them
    judging_rule rule{};
    std::map<std::string, double> noise{};  // calibrated sd of the log statistic, under its name
    stored_baseline stored{};
};

/// Under which a calibration is kept: the ratio to a baseline has a noise of its own.
inline std::string noise_name(const slo& s) {
    return str(s.what.name) + (s.factor > 0 ? " / baseline" : "");
}
inline double prior_sd_of(const evidence& e, const terms& t, const slo& s) {
    if (is_of_start(s.what.metric)) return prior_startup_sd;
    // The log ratio of a pair has the noise of both its runs.
    const double uncalibrated =
        s.factor > 0 && e.has_live_baseline() ? prior_sd * std::sqrt(2.0) : prior_sd;
    const auto at = t.noise.find(noise_name(s));
    return std::max(uncalibrated, at == t.noise.end() ? 0 : at->second);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
