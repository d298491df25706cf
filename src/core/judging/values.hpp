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

#include <algorithm>  // max, min
#include <cmath>  // exp, fabs, isfinite, isnan, log, log1p, sqrt
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
    const double shares = 1 / most + (other.repeats > 0 ? 1 / other.repeats : 0);
    // Repeats that agree may do so by luck: the bound of four in five cases, as of a calibration.
    const double sd = l.spread == spread_of::measured ? std::max(l.sd, l.prior_sd)
                      : l.spread == spread_of::quiet
                          ? l.sd * std::sqrt(l.df / chi_square_20(l.df))
                          : l.sd;
    const double last_se = std::sqrt(sd * sd * shares + other.day_sd * other.day_sd);
    const double t = student_t_quantile(normal_cdf(l.pass_z), more);
    const double to_write = back(l.mean + (t + 1.645) * last_se + l.pass_margin);
    if (-l.mean >= (t + four_in_five) * last_se + l.pass_margin || !(to_write > 0)) return;
    const double headroom = -fraction_of_limit(d.objective, l.mean);
    d.advice = l.pass_margin > last_se
                   ? cause_with<because::headroom_in_modes>({{"headroom", headroom},
                                                             {"better", to_write}})
                   : cause_with<because::headroom_in_noise>(
                         {{"headroom", headroom}, {"noise", l.sd}, {"better", to_write}});
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
    bool may_pass = true;  // counts cannot show a pass of a comparison
};
inline limit_of_values limit_of_values_of(const judging_parameters& t, const slo& s,
                                          const comparison& c, std::size_t repeats) {
    limit_of_values l{s.bound, allowed_misses(s), !c.relative};
    if (!c.relative) return l;
    if (!c.paired) {  // differences between days are no regression
        const double days = 1 + 2 * c.stored.day_sd;
        const double factor = s.at_most ? std::max(s.factor, days) : std::min(s.factor, 1 / days);
        l.bound = factor * std::exp(c.base_log);
        if (is_difference(s)) {
            const double limit = s.factor * c.others_together + s.offset;
            const double days_off = (s.at_most ? days : 1 / days) * c.others_together;
            l.bound = s.at_most ? std::max(limit, days_off) : std::min(limit, days_off);
        }
        return l;
    }
    const vector<double> pooled = sorted_values_in(c.of_columns->other, repeats);
    if (pooled.empty()) return {not_a_number, l.allowed, false};
    l.bound = s.factor * nearest_rank(pooled, s.statistic.q) + s.offset;
    // As much of the baseline may be beyond its own estimate.
    const auto n = static_cast<double>(pooled.size());
    l.allowed = clopper_pearson_upper(n * l.allowed, n, count_levels_of(s, t.rule).fail);
    return l;
}

/// Decides a percentile that failures reach in some repeats by the pooled requests beyond its
/// limit.
inline verdict decide_by_counts(decision& d, const judging_parameters& t, const comparison& c) {
    const auto repeats = static_cast<std::size_t>(d.repeats);
    const variant_columns& mine = c.of_columns->mine;
    const limit_of_values l = limit_of_values_of(t, d.objective, c, repeats);
    const bool is_known = std::isfinite(l.bound) && l.bound > 0;
    slo s = d.objective;
    s.bound = l.bound;
    const vector<vector<bool>> misses = misses_in(mine, is_known ? repeats : 0, &s);
    const miss_counts counts = counted_misses(mine, s, misses, l.allowed);
    if (counts.n == 0) return verdict::inconclusive;
    d.counted = analysis_of_misses{counts, count_levels_of(s, t.rule), d.limit / l.bound};
    d.why = {cause_with<because::failed_or_beyond>(
        {{"failed", counts.k}, {"of", counts.n}, {"allowed", counts.allowed}})};
    const verdict outcome = d.counted->outcome();
    return outcome == verdict::pass && !l.may_pass ? verdict::inconclusive : outcome;
}
/// The same for gaps, by repeats only, since one request has many.
inline verdict decide_by_gaps(const decision& d, const judging_parameters& t,
                              const comparison& c) {
    const auto repeats = static_cast<std::size_t>(d.repeats);
    if (c.relative) return verdict::inconclusive;
    vector<double> fractions;
    for (std::size_t i = 0; i < repeats; ++i)
        fractions.push_back(fraction_of_gaps_beyond(
            d.objective.bound, c.of_columns->mine.each[i]->values->sorted));
    const double product = product_of_fractions(fractions, allowed_misses(d.objective));
    return product >= count_levels_of(d.objective, t.rule).product ? verdict::fail
                                                              : verdict::inconclusive;
}

