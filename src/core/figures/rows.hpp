// the rows of a table: each metric over the repeats of an arm
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/plan.hpp"

#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The statistic over all repeats of an arm: a share of all their requests, else the geometric mean
/// of what each repeat shows.
inline double over_repeats(const statistic_data& what, const std::vector<repeat_data>& arm) {
    if (is_share(what.metric)) {  // of all requests, as its verdict counts them
        double misses = 0, all = 0;
        for (const repeat_data& d : arm)
            for (const bool miss : misses_of(what, d)) { misses += miss; ++all; }
        const double share = all > 0 ? misses / all : not_a_number;
        return what.metric == metric_id::goodput ? 1 - share : share;
    }
    std::vector<double> values;
    for (const repeat_data& d : arm) values.push_back(evaluate(what, d));
    return geometric_mean(values);
}

struct metric_row {
    metric_id metric;
    double mean, p50, p90, p99, max;
};
/// The rows of a gate's table of latencies.
inline std::vector<metric_id> table_metrics(const plan& p) {
    std::vector<metric_id> rows = {metric_id::ttft, metric_id::tpot, metric_id::itl,
                                   metric_id::e2e, metric_id::ttft_from_send};
    if (p.stride > 1)
        for (const metric_id id : {metric_id::first_turn_ttft, metric_id::later_turn_ttft})
            rows.push_back(id);
    return rows;
}
inline double run_value(metric_id id, const std::vector<repeat_data>& arm) {
    statistic_data s;
    s.metric = id;
    return over_repeats(s, arm);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
