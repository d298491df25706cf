// the report page: verdicts
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/judging/outcome.hpp"
#include "core/described/verdict_text.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/tables.hpp"
#include "core/reports/page/plot.hpp"

#include <algorithm>  // min, max
#include <cmath>  // isfinite, fabs, isnan
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline std::string icon(const char* name) {
    return filled("<svg class=\"icon\" aria-hidden=\"true\"><use href=\"#icon-{}\"/></svg>",
                  {name});
}
inline std::string badge(const char* look, const std::string& words) {
    return filled("<span class=\"badge {}\">{}{}</span>", {look, icon(look), words});
}
/// Returns the CSS class of the verdict that a headline resembles.
inline const char* look_of(headline h) { return to_string(verdict_like(h)); }

/// Keeps the ends of lines, which xml_escaped makes spaces.
inline std::string escaped_lines(std::string_view s) {
    std::string out;
    for (std::size_t end = 0; !s.empty(); s.remove_prefix(end)) {
        const std::size_t line = std::min(s.find('\n'), s.size());
        end = std::min(line + 1, s.size());
        fill(out, "{x}{\n|}", {s.substr(0, line), end > line});
    }
    return out;
}

inline std::string gate_sentence(const gate_report& g) {
    if (!g.refusal.empty()) return g.refusal;
    if (!g.beside.empty()) return g.beside + ".";
    if (const load_curve& c = g.figures.search; g.what.judged->search.to_the_interval)
        return (c.fault.empty() ? c.line : c.fault) + ".";
    if (g.verdicts.empty()) return "Measured only: no objective was set.";
    for (const verdict outcome :
         {verdict::fail, verdict::invalid, verdict::inconclusive, verdict::skipped}) {
        for (const slo_verdict& v : g.verdicts) {
            if (v.outcome != outcome || v.objective.is_advisory) continue;
            const text slo = v.objective.text();
            const bool is_missed = outcome == verdict::fail;
            std::string t;
            if (is_capacity(v.objective.statistic.metric))
                t = filled("{}{ is missed|}: {}", {slo, is_missed, v.reason});
            else if (is_missed)
                t = filled("{} is missed: {}[, {}]", {slo, measured_text(v), room_text(v)});
            else if (outcome == verdict::inconclusive)
                t = filled("{} is neither shown to be met nor missed[: {}]", {slo, v.reason});
            else if (v.reason.empty()) t = filled("{} is {}", {slo, to_string(outcome)});
            else t = str(v.reason);
            const std::size_t others = count_of(g, outcome) - 1;
            if (outcome != verdict::skipped)
                fill(t, "[; {} more objective{s} {}]",
                     {others, is_missed ? "missed" : to_string(outcome)});
            return t + ".";
        }
    }
    std::size_t n = count_of(g, verdict::pass);
    std::string errors;
    for (const slo_verdict& v : g.verdicts)
        if (is_only_observed(v) && !v.objective.is_advisory) {
            --n;
            errors = filled(" Errors: {}.", {v.reason});
        }
    return (n == 0   ? "No objective was set."
            : n == 1 ? "The objective is met."
            : n == 2 ? "Both objectives are met."
                     : filled("All {} objectives are met.", {n})) +
           errors;
}

/// Draws the limit, the measured value as a diamond, the value that is judged as a dot with its
/// interval, and the values of the repeats.
inline std::string interval_svg(const slo_verdict& v) {
    vector<double> rug;
    for (const named_values& n : v.inputs)
        if (str(n.name) == "values" || str(n.name) == "ratios")
            for (const double x : n.values) rug.push_back(x);
    const estimate_t& e = v.estimate;
    double low = v.limit, high = v.limit;
    const auto widen = [&](double x) {
        if (std::isfinite(x)) {
            low = std::min(low, x);
            high = std::max(high, x);
        }
    };
    for (const double x : {v.measured, e.value, e.low, e.high}) widen(x);
    for (const double x : rug) widen(x);
    const double margin = high > low ? 0.08 * (high - low) : std::max(std::fabs(high) * 0.2, 1e-6);
    const plot_scale s{plot_scale::shape::linear, low - margin, high + margin};
    const auto at = [&](double x) {
        return std::isfinite(x) ? 4 + 312 * s.place(x) : x > 0 ? 313 : 7;
    };
    const double limit = at(v.limit), from = v.objective.at_most ? 4 : limit;
    const double a = at(std::isnan(e.low) ? e.value : e.low);
    const double b = at(std::isnan(e.high) ? e.value : e.high);
    const std::string limit_in_words = verdict_limit_text(v);
    // A pass that is only observed is not green.
    std::string out = filled(
        "<svg class=\"plot {}\" role=\"img\" viewBox=\"0 0 320 42\" aria-label=\"{x}, interval {x} "
        "to {x}, limit {x}\"><rect class=\"allowed\" x=\"{p}\" y=\"4\" height=\"22\" "
        "width=\"{p}\"/><rect class=\"bar\" x=\"{p}\" y=\"12\" height=\"6\" rx=\"3\" "
        "width=\"{p}\"/>",
        {to_string(verdict_like(v)), measured_text(v, is_of_model(v)),
         verdict_value_text(v, e.low), verdict_value_text(v, e.high), limit_in_words, from,
         v.objective.at_most ? limit - 4 : 316 - limit, std::min(a, b),
         std::max(std::fabs(b - a), 1.0)});
    for (const double x : rug)
        if (!std::isnan(x)) fill(out, "<path class=\"rug\" d=\"M{p} 8v14\"/>", {at(x)});
    fill(out, "<circle class=\"dot\" r=\"5\" cy=\"15\" cx=\"{p}\"/>", {at(e.value)});
    if (!std::isnan(v.measured))
        fill(out, "<path class=\"data\" d=\"M{p} 22l4 4-4 4-4-4z\"/>", {at(v.measured)});
    fill(out, "<path class=\"limit\" d=\"M{p} 1V29\"/><text class=\"mark\" y=\"40\" x=\"{p}\" "
              "text-anchor=\"{}\">limit {x}</text></svg>",
         {limit, limit, limit < 60 ? "start" : limit > 260 ? "end" : "middle", limit_in_words});
    return out;
}

