// tasks begun, and profiles taken
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/recovery.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/planning/load_faults.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/profile.hpp"
#include "effects/gates/slot.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/system/settings.hpp"
#include "effects/targets/live_target.hpp"
#include "extensions/faults/api.hpp"
#include "extensions/faults/core/reports.hpp"
#include "extensions/faults/core/tasks.hpp"
#include "extensions/faults/profiler.hpp"
#include "extensions/faults/task_under_load.hpp"

#include <cstddef>  // size_t
#include <memory>  // make_unique
#include <stdexcept>  // runtime_error
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The same load again, with other words; its measurements are not used.
inline taken_profile profile_of_failure(const slot_host& of, slot again,
                                        vector<std::string>& notes) {
    const profile& how = *of.what.judged->on_fail;
    const double lasts_s = how.duration.seconds();
    of.meter->say("  failed: its server is asked for a profile of " + time_text(lasts_s) +
                  " of the same load\n");
    profiler by(how, of.candidate, of.gate);
    plan what = profiled(of.what);
    what.shard = {};  // rank 0 sends all of it
    const slot_host host{.what = what,
                         .candidate = of.candidate,
                         .gate = of.gate,
                         .meter = of.meter,
                         .show = answers_shown::none};
    again.name = "profile";
    again.is_kept = false;
    variant_repeats variants = orders_of(host, again);
    try {
        make_ready(again, variants);
    } catch (const std::runtime_error& e) {
        notes.push_back(std::string("the profile is of a server as it was left: ") + reason_in(e));
    }
    taken_profile t =
        profile_under_load(by, lasts_s, again.deadline_ns, [&](long long until_ns) {
            variants[0].asked.deadline_ns = until_ns;
            return run_slot(again, variants).repeats[0].records.size();
        });
    if (t.goes_on && !of.candidate.is_process())
        unended_profiles().push_back({of.candidate.facts().url, of.what.name, how});
    return t;
}

inline std::unique_ptr<task_at_work> begun_task(const plan& p, std::size_t number,
                                                live_target& target, const load_state& load,
                                                int gate) {
    return std::make_unique<task_under_load>(p, number, target, load, gate);
}
inline vector<planned_task> checked_tasks_of(const scenario& s) {
    check_profile(s);
    vector<planned_task> all = planned_tasks_of(s);
    for (planned_task& t : all) t.begun = begun_task;
    return all;
}
inline std::shared_ptr<taken_profile> profile_of(const slot_host& of, slot again,
                                                 vector<std::string>& notes) {
    return new_shared<taken_profile>(profile_of_failure(of, std::move(again), notes));
}
inline void plan_tasks(const scenario& s, planned_traffic& sent, planned_judging& judged) {
    check_tasks_begin(sent);
    judged.recovery = planned_recovery(sent, s.slos);
    if (s.on_fail) judged.profiled = profile_of;
}
inline void end_profiles_of(const live_target& server, int gate, vector<std::string>& notes) {
    for (const std::string& note : end_profiles(server, gate)) notes.push_back(note);
}
inline constinit const extension tasks_beside{.name = "faults",
                                              .add_to_plan = plan_tasks,
                                              .tasks_of = checked_tasks_of,
                                              .note_server = end_profiles_of,
                                              .show = show_tasks};
extern constinit const bool include_llmbench_faults_hpp_where_LLMBENCH_MAIN_is = true;
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_tasks_beside() { add(tasks_beside); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
