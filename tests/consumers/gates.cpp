// A user's gate file, shared by the consumer projects.
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"
#define LLMBENCH_MAIN  // late, which must work
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

using namespace llmbench;

TEST_CASE("the simulated server answers") {
    gate({
        .target = simulated(engine{}),
        .workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(4)},
        .arrivals = closed_loop(4),
        .warmup = 4,
        .requests = 40,
        .repeats = 2,
        .slos = {mean(tpot) <= 10_s},
    });
}
