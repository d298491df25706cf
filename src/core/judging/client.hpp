// validity checks of the client
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/judging_parameters.hpp"

#include <algorithm>  // any_of, max, min, sort, upper_bound
#include <cmath>  // fabs
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Seconds after which a send is late: 1 % of the limit on ttft, if there is one.
inline double late_after_s(const judging_parameters& t) {
    double least = infinity;
    const auto see = [&](metric_id m, bool at_most, double limit) {
        const bool is_ttft = m == metric_id::ttft || is_of_turns(m);
        if (is_ttft && at_most && limit > 0) least = std::min(least, limit / 100);
    };
    for (const auto* slos : {&t.slos, &t.objectives_held})
        for (const slo& s : *slos) {
            if (s.factor == 0) see(s.what.metric, s.at_most, s.bound);
            for (const predicate_step& step : s.what.where)
                if (step.op == predicate_step::op_kind::compare)
                    see(step.metric, step.at_most, step.bound);
        }
    return least < infinity ? least : late_send_ns * 1e-9;
}
/// Without kernel stamps the client's lost time is part of all times. The limit is 1 % of a repeat,
/// or a loss of over 20 ms for 1 % of the requests.
inline bool client_lost_much(const repeat_data& d) {
    return d.lost_fraction > 0.01 ||
           d.disturbed_requests * 100 > static_cast<long long>(d.records.size());
}
/// Whether the client may have affected a repeat.
inline bool client_had_part(const repeat_data& d, double late_after) {
    return late_fraction_of(d, late_after) > most_late_fraction ||
           std::any_of(d.records.begin(), d.records.end(),
                       [](const record& r) { return is_measured(r) && r.first_early_ns > 0; });
}

/// `repeats`: variants, measurements or one repeat.
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

/// The client's conduct over all these repeats. `late`: pooled_lateness.
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
    double count = 0, content = 0, coalesced = 0, reads = 0, stamped = 0;
    for_each_repeat(repeats, [&](const repeat_data& d) {
        ++count;
        c.connections_opened += d.connections_opened;
        add_handshakes(c.handshakes_full, d.handshakes_full);
        add_handshakes(c.handshakes_resumed, d.handshakes_resumed);
        content += static_cast<double>(d.content_events);
        coalesced += static_cast<double>(d.coalesced_events);
        reads += static_cast<double>(d.reads);
        stamped += static_cast<double>(d.stamped_reads);
        c.unknown_gaps += d.unknown_gaps;
        c.cpu_utilization = std::max(c.cpu_utilization, d.cpu_utilization);
        c.loop_lag_p99 = std::max(c.loop_lag_p99, d.loop_lag_p99);
        c.loop_lag_max = std::max(c.loop_lag_max, d.loop_lag_max);
        c.stamp_lag_p99 = std::max(c.stamp_lag_p99, d.stamp_lag_p99);
        c.stamp_lag_max = std::max(c.stamp_lag_max, d.stamp_lag_max);
        c.lost_fraction = std::max(c.lost_fraction, d.lost_fraction);
        c.asked_rate += d.asked_rate;
        c.achieved_rate += d.achieved_rate;
    });
    if (count > 0) {
        c.asked_rate /= count;
        c.achieved_rate /= count;
    }
    if (content > 0) c.coalesced_fraction = coalesced / content;
    if (reads > 0) c.stamped_fraction = stamped / reads;
    return c;
}

/// Why the client could not send, where it lacked a resource for more than one request and over 1 %
/// of them. Fewer are exempt.
inline cause missing_on_client(const variant_list& variants) {
    std::size_t lacking = 0, measured = 0;
    const record* example = nullptr;
    for_each_repeat(variants, [&](const repeat_data& d) {
        for (const record& r : d.records) {
            if (!is_measured(r)) continue;
            ++measured;
            if (!failed_for_want(r)) continue;
            ++lacking;
            example = &r;
        }
    });
    const bool few = lacking <= std::max<std::size_t>(1, measured / 100) && lacking < measured;
    if (!example || few) return {};
    return {because::client_without, {as_number(lacking), as_number(measured)}, whose::client,
            str(example->error).substr(client_lacks.size())};
}

/// The client's conduct, and why it is unfit to measure any server.
struct own_check : self_check_t {
    cause why{};
    double unread_fraction = 0;  // of the gaps, those whose events were read together
};
/// Kernel stamps are lost only where the client read late. Without stamps a busy client loses them.
template <class Repeats>
double unread_fraction_of(const self_check_t& c, const Repeats& repeats) {
    if (!(c.stamped_fraction > 0.5)) return c.cpu_utilization > 0.8 ? c.coalesced_fraction : 0;
    if (c.unknown_gaps == 0) return 0;
    double gaps = 0;
    for_each_repeat(repeats, [&](const repeat_data& d) {
        gaps += static_cast<double>(pooled_gap_count(d));
    });
    return gaps > 0 ? static_cast<double>(c.unknown_gaps) / gaps : 0;
}
template <class Repeats>
own_check self_check_of(const load_conditions& under, const Repeats& repeats) {
    const std::vector<double> late = pooled_lateness(repeats);
    own_check c{client_conduct(repeats, late), {}};
    c.unread_fraction = unread_fraction_of(c, repeats);
    if (client_was_saturated(under, c.cpu_utilization))
        c.why = {because::client_is_busy, {c.cpu_utilization}, whose::client};
    else if (c.asked_rate > 0 && late.size() >= 50 &&
             std::fabs(c.achieved_rate / c.asked_rate - 1) > 0.02)
        c.why = {because::client_off_rate, {c.achieved_rate, c.asked_rate}, whose::client};
    c.ok = !c.why;
    return c;
}
inline own_check self_check_of(const measurements& e) { return self_check_of(e, e); }

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
