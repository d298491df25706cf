// one repeat from the parts of several programs
#pragma once

#include "api/result.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/histograms.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/record_fields.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_fields.hpp"
#include "core/measured/request_log.hpp"

#include <algorithm>  // max, min
#include <cstddef>  // size_t
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Moves all times of a part to another clock.
inline void move_clock(repeat_data& d, long long by_ns) {
    for (record& r : d.records) move_clock(r, by_ns);
    move_clock(static_cast<repeat_facts&>(d), by_ns);
}

/// Adds the facts of another part to a repeat. Both are on one clock.
inline void add_facts(repeat_data& to, const repeat_data& part, bool by_window_of_all) {
    if (by_window_of_all) to.window = to.window.shared_with(part.window);
    to.short_outputs += part.short_outputs;
    to.long_outputs += part.long_outputs;
    to.resends += part.resends;
    to.idle_resends += part.idle_resends;
    to.connection_resets += part.connection_resets;
    to.used_once = to.used_once || part.used_once;
    if (part.shared_tokens >= 0)
        to.shared_tokens = std::max(to.shared_tokens, 0ll) + part.shared_tokens;
    // The slopes of sends over plan are averaged, weighted by the rates.
    const double asked = to.asked_rate + part.asked_rate;
    to.achieved_rate += part.achieved_rate;
    to.asked_rate = asked;
    to.connections_opened += part.connections_opened;
    to.content_events += part.content_events;
    to.coalesced_events += part.coalesced_events;
    to.cpu_utilization = std::max(to.cpu_utilization, part.cpu_utilization);
    to.thread_cpu_utilization.insert(to.thread_cpu_utilization.end(),
                                     part.thread_cpu_utilization.begin(),
                                     part.thread_cpu_utilization.end());
    to.loop_lag_p99 = std::max(to.loop_lag_p99, part.loop_lag_p99);
    to.loop_lag_max = std::max(to.loop_lag_max, part.loop_lag_max);
    to.stamp_lag_p99 = std::max(to.stamp_lag_p99, part.stamp_lag_p99);
    to.stamp_lag_max = std::max(to.stamp_lag_max, part.stamp_lag_max);
    add_handshakes(to.handshakes_full, part.handshakes_full);
    add_handshakes(to.handshakes_resumed, part.handshakes_resumed);
    to.reads += part.reads;
    to.stamped_reads += part.stamped_reads;
    to.lost_fraction = std::max(to.lost_fraction, part.lost_fraction);
    to.disturbed_requests += part.disturbed_requests;
    if (to.target_gone.empty()) to.target_gone = part.target_gone;
    to.interrupted = to.interrupted || part.interrupted;
    to.cut_short = to.cut_short || part.cut_short;
    to.differences.add(part.differences);
    to.texts.insert(to.texts.end(), part.texts.begin(), part.texts.end());
    to.shown.insert(to.shown.end(), part.shown.begin(), part.shown.end());
    if (!to.server.is_read) to.server = part.server;
    to.ranks.insert(to.ranks.end(), part.ranks.begin(), part.ranks.end());
}

/// The repeat of these parts, on the clock of the first; each has one entry in `ranks`, its own.
/// `closed`: users wait for answers, so each part has its own window, and the common part of all
/// windows counts.
inline repeat_data together(std::vector<repeat_data> parts, bool closed) {
    fail_frequent_resends(parts);
    fail_unfinished([&](auto&& f) {
        for (repeat_data& part : parts)
            for (record& r : part.records) f(r);
    });
    repeat_data all = std::move(parts.front());
    request_log log;
    log.take(request_log::again(all));
    bool counted = all.gaps_counted;
    for (std::size_t i = 1; i < parts.size(); ++i) {
        repeat_data& part = parts[i];
        move_clock(part, all.ranks.front().start_ns - part.ranks.front().start_ns);
        log.take(request_log::again(part));
        counted = counted || part.gaps_counted;
        add_facts(all, part, closed);
        part = {};
    }
    if (counted) log.count_all(all.window);
    log.move_into(all, counted);
    note_lateness(all);
    note_unknown_gaps(all);
    return all;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
