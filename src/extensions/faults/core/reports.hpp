// side tasks and profiles in reports
#pragma once

#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/measured/repeat.hpp"
#include "core/planning/load_faults.hpp"
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
inline vector<task_figures> task_figures_of(const vector<const repeat_facts*>& variant) {
    vector<task_figures> all;
    for (const repeat_facts* const d : variant)
        for (std::size_t i = 0; i < d->side_tasks.size(); ++i) {
            if (all.size() <= i) all.push_back({.name = d->side_tasks[i].name});
            ++all[i].repeats;
            if (const double s = d->side_tasks[i].recovery_s; !std::isnan(s))
                fill(all[i].recovered, "{,}{after}",
                     {{"after", std::isinf(s) ? "never"
                                : s == 0      ? "nothing (none was disturbed)"
                                              : time_text(s)}});
            for (const side_step& s : d->side_tasks[i].steps) all[i].add(s);
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

/// A request to the server's profiler, by HTTP or by a command.
struct profile_step {
    std::string asked{};  // "POST /start_profile", or the command; "" if not sent
    std::string came{};   // "answered HTTP 200", "exited with status 0", or why neither
    std::string said{};   // the answer, or the last line that the command wrote
    bool heard = false;   // it was answered, or the command ended
    bool done = false;    // and that with success
};
/// The texts of servers and commands in it are printable, and without secrets.
struct taken_profile final : profile_report {
    bool wanted = false;
    std::string none{};  // why there is none, "" if there is one
    bool goes_on = false;  // started, and not known to have ended
    profile_step start{}, stop{};
    double load_s = 0;  // under load; `requests` were sent or cut off
    std::size_t requests = 0;
    std::string files{};  // its place, if that is known

    std::string text() const override;
    void fields(field_visitor& v) override;
};

inline std::string step_text(const profile_step& s) {
    return filled("{asked} {came}[: {said}]",
                  {{"asked", s.asked}, {"came", s.came}, {"said", s.said}});
}
/// Returns one sentence, "" if no profile was wanted.
inline std::string profile_text(const taken_profile& t) {
    if (!t.wanted) return {};
    if (!t.none.empty())
        return filled("no profile: {why}{goes_on?; it may go on, and slows down whatever this "
                      "server does next}",
                      {{"why", t.none}, {"goes_on", t.goes_on}});
    return filled("profile: {load:t} of the same load, {requests} requests; {start}; {stop}[; "
                  "{files}]",
                  {{"load", t.load_s}, {"requests", t.requests}, {"start", step_text(t.start)},
                   {"stop", step_text(t.stop)}, {"files", t.files}});
}
inline std::string taken_profile::text() const { return profile_text(*this); }

inline void fields_of(field_visitor& v, profile_step& s) {
    v.text({"asked", "the request or the command; \"\": none was made"}, s.asked);
    v.flag({"done"}, s.done);
    v.text({"came", "the status, or why there is none"}, s.came);
    v.text({"said", "the answer, or the last line of what the command wrote"}, s.said);
}
inline void fields_of(field_visitor& v, taken_profile& t) {
    bool is_taken = t.none.empty();
    v.flag({"taken"}, is_taken);
    v.text({"why_not"}, t.none);
    v.flag({"goes_on", "it was begun and could not be ended", at_times}, t.goes_on);
    v.number({"load_s", "seconds of load, outside the measurement"}, t.load_s,
             {0, longest_time_s, 0});
    v.whole({"requests", "in them, cut off ones included; they are in no other file"}, t.requests);
    v.text({"files", "where the profile is, as far as that is known"}, t.files);
    v.object({"start", "", presence::always, "profile_step"}, t.start);
    v.object({"stop", "", presence::always, "profile_step"}, t.stop);
}
inline void taken_profile::fields(field_visitor& v) { fields_of(v, *this); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
