// Gates whose records were made up, as many as it takes: what a page looks like without waiting for
// a server. The same arguments give the same gate.
#pragma once

#include "llmbench.hpp"
#include "core/measured/repeat.hpp"
#include "core/planning/plan.hpp"
#include "support/sample_gates.hpp"

#include <cmath>
#include <string>
#include <variant>
#include <vector>

namespace synthetic_gates {

namespace lb = llmbench::detail;

/// What a made-up server is like.
struct server {
    double ttft_s = 0.060, gap_s = 0.012;  // medians
    double failed = 0;                     // share of requests
    std::string error = "HTTP 503: overloaded";
    double repeat_noise = 0.02;
};

lb::repeat_data repeat_of(const lb::plan& p, const server& s, llmbench::run_variant variant, int index);

/// The scenario, measured `repeats` times on made-up servers and judged.
sample_gates::test_gate gate_of(const std::string& name, const llmbench::scenario& s,
                                const server& candidate, int repeats,
                                const server* baseline = nullptr);

}  // namespace synthetic_gates
