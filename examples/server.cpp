// Gates for a server that runs already:
//   LLMBENCH_URL=http://127.0.0.1:8000 ./server
// The limits are loose; tighten them to what your server should hold.
#define LLMBENCH_MAIN
#include "llmbench.hpp"

using namespace llmbench;

TEST_CASE("chat answers fast enough at 4 requests per second") {
    gate({
        .workload = synthetic{.prompt_tokens = lognormal(128, 0.5), .output_tokens = fixed(64)},
        .arrivals = poisson(4_rps),
        .requests = 60,
        .slos = {
            p90(ttft) <= 2_s,
            mean(tpot) <= 100_ms,
            goodput(ttft <= 3_s && tpot <= 150_ms) >= 90_pct,
        },
    });
}

TEST_CASE("the server keeps producing with eight users") {
    const result r = run({
        .workload = synthetic{.prompt_tokens = lognormal(128, 0.5), .output_tokens = fixed(64)},
        .arrivals = closed_loop(8),
        .duration = 10_s,
    });
    CHECK_SLO(r, output_throughput >= 20_tps);
    WARN_SLO(r, p50(e2e) <= 10_s);
    CHECK(r.requests().size() > 20);  // plain doctest assertions mix freely
}
