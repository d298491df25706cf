// what a history teaches, and a run judged against it
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/judging/rule.hpp"
#include "extensions/history/core/levels.hpp"
#include "extensions/history/core/machines.hpp"

#include <algorithm>  // clamp, max, min
#include <cmath>  // fabs, pow, sqrt, round
#include <cstddef>  // size_t
#include <optional>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// 80 % quantile of the F distribution.
inline double f_quantile_80(double df1, double df2) {
    double high = 2;
    const auto cdf = [&](double f) {
        return incomplete_beta(df1 / 2, df2 / 2, df1 * f / (df1 * f + df2));
    };
    while (cdf(high) < 0.8 && high < 1e12) high *= 2;
    return bisect(0, high, 0.8, cdf);
}

inline constexpr std::size_t newest_runs = 30;  // the spread is from these
inline constexpr std::size_t level_runs = 10;   // maximum for a level's mean
inline constexpr std::size_t fewest_runs = 3;
inline constexpr std::size_t robust_from = 12;    // runs from which residuals are clipped
inline constexpr double given_df = 4;
inline constexpr std::size_t given_until = 10;    // runs that replace a given spread

/// The mean of values clipped at `reach` around their median, if there are at least five.
inline double clipped_mean(vector<double> v, double reach) {
    if (v.size() < 5) return mean_of(v);
    const double center = median_of(v);
    for (double& x : v) x = std::clamp(x, center - reach, center + reach);
    return mean_of(v);
}

/// The spread of repeats within runs, pooled over runs.
struct repeats_spread {
    double variance = 0, df = 0;
    double repeats = 0;  // of a run, harmonic mean
};
inline repeats_spread spread_of_repeats(const vector<run_level>& runs, std::size_t from) {
    repeats_spread out;
    double squares = 0, inverse = 0;
    for (std::size_t i = from; i < runs.size(); ++i) {
        squares += (runs[i].repeats - 1) * runs[i].variance;
        out.df += runs[i].repeats - 1;
        inverse += 1 / runs[i].repeats;
    }
    if (out.df > 0) out.variance = squares / out.df;
    if (inverse > 0) out.repeats = static_cast<double>(runs.size() - from) / inverse;
    return out;
}

/// The spread of runs around the levels of their segments.
struct runs_spread {
    double sd = 0, df = 0;
    std::size_t trouble = 0;  // runs over four robust deviations away
    double farthest = 0;      // of the slower ones
};
/// The runs from one on, around the levels of their segments.
struct run_residuals {
    vector<double> all{};
    double segments = 0;
};
inline run_residuals residuals_of(const vector<run_level>& runs,
                                  const vector<history_segment>& segments, std::size_t from) {
    run_residuals out;
    const bool is_robust = runs.size() - from >= robust_from;
    for (const history_segment& s : segments) {
        if (s.end <= from) continue;
        const vector<double> own = means_of(runs, std::max(s.first, from), s.end);
        const double center = is_robust && own.size() >= 5 ? median_of(own) : mean_of(own);
        for (const double x : own) out.all.push_back(x - center);
        ++out.segments;
    }
    return out;
}
inline void clip_residuals(vector<double>& rest, runs_spread& noted) {
    const double reach = robust_sd(rest, 0);
    if (!(reach > 0)) return;
    for (double& x : rest) {
        if (std::fabs(x) > 4 * reach) {
            ++noted.trouble;
            noted.farthest = std::max(noted.farthest, x);
        }
        x = std::clamp(x, -3 * reach, 3 * reach);
    }
}
/// For dependent runs: the value of the newest ones' mean for the next run, relative to independent
/// runs, and how much too small their squares are.
struct run_dependence {
    double variance_by = 1, df_by = 1;
};
inline run_dependence dependence_of_runs(const vector<double>& rest) {
    const auto n = static_cast<double>(rest.size());
    const double r = std::clamp((lag_one(rest) * n + 1) / (n - 4), 0.0, 0.9);
    double effect = 1, shared = 0;
    for (double k = 1; k <= n; ++k) {
        effect += 2 * (1 - k / n) * std::pow(r, k);
        shared += std::pow(r, k);
    }
    return {std::max(1.0, (1 + effect / n - 2 / n * shared) /
                              ((1 - (effect - 1) / (n - 1)) * (1 + 1 / n))),
            std::clamp((1 - r * r) / (1 + r * r), 0.3, 1.0)};
}
inline runs_spread spread_of_runs(const vector<run_level>& runs,
                                  const vector<history_segment>& segments, std::size_t from) {
    run_residuals rest = residuals_of(runs, segments, from);
    const double df = static_cast<double>(rest.all.size()) - rest.segments;
    runs_spread out;
    out.df = df;
    if (!(df > 0)) return out;
    run_dependence by;
    if (rest.all.size() >= robust_from) {
        clip_residuals(rest.all, out);
        by = dependence_of_runs(rest.all);
    }
    double squares = 0;
    for (const double x : rest.all) squares += x * x;
    out.df *= by.df_by;
    out.sd = std::max(std::sqrt(squares / df * by.variance_by), least_run_sd);
    return out;
}

