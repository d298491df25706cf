// several settings on the console
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/value_text.hpp"
#include "extensions/compare/core/comparison_report.hpp"
#include "extensions/compare/core/setting_ratios.hpp"
#include "extensions/compare/core/settings.hpp"
#include "extensions/compare/core/text.hpp"

#include <algorithm>  // max, min
#include <cstddef>  // size_t
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The cell of a setting: its value, and its ratio to the first, if any.
struct comparison_cell {
    std::string value{}, ratio{};
    bool significant = false;
};
inline comparison_cell cell_of(const compared_statistic& s, std::size_t setting) {
    comparison_cell cell{value_text(s.what.metric, s.settings[setting].typical), "", false};
    if (setting == 0) return cell;
    if (const auto r = s.ratio(setting, 0)) {
        cell.ratio = ratio_text(*r);
        cell.significant = s.pair(setting, 0)->significant();
    }
    return cell;
}

/// One line of a table on the console. The first column is as wide as names are, and so is each of
/// the others.
class table_columns {
public:
    explicit table_columns(std::vector<std::vector<std::string>> rows) : rows_(std::move(rows)) {
        for (const auto& row : rows_)
            for (std::size_t i = 0; i < row.size(); ++i) {
                if (widths_.size() <= i) widths_.push_back(0);
                widths_[i] = std::max(widths_[i], columns_of(row[i]));
            }
    }
    std::string text() const {
        std::string out;
        for (const auto& row : rows_) {
            std::string line = " ";
            for (std::size_t i = 0; i < row.size(); ++i)
                line += " " + row[i] + std::string(widths_[i] - columns_of(row[i]) + 1, ' ');
            line.erase(line.find_last_not_of(' ') + 1);
            out += line + "\n";
        }
        return out;
    }

private:
    std::vector<std::vector<std::string>> rows_;
    std::vector<std::size_t> widths_{};
};

/// The table of some settings, the first of which the others are held against.
inline std::string comparison_table(const settings_comparison& c,
                                    const std::vector<std::size_t>& which) {
    std::vector<std::vector<std::string>> rows{{""}};
    const auto add = [&](std::size_t setting, const std::string& value, const std::string& ratio) {
        rows.back().push_back(value);
        if (setting != 0) rows.back().push_back(ratio);
    };
    for (const std::size_t i : which) add(i, c.settings[i].name, "");
    for (std::size_t k = 0; k < c.objectives.size(); ++k) {
        rows.push_back({str(c.objectives[k].text())});
        for (const std::size_t i : which)
            add(i,
                k < c.settings[i].verdicts.size() ? to_string(c.settings[i].verdicts[k]) : "", "");
    }
    for (const compared_statistic& s : c.statistics) {
        rows.push_back({str(s.what.name)});
        for (const std::size_t i : which) {
            const comparison_cell cell = cell_of(s, i);
            add(i, cell.value, cell.ratio + (cell.significant ? " *" : ""));
        }
    }
    return table_columns(std::move(rows)).text();
}

/// The block that closes a comparison on the console.
inline std::string comparison_text(const comparison_report& r) {
    constexpr std::size_t beside = 3;  // side by side; more are wider than a terminal
    const settings_comparison& c = r.found;
    std::string out = "\n" + r.name + ": " + rounds_text(c) + "\n";
    for (std::size_t from = 1; from < c.settings.size(); from += beside) {
        std::vector<std::size_t> which{0};
        for (std::size_t i = from; i < std::min(from + beside, c.settings.size()); ++i)
            which.push_back(i);
        out += "\n" + comparison_table(c, which);
    }
    out += "  * significant; " + intervals_text(c) + "\n\n";
    for (const std::string& s : sentences_of(c, c.statistics.size())) out += "  " + s + "\n";
    for (const std::string& note : notes_on(c)) out += "  " + note + "\n";
    return out;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
