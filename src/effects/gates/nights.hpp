// the nights that a gate is held against
#pragma once

#include "core/base/text.hpp"
#include "core/history/cohort.hpp"
#include "core/history/fingerprint.hpp"
#include "core/history/line.hpp"
#include "core/judging/history_terms.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/target_facts.hpp"
#include "core/stored/from_nights.hpp"
#include "core/stored/history.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "effects/history/folder.hpp"
#include "effects/gates/run_mode.hpp"

#include <filesystem>
#include <string>
#include <system_error>  // error_code
#include <vector>  // erase_if

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr double nights_count_for_s = 30 * 86400.0;  // after the newest of them

inline history_terms nights_for(const plan& p, const target_facts& target,
                                const fingerprint& print, const run_mode& mode) {
    const history_settings& asked = mode.history;
    const std::string folder = asked.folder_or(p.judged->history.folder);
    history_terms none;
    none.folder = folder;
    none.appends = asked.appends();
    std::error_code unread;
    const bool begins = asked.appends() && !std::filesystem::exists(folder, unread);
    none.none = mode.model                      ? "a rehearsal has no nights"
                : asked.use == history_use::off ? "LLMBENCH_HISTORY is off"
                : begins                        ? "the history begins with this run"
                                                : "";
    if (!none.none.empty()) return none;
    history_store store = history_of_gate(folder, p.name, asked.at);
    // A night is the last run of its date: this one takes the place of those before it.
    const std::string today = utc_text(machine_unix_s()).substr(0, 10);
    if (asked.appends())
        std::erase_if(store.lines.runs,
                      [&](const history_run& r) { return r.at.substr(0, 10) == today; });
    const std::string oldest =
        asked.at.empty() ? utc_text(machine_unix_s() - nights_count_for_s) : "";
    const planned_judging& j = *p.judged;
    return history_terms_of(store.lines, cohort_of(p, target, print, asked.machine), store.cohorts,
                            j.slos, {folder, j.history.night_to_night.value, asked.appends(),
                                     oldest, print.cards});
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
