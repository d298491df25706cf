// the hash of all that a plan sends
#pragma once

#include "core/base/bytes.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/schedule.hpp"
#include "core/traffic/traffic_source.hpp"

#include <algorithm>  // max, min
#include <cmath>  // llround
#include <string>
#include <variant>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline void add_time(fnv1a& h, const time_distribution& d) {
    h.add(std::llround(d.a * 1e6));
    if (d.kind == time_distribution::shape::fixed) return;
    h.add(static_cast<long long>(d.kind));
    h.add(std::llround(d.b * 1e6));
}

inline void add_users(fnv1a& h, const arrival_data& a) {
    h.add(a.users);
    add_time(h, a.think);
    if (a.users_ramp_s > 0) h.add(std::llround(a.users_ramp_s * 1e6));
}

/// Identifies the traffic: send times to the microsecond, and what the first requests say or how
/// long they are. Answers that are fed back are the server's own and no part of it.
inline std::string trace_hash(const planned_traffic& p) {
    if (!p.hash.empty()) return p.hash;
    fnv1a h;
    std::size_t n = static_cast<std::size_t>(std::max(p.requests, 1000ll));
    if (p.is_open_loop()) {
        const schedule s = schedule_of(p);
        for (const double t : s.at) h.add(std::llround(t * 1e6));
        n = s.at.size();
    } else if (!p.own_arrivals) {
        add_users(h, p.arrivals);
    }
    for_each_part(p, [&](const plan_part& part) {
        const trace_terms terms = terms_of(p, part);
        if (!part.label.empty()) add_text(h, part.label);
        const bool has_users = part.arrivals.kind == arrival_kind::closed_loop;
        if (p.own_arrivals) add_text(h, has_users ? "users" : "open");
        if (p.own_arrivals && has_users) add_users(h, part.arrivals);
        std::visit([&](const auto& source) { source.hash_all(h, terms); }, part.source);
        if (part.stride == 1) return;
        const auto* made_up = std::get_if<made_up_conversations>(&part.source);
        add_time(h, part.think);
        h.add(!made_up || made_up->shared_system_prompt);
    });
    for (const planned_task& t : p.beside) {
        add_text(h, t.name);
        h.add(std::llround(t.every_s * 1e6));
        h.add(std::llround(t.first_s * 1e6));
        for (const task_step& s : t.steps)
            for (const text* of : {&s.path, &s.body, &s.line}) add_text(h, str(*of));
    }
    for (std::size_t c = 0; c < std::min<std::size_t>(n, 100000); ++c) {
        const part_place of = part_of(p, c);
        if (!p.parts.empty()) h.add(static_cast<long long>(of.which));
        const trace_terms terms = terms_of(p, of.part);
        std::visit(
            [&](const auto& source) { source.hash_conversation(h, of.conversation, terms); },
            of.part.source);
    }
    return h.text();
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
