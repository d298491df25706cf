// distances of variants at once by slices
// Of two variants that were loaded at once, with the error of each distance.
// Neighbours are alike where noise lasts, or answers span slices: an error is the wider of two, by
// blocks of slices, and by slices with their correlation. Percentiles are compared in three ways:
// shares alone decide nothing of narrow values that drift (tests/bench/rates.md).
#pragma once

#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/slices.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/samples.hpp"

#include <algorithm>  // clamp, max, min, sort
#include <cmath>  // isfinite, log, sqrt
#include <cstddef>  // size_t
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
        const double own = mine(), others = other();
        return is_difference(s_) ? own - s_.factor * others : quotient(own, others);
    }
    /// Each variant's value.
    double mine() const { return value_of(v_.mine, mine_); }
    double other() const { return value_of(v_.other, other_); }
    /// Under the limit of a percentile as many requests of both are beyond it, each beyond its own:
    /// `mine` beyond factor * c + offset, `other` beyond c, the quantile of all. No density is
    /// estimated.
    distance_at_once at(double factor, double offset) const {
        const auto itself = [](double x) { return x; };
        if (s_.statistic.kind != statistic_kind::percentile)
            return difference(s_.at_most ? 1 : -1, factor, offset, itself, itself);
        return shares_at(common_quantile(factor, offset), factor, offset);
    }
    /// The same at this value of the baseline.
    distance_at_once shares_at(double c, double factor, double offset) const {
        if (!std::isfinite(c)) return {not_a_number, vector<double>(v_.slices, 0.0)};
        const auto beyond = [&](double bound) {
            return [this, bound](double x) { return s_.at_most ? x > bound : x < bound; };
        };
        return difference(1, 1, 0, beyond(factor * c + offset), beyond(c));
    }

private:
    double value_of(const sliced_values& of, const vector<double>& sorted) const {
        return sorted.empty() ? of.mean() : nearest_rank(sorted, s_.statistic.q);
    }
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
inline interim_analysis analysis_of_parts(const distance_at_once& d, double least_error,
                                          const judging_rule& rule) {
    const auto decided_with = [&](const error_at_once& e) {
        const double se = std::max(e.se, least_error);
        const double sd = se / std::sqrt(static_cast<double>(d.parts.size()));
        return decided({.mean = d.value, .sd = sd, .df = e.df, .se = se,
                        .spread = spread_of::measured}, rule);
    };
    return wider_of(decided_with(error_by_neighbours(d.parts)),
                    decided_with(error_by_blocks(d.parts)));
}
inline interim_analysis analysis_at_once(const values_at_once& v, const distance_at_once& d,
                                         double factor, const judging_rule& rule) {
    return analysis_of_parts(d, least_error_of(v, factor), rule);
}

// ---- percentiles: two more ways. Shares beyond a common quantile differ by twice the tail at
// most, and swing by as much where narrow values drift.

/// The percentile of some values, between ranks: whatever their number, as many lie beyond it.
inline double percentile_between_ranks(vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    const double last = static_cast<double>(values.size() - 1);
    const double at = std::clamp((last + 2) * q - 1, 0.0, last);
    const auto i = static_cast<std::size_t>(at);
    const double part = at - static_cast<double>(i);
    return part > 0 ? values[i] + part * (values[i + 1] - values[i]) : values[i];
}

/// The difference of each slice's own percentiles, or the logarithm of their ratio, in which a
/// drift that both share cancels. Slices are joined until each has the requests for that.
class percentiles_of_slices {
public:
    percentiles_of_slices(const slo& s, const values_at_once& v) : s_(s) {
        const auto least = static_cast<std::size_t>(least_values_of(s.statistic));
        for (std::size_t joined = 1; v.slices / joined >= least_slices_at_once; ++joined) {
            const vector<vector<double>> mine = joined_slices(v.mine, v.slices / joined, joined),
                                         other = joined_slices(v.other, v.slices / joined, joined);
            const auto has_enough = [&](const vector<double>& of) { return of.size() >= least; };
            if (!all_of(mine, has_enough) || !all_of(other, has_enough)) continue;
            for (std::size_t i = 0; i < mine.size(); ++i)
                differences_.push_back(difference(mine[i], other[i]));
            break;
        }
        const auto is_finite = [](double x) { return std::isfinite(x); };
        if (!all_of(differences_, is_finite)) differences_.clear();  // failures reach them
    }
    bool are_known() const { return !differences_.empty(); }
    distance_at_once at(double limit) const {
        const double sign = s_.at_most ? 1 : -1, mean = mean_of(differences_);
        vector<double> parts;
        for (const double x : differences_)
            parts.push_back(sign * (x - mean) / static_cast<double>(differences_.size()));
        return {sign * (mean - (is_difference(s_) ? limit : std::log(limit))), std::move(parts)};
    }

private:
    static vector<vector<double>> joined_slices(const sliced_values& of, std::size_t groups,
                                                std::size_t joined) {
        vector<vector<double>> all(groups);
        for (std::size_t i = 0; i < of.values.size(); ++i)
            all[std::min(of.slices[i] / joined, groups - 1)].push_back(of.values[i]);
        return all;
    }
    double difference(const vector<double>& mine, const vector<double>& other) const {
        const double a = percentile_between_ranks(mine, s_.statistic.q);
        const double b = percentile_between_ranks(other, s_.statistic.q);
        return is_difference(s_) ? a - s_.factor * b : std::log(a / b);
    }

    const slo& s_;
    vector<double> differences_{};
};

/// How far the share of a variant's requests beyond a bound is over the tail of the percentile, or
/// under it with a `sign` of -1.
inline interim_analysis analysis_of_tail(const slo& s, const sliced_values& of, std::size_t slices,
                                         double bound, double sign, const judging_rule& rule) {
    const auto is_beyond = [&](double x) { return s.at_most ? x > bound : x < bound; };
    vector<double> parts(slices, 0.0);
    double misses = 0;
    for (const double x : of.values) misses += is_beyond(x);
    const double n = of.count(), share = misses / n;
    for (std::size_t i = 0; i < of.values.size(); ++i)
        parts[of.slices[i]] += sign * (is_beyond(of.values[i]) - share) / n;
    const double tail = s.at_most ? 1 - s.statistic.q : s.statistic.q;
    const double least = std::sqrt(n * std::min(share, 1 - share) + 1) / n;
    return analysis_of_parts({sign * (share - tail), std::move(parts)}, least, rule);
}

/// The rule of a second test of the same, at half of its levels.
inline judging_rule at_half_levels(judging_rule rule) {
    for (double* z : {&rule.pass_z, &rule.fail_z})
        *z = -normal_quantile(normal_cdf(-*z) / 2);
    return rule;
}

/// An analysis, and what each slice adds to its distance.
struct analysed_slices {
    interim_analysis analysis{};
    vector<double> parts{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
