// profiles that could not be ended
#pragma once

#include "api/side_task.hpp"
#include "core/base/text.hpp"
#include "core/reports/gate_report.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/profiler.hpp"

#include <string>
#include <vector>  // erase_if

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A server that profiles is slower for every later gate. Gates take turns, so there is no lock.
class unended_profiles {
public:
    static unended_profiles& of_this_program() {
        static unended_profiles all;
        return all;
    }
    void add(const std::string& url, const std::string& gate, const profile& how) {
        all_.push_back({url, gate, how});
    }
    /// Tries to end the profiles of a server before its next load; returns a note on each.
    std::vector<std::string> ended_on(const live_target& server, int gate) {
        constexpr double within_s = 10;
        std::vector<std::string> notes;
        std::erase_if(all_, [&](const begun& b) {
            if (b.url != server.facts().url) return false;
            profiler by(b.how, server, gate);
            const profile_step stop = by.stop(within_s);
            notes.push_back("gate \"" + b.gate + "\" had begun a profile on this server and could "
                            "not end it: " +
                            (stop.done ? "it was ended now, before this load"
                                       : "it may be slower for it still (" + step_text(stop) +
                                             ")"));
            return stop.done;
        });
        return notes;
    }

private:
    struct begun {
        std::string url, gate;
        profile how;
    };
    std::vector<begun> all_{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
