// the report page: verdicts
#pragma once

#include "api/result.hpp"
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
#include <vector>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline std::string icon(const char* name) {
    return printed("<svg class=\"icon\" aria-hidden=\"true\"><use href=\"#icon-%s\"/></svg>", name);
}
inline std::string badge(const char* look, const std::string& words) {
    return joined({"<span class=\"badge ", look, "\">", icon(look), words, "</span>"});
}
/// Returns the CSS class of the verdict that a headline resembles.
inline const char* look_of(headline h) { return to_string(verdict_like(h)); }
inline std::size_t count_of(const gate_report& g, verdict outcome) {
    std::size_t n = 0;
    for (const slo_verdict& v : g.verdicts) n += v.outcome == outcome && !v.what.is_advisory;
    return n;
}

/// Keeps the ends of lines, which xml_escaped makes spaces.
inline std::string escaped_lines(std::string_view s) {
    std::string out;
    for (std::size_t end = 0; !s.empty(); s.remove_prefix(end)) {
        const std::size_t line = std::min(s.find('\n'), s.size());
        end = std::min(line + 1, s.size());
        out += xml_escaped(s.substr(0, line)) + (end > line ? "\n" : "");
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
            if (v.outcome != outcome || v.what.is_advisory) continue;
            const std::string slo = str(v.what.text()), why = str(v.reason);
            const std::string room = room_text(v);
            const bool is_missed = outcome == verdict::fail;
            std::string t;
            if (is_capacity(v.what.what.metric))
                t = joined({slo, is_missed ? " is missed: " : ": ", why});
            else if (is_missed)
                t = joined_texts({slo + " is missed: " + measured_text(v), room}, ", ");
            else if (outcome == verdict::inconclusive)
                t = joined_texts({slo + " is neither shown to be met nor missed", why}, ": ");
            else t = why.empty() ? slo + " is " + to_string(outcome) : why;
            const std::size_t others = count_of(g, outcome) - 1;
            if (others > 0 && outcome != verdict::skipped)
                t += joined({"; ", plural(others, "more objective"), " ",
                             is_missed ? "missed" : to_string(outcome)});
            return t + ".";
        }
    }
    std::size_t n = count_of(g, verdict::pass);
    std::string errors;
    for (const slo_verdict& v : g.verdicts)
        if (is_only_observed(v) && !v.what.is_advisory) {
            --n;
            errors = " Errors: " + str(v.reason) + ".";
        }
    return (n == 0   ? "No objective was set."
            : n == 1 ? "The objective is met."
            : n == 2 ? "Both objectives are met."
                     : printed("All %zu objectives are met.", n)) +
           errors;
}

/// Draws the limit, the measured value as a diamond, the value that is judged as a dot with its
/// interval, and the values of the repeats.
inline std::string interval_svg(const slo_verdict& v) {
    std::vector<double> rug;
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
    const double limit = at(v.limit), from = v.what.at_most ? 4 : limit;
    const double a = at(std::isnan(e.low) ? e.value : e.low);
    const double b = at(std::isnan(e.high) ? e.value : e.high);
    const std::string limit_in_words = verdict_limit_text(v);
    // A pass that is only observed is not green.
    std::string out = joined(
        {"<svg class=\"plot ", to_string(verdict_like(v)),
         "\" role=\"img\" viewBox=\"0 0 320 42\" aria-label=\"",
         xml_escaped(joined({measured_text(v), ", interval ", verdict_value_text(v, e.low), " to ",
                             verdict_value_text(v, e.high), ", limit ", limit_in_words})),
         "\"><rect class=\"allowed\" x=\"", pixels(from), "\" y=\"4\" height=\"22\" width=\"",
         pixels(v.what.at_most ? limit - 4 : 316 - limit), "\"/><rect class=\"bar\" x=\"",
         pixels(std::min(a, b)), "\" y=\"12\" height=\"6\" rx=\"3\" width=\"",
         pixels(std::max(std::fabs(b - a), 1.0)), "\"/>"});
    for (const double x : rug)
        if (!std::isnan(x))
            out += joined({"<path class=\"rug\" d=\"M", pixels(at(x)), " 8v14\"/>"});
    out += joined({"<circle class=\"dot\" r=\"5\" cy=\"15\" cx=\"", pixels(at(e.value)), "\"/>"});
    if (!std::isnan(v.measured))
        out += joined({"<path class=\"data\" d=\"M", pixels(at(v.measured)),
                       " 22l4 4-4 4-4-4z\"/>"});
    const char* anchor = limit < 60 ? "start" : limit > 260 ? "end" : "middle";
    return joined({out, "<path class=\"limit\" d=\"M", pixels(limit),
                   " 1V29\"/><text class=\"mark\" y=\"40\" x=\"", pixels(limit),
                   "\" text-anchor=\"", anchor, "\">limit ", xml_escaped(limit_in_words),
                   "</text></svg>"});
}

