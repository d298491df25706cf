// the level of a history, the spread of its runs, accepted levels, drift
#pragma once

#include "core/base/statistics.hpp"
#include "extensions/history/core/levels.hpp"

#include <algorithm>  // clamp, max, min, any_of
#include <cmath>  // fabs, pow, sqrt
#include <cstddef>  // size_t
#include <optional>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr std::size_t newest_runs = 30;  // the spread is from these
inline constexpr std::size_t level_runs = 10;   // maximum for a level's mean
inline constexpr std::size_t fewest_runs = 3;
inline constexpr std::size_t robust_from = 12;    // runs from which residuals are clipped
inline constexpr double given_df = 4;
inline constexpr std::size_t given_until = 10;    // runs that replace a given spread

/// The mean of values clipped at `reach` around their median, if there are at least five.
inline double clipped_mean(std::vector<double> v, double reach) {
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
inline repeats_spread spread_of_repeats(const std::vector<run_level>& runs, std::size_t from) {
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
    std::vector<double> all{};
    double segments = 0;
};
inline run_residuals residuals_of(const std::vector<run_level>& runs,
                                  const std::vector<history_segment>& segments, std::size_t from) {
    run_residuals out;
    const bool is_robust = runs.size() - from >= robust_from;
    for (const history_segment& s : segments) {
        if (s.end <= from) continue;
        const std::vector<double> own = means_of(runs, std::max(s.first, from), s.end);
        const double center = is_robust && own.size() >= 5 ? median_of(own) : mean_of(own);
        for (const double x : own) out.all.push_back(x - center);
        ++out.segments;
    }
    return out;
}
/// Clips them, and counts the outliers.
inline void clip_residuals(std::vector<double>& rest, runs_spread& noted) {
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
inline run_dependence dependence_of_runs(const std::vector<double>& rest) {
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
inline runs_spread spread_of_runs(const std::vector<run_level>& runs,
                                  const std::vector<history_segment>& segments, std::size_t from) {
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

/// A level and its number of runs.
struct level_of_runs {
    double mean = 0;
    double runs = 0;
};
/// A change of main in its newest one or two runs, not yet shown as a step.
struct main_moved {
    level_of_runs now{};
    double by = 0;            // from the segment's older runs; above 0: worse
};

/// All that the rule needs of a history: the same numbers give the same verdicts. Logarithms, less
/// is better.
struct learned_history {
    std::size_t runs = 0;  // the newest ones, used for all of this
    repeats_spread repeats{};
    runs_spread spread{};
    level_of_runs level{};
    std::vector<main_moved> moved{};
    double given_sd = 0;      // the user's spread between runs while it counts, else 0
    bool is_enough() const {
        return level.runs > 0 && repeats.df > 0 && spread.df > 0 && spread.sd > 0 &&
               (given_sd > 0 || runs >= fewest_runs);
    }
};

/// The level at the end of a segment.
inline level_of_runs newest_level(const std::vector<run_level>& runs, const history_segment& s,
                                  double sd) {
    const std::size_t w = std::min(s.end - s.first, level_runs);
    return {clipped_mean(means_of(runs, s.end - w, s.end), 3 * sd), static_cast<double>(w)};
}

inline std::vector<main_moved> moves_of_main(const std::vector<run_level>& runs,
                                             const history_segment& s, const runs_spread& n) {
    std::vector<main_moved> out;
    for (std::size_t c = 1; c <= 2 && s.first + c + 4 <= s.end; ++c) {
        const double now = mean_of(means_of(runs, s.end - c, s.end));
        const double before = clipped_mean(means_of(runs, s.first, s.end - c), 3 * n.sd);
        const auto count = static_cast<double>(c), older = static_cast<double>(s.end - s.first - c);
        const double reach = student_t_quantile(0.99, n.df) * n.sd *
                             std::sqrt(1 / count + 1 / older);
        if (std::fabs(now - before) > reach) out.push_back({{now, count}, now - before});
    }
    return out;
}

/// Main is compared with the newest accepted segment, another branch with the newest one.
inline const history_segment& segment_for(const std::vector<history_segment>& segments,
                                          bool is_main) {
    for (auto s = segments.rbegin(); is_main && s != segments.rend(); ++s)
        if (s->is_accepted) return *s;
    return segments.back();
}

/// `given_sd`: the user's spread between runs, 0 if not given.
inline learned_history learned_from(const std::vector<run_level>& runs,
                                    const std::vector<history_segment>& segments, bool is_main,
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
    const history_segment& against = segment_for(segments, is_main);
    h.level = newest_level(runs, against, h.spread.sd);
    // Main itself moved: its own run is compared with its earlier level.
    if (!is_main && h.spread.df > 0) h.moved = moves_of_main(runs, against, h.spread);
    return h;
}

inline constexpr std::size_t runs_of_drift = 10;
inline constexpr double least_drift = 0.01;
// runs: the accuracy with which a step's first one is found
inline constexpr std::size_t annotation_reaches = 2;

/// Whether the first runs of a segment, as many as showed it, are worse than the newest of another,
/// at a level of 5 %. Later runs do not count, so that decisions do not change.
inline bool is_worse(const std::vector<run_level>& runs, const history_segment& s,
                     const history_segment& than) {
    const std::vector<double> now = means_of(runs, s.first, std::min(s.found + 1, s.end));
    const std::vector<double> old =
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
inline std::vector<history_segment> with_accepted(std::vector<history_segment> segments,
                                                  const history_series& s,
                                                  const std::vector<run_level>& runs) {
    const auto annotations = annotated_runs(s, runs, annotation_kind::accept);
    std::size_t accepted = 0;
    for (std::size_t i = 1; i < segments.size(); ++i) {
        history_segment& now = segments[i];
        const bool is_annotated = std::any_of(
            annotations.begin(), annotations.end(),
            [&](std::size_t m) { return m + annotation_reaches >= now.first && m < now.end; });
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
inline std::optional<level_drift> drift_of_level(const std::vector<run_level>& runs,
                                                 const std::vector<history_segment>& segments,
                                                 const runs_spread& spread) {
    if (segments.empty() || !(spread.df > 0)) return {};
    const history_segment& accepted = segment_for(segments, true);
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

/// A series: its runs, segments and the data for the rule.
struct history_read {
    std::vector<run_level> runs{};
    std::vector<history_segment> segments{};
    learned_history learned{};
};
inline history_read history_read_as(const history_series& s, bool at_most, bool is_main,
                                    double given_sd = 0) {
    history_read r;
    r.runs = levels_of(s, at_most);
    r.segments = with_accepted(segments_of(s, r.runs), s, r.runs);
    r.learned = learned_from(r.runs, r.segments, is_main, given_sd);
    return r;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
