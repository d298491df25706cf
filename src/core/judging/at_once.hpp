// verdicts on two variants that were loaded at once
// The window is cut into slices of equal planned time. The noise that both servers share is in both
// values of a slice, so that it cancels; the rest is measured by the slices. Neighbours are alike
// where noise lasts, or answers span slices: the interval is the wider of two, by blocks of slices,
// and by slices with their correlation (tests/bench/rates/differences.md).
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/slices.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/fraction_pairs.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/values.hpp"

#include <algorithm>  // clamp, max, min, sort
#include <cmath>  // exp, fabs, isfinite, isnan, log, sqrt
#include <cstddef>  // size_t
#include <optional>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr std::size_t blocks_of_slices = 6;

/// The distance of the variants under a limit, with its error: negative where the limit holds.
struct distance_at_once {
    double value = not_a_number;
    vector<double> parts{};  // what each slice adds to it
};
/// The limit `factor * baseline + offset`.
class test_at_once {
public:
    test_at_once(const slo& s, const values_at_once& v) : s_(s), v_(v) {
        if (s.statistic.kind != statistic_kind::percentile) return;
        mine_ = v.mine.values;
        other_ = v.other.values;
        std::sort(mine_.begin(), mine_.end());
        std::sort(other_.begin(), other_.end());
    }
    /// The ratio or the difference of both.
    double measured() const {
        const auto value_of = [&](const sliced_values& of, const vector<double>& sorted) {
            return sorted.empty() ? of.mean() : nearest_rank(sorted, s_.statistic.q);
        };
        const double mine = value_of(v_.mine, mine_), other = value_of(v_.other, other_);
        return is_difference(s_) ? mine - s_.factor * other : quotient(mine, other);
    }
    /// Under the limit of a percentile as many requests of both are beyond it, each beyond its own:
    /// `mine` beyond factor * c + offset, `other` beyond c, the quantile of all. No density is
    /// estimated.
    distance_at_once at(double factor, double offset) const {
        const auto itself = [](double x) { return x; };
        if (s_.statistic.kind != statistic_kind::percentile)
            return difference(s_.at_most ? 1 : -1, factor, offset, itself, itself);
        const double c = common_quantile(factor, offset);
        if (!std::isfinite(c)) return {not_a_number, vector<double>(v_.slices, 0.0)};
        const auto beyond = [&](double bound) {
            return [this, bound](double x) { return s_.at_most ? x > bound : x < bound; };
        };
        return difference(1, 1, 0, beyond(factor * c + offset), beyond(c));
    }

private:
    /// The difference of both means of a score, and what each slice adds to it.
    template <class Score>
    distance_at_once difference(double sign, double factor, double offset, const Score& of_mine,
                                const Score& of_other) const {
        vector<double> parts(v_.slices, 0.0);
        const auto mean_with_parts = [&](const sliced_values& of, double weight,
                                         const Score& score) {
            double sum = 0;
            for (const double x : of.values) sum += score(x);
            const double mean = sum / of.count();
            for (std::size_t i = 0; i < of.values.size(); ++i)
                parts[of.slices[i]] += weight / of.count() * (score(of.values[i]) - mean);
            return mean;
        };
        const double mine = mean_with_parts(v_.mine, sign, of_mine),
                     other = mean_with_parts(v_.other, -sign * factor, of_other);
        return {sign * (mine - factor * other - offset), std::move(parts)};
    }
    /// The nearest rank among both, or the baseline's where failures reach that.
    double common_quantile(double factor, double offset) const {
        const std::size_t rank = nearest_rank_of(mine_.size() + other_.size(), s_.statistic.q);
        std::size_t i = 0, k = 0;
        double c = not_a_number;
        while (i + k <= rank) {
            const double a = i < mine_.size() ? (mine_[i] - offset) / factor : infinity;
            const bool is_mine = i < mine_.size() && (k == other_.size() || a <= other_[k]);
            c = is_mine ? a : other_[k];
            ++(is_mine ? i : k);
        }
        return std::isfinite(c) ? c : nearest_rank(other_, s_.statistic.q);
    }

    const slo& s_;
    const values_at_once& v_;
    vector<double> mine_{}, other_{};  // sorted, of a percentile
};

