// values: times, speeds and rates
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/columns.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/comparison.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/walk.hpp"

#include <algorithm>  // max, min
#include <cmath>  // exp, fabs, isfinite, isnan, log1p, sqrt
#include <cstddef>  // size_t
#include <utility>  // move, swap

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Sets the interval: each end is the bound that decides on its side, at the level of that side.
/// So few repeats that they hardly fail have no such bound of a size: beside their pass that end is
/// at its level, too, where that is nearer.
inline void set_interval(decision& d) {
    const auto back = [&](double x) { return at_distance(d.objective, x, d.limit, d.scale); };
    const interim_analysis& l = d.last;
    const bool is_early_pass =
        d.outcome == verdict::pass && !d.paired && d.repeats < first_fail;
    const double at_level_of_pass = 2 * l.mean - l.pass_bound;
    const double fail_end =
        is_early_pass ? std::max(l.fail_bound, at_level_of_pass) : l.fail_bound;
    d.estimate = {back(l.mean), back(fail_end), back(l.pass_bound)};
    if (!d.objective.at_most) std::swap(d.estimate.low, d.estimate.high);
}
/// Sets the estimate of an analysis with a standard error. `repeats` of `most` are known.
inline void estimate_analysis(decision& d, double most, double repeats,
                              const stored_side& other = {}) {
    const interim_analysis& l = d.last;
    const auto back = [&](double distance) { return at_distance(d.objective, distance, d.limit); };
    set_interval(d);
    if (is_difference(d.objective)) {  // in its unit
        d.detectable = std::log1p(l.detectable) * d.scale;
        return;
    }
    d.detectable = d.limit == 0 ? 0 : fraction_of_limit(d.objective, std::log1p(l.detectable));
    most = std::max(most, repeats);
    const double more = l.df + most - repeats;
    if (!(more > 2) || !(l.mean < 0)) return;  // two repeats cannot predict five
    // Repeats that agree may do so by luck: the bound of four in five cases, as of a calibration.
    const double sd = l.spread == spread_of::measured ? std::max(l.sd, l.prior_sd)
                      : l.spread == spread_of::quiet
                          ? l.sd * std::sqrt(l.df / chi_square_20(l.df))
                          : l.sd;
    const double last_se = other.error(sd * sd * (1 / most + other.share()));
    const double t = student_t_quantile(normal_cdf(l.pass_z), more);
    const double to_write = back(l.mean + (t + 1.645) * last_se + l.pass_margin);
    if (-l.mean >= (t + four_in_five) * last_se + l.pass_margin || !(to_write > 0)) return;
    const double headroom = -fraction_of_limit(d.objective, l.mean);
    const bool by_modes = l.pass_margin > last_se;  // less than repeats that agree can show
    d.advice = cause_with<because::headroom_in_noise>(
        {{"headroom", headroom}, {"noise", by_modes ? 0 : l.sd}, {"better", to_write}});
}

/// The repeats so far. A miss without a size has no logarithm, so it is counted.
struct observed_repeats {
    vector<double> values{}, distances{};
    std::size_t unbounded = 0;
    double scale = 1;  // of a difference
    void add(double value, const slo& s, double limit) {
        values.push_back(value);
        const bool has_no_log = with_offset(s.statistic.metric, value) == 0 && is_on_the_log(s);
        const bool miss = s.at_most ? value == infinity : has_no_log || value == -infinity;
        unbounded += miss;
        if (!miss) distances.push_back(distance_of(s, value, limit, scale));
    }
    /// Whether every repeat is at twice the limit or beyond; infinite ones are.
    bool are_blatant(const slo& s) const {
        return values.size() >= 2 &&
               all_of(distances, [&](double d) { return is_blatant_distance(s, d); });
    }
};