struct level_of_runs {
    double mean = 0;
    double runs = 0;
};
/// A change of main in its newest one or two runs, not yet shown as a step.
struct main_moved {
    level_of_runs now{};
    double by = 0;            // from the segment's older runs; above 0: worse
    bool is_on_machine = false;  // its newest runs on the machine of the run that is judged
};

/// All that the rule needs of a history: the same numbers give the same verdicts. Logarithms, less
/// is better.
struct learned_history {
    std::size_t runs = 0;  // the newest ones, used for all of this
    repeats_spread repeats{};
    runs_spread spread{};
    level_of_runs level{};
    vector<main_moved> moved{};
    machine_of_run machine{};  // its effect is in the levels
    slow_runs slow{};          // on that machine
    double given_sd = 0;      // the user's spread between runs while it counts, else 0
    bool is_enough() const {
        return level.runs > 0 && repeats.df > 0 && spread.df > 0 && spread.sd > 0 &&
               (given_sd > 0 || runs >= fewest_runs);
    }
};

inline level_of_runs newest_level(const vector<run_level>& runs, const history_segment& s,
                                  double sd) {
    const std::size_t w = std::min(s.end - s.first, level_runs);
    return {clipped_mean(means_of(runs, s.end - w, s.end), 3 * sd), static_cast<double>(w)};
}

inline vector<main_moved> moves_of_main(const vector<run_level>& runs,
                                        const history_segment& s, const runs_spread& n) {
    vector<main_moved> out;
    for (std::size_t c = 1; c <= 2 && s.first + c + 4 <= s.end; ++c) {
        const double now = mean_of(means_of(runs, s.end - c, s.end));
        const double before = clipped_mean(means_of(runs, s.first, s.end - c), 3 * n.sd);
        const auto count = static_cast<double>(c), older = static_cast<double>(s.end - s.first - c);
        const double reach = student_t_quantile(0.99, n.df) * n.sd *
                             std::sqrt(1 / count + 1 / older);
        if (std::fabs(now - before) > reach) out.push_back({{now, count}, now - before, false});
    }
    return out;
}

/// The branch of a run: main's joins the history.
enum class run_on : unsigned char { branch, main };
/// Main is compared with the newest accepted segment, another branch with the newest one.
inline const history_segment& segment_for(const vector<history_segment>& segments, run_on who) {
    for (auto s = segments.rbegin(); who == run_on::main && s != segments.rend(); ++s)
        if (s->is_accepted) return *s;
    return segments.back();
}

/// `given_sd`: the user's spread between runs, 0 if not given.
inline learned_history learned_from(const vector<run_level>& runs,
                                    const vector<history_segment>& segments, run_on who,
                                    double given_sd = 0) {
    learned_history h;
    if (runs.empty()) return h;
    const std::size_t from = runs.size() - std::min(runs.size(), newest_runs);
    h.runs = runs.size() - from;
    h.repeats = spread_of_repeats(runs, from);
    h.spread = spread_of_runs(runs, segments, from);
    if (given_sd > 0 && h.runs < given_until) {
        h.given_sd = given_sd;
        const double squares = h.spread.sd * h.spread.sd * h.spread.df;
        h.spread.df += given_df;
        h.spread.sd = std::sqrt((given_df * given_sd * given_sd + squares) / h.spread.df);
    }
    const history_segment& against = segment_for(segments, who);
    h.level = newest_level(runs, against, h.spread.sd);
    // Main itself moved: its own run is compared with its earlier level.
    if (who != run_on::main && h.spread.df > 0) h.moved = moves_of_main(runs, against, h.spread);
    return h;
}

inline constexpr std::size_t runs_of_drift = 10;
inline constexpr double least_drift = 0.01;
// runs: the accuracy with which a step's first one is found
inline constexpr std::size_t annotation_reaches = 2;

