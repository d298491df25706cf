// sessions that a server has no room for
#pragma once

#include "core/base/text.hpp"
#include "core/files/session_graph.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/session_source.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/traffic/workload.hpp"
#include "core/planning/check_slo.hpp"
#include "core/planning/planning.hpp"

#include <algorithm>  // max
#include <string>
#include <utility>  // move
#include <variant>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Leaves out of a part the sessions with a step that the models asked have no room for. How many.
/// `room`: of a model by its name in requests, "" where they name the target's.
template <class Room>
long long leave_out_long(plan_part& part, const Room& room) {
    auto* source = std::get_if<recorded_sessions>(&part.source);
    if (!source) return 0;
    const session_corpus& corpus = part.files->sessions;
    std::vector<int> of_models;
    int largest = 0;
    for (const std::string& asked : source->models) {
        of_models.push_back(room(asked.empty() ? part.common.model : asked));
        largest = std::max(largest, of_models.back());
    }
    const auto all = static_cast<long long>(source->order->size()) + corpus.left_out;
    source->leave_out(corpus, of_models);
    if (source->left_out == 0) return 0;
    source->left_out_by = printed("the server's max_model_len of %d", largest);
    if (2 * (source->left_out + corpus.left_out) > all)
        refuse({"workload.path, ", source->name,
                printed(": %lld of %lld sessions have a step for which the server has no room (its "
                        "max_model_len is %d tokens, prompt and answer), and over half of them are "
                        "too many to leave out", source->left_out, all, largest)});
    part.workload_text = source->text(corpus) + rest_of_sessions(part.forces_length);
    return source->left_out;
}

/// The plan without the sessions that have a step for which its servers have no room: those that
/// /v1/models gives a max_model_len. What the plan was found sound by is asked again.
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
