// texts on several settings
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/described/described.hpp"
#include "core/judging/rule.hpp"
#include "core/metric/table.hpp"
#include "extensions/compare/core/settings.hpp"

#include <algorithm>  // find, find_if, sort, max, min
#include <cstddef>  // size_t
#include <optional>
#include <string>
#include <utility>  // exchange, pair, move
#include <vector>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A comparison in reports, beside the gates of its settings.
struct comparison_report {
    std::string name{}, file{};
    int line = 0;
    settings_comparison found{};
};

inline std::string names_of(const settings_comparison& c, const std::vector<std::size_t>& which) {
    std::vector<std::string> names;
    for (const std::size_t i : which) names.push_back(c.settings[i].name);
    return enumerated(names);
}

/// Pairs without a difference: "a and b do not differ significantly". If no pair of three or more
/// settings differs, the settings are listed once.
inline std::string alike_text(const settings_comparison& c, const compared_statistic& s) {
    std::vector<std::size_t> members;
    std::vector<std::string> pairs;
    for (const setting_ratio& r : s.pairs) {
        if (r.significant()) continue;
        pairs.push_back(names_of(c, {r.first, r.second}));
        for (const std::size_t i : {r.first, r.second})
            if (std::find(members.begin(), members.end(), i) == members.end())
                members.push_back(i);
    }
    if (pairs.empty()) return {};
    std::sort(members.begin(), members.end());
    if (members.size() > 2 && pairs.size() == c.settings.size() * (c.settings.size() - 1) / 2)
        return "no two settings differ significantly";
    if (members.size() * (members.size() - 1) / 2 == pairs.size())
        return names_of(c, members) + " do not differ significantly";
    std::string out;
    for (const std::string& p : pairs) out += (out.empty() ? "" : ", ") + p;
    return "no significant difference between " + out;
}
/// Settings by the text on them, in order of first use.
using said_of_settings = std::vector<std::pair<std::string, std::vector<std::size_t>>>;
inline void say_of(said_of_settings& all, const std::string& words, std::size_t setting) {
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const auto& said) { return said.first == words; });
    if (at == all.end()) all.push_back({words, {setting}});
    else at->second.push_back(setting);
}
/// "a is x; b and c are y".
inline std::string said_text(const settings_comparison& c, const said_of_settings& all) {
    std::string out;
    for (const auto& [words, which] : all)
        out += (out.empty() ? "" : "; ") + names_of(c, which) +
               (which.size() == 1 ? " is " : " are ") + words;
    return out;
}

/// If none is best: "a and b are better than c".
inline std::string better_text(const settings_comparison& c, const compared_statistic& s) {
    said_of_settings said;
    for (std::size_t a = 0; a < s.settings.size(); ++a) {
        std::vector<std::size_t> beaten;
        for (std::size_t b = 0; b < s.settings.size(); ++b)
            if (s.is_better(a, b)) beaten.push_back(b);
        if (!beaten.empty()) say_of(said, "better than " + names_of(c, beaten), a);
    }
    return said_text(c, said);
}
/// "a is best, then b, then c", if each differs significantly from all others.
inline std::string order_text(const settings_comparison& c, const compared_statistic& s) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < s.settings.size(); ++i)
        if (s.settings[i].fault.empty())
            order.emplace_back((s.less_is_better() ? 1 : -1) * s.settings[i].typical, i);
    std::sort(order.begin(), order.end());
    std::string out;
    for (const auto& [value, i] : order)
        out += (out.empty() ? "" : ", then ") + c.settings[i].name +
               (out.empty() ? " is best" : "");
    return out;
}

/// Settings that only this statistic leaves out, and why.
inline std::string left_out_text(const settings_comparison& c, const compared_statistic& s) {
    said_of_settings said;
    for (std::size_t i = 0; i < s.settings.size(); ++i)
        if (const std::string& why = s.settings[i].fault; !why.empty() &&
                                                          c.settings[i].excluded.empty())
            say_of(said, "not compared: " + why, i);
    return said_text(c, said);
}

/// The result of a statistic, without its name: "a is best; b and c do not differ significantly".
inline std::string shown_text(const settings_comparison& c, const compared_statistic& s) {
    if (!may_be_relative(s.what.metric)) return "a fraction is shown and not compared";
    const std::string alike = alike_text(c, s), left_out = left_out_text(c, s);
    std::string out;
    const auto add = [&](const std::string& words) {
        if (!words.empty()) out += (out.empty() ? "" : "; ") + words;
    };
    if (s.pairs.empty()) add(left_out.empty() ? "nothing to compare" : "");
    else if (alike.empty()) add(order_text(c, s));
    else {
        const auto best = s.best();
        add(best ? c.settings[*best].name + " is best" : better_text(c, s));
    }
    add(alike);
    std::string by_client;
    for (const setting_ratio& r : s.pairs)
        if (r.may_be_the_clients)
            by_client += (by_client.empty() ? "" : ", ") + names_of(c, {r.first, r.second});
    if (!by_client.empty())
        add("the client was stalled and may have made the difference between " + by_client);
    add(left_out);
    return out;
}
inline std::string sentence_of(const settings_comparison& c, const compared_statistic& s) {
    return str(s.what.name) + ": " + shown_text(c, s);
}

