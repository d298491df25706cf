// a run judged against a history, and the noise of repeats by it
#pragma once

#include "api/result.hpp"
#include "core/base/statistics.hpp"
#include "core/judging/by_history.hpp"
#include "extensions/history/core/learned.hpp"

#include <algorithm>  // max
#include <cmath>  // pow, round, sqrt
#include <cstddef>  // size_t
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

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

/// 20 % quantile of the chi-square distribution, within 1 % from 20 degrees of freedom on (Wilson
/// and Hilferty 1931).
inline double chi_square_20(double df) {
    const double spread = 2 / (9 * df);
    return df * std::pow(1 - spread - 0.8416 * std::sqrt(spread), 3);
}

/// Reasons to hold a verdict back.
enum class history_hold : unsigned char { none, main_moved, trouble, given };

/// An analysis of a run: distances from the limit are logarithms, negative if it is met.
struct history_analysis {
    history_analysis_kind kind = history_analysis_kind::none;
    verdict outcome = verdict::inconclusive;
    history_hold withheld = history_hold::none;
    verdict held_back = verdict::inconclusive;  // without the reason to hold it back
    std::size_t by = 0;                         // index of main's step that held it back
    std::size_t repeats = 0;
    double distance = 0, pass_bound = 0, fail_bound = 0;
    double change = 0;                          // from the level
    bool is_noisier = false;                    // today's repeats vary more than the history's
};

/// The half widths of both bounds. If today's repeats vary no more than the history's, the exact
/// predictive interval of one more run.
struct history_reach {
    double pass = 0, fail = 0;
};
inline history_reach reach_of(const learned_history& h, double own_variance, std::size_t k,
                              double runs, double pass_z, double fail_z) {
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
        const double between = t * t * h.spread.sd * h.spread.sd * (1 + 1 / runs);
        const double own = excess > 0 ? student_t_quantile(p, df) : 0;
        return std::sqrt(between + own * own * excess);
    };
    return {half(pass_z), half(fail_z)};
}

/// Analyses the first repeats of a run, in logarithms with the history's signs. `line`: logarithm
/// of the limit's factor, with its sign.
inline history_analysis analysis_against(const learned_history& h, const std::vector<double>& run,
                                 double line, history_analysis_kind kind,
                                 const history_bounds& bounds = {}) {
    history_analysis l;
    l.kind = kind;
    l.repeats = run.size();
    const double mean = mean_of(run), own = sample_variance(run);
    const auto is = [&](history_analysis_kind k) { return kind == k; };
    const double pass_z = is(history_analysis_kind::early)  ? bounds.early_pass
                          : is(history_analysis_kind::late) ? bounds.late_pass
                                                            : bounds.pass;
    const double fail_z = is(history_analysis_kind::late) ? bounds.late_fail : bounds.fail;
    const auto k = static_cast<double>(run.size());
    l.is_noisier = h.repeats.variance <= 0
                       ? own > 0
                       : own > h.repeats.variance * f_quantile_80(k - 1, h.repeats.df);
    l.change = mean - h.level.mean;
    const auto outcome_against = [&](const level_of_runs& level, history_reach& reach) {
        reach = reach_of(h, own, run.size(), level.runs, pass_z, fail_z);
        const double distance = mean - level.mean - line;
        if (distance + reach.pass < 0) return verdict::pass;
        const bool is_missed = distance - reach.fail > 0 && !is(history_analysis_kind::early);
        return is_missed ? verdict::fail : verdict::inconclusive;
    };
    history_reach reach;
    l.outcome = outcome_against(h.level, reach);
    l.distance = l.change - line;
    l.pass_bound = l.distance + reach.pass;
    l.fail_bound = l.distance - reach.fail;
    const auto hold = [&](history_hold why) {
        l.withheld = why;
        l.held_back = l.outcome;
        l.outcome = verdict::inconclusive;
    };
    for (std::size_t i = 0; i < h.moved.size() && l.outcome != verdict::inconclusive; ++i) {
        const main_moved& m = h.moved[i];
        if (l.outcome != (m.by > 0 ? verdict::fail : verdict::pass)) continue;
        if (outcome_against(m.now, reach) == l.outcome) continue;
        l.by = i;
        hold(history_hold::main_moved);
    }
    if (l.outcome != verdict::fail) return l;
    if (h.spread.farthest > 0 && l.distance < h.spread.farthest + h.spread.sd)
        hold(history_hold::trouble);
    else if (l.distance < 2 * h.given_sd)
        hold(history_hold::given);
    return l;
}

/// The analysis after so many repeats. `appended`: a run that joins the history has one, after all
/// repeats.
inline history_analysis_kind analysis_kind_after(const learned_history& h, std::size_t k,
                                                 bool is_last, bool appended) {
    const history_analyses planned = analyses_for(h);
    if (appended) return is_last ? history_analysis_kind::whole : history_analysis_kind::none;
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
inline history_analysis judged_against(const learned_history& h, const std::vector<double>& run,
                                   double line, bool appended,
                                   const history_bounds& bounds = {}) {
    history_analysis l;
    for (std::size_t k = 2; k <= run.size() && l.outcome == verdict::inconclusive; ++k) {
        const history_analysis_kind kind = analysis_kind_after(h, k, k == run.size(), appended);
        if (kind == history_analysis_kind::none) continue;
        if (kind == history_analysis_kind::late && !l.is_noisier) break;
        l = analysis_against(h, {run.begin(), run.begin() + static_cast<std::ptrdiff_t>(k)}, line,
                             kind, bounds);
    }
    return l;
}

/// The share of runs of unchanged code that pass a limit with this logarithm, and of runs that far
/// beyond it that fail, at their last analysis; 0 to 1.
inline double chance_to_pass(const learned_history& h, double line,
                             const history_bounds& bounds = {}) {
    const double sd = h.spread.sd * std::sqrt(1 + 1 / h.level.runs);
    const double t = student_t_quantile(normal_cdf(bounds.pass), h.spread.df);
    return student_t_cdf(line / sd - t, h.spread.df);
}
inline double chance_to_find(const learned_history& h, double beyond,
                             const history_bounds& bounds = {}) {
    const double sd = h.spread.sd * std::sqrt(1 + 1 / h.level.runs);
    const double t = student_t_quantile(normal_cdf(bounds.fail), h.spread.df);
    return student_t_cdf(beyond / sd - t, h.spread.df);
}

/// Degrees of freedom within runs that make their noise a prior.
inline constexpr double noise_known_from = 20;
// The floor of the prior: without it, a day with four times the noise of a quiet history would
// exceed the error levels.
inline constexpr double least_believed_sd = 0.04;

/// The prior standard deviation between repeats of a statistic's logarithm: a bound that is high
/// enough in four of five cases; 0: the history is too short.
inline double believed_sd(const repeats_spread& r) {
    if (r.df < noise_known_from) return 0;
    return std::max(least_believed_sd, std::sqrt(r.variance * r.df / chi_square_20(r.df)));
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
