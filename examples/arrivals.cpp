// How requests come: in stages, by users who join one after the other, in bursts, within a cap.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

using namespace llmbench;

static const any_target server = simulated(engine{.decode_step = 4_ms});  // or set LLMBENCH_URL
static const synthetic short_chats{.prompt_tokens = uniform(50, 150), .output_tokens = fixed(32)};

TEST_CASE("the rate doubles twice and latency holds") {
    gate({
        .target = server,
        .workload = short_chats,
        .arrivals = steps({{5_rps, 2_s}, {10_rps, 2_s}, {20_rps, 2_s}}),
        .slos = {p90(ttft) <= 2_s, mean(tpot) <= 60_ms},
    });
}

TEST_CASE("twenty users come within two seconds; each reads its answer and asks again") {
    gate({
        .target = server,
        .workload = short_chats,
        .arrivals = closed_loop(20).think(500_ms).ramp(2_s),
        .duration = 4_s,
        .slos = {p90(ttft) <= 2_s, error_rate <= 5_pct},
    });
}

TEST_CASE("bursts wait behind a cap of sixteen in flight, and the waiting counts") {
    gate({
        .target = server,
        .workload = short_chats,
        .arrivals = gamma(12_rps, 0.3).max_in_flight(16),  // 1 would be as even as Poisson
        .requests = 50,
        .slos = {mean(ttft) <= 2_s, goodput(ttft <= 3_s && tpot <= 80_ms) >= 80_pct},
    });
}