/// The limit of a percentile for failures: allowed fraction of requests beyond it, failed ones
/// included. `bound` is the limit as a value; a stored or live baseline's is itself an estimate.
struct limit_of_values {
    double bound = 0, allowed = 0;
    bool may_pass = false;  // counts cannot show a pass of a comparison
};
/// The limit by the values of a live baseline. As much of it may be beyond its own estimate.
inline limit_of_values limit_by_column(const judging_rule& rule, const slo& s,
                                       const comparison& c, std::size_t repeats) {
    const double allowed = allowed_misses(s);
    const vector<double> pooled = sorted_values_in(c.of_columns->other, repeats);
    if (pooled.empty()) return {not_a_number, allowed};
    const auto n = static_cast<double>(pooled.size());
    return {s.factor * nearest_rank(pooled, s.statistic.q) + s.offset,
            clopper_pearson_upper(n * allowed, n, count_levels_of(s, rule).fail)};
}
/// The limit by the value of an earlier run: differences between days are no regression.
inline double bound_by_earlier(const slo& s, const comparison& c) {
    const double days = 1 + 2 * c.stored.day_sd, factor = s.at_most ? days : 1 / days;
    const auto looser = [&](double a, double b) {
        return s.at_most ? std::max(a, b) : std::min(a, b);
    };
    if (!is_difference(s)) return looser(s.factor, factor) * std::exp(c.base_log);
    return looser(s.factor * c.others_together + s.offset, factor * c.others_together);
}
inline limit_of_values limit_of_values_of(const judging_parameters& t, const slo& s,
                                          const comparison& c, std::size_t repeats) {
    switch (c.to) {
    case against::number: break;
    case against::column: return limit_by_column(t.rule, s, c, repeats);
    case against::stored:
    case against::past: return {bound_by_earlier(s, c), allowed_misses(s)};
    }
    return {s.bound, allowed_misses(s), true};
}

/// Of a percentile that failures reach in some repeats: by the pooled requests beyond its limit.
inline void show_counts(evidence& x, decision& d, const judging_parameters& t,
                        const comparison& c) {
    const auto repeats = static_cast<std::size_t>(d.repeats);
    const variant_columns& mine = c.of_columns->mine;
    const limit_of_values l = limit_of_values_of(t, d.objective, c, repeats);
    const bool is_known = std::isfinite(l.bound) && l.bound > 0;
    slo s = d.objective;
    s.bound = l.bound;
    const vector<vector<bool>> misses = misses_in(mine, is_known ? repeats : 0, &s);
    const miss_counts counts = counted_misses(mine, s, misses, l.allowed);
    if (counts.n == 0) return;
    d.counted = analysis_of_misses{counts, count_levels_of(s, t.rule), d.limit / l.bound};
    x.words = {cause_with<because::failed_or_beyond>(
        {{"failed", counts.k}, {"of", counts.n}, {"allowed", counts.allowed}})};
    x.outcome = d.counted->outcome();
    if (x.outcome == verdict::pass && !l.may_pass) x.outcome = verdict::inconclusive;
}
/// The same for gaps, by repeats only, since one request has many.
inline bool gaps_miss(const decision& d, const judging_parameters& t, const comparison& c) {
    if (c.to != against::number) return false;
    const slo& s = d.objective;
    vector<double> fractions;
    for (std::size_t i = 0; i < static_cast<std::size_t>(d.repeats); ++i)
        fractions.push_back(
            fraction_of_gaps_beyond(s.bound, c.of_columns->mine.each[i]->values->sorted));
    return product_of_fractions(fractions, allowed_misses(s)) >=
           count_levels_of(s, t.rule).product;
}
/// Where failures reach the statistic in some repeats, so that it has no size.
inline evidence evidence_of_misses(decision& d, const observed_repeats& seen,
                                   const judging_parameters& t, const comparison& c,
                                   int fails_from) {
    const std::size_t n = seen.values.size();
    const statistic_data& what = d.objective.statistic;
    evidence x{.n = as_number(n), .takes = {0, fails_from}};
    d.counted.reset();
    x.words = {cause_with<because::no_size>(
        {{"unbounded", seen.unbounded}, {"repeats", n}, {"at_most", d.objective.at_most}})};
    if (is_of_server(what.metric)) x.words[0].what = because::no_finite_value;
    const bool is_percentile =
        what.kind == statistic_kind::percentile && !is_of_server(what.metric);
    const bool half = seen.unbounded >= 2 && 2 * seen.unbounded >= n;
    if (is_percentile && !pools_gaps(what.metric)) show_counts(x, d, t, c);
    else if (is_percentile ? gaps_miss(d, t, c) : half) x.outcome = verdict::fail;
    return x;
}

