// The kind of file most users have many of: three gates, declarations only. check.sh measures what
// the header costs it.
#include "llmbench.hpp"

using namespace llmbench;

TEST_CASE("interactive") {
    gate({.arrivals = poisson(8_rps),
          .requests = 300,
          .slos = {mean(tpot) <= 25_ms, p90(ttft) <= 200_ms}});
}

TEST_CASE("saturated") {
    const result r = run({.arrivals = closed_loop(16), .duration = 30_s});
    CHECK_SLO(r, output_throughput >= 400_tps);
}

TEST_CASE("not slower than main") {
    gate({.target = endpoint{.url = "http://127.0.0.1:8001"},
          .baseline = endpoint{.url = "http://127.0.0.1:8000"},
          .workload = synthetic{},
          .arrivals = poisson(8_rps),
          .requests = 200,
          .slos = {mean(tpot) <= 1.10 * baseline}});
}
