// llmbench_faults 1.0.0-rc.1: side tasks under load, recovery, profiles. Include it after llmbench.hpp.
// Put together from src/ by ci/assemble.py: edit there, not here.
//
// Part one: declarations
//   [A] side tasks under a load, and profiles of servers
// Part three: tasks done beside a load, and profiles of servers
//
// SPDX-License-Identifier: MIT
//
// Copyright (c) 2026 the llmbench authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
// associated documentation files (the "Software"), to deal in the Software without restriction,
// including without limitation the rights to use, copy, modify, merge, publish, distribute,
// sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all copies or
// substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
// NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
// NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
// DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

#ifndef LLMBENCH_HPP
#error "llmbench_faults.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_FAULTS_HPP
#define LLMBENCH_FAULTS_HPP
static_assert(__builtin_strcmp(LLMBENCH_RELEASE_, "llmbench_1.0.0rc.1") == 0,
              "llmbench_faults.hpp is of 1.0.0-rc.1, but llmbench.hpp is " LLMBENCH_RELEASE_
              ": take both from one release");

// ===== [A] side tasks under a load, and profiles of servers ======================================

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Defined in this extension's implementation. If it is missing, the linker shows the name.
extern const bool include_llmbench_faults_hpp_where_LLMBENCH_MAIN_is;

template <class T>
struct include_llmbench_faults_hpp {
    template <class Given>
    static Given taken(const Given& what) {
        return include_llmbench_faults_hpp_where_LLMBENCH_MAIN_is ? what : Given();
    }
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_FAULTS_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_FAULTS_IMPLEMENTED)
#define LLMBENCH_FAULTS_IMPLEMENTED

#include <algorithm>  // max, min
#include <cmath>  // isinf, isnan
#include <cstddef>  // size_t
#include <functional>  // the load
#include <memory>  // unique_ptr, make_unique
#include <stdexcept>  // exception, runtime_error
#include <string>
#include <string_view>
#include <utility>  // move

