// several settings in result.json, summary.md and on the page
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/figures/steps.hpp"
#include "core/metric/table.hpp"
#include "core/metric/value_text.hpp"
#include "core/reports/markdown.hpp"
#include "core/reports/page/plot.hpp"
#include "core/reports/page/verdicts.hpp"
#include "extensions/compare/core/text.hpp"
#include "extensions/compare/core/settings.hpp"

#include <algorithm>  // max, min
#include <cmath>  // isfinite
#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline void fields_of(field_visitor& v, setting_ratio& r, settings_comparison& c) {
    std::string of = c.settings[r.second].name, to = c.settings[r.first].name;
    v.text({"of"}, of);
    v.text({"to"}, to);
    v.number({"ratio"}, r.ratio);
    v.interval({"interval"}, r.low, r.high);
    bool is_significant = r.significant();
    v.flag({"significant",
            "the interval excludes 1, and the client's delays cannot have done that"},
           is_significant);
    v.flag({"may_be_the_clients"}, r.may_be_the_clients);
    v.numbers({"log_ratios", "one a round"}, r.logs, any_number);
    v.number({"sd"}, r.at.sd);
    v.choice({"spread", "where the sd comes from"}, r.at.spread, spread_of::measured);
    v.number({"df"}, r.at.df);
    v.number({"standard_error"}, r.at.se);
    v.number({"t", "half of the interval's logarithm in standard errors"}, r.at.pass_t);
}

inline void fields_of(field_visitor& v, compared_statistic& s, settings_comparison& c) {
    const auto best = s.best();
    std::string metric = metric_name(s.what.metric), shows = shown_text(c, s);
    std::string best_name = best ? c.settings[*best].name : "";
    bool less_is_better = s.less_is_better();
    v.text({"statistic"}, s.what.name);
    v.text({"metric"}, metric);
    v.flag({"less_is_better"}, less_is_better);
    v.text({"best",
            "the setting that differs significantly from every other on the good side, \"\": none"},
           best_name);
    v.text({"shows", "the same for all settings in words"}, shows);
    std::size_t i = 0;
    v.list({"settings"}, s.settings, [&](setting_value& one) {
        std::string name = c.settings[i++].name;
        v.text({"name"}, name);
        v.number({"estimate", "geometric mean of the rounds; of a fraction that of all requests"},
                 one.typical, any_number);
        v.interval({"interval", "of 95 % by itself"}, one.low, one.high);
        v.text({"fault", "why this statistic of it is compared with no other"}, one.fault);
    });
    v.list({"ratios", "of each two settings that can be compared"}, s.pairs,
           [&](setting_ratio& r) { fields_of(v, r, c); });
}

/// Each setting is also one of the gates.
inline void fields_of(field_visitor& v, comparison_report& r) {
    settings_comparison& c = r.found;
    v.text({"name"}, r.name);
    v.text({"file"}, r.file);
    v.whole({"line"}, r.line);
    v.whole({"rounds", "that were measured on all settings that are compared"}, c.rounds);
    v.whole({"rounds_planned"}, c.planned_rounds);
    v.text({"stopped", "why there are fewer"}, c.stopped);
    double level = false_difference;
    v.number({"false_difference", "the error level of all intervals of a statistic together"},
             level);
    v.list({"settings"}, c.settings, [&](reported_setting& s) {
        std::string gate = r.name + " / " + s.name;
        v.text({"name"}, s.name);
        v.text({"gate", "the name of its gate"}, gate);
        v.text({"excluded", "why it is compared on nothing"}, s.excluded);
    });
    v.list({"statistics"}, c.statistics, [&](compared_statistic& s) { fields_of(v, s, c); });
}

inline std::string comparison_md(const comparison_report& r) {
    const settings_comparison& c = r.found;
    std::string out = "### " + markdown_escaped(r.name) + ": " + rounds_text(c) + "\n\n| |";
    for (const reported_setting& s : c.settings) out += " " + markdown_escaped(s.name) + " |";
    out += "\n| --- |";
    for (std::size_t i = 0; i < c.settings.size(); ++i) out += " ---: |";
    out += "\n";
    for (std::size_t k = 0; k < c.objectives.size(); ++k) {
        out += "| " + markdown_escaped(str(c.objectives[k].text())) + " |";
        for (const reported_setting& s : c.settings)
            out += std::string(" ") +
                   (k < s.verdicts.size() ? to_string(s.verdicts[k]) : "") + " |";
        out += "\n";
    }
    for (const compared_statistic& s : c.statistics) {
        out += "| " + markdown_escaped(str(s.what.name)) + " |";
        for (std::size_t i = 0; i < c.settings.size(); ++i) {
            const comparison_cell cell = cell_of(s, i);
            const char* mark = cell.significant ? "**" : "";
            out += " " + cell.value +
                   (cell.ratio.empty() ? "" : " (" + (mark + cell.ratio) + mark + ")") + " |";
        }
        out += "\n";
    }
    out += "\nBold: significantly different from " + markdown_escaped(c.settings[0].name) + "; " +
           markdown_escaped(intervals_text(c)) + ".\n\n";
    for (const std::string& s : sentences_of(c, c.statistics.size()))
        out += "- " + markdown_escaped(s) + "\n";
    for (const std::string& note : notes_on(c)) out += "\n" + markdown_code(note) + "\n";
    return out + "\n";
}

