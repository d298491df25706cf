// requests during a side task, and the time until they are answered as before it
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"

#include <cstddef>  // size_t
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
inline constexpr double recovered_for_s = 5;
/// Seconds from an event until requests of 5 s, as many as before, meet the objective on ttft: the
/// first one does, and of all at least its fraction. Infinite without such 5 s before the end. An
/// open loop always sends as many.
inline double recovery_of(const repeat_data& d, long long event_ns, const recovery_parameters& t) {
    const auto span_ns = static_cast<long long>(recovered_for_s * 1e9);
    constexpr double as_many = 0.8;  // for a closed loop
    vector<long long> at;
    vector<std::size_t> bad = {0};  // before each request
    double before = 0;
    for (const record& r : d.records) {
        if (!is_measured(r) || has_left(r)) continue;
        before += r.scheduled_ns < event_ns && r.scheduled_ns >= event_ns - span_ns;
        if (r.scheduled_ns < event_ns) continue;
        const bool kept = r.status == request_status::ok &&
                          static_cast<double>(r.first_token_ns - r.scheduled_ns) <= t.ttft_s * 1e9;
        at.push_back(r.scheduled_ns);
        bad.push_back(bad.back() + !kept);
    }
    const long long whole_ns = event_ns - d.window.from_ns();
    if (whole_ns > 0 && whole_ns < span_ns)
        before *= static_cast<double>(span_ns) / static_cast<double>(whole_ns);
    for (std::size_t i = 0, end = 0; i < at.size(); ++i) {
        const long long from_ns = i == 0 ? event_ns : at[i];
        if (from_ns + span_ns > d.window.to_ns()) break;
        while (end < at.size() && at[end] < from_ns + span_ns) ++end;
        const auto all = static_cast<double>(end - i);
        const auto missed = static_cast<double>(bad[end] - bad[i]);
        if (bad[i + 1] == bad[i] && missed <= (1 - t.quantile) * all + 1e-9 &&
            (t.is_open_loop || all >= as_many * before))
            return static_cast<double>(from_ns - event_ns) * 1e-9;
    }
    return infinity;
}
/// The recovery of the named task, or of the only one.
inline double recovery_value(const std::string& task, const repeat_facts& d) {
    for (const side_task_seen& t : d.side_tasks)
        if (task.empty() || t.name == task) return t.recovery_s;
    return not_a_number;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
