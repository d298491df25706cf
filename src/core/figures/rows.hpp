// the rows of a table: each metric over the repeats of a variant
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/pooled.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/traffic/plan.hpp"

#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Over all repeats of a variant.
struct metric_row {
    metric_id metric;
    double mean, p50, p90, p99, max;
};
/// The rows of the latency table. Without a stream there is no first token.
inline std::vector<metric_id> table_metrics(const plan& p) {
    if (!p.sent->common.stream || !p.sent->scores.empty()) return {metric_id::e2e};
    std::vector<metric_id> rows = {metric_id::ttft, metric_id::tpot, metric_id::itl,
                                   metric_id::e2e, metric_id::ttft_from_send};
    if (has_turns(p))
        for (const metric_id id : {metric_id::first_turn_ttft, metric_id::later_turn_ttft})
            rows.push_back(id);
    return rows;
}
inline metric_row row_of(metric_id id, const sorted_values& all) {
    const auto value = [&](statistic_kind kind, double q) {
        return value_among(make_statistic(kind, id, q), all);
    };
    return {id,
            value(statistic_kind::mean, 0),
            value(statistic_kind::percentile, 0.5),
            value(statistic_kind::percentile, 0.9),
            value(statistic_kind::percentile, 0.99),
            value(statistic_kind::max, 0)};
}
inline double run_value(metric_id id, const repeat_list& variant) {
    return pooled_value(make_statistic(statistic_kind::value, id, 0), variant);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
