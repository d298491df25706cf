// counts of work in reports
#pragma once

#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/measured/server_values.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/page/sections.hpp"
#include "core/reports/page/verdicts.hpp"
#include "core/reports/tables.hpp"
#include "extensions/work/core/judged.hpp"

#include <cmath>  // isnan
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// What the model expects of the prompts of a repeat, "" for other counts.
inline std::string expected_text(const repeat_facts& d, const std::string& count) {
    const double n = expected_of_prompts(d, count);
    return std::isnan(n) ? "" : counted_text(n);
}
/// A table of all counts that the server's page has, whether or not an objective is on them.
inline void show_work(const gate_report& g, report_parts& into) {
    if (!g.under.counts_work) return;
    report_table t{{"count", "arm", "repeat", "counted", "expected"}, 2};
    for (const count_name& c : count_names)
        for (const variant_figures* variant : {&g.figures.candidate, &g.figures.baseline})
            for (const repeat_figures& d : variant->repeats) {
                statistic_data what;
                what.metric = metric_id::work;
                what.name = c.name;
                const double n = work_of(what, d);
                if (std::isnan(n)) continue;
                t.add({c.name, to_string(d.variant), d.index + 1, counted_text(n),
                       expected_text(d, c.name)});
            }
    if (t.rows.empty()) return;
    into.results += folded("Work of the server", "from one idle page to another", fold::open,
                           page_table(filled("Counts of {name}", {{"name", g.what.name}}), t));
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
