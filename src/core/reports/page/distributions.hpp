// the report page: distributions
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/metric/value_text.hpp"
#include "core/figures/distributions.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/tables.hpp"
#include "core/reports/page/plot.hpp"
#include "core/reports/page/verdicts.hpp"

#include <algorithm>  // clamp, max, min, count
#include <cmath>  // log10, pow, isfinite
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline std::string variants_key(bool has_baseline) {
    return has_baseline
               ? " <b class=\"arm c\">candidate</b> <b class=\"arm b\">- - baseline</b>"
               : "";
}

inline std::string distribution_figure(const gate_report& g, metric_id id,
                                       const variant_distribution& mine,
                                       const variant_distribution& other) {
    const bool both = !g.figures.baseline.empty();
    double low = std::min(mine.least, other.least), high = std::max(mine.most, other.most);
    if (!(high > 0)) return {};
    low = std::max(low, high * 1e-5);
    for (const slo_verdict& v : g.verdicts)  // a far limit would squeeze the curve
        if (v.what.what.metric == id && is_of_all(v.what.what) && v.what.factor == 0 &&
            v.limit > 0) {
            if (v.limit < 20 * high) high = std::max(high, v.limit);
            if (v.limit > low / 20) low = std::min(low, v.limit);
        }
    plot_scale x{plot_scale::shape::logarithmic, low / 1.05, high * 1.05};
    if (high < 6 * low) {
        const double margin = std::max(0.06 * (high - low), 0.02 * high);
        x = {plot_scale::shape::linear, std::max(0.0, low - margin), high + margin};
    }
    const std::size_t least =
        both && other.values > 0 ? std::min(mine.values, other.values) : mine.values;
    const bool speed = is_speed(id);
    const plot_scale y =
        speed ? plot_scale{plot_scale::shape::linear, 0, 1}
              : plot_scale{plot_scale::shape::nines, 0, 1 - std::pow(10, -nines_of(least))};
    plot p(x, speed ? plot_unit::tokens_per_second : plot_unit::seconds, y, plot_unit::percentile);
    for (const auto* variant : {&other, &mine}) {
        const auto draw = [&](const char* style, const char* name, const auto& line) {
            std::vector<curve_point> shown;
            for (const curve_point& q : line)
                if (q.y <= y.high + 1e-12) shown.push_back({std::min(q.x, x.high), q.y});
            p.line(style, name, shown);
        };
        const bool is_mine = variant == &mine;
        for (const std::vector<curve_point>& line : variant->lines)
            draw(is_mine ? "c2" : "b2",
                 !both ? "repeats" : is_mine ? "candidate's repeats" : "baseline's repeats", line);
        draw(is_mine ? "c1" : "b1", !both ? "all" : is_mine ? "candidate" : "baseline",
             variant->pooled);
    }
    std::string limits;
    for (const slo_verdict& v : g.verdicts) {
        const statistic_data& what = v.what.what;
        if (what.metric != id || !is_of_all(what) || v.what.factor > 0) continue;
        const bool seen = v.limit >= x.low && v.limit <= x.high;
        const double q = what.kind == statistic_kind::percentile ? what.q
                         : what.kind == statistic_kind::max      ? y.high
                         : what.kind == statistic_kind::min      ? y.low
                                                                 : not_a_number;
        const std::string words = str(what.name).substr(0, str(what.name).find('(')) +
                                  (v.what.at_most ? " <= " : " >= ") + limit_text(id, v.limit);
        p.limit(v.limit, q, v.what.at_most,
                seen               ? words
                : v.limit > x.high ? words + ", far right"
                                   : words + ", far left");
        p.interval(v.estimate.value, v.estimate.low, v.estimate.high, q);
        limits += "; limit " + str(v.what.text()) + ", " + measured_text(v);
    }
    const auto reported = [&](const metric_row& r) {
        return "p50 " + value_text(id, r.p50) + ", p90 " + value_text(id, r.p90) + ", p99 " +
               value_text(id, r.p99);
    };
    const std::string alt = std::string(metric_name(id)) + " by percentile, " +
                            plural(mine.lines.size(), "repeat") + ": " + reported(mine.row) +
                            (both ? "; baseline: " + reported(other.row) : "") + limits;
    return p.figure(metric_name(id), alt, true);
}

/// Returns the requests of each label, "" if there are none.
inline std::string labels_html(const gate_report& g) {
    const report_table t = labels_table(g);
    return t.rows.empty() ? "" : "<h3>Labels</h3>\n" + page_table("Labels of " + g.what.name, t);
}

inline std::string latency_table(const gate_report& g) {
    const gate_figures& all = g.figures;
    const bool both = !all.baseline.empty();
    report_table t{{"", "mean", "p50", "p90", "p99", "max"}};
    if (both) {
        t.head.insert(t.head.begin() + 1, "");
        t.words = 2;
    }
    for (std::size_t i = 0; i < all.metrics.size(); ++i) {
        const metric_id id = all.metrics[i];
        const metric_row& a = all.candidate.distributions[i].row;
        const metric_row& b = all.baseline.distributions[i].row;
        const auto row = [&](table_line line, const auto& text_of) {
            for (double metric_row::*value : {&metric_row::mean, &metric_row::p50,
                                              &metric_row::p90, &metric_row::p99,
                                              &metric_row::max})
                line.push_back(text_of(a.*value, b.*value));
            t.rows.push_back(std::move(line));
        };
        table_line named = {{filled_in(metric_name(id), "_", "_<wbr>"), nullptr, true}};
        if (both) named.push_back(variant_cell(false));
        row(std::move(named), [&](double mine, double) { return value_text(id, mine); });
        if (!both) continue;
        row({{"", ""}, variant_cell(true)},
            [&](double, double other) { return value_text(id, other); });
        row({{"", ""}, {"ratio", "arm"}}, [](double mine, double other) {
            const double v = mine / other;
            return std::isfinite(v) ? printed("%.3f x", v) : std::string("none");
        });
    }
    return page_table("Latency of " + g.what.name, t);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
