// the load during a profile
#pragma once

#include "api/profile.hpp"
#include "api/scenario.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "core/base/text.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"

#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The variables for the directory of profiles, of vLLM and SGLang.
inline constexpr const char* profile_variables[] = {"VLLM_TORCH_PROFILER_DIR",
                                                    "SGLANG_TORCH_PROFILER_DIR"};

inline void check_profile(const scenario& s) {
    if (!s.on_fail) return;
    const profile& p = *s.on_fail;
    const arrival_data& a = s.arrivals.data();
    if (a.is_searched)
        refuse({"on_fail is a profile of the load that failed, and arrivals is ", arrival_text(a),
                ", a load that is searched: gate one load to have its profile"});
    if (p.start.empty() != p.stop.empty())
        refuse({"on_fail: profile.", p.start.empty() ? "stop" : "start", " is \"",
                printable(str(p.start.empty() ? p.stop : p.start), 80), "\" and profile.",
                p.start.empty() ? "start" : "stop",
                " is empty: give both commands, or none to ask by HTTP"});
    const double seconds = p.duration.seconds();
    if (!(seconds > 0 && seconds <= 60))
        refuse({printed("on_fail: profile.duration is %g s: it must be above 0 and at most 60 s",
                        seconds)});
}

/// Returns the same load for the length of the profile; its end cuts off the requests in flight.
inline plan profiled(const plan& p) {
    return with_traffic(p, [&](planned_traffic& t) {
        t.beside.clear();
        t.warmup_requests = 0;
        t.warmup_s = 0;
        t.warmup_until_stable = false;
        t.arrivals.users_ramp_s = 0;  // the failed load had all of its users
        if (t.arrivals.kind == arrival_kind::all_at_once) return;
        t.requests = 0;
        t.duration_s = (*p.judged->on_fail).duration.seconds();
    });
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
