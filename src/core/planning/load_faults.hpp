// side tasks under a load, and profiles after it: an extension does them
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"

#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A task while the load runs.
class task_at_work {
public:
    virtual ~task_at_work() = default;
    /// The load is over: finishes a round of steps that has begun.
    virtual side_task_seen finished() = 0;
};

inline vector<planned_task> planned_tasks(const scenario& s) {
    if (s.beside.empty() && !s.on_fail) return {};
    constexpr const char* missing =
        "beside and on_fail need #include \"llmbench_faults.hpp\" where LLMBENCH_MAIN is";
    return the_one_with(&extension::tasks_of, missing).tasks_of(s);
}
inline std::string tasks_text(const vector<planned_task>& tasks) {
    std::string text;
    for (const planned_task& t : tasks)
        text += (text.empty() ? "; beside it " : "; ") + t.text;
    return text;
}
/// Ends profiles that earlier gates left running on a server, or says so.
inline vector<std::string> notes_on_profiles(const live_target& server, int gate) {
    vector<std::string> notes;
    each(&extension::note_server, server, gate, notes);
    return notes;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
