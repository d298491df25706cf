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
    " <b class=\"arm c\">candidate</b> <b class=\"arm b\">- - baseline</b>";

/// The scale of values from `low` to `high`, and of the limits on them that are near.
inline plot_scale scale_of_values(const gate_report& g, metric_id id, double low, double high) {
    low = std::max(low, high * 1e-5);
    for (const slo_verdict& v : g.verdicts)  // a far limit would squeeze the curve
        if (v.objective.statistic.metric == id && is_of_all(v.objective.statistic) &&
            is_absolute(v.objective) && v.limit > 0) {
            if (v.limit < 20 * high) high = std::max(high, v.limit);
            if (v.limit > low / 20) low = std::min(low, v.limit);
        }
    if (high >= 6 * low) return {plot_scale::shape::logarithmic, low / 1.05, high * 1.05};
    const double margin = std::max(0.06 * (high - low), 0.02 * high);
    return {plot_scale::shape::linear, std::max(0.0, low - margin), high + margin};
}
inline std::string distribution_figure(const gate_report& g, metric_id id,
                                       const variant_distribution& mine,
                                       const variant_distribution& other) {
    const bool both = !g.figures.baseline.empty();
    const double low = std::min(mine.least, other.least), high = std::max(mine.most, other.most);
    if (!(high > 0)) return {};
    const plot_scale x = scale_of_values(g, id, low, high);
    const std::size_t least =
        both && other.values > 0 ? std::min(mine.values, other.values) : mine.values;
    const bool speed = is_speed(id);
    const plot_scale y =
        speed ? plot_scale{plot_scale::shape::linear, 0, 1}
              : plot_scale{plot_scale::shape::nines, 0, 1 - std::pow(10, -nines_of(least))};
    plot p(x, speed ? plot_unit::tokens_per_second : plot_unit::seconds, y, plot_unit::percentile);
    for (const auto* variant : {&other, &mine}) {
        const auto draw = [&](const char* style, const char* name, const auto& line) {
            vector<curve_point> shown;
            for (const curve_point& q : line)
                if (q.y <= y.high + 1e-12) shown.push_back({std::min(q.x, x.high), q.y});
            p.line(style, name, shown);
        };
        const bool is_mine = variant == &mine;
        for (const vector<curve_point>& line : variant->lines)
            draw(is_mine ? "c2" : "b2",
                 !both ? "repeats" : is_mine ? "candidate's repeats" : "baseline's repeats", line);
        draw(is_mine ? "c1" : "b1", !both ? "all" : is_mine ? "candidate" : "baseline",
             variant->pooled);
    }
    std::string limits;
    for (const slo_verdict& v : g.verdicts) {
        const statistic_data& what = v.objective.statistic;
        if (what.metric != id || !is_of_all(what) || !is_absolute(v.objective)) continue;
        const double q = what.kind == statistic_kind::percentile ? what.q
                         : what.kind == statistic_kind::max      ? y.high
                         : what.kind == statistic_kind::min      ? y.low
                                                                 : not_a_number;
        const std::string name = str(what.name);
        p.limit(v.limit, q, v.objective,
                filled("{statistic} {at_most?<|>}= {limit}[, far {far}]",
                       {{"statistic", name.substr(0, name.find('('))},
                        {"at_most", v.objective.at_most}, {"limit", limit_text(v.objective)},
                        {"far", v.limit > x.high ? "right" : v.limit < x.low ? "left" : ""}}));
        p.interval(v.estimate.value, v.estimate.low, v.estimate.high, q);
        fill(limits, "; limit {objective}, {measured}",
             {{"objective", v.objective.text()}, {"measured", measured_text(v)}});
    }
    const metric_row &a = mine.row, &b = other.row;
    return p.figure(metric_name(id),
                    filled("{metric} by percentile, {repeats} repeat{repeats:s}: p50 {p50}, p90 "
                           "{p90}, p99 {p99}[{has_baseline?}; baseline: p50 {b50}, p90 {b90}, p99 "
                           "{b99}]{limits}",
                           {{"metric", metric_name(id)}, {"repeats", mine.lines.size()},
                            {"p50", {id, a.p50}}, {"p90", {id, a.p90}}, {"p99", {id, a.p99}},
                            {"has_baseline", both}, {"b50", {id, b.p50}}, {"b90", {id, b.p90}},
                            {"b99", {id, b.p99}}, {"limits", limits}}),
                    read_along::y);
}

