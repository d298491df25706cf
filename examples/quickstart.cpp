// Two gates against the built-in simulated server: no GPU, no model. The load of the first is
// computed, not waited for. The second goes over HTTP to a process, in real time, and fails on
// purpose, so that you see what a red build says.
#define LLMBENCH_MAIN  // this one file carries the implementation and main()
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

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

TEST_CASE("fails on purpose: a server half as fast misses the same limit") {
    scenario s = chat;
    // Started before the load, ended after it. Your own server can be started like this, too.
    s.target = process{.command = "../llmbench serve --port {port} --slots 64 --decode-step 30ms"};
    s.slos = {mean(tpot) <= 25_ms};
    gate(s);
}
