// What the live tests share: scenarios that take a second or two on the simulated server.
#pragma once
#include <doctest/doctest.h>

#include "llmbench.hpp"

#include <cmath>
#include <string>

namespace live {
using namespace llmbench;

/// Times are an order of magnitude over a busy machine's hiccups, so that a late thread changes
/// nothing, and a repeat still takes a second.
inline engine quick_engine() {
    engine e;
    e.decode_step = 10_ms;
    e.step_per_sequence = 0.1_ms;
    e.prefill_per_token = 0.02_ms;
    return e;
}
inline scenario quick_scenario(const any_target& target = simulated(quick_engine())) {
    scenario s;
    s.target = target;
    s.workload = synthetic{.prompt_tokens = uniform(32, 96), .output_tokens = fixed(12)};
    s.arrivals = poisson(80_rps);
    s.requests = 120;
    return s;
}
inline verdict outcome_of(const result& r, const std::string& slo) {
    for (const slo_verdict& v : r.verdicts())
        if (std::string(v.what.text()) == slo) return v.outcome;
    FAIL("no verdict on ", slo);
    return verdict::skipped;
}
inline std::string reason_of(const result& r, const std::string& slo) {
    for (const slo_verdict& v : r.verdicts())
        if (std::string(v.what.text()) == slo) return v.reason;
    return {};
}
}  // namespace live
