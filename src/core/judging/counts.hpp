// counts: shares, and quantiles of fresh traffic
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/reading.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/terms.hpp"

#include <algorithm>  // sort, min, reverse, max
#include <cmath>  // isnan, floor
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// "p_q(T) <= X" says that a share of at most 1-q of the requests has T > X.
inline bool is_worse(bool at_most, double value, double bound) {
    return at_most ? value > bound : value < bound;
}
inline double allowed_misses(const slo& s) {
    if (s.what.kind == statistic_kind::percentile) return s.at_most ? 1 - s.what.q : s.what.q;
    return s.at_most ? s.bound : 1 - s.bound;
}
inline std::vector<bool> misses_of(const slo& s, const repeat_data& d,
                                   reading how = reading::as_measured) {
    if (is_share(s.what.metric)) return misses_of(s.what, d, how);
    std::vector<bool> misses;
    for (const double v : values_in_order(s.what.metric, d, how))
        misses.push_back(is_worse(s.at_most, v, s.bound));
    return misses;
}

/// How dependent the misses are. So few lie beyond a high quantile that their own batches say
/// little: the misses of a lower one, five times as many, are the floor.
inline double effect_of(const evidence& e, const terms& t, const slo& s,
                        const std::vector<std::vector<bool>>& misses) {
    const bool is_fresh = t.rule.traffic == fresh;
    const double own = design_effect(misses, 20, is_fresh);
    if (is_share(s.what.metric)) return own;
    std::vector<std::vector<double>> values;
    std::vector<double> pooled;
    for (std::size_t i = 0; i < misses.size(); ++i) {
        values.push_back(values_in_order(s.what.metric, e.candidate[i], t.read));
        pooled.insert(pooled.end(), values[i].begin(), values[i].end());
    }
    std::sort(pooled.begin(), pooled.end());
    const double more = std::min(0.5, 5 * allowed_misses(s));
    if (!s.at_most) std::reverse(pooled.begin(), pooled.end());  // the worst come last
    const double lower = nearest_rank(pooled, 1 - more);
    std::vector<std::vector<bool>> beyond(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        for (const double v : values[i]) beyond[i].push_back(is_worse(s.at_most, v, lower));
    return std::max(own, design_effect(beyond, 20, is_fresh));
}

/// What k misses in n trials show, dependence divided out.
struct miss_counts {
    double k = 0, n = 0, effect = 1, allowed = 0;
    double upper(double alpha) const {
        return clopper_pearson_upper(k / effect, n / effect, alpha);
    }
    double lower(double alpha) const {
        return clopper_pearson_lower(k / effect, n / effect, alpha);
    }
    /// The most misses that pass, -1 where not even none does; the fewest that fail.
    double most_that_pass(double alpha) const {
        double low = -1, high = n;
        while (high - low > 1) {
            const double mid = std::floor((low + high) / 2);
            (miss_counts{mid, n, effect, allowed}.upper(alpha) <= allowed ? low : high) = mid;
        }
        return low;
    }
    double fewest_that_fail(double alpha) const {
        double low = 0, high = n + 1;
        while (high - low > 1) {
            const double mid = std::floor((low + high) / 2);
            (miss_counts{mid, n, effect, allowed}.lower(alpha) > allowed ? high : low) = mid;
        }
        return high;
    }
};

/// The quantile, and the limits that would just pass at this level and just fail.
inline estimate_t quantile_estimate(const evidence& e, const slo& s, std::size_t stages,
                                    const miss_counts& c, double pass_alpha) {
    std::vector<double> pooled;
    for (std::size_t i = 0; i < stages; ++i) {
        const std::vector<double> more = values_in_order(s.what.metric, e.candidate[i]);
        pooled.insert(pooled.end(), more.begin(), more.end());
    }
    if (pooled.empty()) return {not_a_number, not_a_number, not_a_number};
    std::sort(pooled.begin(), pooled.end());
    const double value = nearest_rank(pooled, s.what.q);
    if (!s.at_most) std::reverse(pooled.begin(), pooled.end());
    // Worst values come last: with j of them beyond, the limit is the one before those.
    const auto with_beyond = [&](double j) {
        const double i = static_cast<double>(pooled.size()) - 1 - j;
        return i < 0 ? (s.at_most ? 0 : infinity) : pooled[static_cast<std::size_t>(i)];
    };
    const double most = c.most_that_pass(pass_alpha), fewest = c.fewest_that_fail(pass_alpha);
    const double worst = s.at_most ? infinity : 0;
    const double would_pass = most < 0 ? worst : with_beyond(most);
    const double would_fail = with_beyond(fewest);
    return s.at_most ? estimate_t{value, would_fail, would_pass}
                     : estimate_t{value, would_pass, would_fail};
}

/// The misses of all repeats so far, and how dependent they are.
inline miss_counts counted_misses(const evidence& e, const terms& t, const slo& s,
                                  const std::vector<std::vector<bool>>& misses) {
    miss_counts c;
    c.allowed = allowed_misses(s);
    for (const auto& r : misses)
        for (const bool miss : r) { c.k += miss; ++c.n; }
    if (c.n > 0) c.effect = effect_of(e, t, s, misses);
    return c;
}

/// What one look at the counts says, as the reader's numbers and inputs, and its outcome.
inline verdict tell_counts(slo_verdict& v, const evidence& e, const miss_counts& c,
                           double pass_alpha, double fail_alpha) {
    const slo& s = v.what;
    const double upper = c.upper(pass_alpha), lower = c.lower(fail_alpha);
    const double shown_lower = c.lower(pass_alpha);
    if (!is_share(s.what.metric))
        v.estimate = quantile_estimate(e, s, static_cast<std::size_t>(v.repeats), c, pass_alpha);
    else if (s.at_most) v.estimate = {c.k / c.n, shown_lower, upper};
    else v.estimate = {1 - c.k / c.n, 1 - upper, 1 - shown_lower};
    const double fewest = c.fewest_that_fail(fail_alpha) / c.effect, n = c.n / c.effect;
    v.detectable = fewest > n ? 0 : bisect(0, 1, 0.8, [&](double p) {
        return incomplete_beta(fewest, n - fewest + 1, p);
    });
    v.arithmetic = printed(
        "misses %.0f of %.0f, design effect %.3f, so %.6g of %.6g independent ones; upper "
        "bound %.6g at level %.4g, lower bound %.6g at level %.4g (one-sided Clopper-Pearson); "
        "allowed share of misses %.6g",
        c.k, c.n, c.effect, c.k / c.effect, c.n / c.effect, upper, pass_alpha, lower,
        fail_alpha, c.allowed);
    v.inputs = {{"misses", {c.k}}, {"trials", {c.n}}, {"design_effect", {c.effect}},
                {"allowed", {c.allowed}}, {"pass_level", {pass_alpha}},
                {"fail_level", {fail_alpha}}, {"upper_bound", {upper}},
                {"lower_bound", {lower}}};
    return upper <= c.allowed  ? verdict::pass
           : lower > c.allowed ? verdict::fail
                               : verdict::inconclusive;
}

/// Shares, and quantiles of fresh traffic, are judged on pooled counts of misses by one-sided
/// Clopper-Pearson bounds.
inline slo_verdict judge_counts(const evidence& e, const terms& t, const slo& s,
                                bool to_the_end = false) {
    slo_verdict v = undecided(s);
    v.limit = s.bound;
    v.method = method_counts;
    const double pass_alpha = 1 - normal_cdf(t.rule.pass_z);
    const double fail_alpha = 1 - normal_cdf(t.rule.fail_z);
    // The looks of the gate's other verdicts.
    const auto first = static_cast<std::size_t>(t.rule.traffic == fresh     ? 1
                                                : e.has_live_baseline() ? first_pair_look
                                                                        : first_look);
    std::vector<std::vector<bool>> misses;
    int looks = 0;
    for (std::size_t i = 0; i < e.candidate.size(); ++i) {
        misses.push_back(misses_of(s, e.candidate[i], t.read));
        const bool at_the_end = i + 1 == e.candidate.size();
        if (!at_the_end && (i + 1 < first || looks + 1 >= t.rule.looks)) continue;
        ++looks;
        const miss_counts c = counted_misses(e, t, s, misses);
        if (c.n == 0) continue;
        v.repeats = static_cast<int>(i + 1);
        const verdict outcome = tell_counts(v, e, c, pass_alpha, fail_alpha);
        if (i + 1 < first) break;
        if (outcome != verdict::inconclusive) v.outcome = outcome;
        if (v.outcome != verdict::inconclusive && !to_the_end) break;
    }
    v.requests = measured_requests(e, static_cast<std::size_t>(v.repeats));
    if (v.repeats == 0) {
        v.outcome = verdict::invalid;
        v.reason = "no measured request has a value of " + str(s.what.name);
    }
    return v;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
