// what a plan says of the evidence that it will bring
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/judging/evidence.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"

#include <algorithm>  // max, min

namespace llmbench {
inline namespace v0 {
namespace detail {

inline load_conditions load_conditions_of(const plan& p) {
    const planned_traffic& t = *p.sent;
    load_conditions c;
    const bool as_planned = t.arrivals.max_in_flight == 0 && !t.own_arrivals;
    c.arrival_cv2 = as_planned ? arrival_cv2_of(t.arrivals) : not_a_number;
    for (const plan_part& part : t.parts)
        if (t.own_arrivals)
            c.parts.push_back(
                {part.label, arrival_cv2_of(part.arrivals), saturates(part.arrivals)});
    // In a search each request counts, and turns come in batches of a conversation at most.
    if (p.searches() && t.stride > 1)
        c.arrival_cv2 = arrival_cv2_of(t.arrivals) + static_cast<double>(t.stride);
    c.other_workload = t.otherwise && (*t.otherwise).has_other_prompts;
    c.short_outputs_expected = expects_short_outputs(p);
    c.spins = t.client.spin;
    c.most_skew_s = p.most_skew_s;
    return c;
}

/// Seconds: 5 ms, or 1 % of the tightest limit on the time to a first token where that is more.
/// Latencies are each of one clock, so it is the pattern of arrivals that hangs on it.
inline double most_skew_of_ranks(const plan& p) {
    double tightest = infinity;
    const auto take = [&](metric_id m, double bound) {
        if (m == metric_id::ttft && bound > 0) tightest = std::min(tightest, bound);
    };
    for (const auto* objectives : {&p.judged->slos, &p.judged->search.objectives_held})
        for (const slo& s : *objectives) {
            if (s.factor == 0) take(s.what.metric, s.bound);
            for (const predicate_step& step : s.what.where)
                if (step.op == predicate_step::op_kind::compare) take(step.metric, step.bound);
        }
    return std::max(0.005, tightest < infinity ? 0.01 * tightest : 0);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
