// metrics over the repeats of a variant: rows of tables, labels, curves
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/rates.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/figures/timelines.hpp"

#include <algorithm>  // clamp, max, min
#include <cmath>  // isfinite, log10, pow
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Over all repeats of a variant.
struct metric_row {
    metric_id metric;
    double mean = not_a_number, p50 = mean, p90 = mean, p99 = mean, max = mean;
};
/// Its statistics, in the order of tables.
struct row_statistic {
    const char* name;
    double metric_row::* value;
    statistic_kind kind;
    double q;
};
inline constexpr row_statistic row_statistics[] = {
    {"mean", &metric_row::mean, statistic_kind::mean, 0},
    {"p50", &metric_row::p50, statistic_kind::percentile, 0.5},
    {"p90", &metric_row::p90, statistic_kind::percentile, 0.9},
    {"p99", &metric_row::p99, statistic_kind::percentile, 0.99},
    {"max", &metric_row::max, statistic_kind::max, 0}};
/// The rows of the latency table. Without a stream there is no first token.
inline vector<metric_id> table_metrics(const plan& p) {
    if (!p.sent->common.stream || !p.sent->scores.empty()) return {metric_id::e2e};
    vector<metric_id> rows = {metric_id::ttft, metric_id::tpot, metric_id::itl,
                              metric_id::e2e, metric_id::ttft_from_send};
    if (has_turns(p))
        for (const metric_id id : {metric_id::first_turn_ttft, metric_id::later_turn_ttft})
            rows.push_back(id);
    return rows;
}
inline metric_row row_of(metric_id id, const sorted_values& all) {
    metric_row row{id};
    for (const row_statistic& s : row_statistics)
        row.*s.value = statistic_among(make_statistic(s.kind, id, s.q), all);
    return row;
}
inline double run_value(metric_id id, const repeat_list& variant) {
    return pooled_value(make_statistic(statistic_kind::value, id, 0), variant);
}

/// The distribution of a metric over a variant: its table row and its quantiles as lines.
struct variant_distribution {
    metric_row row{};
    vector<curve_point> pooled{};  // value, quantile
    vector<vector<curve_point>> lines{};
};
inline constexpr int line_points = 96;
/// Returns how far into the tail n values reach, as -log10(1 - q).
inline double nines_of(std::size_t n) {
    return std::clamp(std::log10(static_cast<double>(std::max<std::size_t>(n, 1))), 1.0, 5.0);
}
inline vector<curve_point> quantile_line(metric_id id, const sorted_values& sorted) {
    vector<curve_point> line;
    const double deepest = nines_of(sorted.size());
    for (int k = 0; k <= line_points && sorted.size() > 0; ++k) {
        const double fraction = static_cast<double>(k) / line_points;
        const double q = is_speed(id) ? fraction : 1 - std::pow(10, -deepest * fraction);
        line.push_back({sorted.at(nearest_rank_of(sorted.size(), q)), q});
    }
    // The largest value ends the last step.
    if (!line.empty() && !is_speed(id))
        line.push_back({sorted.at(sorted.size() - 1), line.back().y});
    return line;
}
inline variant_distribution distribution_of(metric_id id, const repeat_list& variant) {
    variant_distribution out;
    sorted_values all;
    for (const repeat_data& d : variant) {
        const sorted_values sorted =
            request_values_of(make_statistic(statistic_kind::mean, id, 0), d).sorted;
        out.lines.push_back(quantile_line(id, sorted));
        all.add(sorted);
    }
    out.pooled = quantile_line(id, all);
    out.row = row_of(id, all);
    return out;
}

/// One label of a variant, over all repeats.
struct label_figures {
    std::string label{};
    std::size_t requests = 0, failed = 0;  // measured ones
    request_tokens tokens{};
    vector<metric_row> rows{};  // of the latency table
    double output_throughput = not_a_number, request_throughput = not_a_number;
    const metric_row* row_of(metric_id id) const {
        for (const metric_row& r : rows)
            if (r.metric == id) return &r;
        return nullptr;
    }
};
/// Gaps kept as histograms have no label.
inline vector<label_figures> label_figures_of(const vector<metric_id>& metrics,
                                              const repeat_list& variant) {
    vector<label_figures> all;
    if (variant.empty()) return all;
    const bool counted = any_of(variant, [](const repeat_data& d) { return d.gaps_counted; });
    for (const std::string& name : variant.front().labels) {
        label_figures f;
        f.label = name;
        const selection own = label(text(name));
        f.tokens = request_tokens_of(variant, own);
        for (const repeat_data& d : variant) {
            const selects selected(own, d);
            for (const record& r : d.records) {
                f.requests += is_measured(r) && selected.has(r);
                f.failed += is_measured(r) && selected.has(r) && has_failed(r);
            }
        }
        for (const metric_id id : metrics) {
            if (is_of_turns(id) || (counted && pools_gaps(id))) continue;
            const statistic_data what = of_some(make_statistic(statistic_kind::mean, id, 0), own);
            sorted_values values;
            for (const repeat_data& d : variant) values.add(request_values_of(what, d).sorted);
            f.rows.push_back(row_of(id, values));
        }
        const auto rate = [&](metric_id id) {
            return pooled_value(of_some(make_statistic(statistic_kind::value, id, 0), own),
                                variant);
        };
        f.output_throughput = rate(metric_id::output_throughput);
        f.request_throughput = rate(metric_id::request_throughput);
        all.push_back(f);
    }
    return all;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
