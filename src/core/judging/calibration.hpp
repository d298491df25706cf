// calibration
#pragma once

#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/judging/calibrated.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/terms.hpp"
#include "core/judging/values.hpp"

#include <algorithm>  // max
#include <cmath>  // log, isfinite, exp, sqrt
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The repeats taken as they are: nothing is judged. Shares are left out, their counts say it all,
/// and server metrics, which may be zero.
inline std::vector<calibrated> calibration_of(const evidence& e, const terms& t) {
    std::vector<calibrated> rows;
    for (const slo& s : t.slos) {
        calibrated c;
        c.what = s;
        rows.push_back(c);
        if (is_request_fraction(s.what.metric) || is_of_server(s.what.metric) ||
            is_drift(s.what.metric))
            continue;
        const objective_history* const nights = s.factor > 0 ? t.history.of(s) : nullptr;
        if (s.factor > 0 && t.history.is_there() && !nights) continue;
        const double sign = s.at_most ? 1 : -1, limit = s.factor > 0 ? s.factor : s.bound;
        std::vector<double> logs;
        const bool paired = s.factor > 0 && e.has_live_baseline();
        double base_log = 0;
        if (const auto at = t.stored.values.find(str(s.what.name));
            s.factor > 0 && at != t.stored.values.end()) {
            for (const double v : at->second) base_log += std::log(v);
            base_log /= static_cast<double>(at->second.size());
        }
        if (nights) base_log = sign * (*nights).learned.level.mean;
        for (std::size_t i = 0; i < e.candidate.size() && (!paired || i < e.baseline.size()); ++i)
            logs.push_back(std::log(evaluate(s.what, e.candidate[i])) -
                           (paired ? std::log(evaluate(s.what, e.baseline[i])) : base_log));
        if (logs.size() < 2 || !std::isfinite(mean_of(logs))) continue;
        calibrated& row = rows.back();
        row.estimate = std::exp(mean_of(logs));
        row.sd = std::sqrt(sample_variance(logs));
        row.headroom_sd = -sign * (mean_of(logs) - std::log(limit)) / row.sd;
        const double sd = std::max(row.sd, prior_sd_of(e, t, s)), most = t.rule.most;
        const double quantile = student_t_quantile(normal_cdf(t.rule.pass_z), prior_df + most - 1);
        const bool against_stored = s.factor > 0 && !paired;
        const double day_sd = nights ? (*nights).learned.spread.sd : t.stored.day_sd;
        const double se = std::sqrt(sd * sd * (against_stored ? 2 : 1) / most +
                                    (against_stored ? day_sd * day_sd : 0));
        row.to_write = row.estimate * std::exp(sign * (quantile + 1.645) * se);
    }
    return rows;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
