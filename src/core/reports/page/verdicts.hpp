// the report page: verdicts
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/judging/outcome.hpp"
#include "core/described/limits.hpp"
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
    return filled("<svg class=\"icon\" aria-hidden=\"true\"><use href=\"#icon-{name}\"/></svg>",
                  {{"name", name}});
}
inline std::string badge(const char* look, const std::string& words) {
    return filled("<span class=\"badge {look}\">{icon}{words}</span>",
                  {{"look", look}, {"icon", icon(look)}, {"words", words}});
}
/// Returns the CSS class of the verdict that a headline resembles.
inline const char* look_of(headline h) { return to_string(verdict_like(h)); }

/// Keeps the ends of lines, which xml_escaped makes spaces.
inline std::string escaped_lines(std::string_view s) {
    std::string out;
    for (std::size_t end = 0; !s.empty(); s.remove_prefix(end)) {
        const std::size_t line = std::min(s.find('\n'), s.size());
        end = std::min(line + 1, s.size());
        fill(out, "{line:x}{has_end?\n}", {{"line", s.substr(0, line)}, {"has_end", end > line}});
    }
    return out;
}

inline std::string gate_sentence(const gate_report& g) {
    if (!g.refusal.empty()) return g.refusal;
    if (!g.beside.empty()) return g.beside + ".";
    if (const auto& c = g.figures.search; g.what.judged->search.to_the_interval)
        return (c->fault.empty() ? c->line : c->fault) + ".";
    if (g.verdicts.empty()) return "Measured only: no objective was set.";
    for (const verdict outcome :
         {verdict::fail, verdict::invalid, verdict::inconclusive, verdict::skipped}) {
        for (const slo_verdict& v : g.verdicts) {
            if (v.outcome != outcome || v.objective.is_advisory) continue;
            const text slo = v.objective.text();
            const bool is_missed = outcome == verdict::fail;
            std::string t;
            if (is_capacity(v.objective.statistic.metric))
                t = filled("{slo}{is_missed? is missed}: {reason}",
                           {{"slo", slo}, {"is_missed", is_missed}, {"reason", v.reason}});
            else if (is_missed)
                t = filled("{slo} is missed: {measured}[, {room}]",
                           {{"slo", slo}, {"measured", measured_text(v)}, {"room", v.distance}});
            else if (outcome == verdict::inconclusive)
                t = filled("{slo} is neither shown to be met nor missed[: {reason}]",
                           {{"slo", slo}, {"reason", v.reason}});
            else if (v.reason.empty()) t = filled(
                "{slo} is {outcome}", {{"slo", slo}, {"outcome", to_string(outcome)}});
            else t = str(v.reason);
            const std::size_t others = count_of(g, outcome) - 1;
            if (outcome != verdict::skipped)
                fill(t, "[; {others} more objective{others:s} {outcome}]",
                     {{"others", others}, {"outcome", is_missed ? "missed" : to_string(outcome)}});
            return t + ".";
        }
    }
    std::size_t n = count_of(g, verdict::pass);
    std::string errors;
    for (const slo_verdict& v : g.verdicts)
        if (is_only_observed(v) && !v.objective.is_advisory) {
            --n;
            errors = filled(" Errors: {reason}.", {{"reason", v.reason}});
        }
    return (n == 0   ? "No objective was set."
            : n == 1 ? "The objective is met."
            : n == 2 ? "Both objectives are met."
                     : filled("All {n} objectives are met.", {{"n", n}})) +
           errors;
}

/// Draws the limit, the measured value as a diamond, the value that is judged as a dot with its
/// interval, and the values of the repeats. A pass that is only observed is not green.
inline std::string interval_drawing(const slo_verdict& v) {
    vector<double> rug;
    for (const named_values& n : v.inputs)
        if (str(n.name) == values_name(kind_of(v.objective)))
            for (const double x : n.values) rug.push_back(x);
    const estimate_t& e = v.estimate;
    return data_of_drawing(joined(
        {"{\"bar\":", plot_numbers({v.limit, v.measured, e.value, e.low, e.high}), ",\"look\":\"",
         to_string(verdict_like(v)), "\",\"atMost\":", v.objective.at_most ? "true" : "false",
         ",\"repeats\":", plot_numbers(rug), ",\"words\":",
         json_quoted("limit " + limit_text(v.objective)), "}"}));
}

