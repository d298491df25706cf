// One gate on the simulated server: it passes, in virtual time.
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

using namespace llmbench;

TEST_CASE("a package that is whole") {
    gate({.target = simulated(),
          .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(16)},
          .arrivals = poisson(4_rps),
          .requests = 50,
          .slos = {mean(tpot) <= 100_ms}});
}
