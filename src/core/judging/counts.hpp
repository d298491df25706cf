// counts of misses: fractions, and percentiles that failures reach
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/slices.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // clamp, max, min, reverse, sort
#include <cmath>  // ceil, floor, log10, nextafter, pow, round, sqrt
#include <map>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// "p_q(T) <= X" says that a fraction of at most 1-q of the requests has T > X.
inline double allowed_misses(const slo& s) {
    if (s.statistic.kind == statistic_kind::percentile)
        return s.at_most ? 1 - s.statistic.q : s.statistic.q;
    return s.at_most ? s.bound : 1 - s.bound;
}
/// Failures, or misses of a fraction, in the first repeats. Of a `limit` the values beyond it.
inline vector<vector<bool>> misses_in(const variant_columns& of, std::size_t repeats,
                                      const slo* limit = nullptr) {
    vector<vector<bool>> all;
    for (std::size_t i = 0; i < std::min(repeats, of.each.size()); ++i) {
        vector<bool>& misses = all.emplace_back();
        if (!limit) { misses = of.each[i]->misses; continue; }
        for (const double v : of.each[i]->values->in_order)
            misses.push_back(limit->at_most ? v > limit->bound : v < limit->bound);
    }
    return all;
}

/// A row of misses with at most one success between them: how many, and their square. A row that
/// lasts for several slices counts once in each.
struct miss_burst {
    double misses = 0, squares = 0;
};
inline vector<miss_burst> bursts_in(const vector<vector<bool>>& repeats, std::size_t slices) {
    vector<miss_burst> all;
    for (const auto& r : repeats) {
        const double slice = std::max(1.0, as_number(r.size()) / as_number(slices));
        std::size_t from = 0, last = 0;
        double size = 0;
        const auto end_burst = [&] {
            const double lasts = std::max(1.0, std::round(as_number(last + 1 - from) / slice));
            all.push_back({size, size * size / lasts});
            size = 0;
        };
        for (std::size_t i = 0; i < r.size(); ++i) {
            if (!r[i]) continue;
            if (size > 0 && i - last > 2) end_burst();
            if (size == 0) from = i;
            ++size;
            last = i;
        }
        if (size > 0) end_burst();
    }
    return all;
}
/// The size of the burst of an average miss, and its standard error.
struct burst_estimate {
    double size = 1, error = 0;
};
/// Where misses are rare, a row of them is one burst. A design effect from batches is too small
/// for a burst that fills many batches or half of two.
inline burst_estimate burst_estimate_of(const vector<vector<bool>>& repeats, double allowed,
                                        std::size_t slices = 1) {
    if (allowed > 0.05) return {};  // neighbours by chance would be frequent
    const vector<miss_burst> all = bursts_in(repeats, slices);
    double misses = 0, squares = 0, trials = 0, off = 0;
    for (const auto& r : repeats) trials += as_number(r.size());
    for (const miss_burst& b : all) {
        misses += b.misses;
        squares += b.squares;
    }
    if (!(misses > 0 && misses < trials)) return {};
    const double size = squares / misses, n = as_number(all.size());
    for (const miss_burst& b : all)
        off += (b.squares - size * b.misses) * (b.squares - size * b.misses);
    return {size, n > 1 ? std::sqrt(off * n / (n - 1)) / misses : 0};  // of a ratio of two means
}
inline double burst_size(const vector<vector<bool>>& repeats, double allowed,
                         std::size_t slices = 1) {
    return burst_estimate_of(repeats, allowed, slices).size;
}
/// What a later run is held against of the fraction in a repeat.
inline kept_counts counts_to_keep(const column& c) {
    const vector<vector<bool>> one{c.misses};
    const double burst = burst_size(one, c.counts.misses / c.counts.all);
    return {c.counts.misses, c.counts.all, std::max(design_effect(one), burst)};
}

/// The repeats as clusters, whatever the misses do inside them. If the true fraction is within the
/// limit, each repeat's is expected to be at most `allowed`, so that the product of the ratios
/// exceeds 1 / alpha in at most a fraction alpha of gates, at any analysis (Ville 1939).
inline double product_of_fractions(const vector<double>& fractions, double allowed) {
    double product = 1;
    for (const double fraction : fractions) product *= fraction / allowed;
    return product;
}

/// Whether misses cluster by repeat. Answers do not: their questions are the same in each repeat.
inline bool fails_by_repeats(const slo& s) { return !is_of_answers(s.statistic.metric); }

