// gates that are added to a history
#pragma once

#include "api/scenario.hpp"
#include "api/target.hpp"
#include "api/traffic.hpp"
#include "core/base/text.hpp"
#include "core/traffic/plan.hpp"
#include "core/stored/history.hpp"
#include "core/reports/gate_report.hpp"
#include "effects/system/settings.hpp"
#include "effects/gates/gate_run.hpp"

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A night that ended once its verdict was clear would be chosen by that: all have as many repeats.
inline scenario as_a_night(scenario s) {
    if (s.baseline.is_live())
        refuse({"LLMBENCH_HISTORY=append, and the baseline is a server: a history is of what main "
                "does alone; gates with such a baseline are for pull requests"});
    if (s.repeats == 0 && s.traffic != fresh) s.repeats = repeats_of_a_night;
    return s;
}

/// Why what another verb measured is not added.
inline history_entry no_night_of(const char* verb) {
    return {.why_not = std::string(verb) + " has no verdict of its own, and nights are of gates"};
}
inline history_entry night_of(const plan& p, const measured_gate& m, const gate_report& g,
                              const history_settings& asked) {
    history_entry e = history_entry_of(p, cohort_of(p, m.target, m.print, asked.machine), m.print,
                                       g.figures, g.verdicts, m.seen.stopped);
    e.folder = asked.folder_or((p.judged->has_history ? p.judged->history : history()).folder);
    return e;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
