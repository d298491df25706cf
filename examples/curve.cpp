// A server by its load: throughput against TTFT and TPOT, where its capacity lies, what its tokens cost. Two
// engines of other batch sizes, in virtual time: some seconds. In your CI leave `.target` and `.baseline` out.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_compare.hpp"
#include "llmbench_simulated.hpp"

using namespace llmbench;

TEST_CASE("one replica, by load") {
    const curve_result c = curve(
        {
            .target = simulated(engine{.slots = 32}),
            .baseline = simulated(engine{.slots = 16}),
            .workload = synthetic{.prompt_tokens = lognormal(512, 0.6), .output_tokens = fixed(128)},
            .requests = 120,
            .slos = {p90(ttft) <= 500_ms, mean(tpot) <= 30_ms},
            .cost = usd_per_hour(2.5),
        },
        {1_rps, 2_rps, 4_rps, 8_rps, 12_rps, 16_rps});
    MESSAGE(c);
    WARN(c.low() >= 4);  // 0 where nothing is judged: in a calibration, a rehearsal
    WARN(c.high() <= 16);
    CHECK_SLO(c[4_rps], mean(tpot) <= 30_ms);
}

TEST_CASE("its tokens are cheap where it is full") {
    gate({
        .target = simulated(engine{.slots = 32}),
        .arrivals = closed_loop(32),
        .requests = 320,
        .slos = {cost_per_million_tokens <= 0.8_usd},
        .cost = usd_per_hour(2.5),
    });
}
