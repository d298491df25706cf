// texts on several settings
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/described/described.hpp"
#include "core/judging/rule.hpp"
#include "core/described/verdict_text.hpp"
#include "core/figures/outcomes.hpp"
#include "core/metric/filled.hpp"
#include "core/reports/tables.hpp"
#include "extensions/compare/core/settings.hpp"

#include <algorithm>  // find, find_if, sort, max, min
#include <cstddef>  // size_t
#include <string>
#include <utility>  // exchange, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A comparison in reports, beside the gates of its settings.
struct comparison_report {
    std::string name{}, file{};
    int line = 0;
    settings_comparison found{};
};

inline std::string names_of(const settings_comparison& c, const vector<std::size_t>& which) {
    vector<std::string> names;
    for (const std::size_t i : which) names.push_back(c.settings[i].name);
    return enumerated(names);
}

/// Pairs without a difference: "a and b do not differ significantly". If no pair of three or more
/// settings differs, the settings are listed once.
inline std::string alike_text(const settings_comparison& c, const compared_statistic& s) {
    vector<std::size_t> members;
    vector<std::string> pairs;
    for (const setting_ratio& r : s.pairs) {
        if (r.significant()) continue;
        pairs.push_back(names_of(c, {r.first, r.second}));
        for (const std::size_t i : {r.first, r.second})
            if (std::find(members.begin(), members.end(), i) == members.end()) members.push_back(i);
    }
    if (pairs.empty()) return {};
    std::sort(members.begin(), members.end());
    if (members.size() > 2 && pairs.size() == c.settings.size() * (c.settings.size() - 1) / 2)
        return "no two settings differ significantly";
    if (members.size() * (members.size() - 1) / 2 == pairs.size())
        return names_of(c, members) + " do not differ significantly";
    std::string out;
    for (const std::string& p : pairs) fill(out, "{is_first?no significant difference between |, }"
                                            "{pair}", {{"is_first", out.empty()}, {"pair", p}});
    return out;
}
/// Settings by the text on them, in order of first use.
using said_of_settings = vector<std::pair<std::string, vector<std::size_t>>>;
inline void say_of(said_of_settings& all, const std::string& words, std::size_t setting) {
    const auto is_same = [&](const auto& said) { return said.first == words; };
    found_or_added(all, is_same, {words, {}}).second.push_back(setting);
}
/// "a is x; b and c are y".
inline std::string said_text(const settings_comparison& c, const said_of_settings& all) {
    std::string out;
    for (const auto& [words, which] : all)
        fill(out, "{;}{names} {is_one?is|are} {words}",
             {{"names", names_of(c, which)}, {"is_one", which.size() == 1}, {"words", words}});
    return out;
}

/// If none is best: "a and b are better than c".
inline std::string better_text(const settings_comparison& c, const compared_statistic& s) {
    said_of_settings said;
    for (std::size_t a = 0; a < s.settings.size(); ++a) {
        vector<std::size_t> beaten;
        for (std::size_t b = 0; b < s.settings.size(); ++b)
            if (s.is_better(a, b)) beaten.push_back(b);
        if (!beaten.empty()) say_of(said, "better than " + names_of(c, beaten), a);
    }
    return said_text(c, said);
}
/// "a is best, then b, then c", if each differs significantly from all others.
inline std::string order_text(const settings_comparison& c, const compared_statistic& s) {
    vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < s.settings.size(); ++i)
        if (s.settings[i].fault.empty())
            order.emplace_back((s.less_is_better() ? 1 : -1) * s.settings[i].typical, i);
    std::sort(order.begin(), order.end());
    std::string out;
    for (const auto& [value, i] : order)
        fill(out, out.empty() ? "{name} is best" : ", then {name}", {{"name", c.settings[i].name}});
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
    std::string best, by_client;
    if (s.pairs.empty()) best = left_out.empty() ? "nothing to compare" : "";
    else if (alike.empty()) best = order_text(c, s);
    else best = s.best() ? c.settings[*s.best()].name + " is best" : better_text(c, s);
    for (const setting_ratio& r : s.pairs)
        if (r.may_be_the_clients)
            fill(by_client,
                 "{is_first?the client was stalled and may have made the difference between |, }"
                 "{pair}",
                 {{"is_first", by_client.empty()}, {"pair", names_of(c, {r.first, r.second})}});
    return joined_texts({best, alike, by_client, left_out}, "; ");
}
inline std::string sentence_of(const settings_comparison& c, const compared_statistic& s) {
    return filled("{name}: {shown}", {{"name", printable(str(s.what.name))}, {"shown", shown_text(c, s)}});
}

/// Results of the statistics before `end`, one sentence for equal ones.
inline vector<std::string> sentences_of(const settings_comparison& c, std::size_t end) {
    vector<std::pair<std::string, std::string>> shown;  // result, statistics
    for (std::size_t i = 0; i < end; ++i) {
        const std::string words = shown_text(c, c.statistics[i]);
        const auto is_same = [&](const auto& s) { return s.first == words; };
        fill(found_or_added(shown, is_same, {words, ""}).second, "{,}{name}",
             {{"name", c.statistics[i].what.name}});
    }
    vector<std::string> sentences;
    for (const auto& [words, names] : shown) sentences.push_back(filled(
        "{names}: {words}", {{"names", names}, {"words", words}}));
    return sentences;
}