/// The error of the sum of all parts.
struct error_at_once {
    double se = 0, df = 1;
};
inline error_at_once error_by_blocks(const vector<double>& parts) {
    constexpr auto n = static_cast<double>(blocks_of_slices);
    vector<double> sums(blocks_of_slices, 0.0);
    for (std::size_t i = 0; i < parts.size(); ++i)
        sums[i * blocks_of_slices / parts.size()] += parts[i];
    return {std::sqrt(sample_variance(sums) * n), n - 1};
}
inline error_at_once error_by_neighbours(const vector<double>& parts) {
    const auto n = static_cast<double>(parts.size());
    const double mean = mean_of(parts);
    double squares = 0, products = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        squares += (parts[i] - mean) * (parts[i] - mean);
        if (i > 0) products += (parts[i] - mean) * (parts[i - 1] - mean);
    }
    if (!(squares > 0)) return {0, n - 1};
    // Few values look less alike than they are, by about (1 + 4 alike) / n (Kendall 1954).
    const double alike = std::clamp((products / squares + 1 / n) / (1 - 4 / n), 0.0, 0.8);
    const double longer = (1 + alike) / (1 - alike);
    return {std::sqrt(squares / (n - 1) * n * longer), std::max(2.0, (n - 1) / longer)};
}
/// The error of a fraction is at least that of as many independent requests, and one more. Answers
/// in pairs have an error of their own.
inline double least_error_of(const values_at_once& v, double factor) {
    if (!v.is_fraction || !v.mine.questions.empty()) return 0;
    const auto variance = [](const sliced_values& of) {
        const double n = of.count(), p = of.mean();
        return (n * std::min(p, 1 - p) + 1) / (n * n);
    };
    return std::sqrt(variance(v.mine) + factor * factor * variance(v.other));
}

/// An analysis at one distance, by the wider of both errors.
inline interim_analysis analysis_at_once(const values_at_once& v, const distance_at_once& d,
                                         double factor, const judging_rule& rule) {
    const auto decided_with = [&](const error_at_once& e) {
        const double se = std::max(e.se, least_error_of(v, factor));
        const double sd = se / std::sqrt(static_cast<double>(v.slices));
        return decided({.mean = d.value, .sd = sd, .df = e.df, .se = se,
                        .spread = spread_of::measured}, rule);
    };
    return wider_of(decided_with(error_by_neighbours(d.parts)),
                    decided_with(error_by_blocks(d.parts)));
}

/// Analyses at any limit. The noise of means is that around the measured ratio, where what both
/// share cancels, in proportion to the limit, since bursts make small ratios look sure. Counts have
/// the noise around the limit.
class analyses_at_once {
public:
    analyses_at_once(const slo& s, const values_at_once& v, const judging_rule& rule)
        : s_(s), v_(v), rule_(rule), test_(s, v), measured_(test_.measured()) {
        const double factor = is_ratio_of_means() ? measured_ : s.factor;
        if (!is_of_counts()) noise_ = analysis_at_once(v, test_.at(factor, 0), factor, rule);
        if (v.mine.questions.empty() || !is_difference(s)) return;
        paired_answers all;
        all.add(v.mine.values, v.mine.questions, v.other.values, v.other.questions);
        all.set(answers_.emplace());
    }
    double measured() const { return measured_; }
    distance_at_once distance_at(double limit) const {
        return is_difference(s_) ? test_.at(s_.factor, limit) : test_.at(limit, 0);
    }
    interim_analysis at(double limit) const {
        const distance_at_once d = distance_at(limit);
        if (is_of_counts())
            return analysis_at_once(v_, d, is_difference(s_) ? s_.factor : limit, rule_);
        interim_analysis l = noise_;
        l.mean = d.value;
        if (is_ratio_of_means()) l.se *= limit / measured_;
        l = decided(l, rule_);
        if (!answers_) return l;
        interim_analysis counts = l;
        counts.se = error_of_counts(*answers_, 1, limit);
        counts.df = 1e4;
        return wider_of(l, decided(counts, rule_));
    }

private:
    bool is_of_counts() const { return s_.statistic.kind == statistic_kind::percentile; }
    bool is_ratio_of_means() const {
        return !is_of_counts() && !is_difference(s_) && measured_ > 0;
    }

    const slo& s_;
    const values_at_once& v_;
    const judging_rule& rule_;
    test_at_once test_;
    double measured_;
    interim_analysis noise_{};
    std::optional<fraction_pair> answers_{};
};