/// Results of the statistics before `end`, one sentence for equal ones.
inline std::vector<std::string> sentences_of(const settings_comparison& c, std::size_t end) {
    std::vector<std::pair<std::string, std::string>> shown;  // result, statistics
    for (std::size_t i = 0; i < end; ++i) {
        const std::string words = shown_text(c, c.statistics[i]);
        const std::string name = str(c.statistics[i].what.name);
        const auto at = std::find_if(shown.begin(), shown.end(),
                                     [&](const auto& s) { return s.first == words; });
        if (at == shown.end()) shown.emplace_back(words, name);
        else at->second += ", " + name;
    }
    std::vector<std::string> sentences;
    for (const auto& [words, names] : shown) sentences.push_back(names + ": " + words);
    return sentences;
}

/// "3 settings in turns, 4 rounds", "3 settings in turns, 2 of 4 rounds".
inline std::string rounds_text(const settings_comparison& c) {
    return printed("%zu settings in turns, ", c.settings.size()) +
           (c.rounds < c.planned_rounds ? printed("%zu of ", c.rounds) : "") +
           printed("%zu rounds", c.planned_rounds);
}
/// Notes on the table, one sentence each.
inline std::vector<std::string> notes_on(const settings_comparison& c) {
    std::vector<std::string> notes;
    for (const reported_setting& s : c.settings)
        if (!s.excluded.empty()) notes.push_back(s.name + " is not compared: " + s.excluded);
    if (!c.stopped.empty()) notes.push_back(c.stopped);
    return notes;
}
/// The error rate of the table.
inline std::string intervals_text(const settings_comparison& c) {
    const std::size_t pairs = c.settings.size() * (c.settings.size() - 1) / 2;
    return "ratios to " + c.settings[0].name + ", of the typical round; " +
           (pairs == 1 ? std::string("an interval holds")
                       : printed("the intervals of all %zu pairs of a row hold together", pairs)) +
           " in 95 % of all cases" + (pairs == 1 ? "" : " (Bonferroni)");
}

/// The results of the objectives' statistics on one line, or of all statistics if there are none.
inline std::string comparison_line(const settings_comparison& c) {
    std::string line = rounds_text(c);
    const std::size_t n = c.asked > 0 ? c.asked : c.statistics.size();
    const char* before = ": ";
    for (const std::string& sentence : sentences_of(c, n))
        line += std::exchange(before, "; ") + sentence;
    for (const std::string& note : notes_on(c)) line += "; " + note;
    return line;
}

/// "1.04 [0.99, 1.09]".
inline std::string ratio_text(const estimate_t& r) {
    return printed(r.low < 0.1 ? "%.3g [%.3g, %.3g]" : "%.2f [%.2f, %.2f]", r.value, r.low,
                   r.high);
}
/// The line with the arithmetic of every ratio.
inline std::string comparison_explained(const settings_comparison& c) {
    std::string out = comparison_line(c) + "\n" + intervals_text(c);
    for (const compared_statistic& s : c.statistics) {
        out += "\n" + sentence_of(c, s);
        for (std::size_t i = 0; i < s.settings.size(); ++i)
            out += "\n  " + c.settings[i].name + ": " +
                   value_text(s.what.metric, s.settings[i].typical);
        for (const setting_ratio& r : s.pairs)
            out += "\n  " + c.settings[r.second].name + " / " + c.settings[r.first].name + ": " +
                   ratio_text(*s.ratio(r.second, r.first)) + "; ln ratios " + listed(r.logs) +
                   printed("; mean %.6g, sd %.6g (%s), df %.0f, standard error %.6g, t %.4f",
                           r.at.mean, r.at.sd, to_string(r.at.spread), r.at.df, r.at.se,
                           r.at.pass_t);
    }
    return out;
}

/// The cell of a setting: a verdict, or its value and its ratio to the first, if any.
struct comparison_cell {
    std::string value{}, ratio{};
    bool significant = false, is_verdict = false;
};
/// A row of a comparison's tables: an objective or a statistic, with a cell for each setting.
struct comparison_row {
    std::string name{};
    std::vector<comparison_cell> cells{};
};
inline std::vector<comparison_row> rows_of(const settings_comparison& c) {
    std::vector<comparison_row> rows;
    for (std::size_t k = 0; k < c.objectives.size(); ++k) {
        rows.push_back({str(c.objectives[k].text()), {}});
        for (const reported_setting& s : c.settings)
            rows.back().cells.push_back(
                {k < s.verdicts.size() ? to_string(s.verdicts[k]) : "", "", false, true});
    }
    for (const compared_statistic& s : c.statistics) {
        rows.push_back({str(s.what.name), {}});
        for (std::size_t i = 0; i < c.settings.size(); ++i) {
            const auto ratio = i > 0 ? s.ratio(i, 0) : std::nullopt;
            rows.back().cells.push_back({value_text(s.what.metric, s.settings[i].typical),
                                         ratio ? ratio_text(*ratio) : "",
                                         ratio && s.pair(i, 0)->significant()});
        }
    }
    return rows;
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
    for (const comparison_row& row : rows_of(c)) {
        rows.push_back({row.name});
        for (const std::size_t i : which)
            add(i, row.cells[i].value, row.cells[i].ratio + (row.cells[i].significant ? " *" : ""));
    }
    return table_columns(std::move(rows)).text();
}

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
}  // inline namespace v1
}  // namespace llmbench
