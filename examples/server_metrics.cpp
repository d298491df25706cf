// Server metrics: the server's queue, cache and times as objectives, its counts as a cross-check,
// and a profile of what failed. Any server with a page of metrics will do, vLLM's or SGLang's;
// accelerators are reported by exporters, endpoint{.telemetry = {"http://host:9400/metrics"}}.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_faults.hpp"
#include "llmbench_simulated.hpp"

using namespace llmbench;

TEST_CASE("requests are taken up at once, and none is put back") {
    gate({
        .target = simulated(engine{.slots = 16, .seed = 3}),  // or set LLMBENCH_URL
        .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(32)},
        .arrivals = poisson(8_rps),
        .duration = 6_s,
        .slos = {
            mean(tpot) <= 40_ms,
            mean(queue_time) <= 50_ms,
            max(queued_requests) <= 8,
            max(kv_cache_usage) <= 95_pct,
            preemptions <= 0,
            advisory(max(server_metric("vllm:num_requests_running")) <= 16),
        },
        .on_fail = profile{},  // of 5 s of the same load, where one of these is missed
    });
}
