// accepted levels, and the drift since then
#pragma once

#include "core/base/statistics.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/night.hpp"
#include "extensions/history/core/segments.hpp"

#include <algorithm>  // any_of, max, min
#include <cmath>  // fabs, sqrt
#include <cstddef>  // size_t
#include <optional>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr std::size_t nights_of_drift = 10;
inline constexpr double least_drift = 0.01;
// runs: the accuracy with which a step's first one is found
inline constexpr std::size_t mark_reaches = 2;

/// Whether the first runs of a segment, as many as showed it, are worse than the newest of another,
/// at a level of 5 %. Later runs do not count, so that decisions do not change.
inline bool is_worse(const std::vector<night_level>& nights, const history_segment& s,
                     const history_segment& than) {
    const std::vector<double> now = means_of(nights, s.first, std::min(s.found + 1, s.end));
    const std::vector<double> old =
        means_of(nights, than.end - std::min(than.end - than.first, level_nights), than.end);
    const auto a = static_cast<double>(now.size()), b = static_cast<double>(old.size());
    const double df = a + b - 2, change = mean_of(now) - mean_of(old);
    if (df <= 0) return change > 0;
    const double variance =
        std::max(((a - 1) * sample_variance(now) + (b - 1) * sample_variance(old)) / df,
                 least_night_sd * least_night_sd);
    return change > student_t_quantile(0.95, df) * std::sqrt(variance * (1 / a + 1 / b));
}

/// A regression is accepted only by an annotation; a level no worse than the newest accepted one
/// (an improvement, or a repaired regression) is accepted automatically.
inline std::vector<history_segment> with_accepted(std::vector<history_segment> segments,
                                                  const history_series& s,
                                                  const std::vector<night_level>& nights) {
    const auto marks = marked_nights(s, nights, annotation_kind::accept);
    std::size_t accepted = 0;
    for (std::size_t i = 1; i < segments.size(); ++i) {
        history_segment& now = segments[i];
        const bool is_marked = std::any_of(marks.begin(), marks.end(), [&](std::size_t m) {
            return m + mark_reaches >= now.first && m < now.end;
        });
        now.is_accepted = is_marked || !is_worse(nights, now, segments[accepted]);
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
inline std::optional<level_drift> drift_of_level(const std::vector<night_level>& nights,
                                                 const std::vector<history_segment>& segments,
                                                 const nights_spread& spread) {
    if (segments.empty() || !(spread.df > 0)) return {};
    const history_segment& accepted = segment_for(segments, true);
    const std::size_t end = nights.size(), n = nights_of_drift;
    if (accepted.end - accepted.first < n || end < accepted.first + 2 * n) return {};
    const double then = clipped_mean(means_of(nights, accepted.first, accepted.first + n),
                                     3 * spread.sd);
    const double now = clipped_mean(means_of(nights, end - n, end), 3 * spread.sd);
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
    std::vector<night_level> nights{};
    std::vector<history_segment> segments{};
    learned_history learned{};
};
inline history_read history_read_as(const history_series& s, bool at_most, bool is_main,
                                    double given_sd = 0) {
    history_read r;
    r.nights = levels_of(s, at_most);
    r.segments = with_accepted(segments_of(s, r.nights), s, r.nights);
    r.learned = learned_from(r.nights, r.segments, is_main, given_sd);
    return r;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
