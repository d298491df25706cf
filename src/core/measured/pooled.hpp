// statistics over several repeats
// As tables and files show them: the maximum of all repeats, a percentile or mean of all requests.
// Never outside the range of the single repeats.
#pragma once

#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/drift.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/rates.hpp"
#include "core/measured/recovery.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_values.hpp"

#include <algorithm>  // max_element
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A statistic of one repeat, and what joins it with those of other repeats.
struct repeat_statistic {
    double value = not_a_number;  // in SI units, NaN without one
    double weight = 1;            // in a mean
    fraction_counts counts{};     // of a fraction
    sorted_values sorted{};       // of requests, sessions and gaps
};
inline double evaluate(const statistic_data& what, const repeat_data& d,
                       timing_bound how = timing_bound::measured);
/// A ratio is infinite if failures reach its numerator, NaN for the denominator.
inline repeat_statistic statistic_in(const statistic_data& what, const repeat_data& d,
                                     timing_bound how) {
    const metric_id m = what.metric;
    repeat_statistic s;
    switch (facts_of(m).of) {
    case metric_of::ratio:
        s.value = quotient(evaluate(what.parts[0], d, how),
                           evaluate(what.parts[1], d, opposite(how)));
        break;
    case metric_of::thirds: s.value = drift_of(what, d, how); break;
    case metric_of::window: return {window_rate(m, d, how, what.which), d.window.seconds()};
    case metric_of::prompts: {
        const prefix_hits hits = prefix_hits_of(d, what.which);
        return {hits.share(), hits.prompt};
    }
    case metric_of::start:
        s.value = m == metric_id::first_answer_time ? d.first_answer_s : d.startup_s;
        break;
    case metric_of::recovery: s.value = recovery_value(str(what.which.during), d); break;
    case metric_of::server: {
        const weighed_value read = value_by_server(what, d);
        return {read.value, read.weight};
    }
    case metric_of::requests:
        s.counts.add(misses_of(what, d, how));
        s.value = s.counts.value(m);
        break;
    default:
        s.sorted = sorted_values_of(what, d, how);
        s.value = statistic_among(what, s.sorted);
        s.weight =
            static_cast<double>(pools_gaps(m) ? s.sorted.gaps.size() : s.sorted.completed);
    }
    return s;
}
inline double evaluate(const statistic_data& what, const repeat_data& d, timing_bound how) {
    return statistic_in(what, d, how).value;
}
/// Several at once: neighbours of one metric share the expensive sorting.
inline vector<double> evaluate(const vector<statistic_data>& whats,
                               const repeat_data& d) {
    vector<double> values;
    sorted_values sorted;
    for (std::size_t i = 0; i < whats.size(); ++i) {
        const metric_id m = whats[i].metric;
        if (!is_of_requests(m)) { values.push_back(evaluate(whats[i], d)); continue; }
        if (i == 0 || whats[i - 1].metric != m ||
            selection_text(whats[i - 1].which) != selection_text(whats[i].which))
            sorted = sorted_values_of(whats[i], d);
        values.push_back(statistic_among(whats[i], sorted));
    }
    return values;
}

/// A statistic in each repeat of a variant, NaN without a value, and over all of them.
struct variant_values {
    vector<double> each{};
    double together = not_a_number;
};
/// A percentile of requests, sessions or gaps is selected among the values of all repeats.
/// Throughput is over all windows, a fraction over all requests or prompt tokens, a time to start
/// the mean of the starts.
inline variant_values values_of(const statistic_data& what, const repeat_list& variant,
                                timing_bound how = timing_bound::measured) {
    const metric_id m = what.metric;
    variant_values v;
    fraction_counts counts;
    sorted_values all;
    vector<std::pair<double, double>> weighted;
    const bool of_requests = is_of_requests(m) || is_of_sessions(m);
    const bool is_ranked = of_requests && (what.kind != statistic_kind::mean ||
                                           (pools_gaps(m) && how == timing_bound::measured));
    for (const repeat_data& d : variant) {
        const repeat_statistic one = statistic_in(what, d, how);
        v.each.push_back(one.value);
        weighted.emplace_back(one.value, one.weight);
        counts.add(one.counts);
        if (is_ranked) all.add(one.sorted);
    }
    const auto pooled = [&](const statistic_data& of, timing_bound as) {
        return values_of(of, variant, as).together;
    };
    if (is_ratio(m)) {
        v.together = quotient(pooled(what.parts[0], how), pooled(what.parts[1], opposite(how)));
    } else if (is_cost(m)) {
        statistic_data tokens = what;
        tokens.metric = metric_id::output_throughput;
        const double price = variant.empty() ? 0 : variant[0].usd_per_hour;
        v.together = cost_of_tokens(price, pooled(tokens, how));
    } else if (is_request_fraction(m)) {
        v.together = counts.value(m);
    } else if (is_ranked) {
        v.together = statistic_among(what, all);
    } else if (is_of_server(m) && is_largest_of_repeats(what) && !variant.empty()) {
        v.together = *std::max_element(v.each.begin(), v.each.end());
    } else {
        v.together = weighted_mean(weighted);
    }
    return v;
}
inline double pooled_value(const statistic_data& what, const repeat_list& variant,
                           timing_bound how = timing_bound::measured) {
    return values_of(what, variant, how).together;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
