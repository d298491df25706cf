// the calibration of a gate's limits
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/slices.hpp"
#include "core/judging/at_once.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/comparison.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // max, min
#include <cmath>  // exp, isfinite, log, sqrt
#include <cstddef>  // size_t

namespace llmbench {
inline namespace v1 {
namespace detail {

/// How far a limit has to be from the logarithm of a ratio so that most loads at once pass, by the
/// intervals of their slices; infinite where a load has none. At least 1 %, as two processes of one
/// build may differ by more than the loads of a calibration show.
inline double reach_at_once(const objective_columns& of, const slo& s, double sd,
                            const judging_rule& rule) {
    double sum = 0;
    for (const values_at_once& v : of.at_once) {
        if (v.slices == 0) return infinity;
        const estimate_t e = estimate_at_once(s, v, analyses_at_once(s, v, rule));
        sum += s.at_most ? std::log(e.high / e.value) : std::log(e.value / e.low);
    }
    const double typical = sum / as_number(of.at_once.size());
    const double reach = std::max(typical + 1.645 * sd, distance_of_modes / 2);
    return std::isfinite(typical) ? reach : infinity;
}

/// The logarithms of the repeats' values, or of what they are to the baseline's.
inline vector<double> logs_of(const comparison& c) {
    const objective_columns& of = *c.of_columns;
    const auto log_of = [&](double v) {
        return std::log(c.to == against::number ? v : with_offset(c.of_metric, v));
    };
    vector<double> logs;
    for (std::size_t i = 0; i < c.repeats(); ++i)
        logs.push_back(log_of(of.mine.each[i]->value) -
                       (c.is_paired() ? log_of(c.others[i]) : c.base_log));
    return logs;
}
/// How far a limit has to be from them so that most runs pass. `sd`: of `n` repeats.
inline double reach_of(const comparison& c, const judging_parameters& t, const slo& s, double sd,
                       std::size_t n) {
    const objective_columns& of = *c.of_columns;
    if (!of.at_once.empty()) return reach_at_once(of, s, sd, t.rule);
    const bool is_earlier = c.to == against::stored || c.to == against::past;
    const bool is_all_noise = !is_earlier && (!c.is_paired() || of.pairs_are_fresh);
    const auto known = is_all_noise ? calibrated_noise_of(sd, n) : calibrated_noise{};
    const bool is_known = known.df > 0;
    const double noise = is_known ? known.sd : std::max(sd, prior_sd_of(t, s, of.are_pairs()));
    const double most = t.rule.most, df = is_known ? known.df : prior_df;
    const double quantile = student_t_quantile(normal_cdf(t.rule.pass_z), df + most - 1);
    const double se = std::sqrt(noise * noise * (is_earlier ? 2 : 1) / most +
                                (is_earlier ? c.stored.day_sd * c.stored.day_sd : 0));
    const double modes =
        is_known ? hidden_by_modes(known.df + 1 + most, t.rule.pass_level) : 0;
    const double reach = (quantile + 1.645) * se + modes;
    return is_all_noise && t.rule.most >= first_fail
               ? std::min(reach, reach_of_quiet_repeats(sd, n, t.rule))
               : reach;
}

/// Fractions need none, and server metrics may be zero.
inline bool may_be_calibrated(const slo& s) {
    const metric_id m = s.statistic.metric;
    return !is_request_fraction(m) && !is_of_server(m) && !is_drift(m) && !is_difference(s);
}
/// The calibration of each objective without judging it.
inline vector<calibrated> calibration_of(const measurements& e, const judging_parameters& t) {
    vector<calibrated> rows;
    for (const slo& s : t.slos) {
        rows.emplace_back().objective = s;
        if (!may_be_calibrated(s)) continue;
        const objective_columns of = columns_of(e, s);
        const comparison c = comparison_of(of, t, s);
        if (c.is_missing) continue;
        const vector<double> logs = logs_of(c);
        if (logs.size() < 2 || !std::isfinite(mean_of(logs))) continue;
        calibrated& row = rows.back();
        const double sign = s.at_most ? 1 : -1;
        row.estimate = std::exp(mean_of(logs));
        row.sd = std::sqrt(sample_variance(logs));
        row.headroom_sd = -sign * (mean_of(logs) - std::log(limit_of(s))) / row.sd;
        const double reach = reach_of(c, t, s, row.sd, logs.size());
        if (std::isfinite(reach)) row.to_write = row.estimate * std::exp(sign * reach);
    }
    return rows;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
