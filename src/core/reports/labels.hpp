// the table of labels
#pragma once

#include "api/metrics.hpp"
#include "core/base/text.hpp"
#include "core/metric/value_text.hpp"
#include "core/figures/labels.hpp"
#include "core/reports/gate_report.hpp"

#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The lines of the baseline are last.
struct labels_table {
    std::vector<std::string> head{};
    std::vector<std::vector<std::string>> lines{};
};
inline labels_table labels_table_of(const gate_report& g) {
    labels_table t;
    t.head = {"label", "failed"};
    struct column {
        metric_id metric;
        const char* name;
        double metric_row::*value;
    };
    const column columns[] = {{metric_id::ttft, "ttft p50", &metric_row::p50},
                              {metric_id::ttft, "ttft p90", &metric_row::p90},
                              {metric_id::tpot, "tpot p50", &metric_row::p50},
                              {metric_id::e2e, "e2e p50", &metric_row::p50},
                              {metric_id::e2e, "e2e p90", &metric_row::p90}};
    const bool streams = g.what.sent->common.stream && g.what.sent->scores.empty();
    const metric_id rate =
        g.what.sent->scores.empty() ? metric_id::output_throughput : metric_id::request_throughput;
    const auto is_shown = [&](const column& c) { return streams || c.metric == metric_id::e2e; };
    for (const column& c : columns)
        if (is_shown(c)) t.head.push_back(c.name);
    t.head.push_back("throughput");
    for (const variant_figures* variant : {&g.figures.candidate, &g.figures.baseline})
        for (const label_figures& f : variant->labels) {
            const char* of = variant == &g.figures.baseline ? "baseline: " : "";
            std::vector<std::string> line = {of + f.label,
                                             printed("%zu of %zu", f.failed, f.requests)};
            for (const column& c : columns) {
                const metric_row* row = f.row_of(c.metric);
                if (is_shown(c))
                    line.push_back(value_text(c.metric, row ? row->*c.value : not_a_number));
            }
            line.push_back(value_text(rate, rate == metric_id::output_throughput
                                                ? f.output_throughput
                                                : f.request_throughput));
            t.lines.push_back(line);
        }
    return t;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
