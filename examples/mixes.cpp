// Several workloads at once: what each of them is owed, and how fair a server is between them.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

using namespace llmbench;

static const synthetic brief = {.prompt_tokens = lognormal(256, 0.5), .output_tokens = fixed(64)};

// Requests of one stream, shared out by weights. `.model` is an adapter's name.
TEST_CASE("adapters get what the base model gets") {
    gate({
        .target = simulated(),  // or leave it out, and set LLMBENCH_URL
        .workload = mix({{.name = "base", .weight = 6, .workload = brief},
                         {.name = "sql", .weight = 3, .workload = brief, .model = "sql-lora"},
                         {.name = "urgent", .weight = 1, .workload = brief,
                          .options = request_options{.extra_body = R"({"priority": 1})"}}}),
        .arrivals = poisson(8_rps),
        .requests = 400,
        .slos = {p90(ttft).of("base") <= 300_ms, p90(ttft).of("sql") <= 1.25 * p90(ttft).of("base"),
                 of(error_rate, "urgent") <= 10_pct},
    });
}

// Another workload as the baseline: the same server, times and lengths, without what prompts share.
TEST_CASE("a shared prefix halves the time to the first token") {
    gate({
        .target = simulated(engine{.slots = 256, .prefill_budget = 8192}),
        .baseline = otherwise{.workload = synthetic{.prompt_tokens = fixed(3500), .output_tokens = fixed(1)}},
        .workload = synthetic{.prompt_tokens = fixed(3500), .output_tokens = fixed(1), .shared_prefix = fixed(2625)},
        .arrivals = closed_loop(16),
        .requests = 320,
        .slos = {mean(ttft) <= 0.5 * baseline},
    });
}
