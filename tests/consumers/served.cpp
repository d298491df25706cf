// Gates for the server at LLMBENCH_URL, which llmbench_add_gate() starts.
#include "llmbench.hpp"

using namespace llmbench;

TEST_CASE("the server of the suite answers") {
    gate({
        .workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(4)},
        .arrivals = closed_loop(4),
        .warmup = 4,
        .requests = 40,
        .repeats = 2,
        .slos = {mean(tpot) <= 10_s},
    });
}
