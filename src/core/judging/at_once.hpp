// verdicts on two variants that were loaded at once
// The window is cut into slices of equal planned time. The noise that both servers share is in both
// values of a slice, so that it cancels; the rest is measured by the slices.
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
#include "core/judging/counts.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/fraction_pairs.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/slice_distances.hpp"
#include "core/judging/walk.hpp"

#include <algorithm>  // clamp, max, min, sort
#include <cmath>  // exp, fabs, isfinite, isnan, log, sqrt
#include <cstddef>  // size_t
#include <memory>  // make_unique, unique_ptr
#include <optional>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Both fractions, and how many independent requests are behind each: misses come in bursts of one
/// size in both variants, since few of them in one do not show it, and by slices. `wider`: that
/// size is so many standard errors larger.
inline fraction_pair fraction_pair_at_once(const slo& s, const values_at_once& v,
                                           double wider = 0) {
    const double miss = s.statistic.metric == metric_id::error_rate ? 1 : 0;
    vector<vector<bool>> misses;
    double all = 0;
    for (const sliced_values* of : {&v.mine, &v.other}) {
        vector<bool>& its = misses.emplace_back();
        for (const double x : of->values) its.push_back(x == miss);
        all += miss == 1 ? of->mean() : 1 - of->mean();
    }
    const burst_estimate bursts = burst_estimate_of(misses, all / 2, v.slices);
    const double burst = bursts.size + wider * bursts.error;
    const auto trials = [&](std::size_t i) {
        return as_number(misses[i].size()) / std::max(burst, design_effect({misses[i]}));
    };
    fraction_pair p;
    p.mine = v.mine.mean();
    p.other = v.other.mean();
    p.trials = trials(0);
    p.other_trials = trials(1);
    return p;
}

/// One way to hold the candidate's slices against the baseline's, at any limit.
class way_at_once : not_copied {
public:
    /// All must outlive it.
    way_at_once(const test_at_once& test, const slo& s, const values_at_once& v,
                const judging_rule& rule)
        : test_(test), s_(s), v_(v), rule_(rule) {}
    virtual ~way_at_once() = default;
    /// Nothing where it cannot tell. Without parts it has those of the first way.
    virtual std::optional<analysed_slices> at(double limit) const = 0;

protected:
    double factor_at(double limit) const { return is_difference(s_) ? s_.factor : limit; }
    double offset_at(double limit) const { return is_difference(s_) ? limit : 0; }
    /// The candidate's value as one of the baseline's at this limit.
    double own_at(double limit) const {
        return (test_.mine() - offset_at(limit)) / factor_at(limit);
    }
    bool has_both_at(double limit) const {
        return std::isfinite(test_.other()) && std::isfinite(own_at(limit));
    }
    /// The share of the candidate's requests beyond the limit at this value of the baseline.
    interim_analysis tail_of_mine(double limit, double at) const {
        return analysis_of_tail(s_, v_.mine, v_.slices, factor_at(limit) * at + offset_at(limit), 1,
                                rule_);
    }

    const test_at_once& test_;
    const slo& s_;
    const values_at_once& v_;
    const judging_rule& rule_;
};

