// the report page: gates beside each other
#pragma once

#include "api/metrics.hpp"
#include "api/traffic.hpp"
#include "core/base/text.hpp"
#include "core/metric/value_text.hpp"
#include "core/judging/outcome.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/headlines.hpp"
#include "core/reports/page/plot.hpp"
#include "core/reports/page/verdicts.hpp"

#include <algorithm>  // sort, max
#include <cmath>  // isfinite, isnan
#include <map>
#include <string>
#include <utility>  // pair, move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Gates that differ in their load alone, lightest first.
struct load_series {
    bool is_rate = true;                                  // else users
    std::vector<std::pair<double, std::size_t>> gates{};  // load, place in the report
};
inline std::vector<load_series> load_series_of(const std::vector<gate_report>& gates) {
    std::map<std::string, load_series> found;
    for (std::size_t i = 0; i < gates.size(); ++i) {
        const gate_report& g = gates[i];
        const arrival_data& a = g.what.sent->arrivals;
        const bool users = a.kind == arrival_kind::closed_loop;
        const bool steady = a.kind == arrival_kind::constant || a.kind == arrival_kind::poisson ||
                            a.kind == arrival_kind::gamma;
        if (!g.refusal.empty() || g.figures.candidate.empty() || !(users || steady)) continue;
        // Every simulated server has a port of its own.
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

inline std::string load_figure(
    const load_series& s, const std::string& caption, plot_unit unit,
    const std::vector<std::pair<std::string, std::vector<double>>>& all) {
    double most = 0;
    for (const auto& [name, values] : all)
        for (const double v : values)
            if (std::isfinite(v)) most = std::max(most, v);
    if (!(most > 0)) return {};
    plot p({plot_scale::shape::linear, 0, s.gates.back().first * 1.05},
           s.is_rate ? plot_unit::per_second : plot_unit::none,
           {plot_scale::shape::linear, 0, most * 1.08}, unit);
    std::string alt = caption + " against the load";
    for (const auto& [name, values] : all) {
        std::vector<curve_point> points;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double v = std::isfinite(values[i]) ? values[i] : not_a_number;
            points.push_back({s.gates[i].first, v});
            if (std::isnan(v)) continue;
            p.dot("c", points.back());
            alt += printed(", %s%s%.4g at %g", name.c_str(), name.empty() ? "" : " ", v,
                           s.gates[i].first);
        }
        p.line("c", name, points);
        if (!std::isnan(points.back().y)) p.label(points.back(), name);
    }
    return p.figure(caption + "<span>against " + (s.is_rate ? "requests/s" : "users") + "</span>",
                    alt, false);
}
inline std::string load_curves_html(const std::vector<gate_report>& gates) {
    std::string h;
    for (const load_series& s : load_series_of(gates)) {
        std::vector<double> ttft_p50, ttft_p90, tpot_mean, output;
        std::string rows;
        for (const auto& [load, i] : s.gates) {
            const arm_figures& arm = gates[i].figures.candidate;
            const metric_row ttft = latency_row(gates[i].figures, arm, metric_id::ttft);
            const metric_row tpot = latency_row(gates[i].figures, arm, metric_id::tpot);
            ttft_p50.push_back(ttft.p50);
            ttft_p90.push_back(ttft.p90);
            tpot_mean.push_back(tpot.mean);
            output.push_back(arm.run_value(metric_id::output_throughput));
            rows += printed("<tr><th scope=\"row\"><a href=\"#gate-%zu\">%g</a></th><td>", i + 1,
                            load) +
                    badge(look_of(headline_of(gates[i])), to_string(headline_of(gates[i]))) +
                    "</td>" + number_cell(time_text(ttft.p50)) + number_cell(time_text(ttft.p90)) +
                    number_cell(time_text(tpot.mean)) +
                    number_cell(value_text(metric_id::output_throughput, output.back())) +
                    "</tr>\n";
        }
        h += "<section><h2>" + std::string(s.is_rate ? "By offered load" : "By number of users") +
             "</h2>\n<p class=\"note\">" + plural(s.gates.size(), "gate") + " with " +
             xml_escaped(gates[s.gates[0].second].what.sent->workload_text) +
             ".</p>\n<div class=\"plots\">\n" +
             load_figure(s, "ttft", plot_unit::seconds, {{"p90", ttft_p90}, {"p50", ttft_p50}}) +
             load_figure(s, "tpot", plot_unit::seconds, {{"mean", tpot_mean}}) +
             load_figure(s, "Output tokens/s", plot_unit::tokens_per_second, {{"", output}}) +
             "</div>\n" +
             page_table("By load",
                        {s.is_rate ? "requests/s" : "users", "gate", "ttft p50", "ttft p90",
                         "tpot mean", "output"},
                        rows, 2) +
             "</section>\n";
    }
    return h;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
