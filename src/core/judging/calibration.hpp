// calibration
#pragma once

#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/judging/calibrated.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/judging_parameters.hpp"
#include "core/judging/values.hpp"

#include <algorithm>  // max
#include <cmath>  // log, isfinite, exp, sqrt
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The calibration of each objective without judging it. Fractions need none, and server metrics
/// may be zero.
inline std::vector<calibrated> calibration_of(const measurements& e, const judging_parameters& t) {
    std::vector<calibrated> rows;
    for (const slo& s : t.slos) {
        calibrated c;
        c.what = s;
        rows.push_back(c);
        if (is_request_fraction(s.what.metric) || is_of_server(s.what.metric) ||
            is_drift(s.what.metric))
            continue;
        const auto level = s.factor > 0 && t.past ? t.past->level_of(s) : std::nullopt;
        if (s.factor > 0 && t.past && !level) continue;
        const double sign = s.at_most ? 1 : -1, limit = s.factor > 0 ? s.factor : s.bound;
        const auto log_of = [&](double v) {
            return std::log(s.factor > 0 ? with_offset(s.what.metric, v) : v);
        };
        std::vector<double> logs;
        const bool paired = s.factor > 0 && e.has_live_baseline();
        double base_log = 0;
        if (const auto at = t.stored.values.find(str(s.what.name));
            s.factor > 0 && at != t.stored.values.end()) {
            for (const double v : at->second) base_log += log_of(v);
            base_log /= static_cast<double>(at->second.size());
        }
        if (level) base_log = level->log;
        for (std::size_t i = 0; i < e.candidate.size() && (!paired || i < e.baseline.size()); ++i)
            logs.push_back(log_of(evaluate(s.what, e.candidate[i])) -
                           (paired ? log_of(evaluate(s.what, e.baseline[i])) : base_log));
        if (logs.size() < 2 || !std::isfinite(mean_of(logs))) continue;
        calibrated& row = rows.back();
        row.estimate = std::exp(mean_of(logs));
        row.sd = std::sqrt(sample_variance(logs));
        row.headroom_sd = -sign * (mean_of(logs) - std::log(limit)) / row.sd;
        const double sd = std::max(row.sd, prior_sd_of(e, t, s)), most = t.rule.most;
        const double quantile = student_t_quantile(normal_cdf(t.rule.pass_z), prior_df + most - 1);
        const bool against_stored = s.factor > 0 && !paired;
        const double day_sd = level ? level->day_sd : t.stored.day_sd;
        const double se = std::sqrt(sd * sd * (against_stored ? 2 : 1) / most +
                                    (against_stored ? day_sd * day_sd : 0));
        row.to_write = row.estimate * std::exp(sign * (quantile + 1.645) * se);
    }
    return rows;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
