// the report page: curves over the load
#pragma once

#include "api/metrics.hpp"
#include "api/traffic.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/capacity/search.hpp"
#include "core/judging/outcome.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/load_rows.hpp"
#include "core/reports/page/distributions.hpp"
#include "core/reports/page/plot.hpp"
#include "core/reports/page/verdicts.hpp"

#include <algorithm>  // any_of, max, min, sort
#include <cmath>  // isfinite, isnan
#include <cstddef>  // size_t
#include <map>
#include <string>
#include <utility>  // pair, move
#include <vector>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Gates that differ only in their load, lightest first.
struct load_series {
    bool is_rate = true;                                  // else users
    std::vector<std::pair<double, std::size_t>> gates{};  // load, index in the report
};
inline std::vector<load_series> load_series_of(const std::vector<gate_report>& gates,
                                               const all_sections& beside = {}) {
    std::map<std::string, load_series> found;
    for (std::size_t i = 0; i < gates.size(); ++i) {
        const gate_report& g = gates[i];
        const arrival_data& a = g.what.sent->arrivals;
        const bool users = a.kind == arrival_kind::closed_loop;
        const bool steady = a.kind == arrival_kind::constant || a.kind == arrival_kind::poisson ||
                            a.kind == arrival_kind::gamma;
        if (!g.refusal.empty() || g.figures.candidate.empty() || !(users || steady))
            continue;
        if (std::any_of(beside.begin(), beside.end(),
                        [&](const program_section* b) { return b->draws(g); }))
            continue;
        // The port of a simulated server is its own, so its URL tells no series apart.
        const std::string url = g.target.kind == target_kind::endpoint ? g.target.url : "";
        load_series& s = found[std::string(to_string(g.target.kind)) + "\n" + url + "\n" +
                               g.target.model + "\n" + g.what.sent->workload_text + "\n" +
                               arrival_name(a.kind)];
        s.is_rate = !users;
        s.gates.emplace_back(users ? static_cast<double>(a.users) : a.rate, i);
    }
    std::vector<load_series> series;
    for (auto& [key, s] : found) {
        std::sort(s.gates.begin(), s.gates.end());
        bool rising = s.gates.size() > 1;
        for (std::size_t i = 1; i < s.gates.size(); ++i)
            rising &= s.gates[i].first > s.gates[i - 1].first;
        if (rising) series.push_back(std::move(s));
    }
    return series;
}

