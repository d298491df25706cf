// requests during a side task
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"

#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Whether failures in a part of this time are exempt: a side task may have disturbed the server.
inline bool is_excused(const repeat_facts& d, long long from_ns, long long to_ns) {
    return any_of(d.side_tasks, [&](const side_task_seen& t) {
        const auto ns = static_cast<long long>(t.excuses_s * 1e9);
        return ns > 0 && any_of(t.steps, [&](const side_step& s) {
            return from_ns <= s.from_ns + ns && to_ns >= s.from_ns;
        });
    });
}
/// Marks requests that failed while exempt, or because the client lacked a resource.
inline void note_exempt(repeat_data& d) {
    for (record& r : d.records)
        r.exempt = failed_by_client(r) ||
                   (has_failed(r) && is_excused(d, r.scheduled_ns, r.end_ns));
}

/// The objective that must hold again, and the kind of load.
struct recovery_parameters {
    double ttft_s = 0, quantile = 0;
    bool is_open_loop = false;
};
/// The recovery of the named task, or of the only one.
inline double recovery_value(const std::string& task, const repeat_facts& d) {
    for (const side_task_seen& t : d.side_tasks)
        if (task.empty() || t.name == task) return t.recovery_s;
    return not_a_number;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
