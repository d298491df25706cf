// How much load a server carries under its objectives: as a gate of one load, and as an interval.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_capacity.hpp"
#include "llmbench_simulated.hpp"

using namespace llmbench;

// Probes of 20 s are the default; these are short so that the example is.
TEST_CASE("the server carries 12 requests per second") {
    gate({
        .target = simulated(engine{.slots = 8, .seed = 3}),  // or set LLMBENCH_URL
        .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(24)},
        .arrivals = poisson(up_to(64_rps)),
        .requests = 60,
        .duration = 3_s,
        .slos = {p90(ttft) <= 250_ms, mean(tpot) <= 30_ms, capacity >= 12_rps},
    });
}

TEST_CASE("how many users the server carries") {
    const capacity_result c = find_capacity({
        .target = simulated(engine{.slots = 8, .seed = 3}),
        .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(24)},
        .arrivals = closed_loop(up_to(64)),
        .requests = 60,
        .duration = 3_s,
        .slos = {p90(ttft) <= 250_ms, mean(tpot) <= 30_ms},
    });
    MESSAGE(c);
    CHECK_SLO(c, advisory(capacity >= 4_users));
}