/// Trials that are the same in each repeat, such as questions, are mostly always right or always
/// wrong. Only the others vary, so pooled counts vary by less than independent trials (Hoeffding
/// 1956): an effect below 1, unless flips come in bursts or whole runs move.
inline void add_flips(miss_counts& c, const vector<shared_column>& all, std::size_t repeats) {
    struct trial {
        double misses = 0, times = 0;
        double variance() const { return misses * (times - misses) / (times * (times - 1)); }
    };
    std::map<long long, trial> trials;
    vector<double> fractions;
    for (std::size_t i = 0; i < repeats; ++i) {
        const column& of = *all[i];
        for (std::size_t k = 0; k < of.misses.size(); ++k) {
            trial& t = trials[of.questions[k]];
            t.misses += of.misses[k];
            ++t.times;
        }
        if (of.counts.all > 0) fractions.push_back(of.counts.misses / of.counts.all);
    }
    const auto runs = static_cast<double>(fractions.size());
    if (runs < 2) return;
    const double n = c.n / runs, binomial = n * c.allowed * (1 - c.allowed);
    c.flip_variance = 0;
    for (const auto& [place, t] : trials) {
        if (t.times < 2 || t.misses == 0 || t.misses == t.times) continue;
        c.flip_variance += t.variance() * t.times / runs;
        ++c.flipping;
    }
    c.max_flipping = chi_square_quantile(2.3263, 2 * c.flipping + 2) / 2;  // Poisson, 99 %
    // A question that a repeat asks several times flips so much more.
    const double times = std::max(runs, c.n / as_number(trials.size()));
    const double one = c.flipping > 0 ? c.flip_variance / c.flipping
                                      : times / runs * times / (4 * (times - 1));
    // Batches of neighbours, compared with the same trials of other repeats.
    double squares = 0, expected = 0;
    for (std::size_t i = 0; i < repeats; ++i) {
        vector<double> off;
        for (std::size_t k = 0; k < all[i]->misses.size(); ++k) {
            const trial& t = trials[all[i]->questions[k]];
            off.push_back(all[i]->misses[k] - t.misses / t.times);
            expected += t.misses * (t.times - t.misses) / (t.times * t.times);
        }
        const std::size_t batches = std::clamp<std::size_t>(off.size() / 5, 1, 20);
        for (std::size_t b = 0; b < batches; ++b) {
            double sum = 0;
            for (std::size_t k = b * off.size() / batches; k < (b + 1) * off.size() / batches; ++k)
                sum += off[k];
            squares += sum * sum;
        }
    }
    const double bursts = expected > 0 ? std::max(1.0, squares / expected) : 1;
    c.runs = runs;
    c.run_effect = sample_variance(fractions) * n * n / binomial;
    c.effect = std::max(std::min(1.0, c.max_flipping * one / binomial),
                        c.flip_variance * bursts / binomial);
}

/// The sorted values of the first repeats, with failed requests.
inline vector<double> sorted_values_in(const variant_columns& variant, std::size_t repeats) {
    vector<double> all;
    for (std::size_t i = 0; i < repeats; ++i) {
        const vector<double>& more = variant.each[i]->values->in_order;
        all.insert(all.end(), more.begin(), more.end());
    }
    std::sort(all.begin(), all.end());
    return all;
}
/// Sets how many neighbours miss together. A single load has nothing to hold a long burst against,
/// such as every second request of two replicas of which one is down.
inline void set_effect(miss_counts& c, const vector<vector<bool>>& misses, double allowed) {
    if (c.n == 0) return;
    if (misses.size() > 1) {
        c.effect = std::max(design_effect(misses), burst_size(misses, allowed));
        return;
    }
    c.effect = std::max(design_effect(misses, most_slices_at_once),
                        burst_size(misses, allowed, most_slices_at_once));
    c.slices = as_number(most_slices_at_once);
}
/// The misses of all repeats so far and their dependence.
inline miss_counts counted_misses(const variant_columns& of, const slo& s,
                                  const vector<vector<bool>>& misses, double allowed) {
    miss_counts c;
    c.allowed = allowed;
    vector<double> fractions;
    for (const auto& r : misses) {
        fraction_counts one;
        one.add(r);
        c.k += one.misses;
        c.n += one.all;
        if (one.all > 0) fractions.push_back(one.misses / one.all);
    }
    set_effect(c, misses, allowed_misses(s));
    if (is_of_answers(s.statistic.metric) && allowed > 0)
        add_flips(c, of.each, misses.size());
    if (fails_by_repeats(s)) c.product = product_of_fractions(fractions, c.allowed);
    c.factors = as_number(fractions.size());
    return c;
}

inline miss_counts counted_misses(const variant_columns& of, const slo& s, std::size_t repeats,
                                  double allowed) {
    return counted_misses(of, s, misses_in(of, repeats), allowed);
}

