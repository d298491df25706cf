// statistics over several repeats
// As tables and files show them: the maximum of all repeats, a percentile or mean of all requests.
// Never outside the range of the single repeats.
#pragma once

#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/drift.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/rates.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_values.hpp"

#include <algorithm>  // max_element
#include <cmath>  // isnan
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A statistic in each repeat of a variant, NaN without a value, and over all of them.
struct variant_values {
    std::vector<double> each{};
    double together = not_a_number;
};

/// For requests, sessions and gaps: a percentile is selected among the values of all repeats.
inline variant_values values_of_requests(const statistic_data& what, const repeat_list& variant,
                                         timing_bound how) {
    const bool of_gaps = pools_gaps(what.metric);
    const bool is_of_means = what.kind == statistic_kind::mean &&
                             !(of_gaps && how == timing_bound::measured);
    variant_values v;
    sorted_values all;
    std::vector<std::pair<double, double>> means;  // with their numbers of values
    for (const repeat_data& d : variant) {
        const sorted_values one = sorted_values_of(what, d, how);
        v.each.push_back(statistic_among(what, one));
        means.emplace_back(v.each.back(),
                           static_cast<double>(of_gaps ? one.gaps.size() : one.completed));
        if (!is_of_means) all.add(one);
    }
    v.together = is_of_means ? weighted_mean(means) : statistic_among(what, all);
    return v;
}
/// For server metrics.
inline variant_values values_of_server(const statistic_data& what,
                                   const repeat_list& variant) {
    variant_values v;
    std::vector<std::pair<double, double>> weighted;
    for (const repeat_data& d : variant) {
        const weighed_value one = value_by_server(what, d);
        v.each.push_back(one.value);
        weighted.emplace_back(one.value, one.weight);
    }
    const auto largest = std::max_element(v.each.begin(), v.each.end());
    const bool is_largest = is_largest_of_repeats(what) && largest != v.each.end();
    v.together = is_largest ? *largest : weighted_mean(weighted);
    return v;
}
/// Throughput is over all windows, a fraction over all requests or prompt tokens, a time to start
/// the mean of the starts.
inline variant_values values_of(const statistic_data& what, const repeat_list& variant,
                            timing_bound how = timing_bound::measured) {
    if (is_ratio(what.metric)) {
        variant_values of = values_of(what.parts[0], variant, how);
        const variant_values to = values_of(what.parts[1], variant, opposite(how));
        for (std::size_t i = 0; i < of.each.size(); ++i)
            of.each[i] = quotient(of.each[i], to.each[i]);
        of.together = quotient(of.together, to.together);
        return of;
    }
    if (is_cost(what.metric)) {
        statistic_data tokens = what;
        tokens.metric = metric_id::output_throughput;
        variant_values v = values_of(tokens, variant, how);
        const double price = variant.empty() ? 0 : variant[0].usd_per_hour;
        v.together = cost_of_tokens(price, v.together);
        for (double& value : v.each) value = cost_of_tokens(price, value);
        return v;
    }
    if (is_of_requests(what.metric) || is_of_sessions(what.metric))
        return values_of_requests(what, variant, how);
    if (is_of_server(what.metric)) return values_of_server(what, variant);
    variant_values v;
    fraction_counts counts;
    std::vector<std::pair<double, double>> weighted;
    for (const repeat_data& d : variant) {
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
inline double pooled_value(const statistic_data& what, const repeat_list& variant,
                           timing_bound how = timing_bound::measured) {
    return values_of(what, variant, how).together;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