inline constexpr const char* verdicts_key =
    "<p class=\"note\">Bold number and diamond: measured over the requests of all repeats. Dot: "
    "the value that the verdict uses, in most cases the typical repeat (the geometric mean of the "
    "repeats). Bar: the interval of that value. Short strokes: the single repeats. Shaded: the "
    "values that the limit allows.</p>\n";
inline std::string verdict_item(const slo_verdict& v) {
    std::string repeats;
    if (v.repeats > 0)
        repeats = joined({plural(static_cast<std::size_t>(v.repeats),
                                 v.unit.empty() ? "repeat" : v.unit.c_str()), ", ",
                          plural(static_cast<std::size_t>(v.requests), "request")});
    std::string h = joined({"<li>", badge(to_string(verdict_like(v)), verdict_text(v)),
                            "<div><code>", xml_escaped(str(v.what.text())), "</code>"});
    const auto add = [&](const char* tag, const std::string& words, const char* end) {
        if (!words.empty()) h += joined({tag, xml_escaped(words), end});
    };
    add("<p class=\"note\">", joined_texts({room_text(v), repeats}, "; "), "</p>");
    add("<p class=\"note\">", str(v.reason), "</p>");
    add("<p class=\"note\">Advice: ", str(v.advice), "</p>");
    h += "</div>";
    const estimate_t& e = v.estimate;
    if (is_capacity(v.what.what.metric)) return h + "</li>\n";  // its reason names the loads
    if (std::isnan(e.value)) return h + "<span class=\"found dim\">not measured</span></li>\n";
    add("<div class=\"found\"><b>", verdict_value_text(v, v.measured), "</b>");
    add("<span class=\"note basis\">", basis_text(v, verdict_value_text), "</span>");
    if (has_interval(v))
        add("<span class=\"note interval\">",
            joined({verdict_value_text(v, e.low), " to ", verdict_value_text(v, e.high)}),
            "</span>");
    return joined({h, "</div>", interval_svg(v), "</li>\n"});
}

/// Returns a table that scrolls by itself if the page is too narrow for it.
inline std::string page_table(const std::string& name, const std::vector<std::string>& head,
                              const std::string& rows, std::size_t words = 1) {
    std::string cells;
    for (std::size_t i = 0; i < head.size(); ++i)
        cells += joined({i < words ? "<th scope=\"col\">" : "<th scope=\"col\" class=\"n\">",
                         head[i], "</th>"});
    return joined({"<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"",
                   xml_escaped(name), "\"><table><thead><tr>", cells, "</tr></thead><tbody>\n",
                   rows, "</tbody></table></div>\n"});
}
inline std::string number_cell(const std::string& s) { return "<td class=\"n\">" + s + "</td>"; }
/// The first cell of a row is its name.
inline std::string page_table(const std::string& name, const report_table& t) {
    std::vector<std::string> head;
    for (const table_cell& c : t.head) head.push_back(xml_escaped(c.text));
    std::string rows;
    for (const table_line& line : t.rows) {
        rows += "<tr>";
        for (std::size_t i = 0; i < line.size(); ++i) {
            const table_cell& c = line[i];
            const bool names = i == 0 && !c.look;
            const std::string_view look = c.look ? c.look : names || i < t.words ? "" : "n";
            rows += joined({names ? "<th scope=\"row\"" : "<td", look.empty() ? "" : " class=\"",
                            look, look.empty() ? ">" : "\">",
                            c.is_html ? c.text : xml_escaped(c.text), names ? "</th>" : "</td>"});
        }
        rows += "</tr>\n";
    }
    return page_table(name, head, rows, t.words);
}
inline table_cell variant_cell(bool is_baseline) {
    return is_baseline ? table_cell("baseline", "arm b") : table_cell("candidate", "arm c");
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
