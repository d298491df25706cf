// what the client can say against its own numbers
#pragma once

#include "api/result.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/measured/client_stalls.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/evidence.hpp"

#include <algorithm>  // count_if, sort, upper_bound, max
#include <cmath>  // fabs
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// From when on a send has missed its time: 10 ms, or a tenth of the time between two sends.
inline double missed_after_s(const repeat_data& d) {
    const double between = d.asked_rate > 0 ? 1 / d.asked_rate : 0;
    return std::max(static_cast<double>(late_send_ns) * 1e-9, 0.1 * between);
}
/// The fraction of measured sends that missed their time, 0 where no rate was asked for.
inline double late_fraction_of(const repeat_data& d) {
    if (!(d.asked_rate > 0)) return 0;
    const double most = missed_after_s(d) * 1e9;
    double sends = 0, late = 0;
    for (const record& r : d.records) {
        if (!is_measured(r) || r.dispatched_ns == 0) continue;
        ++sends;
        late += static_cast<double>(r.late_ns) > most;
    }
    return sends > 0 ? late / sends : 0;
}

/// Over this the load was another one than planned.
inline constexpr double most_late_fraction = 0.20;

/// Stretches in which it did not run; one in which it was only busy is none of those.
inline std::size_t stall_count(const client_stalls& stalls) {
    return static_cast<std::size_t>(std::count_if(
        stalls.begin(), stalls.end(), [](const client_stall& s) { return s.lost_ns > 0; }));
}
inline double longest_stall_s(const client_stalls& stalls) {
    long long longest = 0;
    for (const client_stall& s : stalls) longest = std::max(longest, s.most_delay_ns);
    return static_cast<double>(longest) * 1e-9;
}

/// `repeats`: arms, evidence, or one repeat.
template <class Repeats>
std::vector<double> pooled_lateness(const Repeats& repeats) {
    std::vector<double> late;
    for_each_repeat(repeats, [&](const repeat_data& d) {
        for (const record& r : d.records)
            if (is_measured(r) && r.dispatched_ns > 0)
                late.push_back(static_cast<double>(r.late_ns) * 1e-9);
    });
    std::sort(late.begin(), late.end());
    return late;
}

inline bool client_was_saturated(const load_conditions& under, double cpu_utilization) {
    return cpu_utilization > 0.9 && !under.spins;
}

/// What the client did, over all of these repeats. `late`: pooled_lateness.
template <class Repeats>
self_check_t client_conduct(const Repeats& repeats, const std::vector<double>& late) {
    self_check_t c;
    if (!late.empty()) {
        c.lateness_p50 = nearest_rank(late, 0.5);
        c.lateness_p99 = nearest_rank(late, 0.99);
        c.lateness_max = late.back();
        c.late_fraction =
            static_cast<double>(late.end() - std::upper_bound(late.begin(), late.end(), 0.010)) /
            static_cast<double>(late.size());
    }
    double count = 0, content = 0, coalesced = 0;
    for_each_repeat(repeats, [&](const repeat_data& d) {
        ++count;
        c.connections_opened += d.connections_opened;
        add_handshakes(c.handshakes_full, d.handshakes_full);
        add_handshakes(c.handshakes_resumed, d.handshakes_resumed);
        content += static_cast<double>(d.content_events);
        coalesced += static_cast<double>(d.coalesced_events);
        c.cpu_utilization = std::max(c.cpu_utilization, d.cpu_utilization);
        c.loop_lag_p99 = std::max(c.loop_lag_p99, d.loop_lag_p99);
        c.loop_lag_max = std::max(c.loop_lag_max, d.loop_lag_max);
        c.stamp_lag_p99 = std::max(c.stamp_lag_p99, d.stamp_lag_p99);
        c.stamp_lag_max = std::max(c.stamp_lag_max, d.stamp_lag_max);
        c.stalls += static_cast<long long>(stall_count(d.stalls));
        c.stall_max = std::max(c.stall_max, longest_stall_s(d.stalls));
        c.asked_rate += d.asked_rate;
        c.achieved_rate += d.achieved_rate;
    });
    if (count > 0) {
        c.asked_rate /= count;
        c.achieved_rate /= count;
    }
    if (content > 0) c.coalesced_fraction = coalesced / content;
    return c;
}

/// Why the client could not ask: what it lacked itself is no failure of a server.
inline cause client_lack(const arm_list& arms) {
    std::size_t lacking = 0, measured = 0;
    const record* example = nullptr;
    for_each_repeat(arms, [&](const repeat_data& d) {
        for (const record& r : d.records) {
            if (!is_measured(r)) continue;
            ++measured;
            if (!failed_for_want(r)) continue;
            ++lacking;
            example = &r;
        }
    });
    if (!example) return {};
    return {because::client_without, {as_number(lacking), as_number(measured)}, whose::client,
            str(example->error).substr(client_lacks.size())};
}

/// The client's own conduct, and why it could not have been a client of any server.
struct own_check : self_check_t {
    cause why{};
};
template <class Repeats>
own_check self_check_of(const load_conditions& under, const Repeats& repeats) {
    const std::vector<double> late = pooled_lateness(repeats);
    own_check c{client_conduct(repeats, late)};
    if (client_was_saturated(under, c.cpu_utilization))
        c.why = {because::client_is_busy, {c.cpu_utilization}, whose::client};
    else if (c.asked_rate > 0 && late.size() >= 50 &&
             std::fabs(c.achieved_rate / c.asked_rate - 1) > 0.02)
        c.why = {because::client_off_rate, {c.achieved_rate, c.asked_rate}, whose::client};
    c.ok = !c.why;
    return c;
}
inline own_check self_check_of(const evidence& e) { return self_check_of(e, e); }

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