/// Means, throughputs and fractions. Their noise is that around the measured ratio, where what both
/// share cancels: at a looser limit in proportion to it, since bursts make small ratios look sure,
/// but no less at a tighter one, since rare large values make large ratios look sure. Counts have
/// the noise around the limit; those of misses, the noise that they would have at it.
class means_at_once final : public way_at_once {
public:
    means_at_once(const test_at_once& test, const slo& s, const values_at_once& v,
                  const judging_rule& rule)
        : way_at_once(test, s, v, rule), measured_(test.measured()) {
        const double factor = is_ratio_of_means() ? measured_ : s.factor;
        noise_ = analysis_at_once(v, test.at(factor, 0), factor, rule);
        if (!v.is_fraction || !is_difference(s)) return;
        counts_ = fraction_pair_at_once(s, v);
        if (v.mine.questions.empty()) {
            largest_ = fraction_pair_at_once(s, v, 1.645);
            return;
        }
        paired_answers all;
        all.add(v.mine.values, v.mine.questions, v.other.values, v.other.questions);
        all.set(*counts_);
    }
    std::optional<analysed_slices> at(double limit) const override {
        distance_at_once d = test_.at(factor_at(limit), offset_at(limit));
        interim_analysis l = noise_;
        l.mean = d.value;
        if (is_ratio_of_means()) l.se *= std::max(1.0, limit / measured_);
        l = decided(l, rule_);
        if (counts_) l = with_counts(l, limit);
        return analysed_slices{l, std::move(d.parts)};
    }

private:
    bool is_ratio_of_means() const { return !is_difference(s_) && measured_ > 0; }
    /// Few bursts hardly show the largest ones: a pass holds for as large ones as 19 of 20 loads
    /// with such bursts show.
    interim_analysis with_counts(const interim_analysis& l, double limit) const {
        const auto by = [&](const fraction_pair& of) {
            interim_analysis counts = l;
            counts.se = error_of_counts(of, s_.factor, limit);
            counts.df = of.is_paired ? 1e4 : as_number(v_.slices - 1);
            return decided(counts, rule_);
        };
        const interim_analysis counts = by(*counts_);
        if (counts_->is_paired) return wider_of(l, counts);
        return counts.outcome == verdict::pass ? by(*largest_) : counts;
    }

    double measured_;
    interim_analysis noise_{};
    std::optional<fraction_pair> counts_{}, largest_{};  // of a difference of fractions
};

/// A percentile by the shares of both variants' requests beyond it, in which cancels what both
/// share.
class shares_at_once final : public way_at_once {
public:
    using way_at_once::way_at_once;
    std::optional<analysed_slices> at(double limit) const override {
        distance_at_once d = test_.at(factor_at(limit), offset_at(limit));
        const interim_analysis l = analysis_at_once(v_, d, factor_at(limit), rule_);
        return analysed_slices{l, std::move(d.parts)};
    }
};

/// A percentile by each variant's share beyond a value between both, which no drift of the other
/// moves. It decides what both decide.
class tails_at_once final : public way_at_once {
public:
    using way_at_once::way_at_once;
    std::optional<analysed_slices> at(double limit) const override {
        if (!has_both_at(limit)) return {};
        const double between = (test_.other() + own_at(limit)) / 2;
        interim_analysis mine = tail_of_mine(limit, between);
        const interim_analysis other =
            analysis_of_tail(s_, v_.other, v_.slices, between, -1, rule_);
        if (mine.outcome != other.outcome) mine.outcome = verdict::inconclusive;
        return analysed_slices{mine, {}};
    }
};

/// A percentile by that of each slice.
class percentiles_at_once final : public way_at_once {
public:
    percentiles_at_once(const test_at_once& test, const slo& s, const values_at_once& v,
                        const judging_rule& rule)
        : way_at_once(test, s, v, rule), half_(at_half_levels(rule)), slices_(s, v) {}
    std::optional<analysed_slices> at(double limit) const override {
        if (!has_both_at(limit) || !slices_.are_known()) return {};
        distance_at_once d = slices_.at(limit);
        interim_analysis l = analysis_of_parts(d, 0, half_);
        if (l.outcome == verdict::pass && !may_pass_at(limit)) l.outcome = verdict::inconclusive;
        return analysed_slices{l, std::move(d.parts)};
    }

private:
    /// Whether fewer requests of the candidate than the percentile leaves out are beyond its limit
    /// at the baseline's percentile. Its stalls are a slice's own percentile or none of it, so that
    /// slices hardly see how many they are. By the shares of both, in which cancels what both
    /// share, or by the candidate's, which no drift of the baseline moves.
    bool may_pass_at(double limit) const {
        const double at = test_.other();
        const distance_at_once d = test_.shares_at(at, factor_at(limit), offset_at(limit));
        return analysis_at_once(v_, d, factor_at(limit), rule_).outcome == verdict::pass ||
               tail_of_mine(limit, at).outcome == verdict::pass;
    }

    judging_rule half_;
    percentiles_of_slices slices_;
};

