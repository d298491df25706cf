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
/// Draws one objective over the load.
inline std::string objective_figure(const load_curve& c, std::size_t which) {
    const slo& s = c.objectives_held[which];
    const metric_id id = s.statistic.metric;
    double least = c.points[0].what.load, most = least, low = s.bound, high = s.bound;
    for (const load_point& p : c.points) {
        least = std::min(least, p.what.load);
        most = std::max(most, p.what.load);
        const double v = p.values[which];
        if (!std::isfinite(v) || !(v > 0)) continue;
        low = std::min(low, std::max(v, s.bound / 10));
        high = std::max(high, std::min(v, s.bound * 10));
    }
    plot drawing({plot_scale::shape::logarithmic, least * 0.9, most * 1.1},
                 c.unit == metric_id::capacity_in_users ? plot_unit::none : plot_unit::per_second,
                 is_request_fraction(id)
                     ? plot_scale{plot_scale::shape::linear, 0, 1}
                     : plot_scale{plot_scale::shape::logarithmic, low * 0.8, high * 1.25},
                 plot_unit_of(facts_of(id).unit));
    if (c.state.low > 0 && c.state.high < infinity && c.state.monotone())
        drawing.stretch(c.state.low, c.state.high);
    drawing.limit_across(s.bound, limit_text(id, s.bound));
    std::string alt = filled("{statistic} over the load, limit {limit}",
                             {{"statistic", s.statistic.name}, {"limit", limit_text(id, s.bound)}});
    for (const load_point& p : c.points) {
        const double v = p.values[which];
        const double shown = std::isfinite(v) ? v : s.at_most ? high * 1.25 : low * 0.8;
        drawing.dot(style_of(p.what.shown), {p.what.load, shown});
        fill(alt, ", {value} at {load}", {{"value", {id, v}}, {"load", p.what.load}});
    }
    return drawing.figure(filled("{objective:x}<span>over {is_of_users?users|requests/s}</span>",
                                 {{"objective", s.text()},
                                  {"is_of_users", c.unit == metric_id::capacity_in_users}}),
                          alt);
}
inline std::string search_html(const load_curve& c, const std::string& gate) {
    if (c.points.empty()) return {};
    std::string h = filled(
        "<h3>Capacity</h3>\n[<p>{line:x}.</p>\n][<p class=\"note\">{flat:x}.</p>\n][<p "
                           "class=\"note\">{fault:x}.</p>\n]<p class=\"note\">Each dot is a "
                           "probe: green where all at its load show that it is carried, red where "
                           "they show that it is too much, hollow where they show nothing. The "
                           "dashed line is the limit, the grey stretch the capacity.</p>\n<div "
                           "class=\"plots\">\n",
                           {{"line", c.line}, {"flat", c.flat}, {"fault", c.fault}});
    for (std::size_t i = 0; i < c.objectives_held.size(); ++i) h += objective_figure(c, i);
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
    return filled("{plots}</div>\n{table}",
                  {{"plots", h}, {"table", page_table("Probes of " + gate, t)}});
}
inline std::string load_curve::page(const gate_report& g) const {
    return search_html(*this, g.what.name);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
