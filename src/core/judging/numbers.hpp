// decisions by the numbers alone: drifts, and which method decides
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/drift.hpp"
#include "core/judging/at_once.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/comparison.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/fraction_pairs.hpp"
#include "core/judging/fractions.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/samples.hpp"
#include "core/judging/values.hpp"
#include "core/judging/walk.hpp"

#include <algorithm>  // clamp, max
#include <cmath>  // exp, isfinite, isnan, log, sqrt
#include <cstddef>  // size_t
#include <memory>  // make_unique, unique_ptr
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Returns the residuals of slices from a line: an even drift is not noise.
inline vector<double> around_their_line(const vector<double>& logs) {
    const auto n = static_cast<double>(logs.size());
    const double mean = mean_of(logs), middle = (n - 1) / 2;
    double slope = 0;
    for (std::size_t i = 0; i < logs.size(); ++i)
        slope += (static_cast<double>(i) - middle) * (logs[i] - mean) / (n * (n * n - 1) / 12);
    vector<double> rest;
    for (std::size_t i = 0; i < logs.size(); ++i)
        rest.push_back(logs[i] - mean - slope * (static_cast<double>(i) - middle));
    return rest;
}
inline double sum_of_products(const vector<double>& x, std::size_t lag) {
    double sum = 0;
    for (std::size_t i = lag; i < x.size(); ++i) sum += x[i] * x[i - lag];
    return sum;
}
/// How dependent neighbouring slices are, and so how little they add. Residuals from a line are
/// less alike than the slices, by about 2 / n.
inline double dependence_of_slices(const vector<double>& logs) {
    const vector<double> rest = around_their_line(logs);
    const double squares = sum_of_products(rest, 0);
    if (!(squares > 0)) return 0;
    const double correlation =
        sum_of_products(rest, 1) / squares + 2 / static_cast<double>(rest.size());
    return std::clamp(correlation, 0.0, 0.8);
}

/// An analysis of slices. `logs`: means of their logarithms over the repeats so far.
inline interim_analysis analysis_of_drift(const slo& s, const vector<double>& logs,
                                          const judging_rule& rule) {
    const auto k = static_cast<long>(logs.size() / 3);
    const double first = mean_of({logs.begin(), logs.begin() + k}),
                 last = mean_of({logs.end() - k, logs.end()});
    const double alike = dependence_of_slices(logs);
    const double longer = (1 + alike) / (1 - alike), n = static_cast<double>(k);
    const double sd = std::sqrt(sum_of_products(around_their_line(logs), 0) / (3 * n - 2));
    return decided({.mean = (s.at_most ? 1 : -1) * (last - first - std::log(s.bound)), .sd = sd,
                    .df = std::max(2.0, (3 * n - 2) / longer),
                    .se = sd * std::sqrt(2 * longer / n), .spread = spread_of::measured},
                   rule);
}

/// The first and last third of the typical repeat, and its length.
inline cause thirds_of(const variant_columns& variant, std::size_t repeats) {
    double first = 0, last = 0;
    for (std::size_t i = 0; i < repeats; ++i) {
        first += std::log(variant.each[i]->first_third) / static_cast<double>(repeats);
        last += std::log(variant.each[i]->last_third) / static_cast<double>(repeats);
    }
    return cause_with<because::thirds>({{"first", std::exp(first)},
                                        {"last", std::exp(last)},
                                        {"repeats", repeats},
                                        {"seconds", variant.each[0]->window_s}});
}

/// How much longer a run would mostly decide, and which limit this run would decide. The noise of
/// slices is averaged over as many.
inline cause advice_on_drift(const decision& d) {
    const interim_analysis& l = d.last;
    if (d.outcome != verdict::inconclusive || !(l.se > 0)) return {};
    const double sign = d.objective.at_most ? 1 : -1;
    const double to_pass = (l.pass_t + 1.645) * l.se;
    const double needed = l.mean < 0 ? to_pass : (l.fail_t + 1.645) * l.se;
    const double longer = needed * needed / (l.mean * l.mean);
    const double limit = d.limit * std::exp(sign * (l.mean + to_pass));
    return longer_or_limit(longer, limit);
}

/// A drift is judged within each run. Differences between slices from the traffic are the same in
/// all repeats of a trace, and would look like a drift if repeats were compared.
class by_drift final : public method {
public:
    using method::method;
    taken_repeat take(std::size_t i) override {
        const auto measured = as_number(of().mine.each[0]->requests),
                   least = static_cast<double>(least_of_drift(s.statistic));
        if (measured < least)
            return {false,
                    few_values{.repeat = i, .measured = measured, .needed = least}.of("request")};
        const vector<double>& slices = of().slices[i];
        sums_.resize(slices.size());
        logs_.resize(slices.size());
        for (std::size_t j = 0; j < slices.size(); ++j) {
            sums_[j] += std::log(slices[j]);
            logs_[j] = sums_[j] / static_cast<double>(i + 1);
            if (!std::isfinite(logs_[j]))
                return {false, cause_with<because::no_finite_part>({{"repeat", i + 1}})};
        }
        return {};
    }
    evidence shown(decision& d, const fewest_repeats& takes) override {
        d.last = analysis_of_drift(s, logs_, t.rule);
        return {.outcome = d.last.outcome, .n = as_number(logs_.size()), .takes = takes,
                .words = {thirds_of(of().mine, static_cast<std::size_t>(d.repeats))}};
    }
    void end(decision& d, sought) const override {
        d.decided_by = verdict_method::slices;
        d.values = logs_;
        d.dependence = dependence_of_slices(logs_);
    }

private:
    vector<double> sums_{}, logs_{};  // of slices, over the repeats so far
};

