// what a scenario does beside its load
#pragma once

#include "api/scenario.hpp"
#include "api/side_task.hpp"
#include "core/base/text.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/schedule.hpp"

#include <algorithm>  // any_of, none_of
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Whether it can stand in quotes as it is, and in a line.
inline bool is_plain_name(const std::string& name) {
    return !name.empty() && name.size() <= 60 && std::none_of(name.begin(), name.end(), [](char c) {
        return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ';
    });
}
inline constexpr const char* plain_name_text =
    "a name has 1 to 60 characters, and no quote or backslash";

/// Of commands, which may have secrets in them, no more than that they are some.
inline std::string step_name(const task_step& s) {
    return s.path.empty() ? "a command" : "POST " + printable(str(s.path), 80);
}
/// "adapters" every 1 s: POST /load, POST /unload
inline std::string task_text(const planned_task& t) {
    std::string all = "\"" + t.name + "\"" +
                      (t.every_s > 0 ? " every " + time_text(t.every_s) : " once") + " from " +
                      time_text(t.first_s) + " on:";
    for (const task_step& s : t.steps) all += (&s == t.steps.data() ? " " : ", ") + step_name(s);
    return all;
}
inline bool has_commands(const list<side_task>& tasks) {
    return std::any_of(tasks.begin(), tasks.end(), [](const side_task& t) {
        return std::any_of(t.steps.begin(), t.steps.end(),
                           [](const task_step& s) { return !s.line.empty(); });
    });
}

inline void check_step(const task_step& s, const std::string& given) {
    const std::string path = str(s.path);
    if (s.path.empty() && s.line.empty())
        refuse({given, "a step is empty: it is post(\"/path\", body) or command(\"line\")"});
    if (s.path.empty()) return;
    const bool has_blanks = std::any_of(path.begin(), path.end(), [](char c) {
        return static_cast<unsigned char>(c) <= ' ' || c == 127;
    });
    if (path.front() != '/' || has_blanks)
        refuse({given, "post(\"", printable(path, 80), "\"): a path of the server begins with / "
                "and has no blanks"});
}
inline planned_task planned_task_of(const side_task& t, const std::string& given) {
    const auto seconds = [&](const char* field, double s, double least) {
        if (!(s == 0 || (s >= least && s <= 86400)))
            refuse({given, field, printed(" is %g s: it is 0, or from %g to 86400 s", s, least)});
        return s;
    };
    planned_task p{.name = str(t.name), .may_fail = t.may_fail, .steps = {}};
    p.every_s = seconds("every", t.every.seconds(), 0.01);
    p.first_s = t.first ? seconds("first", (*t.first).seconds(), 0) : p.every_s;
    if (t.steps.size() < 1 || t.steps.size() > 100)
        refuse({given, printed("it has %zu steps: 1 to 100 are allowed",
                               static_cast<std::size_t>(t.steps.size()))});
    for (const task_step& s : t.steps) {
        check_step(s, given);
        p.steps.push_back(s);
    }
    return p;
}
/// Throws std::invalid_argument where they make no sense.
inline std::vector<planned_task> planned_tasks(const scenario& s) {
    std::vector<planned_task> all;
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
/// Refuses what would never be done, as far as the plan knows how long its measured part is.
inline void check_tasks_begin(const planned_traffic& p) {
    double lasts_s = p.duration_s;
    const bool is_timed = p.is_open_loop() && p.arrivals.kind != arrival_kind::all_at_once;
    if (!p.beside.empty() && lasts_s == 0 && is_timed && !p.warmup_until_stable) {
        const schedule s = schedule_of(p);
        lasts_s = s.measured_to - s.measured_from;
    }
    for (const planned_task& t : p.beside)
        if (lasts_s > 0 && !(t.first_s < lasts_s))
            refuse({"side task \"", t.name, "\": it begins ", time_text(t.first_s),
                    " after the measured part, which takes ", time_text(lasts_s),
                    ": let it begin earlier, or measure for longer"});
}
/// What an arm sends, with what is done beside it.
inline void add_tasks(planned_workloads& w, const std::vector<planned_task>& tasks) {
    w.beside = tasks;
    for (const planned_task& t : tasks)
        w.workload_text += (&t == tasks.data() ? "; beside it " : "; ") + task_text(t);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
