#define LLMBENCH_MAIN  // this one file carries the implementation and main()
#include "llmbench.hpp"

using namespace llmbench;

TEST_CASE("chat stays interactive at 8 requests per second") {
    gate({
        .workload = synthetic{.prompt_tokens = lognormal(512, 0.6), .output_tokens = fixed(128)},
        .arrivals = poisson(8_rps),
        .requests = 300,
        .slos =
            {
                mean(tpot) <= 25_ms,
                p90(ttft) <= 200_ms,
                goodput(ttft <= 300_ms && tpot <= 30_ms) >= 90_pct,
                advisory(p99(ttft) <= 450_ms),
            },
    });
}

TEST_CASE("the server sustains 400 tokens per second when saturated") {
    const result r = run({.workload = dataset{.path = "sharegpt.json", .format = sharegpt},
                          .arrivals = closed_loop(16),
                          .duration = 30_s});
    CHECK_SLO(r, output_throughput >= 400_tps);
    WARN_SLO(r, p90(e2e) <= 20_s);
    CHECK(r.requests().size() > 100);  // plain doctest assertions mix freely
}

TEST_CASE("this branch is not slower than main") {
    gate({.target = endpoint{.url = "http://127.0.0.1:8001"},
          .baseline = endpoint{.url = "http://127.0.0.1:8000"},
          .workload = synthetic{},
          .arrivals = poisson(8_rps),
          .requests = 200,
          .slos = {mean(tpot) <= 1.10 * baseline, p50(ttft) <= 1.10 * baseline}});
}