/// The figure of one statistic for all settings, "" without a value.
inline std::string settings_figure(const settings_comparison& c, const compared_statistic& s) {
    double least = infinity, most = 0;
    for (const setting_value& v : s.settings)
        for (const double x : {v.typical, v.low, v.high}) {
            if (!std::isfinite(x) || !(x > 0)) continue;
            least = std::min(least, x);
            most = std::max(most, x);
        }
    if (!(most > 0)) return {};
    const bool is_wide = most > 20 * least;
    const double n = static_cast<double>(s.settings.size());
    plot p({plot_scale::shape::linear, 0.5, n + 0.5}, plot_unit::named,
           is_wide ? plot_scale{plot_scale::shape::logarithmic, least * 0.8, most * 1.25}
                   : plot_scale{plot_scale::shape::linear, 0, most * 1.08},
           plot_unit_of(facts_of(s.what.metric).unit));
    const auto best = s.best();
    std::string alt = str(s.what.name) + " of the settings";
    for (std::size_t i = 0; i < s.settings.size(); ++i) {
        const setting_value& v = s.settings[i];
        const double x = static_cast<double>(i + 1);
        p.place(x, c.settings[i].name, static_cast<std::size_t>(238 / n / 6));
        alt += ", " + c.settings[i].name + " " + value_text(s.what.metric, v.typical);
        if (std::isfinite(v.typical))
            p.upright(best == i ? "pass" : v.fault.empty() ? "c" : "open", {x, v.typical}, v.low,
                      v.high);
    }
    return p.figure(xml_escaped(str(s.what.name)) + "<span>" +
                        (best ? xml_escaped(c.settings[*best].name) + " is best" : "") + "</span>",
                    alt + "; " + shown_text(c, s), false);
}

inline std::string settings_table(const comparison_report& r) {
    const settings_comparison& c = r.found;
    std::vector<std::string> head{""};
    for (const reported_setting& s : c.settings) head.push_back(xml_escaped(s.name));
    std::string rows;
    for (std::size_t k = 0; k < c.objectives.size(); ++k) {
        rows += "<tr><th scope=\"row\">" + xml_escaped(str(c.objectives[k].text())) + "</th>";
        for (const reported_setting& s : c.settings) {
            const bool is_judged = k < s.verdicts.size();
            const char* words = is_judged ? to_string(s.verdicts[k]) : "";
            rows += number_cell(is_judged ? badge(words, words) : "");
        }
        rows += "</tr>\n";
    }
    for (const compared_statistic& s : c.statistics) {
        rows += "<tr><th scope=\"row\">" + xml_escaped(str(s.what.name)) + "</th>";
        for (std::size_t i = 0; i < c.settings.size(); ++i) {
            const comparison_cell cell = cell_of(s, i);
            rows += number_cell(cell.value +
                                (cell.ratio.empty()  ? ""
                                 : cell.significant ? "<div><b>" + cell.ratio + "</b></div>"
                                                   : "<div>" + cell.ratio + "</div>"));
        }
        rows += "</tr>\n";
    }
    return page_table("Settings of " + r.name, head, rows);
}

inline std::string comparisons_html(const std::vector<comparison_report>& all) {
    std::string h;
    for (const comparison_report& r : all) {
        const settings_comparison& c = r.found;
        h += "<section><h2>" + xml_escaped(r.name) + "</h2>\n<p class=\"why\">" + rounds_text(c) +
             "</p>\n";
        for (const std::string& note : notes_on(c))
            h += "<p class=\"note\">" + xml_escaped(note) + ".</p>\n";
        h += settings_table(r) + "<p class=\"note\">Bold: significantly different from " +
             xml_escaped(c.settings[0].name) + "; " + xml_escaped(intervals_text(c)) +
             ".</p>\n<ul>\n";
        for (const std::string& s : sentences_of(c, c.statistics.size()))
            h += "<li>" + xml_escaped(s) + "</li>\n";
        std::string figures;
        for (const compared_statistic& s : c.statistics) figures += settings_figure(c, s);
        h += "</ul>\n<p class=\"note\">A dot is the typical round of a setting in its own "
             "interval of 95 %; green where it is shown to be best, hollow where it is not "
             "compared. Two settings can differ significantly although these intervals overlap, by "
             "their "
             "ratios within the rounds.</p>\n<div class=\"plots\">\n" + figures +
             "</div>\n</section>\n";
    }
    return h;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