/// Why a repeat has no value or baseline value: failures reach the statistic, or a speed has no
/// time.
inline cause why_no_value(const comparison& c, const slo& s, std::size_t repeat) {
    const cause none =
        cause_with<because::no_value_in>({{"repeat", repeat + 1}, {"is_ratio", !is_absolute(s)}});
    const bool by_baseline = c.is_paired();
    if (!by_baseline && !is_ratio(s.statistic.metric)) return none;
    const statistic_data& by = by_baseline ? s.statistic : s.statistic.parts[1];
    const column& d = *(by_baseline ? c.of_columns->other : c.of_columns->to).each[repeat];
    const double value = with_offset(by.metric, d.value);
    if (std::isnan(value) || (value > 0 && value < infinity)) return none;
    const whose of = by_baseline ? whose::baseline_server : whose::server;
    return cause_with<because::over_nothing>({{"repeat", repeat + 1},
                                              {"is_infinite", value > 0},
                                              {"failed", d.failed},
                                              {"of", d.requests}},
                                             of, str(by.name));
}

/// An analysis of the values. The noise of earlier runs counts unless a calibration was named.
inline interim_analysis analysis_of_values(const judging_parameters& t, const slo& s,
                                           const comparison& c,
                                           const vector<double>& distances, double s0,
                                           const judging_rule& rule) {
    if (const calibrated_noise known = c.calibrated(t, s); known.df > 0)
        return analysis_by_calibration(distances, known, s0, t.rule);
    if (c.is_paired()) return analysis_of_pairs(distances, s0, rule);
    if (t.past && !(t.day_sd > 0) && !is_of_start(s.statistic.metric) &&
        !t.noise_of(s))
        if (const auto by_past = t.past->analysis_of(s, distances, rule)) return *by_past;
    return analysis_of_repeats(distances, s0, rule, c.stored);
}
/// Widens the interval of a difference by what the client cannot tell.
inline void widen(decision& d, double by, const judging_rule& rule) {
    d.last.pass_margin += by;
    d.last.fail_margin += by;
    judging_rule same = rule;
    same.pass_z = d.last.pass_z;
    same.fail_z = d.last.fail_z;
    d.last = decided(d.last, same);
}
inline verdict_method method_of(spread_of spread) {
    return spread == spread_of::moderated || spread == spread_of::assumed
               ? verdict_method::moderated_t
           : spread == spread_of::noisy   ? verdict_method::noisy_t
                                          : verdict_method::t;
}
/// Why pairs are open: they spread, or two processes of one build may differ by as much.
inline cause spread_of_pairs(const decision& d, double s0, judging_rule rule) {
    const double spread = std::sqrt(sample_variance(d.distances));
    if (spread > s0)
        return cause_with<because::pairs_spread>({{"spread", spread}, {"believed", s0}});
    if (d.outcome != verdict::inconclusive || !d.why.empty() || d.repeats < first_pair_analysis)
        return {};
    rule.pairs_are_fresh = true;
    const bool is_luck =
        analysis_of_pairs(d.distances, s0, rule).outcome != verdict::inconclusive;
    return is_luck ? cause_with<because::lasting_luck>({{"spread", spread}}) : cause{};
}
/// Why the noise is another than what is known of it, or than a quiet machine's.
inline cause spread_of_repeats(const decision& d, double s0, const calibrated_noise& known) {
    if (known.df > 0 && (is_noisier(d.distances, known) || is_far_quieter(d.distances, known))) {
        const double spread = std::sqrt(sample_variance(d.distances));
        return cause_with<because::not_as_calibrated>({{"spread", spread},
                                                       {"calibrated", known.sd},
                                                       {"is_more", spread > known.sd}});
    }
    const own_spread own = own_spread_of(d.distances, d.stored);
    const interim_analysis l = moderated_analysis(d.last.mean, own.squares, own.df, s0);
    if (l.spread != spread_of::noisy) return {};
    return cause_with<because::repeats_spread>(
        {{"spread", std::sqrt(own.squares / own.df)}, {"quiet", l.prior_sd}});
}

