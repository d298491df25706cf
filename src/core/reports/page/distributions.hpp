// the report page: distributions and timelines
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/figures/rows.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/figures/timelines.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/tables.hpp"
#include "core/reports/page/plot.hpp"
#include "core/reports/page/verdicts.hpp"

#include <algorithm>  // clamp, count, max, min
#include <cmath>  // isfinite, isnan, log10, pow
#include <initializer_list>
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr const char* variants_key =
    " <b class=\"arm c\">candidate</b> <b class=\"arm b\">baseline</b>";

/// Two variants by percentile, or one: the thick lines are of all repeats, the thin ones of each.
inline plot by_percentile(metric_id id, const std::string& name, const variant_distribution& of,
                          const std::string& others_name, const variant_distribution& other) {
    const bool speed = is_speed(id);
    plot p({speed ? "tok/s" : "seconds", "near"}, {"percentile", speed ? "whole" : "nines"});
    const auto draw = [&](const char* style, const char* style_of_all, const std::string& named,
                          const variant_distribution& d) {
        for (const vector<curve_point>& line : d.lines) p.line(style, named + ", by repeat", line);
        p.line(style_of_all, named, d.pooled);
    };
    draw("b2", "b1", others_name, other);
    draw("c2", "c1", name, of);
    return p;
}
inline bool is_limit_on(metric_id id, const slo& s) {
    return s.statistic.metric == id && is_of_all(s.statistic) && is_absolute(s);
}
inline std::string distribution_figure(const gate_report& g, std::size_t i) {
    const gate_figures& f = g.figures;
    plot p = by_percentile(f.metrics[i], f.baseline.empty() ? "all" : "candidate",
                           f.candidate.distributions[i], "baseline", f.baseline.distributions[i]);
    for (const slo_verdict& v : g.verdicts) {
        if (!is_limit_on(f.metrics[i], v.objective)) continue;
        p.limit(v.objective, v.limit);
        const estimate_t& e = v.estimate;
        p.add("interval", {}, {e.value, e.low, e.high, height_of(v.objective.statistic)});
    }
    return p.figure(metric_name(f.metrics[i]));
}

/// Draws the time to the first token beside the length of the prompt, "" if lengths hardly differ.
inline std::string ttft_by_prompt_figure(const gate_report& g) {
    plot p({"none", "zero"}, {"seconds", "zero"});
    p.cloud("b", g.figures.baseline.ttft_by_prompt);
    p.cloud("c", g.figures.candidate.ttft_by_prompt);
    return p.figure("ttft", "each request, by its prompt tokens");
}

inline std::string labels_html(const gate_report& g) {
    const report_table t = labels_table(g);
    return t.rows.empty() ? "" : "<h3>Labels</h3>\n" + page_table("Labels of " + g.what.name, t);
}

inline std::string latency_table(const gate_report& g) {
    const gate_figures& all = g.figures;
    const bool both = !all.baseline.empty();
    report_table t{vector<std::string>(both ? 2 : 1), both ? 2u : 1u};
    for (const row_statistic& s : row_statistics) t.head.push_back(s.name);
    for (std::size_t i = 0; i < all.metrics.size(); ++i) {
        const metric_row& a = all.candidate.distributions[i].row;
        const metric_row& b = all.baseline.distributions[i].row;
        for (const metric_row* r : {&a, &b}) {
            if (r == &b && !both) break;
            const metric_id id = r->metric;
            t.add({r == &a ? metric_name(id) : ""});
            if (both) {
                t.append({""});
                mark_variant(t.last(), r == &b ? run_variant::baseline : run_variant::candidate);
            }
            for (const row_statistic& s : row_statistics) t.append({{id, r->*s.value}});
        }
        if (!both) continue;
        t.add({"", "ratio"});
        t.last().look = "arm";
        for (const row_statistic& s : row_statistics) {
            const double ratio = a.*s.value / b.*s.value;
            t.append({std::isfinite(ratio) ? printed("%.3f x", ratio) : "none"});
        }
    }
    return page_table("Latency of " + g.what.name, t);
}

