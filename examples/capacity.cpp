// The highest load that still meets the objectives, by hand: rising rates until one is missed.
// What it finds is a step of this ladder, not a number between two steps.
#define LLMBENCH_MAIN
#include "llmbench.hpp"

#include <cstdio>

using namespace llmbench;

TEST_CASE("the server holds at least 20 requests per second") {
    double held = 0;
    for (const double rate : {20.0, 40.0, 80.0}) {
        char name[64];
        std::snprintf(name, sizeof name, "chat at %g requests per second", rate);
        const result r = run({
            .name = name,
            .target = simulated(engine{.slots = 8, .seed = 3}),  // or set LLMBENCH_URL
            .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(24)},
            .arrivals = poisson(request_rate(rate)),
            .requests = 40,
            .repeats = 2,
            .slos = {p90(ttft) <= 250_ms, mean(tpot) <= 30_ms},
        });
        bool holds = true;
        for (const slo_verdict& v : r.verdicts()) holds = holds && v.outcome == verdict::pass;
        if (!holds) break;
        held = rate;
    }
    MESSAGE("holds ", held, " requests per second");
    CHECK(held >= 20);
}