inline constexpr const char* verdicts_key =
    "<p class=\"note\">Bold number and diamond: {is_measured?measured|modelled} over the requests "
    "of all repeats. Dot: the value that the verdict uses, in most cases the typical repeat (the "
    "geometric mean of the repeats). Bar: the interval of that value. Short strokes: the single "
    "repeats. Shaded: the values that the limit allows.</p>\n";
inline std::string verdict_item(const slo_verdict& v) {
    const std::string repeats = filled("[{repeats} {unit}{is_one?|s}, {requests} "
                                       "{trial}{requests:s}]",
                                       {{"repeats", v.repeats},
                                        {"unit", v.unit.empty() ? "repeat" : v.unit.c_str()},
                                        {"is_one", v.repeats == 1}, {"requests", v.requests},
                                        {"trial", trial_of(v)}});
    std::string h = filled("<li>{badge}<div><code>{objective:x}</code>[<p "
                           "class=\"note\">{basis:x}</p>][<p class=\"note\">{reason:x}</p>][<p "
                           "class=\"note\">Advice: {advice:x}</p>]</div>",
                           {{"badge", badge(to_string(verdict_like(v)), verdict_text(v))},
                            {"objective", v.objective.text()},
                            {"basis", joined_texts({v.distance.c_str(), repeats}, "; ")},
                            {"reason", v.reason}, {"advice", v.advice}});
    const estimate_t& e = v.estimate;
    if (is_capacity(v.objective.statistic.metric))
        return h + "</li>\n";  // its reason names the loads
    if (std::isnan(e.value)) return h + "<span class=\"found dim\">not measured</span></li>\n";
    fill(h, "<div class=\"found\"><b>{measured:x}</b>[<span class=\"note "
         "basis\">{basis:x}</span>][<span class=\"note "
         "interval\">{interval:x}</span>]</div>{drawing}</li>\n",
         {{"measured", verdict_value_text(v, v.measured)},
          {"basis", basis_text(v, verdict_value_text)},
          {"interval", has_interval(v) ? interval_text(v) : ""},
          {"drawing", interval_drawing(v)}});
    return h;
}

/// Returns a table that scrolls by itself if the page is too narrow for it. A name in the first
/// column is its row's.
inline std::string page_table(const std::string& name, const report_table& t) {
    std::string h = filled("<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                           "aria-label=\"{name:x}\"><table><thead><tr>", {{"name", name}});
    for (std::size_t i = 0; i < t.head.size(); ++i)
        fill(h, "<th scope=\"col\"{has_words?| class=\"n\"}>{name:x}</th>",
             {{"has_words", i < t.words}, {"name", t.head[i]}});
    h += "</tr></thead><tbody>\n";
    for (const vector<table_cell>& row : t.rows) {
        h += "<tr>";
        for (std::size_t i = 0; i < row.size(); ++i) {
            const table_cell& c = row[i];
            const bool names = i == 0 && !c.text.empty();
            const std::string words = filled_in(xml_escaped(c.text), "_", "_<wbr>");
            fill(h, "<{is_name?th scope=\"row\"|td}[ class=\"{look}\"]>{words}"
                 "[<div>{ratio}</div>]</{is_name?th|td}>",
                 {{"is_name", names}, {"look", c.look ? c.look : i < t.words ? "" : "n"},
                  {"words", c.badge      ? badge(c.badge, words)
                            : c.gate > 0 ? filled("<a href=\"#gate-{gate}\">{words}</a>",
                                                  {{"gate", c.gate}, {"words", words}})
                                         : words},
                  {"ratio", filled(c.is_marked ? "<b>{ratio}</b>" : "{ratio}",
                                   {{"ratio", c.ratio}})}});
        }
        h += "</tr>\n";
    }
    return h + "</tbody></table></div>\n";
}
/// Marks the cell of a variant's name.
inline void mark_variant(table_cell& c, run_variant variant) {
    const bool is_baseline = variant == run_variant::baseline;
    c.text = is_baseline ? "baseline" : "candidate";
    c.look = is_baseline ? "arm b" : "arm c";
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