/// Whether the first runs of a segment, as many as showed it, are worse than the newest of another,
/// at a level of 5 %. Later runs do not count, so that decisions do not change.
inline bool is_worse(const vector<run_level>& runs, const history_segment& s,
                     const history_segment& than) {
    const vector<double> now = means_of(runs, s.first, std::min(s.found + 1, s.end));
    const vector<double> old =
        means_of(runs, than.end - std::min(than.end - than.first, level_runs), than.end);
    const auto a = static_cast<double>(now.size()), b = static_cast<double>(old.size());
    const double df = a + b - 2, change = mean_of(now) - mean_of(old);
    if (df <= 0) return change > 0;
    const double variance =
        std::max(((a - 1) * sample_variance(now) + (b - 1) * sample_variance(old)) / df,
                 least_run_sd * least_run_sd);
    return change > student_t_quantile(0.95, df) * std::sqrt(variance * (1 / a + 1 / b));
}

/// A regression is accepted only by an annotation; a level no worse than the newest accepted one
/// (an improvement, or a repaired regression) is accepted automatically.
inline vector<history_segment> with_accepted(vector<history_segment> segments,
                                             const history_series& s,
                                             const vector<run_level>& runs) {
    const auto annotations = annotated_runs(s, runs, annotation_kind::accept);
    std::size_t accepted = 0;
    for (std::size_t i = 1; i < segments.size(); ++i) {
        history_segment& now = segments[i];
        const bool is_annotated = any_of(annotations, [&](std::size_t m) {
            return m + annotation_reaches >= now.first && m < now.end;
        });
        now.is_accepted = is_annotated || !is_worse(runs, now, segments[accepted]);
        if (now.is_accepted) accepted = i;
    }
    return segments;
}

/// The difference of the newest runs from the first ones of the accepted level: logarithms with a
/// 95 % interval.
struct level_drift {
    double by = 0, low = 0, high = 0;
    std::size_t since = 0;  // the first of those runs
    std::size_t steps = 0;  // found since then
};
inline std::optional<level_drift> drift_of_level(const vector<run_level>& runs,
                                                 const vector<history_segment>& segments,
                                                 const runs_spread& spread) {
    if (segments.empty() || !(spread.df > 0)) return {};
    const history_segment& accepted = segment_for(segments, run_on::main);
    const std::size_t end = runs.size(), n = runs_of_drift;
    if (accepted.end - accepted.first < n || end < accepted.first + 2 * n) return {};
    const double then =
        clipped_mean(means_of(runs, accepted.first, accepted.first + n), 3 * spread.sd);
    const double now = clipped_mean(means_of(runs, end - n, end), 3 * spread.sd);
    const double se = spread.sd * std::sqrt(2 / static_cast<double>(n));
    level_drift d{now - then, 0, 0, accepted.first, 0};
    if (std::fabs(d.by) < least_drift ||
        std::fabs(d.by) < student_t_quantile(0.9995, spread.df) * se)
        return {};
    const double half = student_t_quantile(0.975, spread.df) * se;
    d.low = d.by - half;
    d.high = d.by + half;
    for (const history_segment& s : segments) d.steps += s.first > accepted.first;
    return d;
}

/// Error levels of a run's interim analyses. An early pass uses a twentieth of the level; one more
/// analysis, with better knowledge of today's spread, uses Pocock's bounds for five. All share one
/// run's deviation, so that additional analyses cost little.
struct history_bounds {
    double early_pass = 2.80, pass = 1.645, fail = 2.326, late_pass = 2.12, late_fail = 2.80;
};
enum class history_analysis_kind : unsigned char { none, early, whole, late };

/// The analyses of a run: after two repeats, after as many as baseline runs have, and after two
/// more if today's spread left it open.
struct history_analyses {
    std::size_t early = 2, whole = 3, late = 5;
};
inline history_analyses analyses_for(const learned_history& h) {
    const auto n = static_cast<std::size_t>(std::max(2.0, std::round(h.repeats.repeats)));
    return {2, n, n + 2};
}

enum class history_hold : unsigned char {
    none, other_machine, main_moved, machine, trouble, given
};

/// An analysis of a run: distances from the limit are logarithms, negative if it is met.
struct history_analysis {
    history_analysis_kind kind = history_analysis_kind::none;
    verdict outcome = verdict::inconclusive;
    history_hold withheld = history_hold::none;
    std::size_t by = 0;                         // index of main's step that held it back
    std::size_t repeats = 0;
    double distance = 0, pass_bound = 0, fail_bound = 0;
    double pass_z = 0, fail_z = 0;              // of the bounds
    bool is_noisier = false;                    // today's repeats vary more than the history's
};

