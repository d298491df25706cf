// Two gates against the built-in simulated server: no GPU, no model, no other process.
// The second one fails on purpose, so that you see what a red build says.
#define LLMBENCH_MAIN  // this one file carries the implementation and main()
#include "llmbench.hpp"

using namespace llmbench;

static const scenario chat = {
    .target = simulated(),  // your own server: remove this line and set LLMBENCH_URL
    .workload = synthetic{.prompt_tokens = lognormal(256, 0.5), .output_tokens = fixed(48)},
    .arrivals = poisson(20_rps),
    .requests = 300,
};

TEST_CASE("chat stays interactive at 20 requests per second") {
    scenario s = chat;
    s.slos = {
        mean(tpot) <= 25_ms,
        p90(ttft) <= 2_s,
        goodput(ttft <= 3_s && tpot <= 30_ms) >= 90_pct,
        advisory(p99(ttft) <= 500_ms),
    };
    gate(s);
}

TEST_CASE("fails on purpose: an engine 60 percent slower misses the same limit") {
    scenario s = chat;
    s.target = simulated(engine{.decode_step = 19_ms, .step_per_sequence = 0.3_ms});
    s.slos = {mean(tpot) <= 25_ms};
    gate(s);
}
