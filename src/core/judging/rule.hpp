// the rule: distances from a limit, interim analyses, bounds, prior noise
// Values vary in proportion to their size, so they are compared on a log scale. A metric that can
// be zero is compared on log(x + offset) (Tukey's started logarithm, 1977).
// Without clock and randomness: the same records give the same verdicts, bit for bit.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"

#include <algorithm>  // clamp, max, min
#include <cmath>  // exp, expm1, fabs, log, sqrt

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A series that an objective names may be negative: its distance is relative to the limit.
inline bool is_on_the_log(const slo& s) {
    switch (kind_of(s)) {
    case limit_kind::absolute: break;
    case limit_kind::ratio: return true;
    case limit_kind::difference: return false;
    }
    return s.statistic.metric != metric_id::server_metric;
}
inline double with_offset(metric_id m, double value) { return value + facts_of(m).offset; }
/// Returns the limit for comparisons. For integers it is half a unit looser, so that equality
/// passes.
inline double line_of(const slo& s, double limit) {
    if (!facts_of(s.statistic.metric).is_whole) return limit;
    return std::max(limit + (s.at_most ? 0.5 : -0.5), 0.0);
}
// Stand for zero and infinity.
inline constexpr double least_value = 1e-12, max_value = 1e300;
inline double step_of(double line) { return line == 0 ? 1 : std::fabs(line); }

/// Negative where the value meets the limit. `scale`: the unit of a difference's distance.
inline double distance_of(const slo& s, double value, double limit, double scale = 1) {
    const double sign = s.at_most ? 1 : -1;
    const auto log_of = [](double v) { return std::log(std::clamp(v, least_value, max_value)); };
    switch (kind_of(s)) {
    case limit_kind::absolute: break;
    case limit_kind::ratio: return sign * (log_of(value) - std::log(limit));
    case limit_kind::difference: return std::clamp(sign * (value - limit) / scale, -1e6, 1e6);
    }
    const double line = line_of(s, limit);
    // Distances are clamped so that their squares are finite.
    if (!is_on_the_log(s)) return std::clamp(sign * (value - line) / step_of(line), -1e6, 1e6);
    const metric_id m = s.statistic.metric;
    return sign * (log_of(with_offset(m, value)) - std::log(with_offset(m, line)));
}
inline double at_distance(const slo& s, double distance, double limit, double scale = 1) {
    const double sign = s.at_most ? 1 : -1;
    switch (kind_of(s)) {
    case limit_kind::absolute: break;
    case limit_kind::ratio: return limit * std::exp(sign * distance);
    case limit_kind::difference: return limit + sign * distance * scale;
    }
    const double line = line_of(s, limit);
    if (!is_on_the_log(s)) return line + sign * distance * step_of(line);
    const double offset = facts_of(s.statistic.metric).offset;
    const double value = (line + offset) * std::exp(sign * distance) - offset;
    return value < 10 * least_value ? 0 : value;
}
/// The distance as a fraction of the limit.
inline double fraction_of_limit(const slo& s, double distance) {
    return is_on_the_log(s) ? std::expm1(distance) : distance;
}
/// Whether it is that of twice the limit, or beyond.
inline bool is_blatant_distance(const slo& s, double distance) {
    return fraction_of_limit(s, distance) >= 1;
}

// A few repeats cannot measure their noise, so it is at least this: moderated variance as in Smyth
// (2004), with 8 prior degrees of freedom.
inline constexpr double prior_sd = 0.04;
inline constexpr double prior_startup_sd = 0.10;
inline constexpr double prior_accuracy_sd = 0.01;  // of the log ratio of a pair
inline constexpr double prior_df = 8;
inline constexpr double noisy_sd = 0.05, noisy_df = 3;  // prior of a noisy machine
inline constexpr int first_analysis = 2, last_analysis = 5;
inline constexpr int first_fail = 3;  // two repeats hardly know their spread
inline constexpr int first_pair_analysis = 4, last_pair_analysis = 8;
inline constexpr int last_noisy_pair_analysis = 12;  // where eight spread by more than the prior
inline constexpr int last_noisy_analysis = 8;  // where five are open by their own spread
inline constexpr int first_quarter = 2;  // of a load at once, that is looked at
inline constexpr double four_in_five = 0.8416;  // normal quantile of 80 %
inline constexpr double distance_of_modes = 0.02;  // of a quiet machine's speed, as a logarithm
/// The noise of any machine, by which two repeats at twice the limit are a miss.
inline constexpr double most_noise = 0.25;