/// Leaves a fail open before so many repeats, and where the value is `off` from a stored one's by
/// less than `days` may be: no regression.
inline void open_early_fail(decision& d, int fails_from, double off = infinity, double days = 0) {
    if (d.outcome != verdict::fail) return;
    if (d.repeats < fails_from)
        d = decided(std::move(d), verdict::inconclusive, {because::too_few_to_fail});
    else if (off < days)
        d.outcome = verdict::inconclusive;
}

/// Decides where failures reach the statistic in some repeats, so that it has no size.
inline void decide_by_misses(decision& d, const observed_repeats& seen,
                             const judging_parameters& t, const comparison& c, int fails_from) {
    const std::size_t n = seen.values.size();
    const statistic_data& what = d.objective.statistic;
    d.counted.reset();
    d.why = {cause_with<because::no_size>(
        {{"unbounded", seen.unbounded}, {"repeats", n}, {"at_most", d.objective.at_most}})};
    if (is_of_server(what.metric)) d.why[0].what = because::no_finite_value;
    const bool is_percentile =
        what.kind == statistic_kind::percentile && !is_of_server(what.metric);
    const bool half = seen.unbounded >= 2 && 2 * seen.unbounded >= n;
    d.outcome = is_percentile && pools_gaps(what.metric) ? decide_by_gaps(d, t, c)
                : is_percentile ? decide_by_counts(d, t, c)
                : half          ? verdict::fail
                                : verdict::inconclusive;
    open_early_fail(d, fails_from);
}

/// Why failures invalidate a percentile, of a variant or a part of a ratio.
inline cause failures_in_tail(const judging_parameters& t, const slo& s,
                              const variant_columns& variant, std::size_t repeats) {
    const statistic_data& what = s.statistic;
    if (what.kind != statistic_kind::percentile || pools_gaps(what.metric) ||
        is_of_server(what.metric))
        return {};
    const miss_counts failed = counted_misses(variant, s, repeats, allowed_misses(s));
    const double upper = failed.upper(count_levels_of(s, t.rule).pass);
    if (failed.k == 0 || upper <= failed.allowed) return {};
    return cause_with<because::failed_in_tail>(
        {{"failed", failed.k}, {"of", failed.n}, {"most", upper}, {"allowed", failed.allowed}},
        whose::nobody, str(what.name));
}
/// Withdraws a percentile's pass unless failures are shown to be fewer than its tail. The same
/// holds for the baseline it is compared with.
inline void withdraw_over_failures(decision& d, const objective_columns& c,
                                   const judging_parameters& t) {
    const auto repeats = static_cast<std::size_t>(d.repeats);
    cause why = failures_in_tail(t, d.objective, c.mine, repeats);
    if (!why && (why = failures_in_tail(t, d.objective, c.other, repeats)))
        why.of = whose::baseline;
    for (std::size_t i = 0; i < d.objective.statistic.parts.size(); ++i) {
        slo own = d.objective;
        own.statistic = d.objective.statistic.parts[i];
        if (!why) why = failures_in_tail(t, own, i == 0 ? c.of : c.to, repeats);
    }
    if (!why) return;
    d.outcome = verdict::inconclusive;
    d.why = {std::move(why)};
}

