// the values of repeats beside those that they are compared with
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/columns.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // max
#include <cmath>  // exp, fabs, isfinite, isnan, log
#include <cstddef>  // size_t
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The values of a gate's repeats, and their baseline if the objective is relative.
struct comparison {
    metric_id of_metric = metric_id::ttft;
    bool relative = false, paired = false;  // to a live baseline in pairs, else to a stored one
    double base_log = 0;
    double limit_factor = 1;  // of a ratio to a stored run, where its metric has an offset
    double factor = 0, scale = 0;  // of a difference: of the baseline, and the unit of distances
    double client_error = 0;       // of a difference, in its unit
    stored_side stored{};
    bool is_missing = false;  // no baseline
    const objective_columns* of_columns = nullptr;
    vector<double> others{};  // the baseline's values
    double others_together = not_a_number;
    /// The compared value: the candidate's, or its ratio to the baseline's.
    double of(double value, double base) const {
        if (!relative) return value;
        if (scale > 0) return std::isfinite(base) ? value - factor * base : not_a_number;
        value = with_offset(of_metric, value);
        base = with_offset(of_metric, base);
        if (!paired) return limit_factor * value / std::exp(base_log);
        return quotient(value, base);
    }
    double of_repeat(std::size_t i) const {
        return of(of_columns->mine.each[i]->value, paired ? others[i] : others_together);
    }
    /// The noise of a calibration of ten repeats or more, if it is all noise: days differ, too, and
    /// processes that last for several pairs.
    calibrated_noise calibrated(const judging_parameters& t, const slo& s) const {
        const bool has_more = stored.repeats > 0 || stored.day_sd > 0 ||
                              (paired && !of_columns->pairs_are_fresh);
        const auto at = t.noise.find(noise_name(s));
        if (has_more || at == t.noise.end() || t.rule.revision < 2 || is_difference(s)) return {};
        return calibrated_noise_of(at->second, t.noise_repeats);
    }
    /// Differences are compared in parts of the baseline, as its noise is, or of the limit.
    void subtract(const slo& s) {
        factor = s.factor;
        double sum = 0, n = 0;
        for (const double x : others)
            if (std::isfinite(x)) sum += std::fabs(x), ++n;
        scale = std::max(n > 0 ? factor * sum / n : 0.0, std::fabs(s.offset));
    }
    std::size_t repeats() const {
        const std::size_t n = of_columns->repeats();
        return paired ? std::min(n, others.size()) : n;
    }
};
/// Refers to the columns.
inline comparison comparison_of(const objective_columns& columns, const judging_parameters& t,
                                const slo& s) {
    comparison c;
    c.of_columns = &columns;
    c.of_metric = s.statistic.metric;
    c.relative = s.factor > 0;
    c.paired = c.relative && columns.is_in_pairs;
    c.others = columns.other.values();
    c.others_together = columns.other.together;
    c.client_error = columns.client_error;
    if (c.paired && is_difference(s)) c.subtract(s);
    if (!c.relative) c.stored.day_sd = t.day_sd;
    if (!c.relative || c.paired) return c;
    if (const auto level = t.past ? t.past->level_of(s) : std::nullopt) {
        c.base_log = level->log;
        c.stored.day_sd = level->day_sd;
        if (level->scale > 0) {
            c.factor = s.factor;
            c.scale = level->scale;
            c.others_together = level->log * level->scale;
        }
        return c;
    }
    const auto at = t.stored.values.find(str(s.statistic.name));
    const vector<double> values = at == t.stored.values.end() ? vector<double>() : at->second;
    if (is_difference(s) && !values.empty()) {
        c.others = values;
        c.others_together = mean_of(c.others);
        c.subtract(s);
        c.stored = {as_number(values.size()),
                    sample_variance(values) * s.factor * s.factor / (c.scale * c.scale),
                    t.stored.day_sd * s.factor * std::fabs(c.others_together) / c.scale};
        c.is_missing = !std::isfinite(c.others_together);
        return c;
    }
    // The value over the limit is f (x + o) / (f b + o), which is f where x is f b.
    if (facts_of(c.of_metric).offset > 0) c.limit_factor = s.factor;
    vector<double> logs;
    for (const double x : values)
        logs.push_back(std::log(with_offset(s.statistic.metric, c.limit_factor * x)));
    if (logs.empty() || !std::isfinite(mean_of(logs))) {
        c.is_missing = true;
        return c;
    }
    c.base_log = mean_of(logs);
    c.stored = {static_cast<double>(logs.size()), sample_variance(logs), t.stored.day_sd};
    return c;
}

/// A difference below what the client can tell is not shown.
inline decision with_client_limit(decision d, const comparison& c) {
    if (!is_difference(d.objective) || d.outcome == verdict::fail) return d;
    if (!(std::fabs(d.objective.offset) < c.client_error)) return d;
    return decided(std::move(d), verdict::inconclusive,
                   cause_with<because::below_client>({{"least", c.client_error}}));
}

/// Sets the pooled value of all repeats, and the baseline's for a ratio.
inline void set_measured(decision& d, const comparison& c) {
    d.measured = c.of(c.of_columns->mine.together, c.others_together);
    const slo& s = d.objective;
    const objective_columns& columns = *c.of_columns;
    double of = columns.mine.together, to = c.others_together;
    if (is_ratio(s.statistic.metric)) {
        of = columns.of.together;
        to = columns.to.together;
    } else if (!c.relative) {
        return;
    } else if (!c.paired && !is_difference(s)) {
        to = (std::exp(c.base_log) - facts_of(s.statistic.metric).offset) / c.limit_factor;
    }
    if (!is_difference(s) && std::isnan(quotient(of, to))) return;
    d.numerator = of;
    d.denominator = to;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