/// The quantile with its interval: a limit at its worse end or beyond passes, one before its better
/// end fails.
inline estimate_t quantile_estimate(const variant_columns& mine, const slo& s,
                                    std::size_t repeats, const analysis_of_misses& by) {
    vector<double> pooled = sorted_values_in(mine, repeats);
    if (pooled.empty()) return {not_a_number, not_a_number, not_a_number};
    const double value = nearest_rank(pooled, s.statistic.q);
    if (!s.at_most) std::reverse(pooled.begin(), pooled.end());
    const double best = s.at_most ? 0 : infinity, worst = s.at_most ? infinity : 0;
    // Sorted with the worst last: with j values beyond the limit, it is the one before those.
    const auto with_beyond = [&](double j) {
        const double i = as_number(pooled.size()) - 1 - j;
        return i < 0 ? best : pooled[static_cast<std::size_t>(i)];
    };
    const double most = by.seen.most_that_pass(by.at.pass);
    const double passes = most < 0 ? worst : with_beyond(most);
    const auto is_open_by_repeats = [&](double j) {
        slo before = s;  // these j values
        before.bound = std::nextafter(with_beyond(j - 1), best);
        const vector<vector<bool>> misses = misses_in(mine, repeats, &before);
        return counted_misses(mine, s, misses, by.seen.allowed).product < by.at.product;
    };
    const double fails = with_beyond(miss_counts::last_below(
        0, by.seen.fewest_that_fail(by.at.fail), is_open_by_repeats));
    return s.at_most ? estimate_t{value, fails, passes} : estimate_t{value, passes, fails};
}

inline count_levels count_levels_of(const slo& s, const judging_rule& r) {
    const double pass = 1 - normal_cdf(r.pass_z);
    if (!fails_by_repeats(s)) return {pass, 1 - normal_cdf(r.fail_z), infinity};
    return {pass, 1 - normal_cdf(r.half_fail_z), 2 / r.fail_level};
}

/// Returns how many requests in each repeat would decide an open fraction if it stays as it is;
/// nothing where that are over a hundred times as many. Quality is never told to lower its limit.
inline cause requests_that_decide(const decision& d) {
    constexpr double most_more = 100, step = 1.1;
    if (!d.counted || d.repeats < 1) return {};
    analysis_of_misses more = *d.counted;
    for (double times = 1; times < most_more; times *= step) {
        more.seen.k = d.counted->seen.k * times;
        more.seen.n = d.counted->seen.n * times;
        if (times == 1 || more.outcome() == verdict::inconclusive) continue;
        const double each = more.seen.n / d.repeats;
        const double digit = std::max(1.0, std::pow(10, std::floor(std::log10(each)) - 1));
        return cause_with<because::more_requests>(
            {{"requests", std::ceil(each / digit) * digit}}, whose::nobody,
            is_of_answers(d.objective.statistic.metric) ? "questions" : "requests");
    }
    return {};
}

/// Sets the estimate, interval and limits of a decision on counts.
inline void estimate_counts(decision& d, const objective_columns& of) {
    const slo& s = d.objective;
    const auto& [c, at, scale] = *d.counted;
    const double upper = d.counted->upper(), lower = d.counted->fails_below();
    if (!is_request_fraction(s.statistic.metric)) {
        const estimate_t q =
            quantile_estimate(of.mine, s, static_cast<std::size_t>(d.repeats), *d.counted);
        d.estimate = {q.value * scale, q.low * scale, q.high * scale};
    } else if (s.at_most) {
        d.estimate = {c.k / c.n, lower, upper};
    } else {
        d.estimate = {1 - c.k / c.n, 1 - upper, 1 - lower};
    }
    const double effect = c.effect_at(at.fail);
    const double fewest = c.fewest_that_fail(at.fail) / effect, n = c.n / effect;
    d.detectable = fewest > n ? 0 : bisect(0, 1, 0.8, [&](double p) {
        return incomplete_beta(fewest, n - fewest + 1, p);
    });
}

/// The objective on errors where a gate has no own one.
inline slo error_guard() {
    slo s;
    s.statistic = make_statistic(statistic_kind::value, metric_id::error_rate, 0);
    s.bound = 0.01;
    return s;
}
/// Whether the guard would be no looser than this limit: then its observed pass is one, too.
inline bool is_as_loose_as_guard(const slo& s) {
    return is_of_all_errors(s) && s.bound >= error_guard().bound;
}

/// Returns how one failed request of a variant ended: "http: HTTP 500".
inline std::string failure_example(const repeat_list& variant) {
    for (const repeat_data& d : variant)
        for (const record& r : d.records)
            if (is_measured(r) && has_failed(r))
                return std::string(to_string(r.status)) +
                       (r.error.empty() ? "" : ": " + printable(str(r.error), 200));
    return {};
}

/// Why errors of a live baseline rule out a comparison, or do so yet. A server that sheds load is
/// fast, and one that fails makes any candidate look good, so the candidate's limit on errors holds
/// for the baseline.
inline cause errors_of_baseline(const measurements& e, const judging_parameters& t,
                                const slo& limit) {
    const variant_columns all = columns_in(e, limit.statistic, e.baseline);
    const miss_counts c = counted_misses(all, limit, all.each.size(), allowed_misses(limit));
    if (c.n == 0 || c.k <= c.allowed * c.n) return {};
    const analysis_of_misses seen{c, count_levels_of(limit, t.rule)};
    cause why = cause_with<because::baseline_fails>(
        {{"failed", c.k}, {"of", c.n}, {"allowed", c.allowed}}, whose::baseline_server,
        failure_example(e.baseline));
    if (seen.outcome() != verdict::fail) why.what = because::baseline_may_fail;
    return why;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