/// Why a repeat has no value or baseline value: failures reach the statistic, or a speed has no
/// time.
inline cause why_no_value(const comparison& c, const slo& s, std::size_t repeat) {
    const cause none =
        cause_with<because::no_value_in>({{"repeat", repeat + 1}, {"is_ratio", s.factor > 0}});
    if (!c.paired && !is_ratio(s.statistic.metric)) return none;
    const statistic_data& by = c.paired ? s.statistic : s.statistic.parts[1];
    const column& d = *(c.paired ? c.of_columns->other : c.of_columns->to).each[repeat];
    const double value = with_offset(by.metric, d.value);
    if (std::isnan(value) || (value > 0 && value < infinity)) return none;
    const whose of = c.paired ? whose::baseline_server : whose::server;
    if (d.failed == 0)
        return cause_with<because::over_nothing>(
            {{"repeat", repeat + 1}, {"is_infinite", value > 0}}, of, str(by.name));
    return cause_with<because::over_failures>({{"repeat", repeat + 1},
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
    if (c.paired) return analysis_of_pairs(distances, s0, rule);
    if (t.past && !(t.day_sd > 0) && !is_of_start(s.statistic.metric) &&
        !t.noise.contains(noise_name(s)))
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
/// One interim analysis of the values, without decisions that come too early.
inline void decide_by_values(decision& d, const observed_repeats& seen, const comparison& c,
                             const judging_parameters& t, double s0, const judging_rule& rule,
                             std::size_t first, int fails_from) {
    const bool is_blatant = fails_from < first_fail && seen.values.size() < first_fail &&
                            seen.are_blatant(d.objective);
    d.last = is_blatant ? analysis_of_blatant_miss(seen.distances, c.paired, rule)
                        : analysis_of_values(t, d.objective, c, seen.distances, s0, rule);
    if (is_difference(d.objective)) widen(d, c.client_error / c.scale, rule);
    if (seen.values.size() >= first) d.outcome = d.last.outcome;
    d.why.clear();
    const double typical = at_distance(d.objective, d.last.mean, d.limit, c.scale);
    const double ratio =
        is_difference(d.objective) ? typical / c.others_together + d.objective.factor : typical;
    open_early_fail(d, fails_from, std::fabs(ratio - 1),
                    c.stored.repeats > 0 ? 2 * c.stored.day_sd : 0);
}

inline verdict_method method_of(spread_of spread) {
    return spread == spread_of::moderated || spread == spread_of::assumed
               ? verdict_method::moderated_t
           : spread == spread_of::noisy   ? verdict_method::noisy_t
                                          : verdict_method::t;
}
/// Adds reasons if the repeats spread by more than the prior.
inline void explain_spread(decision& d, const judging_parameters& t, const comparison& c,
                           double s0, const judging_rule& rule) {
    const double spread = std::sqrt(sample_variance(d.distances));
    const own_spread own = own_spread_of(d.distances, d.stored);
    const interim_analysis l = moderated_analysis(d.last.mean, own.squares, own.df, s0);
    judging_rule if_fresh = rule;
    if_fresh.pairs_are_fresh = true;
    if (d.paired && spread > s0)
        d.why = {cause_with<because::pairs_spread>({{"spread", spread}, {"believed", s0}})};
    else if (d.paired && d.outcome == verdict::inconclusive && d.why.empty() &&
             d.repeats >= first_pair_analysis &&
             analysis_of_pairs(d.distances, s0, if_fresh).outcome != verdict::inconclusive)
        d.why = {cause_with<because::lasting_luck>({{"spread", spread}})};
    else if (const calibrated_noise known = c.calibrated(t, d.objective);
             known.df > 0 &&
             (is_noisier(d.distances, known) || is_far_quieter(d.distances, known)))
        d.why.insert(d.why.begin(), cause_with<because::not_as_calibrated>(
                                        {{"spread", spread},
                                         {"calibrated", known.sd},
                                         {"is_more", spread > known.sd}}));
    else if (l.spread == spread_of::noisy)
        d.why.insert(d.why.begin(), cause_with<because::repeats_spread>(
                                        {{"spread", std::sqrt(own.squares / own.df)},
                                         {"quiet", l.prior_sd}}));
}

/// Judges times, speeds and rates on logarithms: of the statistic of each repeat, of the ratio of
/// each pair, or of repeats against a stored run.
inline decision judge_values(const objective_columns& of, const judging_parameters& t,
                             const slo& s, sought which = sought::first) {
    decision d = undecided(s);
    d.limit = limit_of(s);
    const comparison c = comparison_of(of, t, s);
    if (c.is_missing) return decided(d, verdict::invalid, {because::stored_lacks});
    set_measured(d, c);
    d.scale = is_difference(s) ? c.scale : 1;
    d.client_part = c.client_error;
    const bool startup = is_of_start(s.statistic.metric);
    const double s0 = prior_sd_of(of, t, s);
    const judging_rule rule = rule_for(of, t, s);
    const fewest_repeats fewest = fewest_repeats_of(s, of.how(), t.rule.most);
    const auto first = static_cast<std::size_t>(fewest.pass);

    observed_repeats seen{.scale = d.scale};
    const auto take = [&](std::size_t i) {
        const double value = c.of_repeat(i);
        if (std::isnan(value))
            return !startup && invalidate(d, why_no_value(c, s, i));
        seen.add(value, s, d.limit);
        d.repeats = static_cast<int>(seen.values.size());
        d.requests = measured_requests(of, seen.values.size(), s.statistic.metric);
        return true;
    };
    const auto analyse = [&](std::size_t) {
        const bool is_blatant = !c.paired && t.rule.revision > 1 && seen.are_blatant(s);
        const int fails_from =
            is_blatant ? std::min(first_analysis, fewest.fail) : fewest.fail;
        if (seen.unbounded > 0) decide_by_misses(d, seen, t, c, fails_from);
        else decide_by_values(d, seen, c, t, s0, rule, first, fails_from);
        if (d.outcome == verdict::pass) withdraw_over_failures(d, of, t);
        return d.outcome != verdict::inconclusive;
    };
    if (!analyse_repeats(d, c.repeats(), first, t.rule, which, take, analyse)) return d;
    if (seen.values.empty())
        return decided(d, verdict::invalid,
                       startup ? cause{because::start_unknown}
                               : cause{because::nothing_measured});
    d.paired = c.paired;
    d.values = seen.values;
    d.decided_by = verdict_method::counted_misses;
    if (seen.unbounded > 0) return d;
    d.decided_by = method_of(d.last.spread);
    d.distances = seen.distances;
    d.stored = c.stored;
    if (c.stored.repeats > 0) d.stored_values = t.stored.values.at(str(s.statistic.name));
    explain_spread(d, t, c, s0, rule);
    explain_few_pairs(d, t.rule);
    return with_client_limit(std::move(d), c);
}

/// Whether a verdict is open by the noise of the repeats or pairs, not by a prior.
inline bool asks_for_more(const measurements& e, const judging_parameters& t,
                          const verdict_numbers& v) {
    const slo& s = v.objective;
    const bool is_open = v.outcome == verdict::inconclusive &&
                         is_judged_by_spread(s.statistic.metric);
    if (!is_open || (e.has_live_baseline() && s.factor <= 0)) return false;
    const objective_columns of = columns_of(e, s);
    const comparison c = comparison_of(of, t, s);
    const double limit = limit_of(s), s0 = prior_sd_of(e, t, s);
    observed_repeats seen{.scale = is_difference(s) ? c.scale : 1};
    for (std::size_t i = 0; i < c.repeats(); ++i) seen.add(c.of_repeat(i), s, limit);
    if (seen.unbounded > 0 || seen.distances.size() < 2) return false;
    if (s.factor > 0 && t.past) return false;
    const judging_rule rule = rule_for(e, t, s);
    const spread_of by = analysis_of_values(t, s, c, seen.distances, s0, rule).spread;
    if (by == spread_of::quiet || c.calibrated(t, s).df > 0) return true;
    return c.paired ? std::sqrt(sample_variance(seen.distances)) > s0 : by == spread_of::measured;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