/// Draws the time to the first token beside the length of the prompt, "" if lengths hardly differ.
inline std::string ttft_by_prompt_figure(const gate_report& g) {
    const vector<curve_point>&mine = g.figures.candidate.ttft_by_prompt,
                             &other = g.figures.baseline.ttft_by_prompt;
    double longest = 0, slowest = 0;
    for (const auto* points : {&mine, &other})
        for (const curve_point& p : *points) {
            longest = std::max(longest, p.x);
            slowest = std::max(slowest, p.y);
        }
    if (mine.empty() || !(slowest > 0)) return {};
    plot p({plot_scale::shape::linear, 0, longest * 1.03}, plot_unit::none,
           {plot_scale::shape::linear, 0, slowest * 1.05}, plot_unit::seconds);
    p.cloud("b", other);
    p.cloud("c", mine);
    return p.figure("ttft<span>each request, by its prompt tokens</span>",
                    filled("ttft of {requests} requests with up to {longest:.0f} prompt tokens, "
                           "at most {slowest:t}",
                           {{"requests", mine.size() + other.size()}, {"longest", longest},
                            {"slowest", slowest}}));
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

/// All repeats of a gate over time, one drawing for each quantity.
class timeline_figures {
public:
    explicit timeline_figures(const gate_report& g)
        : g_(g),
          grid_(g.figures.grid),
          mine_(g.figures.candidate.timelines),
          other_(g.figures.baseline.timelines) {}
    std::string html() const {
        return mine_.empty() ? std::string() : of_requests() + of_servers();
    }

private:
    /// A line for each repeat: its values in the windows of the grid, or those of its server.
    struct series {
        const char *style, *name;
        vector<double> repeat_timeline::*values = nullptr;
        vector<double> server_timeline::*of_server = nullptr;
        const vector<double>& of(const repeat_timeline& t) const {
            return of_server ? t.server.*of_server : t.*values;
        }
    };

    std::string of_requests() const {
        using t = repeat_timeline;
        const auto per_s = plot_unit::per_second, seconds = plot_unit::seconds;
        const bool paced = g_.what.sent->is_open_loop(), alone = other_.empty();
        const series planned{"a", "planned", &t::asked};
        std::string h = filled(
            "<h3>Over time</h3>\n<p class=\"note\">One line a repeat, in windows of {step}; 0 is "
                               "where the measured part begins, after the warm-up.{key}"
            "{has_thirds? Grey are the first and the last third of it, which a drift holds against "
            "each other.}</p>\n<div class=\"plots\">\n",
                               {{"step", time_text(grid_.step)},
                                {"key", alone ? "" : variants_key}, {"has_thirds", drift_third()}});
        h += figure(paced ? "Requests/s<span>sent; planned (thick)</span>" : "Requests/s",
                    "requests sent per second", per_s, {{"c", "sent", &t::sent}},
                    paced ? &planned : nullptr);
        if (has_failures())
            h += figure("Failed requests/s", "failed requests per second", per_s,
                        {{"f", "failed", &t::failed}});
        h += figure("In flight", "requests in flight", plot_unit::none,
                    {{"c", "", &t::in_flight}});
        h += alone ? figure("ttft<span>p50; p90 (light)</span>", "ttft", seconds,
                            {{"c2", "p90", &t::ttft_p90}, {"c", "p50", &t::ttft_p50}})
                   : figure("ttft<span>p50</span>", "ttft p50", seconds,
                            {{"c", "", &t::ttft_p50}});
        h += figure("Output tokens/s", "output tokens per second", plot_unit::tokens_per_second,
                    {{"c", "", &t::tokens}});
        if (g_.figures.has_goodput)
            h += figure("Goodput<span>by planned time</span>", "goodput", plot_unit::fraction,
                        {{"c", "", &t::good}});
        return h + "</div>\n";
    }
    /// Returns the servers' metrics on the same axis, "" if they reported none.
    std::string of_servers() const {
        using t = server_timeline;
        struct quantity {
            const char *caption, *what;
            plot_unit unit;
            vector<double> t::*values;
        };
        std::string plots;
        for (const quantity& q : std::initializer_list<quantity>{
                 {"Waiting requests", "requests that waited", plot_unit::none, &t::waiting},
                 {"Running requests", "requests that ran", plot_unit::none, &t::running},
                 {"KV cache in use", "the KV cache in use", plot_unit::fraction, &t::kv_usage},
                 {"Queue time<span>mean since the reading before</span>", "queue time",
                  plot_unit::seconds, &t::queue_time},
                 {"Power<span>W</span>", "power in watts", plot_unit::none, &t::power},
                 {"Utilisation", "utilisation of the accelerators", plot_unit::fraction,
                  &t::utilisation},
                 {"Clock<span>GHz, the slowest</span>",
                  "the clock of the slowest accelerator in GHz", plot_unit::none, &t::clock_ghz},
                 {"Temperature<span>\u00B0C, the hottest</span>",
                  "the hottest accelerator's temperature", plot_unit::none, &t::temperature}}) {
            const series line{"c", "", nullptr, q.values};
            bool is_reported = false;
            for (const repeat_timeline& r : mine_)
                for (const double x : line.of(r)) is_reported = is_reported || !std::isnan(x);
            if (is_reported) plots += figure(q.caption, q.what, q.unit, {line});
        }
        return filled("[{plots?}<h3>Server metrics</h3>\n<p class=\"note\">Its page of metrics, "
                      "read once a second.{key}</p>\n<div class=\"plots\">\n{plots}</div>\n]",
                      {{"plots", plots}, {"key", other_.empty() ? "" : variants_key}});
    }

    /// Returns a third of the steady part if an objective compares its last with its first, else 0.
    double drift_third() const {
        const bool is_held = any_of(g_.verdicts, [](const slo_verdict& v) {
            return is_drift(v.objective.statistic.metric);
        });
        const vector<repeat_figures>& repeats = g_.figures.candidate.repeats;
        return is_held && !repeats.empty() ? repeats[0].window_s / 3 : 0;
    }
    /// Returns the greatest finite value of all repeats, at least 0.
    double greatest(const series& s) const {
        double most = 0;
        for (const auto* variant : {&mine_, &other_})
            for (const repeat_timeline& t : *variant)
                for (const double y : s.of(t))
                    if (std::isfinite(y)) most = std::max(most, y);
        return most;
    }
    bool has_failures() const { return greatest({"", "", &repeat_timeline::failed}) > 0; }
    void draw(plot& p, const series& s, const char* style, const std::string& name,
              const repeat_timeline& t) const {
        const vector<double>& values = s.of(t);
        vector<curve_point> points;
        for (std::size_t i = 0; i < values.size(); ++i)
            points.push_back({s.of_server ? t.server.at[i] : grid_.middle(i), values[i]});
        p.line(style, name, points);
    }
    std::string figure(const char* caption, const char* what, plot_unit unit,
                       std::initializer_list<series> all, const series* behind = nullptr) const {
        double most = behind ? greatest(*behind) : 0;
        for (const series& s : all) most = std::max(most, greatest(s));
        if (!(most > 0) && unit == plot_unit::seconds) return {};  // nothing was answered
        const double end = grid_.from + static_cast<double>(grid_.windows) * grid_.step;
        const double high = unit == plot_unit::fraction ? 1 : most > 0 ? most * 1.05 : 1;
        plot p({plot_scale::shape::linear, grid_.from, end}, plot_unit::elapsed,
               {plot_scale::shape::linear, 0, high}, unit);
        const bool both = !other_.empty();
        if (const double third = drift_third(); third > 0) {
            p.stretch(0, third);
            p.stretch(2 * third, 3 * third);
        }
        if (behind) draw(p, *behind, behind->style, behind->name, mine_[0]);
        for (const series& s : all) {
            for (const repeat_timeline& t : other_)
                draw(p, s, *s.style == 'c' ? "b" : s.style, filled(
                    "baseline {name}", {{"name", s.name}}), t);
            for (const repeat_timeline& t : mine_)
                draw(p, s, s.style, filled("{both?candidate }{name}",
                                           {{"both", both}, {"name", s.name}}), t);
        }
        const std::string greatest_text = unit == plot_unit::seconds ? time_text(most)
                                          : unit == plot_unit::fraction
                                              ? printed("%.4g %%", most * 100)
                                              : printed("%.4g", most);
        return p.figure(caption,
                        filled("{what} over {seconds:t}, {repeats} repeat{repeats:s}"
                               "{has_baseline? of the candidate and of the baseline}, at most "
                               "{most}",
                               {{"what", what}, {"seconds", end - std::min(0.0, grid_.from)},
                                {"repeats", mine_.size()}, {"has_baseline", both},
                                {"most", greatest_text}}));
    }

    const gate_report& g_;
    const timeline_grid& grid_;
    const vector<repeat_timeline>&mine_, &other_;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
