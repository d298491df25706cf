// the number of requests that a plan expects
#pragma once

#include "api/slo.hpp"
#include "api/traffic.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/schedule.hpp"

#include <algorithm>  // max, min
#include <cmath>  // llround, isfinite
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Requests that all selections treat alike, except those of side tasks.
struct request_kind {
    record like{};
    long long count = 0;
};
/// Adds the requests of conversations; `of_turn` has the number of each turn.
inline void add_turns(std::vector<request_kind>& kinds, std::size_t part,
                      const std::vector<long long>& of_turn) {
    for (std::size_t i = 0; i < of_turn.size(); ++i) {
        if (of_turn[i] <= 0) continue;
        kinds.push_back({{}, of_turn[i]});
        kinds.back().like.part = static_cast<unsigned char>(part);
        kinds.back().like.turn = static_cast<int>(i);
    }
}
inline std::vector<request_kind> kinds_by_turns(const std::vector<long long>& of_turn) {
    std::vector<request_kind> kinds;
    add_turns(kinds, 0, of_turn);
    return kinds;
}
/// Adds them step by step, for conversations that are graphs.
class kinds_by_steps {
public:
    void add(const planned_traffic& p, std::size_t conversation, std::size_t steps) {
        for (std::size_t i = 0; i < steps; ++i) {
            const graph_step s = step_of(p, conversation * p.stride + i);
            request_kind& kind = kinds_[{s.turn, s.depth, s.label}];
            kind.like.turn = s.turn;
            kind.like.depth = s.depth;
            kind.like.part = s.label;
            ++kind.count;
        }
    }
    std::vector<request_kind> all() const {
        std::vector<request_kind> kinds;
        for (const auto& [like, kind] : kinds_) kinds.push_back(kind);
        return kinds;
    }

private:
    std::map<std::tuple<int, int, unsigned char>, request_kind> kinds_{};
};
/// Returns the requests of the first `left` measured steps of sessions.
inline std::vector<request_kind> kinds_of_steps(const planned_traffic& p, std::size_t left) {
    kinds_by_steps kinds;
    for (std::size_t of = counted_conversations(p).warmup; left > 0; ++of) {
        const std::size_t steps = std::min(turns_of(p, of), left);
        kinds.add(p, of, steps);
        left -= steps;
    }
    return kinds.all();
}
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
/// Returns the kinds of all of these, none if only the run can tell.
inline std::vector<request_kind> expected_kinds(const planned_traffic& p) {
    const long long n = expected_requests(p);
    if (p.described.is_there)
        return kinds_by_turns({p.described.first_turns, n - p.described.first_turns});
    if (has_graphs(p)) return kinds_of_steps(p, static_cast<std::size_t>(n));
    if (p.stride == 1 && p.parts.empty()) return kinds_by_turns({n});
    std::vector<std::vector<long long>> of_part(std::max<std::size_t>(p.parts.size(), 1),
                                                std::vector<long long>(p.stride, 0));
    std::size_t conversation = counted_conversations(p).warmup;
    for (auto left = static_cast<std::size_t>(n); left > 0; ++conversation) {
        const std::size_t turns = std::min(turns_of(p, conversation), left);
        std::vector<long long>& of_turn = of_part[part_of(p, conversation).which];
        for (std::size_t i = 0; i < turns; ++i) ++of_turn[i];
        left -= turns;
    }
    std::vector<request_kind> kinds;
    for (std::size_t i = 0; i < of_part.size(); ++i) add_turns(kinds, i, of_part[i]);
    return kinds;
}
/// Returns the number of selected requests.
inline long long selected_of(const std::vector<request_kind>& kinds,
                             const std::vector<std::string>& labels, const selection& which) {
    repeat_facts d;
    d.labels = labels;
    const selects selected(which, d);
    long long n = 0;
    for (const request_kind& k : kinds) n += selected.has(k.like) ? k.count : 0;
    return n;
}
inline long long expected_first_turns(const planned_traffic& p) {
    return selected_of(expected_kinds(p), {}, turns(1, 1));
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