/// A quantity over time: its values in the windows of the grid, or those of the server.
struct timeline_line {
    const char *style, *name;
    vector<double> repeat_timeline::*values = nullptr;
    vector<double> server_timeline::*of_server = nullptr;
    const vector<double>& of(const repeat_timeline& t) const {
        return of_server ? t.server.*of_server : t.*values;
    }
};
/// The stretches of time, in seconds, that an objective compares, and what they are called.
struct compared_stretches {
    vector<vector<double>> all{};
    const char* key = "";
};
inline compared_stretches compared_stretches_of(const gate_report& g) {
    const bool is_held = any_of(g.verdicts, [](const slo_verdict& v) {
        return is_drift(v.objective.statistic.metric);
    });
    const vector<repeat_figures>& repeats = g.figures.candidate.repeats;
    if (!is_held || repeats.empty() || !(repeats[0].window_s > 0)) return {};
    const double third = repeats[0].window_s / 3;
    return {{{0, third}, {2 * third, 3 * third}},
            " Grey are the first and the last third of it, which a drift holds against each "
            "other."};
}
/// Draws a line for each repeat; those of "a" have the same values in all.
inline std::string timeline_figure(const gate_report& g, const char* caption, const char* aside,
                                   const char* unit, std::initializer_list<timeline_line> lines) {
    const timeline_grid& grid = g.figures.grid;
    const bool is_fraction = std::string_view(unit) == "fraction";
    plot p({"elapsed", "given", grid.from,
            grid.from + static_cast<double>(grid.windows) * grid.step},
           {unit, is_fraction ? "whole" : "zero"});
    for (const vector<double>& s : compared_stretches_of(g).all) p.add("stretch", {}, s);
    const bool both = !g.figures.baseline.timelines.empty();
    for (const timeline_line& l : lines)
        for (const variant_figures* variant : {&g.figures.baseline, &g.figures.candidate}) {
            const bool is_other = variant == &g.figures.baseline, is_plan = *l.style == 'a';
            for (const repeat_timeline& t : variant->timelines) {
                if (is_plan && (is_other || &t != &variant->timelines[0])) continue;
                vector<curve_point> points;
                for (std::size_t i = 0; i < l.of(t).size(); ++i)
                    points.push_back({l.of_server ? t.server.at[i] : grid.middle(i), l.of(t)[i]});
                p.line(is_other && *l.style == 'c' ? "b" : l.style,
                       filled("[{both?}{is_other?baseline |candidate }]{name}",
                              {{"both", both && !is_plan}, {"is_other", is_other},
                               {"name", l.name}}), points);
            }
        }
    return p.figure(caption, aside);
}
/// All repeats of a gate over time, a drawing for each quantity, and what their servers say.
inline std::string timelines_html(const gate_report& g) {
    using t = repeat_timeline;
    using s = server_timeline;
    if (g.figures.candidate.timelines.empty()) return {};
    const bool alone = g.figures.baseline.timelines.empty();
    const auto draw = [&](const char* caption, const char* aside, const char* unit,
                          std::initializer_list<timeline_line> lines) {
        return timeline_figure(g, caption, aside, unit, lines);
    };
    const auto server = [&](const char* caption, const char* aside, const char* unit,
                            vector<double> s::*values) {
        return draw(caption, aside, unit, {{"c", "", nullptr, values}});
    };
    bool has_failed = false;
    for (const auto& [seen, whose] : g.figures.measured())
        for (const t& repeat : seen.timelines)
            has_failed = has_failed || any_of(repeat.failed, [](double n) { return n > 0; });
    const std::string requests = joined(
        {g.what.sent->is_open_loop()
             ? draw("Requests/s", "sent; planned (broad)", "req/s",
                    {{"a", "planned", &t::asked}, {"c", "sent", &t::sent}})
             : draw("Requests/s", "", "req/s", {{"c", "sent", &t::sent}}),
         has_failed ? draw("Failed requests/s", "", "req/s", {{"f", "failed", &t::failed}}) : "",
         draw("In flight", "", "none", {{"c", "", &t::in_flight}}),
         alone ? draw("ttft", "p50; p90 (light)", "seconds",
                      {{"c2", "p90", &t::ttft_p90}, {"c", "p50", &t::ttft_p50}})
               : draw("ttft", "p50", "seconds", {{"c", "", &t::ttft_p50}}),
         draw("Output tokens/s", "", "tok/s", {{"c", "", &t::tokens}}),
         g.figures.has_goodput
             ? draw("Goodput", "by planned time", "fraction", {{"c", "", &t::good}}) : ""});
    const std::string servers = joined(
        {server("Waiting requests", "", "none", &s::waiting),
         server("Running requests", "", "none", &s::running),
         server("KV cache in use", "", "fraction", &s::kv_usage),
         server("Queue time", "mean since the reading before", "seconds", &s::queue_time),
         server("Power", "W", "none", &s::power),
         server("Utilisation", "", "fraction", &s::utilisation),
         server("Clock", "GHz, the slowest", "none", &s::clock_ghz),
         server("Temperature", "\u00B0C, the hottest", "none", &s::temperature)});
    return filled(
        "<div class=\"charts\">\n<h3>Over time</h3>\n<p class=\"note\">One line a repeat, in "
        "windows of {step}; 0 is where the measured part begins, after the warm-up.{key}"
        "{compared}</p>\n<div class=\"plots\">\n{requests}</div>\n[{servers?}<h3>Server metrics"
        "</h3>\n<p class=\"note\">Its page of metrics, read once a second.{key}</p>\n<div "
        "class=\"plots\">\n{servers}</div>\n]</div>\n",
        {{"step", time_text(g.figures.grid.step)}, {"key", alone ? "" : variants_key},
         {"compared", compared_stretches_of(g).key}, {"requests", requests}, {"servers", servers}});
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
