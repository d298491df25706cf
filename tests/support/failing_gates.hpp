// Gates that fail, so that their servers are asked for a profile.
#pragma once

#include "support/environment.hpp"
#include "support/live.hpp"
#include "llmbench_faults.hpp"

#include <string>

namespace live {

/// Three repeats of twenty requests that nobody answers in a microsecond.
inline scenario failing_at(const std::string& url, const std::string& name) {
    return {.name = name,
            .target = endpoint{.url = url, .model = "simulated"},
            .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(4)},
            .arrivals = closed_loop(4),
            .warmup = 0,
            .requests = 20,
            .repeats = 3,
            .slos = {mean(e2e) <= 0.001_ms},
            .on_fail = profile{.duration = 0.5_s}};
}
inline picojson::value reported_profile(const std::string& gate) {
    return reported_gate(gate).get("profile");
}
inline std::string said_of(const result& r, const heard& console) {
    CAPTURE(console.text());
    CHECK(outcome_of(r, "mean(e2e) <= 0.001 ms") == verdict::fail);
    return console.text();
}

}  // namespace live