/// What verdicts rest on: repeats of one server, or pairs with a live baseline, whose two loads run
/// in turns, or at once and are compared by slices of their time.
enum class repeats_are : unsigned char { alone, in_turns, at_once };

/// The fewest repeats, pairs or loads that a pass and a fail take.
struct fewest_repeats {
    int pass = first_analysis, fail = first_fail;
};
/// Of an objective in a plan with at most so many. Planning, all methods and `explain` ask this:
/// no verdict waits for more than there will be, though two are the fewest with a spread.
inline fewest_repeats fewest_repeats_of(const slo& s, repeats_are how, int most) {
    const metric_id m = s.statistic.metric;
    const bool is_compared = !is_absolute(s), are_slices = how == repeats_are::at_once;
    const int usual = how == repeats_are::in_turns ? first_pair_analysis : first_analysis;
    fewest_repeats n;
    if (is_of_start(m) || is_drift(m) || (are_slices && is_compared)) n = {1, 1};
    else if (how == repeats_are::in_turns) n = {usual, usual};
    // Requests have the spread of counts, which one repeat can show.
    if (is_request_fraction(m) && !is_compared)
        n = {are_slices ? 1 : usual, is_of_answers(m) && !are_slices ? first_fail : 1};
    const auto of_plan = [most](int usually) {
        return std::min(usually, std::max(most, first_analysis));
    };
    return {of_plan(n.pass), of_plan(n.fail)};
}

/// The error levels of a gate. They hold over all analyses: bounds are z standard errors away, with
/// z from pocock_constant.
struct judging_rule {
    int analyses = 5;  // upper bound of their number; at least five, for heavy tails
    int most = last_analysis;  // repeats or pairs at the last analysis
    double pass_level = 0.05, fail_level = 0.01;
    double pass_z = 2.12, fail_z = 2.80;  // Pocock: 2.122 for 5 %, 2.754 for 1 %
    double half_fail_z = 2.99;            // for half of 1 %: a fraction has two tests
    double alone_z = 2.17;  // to pass by the repeats' own spread, whose analyses are less alike
    bool holm = false;
    bool trusts_prior = false;  // uses a prior larger than the repeats' spread
    bool pairs_are_fresh = false;  // no difference between two processes lasts for several pairs
    /// 1: without quiet repeats, blatant misses, and calibrations in place of the prior.
    int revision = 2;
    bool is_single_analysis = false;     // one analysis of all repeats
    int made_again{};  // analyses after repeats that were set aside
    /// A load is judged after 2 and 3 quarters of it as well, and ends where all is decided.
    bool looks_early = false;
    double part{1};  // of the load that is judged
    /// Whether another analysis takes place before that of all repeats: no more than the constants
    /// allow.
    bool has_analysis_after(int others) const {
        return !is_single_analysis && others + 1 < analyses;
    }
    /// The score of a bound at this level, after analyses that were made again.
    double z_at(double level, int more) const {
        if (!looks_early) return pocock_constant(analyses + more, level);
        return early_look_constant(first_quarter, level / (1 + more)) / std::sqrt(part);
    }
    /// Returns the rule at another level of false fails.
    judging_rule failing_at(double level) const {
        judging_rule r = *this;
        r.fail_level = level;
        r.fail_z = std::max(fail_z, z_at(level, made_again));
        r.half_fail_z = std::max(half_fail_z, z_at(level / 2, made_again));
        return r;
    }
    /// Returns the rule of a load with looks, for a look at this part of it.
    judging_rule at_part(double of_it) const {
        judging_rule r = *this;
        if (!looks_early || of_it == part) return r;
        r.part = of_it;
        for (double* z : {&r.pass_z, &r.alone_z, &r.fail_z, &r.half_fail_z})
            *z *= std::sqrt(part / of_it);
        return r;
    }
    /// Returns the rule with these analyses made again, each of which is one more chance.
    judging_rule with_made_again(int more) const {
        judging_rule r = *this;
        r.made_again = more;
        if (more == 0) return r;
        r.pass_z = std::max(pass_z, z_at(pass_level, more));
        r.alone_z = std::max(alone_z, z_at(pass_level, more + 1));
        return r.failing_at(fail_level);
    }
};
inline double half_fail_z_of(const judging_rule& r) {
    const judging_rule usual;
    return !r.looks_early && r.analyses == usual.analyses && r.fail_level == usual.fail_level
               ? usual.half_fail_z
               : r.z_at(r.fail_level / 2, 0);
}
/// The rule of a load that may end early.
inline judging_rule looking_early(judging_rule r) {
    r.looks_early = true;
    r.pass_z = r.alone_z = r.z_at(r.pass_level, 0);
    r.fail_z = r.z_at(r.fail_level, 0);
    r.half_fail_z = half_fail_z_of(r);
    return r;
}
/// `more_analyses`: those after `most` repeats. `least_analyses`: for tails heavier than normal.
inline judging_rule rule_of(const judging_options& o, int first, int most, int more_analyses = 0,
                            int least_analyses = 5) {
    judging_rule r;
    r.analyses = std::max(least_analyses, most - first + 1 + more_analyses);
    r.most = most;
    r.pass_level = o.false_pass.value;
    r.fail_level = o.false_fail.value;
    r.holm = o.holm;
    r.half_fail_z = half_fail_z_of(r);
    const bool usual = (r.analyses == 5 || r.analyses == 6) && r.pass_level == 0.05 &&
                       r.fail_level == 0.01;
    if (usual && r.analyses == 6) {
        r.pass_z = 2.17;  // a little over 2.164, as 2.80 is over 2.792
        r.alone_z = 2.20;  // over 2.197, for seven
    }
    if (usual) return r;
    r.alone_z = pocock_constant(r.analyses + 1, r.pass_level);
    r.pass_z = pocock_constant(r.analyses, r.pass_level);
    r.fail_z = pocock_constant(r.analyses, r.fail_level);
    return r;
}

