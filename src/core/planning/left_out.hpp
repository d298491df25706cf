// sessions that a server has no room for
#pragma once

#include "core/base/text.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/check_slo.hpp"
#include "core/planning/planning.hpp"

#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Leaves out sessions with a step that is too long for the models, and returns how many.
template <class Room>
long long leave_out_long(plan_part& part, const Room& room) {
    const auto shorter = part.source->without_long(
        [&](const std::string& asked) { return room(asked.empty() ? part.common.model : asked); },
        part.forces_length);
    if (!shorter) return 0;
    part.source = shorter->source;
    part.workload_text = shorter->text;
    return shorter->left_out;
}

/// Returns the plan without the sessions that are too long for the servers whose /v1/models gives a
/// max_model_len, and checks again that it is sound.
template <class Room>
plan without_long_sessions(const plan& p, const Room& room) {
    long long left_out = 0;
    plan shorter = with_traffic(p, [&](planned_traffic& t) {
        const auto shorten = [&](plan_part& part) { left_out += leave_out_long(part, room); };
        for_each_part(t, shorten);
        if (t.otherwise) {
            planned_workloads other = *t.otherwise;
            for_each_part(other, shorten);
            t.otherwise = std::move(other);
        }
        t.hash.clear();
    });
    if (left_out == 0) return p;
    if (p.sent->arrivals.kind == arrival_kind::replay)
        refuse({printed("arrivals is a replay, and the server has no room for %lld sessions: give "
                        "workload.max_context, by which they are left out with their starts",
                        left_out)});
    shorter = with_traffic(std::move(shorter), [](planned_traffic& t) { t.hash = trace_hash(t); });
    check_young_sessions(*shorter.sent);
    const slo_context context = slo_context_of(shorter);
    for (const auto* objectives : {&shorter.judged->slos, &shorter.judged->search.objectives_held})
        for (const slo& x : *objectives) check_slo(x, context);
    return shorter;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
