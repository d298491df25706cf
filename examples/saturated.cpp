// How much a server gives when it always has work. A throughput floor needs a load that saturates:
// below that it would only measure how often we ask.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

using namespace llmbench;

static const scenario busy = {
    .target = simulated(engine{.decode_step = 6_ms, .seed = 2}),  // or set LLMBENCH_URL
    .workload = synthetic{.prompt_tokens = uniform(32, 96), .output_tokens = fixed(24)},
    .warmup = 16,
    .requests = 160,
};

TEST_CASE("sixteen users get at least 800 tokens per second") {
    scenario s = busy;
    s.arrivals = closed_loop(16);  // each sends its next request when it has its answer
    s.slos = {output_throughput >= 800_tps, p10(decode_speed) >= 40_tps, p90(e2e) <= 1_s};
    gate(s);
}

TEST_CASE("a batch that arrives at once is through in time") {
    scenario s = busy;
    s.arrivals = all_at_once();
    s.slos = {output_throughput >= 400_tps, max(e2e) <= 10_s};
    gate(s);
}