/// The noise of an interim analysis: a prior moderated by the measured spread, the same with the
/// prior of a noisy machine, the measured spread alone, that with a margin for modes, the noise of
/// any machine, or that of counts.
enum class spread_of : unsigned char { moderated, noisy, measured, quiet, assumed, counted };

/// One interim analysis: distances ln(statistic) - ln(limit), negative where the SLO is met.
struct interim_analysis {
    verdict outcome = verdict::inconclusive;
    double mean = 0, sd = 0, df = 0, se = 0, pass_z = 0, fail_z = 0, pass_t = 0, fail_t = 0;
    double prior_df = 0, prior_sd = 0, pass_bound = 0, fail_bound = 0, detectable = 0;
    double pass_margin = 0, fail_margin = 0;  // for modes that the repeats may not have shown
    spread_of spread = spread_of::moderated;
    double history_sd = not_a_number;  // of repeats of earlier runs, where that is the prior
};
/// The analysis with its bounds and verdict, by mean, standard error and degrees of freedom.
inline interim_analysis decided(interim_analysis l, const judging_rule& rule) {
    l.pass_z = rule.pass_z;
    l.fail_z = rule.fail_z;
    l.pass_t = student_t_quantile(normal_cdf(l.pass_z), l.df);
    l.fail_t = student_t_quantile(normal_cdf(l.fail_z), l.df);
    l.pass_bound = l.mean + l.pass_t * l.se + l.pass_margin;
    l.fail_bound = l.mean - l.fail_t * l.se - l.fail_margin;
    // A true distance this far over the limit is shown in four of five runs.
    l.detectable = std::expm1((l.fail_t + four_in_five) * l.se + l.fail_margin);
    l.outcome = l.pass_bound < 0   ? verdict::pass
                : l.fail_bound > 0 ? verdict::fail
                                   : verdict::inconclusive;
    return l;
}
/// How far the bound of a pass is from the mean.
inline double half_width(const interim_analysis& l) { return l.pass_t * l.se + l.pass_margin; }
inline const interim_analysis& wider_of(const interim_analysis& a, const interim_analysis& b) {
    return half_width(b) > half_width(a) ? b : a;
}

/// An analysis without its standard error: the prior noise moderated by these squares and degrees
/// of freedom.
inline interim_analysis moderated_analysis(double mean, double squares, double own_df, double s0,
                                           double with_df = prior_df) {
    const double measured_variance = own_df > 0 ? squares / own_df : 0;
    // A spread is noisy if a machine of quiet_sd exceeds it in at most one of 20 runs.
    const double quiet_sd = s0 * (noisy_sd / prior_sd);
    const bool is_quiet = own_df <= 0 || measured_variance * own_df <=
                                             quiet_sd * quiet_sd * chi_square_95(own_df);
    const double prior = is_quiet ? with_df : noisy_df, sd = is_quiet ? s0 : quiet_sd;
    const double df = prior + own_df, moderated = std::sqrt((prior * sd * sd + squares) / df);
    return {.mean = mean, .sd = moderated, .df = df, .prior_df = prior, .prior_sd = sd,
            .spread = is_quiet ? spread_of::moderated : spread_of::noisy};
}
/// The stored baseline of a comparison: repeats, variance and spread between days.
struct stored_side {
    double repeats = 0, variance = 0, day_sd = 0;
    /// Its part of the variance of a difference, as `shares`.
    double share() const { return repeats > 0 ? 1 / repeats : 0; }
    /// The standard error of two days, of the variance within them.
    double error(double variance_within) const {
        return std::sqrt(variance_within + day_sd * day_sd);
    }
};

