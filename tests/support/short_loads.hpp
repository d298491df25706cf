// Loads of forty short requests, and whether they went out as planned.
#pragma once

#include "support/live.hpp"

#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace live {

/// A token takes 2 ms; nothing is left to chance.
inline const engine quick = {.slots = 64,
                             .decode_step = 2_ms,
                             .step_per_sequence = 0_ms,
                             .prefill_per_token = 0_ms,
                             .jitter = 0};

/// 40 short requests, once.
inline scenario short_requests(const arrival_pattern& arrivals) {
    return {.target = simulated(quick),
            .workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(3)},
            .arrivals = arrivals,
            .warmup = 0,
            .requests = 40,
            .repeats = 1,
            .limits = {.first_event = 20_s, .between_events = 20_s, .total = 40_s, .drain = 20_s}};
}

using records = std::vector<record>;
inline records phase_of(const records& all, run_phase phase) {
    records out;
    for (const record& r : all)
        if (r.phase == phase) out.push_back(r);
    return out;
}
inline std::set<std::size_t> indices(const records& all) {
    std::set<std::size_t> out;
    for (const record& r : all) {
        const std::string id = r.id;
        CHECK(out.insert(std::stoul(id.substr(id.rfind('-') + 1))).second);
    }
    return out;
}
inline std::set<std::size_t> from_0_to(std::size_t n) {
    std::set<std::size_t> out;
    for (std::size_t i = 0; i < n; ++i) out.insert(i);
    return out;
}

inline long long ns_of(double seconds) { return std::llround(seconds * 1e9); }

/// Each at its time, and none before it.
inline void check_follows(const std::vector<record>& all, const std::vector<double>& due) {
    REQUIRE(all.size() == due.size());
    const long long start = all[0].scheduled_ns - ns_of(due[0]);
    bool as_planned = true, none_early = true;
    for (std::size_t i = 0; i < all.size(); ++i) {
        as_planned &= all[i].scheduled_ns == start + ns_of(due[i]);
        none_early &= all[i].dispatched_ns >= all[i].scheduled_ns;
    }
    CHECK(as_planned);
    CHECK(none_early);
}

}  // namespace live
