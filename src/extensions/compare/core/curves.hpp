// curves over the load
#pragma once

#include "api/metrics.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/planning/load_search.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/figures/rows.hpp"
#include "core/judging/outcome.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/page/distributions.hpp"
#include "core/reports/page/plot.hpp"
#include "core/reports/page/verdicts.hpp"
#include "core/reports/tables.hpp"
#include "core/traffic/plan.hpp"

#include <algorithm>  // max, min
#include <cmath>  // isfinite, isnan
#include <cstddef>  // size_t
#include <string>

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
    metric_row row(metric_id m) const { return variant.row(m); }
    /// Tokens/s, as one user sees them.
    double speed() const { return 1 / row(metric_id::tpot).mean; }
};
/// Adds the rows of both variants, the candidate's first.
inline void add_rows(vector<curve_row>& rows, const judged_load& at, std::size_t gate,
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
inline curve_columns columns_of_rows(const vector<curve_row>& rows) {
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
/// Returns the result of a load, or how its gate ended if it has none.
inline std::string shown_at(const curve_row& r) {
    return r.is_baseline                   ? "baseline"
           : r.at.shows != carried::open ? to_string(r.at.shows)
                                         : headline_text(r.of);
}

/// One value of each row over another.
struct drawn_line {
    std::string name{};
    vector<double> x{}, y{};
};
/// A curve over its load, where ends may be of a capacity, or one value over another with the load
/// beside each dot.
enum class drawn_over : unsigned char { load, value };
inline std::string curve_figure(const std::string& caption, const std::string& against,
                                const capacity_ends& ends, const vector<curve_row>& rows,
                                const char* x_unit, const char* y_unit,
                                const vector<drawn_line>& lines, drawn_over what) {
    const bool over_load = what == drawn_over::load;
    plot p({x_unit, over_load ? "zero" : "wide"}, {y_unit, "zero"});
    if (over_load && ends.low > 0 && ends.monotone()) p.add("stretch", {}, {ends.low, ends.high});
    for (const bool is_baseline : {true, false})
        for (const drawn_line& l : lines) {
            vector<curve_point> points;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                if (rows[i].is_baseline != is_baseline) continue;
                points.push_back({l.x[i], l.y[i]});
                p.dot(is_baseline                              ? "b"
                      : rows[i].at.shows == carried::holds  ? "pass"
                      : rows[i].at.shows == carried::misses ? "fail"
                                                            : "c",
                      points.back());
            }
            p.line(is_baseline ? "b" : "c", l.name, points);
            if (over_load && !points.empty())
                p.add("label", {l.name}, {points.back().x, points.back().y, 1});
        }
    for (const bool of_ends : {true, false})  // the ends' labels have precedence
        for (std::size_t i = 0; i < rows.size() && !over_load; ++i) {
            const double load = rows[i].at.load;
            const bool is_low = load == ends.low, is_high = load == ends.high;
            if (rows[i].is_baseline || of_ends != (is_low || is_high)) continue;
            p.add("label", {filled("{load}{is_carried? carried}{is_too_much? too much}",
                                   {{"load", load}, {"is_carried", is_low},
                                    {"is_too_much", is_high && !is_low}})},
                  {lines[0].x[i], lines[0].y[i]});
        }
    return p.figure(caption, "against " + against);
}
inline headline look_at(const curve_row& r) {
    return r.at.shows == carried::holds    ? headline::passed
           : r.at.shows == carried::misses ? headline::failed
                                           : headline_of(r.of);
}
/// The rows as a table. The page's links and badges are in it, too.
inline report_table curve_table(metric_id unit, const vector<curve_row>& rows) {
    const curve_columns c = columns_of_rows(rows);
    const std::string first = metric_name(c.first);
    report_table t{{"load", "", metric_name(c.tokens), "requests", first + " p50", first + " p90"},
                   2};
    if (c.has_tokens) t.head.insert(t.head.end(), {"tpot mean", "a user"});
    if (c.has_cost) t.head.push_back("a million tokens");
    for (const curve_row& r : rows) {
        const metric_row values = r.row(c.first);
        const auto of_run = [&](metric_id m) { return filling(m, r.value(m)); };
        t.add({{unit, r.at.load}});
        t.last().gate = r.gate + 1;
        t.append({shown_at(r)});
        if (r.is_baseline) t.last().look = "arm b";
        else t.last().badge = look_of(look_at(r));
        t.append({of_run(c.tokens), of_run(metric_id::request_throughput), {c.first, values.p50},
                  {c.first, values.p90}});
        if (c.has_tokens)
            t.append({{metric_id::tpot, r.row(metric_id::tpot).mean},
                      {metric_id::decode_speed, r.speed()}});
        if (c.has_cost) t.append({of_run(metric_id::cost_per_million_tokens)});
    }
    return t;
}
inline std::string curve_html(const std::string& title, const std::string& said, metric_id unit,
                              const capacity_ends& ends, const vector<curve_row>& rows) {
    const curve_columns columns = columns_of_rows(rows);
    vector<double> loads, tokens, p50, p90, tpot;
    bool both = false;
    for (const curve_row& r : rows) {
        both = both || r.is_baseline;
        loads.push_back(r.at.load);
        tokens.push_back(r.value(columns.tokens));
        p50.push_back(r.row(columns.first).p50);
        p90.push_back(r.row(columns.first).p90);
        tpot.push_back(r.row(metric_id::tpot).mean);
    }
    const bool in_users = unit == metric_id::capacity_in_users;
    const std::string first = metric_name(columns.first);
    const std::string rate = columns.tokens == metric_id::output_throughput ? "Output tokens/s"
                                                                            : "Input tokens/s";
    const auto over = [&](const std::string& what, const char* y, const vector<drawn_line>& lines) {
        return curve_figure(what, in_users ? "users" : "requests/s", ends, rows,
                            in_users ? "none" : "req/s", y, lines, drawn_over::load);
    };
    const auto rate_against = [&](const std::string& what, const vector<double>& x) {
        return curve_figure(rate, what, ends, rows, "seconds", "tok/s", {{"", x, tokens}},
                            drawn_over::value);
    };
    return filled("<section><h2>{title:x}</h2>\n{said}<div class=\"plots\">\n"
                  "{tpot_at}{first_at}{first_over}{tpot_over}{rate_over}</div>\n[<p "
                  "class=\"note\">{key}</p>\n]{table}</section>\n",
                  {{"title", title}, {"said", said},
                   {"tpot_at", columns.has_tokens ? rate_against("tpot mean", tpot) : ""},
                   {"first_at", rate_against(first + " p90", p90)},
                   {"first_over",
                    over(first, "seconds", {{"p90", loads, p90}, {"p50", loads, p50}})},
                   {"tpot_over",
                    columns.has_tokens ? over("tpot", "seconds", {{"mean", loads, tpot}}) : ""},
                   {"rate_over", over(rate, "tok/s", {{"", loads, tokens}})},
                   {"key", both ? variants_key : ""},
                   {"table", page_table("By load", curve_table(unit, rows))}});
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
