// steps of tasks, and those before each repeat
#pragma once

#include "api/scenario.hpp"
#include "api/side_task.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/traffic/arrivals.hpp"

#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Whether it can stand in quotes without escapes, on one line.
inline bool is_plain_name(const std::string& name) {
    return !name.empty() && name.size() <= 60 && all_of(name, [](char c) {
        return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= ' ';
    });
}
inline constexpr const char* plain_name_text =
    "a name has 1 to 60 characters, and no quote or backslash";

/// A command is not shown: it may have secrets in it.
inline std::string step_name(const task_step& s) {
    if (s.by) return str(s.path);
    return s.path.empty() ? "a command" : "POST " + printable(str(s.path), 80);
}
inline bool has_commands(const list<side_task>& tasks) {
    return any_of(tasks, [](const side_task& t) {
        return any_of(t.steps, [](const task_step& s) { return !s.line.empty(); });
    });
}

inline void check_step(const task_step& s, const std::string& given) {
    const std::string path = str(s.path);
    if (s.path.empty() && s.line.empty())
        refuse({given, "a step is empty: it is post(\"/path\", body) or command(\"line\")"});
    if (s.path.empty()) return;
    const bool has_blanks = any_of(path, [](char c) {
        return static_cast<unsigned char>(c) <= ' ' || c == 127;
    });
    if (path.front() != '/' || has_blanks)
        refuse({given, "post(\"", printable(path, 80), "\"): a path of the server begins with / "
                "and has no blanks"});
}
/// A step that is a post alone.
inline void check_post(const task_step& s, const std::string& field) {
    if (!s.line.empty())
        refuse({field, " has a command(...): it takes post(\"/path\", body) alone; "
                "endpoint{.cold} and side tasks (beside) take commands"});
    check_step(s, field + ": ");
}
inline void check_held(const arrival_data& a) {
    for (const task_step& step : a.held) check_post(step, "arrivals.held");
    if (!a.held.empty() && (a.kind != arrival_kind::all_at_once || a.max_in_flight > 0))
        refuse({"arrivals is ", arrival_text(a),
                ": only all_at_once(), without max_in_flight, can be held"});
}
inline vector<task_step> planned_preparation(const scenario& s) {
    vector<task_step> all;
    if (s.prepare.size() > 16)
        refuse({printed("prepare has %zu requests: up to 16 are allowed",
                        static_cast<std::size_t>(s.prepare.size()))});
    for (const task_step& step : s.prepare) {
        if (!step.by) check_post(step, "prepare");
        all.push_back(step);
    }
    return all;
}
inline std::string preparation_text(const vector<task_step>& steps) {
    std::string t;
    for (const task_step& step : steps)
        t += (t.empty() ? "; before each repeat " : ", ") + step_name(step);
    return t;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
