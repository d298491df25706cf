// the data of the page of a history
#pragma once

#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/entry.hpp"
#include "extensions/history/core/lines.hpp"
#include "extensions/history/core/levels.hpp"
#include "core/metric/table.hpp"
#include "core/metric/value_text.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace history_tool {

using namespace llmbench::detail;

inline double mean_of_repeats(const std::vector<double>& repeats) {
    double logs = 0;
    for (const double v : repeats) logs += std::log(v);
    return std::exp(logs / static_cast<double>(repeats.size()));
}

/// Returns days since 1970-01-01 for "2026-11-23...", by the proleptic Gregorian calendar.
inline double day_number(const std::string& at) {
    const auto digits = [&](std::size_t from, std::size_t n) {
        return parsed_number<int>(std::string_view(at).substr(from, n)).value_or(1);
    };
    // Counted from March, so that a leap day is the last of its year.
    const int m = (digits(5, 2) + 9) % 12, y = digits(0, 4) - (m >= 10), d = digits(8, 2);
    return 365.0 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + d - 719469;
}

/// Returns the changed facts between two runs: "driver 570.86 -> 575.1".
inline std::string changes(const std::vector<named_text>& was, const std::vector<named_text>& is) {
    const auto value = [](const std::vector<named_text>& all, const std::string& name) {
        const auto same = [&](const named_text& f) { return f.first == name; };
        const auto at = std::find_if(all.begin(), all.end(), same);
        return at == all.end() ? std::string("unknown") : at->second;
    };
    std::string words;
    for (const auto& [name, now] : is)
        if (const std::string before = value(was, name); before != now)
            words += (words.empty() ? "" : ", ") + name + " " + before + " -> " + now;
    return words;
}

/// One statistic of a result.json that is drawn with the history.
struct todays {
    std::string slo{};
    double limit = not_a_number, value = not_a_number, low = not_a_number, high = not_a_number;
    std::string outcome{};
};
/// A level of a series, between two change points as a gate on main finds them.
struct drawn_level {
    std::string from{}, to{};  // the times of the first and the last run
    double value = 0;
    double change = 0;  // from the previous level, as a fraction; 0 for the first
    bool is_accepted = true;
};
struct drawn_levels {
    std::vector<drawn_level> all{};
    double low = not_a_number, high = not_a_number;  // 95 % of future unchanged runs lie within
    double newest = not_a_number;                    // the level that those are compared with
    double between_runs = not_a_number;              // standard deviation of runs, as a fraction
    std::vector<bool> is_trouble{};                  // for each run of the series
};
struct drawn_gate {
    std::string gate{}, series_id{};
    run_series in{};
    bool is_described = false;
    std::vector<history_run> runs{};  // of the same series
    std::vector<history_series> series{};
    std::vector<drawn_levels> levels{};  // of each series
    std::map<std::string, std::size_t> elsewhere{};  // runs of other series
    std::map<std::string, todays> now{};             // by statistic
};

/// Returns the statistics of the runs, those of the newest one first, in its order.
inline std::vector<std::string> statistics_of(const std::vector<const history_run*>& runs) {
    std::vector<std::string> names;
    for (auto n = runs.rbegin(); n != runs.rend(); ++n)
        for (const named_repeats& v : (*n)->values)
            if (std::find(names.begin(), names.end(), v.name) == names.end())
                names.push_back(v.name);
    return names;
}

/// Returns the metric of a statistic, null if it is not one of ours.
inline const metric_facts* metric_of_statistic(const std::string& statistic) {
    const std::size_t open = statistic.find('('), from = open == std::string::npos ? 0 : open + 1;
    const std::string metric = statistic.substr(from, statistic.find(')') - from);
    for (const metric_facts& m : metric_table)
        if (metric == m.name) return &m;
    return nullptr;
}

