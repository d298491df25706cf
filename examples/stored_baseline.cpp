// The gate against an earlier run: a result of main is kept in a file, branches are compared with it.
//   LLMBENCH_WRITE_BASELINE=1 ./stored_baseline     on main, now and then: measures, writes the file
//   ./stored_baseline                               on a branch: measures, compares
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

using namespace llmbench;

TEST_CASE("chat is not slower than main was") {
    gate({
        .target = simulated(engine{.decode_step = 12_ms}),
        .baseline = stored("baselines/chat.json", 3_pct),
        .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(48)},
        .arrivals = poisson(20_rps),
        .requests = 60,
        .slos = {mean(tpot) <= 1.20 * baseline, p50(e2e) <= 1.25 * baseline},
    });
}
