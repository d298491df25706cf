// The pull-request gate: this branch's server against main's, on the same traffic, in turns.
// Both are simulated here; in CI they are two `process{...}` or two `endpoint{...}`.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

using namespace llmbench;

TEST_CASE("this branch is not slower than main") {
    gate({
        .target = simulated(engine{.decode_step = 6_ms, .seed = 2}),
        .baseline = simulated(engine{.decode_step = 6_ms, .seed = 3}),
        .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(16)},
        .arrivals = poisson(50_rps),
        .requests = 100,
        .slos = {mean(tpot) <= 1.10 * baseline, p50(ttft) <= 1.10 * baseline},
    });
}
