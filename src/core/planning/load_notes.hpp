// notes on a load before and after it
#pragma once

#include "core/base/text.hpp"
#include "core/traffic/expected.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/schedule.hpp"

#include <algorithm>  // max
#include <cstddef>  // size_t
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Returns the span and the rate of a replayed trace, which show a wrong unit of its times.
inline std::string trace_text(const arrival_data& a, const recorded_trace& trace) {
    if (a.kind != arrival_kind::replay || trace.rows.empty()) return {};
    const double lasts_s = own_length(a, trace);
    const auto n = static_cast<double>(trace.rows.size());
    return file_name(str(a.file)) + printed(": %.0f starts over ", n) + time_text(lasts_s) +
           printed(", %.3g/s", n / lasts_s);
}
/// Notes that prompts of a data set repeat. `starts`: of this part in one repeat.
inline std::string prompts_again_text(const plan_part& part, double starts) {
    const auto n = static_cast<double>(part.files->dialogues.size());
    if (n == 0 || part.files->dialogues[0].wanted || starts <= n) return {};
    return printed("%.0f starts and %.0f prompts: each comes %.3g times%s", starts, n, starts / n,
                   part.sent_as_given == "prompts" ? ", and a prefix cache may have it" : "");
}
/// Returns the notes on the load, a sentence each.
inline std::vector<std::string> load_notes(const planned_traffic& p) {
    std::vector<std::string> notes;
    std::size_t all = 0;
    for_each_part(p, [&](const plan_part& part) { all += std::max<std::size_t>(part.weight, 1); });
    const auto note = [&](const plan_part& part, std::string t) {
        if (t.empty()) return;
        notes.push_back((part.label.empty() ? "" : "\"" + part.label + "\": ") + std::move(t));
    };
    note({}, trace_text(p.arrivals, p.files->trace));
    for_each_part(p, [&](const plan_part& part) {
        note(part, part.files->fields.text());
        const double starts = static_cast<double>(p.requests + p.warmup_requests) *
                              static_cast<double>(part.weight) / static_cast<double>(all);
        if (p.requests > 0 && !p.searches() && part.stride == 1)
            note(part, prompts_again_text(part, starts));
    });
    return notes;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
