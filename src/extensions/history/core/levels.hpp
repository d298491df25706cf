// levels of a series, and their first runs
#pragma once

#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // clamp, find, max, max_element, nth_element
#include <cmath>  // exp, expm1, fabs, log, sqrt
#include <cstddef>  // size_t
#include <string>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The last valid run of a UTC date.
struct series_run {
    std::string id{};
    std::string at{};      // UTC, "2026-11-23T02:15:04Z"
    std::string commit{};  // "" if unknown
    vector<double> repeats{};  // of the statistic, SI units, > 0
    /// Properties that do not change the series: name and value, "server" "vllm 0.33.0".
    vector<std::pair<std::string, std::string>> watched{};
    bool is_left_out = false;  // by an annotation
    std::string machine{};     // its name, "" if unknown
};

enum class annotation_kind { accept, step, no_step, leave_out };

struct annotation {
    annotation_kind kind = annotation_kind::accept;
    std::string at{};  // its date, or its run's
    std::string why{}, by{};
};

/// One statistic of a gate in one series, oldest run first, with its annotations.
struct history_series {
    std::string statistic{};  // "mean(tpot)"
    double offset = 0;        // of its metric: levels are logarithms of value + offset, or
    double scale = 0;         // above 0: values in parts of it, for differences
    bool at_most = true;      // less is better
    vector<series_run> runs{};
    vector<annotation> annotations{};
    bool has_level(double x) const { return scale > 0 || x + offset > 0; }
    double level_of(double x) const { return scale > 0 ? x / scale : std::log(x + offset); }
    double value_of(double level) const {
        return scale > 0 ? level * scale : std::exp(level) - offset;
    }
    /// A difference of levels as a share.
    double share_of(double by) const { return scale > 0 ? by : std::expm1(by); }
    /// The mean of all repeats.
    double mean() const {
        vector<double> all;
        for (const series_run& r : runs) all.insert(all.end(), r.repeats.begin(), r.repeats.end());
        return mean_of(all);
    }
};

// The minimum difference between two programs on one machine, days apart.
inline constexpr double least_run_sd = 0.0025;
inline constexpr std::size_t searched_runs = 80;
inline constexpr std::size_t runs_before = 3, runs_after = 2;  // minimum around a step

inline double median_of(vector<double> v) {
    if (v.empty()) return not_a_number;
    const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
    std::nth_element(v.begin(), middle, v.end());
    if (v.size() % 2 == 1) return *middle;
    return (*std::max_element(v.begin(), middle) + *middle) / 2;
}
/// The median distance from `center` in normal standard deviations, corrected for few values; 0 if
/// more than half are equal.
inline double robust_sd(vector<double> v, double center) {
    for (double& x : v) x = std::fabs(x - center);
    return 1.4826 * median_of(v) * (1 + 1 / static_cast<double>(v.size()));
}
/// Lag-1 autocorrelation of values around 0.
inline double lag_one(const vector<double>& v) {
    double products = 0, squares = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
        squares += v[i] * v[i];
        if (i > 0) products += v[i] * v[i - 1];
    }
    return squares > 0 ? products / squares : 0;
}

/// A run's repeats as levels, with less as better.
struct run_level {
    std::size_t run = 0;  // its index in the series
    double mean = 0, variance = 0, repeats = 0;
};
/// Without runs that lack the statistic or that an annotation leaves out.
inline vector<run_level> levels_of(const history_series& s) {
    vector<run_level> out;
    for (std::size_t i = 0; i < s.runs.size(); ++i) {
        const vector<double>& repeats = s.runs[i].repeats;
        const bool is_known = all_of(repeats, [&](double x) { return s.has_level(x); });
        if (s.runs[i].is_left_out || repeats.empty() || !is_known) continue;
        vector<double> levels;
        for (const double x : repeats) levels.push_back((s.at_most ? 1 : -1) * s.level_of(x));
        out.push_back({i, mean_of(levels), sample_variance(levels),
                       static_cast<double>(levels.size())});
    }
    return out;
}
inline vector<double> means_of(const vector<run_level>& runs, std::size_t first, std::size_t end) {
    vector<double> out;
    for (std::size_t i = first; i < end; ++i) out.push_back(runs[i].mean);
    return out;
}