/// The pooled spread of repeats and those of a stored baseline. `shares`: 1 / n for n values.
struct own_spread {
    double squares = 0, df = 0, shares = 0;
    stored_side other{};
};
inline own_spread own_spread_of(const vector<double>& distances, const stored_side& other = {}) {
    const double n = static_cast<double>(distances.size());
    const double others = std::max(0.0, other.repeats - 1);
    return {(n - 1) * sample_variance(distances) + others * other.variance, n - 1 + others,
            1 / n + other.share(), other};
}
/// An analysis by the spread of the values alone, without its verdict.
inline interim_analysis measured_analysis(double mean, const own_spread& own, double s0) {
    const double variance = own.squares / own.df, within = variance * own.shares;
    const double se = own.other.error(within);
    // The spread between days is given, not measured (Satterthwaite 1946).
    const double known = own.other.day_sd > 0 ? se * se / std::max(within, 1e-12) : 1;
    return {.mean = mean, .sd = std::sqrt(variance), .df = std::min(own.df * known * known, 1e4),
            .se = se, .prior_sd = s0, .spread = spread_of::measured};
}
inline interim_analysis analysis_of(const vector<double>& distances, double s0,
                                    const judging_rule& rule = {},
                                    const stored_side& other = {}, double with_df = prior_df) {
    const own_spread own = own_spread_of(distances, other);
    interim_analysis l = moderated_analysis(mean_of(distances), own.squares, own.df, s0, with_df);
    l.se = other.error(l.sd * l.sd * own.shares);
    return decided(l, rule);
}

/// How far the mean of n repeats may be from the truth while none of them shows it. A machine with
/// two modes shows only the one that a fraction p of its repeats has with a probability of p^n. At
/// this level p is at most level^(1/n), and the mean is off by the rest of the modes' distance.
inline double hidden_by_modes(double n, double level) {
    return distance_of_modes * (1 - std::pow(level, 1 / n));
}
/// Sets the margins of an analysis that assumes no noise, and its verdict.
inline interim_analysis with_margins(interim_analysis l, double n, const judging_rule& rule) {
    l.pass_margin = hidden_by_modes(n, rule.pass_level);
    l.fail_margin = hidden_by_modes(n, rule.fail_level);
    return decided(l, rule);
}
inline judging_rule by_own_spread(judging_rule rule) {
    rule.pass_z = std::max(rule.pass_z, rule.alone_z);
    return rule;
}
/// The usual analysis, or from the third repeat on the one by the repeats' spread alone, whichever
/// is closer to a decision. A t interval is exact at every spread of normal values, and the usual
/// analysis of an unknown machine is never narrower, so the levels hold for both together. Its
/// margins are for what a few repeats that agree may hide.
inline interim_analysis or_by_quiet_repeats(const interim_analysis& usual,
                                            const vector<double>& distances, double s0,
                                            const judging_rule& rule) {
    const double n = static_cast<double>(distances.size());
    if (n < first_fail || rule.revision < 2) return usual;
    interim_analysis l = with_margins(
        measured_analysis(usual.mean, own_spread_of(distances), s0), n, by_own_spread(rule));
    l.spread = spread_of::quiet;
    const bool is_closer = usual.mean < 0 ? l.pass_bound < usual.pass_bound
                                          : l.fail_bound > usual.fail_bound;
    return is_closer ? l : usual;
}

/// The repeats of an uncalibrated machine with a prior that only widens the interval, as a few
/// repeats may look quieter than they are. No test would detect that: two repeats of a machine with
/// 12 % noise look quiet in every third gate.
inline interim_analysis cautious_analysis_of_repeats(const vector<double>& distances, double s0,
                                                     const judging_rule& rule,
                                                     const stored_side& other) {
    const interim_analysis moderated = analysis_of(distances, s0, rule, other);
    const own_spread own = own_spread_of(distances, other);
    if (rule.trusts_prior || own.df <= 0) return moderated;
    const interim_analysis measured =
        decided(measured_analysis(moderated.mean, own, s0), by_own_spread(rule));
    const bool is_wider = moderated.mean < 0 ? measured.pass_bound > moderated.pass_bound
                                            : measured.fail_bound < moderated.fail_bound;
    return is_wider ? measured : moderated;
}
/// An analysis of the repeats of a machine whose noise is not known.
inline interim_analysis analysis_of_repeats(const vector<double>& distances, double s0,
                                            const judging_rule& rule,
                                            const stored_side& other = {}) {
    const interim_analysis usual = cautious_analysis_of_repeats(distances, s0, rule, other);
    return other.repeats > 0 ? usual : or_by_quiet_repeats(usual, distances, s0, rule);
}

