// the hash of a plan's traffic
#pragma once

#include "core/base/bytes.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/traffic_source.hpp"

#include <algorithm>  // max, min
#include <cmath>  // isnan, llround
#include <string>

namespace llmbench {
inline namespace v1 {
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

inline void add_part(fnv1a& h, const planned_traffic& p, const plan_part& part) {
    if (!part.label.empty()) add_text(h, part.label);
    part.source->hash_all(h, parameters_of(p, part));
    if (part.stride == 1) return;
    add_time(h, part.think);
    h.add(part.source->facts().shares_system_prompt);
}
inline void add_task(fnv1a& h, const planned_task& t) {
    add_text(h, t.name);
    h.add(std::llround(t.every_s * 1e6));
    h.add(std::llround(t.first_s * 1e6));
    for (const task_step& s : t.steps)
        for (const text* of : {&s.path, &s.body, &s.line}) add_text(h, str(*of));
}

/// Identifies the traffic: send times to the microsecond, and the text or the lengths of the first
/// requests. Answers that are fed back are the server's, so they are not part of it.
inline std::string trace_hash(const planned_traffic& p) {
    if (!p.hash.empty()) return p.hash;
    fnv1a h;
    std::size_t n = static_cast<std::size_t>(std::max(p.requests, 1000ll));
    if (p.is_open_loop()) {
        const schedule s = schedule_of(p);
        for (const double t : s.at) h.add(std::llround(t * 1e6));
        n = s.at.size();
    } else {
        add_users(h, p.arrivals);
    }
    for_each_part(p, [&](const plan_part& part) { add_part(h, p, part); });
    for (const planned_task& t : p.beside) add_task(h, t);
    for (const task_step& s : p.prepare)
        for (const text* of : {&s.path, &s.body}) add_text(h, str(*of));
    for (std::size_t c = 0; c < std::min<std::size_t>(n, 100000); ++c) {
        const part_place of = part_of(p, c);
        if (!p.parts.empty()) h.add(static_cast<long long>(of.which));
        of.part.source->hash_conversation(h, of.conversation, parameters_of(p, of.part));
    }
    return h.text();
}

inline void add_number(fnv1a& h, double v) { add_text(h, printed("%.17g", v)); }
/// What its requests have beside their prompts.
inline void add_requests(fnv1a& h, const plan_part& part) {
    const request_spec& r = part.common;
    for (const double v : {static_cast<double>(r.max_tokens), static_cast<double>(r.documents),
                           part.forces_length ? 1.0 : 0.0, r.stream ? 1.0 : 0.0,
                           r.cancel_after_s, static_cast<double>(part.weight)})
        add_number(h, v);
    if (!std::isnan(r.temperature)) add_number(h, r.temperature);
    for (const std::string* of : {&part.label, &r.system_prompt, &r.extra_fields})
        add_text(h, *of);
    for (const extra_object& o : r.extra_objects) {
        add_text(h, o.name);
        add_text(h, o.fields);
    }
}
/// Identifies a load by its values, so that its description can change: the trace, the arrivals,
/// the amount, and the fields of requests beside their prompts. "" if it is only described.
inline std::string load_hash(const planned_traffic& p) {
    if (p.described.is_there || p.is_read) return {};
    fnv1a h;
    add_text(h, trace_hash(p));
    const arrival_data& a = p.arrivals;
    for (const double v : {static_cast<double>(a.kind), a.rate, a.rate_to, a.over_s, a.burstiness,
                           a.speed, static_cast<double>(a.max_in_flight), a.is_searched ? 1.0 : 0.0,
                           static_cast<double>(p.requests), p.duration_s,
                           static_cast<double>(p.warmup_requests), p.warmup_s,
                           p.warmup_until_stable ? 1.0 : 0.0})
        add_number(h, v);
    for (const load_step& s : a.stages) {
        add_number(h, s.rate.per_second);
        add_number(h, s.lasts.seconds());
    }
    for (const task_step& s : a.held)
        for (const text* of : {&s.path, &s.body}) add_text(h, str(*of));
    add_users(h, a);
    add_text(h, p.scores);
    for_each_part(p, [&](const plan_part& part) { add_requests(h, part); });
    return h.text();
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
