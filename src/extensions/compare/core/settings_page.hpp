// the report page: several settings
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/metric/value_text.hpp"
#include "core/figures/steps.hpp"
#include "core/reports/page/plot.hpp"
#include "core/reports/page/verdicts.hpp"
#include "extensions/compare/core/comparison_report.hpp"
#include "extensions/compare/core/comparison_text.hpp"
#include "extensions/compare/core/setting_ratios.hpp"
#include "extensions/compare/core/settings.hpp"
#include "extensions/compare/core/text.hpp"

#include <algorithm>  // max, min
#include <cmath>  // isfinite
#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

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