/// The noise between repeats that a calibration found, as an upper bound in four of five cases, and
/// its degrees of freedom; 0: none, or one of too few repeats to replace the prior.
struct calibrated_noise {
    double sd = 0, df = 0;
};
inline constexpr std::size_t repeats_of_calibration = 10;
inline calibrated_noise calibrated_noise_of(double sd, std::size_t repeats) {
    if (repeats < repeats_of_calibration) return {};
    const auto df = static_cast<double>(repeats - 1);
    return {sd * std::sqrt(df / chi_square_20(df)), df};
}
/// Whether the repeats spread by more than the calibration explains. A test that only a few runs of
/// such a machine fail would let a day of three times the noise pass for one: two or three repeats
/// hardly show it.
inline bool is_noisier(const vector<double>& distances, const calibrated_noise& known) {
    const own_spread own = own_spread_of(distances);
    return own.df > 0 && own.squares > own.df * known.sd * known.sd;
}
/// Whether the repeats spread by less than such a machine's in 99 of 100 runs.
inline bool is_far_quieter(const vector<double>& distances, const calibrated_noise& known) {
    const own_spread own = own_spread_of(distances);
    return own.df > 0 && own.squares < known.sd * known.sd * chi_square_1(own.df);
}
/// The distance from the limit that quiet repeats show in 19 of 20 gates, by the noise of a
/// calibration.
inline double reach_of_quiet_repeats(double sd, std::size_t calibrated, const judging_rule& rule) {
    const auto df = static_cast<double>(calibrated - 1);
    const double bound = sd * std::sqrt(df / chi_square_20(df)), n = rule.most;
    const double t = student_t_quantile(normal_cdf(by_own_spread(rule).pass_z), n - 1);
    return (t + 1.645) * bound / std::sqrt(n) + hidden_by_modes(n, rule.pass_level);
}
/// An analysis with the noise of a calibration instead of a prior, unless the run shows that it is
/// another day's. Two repeats hardly show that.
inline interim_analysis analysis_by_calibration(const vector<double>& distances,
                                                const calibrated_noise& known, double s0,
                                                const judging_rule& rule) {
    const bool is_known = distances.size() >= first_fail;
    if (!is_known || is_noisier(distances, known) || is_far_quieter(distances, known))
        return analysis_of_repeats(distances, s0, rule);
    const interim_analysis l = analysis_of(distances, known.sd, rule, {}, known.df);
    return with_margins(l, known.df + 1 + static_cast<double>(distances.size()), rule);
}

/// Two repeats, or pairs, each at twice the limit or beyond: by the noise of any machine.
inline interim_analysis analysis_of_blatant_miss(const vector<double>& distances, bool are_pairs,
                                                 const judging_rule& rule) {
    const double sd = are_pairs ? most_noise * std::sqrt(2.0) : most_noise;
    const double se = sd / std::sqrt(static_cast<double>(distances.size()));
    return decided({.mean = mean_of(distances), .sd = sd, .df = 1e4, .se = se,
                    .prior_df = 1e4, .prior_sd = sd, .spread = spread_of::assumed},
                   rule);
}

/// The log ratios of pairs with a prior that only widens the interval: four pairs estimate their
/// own spread well, and a machine whose speed shifts spreads far beyond any prior.
/// Pairs that agree prove less than repeats do: two processes of one build differ by luck, for all
/// pairs between two restarts. Pairs of fresh processes are independent, as repeats are.
inline interim_analysis analysis_of_pairs(const vector<double>& distances, double s0,
                                          const judging_rule& rule) {
    const interim_analysis usual = analysis_of(distances, s0, rule);
    if (distances.size() < 2) return usual;
    const own_spread own = own_spread_of(distances);
    const interim_analysis wider =
        wider_of(usual, decided(measured_analysis(usual.mean, own, s0), rule));
    return rule.pairs_are_fresh ? or_by_quiet_repeats(wider, distances, s0, rule) : wider;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
