// which switches are sound, and which gates can use them
#pragma once

#include "api/scenario.hpp"
#include "api/side_task.hpp"
#include "api/target.hpp"
#include "core/base/text.hpp"
#include "core/planning/preparation.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "extensions/switched/api.hpp"

#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Throws std::invalid_argument with a sentence for the first fault.
inline void check_switch(const switch_settings& s) {
    if (!s.is_endpoint && !s.is_process)
        refuse({"switched(...) takes an endpoint{} or a process{}: other servers have no GPU that "
                "they could leave"});
    const long long level = s.how.level, every = s.options.restart_every;
    if (level != 1 && level != 2)
        refuse({printed("vllm_sleep(%lld): the level is 1 or 2", level)});
    if (s.how.sleep.empty() || s.how.wake.empty())
        refuse({"switched(...) has no request to ", s.how.sleep.empty() ? "sleep" : "wake",
                ": give a post(\"/path\") each, or vllm_sleep(1), or sglang_release()"});
    for (const task_step& step : s.how.sleep) check_post(step, "switched, to sleep");
    for (const task_step& step : s.how.wake) check_post(step, "switched, to wake");
    if (!s.how.state.empty()) check_post(post(s.how.state), "switched, state");
    if (every != 0 && !(every >= 2 && every <= 100))
        refuse({printed("switched: restart_every is %lld: it is 2 to 100, or 0 for never; "
                        "process.restart_between_repeats restarts for each pair", every)});
    if (every != 0 && !s.is_process)
        refuse({printed("switched: restart_every is %lld, and the server is an endpoint, which the "
                        "gate does not start: give a process{}", every)});
}

inline const switch_settings* switch_of(const any_target& t) {
    return t.is_switched() ? t.switched_by().what.get<switch_settings>() : nullptr;
}
/// Refuses a gate whose servers have no turns, or only one of them leaves its GPU.
inline void check_switches(const scenario& s, planned_traffic&, planned_judging&) {
    const switch_settings *const mine = switch_of(s.target),
                          *const its = switch_of(s.baseline.live());
    if (!mine && !its) return;
    for (const switch_settings* one : {mine, its})
        if (one) check_switch(*one);
    const char* const given = mine ? "target" : "baseline";
    if (s.pairs == at_once)
        refuse({given, " is switched(...), so that servers are loaded in turns, and pairs is "
                "at_once: leave out one of them"});
    if (!s.baseline.is_live())
        refuse({"target is switched(...), and no other server has turns: give a live baseline "
                "that is switched, .baseline = otherwise{.same = true}, or compare() its "
                "settings"});
    if (s.baseline.is_asked_otherwise())
        refuse({"target is switched(...), and baseline is otherwise{...} on the same server, which "
                "needs no switch: leave out switched(...)"});
    if (!s.baseline.is_same_server() && !(mine && its))
        refuse({given, " is switched(...), and ", mine ? "baseline" : "target",
                " is not, which would be awake beside it: switch both, or none"});
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
