// statistics of several repeats together
// The data as a whole, as tables and files show them: the largest value of all repeats, a
// percentile of all their requests, a mean over all of them. It is never outside of what the single
// repeats have.
#pragma once

#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/drift.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/prefix_hits.hpp"
#include "core/measured/rates.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/measured/server_values.hpp"

#include <algorithm>  // max_element
#include <cmath>  // isnan
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A statistic in each repeat of an arm, NaN where it has none, and in all of them together.
struct arm_values {
    std::vector<double> each{};
    double together = not_a_number;
};

/// Of times and speeds of requests, and times of sessions: a percentile is selected among the
/// values of all repeats.
inline arm_values values_of_requests(const statistic_data& what,
                                     const repeat_list& arm, timing_bound how) {
    arm_values v;
    metric_sample all;
    std::vector<std::pair<double, double>> means;  // and how many values each is of
    for (const repeat_data& d : arm) {
        metric_sample s = sample_of(what, d, how);
        v.each.push_back(value_among(what, s));
        means.emplace_back(v.each.back(), static_cast<double>(s.values.size()));
        all.failed += s.failed;
        if (what.kind != statistic_kind::mean)
            all.values.insert(all.values.end(), s.values.begin(), s.values.end());
    }
    v.together = what.kind == statistic_kind::mean ? weighted_mean(means) : value_among(what, all);
    return v;
}
/// Of gaps, which are not copied.
inline arm_values values_of_gaps(const statistic_data& what, const repeat_list& arm,
                                 timing_bound how) {
    arm_values v;
    sorted_values all;
    std::vector<std::pair<double, double>> means;  // and how many gaps each is of
    for (const repeat_data& d : arm) {
        const sorted_values one = sorted_values_of(what, d, how);
        v.each.push_back(value_among(what, one));
        means.emplace_back(one.mean_of_completed, static_cast<double>(one.gaps.size()));
        all.add(one);
    }
    const bool is_moved = what.kind == statistic_kind::mean && how != timing_bound::measured;
    v.together = is_moved ? weighted_mean(means) : value_among(what, all);
    return v;
}
/// Of server metrics.
inline arm_values values_of_server(const statistic_data& what,
                                   const repeat_list& arm) {
    arm_values v;
    std::vector<std::pair<double, double>> weighted;
    for (const repeat_data& d : arm) {
        const weighed_value one = value_by_server(what, d);
        v.each.push_back(one.value);
        weighted.emplace_back(one.value, one.weight);
    }
    const auto largest = std::max_element(v.each.begin(), v.each.end());
    const bool is_largest = is_largest_of_repeats(what) && largest != v.each.end();
    v.together = is_largest ? *largest : weighted_mean(weighted);
    return v;
}
/// A throughput is over the windows of all repeats, a fraction of all their requests or of the
/// tokens of their prompts, a time to start the mean of the starts.
inline arm_values values_of(const statistic_data& what, const repeat_list& arm,
                            timing_bound how = timing_bound::measured) {
    if (is_ratio(what.metric)) {
        arm_values of = values_of(what.parts[0], arm, how);
        const arm_values to = values_of(what.parts[1], arm, opposite(how));
        for (std::size_t i = 0; i < of.each.size(); ++i)
            of.each[i] = to.each[i] > 0 ? of.each[i] / to.each[i] : not_a_number;
        of.together = to.together > 0 ? of.together / to.together : not_a_number;
        return of;
    }
    if (is_cost(what.metric)) {
        statistic_data tokens = what;
        tokens.metric = metric_id::output_throughput;
        arm_values v = values_of(tokens, arm, how);
        const double price = arm.empty() ? 0 : arm[0].usd_per_hour;
        v.together = cost_of_tokens(price, v.together);
        for (double& value : v.each) value = cost_of_tokens(price, value);
        return v;
    }
    if (facts_of(what.metric).is_of_gaps) return values_of_gaps(what, arm, how);
    if (is_of_requests(what.metric) || is_of_sessions(what.metric))
        return values_of_requests(what, arm, how);
    if (is_of_server(what.metric)) return values_of_server(what, arm);
    arm_values v;
    fraction_counts counts;
    std::vector<std::pair<double, double>> weighted;
    for (const repeat_data& d : arm) {
        if (is_request_fraction(what.metric)) {
            fraction_counts own;
            own.add(misses_of(what, d, how));
            v.each.push_back(own.value(what.metric));
            counts.misses += own.misses;
            counts.all += own.all;
            continue;
        }
        v.each.push_back(is_drift(what.metric) ? drift_of(what, d, how) : evaluate(what, d, how));
        weighted.emplace_back(v.each.back(),
                              is_throughput(what.metric)   ? d.window.seconds()
                              : is_of_prompts(what.metric) ? prefix_hits_of(d, what.which).prompt
                                                           : 1.0);
    }
    v.together =
        is_request_fraction(what.metric) ? counts.value(what.metric) : weighted_mean(weighted);
    return v;
}
inline double pooled_value(const statistic_data& what, const repeat_list& arm,
                           timing_bound how = timing_bound::measured) {
    return values_of(what, arm, how).together;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
