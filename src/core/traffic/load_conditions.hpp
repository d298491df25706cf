// load conditions of the measurements that a plan leads to
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/judging/measurements.hpp"
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
    c.arrival_cv2 = t.arrivals.max_in_flight == 0 ? arrival_cv2_of(t.arrivals) : not_a_number;
    // A search counts each request, and turns arrive in batches of one conversation at most.
    if (p.searches() && t.stride > 1)
        c.arrival_cv2 = arrival_cv2_of(t.arrivals) + static_cast<double>(t.stride);
    c.other_workload = t.otherwise && (*t.otherwise).has_other_prompts;
    c.short_outputs_expected = expects_short_outputs(p);
    c.spins = t.client.spin;
    c.max_skew_s = p.max_skew_s;
    return c;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