/// The limit of a run as a level: `factor` times main's, and this beyond it. Of a ratio: its
/// logarithm.
struct level_of_limit {
    double beyond = 0, factor = 1;
    level_of_limit(double beyond_level, double of_level = 1)
        : beyond(beyond_level), factor(of_level) {}
    double of(double level) const { return beyond + (factor - 1) * level; }
};
/// What adds to the noise of a run: of a fraction the variance of the counts of one repeat, of a
/// difference what the client cannot tell.
struct noise_of_today {
    double counts = 0, client = 0;
};

/// The half widths of both bounds. If today's repeats vary no more than the history's, the exact
/// predictive interval of one more run.
struct history_reach {
    double pass = 0, fail = 0;
};
inline history_reach reach_of(const learned_history& h, double own_variance, std::size_t k,
                              double runs, double pass_z, double fail_z,
                              const noise_of_today& today = {}) {
    const auto repeats = static_cast<double>(k);
    // two repeats hardly show their own noise
    const double known = (k == 2 ? 4 : 1) * h.repeats.variance;
    const bool is_own = own_variance > known;
    const double excess = std::max(0.0, std::max(known, own_variance) / repeats -
                                            h.repeats.variance / h.repeats.repeats);
    const double df = is_own ? repeats - 1 : h.repeats.df;
    const auto half = [&](double z) {
        const double p = normal_cdf(z);
        const double t = student_t_quantile(p, h.spread.df);
        const double machine = h.machine.variance > 0 ? student_t_quantile(p, h.machine.df) : 0;
        const double between = t * t * h.spread.sd * h.spread.sd * (1 + 1 / runs) +
                               machine * machine * h.machine.variance;
        const double own = excess > 0 ? student_t_quantile(p, df) : 0;
        const double within = std::max(own * own * excess, z * z * today.counts / repeats);
        return std::sqrt(between + within) + today.client;
    };
    return {half(pass_z), half(fail_z)};
}

/// Analyses the first repeats of a run, as levels with the history's signs.
inline history_analysis analysis_against(const learned_history& h, const vector<double>& run,
                                 const level_of_limit& line, history_analysis_kind kind,
                                 const history_bounds& bounds = {},
                                 const noise_of_today& today = {}) {
    history_analysis l;
    l.kind = kind;
    l.repeats = run.size();
    const double mean = mean_of(run), own = sample_variance(run);
    const auto is = [&](history_analysis_kind k) { return kind == k; };
    l.pass_z = is(history_analysis_kind::early)  ? bounds.early_pass
               : is(history_analysis_kind::late) ? bounds.late_pass
                                                 : bounds.pass;
    l.fail_z = is(history_analysis_kind::late) ? bounds.late_fail : bounds.fail;
    const auto k = static_cast<double>(run.size());
    l.is_noisier = h.repeats.variance <= 0
                       ? own > 0
                       : own > h.repeats.variance * f_quantile_80(k - 1, h.repeats.df);
    const auto outcome_against = [&](const level_of_runs& level, history_reach& reach) {
        reach = reach_of(h, own, run.size(), level.runs, l.pass_z, l.fail_z, today);
        const double distance = mean - level.mean - line.of(level.mean);
        if (distance + reach.pass < 0) return verdict::pass;
        const bool is_missed = distance - reach.fail > 0 && !is(history_analysis_kind::early);
        return is_missed ? verdict::fail : verdict::inconclusive;
    };
    history_reach reach;
    l.outcome = outcome_against(h.level, reach);
    l.distance = mean - h.level.mean - line.of(h.level.mean);
    l.pass_bound = l.distance + reach.pass;
    l.fail_bound = l.distance - reach.fail;
    const auto hold = [&](history_hold why) {
        l.withheld = why;
        l.outcome = verdict::inconclusive;
    };
    if (!h.machine.only.empty() && l.outcome != verdict::inconclusive)
        hold(history_hold::other_machine);
    for (std::size_t i = 0; i < h.moved.size() && l.outcome != verdict::inconclusive; ++i) {
        const main_moved& m = h.moved[i];
        if (l.outcome != (m.by > 0 ? verdict::fail : verdict::pass)) continue;
        if (outcome_against(m.now, reach) == l.outcome) continue;
        l.by = i;
        hold(history_hold::main_moved);
    }
    if (l.outcome != verdict::fail) return l;
    if (h.slow.explain() && mean - h.level.mean < h.slow.farthest + h.spread.sd)
        hold(history_hold::machine);
    else if (h.spread.farthest > 0 && l.distance < h.spread.farthest + h.spread.sd)
        hold(history_hold::trouble);
    else if (l.distance < 2 * h.given_sd)
        hold(history_hold::given);
    return l;
}

