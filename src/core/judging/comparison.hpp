// the values of repeats beside those that they are compared with
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/columns.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // max, min
#include <cmath>  // exp, fabs, isfinite, isnan, log
#include <cstddef>  // size_t

namespace llmbench {
inline namespace v1 {
namespace detail {

/// What an objective is held against: a number, the column of a live baseline, a stored run, or the
/// past that an extension knows.
enum class against : unsigned char { number, column, stored, past };
inline against against_of(const slo& s, bool are_pairs, const judging_parameters& t) {
    if (is_absolute(s)) return against::number;
    if (are_pairs) return against::column;
    return t.past ? against::past : against::stored;
}

/// The part of a value that days change. Of a fraction it is the misses or the successes, whichever
/// are fewer: 5 % of 99 % right answers would excuse six times as many wrong ones. Of goodput it is
/// ten times the misses: where lognormal times (0.3) miss a limit in 1 to 20 %, half as many more
/// may miss it on a day on which all take 5 % longer.
inline double changing_part(metric_id m, double value) {
    if (!is_request_fraction(m) || value <= 0.5) return 1;
    const double misses = (1 - value) / value;
    return m == metric_id::goodput ? std::min(10 * misses, 1.0) : misses;
}

/// The values of a gate's repeats, and those that they are held against.
struct comparison {
    metric_id of_metric = metric_id::ttft;
    against to = against::number;
    double base_log = 0;
    double limit_factor = 1;  // of a ratio to a stored run, where its metric has an offset
    double factor = 0, scale = 0;  // of a difference: of the baseline, and the unit of distances
    stored_side stored{};
    bool is_missing = false;  // no baseline
    const objective_columns* of_columns = nullptr;
    vector<double> others{};  // the baseline's values
    double others_together = not_a_number;
    bool is_paired() const { return to == against::column; }
    /// The compared value: the candidate's, or its ratio to the baseline's.
    double of(double value, double base) const {
        if (to == against::number) return value;
        if (scale > 0) return std::isfinite(base) ? value - factor * base : not_a_number;
        value = with_offset(of_metric, value);
        if (!is_paired()) return limit_factor * value / std::exp(base_log);
        return quotient(value, with_offset(of_metric, base));
    }
    double of_repeat(std::size_t i) const {
        return of(of_columns->mine.each[i]->value, is_paired() ? others[i] : others_together);
    }
    std::size_t repeats() const {
        const std::size_t n = of_columns->repeats();
        return is_paired() ? std::min(n, others.size()) : n;
    }
    /// The noise of a calibration of ten repeats or more, if it is all noise: days differ, too, and
    /// processes that last for several pairs.
    calibrated_noise calibrated(const judging_parameters& t, const slo& s) const {
        const bool has_more = stored.repeats > 0 || stored.day_sd > 0 ||
                              (is_paired() && !of_columns->pairs_are_fresh);
        const double* const known = t.noise_of(s);
        if (has_more || !known || t.rule.revision < 2 || is_difference(s)) return {};
        return calibrated_noise_of(*known, t.noise_repeats);
    }
    /// Differences are compared in parts of the baseline, as its noise is, or of the limit.
    void subtract(const slo& s) {
        factor = s.factor;
        double sum = 0, n = 0;
        for (const double x : others)
            if (std::isfinite(x)) sum += std::fabs(x), ++n;
        scale = std::max(n > 0 ? factor * sum / n : 0.0, std::fabs(s.offset));
    }
    /// A level that is known: its logarithm, or of a difference itself, in parts of a scale.
    void hold_against(double level, double days_sd, double parts_of, const slo& s) {
        base_log = level;
        stored.day_sd = days_sd;
        others_together = std::exp(base_log) - facts_of(of_metric).offset;
        if (!(parts_of > 0)) return;
        factor = s.factor;
        scale = parts_of;
        others_together = level * scale;
    }
    void hold_against(const stored_baseline& run, const slo& s) {
        if (const auto at = run.values.find(str(s.statistic.name)); at != run.values.end())
            others = at->second;
        const double n = as_number(others.size());
        if (is_difference(s)) {
            others_together = mean_of(others);
            is_missing = !std::isfinite(others_together);
            subtract(s);
            stored = {n, sample_variance(others) * s.factor * s.factor / (scale * scale),
                      run.day_sd * changing_part(of_metric, others_together) * s.factor *
                          std::fabs(others_together) / scale};
            return;
        }
        // The value over the limit is f (x + o) / (f b + o), which is f where x is f b.
        if (facts_of(of_metric).offset > 0) limit_factor = s.factor;
        vector<double> logs;
        for (const double x : others)
            logs.push_back(std::log(with_offset(of_metric, limit_factor * x)));
        base_log = mean_of(logs);
        is_missing = !std::isfinite(base_log);
        others_together = (std::exp(base_log) - facts_of(of_metric).offset) / limit_factor;
        stored = {n, sample_variance(logs),
                  run.day_sd * changing_part(of_metric, others_together)};
    }
};
/// Refers to the columns.
inline comparison comparison_of(const objective_columns& columns, const judging_parameters& t,
                                const slo& s) {
    comparison c{.of_metric = s.statistic.metric,
                 .to = against_of(s, columns.are_pairs(), t),
                 .of_columns = &columns};
    switch (c.to) {
    case against::number: c.stored.day_sd = t.day_sd; break;
    case against::column:
        c.others = columns.other.values();
        c.others_together = columns.other.together;
        if (is_difference(s)) c.subtract(s);
        break;
    case against::stored: c.hold_against(t.stored, s); break;
    case against::past:
        if (const auto of = t.past->level_of(s)) c.hold_against(of->log, of->day_sd, of->scale, s);
        else c.is_missing = true;
        break;
    }
    return c;
}

/// Sets the pooled value of all repeats, and both values of a ratio or a comparison.
inline void set_measured(decision& d, const comparison& c) {
    const objective_columns& columns = *c.of_columns;
    const bool is_of_parts = is_ratio(d.objective.statistic.metric);
    d.measured = c.of(columns.mine.together, c.others_together);
    if (!is_of_parts && c.to == against::number) return;
    const double of = is_of_parts ? columns.of.together : columns.mine.together,
                 to = is_of_parts ? columns.to.together : c.others_together;
    if (!is_difference(d.objective) && std::isnan(quotient(of, to))) return;
    d.numerator = of;
    d.denominator = to;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
