// side tasks in reports
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/measured/repeat.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/tables.hpp"
#include "core/reports/page/sections.hpp"

#include <algorithm>  // max
#include <cmath>  // isinf, isnan
#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One task over all repeats.
struct task_figures {
    std::string name{};
    std::size_t repeats = 0, steps = 0, failed = 0, late = 0;
    double mean_s = 0, max_s = 0, latest_s = 0;
    std::string example{};  // of a step that failed
    std::string recovered{};  // recovery time of each repeat
    void add(const side_step& s) {
        constexpr double unnoticed_s = 0.1;
        const double took_s = static_cast<double>(s.to_ns - s.from_ns) * 1e-9;
        const double late_s = static_cast<double>(s.from_ns - s.due_ns) * 1e-9;
        mean_s += (took_s - mean_s) / static_cast<double>(++steps);
        max_s = std::max(max_s, took_s);
        latest_s = std::max(latest_s, late_s);
        late += late_s > unnoticed_s;
        if (!s.failed.empty() && failed++ == 0) example = s.what + " " + s.failed;
    }
};
inline vector<task_figures> task_figures_of(const vector<repeat_figures>& variant) {
    vector<task_figures> all;
    for (const repeat_figures& d : variant)
        for (std::size_t i = 0; i < d.side_tasks.size(); ++i) {
            if (all.size() <= i) all.push_back({.name = d.side_tasks[i].name});
            ++all[i].repeats;
            if (const double s = d.side_tasks[i].recovery_s; !std::isnan(s))
                fill(all[i].recovered, "{,}{after}",
                     {{"after", std::isinf(s) ? "never"
                                : s == 0      ? "nothing (none was disturbed)"
                                              : time_text(s)}});
            for (const side_step& s : d.side_tasks[i].steps) all[i].add(s);
        }
    return all;
}
/// "adapters": 58 steps in 2 repeats, 12 ms each on the average, 40 ms at most
inline std::string task_figures_text(const task_figures& t) {
    return filled("\"{name}\": {steps} step{steps:s} in {repeats} repeat{repeats:s}, {mean:t} "
                  "each on the average, {max:t} at most[; {late} began late, by up to {latest:t}, "
                  "as those before were under way][; recovered after {recovered}][; {failed} "
                  "failed ({example})]",
                  {{"name", t.name}, {"steps", t.steps}, {"repeats", t.repeats}, {"mean", t.mean_s},
                   {"max", t.max_s}, {"late", t.late}, {"latest", t.latest_s},
                   {"recovered", t.recovered}, {"failed", t.failed}, {"example", t.example}});
}

inline std::string side_tasks_html(const gate_report& g) {
    constexpr std::size_t max_shown = 1000;
    report_table t{{"repeat", "arm", "task", "step", "at", "took", "failed"}, 4};
    std::size_t steps = 0;
    const auto seconds = [](long long ns) { return time_text(static_cast<double>(ns) * 1e-9); };
    for (const variant_figures* variant : {&g.figures.candidate, &g.figures.baseline})
        for (const repeat_figures& d : variant->repeats)
            for (const side_task_seen& task : d.side_tasks)
                for (const side_step& s : task.steps) {
                    if (++steps > max_shown) continue;
                    t.add({d.index + 1, to_string(d.variant), task.name, s.what,
                           seconds(s.from_ns - d.window.from_ns()), seconds(s.to_ns - s.from_ns),
                           s.failed});
                    t.last().look = "";
                }
    if (steps == 0) return {};
    return folded("Beside the load",
                  filled("{steps} step{steps:s}{is_cut?, the first 1000 of them}",
                         {{"steps", steps}, {"is_cut", steps > max_shown}}),
                  fold::closed,
                  page_table(filled("Side tasks of {name}", {{"name", g.what.name}}), t));
}
inline void show_tasks(const gate_report& g, report_parts& into) {
    for (const bool is_baseline : {false, true}) {
        const variant_figures& of = is_baseline ? g.figures.baseline : g.figures.candidate;
        for (const task_figures& t : task_figures_of(of.repeats))
            into.tasks[is_baseline].push_back(task_figures_text(t));
    }
    into.details += side_tasks_html(g);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
