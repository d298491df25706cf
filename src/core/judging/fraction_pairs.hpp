// differences of fractions between two variants, in pairs or of a stored run
// The error is the widest of three: of the counts if the limit were true (score tests: Farrington
// and Manning 1990; of paired answers Tango 1998), of the counts as measured, since misses are too
// rare for a normal score on the side where few are a fail, and of the repeats' own values. That of
// days is added to each.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/walk.hpp"

#include <algorithm>  // clamp, max, min
#include <cmath>  // fabs, isnan, sqrt
#include <cstddef>  // size_t
#include <map>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The variance of `only_mine - only_other` for one question if the difference were `d`.
inline double variance_if_paired(const fraction_pair& p, double d) {
    const double off = p.only_mine - p.only_other;
    const double b = (2 - off) * d - p.only_mine - p.only_other, c = -p.only_other * d * (1 - d);
    const double other = (std::sqrt(std::max(0.0, b * b - 8 * c)) - b) / 4;
    return std::max(2 * other + d - d * d, p.only_mine + p.only_other - off * off);
}
/// The variance of `mine - factor * other` if that were `offset`: by the likeliest fractions of
/// which it is true.
inline double variance_if_apart(const fraction_pair& p, double factor, double offset) {
    double low = std::max(0.0, -offset / factor), high = std::min(1.0, (1 - offset) / factor);
    const auto slope = [](double fraction, double trials, double of) {
        return trials * (fraction / std::max(of, least_value) -
                         (1 - fraction) / std::max(1 - of, least_value));
    };
    for (int i = 0; i < 60; ++i) {
        const double x = (low + high) / 2;
        const bool is_low = factor * slope(p.mine, p.trials, factor * x + offset) +
                                slope(p.other, p.other_trials, x) > 0;
        (is_low ? low : high) = x;
    }
    const auto variance = [&](double mine, double other) {
        return mine * (1 - mine) / p.trials +
               factor * factor * other * (1 - other) / p.other_trials;
    };
    const double x = (low + high) / 2, mine = std::clamp(factor * x + offset, 0.0, 1.0);
    return std::max(variance(mine, x), variance(p.mine, p.other));
}
inline double error_of_counts(const fraction_pair& p, double factor, double offset) {
    return std::sqrt(p.is_paired ? variance_if_paired(p, offset) / p.trials
                                 : variance_if_apart(p, factor, offset));
}

/// Collects answers to the same questions, over several pairs.
class paired_answers {
public:
    /// Whether each answer of a variant is right, and its question, in order.
    template <class Answers>
    void add(const Answers& mine, const vector<long long>& my_questions, const Answers& other,
             const vector<long long>& other_questions) {
        std::map<long long, vector<bool>> known;
        for (std::size_t i = 0; i < other_questions.size(); ++i)
            known[other_questions[i]].push_back(other[i] != 0);
        std::map<long long, std::size_t> next;
        for (std::size_t i = 0; i < my_questions.size(); ++i) {
            const long long question = my_questions[i];
            const auto at = known.find(question);
            const std::size_t k = next[question]++;
            if (at == known.end() || k >= at->second.size()) continue;
            const bool is_right = mine[i] != 0, other_is = at->second[k];
            answered& a = all_[question];
            ++a.times;
            a.only_mine += is_right && !other_is;
            a.only_other += other_is && !is_right;
        }
    }
    /// Questions are the sample. Answers that vary from repeat to repeat tell a little more.
    void set(fraction_pair& p) const {
        const auto n = static_cast<double>(all_.size());
        double most = 1;
        vector<double> off;
        for (const auto& [question, a] : all_) {
            off.push_back((a.only_mine - a.only_other) / a.times);
            p.only_mine += a.only_mine / a.times / n;
            p.only_other += a.only_other / a.times / n;
            most = std::max(most, a.times);
        }
        const double once = p.only_mine + p.only_other - mean_of(off) * mean_of(off);
        const double effect = once > 0 ? std::max(sample_variance(off) / once, 1 / most) : 1;
        p.is_paired = true;
        p.trials = p.other_trials = n / effect;
    }

private:
    struct answered {
        double times = 0, only_mine = 0, only_other = 0;
    };
    std::map<long long, answered> all_{};
};

