// the page of a history, a single file
#pragma once

#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/reports/page/page.hpp"
#include "core/reports/page/plot.hpp"
#include "extensions/history/core/entry.hpp"
#include "extensions/history/core/history_judge.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/levels.hpp"
#include "extensions/history/core/lines.hpp"
#include "extensions/history/core/reading.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <iterator>  // begin, end
#include <string>
#include <string_view>
#include <utility>

namespace history_tool {

using namespace llmbench::detail;

/// The mean that a gate judges: of logarithms, with the metric's offset.
inline double mean_of_repeats(const vector<double>& repeats, double offset) {
    double logs = 0;
    for (const double v : repeats) logs += std::log(v + offset);
    return std::exp(logs / static_cast<double>(repeats.size())) - offset;
}

/// Returns days since 1970-01-01 for "2026-11-23...".
inline double day_number(const std::string& at) {
    return static_cast<double>(days_of_date(at.substr(0, 10)).value_or(0));
}

/// One statistic of a result.json that is drawn with the history.
struct todays {
    std::string slo{};
    double limit = not_a_number, value = not_a_number, low = not_a_number, high = not_a_number;
    std::string outcome{};
};
/// A level of a series, between two change points as a gate on main finds them.
struct drawn_level {
    std::string from{};  // the time of its first run
    double value = 0;
    double change = 0;  // from the previous level, as a fraction; 0 for the first
    bool is_accepted = true;
    std::string machine{};  // why it is the change of a machine, "" if it is not
};
struct drawn_levels {
    vector<drawn_level> all{};
    double low = not_a_number, high = not_a_number;  // 95 % of future unchanged runs lie within
    double newest = not_a_number;                    // the level that those are compared with
    double between_runs = not_a_number;              // standard deviation of runs, as a fraction
    vector<bool> is_trouble{};                  // for each run of the series
    vector<double> of_machine{};  // likewise: the effect of its machine, above 0: slower
    double between_machines = 0;  // standard deviation, as a fraction
    /// A value of a run without what its machine differs by.
    double without_machine(const history_series& s, std::size_t run, double value) const {
        if (of_machine[run] == 0) return value;
        return s.value_of(s.level_of(value) - (s.at_most ? 1 : -1) * of_machine[run]);
    }
};
struct drawn_gate {
    std::string gate{}, series_id{};
    run_series in{};
    bool is_described = false;
    vector<history_run> runs{};  // of the same series
    vector<history_series> series{};
    vector<drawn_levels> levels{};  // of each series
    std::map<std::string, std::size_t> elsewhere{};  // runs of other series
    std::map<std::string, todays> now{};             // by statistic
};

/// Returns the statistics of the runs, those of the newest one first, in its order.
inline vector<std::string> statistics_of(const vector<const history_run*>& runs) {
    vector<std::string> names;
    for (auto n = runs.rbegin(); n != runs.rend(); ++n)
        for (const named_repeats& v : (*n)->values)
            if (std::find(names.begin(), names.end(), v.name) == names.end())
                names.push_back(v.name);
    return names;
}

inline drawn_levels levels_drawn(const history_series& s) {
    const double sign = s.at_most ? 1 : -1;
    const history_read r = history_read_as(s, run_on::main);
    const auto value_at = [&](double level) { return s.value_of(sign * level); };
    drawn_levels d;
    d.is_trouble.assign(s.runs.size(), false);
    d.of_machine.assign(s.runs.size(), 0);
    for (std::size_t i = 0; i < r.runs.size(); ++i)
        d.of_machine[r.runs[i].run] = r.machines.by_run[i];
    d.between_machines = std::sqrt(r.machines.between);
    vector<double> rest;
    double before = not_a_number;
    for (const history_segment& g : r.segments) {
        const vector<double> own = means_of(r.runs, g.first, g.end);
        if (own.empty()) continue;
        const double level = mean_of(own);
        const double change = std::isnan(before) ? 0 : s.share_of(sign * (level - before));
        d.all.push_back({s.runs[r.runs[g.first].run].at, value_at(level), change, g.is_accepted});
        if (g.first > 0) d.all.back().machine = machine_of_step(r.machines, *(&g - 1), g);
        before = level;
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
    d.newest = value_at(h.level.mean);
    d.low = value_at(h.level.mean - sign * half);
    d.high = value_at(h.level.mean + sign * half);
    d.between_runs = h.spread.sd;
    return d;
}

/// Returns each gate with the series of its newest run, in the order of names.
inline vector<drawn_gate> gates_of(const history_lines& lines,
                                   const std::map<std::string, run_series>& all_series) {
    std::map<std::string, std::string> newest;  // series by gate
    for (const history_run& r : lines.runs)
        if (is_valid_run(r)) newest[r.gate] = r.run_series;
    vector<drawn_gate> gates;
    for (const auto& [gate, id] : newest) {
        drawn_gate g{.gate = gate, .series_id = id};
        if (const auto at = all_series.find(id); at != all_series.end()) {
            g.in = at->second;
            g.is_described = true;
        }
        const vector<const history_run*> runs = runs_of(lines, gate, id);
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

/// A change that made a gate worse and that nobody accepted, between two runs.
struct open_step {
    std::string words{};  // "mean(tpot) +12.1 % from 2026-06-24 on"
    const series_run *good = nullptr, *bad = nullptr;
    bool is_of_objective = false;
    std::string machine{};  // why it is a machine's
    /// Why git cannot bisect it, "" if it can.
    std::string fault() const {
        if (!machine.empty()) return words + ": " + machine + ": measure on another machine";
        for (const series_run* n : {good, bad})
            if (n->commit.empty()) return words + ": the run of " + n->at + " does not tell its commit";
        return good->commit == bad->commit
                   ? words + ", and the commit is the same: what changed is no commit"
                   : "";
    }
};
/// Whether the gate judges a statistic; of lines without objectives, whether it is none that every
/// gate keeps.
inline bool is_judged(const drawn_gate& g, const std::string& statistic) {
    const vector<std::string>& objectives = g.runs.back().objectives;
    const auto is_it = [&](std::string_view name) { return name == statistic; };
    return objectives.empty() ? std::none_of(std::begin(usual_statistics),
                                             std::end(usual_statistics), is_it)
                              : any_of(objectives, is_it);
}
/// The first one of each statistic, those of objectives before others.
inline vector<open_step> open_steps(const drawn_gate& g) {
    vector<open_step> steps;
    for (std::size_t i = 0; i < g.series.size(); ++i) {
        const vector<drawn_level>& levels = g.levels[i].all;
        const auto is_open = [](const drawn_level& l) { return !l.is_accepted; };
        const auto step = std::find_if(levels.begin(), levels.end(), is_open);
        if (step == levels.end()) continue;
        open_step s;
        for (const series_run& n : g.series[i].runs) {
            if (n.at > step->from) break;
            if (n.is_left_out) continue;
            s.good = s.bad;
            s.bad = &n;
        }
        if (!s.good) continue;
        s.machine = step->machine;
        s.is_of_objective = is_judged(g, g.series[i].statistic);
        s.words = g.series[i].statistic + printed(" %+.1f %% from ", 100 * step->change) +
                  s.bad->at.substr(0, 10) + " on";
        steps.push_back(s);
    }
    vector<open_step> sorted;
    for (const bool first : {true, false})
        for (const open_step& s : steps)
            if (s.is_of_objective == first) sorted.push_back(s);
    return sorted;
}
/// Returns the steps of a gate with the commits around each, for git bisect. Throws
/// std::invalid_argument if there is none, or none between two known commits.
inline std::string bisection_of(const history_lines& all, const vector<drawn_gate>& gates,
                                const std::string& gate) {
    const auto named = [&](const drawn_gate& g) { return g.gate == gate; };
    const auto g = std::find_if(gates.begin(), gates.end(), named);
    if (g == gates.end()) refuse({no_valid_run_of(all, gate, "\"" + gate + "\"")});
    const vector<open_step> steps = open_steps(*g);
    if (steps.empty())
        refuse({"no step that made \"", gate, "\" worse is open: bisect by two commits"});
    std::string text;
    bool has_one = false;
    for (const open_step& s : steps) {
        const std::string fault = s.fault();
        has_one = has_one || fault.empty();
        fill(text, "{fault}\n", {{"fault", fault.empty() ? s.words : fault}});
        if (fault.empty())
            fill(text, "git bisect start {bad} {good}\n",
                 {{"bad", s.bad->commit}, {"good", s.good->commit}});
    }
    if (!has_one) refuse({text.substr(0, text.size() - 1)});
    return text;
}

/// "12.3 ms"
inline std::string value_words(const std::string& statistic, double v) {
    const metric_facts* const m = metric_of_statistic(statistic);
    return m ? value_text(m->id, v) : printed("%.4g", v);
}

inline std::string run_machine_words(const series_run& n, double effect) {
    if (n.machine.empty() || effect == 0) return n.machine;
    return n.machine + printed(", %.1f %% %s", 100 * std::fabs(std::expm1(effect)),
                               effect > 0 ? "slower" : "faster");
}
inline std::string run_words(const series_run& n, const history_series& s, double of_machine,
                             const std::string& changed) {
    std::string repeats;
    for (const double v : n.repeats) repeats += " " + value_words(s.statistic, v);
    return filled("{date}[, {commit}]\n{mean}, repeats{repeats}[\non {machine}]"
                  "{is_left_out?\nleft out}[, {changed}]",
                  {{"machine", run_machine_words(n, of_machine)},
                   {"date", n.at.substr(0, 10)}, {"commit", n.commit.substr(0, 8)},
                   {"mean", value_words(s.statistic, mean_of_repeats(n.repeats, s.offset))},
                   {"repeats", repeats}, {"is_left_out", n.is_left_out},
                   {"changed", printable(changed, 200)}});
}

/// Draws levels as lines, their steps, and the band of the newest one.
inline void draw_levels(plot& p, const drawn_levels& d) {
    const vector<drawn_level>& levels = d.all;
    for (std::size_t i = 0; i < levels.size(); ++i) {
        const drawn_level& l = levels[i];
        const double from = day_number(l.from);
        const double to = i + 1 < levels.size() ? day_number(levels[i + 1].from) : infinity;
        if (i + 1 == levels.size() && std::isfinite(d.low))
            p.line("band", "", {{from, d.low}, {to, d.low}, {to, d.high}, {from, d.high}});
        p.line("level", "", {{from, l.value}, {to, l.value}});
        if (i > 0)
            p.add("step", {l.is_accepted ? "" : "unaccepted", printed("%+.1f %%", 100 * l.change)},
                  {from, l.change > 0 ? 1.0 : 0.0});
    }
}
inline std::string figure_of(const history_series& s, const drawn_levels& levels,
                             const todays& now) {
    const metric_facts* const m = metric_of_statistic(s.statistic);
    plot p({"day", "days"}, {m ? plot_unit_of(m->unit) : "none", "level"});
    draw_levels(p, levels);
    vector<curve_point> line, runs, repeats;
    for (std::size_t i = 0; i < s.runs.size(); ++i) {
        const series_run& n = s.runs[i];
        const auto drawn = [&](double v) { return levels.without_machine(s, i, v); };
        const curve_point at{day_number(n.at), drawn(mean_of_repeats(n.repeats, s.offset))};
        for (const double v : n.repeats) repeats.push_back({at.x, drawn(v)});
        if (n.is_left_out) p.add("mark", {"out", "M-4-4L4 4M-4 4L4-4"}, {at.x, at.y});
        else line.push_back(at);
        if (levels.is_trouble[i]) p.dot("open", at);
        else if (!n.is_left_out) runs.push_back(at);
        const std::string changed = i == 0 ? "" : changed_facts(s.runs[i - 1].watched, n.watched);
        if (!changed.empty()) p.add("mark", {"changed", "M0 1v5"}, {at.x, not_a_number});
        p.add("tell", {run_words(n, s, levels.of_machine[i], changed)}, {at.x});
    }
    p.line("c2", "", line);
    p.cloud("r", repeats);
    p.cloud("c", runs);
    const double last = mean_of_repeats(s.runs.back().repeats, s.offset);
    // A far limit would leave no room for the runs.
    if (now.limit > last / 2 && now.limit < last * 2) p.add("across", {""}, {now.limit});
    const double today = day_number(s.runs.back().at) + 1;
    if (!now.outcome.empty() && std::isfinite(now.value)) {
        p.add("upright", {"today"}, {today, now.low, today, now.high});
        p.add("mark", {"today", "M0-5L5 0L0 5L-5 0z"}, {today, now.value});
    }
    const std::string spread = std::isfinite(levels.between_runs)
                                   ? printed("runs differ by %.2g %%", 100 * levels.between_runs)
                                   : "too few runs to say what they differ by";
    const std::string machines =
        levels.between_machines > 0
            ? printed("machines by %.2g %%", 100 * levels.between_machines)
            : "";
    return p.figure(now.slo.empty() ? s.statistic : now.slo,
                    filled("{has_today?today }{value}[, {outcome}]; {spread}[, {machines}]",
                           {{"has_today", !now.outcome.empty()},
                            {"value", value_words(s.statistic, now.outcome.empty() ? last
                                                                                   : now.value)},
                            {"outcome", now.outcome}, {"spread", spread}, {"machines", machines}}));
}

/// The page has the style of a report's, and this.
inline constexpr const char* history_style = R"(
h2{margin:2.5rem 0 .25rem;padding-top:1.25rem;border-top:3px solid var(--line)}
.plots{grid-template-columns:repeat(auto-fill,minmax(min(100%,22rem),1fr))}
figure{margin-top:.75rem}figcaption{font-size:.87rem}
.cloud.c{opacity:1;stroke-width:5}.cloud.r{stroke:var(--dim);stroke-width:2}
.out{stroke:var(--dim);stroke-width:1.5}.changed{stroke:var(--ink);stroke-width:2}
.level{stroke:var(--ink);opacity:1}.band{fill:var(--mine);opacity:.14}
.step{stroke:var(--fail)}.unaccepted{stroke-dasharray:4 3}
path.today{fill:var(--other);stroke:var(--other);stroke-width:2}
table{width:100%;margin-top:.75rem}th,td:nth-child(-n+3){white-space:nowrap}
@media(max-width:40rem){thead{display:none}tr{display:block;padding:.4rem 0;
border-bottom:1px solid var(--line)}td{display:block;padding:0;border:0}}
@media print{tr{break-inside:avoid}}
)";

/// Returns the table of runs, newest first, with their changes and annotations.
inline std::string table_of(const drawn_gate& g, const std::string& commits) {
    std::string rows;
    for (std::size_t i = g.runs.size(); i-- > 0;) {
        const history_run& r = g.runs[i];
        std::string values, notes = i == 0 ? "" : changed_facts(g.runs[i - 1].watched, r.watched);
        for (const named_repeats& v : r.values)
            fill(values, "{;}{name} {value}",
                 {{"name", v.name},
                  {"value", value_words(v.name, mean_of_repeats(v.repeats, offset_of(v.name)))}});
        if (!g.series.empty())
            for (const annotation& m : g.series.front().annotations)
                if (is_about(m, r))
                    fill(notes, "{;}{kind}: {why}[ ({by})]",
                         {{"kind", to_string(m.kind)}, {"why", m.why}, {"by", m.by}});
        const bool is_known = !r.commit.empty(), is_link = is_known && !commits.empty();
        fill(rows,
             "<tr><td>{date:x}</td><td>{is_link?<a href=\"}{url:x}{is_link?\">}{is_known?<code>"
             "|no commit}{commit:x}{is_known?</code>}{is_link?</a>}</td><td>{outcome:x}</td>"
             "<td>{values:x}</td><td>{notes:x}</td></tr>\n",
             {{"date", r.at.substr(0, 10)}, {"is_link", is_link},
              {"url", is_link ? printable(commits + r.commit, 200) : ""}, {"is_known", is_known},
              {"commit", printable(r.commit.substr(0, 8), 200)},
              {"outcome", printable(r.outcome, 200)}, {"values", values}, {"notes", notes}});
    }
    return "<table><thead><tr><th>run</th><th>commit</th><th>verdict</th><th>mean of the "
           "repeats</th><th>changed, annotations</th></tr></thead><tbody>\n" + rows +
           "</tbody></table>\n";
}

inline std::string section_of(const drawn_gate& g, const std::string& commits) {
    std::string words = plural(g.runs.size(), "run");
    if (const std::string machine = machine_text(g.in); g.is_described && !machine.empty())
        words += " on " + machine;
    if (!g.in.model.empty()) words += ", " + g.in.model;
    words += ", series " + g.series_id;
    for (const auto& [id, runs] : g.elsewhere)
        words += "; " + plural(runs, "run") + " of another series, " + id;
    std::string figures;
    for (std::size_t i = 0; i < g.series.size(); ++i) {
        const history_series& s = g.series[i];
        const auto at = g.now.find(s.statistic);
        if (!s.runs.empty())
            figures += figure_of(s, g.levels[i], at == g.now.end() ? todays{} : at->second);
    }
    return filled("<h2>{gate:x}</h2>\n<p class=\"note\">{words:x}</p>\n<div class=\"plots\">\n"
                  "{figures}</div>\n{table}",
                  {{"gate", printable(g.gate, 200)}, {"words", words}, {"figures", figures},
                   {"table", table_of(g, commits)}});
}

inline std::string page_of(const std::string& folder, const vector<drawn_gate>& gates,
                           const std::string& commits) {
    std::string first = "9", last;
    for (const drawn_gate& g : gates) {
        first = std::min(first, g.runs.front().at);
        last = std::max(last, g.runs.back().at);
    }
    std::string body = filled(
        "<h1>{gates} gate{gates:s} from {first} to {last}</h1>\n<p class=\"note\">{folder:x}. A "
        "point is the last valid run of a UTC date; small dots are its repeats. Crossed: left out "
        "by an annotation; hollow: so far off that it says nothing of the level. Lines are "
        "levels, vertical ones steps from one to the next (dashed: main has not accepted it); "
        "shaded: where 95 % of unchanged runs will lie. Ticks below: a watched fact changed. "
        "Dashed across: the limit; diamond: the run of today. Runs of several machines are drawn "
        "without what their machines differ by.</p>\n",
        {{"gates", gates.size()}, {"first", first.substr(0, 10)}, {"last", last.substr(0, 10)},
         {"folder", printable(folder, 200)}});
    for (const drawn_gate& g : gates) body += section_of(g, commits);
    return html_page("History", history_style, body);
}

}  // namespace history_tool
