// how far apart the programs of one load may begin
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/traffic/plan.hpp"

#include <algorithm>  // max, min

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Seconds: 5 ms, or 1 % of the tightest limit on the time to a first token where that is more.
/// Latencies are each of one clock, so it is the pattern of arrivals that hangs on it.
inline double most_skew_of_ranks(const plan& p) {
    double tightest = infinity;
    const auto take = [&](metric_id m, double bound) {
        if (m == metric_id::ttft && bound > 0) tightest = std::min(tightest, bound);
    };
    for (const auto* objectives : {&p.slos, &p.search.keeps})
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
