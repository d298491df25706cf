// One gate on the simulated server, where the package has asio for it: it passes, in virtual time.
#include "llmbench.hpp"
#if __has_include(<asio.hpp>)
#include "llmbench_simulated.hpp"
#endif

using namespace llmbench;

TEST_CASE("a package that is whole") {
#if __has_include(<asio.hpp>)
    gate({.target = simulated(),
          .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(16)},
          .arrivals = poisson(4_rps),
          .requests = 50,
          .slos = {mean(tpot) <= 100_ms}});
#else
    CHECK(types::text(slo(p90(ttft) <= 300_ms).text()) == "p90(ttft) <= 300 ms");
#endif
}
