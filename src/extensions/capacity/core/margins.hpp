// margins of a probe, and the luck of its trace
#pragma once

#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/at_once.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // clamp, max
#include <cmath>  // ceil, expm1, floor, isfinite, isnan, llround, log, log10, pow, sqrt
#include <cstddef>  // size_t

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The log ratio of a statistic to its limit, for fractions the difference of logits. It is
/// positive on the side of a miss.
inline double margin_of(const slo& s, const repeat_data& d, double value) {
    const double sign = s.at_most ? 1 : -1;
    if (std::isnan(value)) return infinity;
    if (!is_request_fraction(s.statistic.metric)) return sign * std::log(value / s.bound);
    const double n = static_cast<double>(std::max<std::size_t>(d.records.size(), 1));
    const auto logit = [&](double fraction) {
        const double inside = std::clamp(fraction, 0.5 / n, 1 - 0.5 / n);
        return std::log(inside / (1 - inside));
    };
    return sign * (logit(value) - logit(s.bound));
}
inline double margin_of(const slo& s, const repeat_data& d) {
    return margin_of(s, d, evaluate(s.statistic, d));
}
/// The margin of the objective nearest to a miss, or furthest beyond it.
inline double worst_margin(const vector<slo>& slos, const repeat_data& d) {
    double worst = -infinity;
    for (const slo& s : slos)
        if (!s.is_advisory) worst = std::max(worst, margin_of(s, d));
    return worst;
}

inline double rounded_to_two_digits(double n) {  // upwards
    const double digit = std::max(1.0, std::pow(10, std::floor(std::log10(n)) - 1));
    return std::ceil(n / digit) * digit;
}

// ---- the luck of a trace: all probes replay one, so that more of them do not average it

inline constexpr std::size_t parts_of_a_trace = 10;
// How far beyond these a part is says nothing of the others: an empty server is fast.
inline constexpr double least_margin_of_a_part = -1, most_margin_of_a_part = 1.5;
inline double margin_in_range(double margin) {
    return std::clamp(margin, least_margin_of_a_part, most_margin_of_a_part);
}

/// The mean margin of each of these parts, over the repeats; empty if one has no value.
inline vector<double> margins_of_parts(const slo& s, const repeat_list& all) {
    vector<double> parts(parts_of_a_trace, 0.0);
    for (const repeat_data& d : all)
        for (std::size_t i = 0; i < parts_of_a_trace; ++i) {
            const auto edge = [&](std::size_t at) {
                const double into = static_cast<double>(at) / parts_of_a_trace;
                return d.window.from_ns() + std::llround(into * d.window.length_ns());
            };
            const auto when = time_interval::between(edge(i), edge(i + 1));
            const double value = column_of(s.statistic, d, timing_bound::measured, &when).value;
            if (std::isnan(value)) return {};
            parts[i] += margin_in_range(margin_of(s, d, value)) / static_cast<double>(all.size());
        }
    return parts;
}
/// How many times as long a probe has to be to show this margin, whatever the trace: parts of the
/// time differ as traces do. At most 1 if it is shown. Neighbours are alike, so that a pass needs
/// more; a fail does not, since overload makes later parts worse.
inline double times_as_long(const slo& s, const repeat_list& all, const judging_rule& rule,
                            bool fails) {
    vector<double> parts = margins_of_parts(s, all);
    if (parts.empty()) return 1;
    double margin = 0;
    for (const repeat_data& d : all)
        margin += margin_in_range(margin_of(s, d)) / as_number(all.size());
    for (double& p : parts) p /= parts_of_a_trace;
    error_at_once luck = error_by_neighbours(parts);
    if (fails) luck = {std::sqrt(sample_variance(parts) * parts_of_a_trace), parts_of_a_trace - 1};
    const double level = fails ? rule.fail_level : rule.pass_level;
    const double needed = student_t_quantile(1 - level, luck.df) * luck.se / margin;
    return needed * needed;
}

// ---- the luck of a trace, where a search finds the capacity of it

/// The work of a request in tokens of its prompt: an output token keeps a server about as busy as
/// ten of these.
inline double work_of(double prompt_tokens, double output_tokens) {
    return prompt_tokens + 10 * output_tokens;
}
/// By how much the capacity of another trace may differ (95 %), as arrivals and work do by chance.
/// `cv2`: the squared coefficients of variation of both.
inline double luck_of_traces(double arrival_cv2, double work_cv2, double arrivals) {
    return std::expm1(normal_quantile(0.975) * std::sqrt((arrival_cv2 + work_cv2) / arrivals));
}
/// The same by the requests of this probe; 0 of users, whose arrivals follow the server.
inline double luck_of_trace(const repeat_data& d, double arrival_cv2) {
    if (!std::isfinite(arrival_cv2)) return 0;
    vector<double> each;
    for (const record& r : d.records)
        if (is_pooled(r)) each.push_back(work_of(r.prompt_tokens, r.output_tokens));
    const double mean = mean_of(each);
    if (each.size() < 2 || !(mean > 0)) return 0;
    return luck_of_traces(arrival_cv2, sample_variance(each) / (mean * mean), as_number(each.size()));
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
