// A server by the depth of its context, as llama-bench's -d has it: one gate a length, and a table of their
// times. In virtual time: some seconds. Without C++: llmbench run --sweep prompt-tokens=512,2048,8192,32768
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

#include <cstdio>
#include <string>

using namespace llmbench;

TEST_CASE("answers stay quick at every depth") {
    std::string table = "     depth   mean(ttft)   mean(tpot)\n";
    for (const long long depth : {512, 2048, 8192, 32768}) {
        const result r = run({
            .name = types::text("at depth ") + std::to_string(depth).c_str(),
            .target = simulated(engine{.max_model_len = 65536}),  // or leave it out, and set LLMBENCH_URL
            .workload = synthetic{.prompt_tokens = fixed(depth), .output_tokens = fixed(64)},
            .arrivals = closed_loop(1),
            .warmup = 2,
            .requests = 20,
            .repeats = 2,
        });
        char line[60];
        std::snprintf(line, sizeof line, "%10lld %9.1f ms %9.2f ms\n", depth, 1e3 * r.measured(mean(ttft)),
                      1e3 * r.measured(mean(tpot)));
        table += line;
        CHECK_SLO(r, mean(tpot) <= 50_ms);
        if (depth <= 8192) CHECK_SLO(r, mean(ttft) <= 2_s);
    }
    std::fputs(table.c_str(), stdout);
}
