// a series as the rule reads it
#pragma once

#include "core/base/vector.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/levels.hpp"
#include "extensions/history/core/machines.hpp"

#include <algorithm>  // max
#include <cmath>  // fabs, sqrt
#include <cstddef>  // size_t
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A series: its runs without the effects of their machines, its segments and the data for the
/// rule.
struct history_read {
    vector<run_level> runs{};
    vector<history_segment> segments{};
    series_machines machines{};
    learned_history learned{};
};
/// The newest one and two runs of main on a machine, where they are not as its earlier ones: it or
/// main has changed, and a verdict must hold for both.
inline vector<main_moved> moves_on_machine(const history_read& r, const std::string& name) {
    const history_segment& level = r.segments.back();
    const learned_history& h = r.learned;
    vector<main_moved> out;
    double sum = 0, count = 0;
    for (std::size_t i = level.end; i-- > level.first && count < 2;) {
        const std::size_t m = r.machines.of_run[i];
        if (m == r.machines.all.size() || r.machines.all[m].name != name) continue;
        sum += r.runs[i].mean + r.machines.by_run[i];
        ++count;
        const double by = sum / count - h.level.mean;
        const double reach = student_t_quantile(0.99, h.spread.df) * h.spread.sd *
                             std::sqrt(1 / count + 1 / h.level.runs);
        if (std::fabs(by) > reach) out.push_back({{sum / count, count}, by, true});
    }
    return out;
}
/// Adds the machine of a run that is judged.
inline void add_machine(history_read& r, const std::string& name, run_on who) {
    learned_history& h = r.learned;
    h.machine = machine_for(r.machines, name, segment_for(r.segments, who));
    if (h.machine.name.empty()) return;
    h.level.mean += h.machine.effect;
    for (main_moved& m : h.moved) m.now.mean += h.machine.effect;
    if (who != run_on::main && h.spread.df > 0) {
        const vector<main_moved> own = moves_on_machine(r, name);
        h.moved.insert(h.moved.begin(), own.begin(), own.end());
    }
    const std::size_t from = r.runs.size() - h.runs;
    const run_residuals rest = residuals_of(r.runs, r.segments, from);
    if (rest.all.size() < robust_from) return;
    const double reach = 4 * std::max(robust_sd(rest.all, 0), least_run_sd);
    h.slow = slow_runs_on(r.machines, name, rest.all, reach);
}
/// `machine`: of the run that is judged, "" if unknown.
inline history_read history_read_as(const history_series& s, run_on who, double given_sd = 0,
                                    const std::string& machine = "") {
    history_read r;
    r.runs = levels_of(s);
    r.machines = effects_in(s, r.runs);
    r.runs = without_machines(std::move(r.runs), r.machines);
    r.segments = with_accepted(levels_of_main(s, r.runs, r.machines), s, r.runs);
    r.learned = learned_from(r.runs, r.segments, who, given_sd);
    if (r.runs.empty()) return r;
    runs_spread& spread = r.learned.spread;
    const double left = std::max(1.0, spread.df - fitted_by(r.machines));
    if (left < spread.df) {
        spread.sd *= std::sqrt(spread.df / left);
        spread.df = left;
    }
    add_machine(r, machine, who);
    return r;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
