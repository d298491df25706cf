// figures of reports
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"

#include <algorithm>  // find_if, sort
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
inline metric_row metric_row_of(metric_id id, const std::vector<repeat_data>& arm) {
    const std::vector<statistic_data> columns = {
        make_statistic(statistic_kind::mean, id, 0),
        make_statistic(statistic_kind::percentile, id, 0.5),
        make_statistic(statistic_kind::percentile, id, 0.9),
        make_statistic(statistic_kind::percentile, id, 0.99),
        make_statistic(statistic_kind::max, id, 0)};
    std::vector<std::vector<double>> of_column(columns.size());
    for (const repeat_data& d : arm) {
        const std::vector<double> values = evaluate(columns, d);
        for (std::size_t c = 0; c < columns.size(); ++c) of_column[c].push_back(values[c]);
    }
    return {id, geometric_mean(of_column[0]), geometric_mean(of_column[1]),
            geometric_mean(of_column[2]), geometric_mean(of_column[3]),
            geometric_mean(of_column[4])};
}
inline double run_value(metric_id id, const std::vector<repeat_data>& arm) {
    statistic_data s;
    s.metric = id;
    return over_repeats(s, arm);
}

struct status_count {
    request_status status;
    std::size_t count;
    std::string example;
};
/// Measured requests by outcome, most frequent failures first, ok in front.
inline std::vector<status_count> status_counts(const std::vector<repeat_data>& arm) {
    std::vector<status_count> counts{{request_status::ok, 0, ""}};
    for (const repeat_data& d : arm)
        for (const record& r : d.records) {
            if (!is_measured(r)) continue;
            auto at = std::find_if(counts.begin(), counts.end(),
                                   [&](const status_count& c) { return c.status == r.status; });
            if (at == counts.end()) at = counts.insert(counts.end(), {r.status, 0, str(r.error)});
            ++at->count;
        }
    std::sort(counts.begin() + 1, counts.end(), [](const auto& a, const auto& b) {
        return a.count != b.count ? a.count > b.count : a.status < b.status;
    });
    return counts;
}
/// Completed requests for which the server's usage cannot be right: an event with content brings a
/// token at least, and may bring several.
inline std::size_t usage_below_events(const std::vector<repeat_data>& arm) {
    std::size_t n = 0;
    for (const repeat_data& d : arm)
        for (const record& r : d.records)
            n += is_measured(r) && r.status == request_status::ok && r.output_tokens < r.events;
    return n;
}

/// Lengths of made-up prompts in rising order, as asked and as the server counted; none where the
/// workload asks for no length of a whole prompt.
struct prompt_lengths {
    std::vector<double> asked{}, counted{};
};
inline prompt_lengths prompt_lengths_of(const plan& p, const std::vector<repeat_data>& arm) {
    prompt_lengths found;
    if (!makes_up_prompts(p) || p.stride > 1 || !p.forces_length) return found;
    for (const repeat_data& d : arm) {
        const plan of_repeat = p.rule.traffic == fresh ? stage_of(p, d.index) : p;
        for (const record& r : d.records) {
            if (!is_measured(r) || r.status != request_status::ok || r.prompt_tokens <= 0) continue;
            const auto place = static_cast<std::size_t>(r.conversation);
            found.asked.push_back(item_of(of_repeat, place).prompt_tokens);
            found.counted.push_back(r.prompt_tokens);
        }
    }
    for (auto* v : {&found.asked, &found.counted}) std::sort(v->begin(), v->end());
    return found;
}

/// Prompt tokens of the requests for which the server says what its prefix cache had of them.
struct prefix_hits {
    double cached = 0, prompt = 0;
};
inline prefix_hits prefix_hits_of(const std::vector<repeat_data>& arm) {
    prefix_hits sum;
    for (const repeat_data& d : arm)
        for (const record& r : d.records) {
            if (!is_measured(r) || r.cached_tokens < 0 || r.prompt_tokens <= 0) continue;
            sum.cached += r.cached_tokens;
            sum.prompt += r.prompt_tokens;
        }
    return sum;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