/// "3 settings in turns, 4 rounds", "3 settings in turns, 2 of 4 rounds".
inline std::string rounds_text(const settings_comparison& c) {
    return filled(
        "{settings} settings in turns, [{rounds} of ]{planned} rounds",
                  {{"settings", c.settings.size()},
                   {"rounds", c.rounds < c.planned_rounds ? c.rounds : 0},
                   {"planned", c.planned_rounds}});
}
/// Notes on the table, one sentence each.
inline vector<std::string> notes_on(const settings_comparison& c) {
    vector<std::string> notes;
    for (const reported_setting& s : c.settings)
        if (!s.excluded.empty())
            notes.push_back(filled("{name} is not compared: {excluded}",
                                   {{"name", s.name}, {"excluded", s.excluded}}));
    if (!c.stopped.empty()) notes.push_back(c.stopped);
    return notes;
}
/// The error rate of the table.
inline std::string intervals_text(const settings_comparison& c) {
    const std::size_t pairs = c.settings.size() * (c.settings.size() - 1) / 2;
    return filled("ratios to {first}, of the typical round; "
                  "{is_one?an interval holds|the intervals of all }[{pairs} pairs of a row hold "
                  "together] in 95 % of all cases{is_one?| (Bonferroni)}",
                  {{"first", c.settings[0].name}, {"is_one", pairs == 1},
                   {"pairs", pairs == 1 ? 0 : pairs}});
}

/// The results of the objectives' statistics on one line, or of all statistics if there are none.
inline std::string comparison_line(const settings_comparison& c) {
    std::string shown;
    for (const std::string& s : sentences_of(c, c.asked > 0 ? c.asked : c.statistics.size()))
        fill(shown, "{;}{note}", {{"note", s}});
    std::string line = filled("{rounds}[: {shown}]",
                              {{"rounds", rounds_text(c)}, {"shown", shown}});
    for (const std::string& note : notes_on(c)) fill(line, "; {note}", {{"note", note}});
    return line;
}

/// "1.04 [0.99, 1.09]".
inline std::string ratio_text(const estimate_t& r) {
    return printed(r.low < 0.1 ? "%.3g [%.3g, %.3g]" : "%.2f [%.2f, %.2f]", r.value, r.low, r.high);
}
inline std::string listed(const vector<double>& values) {
    std::string out;
    for (const double v : values) fill(out, "{,}{value:.6g}", {{"value", v}});
    return out;
}
/// The line with the arithmetic of every ratio.
inline std::string comparison_explained(const settings_comparison& c) {
    std::string out = filled("{comparison_line}\n{intervals}",
                             {{"comparison_line", comparison_line(c)},
                              {"intervals", intervals_text(c)}});
    for (const compared_statistic& s : c.statistics) {
        fill(out, "\n{sentence}", {{"sentence", sentence_of(c, s)}});
        for (std::size_t i = 0; i < s.settings.size(); ++i)
            fill(out, "\n  {name}: {typical}",
                 {{"name", c.settings[i].name},
                  {"typical", {s.what.metric, s.settings[i].typical}}});
        for (const setting_ratio& r : s.pairs)
            fill(out,
                 "\n  {second} / {first}: {ratio}; ln ratios {logs}; mean {mean:.6g}, sd {sd:.6g} "
                 "({spread}), df {df:.0f}, standard error {se:.6g}, t {t:.4f}",
                 {{"second", c.settings[r.second].name}, {"first", c.settings[r.first].name},
                  {"ratio", ratio_text(*s.ratio(r.second, r.first))}, {"logs", listed(r.logs)},
                  {"mean", r.at.mean}, {"sd", r.at.sd}, {"spread", to_string(r.at.spread)},
                  {"df", r.at.df}, {"se", r.at.se}, {"t", r.at.pass_t}});
    }
    return out;
}

/// The table of the settings from `from` on and before `end`, beside the first one.
inline report_table settings_table(const settings_comparison& c, std::size_t from = 1,
                                   std::size_t end = std::string::npos) {
    vector<std::size_t> which{0};
    for (std::size_t i = from; i < std::min(end, c.settings.size()); ++i) which.push_back(i);
    report_table t{{""}};
    for (const std::size_t i : which) t.head.push_back(c.settings[i].name);
    for (std::size_t k = 0; k < c.objectives.size(); ++k) {
        t.add({c.objectives[k].text()});
        for (const std::size_t i : which) {
            const bool is_judged = k < c.settings[i].verdicts.size();
            const char* word = is_judged ? to_string(c.settings[i].verdicts[k]) : nullptr;
            t.append({word ? word : ""});
            t.last().badge = word;
        }
    }
    for (const compared_statistic& s : c.statistics) {
        t.add({s.what.name});
        for (const std::size_t i : which) {
            t.append({{s.what.metric, s.settings[i].typical}});
            const auto r = i > 0 ? s.ratio(i, 0) : std::nullopt;
            if (!r) continue;
            t.last().ratio = ratio_text(*r);
            t.last().is_marked = s.pair(i, 0)->significant();
        }
    }
    return t;
}

inline std::string comparison_text(const comparison_report& r) {
    constexpr std::size_t beside = 3;  // side by side; more are wider than a terminal
    const settings_comparison& c = r.found;
    std::string out = filled("\n{name}: {rounds}\n",
                             {{"name", r.name}, {"rounds", rounds_text(c)}});
    for (std::size_t from = 1; from < c.settings.size(); from += beside)
        fill(out, "\n{console}",
             {{"console", console_table(settings_table(c, from, from + beside), 0)}});
    fill(out, "  * significant; {intervals}\n\n", {{"intervals", intervals_text(c)}});
    for (const std::string& s : sentences_of(c, c.statistics.size())) fill(out, "  {line}\n",
        {{"line", s}});
    for (const std::string& note : notes_on(c)) fill(out, "  {line}\n", {{"line", note}});
    return out;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