/// The analysis after k of n repeats. A run that joins the history has one, after all of them.
inline history_analysis_kind analysis_kind_after(const learned_history& h, std::size_t k,
                                                 std::size_t n, run_on who) {
    const history_analyses planned = analyses_for(h);
    if (who == run_on::main)
        return k == n ? history_analysis_kind::whole : history_analysis_kind::none;
    if (k == planned.late) return history_analysis_kind::late;
    if (k == planned.whole) return history_analysis_kind::whole;
    return k == planned.early ? history_analysis_kind::early : history_analysis_kind::none;
}
/// Whether more repeats cannot decide more.
inline bool is_last_analysis(const learned_history& h, const history_analysis& l) {
    const history_analyses planned = analyses_for(h);
    return l.repeats >= planned.late || (l.repeats >= planned.whole && !l.is_noisier);
}
/// The verdict of a run on all its repeats: at the first analysis that decides, or at its last. The
/// late one is made only if the run was open and noisier than the history.
inline history_analysis judged_against(const learned_history& h, const vector<double>& run,
                                   const level_of_limit& line, run_on who,
                                   const history_bounds& bounds = {},
                                   const noise_of_today& today = {}) {
    history_analysis l;
    for (std::size_t k = 2; k <= run.size() && l.outcome == verdict::inconclusive; ++k) {
        const history_analysis_kind kind = analysis_kind_after(h, k, run.size(), who);
        if (kind == history_analysis_kind::none) continue;
        if (kind == history_analysis_kind::late && !l.is_noisier) break;
        l = analysis_against(h, {run.begin(), run.begin() + static_cast<std::ptrdiff_t>(k)}, line,
                             kind, bounds, today);
    }
    return l;
}

/// What a run differs by from the level that is known, without its repeats.
inline double sd_of_a_run(const learned_history& h) {
    return std::sqrt(h.spread.sd * h.spread.sd * (1 + 1 / h.level.runs) + h.machine.variance);
}
/// The share of runs of unchanged code that pass a limit with this logarithm, and of runs that far
/// beyond it that fail, at their last analysis; 0 to 1.
inline double chance_to_pass(const learned_history& h, double line,
                             const history_bounds& bounds = {}) {
    const double sd = sd_of_a_run(h);
    const double t = student_t_quantile(normal_cdf(bounds.pass), h.spread.df);
    return student_t_cdf(line / sd - t, h.spread.df);
}
inline double chance_to_find(const learned_history& h, double beyond,
                             const history_bounds& bounds = {}) {
    const double sd = sd_of_a_run(h);
    const double t = student_t_quantile(normal_cdf(bounds.fail), h.spread.df);
    return student_t_cdf(beyond / sd - t, h.spread.df);
}

/// Degrees of freedom within runs that make their noise a prior.
inline constexpr double noise_known_from = 20;
// The floor of the prior: without it, a day with four times the noise of a quiet history would
// exceed the error levels.
inline constexpr double least_prior_sd = 0.04;

/// The prior standard deviation between repeats of a statistic's logarithm: a bound that is high
/// enough in four of five cases; 0: the history is too short.
inline double prior_sd_of(const repeats_spread& r) {
    if (r.df < noise_known_from) return 0;
    return std::max(least_prior_sd, std::sqrt(r.variance * r.df / chi_square_20(r.df)));
}

inline constexpr double history_prior_df = 4;

/// The noise of repeats from earlier runs; `sd` is 0 if unknown.
struct history_noise {
    double sd = 0, df = 0;
};

/// Returns an analysis with the noise of a history, at less weight than a calibration because it is
/// of other days. The history is not used where the repeats spread by more.
inline interim_analysis analysis_with_history(const vector<double>& distances,
                                              const history_noise& known,
                                              const judging_rule& rule) {
    const double own = sample_variance(distances), df = static_cast<double>(distances.size()) - 1;
    if (!(known.sd > 0) || df < 1 || own > known.sd * known.sd * f_quantile_80(df, known.df))
        return analysis_of_repeats(distances, prior_sd, rule);
    interim_analysis l = analysis_of(distances, known.sd, rule, {}, history_prior_df);
    if (l.prior_df == history_prior_df) l.history_sd = known.sd;
    return or_by_quiet_repeats(l, distances, known.sd, rule);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