/// One value of each row over another.
struct drawn_line {
    std::string name{};
    std::vector<double> x{}, y{};
};
/// Draws a curve over its load, where `ends` may be of a capacity, or else one value over another
/// with the load beside each dot.
inline std::string curve_figure(const std::string& caption, const std::string& against,
                                const search_state& ends, const std::vector<curve_row>& rows,
                                plot_unit x_unit, plot_unit y_unit,
                                const std::vector<drawn_line>& lines, bool over_load) {
    double least = infinity, most = 0, highest = 0;
    for (const drawn_line& l : lines)
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (!std::isfinite(l.x[i]) || !std::isfinite(l.y[i])) continue;
            least = std::min(least, l.x[i]);
            most = std::max(most, l.x[i]);
            highest = std::max(highest, l.y[i]);
        }
    if (!(most > 0 && highest > 0)) return {};
    const bool is_wide = !over_load && least > 0 && most > 20 * least;
    plot p(is_wide ? plot_scale{plot_scale::shape::logarithmic, least * 0.8, most * 1.25}
                   : plot_scale{plot_scale::shape::linear, 0, most * 1.05},
           x_unit, {plot_scale::shape::linear, 0, highest * 1.08}, y_unit);
    if (over_load && ends.low > 0 && ends.monotone())
        p.stretch("stretch", ends.low, std::min(ends.high, most));
    std::string alt = caption + " against " + against;
    for (const bool is_baseline : {true, false})
        for (const drawn_line& l : lines) {
            const char* style = is_baseline ? "b" : "c";
            std::vector<curve_point> points;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                const curve_row& r = rows[i];
                if (r.is_baseline != is_baseline) continue;
                const bool is_drawn = std::isfinite(l.x[i]) && std::isfinite(l.y[i]);
                points.push_back({l.x[i], is_drawn ? l.y[i] : not_a_number});
                if (!is_drawn) continue;
                p.dot(is_baseline                        ? "b"
                      : r.at.shows == carried::holds  ? "pass"
                      : r.at.shows == carried::misses ? "fail"
                                                      : "c",
                      points.back());
                alt += printed(", %s%s%s%.4g at %g", is_baseline ? "baseline " : "",
                               l.name.c_str(), l.name.empty() ? "" : " ", l.y[i], l.x[i]);
            }
            p.line(style, l.name, points);
            if (over_load && !points.empty() && !std::isnan(points.back().y))
                p.label(points.back(), l.name);
        }
    for (const bool of_ends : {true, false})  // the ends' labels have precedence
        for (std::size_t i = 0; i < rows.size() && !over_load; ++i) {
            const double load = rows[i].at.load;
            const bool is_low = load == ends.low, is_high = load == ends.high;
            const bool is_drawn = std::isfinite(lines[0].x[i]) && std::isfinite(lines[0].y[i]);
            if (rows[i].is_baseline || !is_drawn || of_ends != (is_low || is_high)) continue;
            p.label_apart({lines[0].x[i], lines[0].y[i]},
                          printed("%g", load) + (is_low    ? " carried"
                                                 : is_high ? " too much"
                                                           : ""));
        }
    return p.figure(caption + "<span>against " + against + "</span>", alt, false);
}
inline headline look_at(const curve_row& r) {
    return r.at.shows == carried::holds    ? headline::passed
           : r.at.shows == carried::misses ? headline::failed
                                           : headline_of(r.of);
}
inline std::string curve_html(const std::string& title, const std::string& said,
                              bool in_users, const search_state& ends,
                              const std::vector<curve_row>& rows) {
    const curve_columns columns = columns_of_rows(rows);
    std::vector<double> loads, tokens, p50, p90, tpot;
    std::string cells;
    bool both = false;
    for (const curve_row& r : rows) {
        both = both || r.is_baseline;
        loads.push_back(r.at.load);
        tokens.push_back(r.value(columns.tokens));
        p50.push_back(r.row(columns.first).p50);
        p90.push_back(r.row(columns.first).p90);
        tpot.push_back(r.row(metric_id::tpot).mean);
        cells += printed("<tr><th scope=\"row\"><a href=\"#gate-%zu\">%g</a></th><td>",
                         r.gate + 1, r.at.load) +
                 (r.is_baseline ? "<span class=\"arm b\">baseline</span>"
                                : badge(look_of(look_at(r)), shown_at(r))) + "</td>";
        for (const std::string& cell : curve_cells(columns, r)) cells += number_cell(cell);
        cells += "</tr>\n";
    }
    std::vector<std::string> head = {in_users ? "users" : "requests/s", "gate"};
    for (const std::string& name : curve_head(columns)) head.push_back(name);
    const plot_unit per_s = plot_unit::tokens_per_second, s = plot_unit::seconds;
    const plot_unit load = in_users ? plot_unit::none : plot_unit::per_second;
    const std::string first = metric_name(columns.first);
    const std::string rate = columns.tokens == metric_id::output_throughput ? "Output tokens/s"
                                                                            : "Input tokens/s";
    const auto over = [&](const std::string& what, plot_unit unit,
                          const std::vector<drawn_line>& lines) {
        return curve_figure(what, head[0], ends, rows, load, unit, lines, true);
    };
    return "<section><h2>" + xml_escaped(title) + "</h2>\n" + said + "<div class=\"plots\">\n" +
           (columns.has_tokens ? curve_figure(rate, "tpot mean", ends, rows, s, per_s,
                                              {{"", tpot, tokens}}, false)
                               : "") +
           curve_figure(rate, first + " p90", ends, rows, s, per_s, {{"", p90, tokens}}, false) +
           over(first, s, {{"p90", loads, p90}, {"p50", loads, p50}}) +
           (columns.has_tokens ? over("tpot", s, {{"mean", loads, tpot}}) : "") +
           over(rate, per_s, {{"", loads, tokens}}) + "</div>\n" +
           (both ? "<p class=\"note\">" + variants_key(true) + "</p>\n" : "") +
           page_table("By load", head, cells, 2) + "</section>\n";
}
inline std::string load_curves_html(const std::vector<gate_report>& gates,
                                    const all_sections& beside = {}) {
    std::string h;
    for (const load_series& s : load_series_of(gates, beside)) {
        std::vector<judged_load> loads;
        for (const auto& [load, i] : s.gates) loads.push_back({load});
        std::vector<curve_row> rows;
        for (std::size_t k = 0; k < s.gates.size(); ++k)
            add_rows(rows, loads[k], s.gates[k].second, gates[s.gates[k].second]);
        h += curve_html(s.is_rate ? "By offered load" : "By number of users",
                        "<p class=\"note\">" + plural(s.gates.size(), "gate") + " with " +
                            xml_escaped(gates[s.gates[0].second].what.sent->workload_text) +
                            ".</p>\n",
                        !s.is_rate, {}, rows);
    }
    return h;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
