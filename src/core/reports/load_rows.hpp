// gates of one server under several loads, as rows
#pragma once

#include "api/metrics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/capacity/search.hpp"
#include "core/traffic/plan.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/figures/rows.hpp"
#include "core/reports/gate_report.hpp"

#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One load, measured as a gate of its own, and the result of its verdicts.
struct judged_load {
    double load = 0;
    std::string gate{};
    carried shows = carried::open;
    std::string missed{};  // the first objective that failed
};

/// A point of the curve: a variant at a load.
struct curve_row {
    const judged_load& at;
    std::size_t gate = 0;  // index in the report
    const gate_report& of;
    const variant_figures& variant;
    bool is_baseline = false;
    double value(metric_id run_metric) const { return variant.run_value(run_metric); }
    metric_row row(metric_id m) const { return latency_row(of.figures, variant, m); }
    /// Tokens/s, as one user sees them.
    double speed() const { return 1 / row(metric_id::tpot).mean; }
};
/// Adds the rows of both variants, the candidate's first.
inline void add_rows(std::vector<curve_row>& rows, const judged_load& at, std::size_t gate,
                     const gate_report& of) {
    rows.push_back({at, gate, of, of.figures.candidate});
    if (!of.figures.baseline.empty()) rows.push_back({at, gate, of, of.figures.baseline, true});
}

/// The columns of a curve's tables. There is no ttft without streaming, and no output tokens if the
/// API generates nothing.
struct curve_columns {
    metric_id first = metric_id::ttft, tokens = metric_id::output_throughput;
    bool has_tokens = true, has_cost = false;
};
inline curve_columns columns_of_rows(const std::vector<curve_row>& rows) {
    curve_columns c;
    for (const curve_row& r : rows) {
        const planned_traffic& sent = *r.of.what.sent;
        if (!sent.scores.empty()) c.tokens = metric_id::input_throughput;
        if (!sent.scores.empty() || !sent.common.stream) {
            c.first = metric_id::e2e;
            c.has_tokens = false;
        }
        c.has_cost = c.has_cost || !std::isnan(r.value(metric_id::cost_per_million_tokens));
    }
    return c;
}
inline std::vector<std::string> curve_head(const curve_columns& c) {
    const std::string first = metric_name(c.first);
    std::vector<std::string> head = {metric_name(c.tokens), "requests", first + " p50",
                                     first + " p90"};
    if (c.has_tokens) head.insert(head.end(), {"tpot mean", "a user"});
    if (c.has_cost) head.push_back("a million tokens");
    return head;
}
inline std::vector<std::string> curve_cells(const curve_columns& c, const curve_row& r) {
    const metric_row first = r.row(c.first);
    std::vector<std::string> cells = {
        value_text(c.tokens, r.value(c.tokens)),
        value_text(metric_id::request_throughput, r.value(metric_id::request_throughput)),
        time_text(first.p50), time_text(first.p90)};
    if (c.has_tokens) {
        cells.push_back(time_text(r.row(metric_id::tpot).mean));
        cells.push_back(value_text(metric_id::decode_speed, r.speed()));
    }
    if (c.has_cost)
        cells.push_back(value_text(metric_id::cost_per_million_tokens,
                                   r.value(metric_id::cost_per_million_tokens)));
    return cells;
}
/// Returns the result of a load, or how its gate ended if it has none.
inline std::string shown_at(const curve_row& r) {
    return r.is_baseline                   ? "baseline"
           : r.at.shows != carried::open ? to_string(r.at.shows)
                                         : headline_text(r.of);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
