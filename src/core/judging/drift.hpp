// verdicts on a drift
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/measured/drift.hpp"
#include "core/measured/pooled.hpp"
#include "core/measured/rates.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/judging_parameters.hpp"

#include <algorithm>  // clamp, count_if, max, min
#include <cmath>  // exp, isfinite, log, sqrt
#include <cstddef>  // size_t
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr double most_longer = 100;  // no longer run is advised

/// Returns the residuals of slices from a line: an even drift is not noise.
inline std::vector<double> around_their_line(const std::vector<double>& logs) {
    const auto n = static_cast<double>(logs.size());
    const double mean = mean_of(logs), middle = (n - 1) / 2;
    double slope = 0;
    for (std::size_t i = 0; i < logs.size(); ++i)
        slope += (static_cast<double>(i) - middle) * (logs[i] - mean) / (n * (n * n - 1) / 12);
    std::vector<double> rest;
    for (std::size_t i = 0; i < logs.size(); ++i)
        rest.push_back(logs[i] - mean - slope * (static_cast<double>(i) - middle));
    return rest;
}
inline double sum_of_products(const std::vector<double>& x, std::size_t lag) {
    double sum = 0;
    for (std::size_t i = lag; i < x.size(); ++i) sum += x[i] * x[i - lag];
    return sum;
}
/// How dependent neighbouring slices are, and so how little they add. Residuals from a line are
/// less alike than the slices, by about 2 / n.
inline double dependence_of_slices(const std::vector<double>& logs) {
    const std::vector<double> rest = around_their_line(logs);
    const double squares = sum_of_products(rest, 0);
    if (!(squares > 0)) return 0;
    const double correlation =
        sum_of_products(rest, 1) / squares + 2 / static_cast<double>(rest.size());
    return std::clamp(correlation, 0.0, 0.8);
}

/// An analysis of slices. `logs`: means of their logarithms over the repeats so far.
inline interim_analysis analysis_of_drift(const slo& s, const std::vector<double>& logs,
                                          const judging_rule& rule) {
    const auto k = static_cast<long>(logs.size() / 3);
    const double first = mean_of({logs.begin(), logs.begin() + k}),
                 last = mean_of({logs.end() - k, logs.end()});
    const double alike = dependence_of_slices(logs);
    const double longer = (1 + alike) / (1 - alike), n = static_cast<double>(k);
    interim_analysis l;
    l.spread = spread_of::measured;
    l.mean = (s.at_most ? 1 : -1) * (last - first - std::log(s.bound));
    l.sd = std::sqrt(sum_of_products(around_their_line(logs), 0) / (3 * n - 2));
    l.df = std::max(2.0, (3 * n - 2) / longer);
    l.se = l.sd * std::sqrt(2 * longer / n);
    decide(l, rule);
    return l;
}

/// The first and last third of the typical repeat, and its length.
inline cause thirds_of(const statistic_data& drift, const repeat_list& variant,
                       std::size_t repeats, timing_bound how) {
    double first = 0, last = 0;
    for (std::size_t i = 0; i < repeats; ++i) {
        first +=
            std::log(value_of_part(drift, variant[i], 0, 3, how)) / static_cast<double>(repeats);
        last +=
            std::log(value_of_part(drift, variant[i], 2, 3, how)) / static_cast<double>(repeats);
    }
    return {because::thirds, {std::exp(first), std::exp(last), as_number(repeats),
                              variant[0].window.seconds()}};
}

/// How much longer a run would mostly decide, and which limit this run would decide. The noise of
/// slices is averaged over as many.
inline cause advice_on_drift(const decision& d) {
    const interim_analysis& l = d.last;
    if (d.outcome != verdict::inconclusive || !(l.se > 0)) return {};
    const double sign = d.what.at_most ? 1 : -1;
    const double to_pass = (l.pass_t + 1.645) * l.se;
    const double needed = l.mean < 0 ? to_pass : (l.fail_t + 1.645) * l.se;
    const double longer = needed * needed / (l.mean * l.mean);
    const double limit = d.limit * std::exp(sign * (l.mean + to_pass));
    if (!(longer < most_longer)) return {because::limit_that_passes, {limit}};
    return {because::longer_run, {std::max(longer, 1.1), limit}};
}

/// A drift is judged within each run. Differences between slices from the traffic are the same in
/// all repeats of a trace, and would look like a drift if repeats were compared.
inline decision judge_drift(const measurements& e, const judging_parameters& t, const slo& s,
                            bool to_the_end = false) {
    decision d = undecided(s);
    d.limit = s.bound;
    d.decided_by = verdict_method::slices;
    d.measured = pooled_value(s.what, e.candidate, t.read);
    if (e.candidate.empty()) return decided(d, verdict::invalid, {because::nothing_measured});
    const auto measured = static_cast<double>(selected_requests(s.what, e.candidate[0]));
    const auto least = static_cast<double>(least_of_drift(s.what));
    if (measured < least)
        return decided(d, verdict::invalid,
                       {because::small_for_drift, {measured, least}, whose::plan});
    const std::size_t k = slices_of_third(s.what, measured);
    std::vector<double> sums(3 * k, 0.0);
    d.values.assign(3 * k, 0.0);
    int analyses = 0;
    for (std::size_t i = 0; i < e.candidate.size(); ++i) {
        const std::vector<double> slices = slices_of(s.what, e.candidate[i], k, t.read);
        for (std::size_t j = 0; j < slices.size(); ++j) {
            sums[j] += std::log(slices[j]);
            d.values[j] = sums[j] / static_cast<double>(i + 1);
            if (!std::isfinite(d.values[j]))
                return decided(d, verdict::invalid,
                               {because::no_finite_part, {as_number(i + 1)}});
        }
        if (!t.rule.looks(analyses, i + 1 == e.candidate.size())) continue;
        ++analyses;
        d.last = analysis_of_drift(s, d.values, t.rule);
        d.outcome = d.last.outcome;
        d.repeats = static_cast<int>(i + 1);
        if (d.outcome != verdict::inconclusive && !to_the_end) break;
    }
    d.requests = measured_requests(e, static_cast<std::size_t>(d.repeats), s.what);
    d.why = {thirds_of(s.what, e.candidate, static_cast<std::size_t>(d.repeats), t.read)};
    d.dependence = dependence_of_slices(d.values);
    return d;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
