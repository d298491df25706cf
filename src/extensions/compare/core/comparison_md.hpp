// several settings in summary.md
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/reports/markdown.hpp"
#include "extensions/compare/core/comparison_report.hpp"
#include "extensions/compare/core/comparison_text.hpp"
#include "extensions/compare/core/setting_ratios.hpp"
#include "extensions/compare/core/settings.hpp"
#include "extensions/compare/core/text.hpp"

#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

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

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