inline constexpr const char* verdicts_key =
    "<p class=\"note\">Bold number and diamond: {measured|modelled} over the requests of all "
    "repeats. Dot: the value that the verdict uses, in most cases the typical repeat (the "
    "geometric mean of the repeats). Bar: the interval of that value. Short strokes: the single "
    "repeats. Shaded: the values that the limit allows.</p>\n";
inline std::string verdict_item(const slo_verdict& v) {
    const std::string repeats = filled("[{} {}{|s}, {} request{s}]",
                                       {v.repeats, v.unit.empty() ? "repeat" : v.unit.c_str(),
                                        v.repeats == 1, v.requests});
    std::string h = filled("<li>{}<div><code>{x}</code>[<p class=\"note\">{x}</p>]"
                           "[<p class=\"note\">{x}</p>][<p class=\"note\">Advice: {x}</p>]</div>",
                           {badge(to_string(verdict_like(v)), verdict_text(v)), v.objective.text(),
                            joined_texts({room_text(v), repeats}, "; "), v.reason, v.advice});
    const estimate_t& e = v.estimate;
    if (is_capacity(v.objective.statistic.metric))
        return h + "</li>\n";  // its reason names the loads
    if (std::isnan(e.value)) return h + "<span class=\"found dim\">not measured</span></li>\n";
    fill(h, "<div class=\"found\"><b>{x}</b>[<span class=\"note basis\">{x}</span>]"
            "[{?}<span class=\"note interval\">{x} to {x}</span>]</div>{}</li>\n",
         {verdict_value_text(v, v.measured), basis_text(v, verdict_value_text), has_interval(v),
          verdict_value_text(v, e.low), verdict_value_text(v, e.high), interval_svg(v)});
    return h;
}

/// Returns a table that scrolls by itself if the page is too narrow for it. A name in the first
/// column is its row's.
inline std::string page_table(const std::string& name, const report_table& t) {
    std::string h = filled("<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                           "aria-label=\"{x}\"><table><thead><tr>", {name});
    for (std::size_t i = 0; i < t.head.size(); ++i)
        fill(h, "<th scope=\"col\"{| class=\"n\"}>{x}</th>", {i < t.words, t.head[i]});
    h += "</tr></thead><tbody>\n";
    for (const vector<table_cell>& row : t.rows) {
        h += "<tr>";
        for (std::size_t i = 0; i < row.size(); ++i) {
            const table_cell& c = row[i];
            const bool names = i == 0 && !c.text.empty();
            const std::string words = filled_in(xml_escaped(c.text), "_", "_<wbr>");
            fill(h, "<{th scope=\"row\"|td}[ class=\"{}\"]>{}[<div>{}</div>]</{th|td}>",
                 {names, c.look ? c.look : i < t.words ? "" : "n",
                  c.badge     ? badge(c.badge, words)
                  : c.gate > 0 ? filled("<a href=\"#gate-{}\">{}</a>", {c.gate, words})
                               : words,
                  filled(c.is_marked ? "<b>{}</b>" : "{}", {c.ratio}), names});
        }
        h += "</tr>\n";
    }
    return h + "</tbody></table></div>\n";
}
/// Marks the cell of a variant's name.
inline void mark_variant(table_cell& c, bool is_baseline) {
    c.text = is_baseline ? "baseline" : "candidate";
    c.look = is_baseline ? "arm b" : "arm c";
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
