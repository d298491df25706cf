// how long sessions took
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/timing_bounds.hpp"

#include <algorithm>  // any_of, max, sort
#include <cstddef>  // size_t
#include <map>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Indices of a session's records in order of planned sends.
using session_steps = std::vector<std::size_t>;

/// The measured sessions of a repeat that were played to their ends, in order of their starts.
/// Sessions that began in the warm-up are not measured.
inline std::vector<session_steps> measured_sessions(const selection& which, const repeat_data& d) {
    if (!d.plays_out) return {};
    const selects selected(which, d);
    std::map<long long, session_steps> by_number;
    for (std::size_t i = 0; i < d.records.size(); ++i)
        by_number[d.records[i].conversation].push_back(i);
    std::vector<session_steps> all;
    for (auto& [number, steps] : by_number) {
        const bool is_out = std::any_of(steps.begin(), steps.end(), [&](std::size_t i) {
            return !is_measured(d.records[i]) || !selected.has(d.records[i]);
        });
        if (is_out) continue;
        std::sort(steps.begin(), steps.end(), [&](std::size_t a, std::size_t b) {
            const long long at = d.records[a].scheduled_ns, other = d.records[b].scheduled_ns;
            return at != other ? at < other : a < b;
        });
        all.push_back(std::move(steps));
    }
    std::sort(all.begin(), all.end(), [&](const session_steps& a, const session_steps& b) {
        const long long at = d.records[a[0]].scheduled_ns, other = d.records[b[0]].scheduled_ns;
        return at != other ? at < other : a[0] < b[0];
    });
    return all;
}

/// Seconds in which steps of each session were due or in flight: the union of their times from
/// planned send to end. Infinite if one failed.
inline std::vector<double> session_times(const statistic_data& what, const repeat_data& d,
                                         timing_bound how = timing_bound::measured) {
    std::vector<double> seconds;
    for (const session_steps& steps : measured_sessions(what.which, d)) {
        long long covered_to = 0, took = 0;
        bool any_failed = false;
        for (const std::size_t i : steps) {
            const record& r = d.records[i];
            any_failed = any_failed || has_failed(r);
            const long long from = std::max(r.scheduled_ns, covered_to);
            covered_to = std::max(covered_to, r.scheduled_ns + times_of(d, r, how).to_end);
            took += std::max(0ll, covered_to - from);
        }
        seconds.push_back(any_failed ? infinity : static_cast<double>(took) / 1e9);
    }
    return seconds;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
