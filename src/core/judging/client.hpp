// what the client can say against its own numbers
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/terms.hpp"

#include <algorithm>  // min, sort, upper_bound, max
#include <cmath>  // isfinite, isinf, fabs
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The tightest ttft or e2e limit of a gate in seconds, infinite where there is none.
inline double tightest_time_limit(const evidence& e, const terms& t) {
    double tightest = infinity;
    const auto consider = [&](metric_id metric, double bound) {
        if (facts_of(metric).bounds_lateness) tightest = std::min(tightest, bound);
    };
    for (const slo& s : t.slos) {
        if (s.is_advisory) continue;  // it never changes the outcome of the others
        double bound = s.bound;
        if (s.factor > 0) {
            std::vector<double> values;
            for (const repeat_data& d : e.baseline) values.push_back(evaluate(s.what, d));
            if (const auto at = t.stored.values.find(str(s.what.name)); at != t.stored.values.end())
                values = at->second;
            bound = s.factor * mean_of(values);
            if (!(bound > 0)) continue;
        }
        consider(s.what.metric, bound);
        for (const predicate_step& step : s.what.where)
            if (step.op == predicate_step::op_kind::compare) consider(step.metric, step.bound);
    }
    return tightest;
}

inline std::vector<double> pooled_lateness(const evidence& e) {
    std::vector<double> late;
    for_each_repeat(e, [&](const repeat_data& d) {
        for (const record& r : d.records)
            if (is_measured(r) && r.dispatched_ns > 0)
                late.push_back(static_cast<double>(r.late_ns) * 1e-9);
    });
    std::sort(late.begin(), late.end());
    return late;
}

inline bool client_was_saturated(const evidence& e, double cpu_share) {
    return cpu_share > 0.9 && !e.spins;
}

/// What the client did, over all repeats and arms. `late`: pooled_lateness.
inline self_check_t client_conduct(const evidence& e, const std::vector<double>& late) {
    self_check_t c;
    if (!late.empty()) {
        c.lateness_p50 = nearest_rank(late, 0.5);
        c.lateness_p99 = nearest_rank(late, 0.99);
        c.lateness_max = late.back();
        c.late_share =
            static_cast<double>(late.end() - std::upper_bound(late.begin(), late.end(), 0.010)) /
            static_cast<double>(late.size());
    }
    double repeats = 0, content = 0, coalesced = 0;
    for_each_repeat(e, [&](const repeat_data& d) {
        ++repeats;
        c.connections_opened += d.connections_opened;
        add_handshakes(c.handshakes_full, d.handshakes_full);
        add_handshakes(c.handshakes_resumed, d.handshakes_resumed);
        content += static_cast<double>(d.content_events);
        coalesced += static_cast<double>(d.coalesced_events);
        c.cpu_share = std::max(c.cpu_share, d.cpu_share);
        c.loop_lag_p99 = std::max(c.loop_lag_p99, d.loop_lag_p99);
        c.loop_lag_max = std::max(c.loop_lag_max, d.loop_lag_max);
        c.stamp_lag_p99 = std::max(c.stamp_lag_p99, d.stamp_lag_p99);
        c.stamp_lag_max = std::max(c.stamp_lag_max, d.stamp_lag_max);
        c.asked_rate += d.asked_rate;
        c.achieved_rate += d.achieved_rate;
    });
    if (repeats > 0) {
        c.asked_rate /= repeats;
        c.achieved_rate /= repeats;
    }
    if (content > 0) c.coalesced_share = coalesced / content;
    return c;
}

/// The client's own conduct, held against the tightest limit of a gate.
inline self_check_t self_check_of(const evidence& e, const terms& t) {
    const std::vector<double> late = pooled_lateness(e);
    self_check_t c = client_conduct(e, late);
    const double limit = tightest_time_limit(e, t);
    const double allowed = std::max(0.05 * limit, 0.001);
    if (client_was_saturated(e, c.cpu_share)) {
        c.reason = printed("client: its busiest thread used %.0f %% of a core; give it "
                           "client.threads or a core of its own",
                           c.cpu_share * 100);
    } else if (c.lateness_p99 > allowed && std::isfinite(limit)) {
        c.reason = "client: requests were sent late, p99 " + time_text(c.lateness_p99) +
                   ", over 5 % of the tightest limit (" + time_text(limit) + ")";
    } else if (std::max(c.stamp_lag_p99, c.loop_lag_p99) > std::max(0.05 * limit, 0.010)) {
        c.reason = "client: its thread came late, p99 " + time_text(c.stamp_lag_p99) +
                   " to read and " + time_text(c.loop_lag_p99) +
                   " to wake, over 5 % of the tightest limit (" + time_text(limit) + ")";
    } else if (c.late_share > 0.02 && std::isinf(limit)) {
        c.reason = "client: " + printed("%.1f", c.late_share * 100) +
                   " % of the requests were sent over 10 ms late";
    } else if (c.asked_rate > 0 && late.size() >= 50 &&
               std::fabs(c.achieved_rate / c.asked_rate - 1) > 0.02) {
        c.reason = "client: sent " + printed("%.4g", c.achieved_rate) + " requests/s instead of " +
                   printed("%.4g", c.asked_rate);
    }
    c.ok = c.reason.empty();
    return c;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
