// what makes two variants no comparison
#pragma once

#include "api/metrics.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/validity.hpp"

#include <algorithm>  // max, min
#include <cmath>  // fabs, hypot, log, sqrt
#include <cstddef>  // size_t

namespace llmbench {
inline namespace v1 {
namespace detail {

inline cause no_baseline(objective_in_check& o) {
    const bool compared = o.e.has_live_baseline() || !o.t.stored.file.empty() || o.t.past;
    return needs_baseline(o.s) && !compared ? cause{because::no_baseline} : cause{};
}
/// Variants at once whose users lose more of their speed to each other than is allowed, and more
/// than three standard errors: each reads as fast as the other.
inline cause share_machine(objective_in_check& o) {
    if (is_absolute(o.s)) return {};
    for (std::size_t i = 0; i < std::min(o.e.candidate.size(), o.e.baseline.size()); ++i) {
        const repeat_data &mine = o.e.candidate[i], &other = o.e.baseline[i];
        const double kept =
            (std::min(mine.speed_at_once, 1.0) + std::min(other.speed_at_once, 1.0)) / 2;
        const double error = std::hypot(mine.speed_error, other.speed_error) / 2;
        if (1 - kept > 0.1 + 3 * error)
            return cause_with<because::share_machine>({{"lost", 1 - kept}}, whose::plan);
    }
    return {};
}
/// Answers that do not depend on what was asked, where the baseline's do: a quarter of all answers
/// more than there, and three standard errors. Refusals of one build begin alike on both sides.
inline cause alike_alone(objective_in_check& o) {
    const answer_counts &mine = o.g.candidate, &other = o.g.baseline;
    const bool is_compared = !is_absolute(o.s) && o.is_of(is_of_service) && other.completed > 0;
    if (!is_compared || !mine.are_alike()) return {};
    const double a = mine.alike(), b = other.alike();
    const double error = std::sqrt(a * (1 - a) / as_number(mine.completed) +
                                   b * (1 - b) / as_number(other.completed));
    if (a - b <= 0.25 + 3 * error) return {};
    return cause_with<because::alike_alone>(
        {{"requests", mine.equal_openings}, {"completed", mine.completed}}, whose::server);
}
/// Whether a metric is of whole answers, which longer ones take longer for.
inline bool is_total(metric_id m) {
    return m == metric_id::e2e || is_of_sessions(m) || m == metric_id::request_throughput;
}
/// The output tokens of completed requests, each one's.
inline vector<double> output_tokens_in(const repeat_list& variant, const selection& which) {
    vector<double> tokens;
    for (const repeat_data& d : variant) {
        const selects selected(which, d);
        for (const record& r : d.records)
            if (selected.completed(r)) tokens.push_back(r.output_tokens);
    }
    return tokens;
}
/// Why whole answers are not compared, where both variants were asked the same: one of them ends
/// its answers earlier, by 5 % and more than three standard errors.
inline cause other_lengths(const objective_in_check& o) {
    if (!o.e.has_live_baseline() || !concerns_a_metric(o.s.statistic, is_total)) return {};
    const selection& which = o.s.statistic.which;
    const vector<double> mine = output_tokens_in(o.e.candidate, which),
                         other = output_tokens_in(o.e.baseline, which);
    const double a = mean_of(mine), b = mean_of(other);
    if (mine.size() < 2 || other.size() < 2 || !(a > 0 && b > 0)) return {};
    const double error = std::sqrt(sample_variance(mine) / as_number(mine.size()) / (a * a) +
                                   sample_variance(other) / as_number(other.size()) / (b * b));
    if (std::fabs(std::log(a / b)) <= std::log(1.05) + 3 * error) return {};
    return cause_with<because::other_tokens>(
        {{"tokens", a}, {"is_prompt", false}, {"baseline", b}, {"of_totals", true}});
}
/// Why token rates are not compared: the variants' workloads differ.
inline cause other_tokens(objective_in_check& o) {
    const metric_id m = o.s.statistic.metric;
    if (!is_absolute(o.s) && !o.e.other_workload && !o.e.other_requests) return other_lengths(o);
    const bool of_tokens = is_throughput(m) && m != metric_id::request_throughput;
    if (!o.e.other_workload || is_absolute(o.s) || !of_tokens) return {};
    const request_tokens mine = request_tokens_of(o.e.candidate, o.s.statistic.which),
                         other = request_tokens_of(o.e.baseline, o.s.statistic.which);
    const auto differ = [](double a, double b) { return std::max(a, b) > 1.05 * std::min(a, b); };
    const bool of_prompts = m == metric_id::prefill_throughput ||
                            m == metric_id::input_throughput || m == metric_id::total_throughput;
    const bool of_outputs = !of_prompts || m == metric_id::total_throughput;
    const bool by_prompts = of_prompts && differ(mine.prompt, other.prompt);
    if (!by_prompts && !(of_outputs && differ(mine.output, other.output))) return {};
    return cause_with<because::other_tokens>(
        {{"tokens", by_prompts ? mine.prompt : mine.output},
         {"is_prompt", by_prompts},
         {"baseline", by_prompts ? other.prompt : other.output},
         {"of_totals", false}});
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