/// The value so far, and its interval by the limits that the data reject.
inline estimate_t estimate_at_once(const slo& s, const values_at_once& v,
                                   const analyses_at_once& analyses) {
    const bool is_ratio = !is_difference(s);
    const double sign = s.at_most ? 1 : -1, measured = analyses.measured();
    const double reach = is_ratio ? std::log(64.0)
                                  : 64 * std::max({std::fabs(measured), std::fabs(s.offset),
                                                   std::fabs(s.factor * v.other.mean())});
    if (!std::isfinite(measured) || !std::isfinite(reach) || (is_ratio && !(measured > 0)))
        return {not_a_number, not_a_number, not_a_number};
    // A limit so far to the side on which it is easier to meet, from -1 to 1.
    const auto limit_at = [&](double x) {
        return is_ratio ? measured * std::exp(sign * x * reach) : measured + sign * x * reach;
    };
    const auto end_of = [&](auto&& is_beyond) {
        double low = -1, high = 1;
        for (int i = 0; i < 40; ++i) {
            const double x = (low + high) / 2;
            (is_beyond(analyses.at(limit_at(x))) ? high : low) = x;
        }
        const double x = (low + high) / 2;
        return std::fabs(x) < 1e-11    ? measured
               : std::fabs(x) < 0.999 ? limit_at(x)
               : (x > 0) == s.at_most ? infinity
               : is_ratio             ? 0
                                      : -infinity;
    };
    const double pass = end_of([](const interim_analysis& l) { return l.pass_bound < 0; });
    const double fail = end_of([](const interim_analysis& l) { return !(l.fail_bound > 0); });
    return s.at_most ? estimate_t{measured, fail, pass} : estimate_t{measured, pass, fail};
}

/// Sets the estimate, the smallest miss that could be shown, and how long a run would decide.
inline void estimate_slices(decision& d, const slo& s, const values_at_once& v,
                            const analyses_at_once& analyses, double client_error) {
    d.estimate = estimate_at_once(s, v, analyses);
    if (std::isnan(d.estimate.value)) return;  // failures reach the statistic
    d.estimate.low -= client_error;
    d.estimate.high += client_error;
    const double sign = s.at_most ? 1 : -1, value = d.estimate.value;
    const double pass = s.at_most ? d.estimate.high : d.estimate.low;
    const double fail = s.at_most ? d.estimate.low : d.estimate.high;
    if ((d.outcome == verdict::pass && !(sign * (d.limit - pass) > 0)) ||
        (d.outcome == verdict::fail && !(sign * (fail - d.limit) > 0)))
        d.outcome = verdict::inconclusive;
    const double to_fail = std::fabs(value - fail) * (1 + four_in_five / d.last.fail_t);
    d.detectable = is_difference(s) ? to_fail : to_fail / d.limit;
    if (d.outcome != verdict::inconclusive || !std::isfinite(pass) || !std::isfinite(fail)) return;
    const bool is_inside = sign * (d.limit - value) > 0;
    const double to_pass = std::fabs(pass - value) * (1 + 1.645 / d.last.pass_t);
    const double needed =
        is_inside ? to_pass : std::fabs(fail - value) * (1 + 1.645 / d.last.fail_t);
    const double longer = needed * needed / ((d.limit - value) * (d.limit - value));
    const double limit = value + sign * to_pass;
    const bool may_be_written = is_difference(s) ? limit * d.limit > 0 : limit > 0;
    if (!may_be_written) return;
    d.advice = longer_or_limit(longer, limit);
}

/// Judges a ratio or a difference by slices of the time in which both variants were loaded.
inline decision judge_at_once(const objective_columns& of, const judging_parameters& t,
                              const slo& s, sought which = sought::first) {
    decision d = undecided(s);
    d.limit = limit_of(s);
    d.paired = true;
    const comparison c = comparison_of(of, t, s);
    set_measured(d, c);
    d.client_part = c.client_error;
    values_at_once v{.is_fraction = of.at_once[0].is_fraction};
    const std::size_t n = of.at_once.size();
    const auto take = [&](std::size_t i) {
        const values_at_once& more = of.at_once[i];
        if (more.slices == 0)
            return invalidate(d, cause_with<because::few_slices>(
                                     {{"window", more.window_s}, {"needed", more.needed_s}},
                                     whose::plan));
        v.add(more);
        d.repeats = static_cast<int>(i + 1);
        d.requests = measured_requests(of, i + 1, s.statistic.metric);
        if (v.mine.values.empty() || v.other.values.empty())
            return invalidate(d, {because::no_value});
        return true;
    };
    const auto analyse = [&](std::size_t) {
        const analyses_at_once analyses(s, v, t.rule);
        d.values = analyses.distance_at(d.limit).parts;
        d.last = analyses.at(d.limit);
        d.outcome = d.last.outcome;
        estimate_slices(d, s, v, analyses, c.client_error);
        if (d.outcome == verdict::pass) withdraw_over_failures(d, of, t);
        return d.outcome != verdict::inconclusive;
    };
    if (!analyse_repeats(d, n, 1, t.rule, which, take, analyse)) return d;
    d.decided_by = verdict_method::slices_at_once;
    if (!std::isfinite(d.last.mean))
        d.why = {cause_with<because::no_size>(
            {{"unbounded", n}, {"repeats", n}, {"at_most", s.at_most}})};
    return with_client_limit(std::move(d), c);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
