// side tasks and profiles of a scenario
#pragma once

#include "api/scenario.hpp"
#include "api/side_task.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/recovery.hpp"
#include "core/planning/preparation.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"

#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// "adapters" every 1 s: POST /load, POST /unload
inline std::string task_text(const planned_task& t) {
    std::string all = joined({"\"", t.name, t.every_s > 0 ? "\" every " + time_text(t.every_s)
                                                          : "\" once",
                              " from ", time_text(t.first_s), " on:"});
    for (const task_step& s : t.steps) all += (&s == t.steps.data() ? " " : ", ") + step_name(s);
    return all;
}
inline planned_task planned_task_of(const side_task& t, const std::string& given) {
    const auto seconds = [&](const char* field, double s, double least) {
        if (!(s == 0 || (s >= least && s <= 86400)))
            refuse({given, field, printed(" is %g s: it is 0, or from %g to 86400 s", s, least)});
        return s;
    };
    planned_task p{.name = str(t.name), .may_fail = t.may_fail};
    p.every_s = seconds("every", t.every.seconds(), 0.01);
    p.excuses_s = seconds("excuses", t.excuses.seconds(), 0.01);
    p.first_s = t.first ? seconds("first", (*t.first).seconds(), 0) : p.every_s;
    if (p.every_s > 0 && p.excuses_s >= p.every_s)
        refuse({given, printed("it excuses what fails within %g s of a step, which comes every "
                               "%g s: nothing could fail any more", p.excuses_s, p.every_s)});
    if (t.steps.size() < 1 || t.steps.size() > 100)
        refuse({given, printed("it has %zu steps: 1 to 100 are allowed",
                               static_cast<std::size_t>(t.steps.size()))});
    for (const task_step& s : t.steps) {
        check_step(s, given);
        p.steps.push_back(s);
    }
    p.text = task_text(p);
    return p;
}
inline vector<planned_task> planned_tasks_of(const scenario& s) {
    vector<planned_task> all;
    if (s.beside.size() > 16)
        refuse({printed("beside has %zu side tasks: up to 16 are allowed",
                        static_cast<std::size_t>(s.beside.size()))});
    for (const side_task& t : s.beside) {
        const std::string given = "side task \"" + printable(str(t.name), 60) + "\": ";
        if (!is_plain_name(str(t.name))) refuse({given, plain_name_text});
        for (const planned_task& other : all)
            if (other.name == str(t.name))
                refuse({given, "another one has this name, and during(\"...\") is of one"});
        all.push_back(planned_task_of(t, given));
    }
    if (!all.empty() && s.arrivals.data().is_searched)
        refuse({"beside: arrivals is ", arrival_text(s.arrivals.data()),
                ", a load that is searched, and side tasks are done beside one load"});
    return all;
}
/// Returns the seconds of a measured part with side tasks, 0 if only the run can tell.
inline double measured_seconds(const planned_traffic& p) {
    const bool is_timed = p.is_open_loop() && p.arrivals.kind != arrival_kind::all_at_once;
    if (p.beside.empty() || p.duration_s > 0 || !is_timed) return p.duration_s;
    const schedule s = schedule_of(p);
    return s.measured_to - s.measured_from;
}
/// Refuses tasks that begin after the measured part, as far as the plan knows its length.
inline void check_tasks_begin(const planned_traffic& p) {
    const double lasts_s = measured_seconds(p);
    for (const planned_task& t : p.beside)
        if (lasts_s > 0 && !(t.first_s < lasts_s))
            refuse({"side task \"", t.name, "\": it begins ", time_text(t.first_s),
                    " after the measured part, which takes ", time_text(lasts_s),
                    ": let it begin earlier, or measure for longer"});
}
/// A recovery is measured against the first objective on a percentile of ttft.
inline recovery_parameters recovery_parameters_of(const planned_traffic& p, const slo_list& slos,
                                        const slo& of) {
    const std::string given = "the SLO " + str(of.text()) + " is refused: ";
    const slo* ttft = nullptr;
    for (const slo& s : slos)
        if (!ttft && s.statistic.metric == metric_id::ttft && is_absolute(s) &&
            is_of_all(s.statistic) && s.statistic.kind == statistic_kind::percentile)
            ttft = &s;
    if (!ttft)
        refuse({given, "it lasts until ttft keeps its objective again, and there is none: add "
                       "one, perhaps as advisory(p90(ttft) <= 500 ms)"});
    for (const planned_task& t : p.beside) {
        if (!of.statistic.which.during.empty() && t.name != str(of.statistic.which.during))
            continue;
        if (t.every_s > 0)
            refuse({given, "side task \"", t.name, "\" is done every ", time_text(t.every_s),
                    ", and what the server recovers from is done once: leave every out"});
        const double lasts_s = measured_seconds(p);
        const double needed_s = t.first_s + of.bound + recovered_for_s;
        if (lasts_s <= 0)
            refuse({given, "how long the load goes on is not known: give it a duration"});
        if (lasts_s < needed_s)
            refuse({given, "the measured part takes ", time_text(lasts_s), ", and until the limit "
                    "is shown to be kept or missed ", time_text(needed_s), " pass"});
    }
    return {ttft->bound, ttft->statistic.q, p.is_open_loop()};
}
/// If an objective is on it.
inline maybe<recovery_parameters> planned_recovery(const planned_traffic& p, const slo_list& slos) {
    for (const slo& s : slos)
        if (is_of_recovery(s.statistic.metric)) return recovery_parameters_of(p, slos, s);
    return {};
}
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
    check_numbers({{"on_fail: profile.duration", p.duration.seconds(), above_zero, 60, " s"}});
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
}  // inline namespace v1
}  // namespace llmbench