inline drawn_levels levels_drawn(const history_series& s) {
    const metric_facts* const m = metric_of_statistic(s.statistic);
    const double sign = m && m->side == bound_side::at_least ? -1 : 1;
    const history_read r = history_read_as(s, sign > 0, true);
    drawn_levels d;
    d.is_trouble.assign(s.runs.size(), false);
    std::vector<double> rest;
    for (const history_segment& g : r.segments) {
        const std::vector<double> own = means_of(r.runs, g.first, g.end);
        if (own.empty()) continue;
        const double value = std::exp(sign * mean_of(own));
        const double before = d.all.empty() ? value : d.all.back().value;
        d.all.push_back({s.runs[r.runs[g.first].run].at, s.runs[r.runs[g.end - 1].run].at, value,
                         value / before - 1, g.is_accepted});
        const double center = median_of(own);
        for (const double x : own) rest.push_back(x - center);
    }
    const double reach = rest.size() >= robust_from ? 4 * robust_sd(rest, 0) : infinity;
    for (std::size_t i = 0; i < rest.size(); ++i)
        if (reach > 0 && std::fabs(rest[i]) > reach) d.is_trouble[r.runs[i].run] = true;
    const learned_history& h = r.learned;
    if (!h.is_enough()) return d;
    const double half =
        student_t_quantile(0.975, h.spread.df) * h.spread.sd * std::sqrt(1 + 1 / h.level.runs);
    d.newest = std::exp(sign * h.level.mean);
    d.low = d.newest * std::exp(-half);
    d.high = d.newest * std::exp(half);
    d.between_runs = h.spread.sd;
    return d;
}

/// Returns each gate with the series of its newest run, in the order of names.
inline std::vector<drawn_gate> gates_of(const history_lines& lines,
                                        const std::map<std::string, run_series>& all_series) {
    std::map<std::string, std::string> newest;  // series by gate
    for (const history_run& r : lines.runs)
        if (is_valid_run(r)) newest[r.gate] = r.run_series;
    std::vector<drawn_gate> gates;
    for (const auto& [gate, id] : newest) {
        drawn_gate g{.gate = gate, .series_id = id};
        if (const auto at = all_series.find(id); at != all_series.end()) {
            g.in = at->second;
            g.is_described = true;
        }
        const std::vector<const history_run*> runs = runs_of(lines, gate, id);
        for (const history_run* r : runs) g.runs.push_back(*r);
        for (const std::string& statistic : statistics_of(runs))
            g.series.push_back(series_of(lines, runs, statistic));
        for (const history_series& s : g.series) g.levels.push_back(levels_drawn(s));
        g.elsewhere = runs_by_series(lines, gate);
        g.elsewhere.erase(id);
        gates.push_back(std::move(g));
    }
    return gates;
}

/// Returns the commits around the first change that made a gate worse and that nobody accepted, for
/// git bisect. Throws std::invalid_argument if there is none, or if a commit is missing.
inline std::string bisection_of(const std::vector<drawn_gate>& gates, const std::string& gate) {
    const auto named = [&](const drawn_gate& g) { return g.gate == gate; };
    const auto g = std::find_if(gates.begin(), gates.end(), named);
    if (g == gates.end()) refuse({"the history has no run of \"", gate, "\""});
    const series_run *good = nullptr, *bad = nullptr;
    std::string words;
    for (std::size_t i = 0; i < g->series.size(); ++i) {
        const std::vector<drawn_level>& levels = g->levels[i].all;
        const auto is_open = [](const drawn_level& l) { return !l.is_accepted; };
        const auto step = std::find_if(levels.begin(), levels.end(), is_open);
        if (step == levels.end() || (bad && step->from >= bad->at)) continue;
        words = g->series[i].statistic + printed(" %+.1f %%", 100 * step->change);
        good = bad = nullptr;
        for (const series_run& n : g->series[i].runs) {
            if (n.at > step->from) break;
            if (n.is_left_out) continue;
            good = bad;
            bad = &n;
        }
    }
    if (!bad) refuse({"no step that made \"", gate, "\" worse is open: bisect by two commits"});
    for (const series_run* n : {good, bad})
        if (n->commit.empty()) refuse({"the run of ", n->at, " does not tell its commit"});
    if (good->commit == bad->commit)
        refuse({words, " from ", bad->at.substr(0, 10), " on, and the commit is the same: what "
                "changed is no commit"});
    return words + " from " + bad->at.substr(0, 10) + " on\ngit bisect start " + bad->commit +
           " " + good->commit + "\n";
}

/// "12.3 ms"
inline std::string value_words(const std::string& statistic, double v) {
    const metric_facts* const m = metric_of_statistic(statistic);
    return m ? value_text(m->id, v) : printed("%.4g", v);
}

}  // namespace history_tool