/// Times, speeds and rates on logarithms: of the statistic of each repeat, of the ratio of each
/// pair, or of repeats against a stored run.
class by_values final : public method {
public:
    by_values(const objective_columns& of, const judging_parameters& t_, const slo& s_)
        : method(of, t_, s_), s0_(prior_sd_of(t_, s_, of.are_pairs())),
          rule_(rule_for(t_, s_, of.pairs_are_fresh)) {
        if (is_difference(s_)) seen_.scale = c.scale;
    }
    taken_repeat take(std::size_t i) override {
        const double value = c.of_repeat(i);
        if (std::isnan(value))
            return {false, is_of_start(s.statistic.metric) ? cause{} : why_no_value(c, s, i)};
        seen_.add(value, s, limit_of(s));
        return {};
    }
    evidence shown(decision& d, const fewest_repeats& takes) override {
        const bool are_blatant = seen_.are_blatant(s);
        const int fails_from = are_blatant && !c.is_paired() && t.rule.revision > 1
                                   ? std::min(first_analysis, takes.fail)
                                   : takes.fail;
        if (seen_.unbounded > 0) return evidence_of_misses(d, seen_, t, c, fails_from);
        const std::size_t n = seen_.values.size();
        const bool by_any_noise = are_blatant && fails_from < first_fail && n < first_fail;
        d.last = by_any_noise ? analysis_of_blatant_miss(seen_.distances, c.is_paired(), rule_)
                              : analysis();
        if (is_difference(s)) widen(d, d.client_part / c.scale, rule_);
        return {.outcome = d.last.outcome, .n = as_number(n),
                .takes = {takes.pass, std::max(takes.pass, fails_from)},
                .is_of_days = is_of_days(d)};
    }
    cause nothing() const override {
        return is_of_start(s.statistic.metric) ? cause{because::start_unknown}
                                               : method::nothing();
    }
    void end(decision& d, sought) const override {
        d.values = seen_.values;
        d.decided_by = verdict_method::counted_misses;
        if (seen_.unbounded > 0) return;
        d.decided_by = method_of(d.last.spread);
        d.scale = seen_.scale;
        d.distances = seen_.distances;
        d.stored = c.stored;
        if (c.stored.repeats > 0) d.stored_values = c.others;
        cause why = d.paired ? spread_of_pairs(d, s0_, rule_) : cause{};
        if (why) d.why.clear();
        else why = spread_of_repeats(d, s0_, c.calibrated(t, s));
        if (why) d.why.insert(d.why.begin(), std::move(why));
    }
    /// Whether the noise of the repeats or pairs leaves a verdict open, not that of a prior.
    bool ask_for_more() const {
        if (seen_.unbounded > 0 || seen_.distances.size() < 2 || c.to == against::past)
            return false;
        const spread_of by = analysis().spread;
        if (by == spread_of::quiet || c.calibrated(t, s).df > 0) return true;
        return c.is_paired() ? std::sqrt(sample_variance(seen_.distances)) > s0_
                             : by == spread_of::measured;
    }

private:
    interim_analysis analysis() const {
        return analysis_of_values(t, s, c, seen_.distances, s0_, rule_);
    }
    bool is_of_days(const decision& d) const {
        const double typical = at_distance(s, d.last.mean, d.limit, c.scale);
        const double ratio =
            is_difference(s) ? typical / c.others_together + s.factor : typical;
        return c.stored.repeats > 0 && std::fabs(ratio - 1) < 2 * c.stored.day_sd;
    }

    observed_repeats seen_{};
    double s0_;
    judging_rule rule_;
};

/// Whether a verdict is open by the noise of the repeats or pairs, not by a prior.
inline bool asks_for_more(const measurements& e, const judging_parameters& t,
                          const verdict_numbers& v) {
    const slo& s = v.objective;
    if (v.outcome != verdict::inconclusive || !is_judged_by_spread(s.statistic.metric))
        return false;
    const objective_columns of = columns_of(e, s);
    if (of.are_pairs() && is_absolute(s)) return false;
    by_values by(of, t, s);
    for (std::size_t i = 0; i < by.repeats(); ++i) by.take(i);
    return by.ask_for_more();
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
