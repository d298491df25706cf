// what verdicts are given on
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // min, count_if, max
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

/// Everything that a gate's verdicts depend on.
struct measurement {
    std::vector<repeat_data> candidate{};  // of fresh traffic: stages of n, n and 2n requests
    std::vector<repeat_data>
        baseline{};           // as many, where there is one: pair i is (candidate i, baseline i)
    std::vector<slo> slos{};  // of the gate: lateness is held against the tightest of them
    bool short_outputs_expected = false;  // outputs of one token were asked for
    bool spins = false;                   // the client was told to burn its core
    // Squared coefficient of variation of the gaps between planned sends, NaN where the load grows
    // or bursts by design.
    double arrival_cv2 = not_a_number;
    judging_rule rule{};
    std::map<std::string, double> noise{};  // calibrated sd of the log statistic, under its name
    stored_baseline stored{};
    std::string stopped{};  // why there are fewer repeats than planned
    bool has_live_baseline() const { return !baseline.empty(); }
};

template <class F>
void for_each_repeat(const measurement& m, F&& f) {
    for (const auto* arm : {&m.candidate, &m.baseline})
        for (const repeat_data& d : *arm) f(d);
}

inline long long measured_requests(const measurement& m, std::size_t repeats) {
    long long n = 0;
    for (std::size_t i = 0; i < std::min(repeats, m.candidate.size()); ++i)
        n += std::count_if(m.candidate[i].records.begin(), m.candidate[i].records.end(),
                           is_measured);
    return n;
}

inline std::string listed(const std::vector<double>& values) {
    std::string out;
    for (const double v : values) out += (out.empty() ? "" : ", ") + printed("%.6g", v);
    return out;
}

/// Under which a calibration is kept: the ratio to a baseline has a noise of its own.
inline std::string noise_name(const slo& s) {
    return str(s.what.name) + (s.factor > 0 ? " / baseline" : "");
}
inline double prior_sd_of(const measurement& m, const slo& s) {
    if (is_of_start(s.what.metric)) return prior_startup_sd;
    // The log ratio of a pair has the noise of both its runs.
    const double uncalibrated =
        s.factor > 0 && m.has_live_baseline() ? prior_sd * std::sqrt(2.0) : prior_sd;
    const auto at = m.noise.find(noise_name(s));
    return std::max(uncalibrated, at == m.noise.end() ? 0 : at->second);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
