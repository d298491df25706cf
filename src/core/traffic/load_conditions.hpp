// what a plan says of the evidence that it will bring
#pragma once

#include "core/base/text.hpp"
#include "core/judging/evidence.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"

namespace llmbench {
inline namespace v0 {
namespace detail {

inline load_conditions load_conditions_of(const plan& p) {
    load_conditions c;
    const bool as_planned = p.arrivals.max_in_flight == 0 && p.stride == 1;
    c.arrival_cv2 = as_planned ? arrival_cv2_of(p.arrivals) : not_a_number;
    // Turns come in batches as large as a conversation at most. Only a search is in need of that:
    // it sends more than the server can take on purpose.
    if (p.searches() && p.stride > 1)
        c.arrival_cv2 = arrival_cv2_of(p.arrivals) + static_cast<double>(p.stride);
    c.short_outputs_expected = expects_short_outputs(p);
    c.spins = p.client.spin;
    c.most_skew_s = p.most_skew_s;
    return c;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