/// All ways to compare a statistic, at any limit.
class analyses_at_once : not_copied {
public:
    analyses_at_once(const slo& s, const values_at_once& v, const judging_rule& rule)
        : test_(s, v) {
        if (s.statistic.kind == statistic_kind::percentile) {
            ways_.push_back(std::make_unique<shares_at_once>(test_, s, v, rule));
            ways_.push_back(std::make_unique<tails_at_once>(test_, s, v, rule));
            ways_.push_back(std::make_unique<percentiles_at_once>(test_, s, v, rule));
        } else {
            ways_.push_back(std::make_unique<means_at_once>(test_, s, v, rule));
        }
    }
    double measured() const { return test_.measured(); }

    /// The first way that decides, unless another decides otherwise.
    analysed_slices analysed(double limit) const {
        vector<analysed_slices> all = shown_at(limit);
        std::size_t first = 0;
        while (first < all.size() && all[first].analysis.outcome == verdict::inconclusive) ++first;
        if (first == all.size()) return std::move(all[0]);
        const verdict outcome = all[first].analysis.outcome;
        if (any_of(all, [&](const analysed_slices& way) {
                return way.analysis.outcome != verdict::inconclusive &&
                       way.analysis.outcome != outcome;
            }))
            all[first].analysis.outcome = verdict::inconclusive;
        if (all[first].parts.empty()) all[first].parts = all[0].parts;
        return std::move(all[first]);
    }
    interim_analysis at(double limit) const { return analysed(limit).analysis; }
    /// Whether a way shows that the limit is met, or missed.
    bool shows(verdict outcome, double limit) const {
        return any_of(shown_at(limit), [&](const analysed_slices& way) {
            return way.analysis.outcome == outcome;
        });
    }

private:
    vector<analysed_slices> shown_at(double limit) const {
        vector<analysed_slices> all;
        for (const auto& way : ways_)
            if (auto shown = way->at(limit)) all.push_back(std::move(*shown));
        return all;
    }

    test_at_once test_;
    vector<std::unique_ptr<way_at_once>> ways_{};
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
            (is_beyond(limit_at(x)) ? high : low) = x;
        }
        const double x = (low + high) / 2;
        return std::fabs(x) < 1e-11    ? measured
               : std::fabs(x) < 0.999 ? limit_at(x)
               : (x > 0) == s.at_most ? infinity
               : is_ratio             ? 0
                                      : -infinity;
    };
    const double pass = end_of([&](double at) { return analyses.shows(verdict::pass, at); });
    const double fail = end_of([&](double at) { return !analyses.shows(verdict::fail, at); });
    const double low = s.at_most ? fail : pass, high = s.at_most ? pass : fail;
    return {measured, std::min(low, measured), std::max(high, measured)};
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

/// A ratio or a difference by slices of the time in which both variants were loaded.
class by_slices_at_once final : public method {
public:
    using method::method;
    std::size_t repeats() const override { return of().at_once.size(); }
    taken_repeat take(std::size_t i) override {
        const values_at_once& more = of().at_once[i];
        if (more.slices == 0)
            return {false, cause_with<because::few_slices>(
                               {{"window", more.window_s}, {"needed", more.needed_s}},
                               whose::plan)};
        v_.is_fraction = more.is_fraction;
        v_.add(more);
        const bool has_both = !v_.mine.values.empty() && !v_.other.values.empty();
        return {true, has_both ? cause{} : cause{because::no_value}};
    }
    evidence shown(decision& d, const fewest_repeats& takes) override {
        const analyses_at_once analyses(s, v_, t.rule);
        analysed_slices at_limit = analyses.analysed(d.limit);
        d.values = std::move(at_limit.parts);
        d.last = at_limit.analysis;
        d.outcome = d.last.outcome;
        estimate_slices(d, s, v_, analyses, d.client_part);
        evidence x{.outcome = d.outcome, .n = as_number(v_.mine.values.size()), .takes = takes};
        if (!std::isfinite(d.last.mean))
            x.words = {cause_with<because::no_size>(
                {{"unbounded", repeats()}, {"repeats", repeats()}, {"at_most", s.at_most}})};
        return x;
    }
    void end(decision& d, sought) const override { d.decided_by = verdict_method::slices_at_once; }

private:
    values_at_once v_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
