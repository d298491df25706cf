// the report page: the result of a search
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/tables.hpp"
#include "core/reports/page/plot.hpp"
#include "core/reports/page/verdicts.hpp"
#include "extensions/capacity/core/load_curve.hpp"

#include <algorithm>  // max, min
#include <cmath>  // isfinite
#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline const char* style_of(carried shown) {
    return shown == carried::holds ? "pass" : shown == carried::misses ? "fail" : "open";
}
/// Draws one objective over the load. A probe without a value stands at the end of the axis.
inline std::string objective_figure(const load_curve& c, std::size_t which) {
    const slo& s = c.objectives_held[which];
    const metric_id id = s.statistic.metric;
    const bool in_users = c.unit == metric_id::capacity_in_users;
    plot p({in_users ? "none" : "req/s", "log"},
           {plot_unit_of(facts_of(id).unit), is_request_fraction(id) ? "whole" : "log"});
    if (c.state.has_both()) p.add("stretch", {}, {c.state.low, c.state.high});
    p.add("across", {limit_text(id, s.bound)}, {s.bound});
    for (const load_point& at : c.points) {
        const double v = at.values[which];
        p.dot(style_of(at.what.shown), {at.what.load, std::isfinite(v) ? v
                                                      : s.at_most      ? infinity
                                                                       : 0});
    }
    return p.figure(str(s.text()), in_users ? "over users" : "over requests/s");
}
inline std::string search_html(const load_curve& c, const std::string& gate) {
    if (c.points.empty()) return {};
    std::string figures;
    for (std::size_t i = 0; i < c.objectives_held.size(); ++i) figures += objective_figure(c, i);
    report_table t{{"probe", "shows", "load", "requests"}, 2};
    for (const slo& s : c.objectives_held) t.head.push_back(str(s.statistic.name));
    for (const load_point& p : c.points) {
        t.add({t.rows.size() + 1,
               !p.disturbed.empty()            ? p.disturbed.c_str()
               : p.what.invalid                ? "the client could not keep up"
               : p.what.shown != carried::open ? to_string(p.what.shown)
               : p.what.over                   ? "it outgrew the server"
                                               : "",
               {c.unit, p.what.load}, p.requests});
        for (std::size_t k = 0; k < c.objectives_held.size(); ++k)
            t.append({{c.objectives_held[k].statistic.metric, p.values[k]}});
    }
    return filled(
        "<h3>Capacity</h3>\n[<p>{line:x}.</p>\n][<p class=\"note\">{flat:x}.</p>\n][<p "
        "class=\"note\">{fault:x}.</p>\n]<div class=\"charts\">\n<p class=\"note\">Each dot is a "
        "probe: green where all at its load show that it is carried, red where they show that it "
        "is too much, hollow where they show nothing. The dashed line is the limit, the grey "
        "stretch the capacity.</p>\n<div class=\"plots\">\n{figures}</div>\n</div>\n{table}",
        {{"line", c.line}, {"flat", c.flat}, {"fault", c.fault}, {"figures", figures},
         {"table", page_table("Probes of " + gate, t)}});
}
inline std::string load_curve::page(const gate_report& g) const {
    return search_html(*this, g.what.name);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
