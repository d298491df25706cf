// the number of requests that a plan expects
#pragma once

#include "api/slo.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/recorded.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/arrivals.hpp"

#include <algorithm>  // min
#include <array>
#include <cmath>  // llround, isfinite
#include <map>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The number of requests, except those of side tasks, by turn, depth and part: selections treat
/// those alike.
using counts_by_kind = std::map<std::array<int, 3>, long long>;
/// Returns the measured requests of one repeat, 0 if only the run can tell.
inline long long expected_requests(const planned_traffic& p) {
    if (p.described.is_there) return p.described.requests;
    double by_time = infinity;
    if (p.is_open_loop() && p.arrivals.kind != arrival_kind::all_at_once) {
        const recorded_trace& trace = p.files->trace;
        const double seconds = p.duration_s > 0 ? p.duration_s : own_length(p.arrivals, trace);
        if (seconds > 0) by_time = arrivals_within(p.arrivals, trace, seconds);
        if (seconds > 0 && p.stride > 1) {
            const std::size_t warmup = counted_conversations(p).warmup;
            const auto n = static_cast<std::size_t>(std::llround(by_time));
            by_time = 0;
            for (std::size_t c = 0; c < n; ++c)
                by_time += static_cast<double>(turns_of(p, warmup + c));
        }
    } else if (p.duration_s > 0) {
        return 0;
    }
    const double by_count = p.requests > 0 ? static_cast<double>(p.requests) : infinity;
    const double n = std::min(by_time, by_count);
    return std::isfinite(n) ? std::llround(n) : 0;
}
/// Counts all of these, none if only the run can tell.
inline counts_by_kind expected_kinds(const planned_traffic& p) {
    const long long n = expected_requests(p), first = p.described.first_turns;
    if (p.described.is_there) return {{{0, 0, 0}, first}, {{1, 0, 0}, n - first}};
    if (p.stride == 1 && p.parts.empty()) return {{{0, 0, 0}, n}};
    counts_by_kind counts;
    const bool is_graph = has_graphs(p);
    auto left = static_cast<std::size_t>(n);
    for (std::size_t c = counted_conversations(p).warmup; left > 0; ++c) {
        const auto part = static_cast<unsigned char>(part_of(p, c).which);
        const std::size_t steps = std::min(turns_of(p, c), left);
        for (std::size_t i = 0; i < steps; ++i) {
            graph_step s{.turn = static_cast<int>(i), .label = part};
            if (is_graph) s = step_of(p, c * p.stride + i);
            ++counts[{s.turn, s.depth, s.label}];
        }
        left -= steps;
    }
    return counts;
}
inline long long selected_of(const counts_by_kind& counts, const vector<std::string>& labels,
                             const selection& which) {
    repeat_facts d;
    d.labels = labels;
    const selects selected(which, d);
    long long n = 0;
    record r;
    for (const auto& [of, count] : counts) {
        r.turn = of[0];
        r.depth = of[1];
        r.part = static_cast<unsigned char>(of[2]);
        n += selected.has(r) ? count : 0;
    }
    return n;
}
inline long long expected_first_turns(const planned_traffic& p) {
    return selected_of(expected_kinds(p), {}, turns(1, 1));
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