/// The method of an objective.
inline std::unique_ptr<method> method_for(const objective_columns& c, const judging_parameters& t,
                                          const slo& s, sought which) {
    const metric_id m = s.statistic.metric;
    if (is_drift(m)) return std::make_unique<by_drift>(c, t, s);
    if (!c.at_once.empty()) return std::make_unique<by_slices_at_once>(c, t, s);
    const against to = against_of(s, c.are_pairs(), t);
    if (is_request_fraction(m) && to == against::number)
        return std::make_unique<by_counts>(c, t, s);
    // Of answers to the same questions a stored run has values: the difficulty cancels in those.
    const bool has_counts =
        to == against::column || (to == against::stored && !may_be_relative(m));
    if (is_request_fraction(m) && is_difference(s) && has_counts)
        return std::make_unique<by_fraction_pairs>(c, t, s);
    if (to == against::past) return t.past->method_for(c, t, s, which);
    return std::make_unique<by_values>(c, t, s);
}
/// Decides one SLO by its repeats, at the first analysis that decides or at the last one.
inline decision decision_by_method(const objective_columns& c, const judging_parameters& t,
                                   const slo& s, sought which) {
    decision d = walked(std::move(*method_for(c, t, s, which)), which);
    d.counted_in =
        needs_baseline(s) && c.are_pairs() ? verdict_unit::pair : verdict_unit::repeat;
    d.rule = t.rule;
    if (const double* const known = t.noise_of(s)) d.calibrated_sd = *known;
    return d;
}

inline void estimate_slices(decision& d) {
    estimate_analysis(d, d.rule.most, d.rule.most);
    d.advice = advice_on_drift(d);
}
/// Adds the estimate, the smallest miss that could be shown and a better limit.
inline decision estimated(decision d, const objective_columns& c) {
    const double worst = d.objective.at_most ? infinity : 0;
    switch (d.outcome == verdict::invalid ? verdict_method::none : d.decided_by) {
    case verdict_method::counts: estimate_counts(d, c); break;
    case verdict_method::counted_misses:
        if (d.counted && !is_difference(d.objective)) estimate_counts(d, c);
        if (std::isnan(d.estimate.value)) d.estimate = {worst, worst, worst};
        break;
    case verdict_method::moderated_t:
    case verdict_method::noisy_t:
    case verdict_method::t:
        estimate_analysis(d, d.rule.most, static_cast<double>(d.distances.size()), d.stored);
        break;
    case verdict_method::predictive_t: d.past->estimate(d); break;
    case verdict_method::slices: estimate_slices(d); break;
    default: break;
    }
    const slo& s = d.objective;
    if (is_request_fraction(s.statistic.metric)) d.advice = {};  // none lowers a limit on quality
    if (is_request_fraction(s.statistic.metric) && is_difference(s))  // as far as two can differ
        for (double* const x : {&d.estimate.low, &d.estimate.high})
            *x = std::clamp(*x, -std::max(s.factor, 1.0), 1.0);
    return d;
}

/// Whether the pooled data are on the other side of the limit than the verdict.
inline bool is_contradicted(const verdict_numbers& v) {
    const bool is_met =
        v.objective.at_most ? v.measured <= v.limit : v.measured >= v.limit;  // false for NaN
    return (v.outcome == verdict::pass && !is_met) || (v.outcome == verdict::fail && is_met);
}
/// Both sides of a contradiction: all repeats, and an early decision or the typical repeat. The
/// third number: repeats of the early decision, 0 for the typical repeat, NaN if equal.
inline cause contradiction(const decision& early, const decision& late) {
    const double typical = late.estimate.value, first = early.estimate.value;
    const bool is_the_same = std::isnan(first) || (is_counted(early) && first == early.measured);
    const double repeats = !is_counted(late)   ? 0
                           : is_the_same       ? not_a_number
                           : is_counted(early) ? early.repeats
                                               : 0;
    return cause_with<because::all_together>({{"all", late.measured},
                                              {"other", is_counted(late) ? first : typical},
                                              {"first", repeats}});
}

/// Decides one SLO by the numbers alone. A verdict never contradicts the pooled data: where it
/// does, for example because one repeat has nearly all slow requests, all repeats are analysed, and
/// a remaining contradiction is inconclusive.
inline decision decision_by_numbers(const objective_columns& c, const judging_parameters& t,
                                    const slo& s, sought which = sought::first) {
    decision early = decision_by_method(c, t, s, which);
    if (which == sought::last || !is_contradicted(early)) return early;
    decision d = decision_by_method(c, t, s, sought::last);
    if (is_contradicted(d)) d.outcome = verdict::inconclusive;
    if (d.outcome == verdict::inconclusive)
        d.why.insert(d.why.begin(), contradiction(estimated(std::move(early), c), estimated(d, c)));
    return d;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