/// The fraction of a stored run, as the other one. A repeat's bursts count as its misses do.
inline fraction_pair fraction_of_stored(const vector<kept_counts>& stored, metric_id m) {
    fraction_counts all;
    double effects = 0;
    for (const kept_counts& r : stored) {
        all.add(fraction_counts{r.misses, r.requests});
        effects += r.misses * r.effect;
    }
    fraction_pair p;
    p.other = all.value(m);
    p.other_trials = all.misses > 0 ? all.all * all.misses / effects : all.all;
    return p;
}
/// The fractions of the first repeats, and how many independent trials are behind them. `p`: that
/// of a stored run.
inline fraction_pair fraction_pair_of(const objective_columns& of, const slo& s,
                                      std::size_t pairs, fraction_pair p) {
    const auto counted = [&](const variant_columns& variant, double& fraction, double& trials) {
        fraction_counts all;
        for (std::size_t i = 0; i < pairs; ++i) all.add(variant.each[i]->counts);
        fraction = all.value(s.statistic.metric);
        slo own = s;
        own.bound = std::clamp(fraction, 0.0, 1.0);
        trials = all.all / std::max(1.0, counted_misses(variant, own, pairs, 0).effect);
    };
    counted(of.mine, p.mine, p.trials);
    if (of.are_pairs()) counted(of.other, p.other, p.other_trials);
    if (!is_of_answers(s.statistic.metric)) return p;
    paired_answers answers;
    for (std::size_t i = 0; i < pairs; ++i) {
        const column &mine = *of.mine.each[i], &other = *of.other.each[i];
        answers.add(other.misses, other.questions, mine.misses, mine.questions);  // what they miss
    }
    answers.set(p);
    return p;
}

/// One analysis of the first pairs, or repeats.
inline interim_analysis analysis_of_fractions(const slo& s, const fraction_pair& p,
                                              const vector<double>& distances,
                                              const judging_rule& rule,
                                              const stored_side& stored) {
    const double difference =
        p.is_paired ? p.only_mine - p.only_other : p.mine - s.factor * p.other;
    const double mean = (s.at_most ? 1 : -1) * (difference - s.offset);
    const double error = error_of_counts(p, s.factor, s.offset);
    const interim_analysis counts =
        decided({.mean = mean, .sd = error * std::sqrt(p.trials), .df = 1e4,
                 .se = stored.error(error * error), .spread = spread_of::counted},
                rule);
    const own_spread own = own_spread_of(distances, stored);
    if (!(own.df > 0)) return counts;
    return wider_of(counts, decided(measured_analysis(mean, own, 0), rule));
}

/// A fraction less that of a live baseline or of a stored run, by the counts of both.
class by_fraction_pairs final : public method {
public:
    by_fraction_pairs(const objective_columns& of, const judging_parameters& t_, const slo& s_)
        : method(of, t_, s_) {
        if (c.is_paired()) return;
        const vector<kept_counts> kept = counts_kept(t.stored.values, s.statistic);
        c.is_missing = c.is_missing || kept.empty();
        if (c.is_missing) return;
        earlier_ = fraction_of_stored(kept, s.statistic.metric);
        c.others_together = earlier_.other;
        stored_ = {c.stored.repeats, c.stored.variance * c.scale * c.scale,
                   c.stored.day_sd * c.scale};
    }
    taken_repeat take(std::size_t i) override {
        const double value = c.of_repeat(i);
        if (std::isnan(value))
            return {false,
                    cause_with<because::no_value_in>({{"repeat", i + 1}, {"is_ratio", true}})};
        values_.push_back(value);
        distances_.push_back(distance_of(s, value, limit_of(s)));
        return {};
    }
    evidence shown(decision& d, const fewest_repeats& takes) override {
        const fraction_pair p =
            fraction_pair_of(of(), s, static_cast<std::size_t>(d.repeats), earlier_);
        if (!(p.trials > 0 && p.other_trials > 0)) return {.fault = {because::no_value}};
        d.fractions = p;
        d.last = analysis_of_fractions(s, p, distances_, t.rule, stored_);
        return {.outcome = d.last.outcome, .n = p.trials, .takes = takes,
                .is_of_days = std::fabs(p.mine - p.other) < 2 * stored_.day_sd / s.factor};
    }
    void end(decision& d, sought) const override {
        d.decided_by = verdict_method::t;
        d.values = values_;
        d.distances = distances_;
        d.stored = stored_;
        if (!c.is_paired()) d.stored_values = c.others;
    }

private:
    fraction_pair earlier_{};  // of a stored run
    stored_side stored_{};
    vector<double> values_{}, distances_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
