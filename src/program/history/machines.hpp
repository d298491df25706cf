// the machines of a history
#pragma once

#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "extensions/history/core/levels.hpp"
#include "extensions/history/core/lines.hpp"
#include "extensions/history/core/machines.hpp"
#include "program/history/page.hpp"

#include <algorithm>  // count, max
#include <cmath>      // isfinite, sqrt
#include <cstddef>    // size_t
#include <string>

namespace history_tool {

/// "+4.1 % [+2 %, +6.2 %]", or why there is none.
inline std::string effect_text(const history_series& s, const vector<run_level>& runs,
                               const series_machines& of, const machine_effect& m) {
    if (!m.overlaps) return "ran at no other machine's time: not compared";
    const double reach = reach_of_effect(of, m), sign = s.at_most ? 1 : -1;
    if (!std::isfinite(reach)) return printed("under %zu runs: not compared", runs_of_known);
    const double low = s.share_of(sign * m.own - reach), high = s.share_of(sign * m.own + reach);
    const std::string effect = printed("%+.1f %% [%+.1f %%, %+.1f %%]",
                                       100 * s.share_of(sign * m.own), 100 * low, 100 * high);
    if (m.turned == 0) return effect;
    return effect + printed(", a change of %+.1f %% on ", 100 * s.share_of(sign * m.turned)) +
           s.runs[runs[m.turned_at].run].at.substr(0, 10) + " that the others do not show";
}
/// The machines of one statistic, the slowest first.
inline std::string machines_text(const std::string& gate, const history_series& s) {
    const vector<run_level> runs = levels_of(s);
    const series_machines of = effects_in(s, runs);
    vector<const machine_effect*> sorted;
    for (const machine_effect& m : of.all) sorted.push_back(&m);
    sort_stably(sorted, [](const machine_effect* a, const machine_effect* b) {
        return a->own > b->own;
    });
    std::size_t longest = 0;
    for (const machine_effect& m : of.all) longest = std::max(longest, m.name.size());
    std::string text = gate + ", " + s.statistic + ": " + plural(of.all.size(), "machine");
    if (of.known() > 1)
        text += printed(", which differ by %.2g %%; runs of one by %.2g %%",
                        100 * std::sqrt(of.between), 100 * std::sqrt(of.within));
    text += "\n";
    for (const machine_effect* m : sorted) {
        const auto at = static_cast<std::size_t>(m - of.all.data());
        const auto count = std::count(of.of_run.begin(), of.of_run.end(), at);
        text += "  " + m->name + std::string(longest - m->name.size() + 2, ' ') +
                plural(static_cast<std::size_t>(count), "run") + ", last " +
                m->last.substr(0, 10) + "  " + effect_text(s, runs, of, *m) + "\n";
    }
    return text;
}
/// Of the statistics that each gate judges.
inline std::string machines_of_gates(const vector<drawn_gate>& gates) {
    std::string text;
    for (const drawn_gate& g : gates)
        for (const history_series& s : g.series) {
            const auto has_name = [](const series_run& r) { return !r.machine.empty(); };
            if (!is_judged(g, s.statistic)) continue;
            text += any_of(s.runs, has_name)
                        ? machines_text(g.gate, s)
                        : g.gate + ", " + s.statistic + ": no run tells its machine\n";
        }
    return text;
}

}  // namespace history_tool
