// profiles of servers
#pragma once

#include "api/side_task.hpp"
#include "api/target.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/planning/target_facts.hpp"
#include "core/reports/profile.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/report_directory.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/load/load_target.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/process.hpp"
#include "extensions/faults/core/tasks.hpp"

#include <algorithm>  // max, min
#include <functional>  // the load
#include <memory>  // unique_ptr
#include <stdexcept>  // exception
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

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

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
