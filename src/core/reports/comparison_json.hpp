// several settings in result.json
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/comparing/settings.hpp"
#include "core/comparing/told_apart.hpp"
#include "core/comparing/words.hpp"
#include "core/reports/comparison_report.hpp"

#include <cstddef>  // size_t
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline void write_ratio(json_writer& j, const settings_comparison& c, const setting_ratio& r) {
    j.open('{')
        .field("of", c.settings[r.second].name)
        .field("to", c.settings[r.first].name)
        .field("ratio", r.ratio);
    j.key("interval").open('[').value(r.low).value(r.high).close();
    j.field("told_apart", r.told_apart()).field("may_be_the_clients", r.may_be_the_clients);
    j.key("log_ratios").open('[');
    for (const double x : r.logs) j.value(x);
    j.close();
    j.field("sd", r.at.sd)
        .field("spread", to_string(r.at.spread))
        .field("df", r.at.df)
        .field("standard_error", r.at.se)
        .field("t", r.at.pass_t)
        .close();
}

inline void write_statistic(json_writer& j, const settings_comparison& c,
                            const compared_statistic& s) {
    const auto best = s.best();
    j.open('{')
        .field("statistic", str(s.what.name))
        .field("metric", metric_name(s.what.metric))
        .field("less_is_better", s.less_is_better())
        .field("best", best ? c.settings[*best].name : std::string())
        .field("shows", shown_text(c, s));
    j.key("settings").open('[');
    for (std::size_t i = 0; i < s.settings.size(); ++i) {
        const setting_value& v = s.settings[i];
        j.open('{').field("name", c.settings[i].name).field("estimate", v.typical);
        j.key("interval").open('[').value(v.low).value(v.high).close();
        j.field("fault", v.fault).close();
    }
    j.close().key("ratios").open('[');
    for (const setting_ratio& r : s.pairs) write_ratio(j, c, r);
    j.close().close();
}

/// Nothing where there are none. The gates of the settings are among the others.
inline void write_comparisons(json_writer& j, const std::vector<comparison_report>& all) {
    if (all.empty()) return;
    j.key("comparisons").open('[');
    for (const comparison_report& r : all) {
        const settings_comparison& c = r.found;
        j.open('{').field("name", r.name).field("file", r.file).field("line", r.line);
        j.field("rounds", c.rounds)
            .field("rounds_planned", c.planned_rounds)
            .field("stopped", c.stopped)
            .field("false_difference", false_difference);
        j.key("settings").open('[');
        for (const setting_told& s : c.settings)
            j.open('{')
                .field("name", s.name)
                .field("gate", r.name + " / " + s.name)
                .field("excluded", s.excluded)
                .close();
        j.close().key("statistics").open('[');
        for (const compared_statistic& s : c.statistics) write_statistic(j, c, s);
        j.close().close();
    }
    j.close();
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