/// The best split of values: the largest two-sample t, and the start of the later part.
struct split_found {
    std::size_t at = 0;
    double t = 0;
};
inline split_found best_split(const vector<double>& v) {
    const std::size_t n = v.size();
    const double shift = v.empty() ? 0 : v[0];  // sums of differences keep their digits
    double all = 0, squares = 0;
    for (const double x : v) {
        all += x - shift;
        squares += (x - shift) * (x - shift);
    }
    split_found best;
    double before = 0;
    for (std::size_t k = 1; k + runs_after <= n; ++k) {
        before += v[k - 1] - shift;
        if (k < runs_before) continue;
        const double a = static_cast<double>(k), b = static_cast<double>(n - k);
        const double after = all - before;
        const double within = squares - before * before / a - after * after / b;
        const double variance = std::max(within / (a + b - 2), least_run_sd * least_run_sd);
        const double t = std::fabs(after / b - before / a) / std::sqrt(variance * (1 / a + 1 / b));
        if (t > best.t) best = {k, t};
    }
    return best;
}
/// The factor by which dependence lowers a t: autocorrelation around both means, corrected for the
/// bias of short series.
inline double dependence_of_split(const vector<double>& v, std::size_t at) {
    const auto n = static_cast<double>(v.size());
    const auto part = v.begin() + static_cast<std::ptrdiff_t>(at);
    const double before = mean_of({v.begin(), part}), after = mean_of({part, v.end()});
    vector<double> rest;
    for (std::size_t i = 0; i < v.size(); ++i) rest.push_back(v[i] - (i < at ? before : after));
    const double r = std::clamp((lag_one(rest) * n + 2) / (n - 5), 0.0, 0.8);
    return std::sqrt((1 - r) / (1 + r));
}
/// The start of the newest level, 0 if no step is shown: a changepoint model (Hawkins, Qiu and
/// Kang, Journal of Quality Technology 35, 2003), with a two-sided level for a false step in 1 of
/// 500 runs.
inline std::size_t step_in(vector<double> v) {
    const std::size_t n = v.size();
    if (n < runs_before + runs_after + 1) return 0;
    const double center = median_of(v), sd = robust_sd(v, center);
    const double reach = 4 * std::max(sd, least_run_sd);  // nearer, a quiet series hides its steps
    if (n >= 8 && sd > 0)
        for (double& x : v) x = std::clamp(x, center - reach, center + reach);
    split_found best = best_split(v);
    if (best.at == 0) return 0;
    const auto runs = static_cast<double>(n);
    const double df = runs - 2;
    const double level = std::exp(-7.471 - 5.32 / runs + 56.4 / (runs * runs));
    const auto is_shown = [&](double t) {
        return incomplete_beta(df / 2, 0.5, df / (df + t * t)) < level;
    };
    if (!is_shown(best.t)) return 0;
    return n < 20 || is_shown(best.t * dependence_of_split(v, best.at)) ? best.at : 0;
}

/// Runs of one level: indices in the list of run_level; `end` is one beyond the last.
struct history_segment {
    std::size_t first = 0, end = 0;
    std::size_t found = 0;   // by the runs up to this one; `first` if by an annotation
    bool is_accepted = true;
};

/// The index of the first run at or after a date; their number if there is none.
inline std::size_t place_of_date(const history_series& s, const vector<run_level>& runs,
                                 const std::string& at) {
    std::size_t i = 0;
    while (i < runs.size() && s.runs[runs[i].run].at.substr(0, 10) < at.substr(0, 10)) ++i;
    return i;
}
inline vector<std::size_t> annotated_runs(const history_series& s,
                                          const vector<run_level>& runs,
                                          annotation_kind kind) {
    vector<std::size_t> out;
    for (const annotation& m : s.annotations)
        if (m.kind == kind) out.push_back(place_of_date(s, runs, m.at));
    return out;
}

/// From the first run to the last: a step that was found stays, unless an annotation denies it.
/// Runs before such an annotation stay in the segment, and are not searched again.
/// `is_mains(from, at, end)`: whether a step at the run `at` is one of main.
template <class Mains>
vector<history_segment> segments_of(const history_series& s, const vector<run_level>& runs,
                                    Mains&& is_mains) {
    if (runs.empty()) return {};
    const auto steps = annotated_runs(s, runs, annotation_kind::step);
    const auto none = annotated_runs(s, runs, annotation_kind::no_step);
    const auto holds = [](const vector<std::size_t>& v, std::size_t i) {
        return std::find(v.begin(), v.end(), i) != v.end();
    };
    vector<history_segment> out(1);
    std::size_t searched = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        if (holds(steps, i) && i > out.back().first) {
            out.back().end = i;
            out.push_back({i, i + 1, i});
            searched = i;
        }
        if (holds(none, i)) searched = i;
        const std::size_t from =
            std::max(searched, i + 1 > searched_runs ? i + 1 - searched_runs : 0);
        const std::size_t at = step_in(means_of(runs, from, i + 1));
        if (at > 0 && is_mains(from, from + at, i + 1)) {
            out.back().end = searched = from + at;
            out.push_back({from + at, i + 1, i});
        }
        out.back().end = i + 1;
    }
    return out;
}
inline vector<history_segment> segments_of(const history_series& s, const vector<run_level>& runs) {
    return segments_of(s, runs, [](auto...) { return true; });
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