// ===== [E] side tasks in reports =================================================================

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
inline vector<task_figures> task_figures_of(const vector<repeat_figures>& variant) {
    vector<task_figures> all;
    for (const repeat_figures& d : variant)
        for (std::size_t i = 0; i < d.side_tasks.size(); ++i) {
            if (all.size() <= i) all.push_back({.name = d.side_tasks[i].name});
            ++all[i].repeats;
            if (const double s = d.side_tasks[i].recovery_s; !std::isnan(s))
                fill(all[i].recovered, "{,}{after}",
                     {{"after", std::isinf(s) ? "never"
                                : s == 0      ? "nothing (none was disturbed)"
                                              : time_text(s)}});
            for (const side_step& s : d.side_tasks[i].steps) all[i].add(s);
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
inline void show_tasks(const gate_report& g, report_parts& into) {
    for (const bool is_baseline : {false, true}) {
        const variant_figures& of = is_baseline ? g.figures.baseline : g.figures.candidate;
        for (const task_figures& t : task_figures_of(of.repeats))
            into.tasks[is_baseline].push_back(task_figures_text(t));
    }
    into.details += side_tasks_html(g);
}

// ===== [E] side tasks and profiles of a scenario =================================================

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

// ===== [E] profiles of servers ===================================================================

/// Starts and ends a profile on a server: by HTTP, or by the scenario's commands.
class profiler {
public:
    static constexpr double answer_s = 10, command_s = 30, writing_s = 60;  // limits

    profiler(const profile& what, const live_target& target, int gate)
        : what_(what), target_(target), gate_(gate) {}

    bool has_commands() const { return !what_.start.empty(); }
    profile_step start(double within_s) {
        if (has_commands())
            return carried_out(str(what_.start), "start", std::min(within_s, command_s));
        return posted("/start_profile", std::min(within_s, answer_s));
    }
    profile_step stop(double within_s) {
        if (has_commands())
            return carried_out(str(what_.stop), "stop", std::min(within_s, writing_s));
        return posted("/stop_profile", std::min(within_s, writing_s));
    }
    /// Returns where the profile is, as far as is known.
    std::string files() const {
        for (const char* variable : profile_variables)
            if (const std::string directory = target_.environment_value(variable);
                !directory.empty())
                return "it is in " + own_text(directory) + ", as " + variable + " says";
        if (has_commands()) return "the commands wrote " + log_of("start") + ", " + log_of("stop");
        if (target_.facts().kind == target_kind::simulated)
            return "the simulated server writes none";
        return "the server writes it where its VLLM_TORCH_PROFILER_DIR, its --profiler-config or "
               "its SGLANG_TORCH_PROFILER_DIR says";
    }

private:
    std::string own_text(std::string_view s) const {
        return masked_words_of(s, target_.load());
    }
    profile_step posted(const char* path, double within_s) const {
        const load_target& to = target_.load();
        const http_answer a = blocking_post(to, inquiry_path(to, path), to.fields, "{}", within_s);
        profile_step s;
        s.asked = std::string("POST ") + path;
        s.heard = a.status > 0;
        s.done = a.status >= 200 && a.status < 300;
        s.came = s.heard ? printed("answered HTTP %d", a.status) : "failed: " + own_text(a.error);
        if (!s.done && s.heard && a.status != 404) s.said = own_text(a.body);
        if (s.done && a.body != "{}") s.said = own_text(a.body);
        return s;
    }

    std::string log_of(const char* part) const {
        return report_directory() + printed("/profile-%d-%s.log", gate_, part);
    }
    profile_step carried_out(const std::string& command, const char* part, double within_s) {
        profile_step s;
        s.asked = "\"" + own_text(command) + "\"";
        carried_command c = detail::carried_out(command, target_.load(), log_of(part),
                                                now_ns() + ns_of(within_s));
        if (!c.process) {
            s.came = "was not run: " + c.error;
            return s;
        }
        running_.push_back(std::move(c.process));
        s.heard = !c.how.empty();
        s.done = c.done();
        s.said = c.last_line;
        s.came = s.heard     ? c.how
                 : c.in_time ? "was interrupted"
                             : "had not ended after " + time_text(within_s) +
                                   " (what goes on belongs in the background, with &)";
        return s;
    }

    const profile& what_;
    const live_target& target_;
    const int gate_;
    // A process that a command leaves running lives until the profile is complete.
    vector<std::unique_ptr<server_process>> running_{};
};

/// Returns why a server has not begun a profile.
inline std::string why_not_begun(const profiler& by, const profile_step& start) {
    const bool has_none = !by.has_commands() && start.came == "answered HTTP 404";
    return step_text(start) +
           (has_none ? ": vLLM has it where it was started with VLLM_TORCH_PROFILER_DIR or "
                       "--profiler-config; profile{.start = ..., .stop = ...} takes commands of "
                       "your own"
                     : "");
}

/// Takes a profile of `lasts_s` of load, which `load` runs. A profile that was begun is always
/// ended. Without enough time none is begun.
inline taken_profile profile_under_load(profiler& by, double lasts_s, long long deadline_ns,
                                        const std::function<std::size_t(long long)>& load) {
    constexpr double least_for_stop_s = 5;
    const auto left_s = [&] { return seconds_until(deadline_ns); };
    taken_profile t;
    if (stop_asked.load()) t.none = "the run was interrupted";
    else if (left_s() < lasts_s + least_for_stop_s)
        t.none = "LLMBENCH_TIME_BUDGET leaves no time for " + time_text(lasts_s) +
                 " of load and the writing after it";
    if (!t.none.empty()) return t;
    t.start = by.start(left_s() - lasts_s);
    if (t.start.done) {
        const long long began = now_ns();
        try {
            t.requests = load(began + ns_of(lasts_s));
        } catch (const std::exception& e) {
            t.none = reason_in(e);
        }
        t.load_s = static_cast<double>(now_ns() - began) * 1e-9;
        if (t.none.empty() && t.requests == 0)
            t.none = "this load sends nothing in its first " + time_text(lasts_s) +
                     ", profile.duration can be longer";
    } else {
        t.none = why_not_begun(by, t.start);
    }
    // Without an answer it may have begun all the same.
    if (t.start.done) t.stop = by.stop(std::max(left_s(), least_for_stop_s));
    else if (!t.start.heard && !by.has_commands()) t.stop = by.stop(least_for_stop_s);
    if (t.start.done && !t.stop.done && t.none.empty()) t.none = step_text(t.stop);
    t.goes_on = !t.stop.asked.empty() && !t.stop.done && (t.start.done || !t.stop.heard);
    t.files = by.files();
    return t;
}

/// A profile that a gate could not end. A server that profiles is slower for every later gate.
struct unended_profile {
    std::string url, gate;
    profile how;
};
/// Gates take turns, so there is no lock.
inline vector<unended_profile>& unended_profiles() {
    static vector<unended_profile>& all = *new vector<unended_profile>;  // outlives statics
    return all;
}
/// Tries to end the profiles of a server before its next load; returns a note on each.
inline vector<std::string> end_profiles(const live_target& server, int gate) {
    vector<std::string> notes;
    erase_if(unended_profiles(), [&](const unended_profile& p) {
        if (p.url != server.facts().url) return false;
        const profile_step stop = profiler(p.how, server, gate).stop(10);
        notes.push_back("gate \"" + p.gate + "\" had begun a profile on this server and could not "
                        "end it: " +
                        (stop.done ? "it was ended now, before this load"
                                   : "it may be slower for it still (" + step_text(stop) + ")"));
        return stop.done;
    });
    return notes;
}

// ===== [E] side tasks during a load ==============================================================

/// One task in one repeat: its own thread and connections, or events of a virtual environment.
class task_under_load final : public task_at_work {
public:
    /// Task `number` of the plan. All arguments must outlive it.
    task_under_load(const plan& p, std::size_t number, live_target& target, const load_state& load,
                    int gate)
        : what_(p.sent->beside[number]),
          target_(target),
          load_(load),
          within_s_(p.sent->limits.total.seconds()),
          log_(report_directory() + printed("/beside-%d-%zu.log", gate, number + 1)) {
        seen_.name = what_.name;
        seen_.may_fail = what_.may_fail;
        seen_.excuses_s = what_.excuses_s;
        doing_.begin([this] { return next_ns(); }, [this] { act(); },
                     [this](const char* why) { end_step(std::string("failed: ") + why); });
    }
    task_under_load(const task_under_load&) = delete;
    task_under_load& operator=(const task_under_load&) = delete;

    /// The load is over: finishes a round of steps that has begun.
    side_task_seen finished() override {
        doing_.stop();
        while (post_ && !has_advanced()) sleep_s(poll_s);
        while (begun_ % what_.steps.size() != 0) {
            begin_step(now_ns());
            while (post_ && !has_advanced()) sleep_s(poll_s);
        }
        return std::move(seen_);
    }

private:
    static constexpr double poll_s = 0.001, look_s = 0.01, interrupted_s = 10;

    bool is_over() const { return what_.every_s == 0 && begun_ == what_.steps.size(); }
    long long due_ns() const {
        return measured_from_ns_ + ns_of(what_.first_s) +
               intervals_ * ns_of(what_.every_s);
    }
    long long next_ns() {
        if (post_) return now_ns() + ns_of(poll_s);
        if (measured_from_ns_ == 0) measured_from_ns_ = load_.measured_from.load();
        if (measured_from_ns_ == 0) return now_ns() + ns_of(look_s);
        return is_over() ? now_ns() + ns_of(60) : due_ns();
    }
    void act() {
        if (post_) has_advanced();
        else if (measured_from_ns_ != 0 && !is_over() && now_ns() >= due_ns()) begin_due_step();
    }
    /// Of those that one under way held up, only the last is done: the others would follow at once,
    /// which is another load.
    void begin_due_step() {
        const long long every_ns = ns_of(what_.every_s), late_ns = now_ns() - due_ns();
        if (every_ns > 0) intervals_ += late_ns / every_ns;
        const long long due = due_ns();
        ++intervals_;
        begin_step(due);
    }
    void begin_step(long long due_ns) {
        const task_step& s = what_.steps[begun_ % what_.steps.size()];
        const std::string nth = std::to_string(begun_ / what_.steps.size() + 1);
        const auto filled = [&](const text& t) { return filled_in(str(t), "{n}", nth); };
        const load_target& to = target_.load();
        const double max_s = stop_asked.load() ? std::min(within_s_, interrupted_s) : within_s_;
        ++begun_;
        side_step& seen = seen_.steps.emplace_back();
        seen.due_ns = due_ns;
        seen.from_ns = seen.to_ns = now_ns();
        if (s.path.empty()) {
            seen.what = "\"" + masked_words_of(str(s.line), to) + "\"";
            return end_step(carried_out_within(filled(s.line), max_s));
        }
        const std::string path = filled(s.path);
        seen.what = "POST " + masked_words_of(path, to);
        const std::string request = last_request(
            http_method::post, to, inquiry_path(to, path.c_str()), to.fields, filled(s.body));
        // The one thread of a virtual environment also runs the load.
        if (!current_environment) return end_step(fault_of_post(answer_to(to, request, max_s), to));
        post_ = std::make_unique<plain_request>(to, request, max_s);
        has_advanced();
    }
    bool has_advanced() {
        if (!post_->advance(now_ns())) return false;
        end_step(fault_of_post(post_->answer(), target_.load()));
        post_.reset();
        return true;
    }
    void end_step(std::string why) {
        if (seen_.steps.empty()) return;  // it never began: reported for the whole task
        seen_.steps.back().to_ns = now_ns();
        seen_.steps.back().failed = std::move(why);
    }
    std::string carried_out_within(const std::string& line, double max_s) {
        carried_command c = carried_out(line, target_.load(), log_, now_ns() + ns_of(max_s));
        const std::string fault = c.fault(max_s);
        if (!c.how.empty()) target_.commands().keep(std::move(c.process));
        return fault;
    }

    const planned_task& what_;
    live_target& target_;
    const load_state& load_;
    const double within_s_;
    const std::string log_;
    // Owned by the task's thread while it runs, then by this object.
    side_task_seen seen_{};
    std::size_t begun_ = 0;  // number of steps
    long long intervals_ = 0;  // of `every`, that have passed at the next step
    long long measured_from_ns_ = 0;
    std::unique_ptr<plain_request> post_{};
    repeated doing_{};
};

// ===== [E] tasks begun, and profiles taken =======================================================

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

#endif  // LLMBENCH_FAULTS_IMPLEMENTED
