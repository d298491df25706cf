// What a server's settings do, beside each other: chunked prefill (Agrawal et al., OSDI 2024). A
// small token budget a step lets long prompts disturb the answers of others less, and takes longer
// to the first token. Takes a minute.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_compare.hpp"
#include "llmbench_simulated.hpp"

using namespace llmbench;

TEST_CASE("chunked prefill") {
    const auto budget = [](int tokens) {
        // Of a real server: process{.command = "vllm serve m --max-num-batched-tokens 512 --port {port}"}
        return simulated(engine{.prefill_budget = tokens, .seed = 3});
    };
    const comparison_result c = compare(
        {
            .workload = synthetic{.prompt_tokens = fixed(1500), .output_tokens = fixed(32)},
            .arrivals = poisson(4_rps),
            .warmup = 2,
            .requests = 16,
            .slos = {mean(ttft) <= 500_ms, p95(itl) <= 60_ms},
        },
        {{"budget 256", budget(256)}, {"budget 1024", budget(1024)}, {"budget 4096", budget(4096)}});
    MESSAGE(c);
    WARN(c.best(p95(itl)) == "budget 256");       // what it is made for
    WARN(c.ratio("budget 256", "budget 4096", mean(ttft)).low > 1);  // and what it costs
    CHECK_SLO(c["budget 256"], mean(ttft) <= 5_s);
}
