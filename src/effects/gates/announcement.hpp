// the announcement of a gate before its load
#pragma once

#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/tokens.hpp"
#include "core/capacity/searched.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/target_facts.hpp"
#include "core/reports/console.hpp"
#include "core/reports/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/gates/session.hpp"

#include <algorithm>  // min
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline const char* of_virtual_time() { return current_environment ? " of virtual time" : ""; }

/// Returns the text that a gate prints before its load: plan, servers and limits.
inline std::string announcement(const plan& p, const target_facts& target,
                                const target_facts& baseline) {
    const double seconds = seconds_of_one(p);
    std::string t = "\n" + p.name + "\n  " + plan_text(p) + "\n  " + target_text(target);
    t += compared_text(baseline);
    t += "; " + repeats_text(p);
    const api_traits* api = api_named(target.api);
    if (p.sent->forces_length && api && !api->forces_lengths)
        t += printed("; %s cannot be forced to a length, so answers end where the model ends them",
                     api->name);
    const double held = static_cast<double>(p.sent->arrivals.users) * held_by_a_user(*p.sent);
    if (held > 64e6)
        t += printed("; its conversations hold about %.0f MB of answers", held / 1e6);
    if (seconds > 0) {
        const auto [least, most] = expected_span(p, seconds);
        t += ", " + span_text(least, most) + of_virtual_time();
        if (p.sent->is_open_loop())
            t += " if the server keeps up, else up to " + time_text(drain_s(*p.sent)) +
                 " more a " + counted_text(p);
    }
    for (const std::string& note : load_notes(*p.sent)) t += "\n  note: " + note;
    for (const target_facts* f : {&target, &baseline})
        for (const std::string& note : f->notes)
            if (session::of_this_program().is_news(note)) t += "\n  note: " + note;
    const bool is_one_server =
        baseline.kind == target_kind::same || baseline.kind == target_kind::otherwise;
    const double shortest = shortest_prompt(p);
    if (makes_up_prompts(p)) t += "\n  " + fit_text(target.tokens, shortest);
    if (makes_up_prompts(p) && p.judged->has_baseline && !is_one_server)
        t += "; baseline: " + fit_text(baseline.tokens, shortest);
    return t + "\n";
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
