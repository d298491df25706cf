#include "llmbench.hpp"
#include "effects/gates/bisected.hpp"

#include <cmath>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

stored_gate a_good_one() {
    stored_gate g;
    g.statistics["mean(tpot)"] = {0.010, 0.010, 0.010};
    g.statistics["output_throughput"] = {1000, 1000};
    return g;
}

}  // namespace

TEST_CASE("a step's limit is half way from the good commit to the gate's own") {
    const slo relative = half_way(mean(tpot) <= 1.10 * baseline, a_good_one());
    CHECK(relative.factor == doctest::Approx(std::sqrt(1.10)));
    const slo absolute = half_way(mean(tpot) <= 12.1_ms, a_good_one());
    CHECK(absolute.factor == doctest::Approx(1.10));
    CHECK(absolute.at_most);
    const slo lower = half_way(output_throughput >= 810_tps, a_good_one());
    CHECK(lower.factor == doctest::Approx(0.9));
    CHECK_FALSE(lower.at_most);
}
TEST_CASE("what the good commit misses itself is nothing to bisect by") {
    CHECK_THROWS_WITH_AS(half_way(mean(tpot) <= 9_ms, a_good_one()),
                         doctest::Contains("the good commit does not meet \"mean(tpot) <= 9 ms\""),
                         std::invalid_argument);
    CHECK_THROWS_AS(half_way(p99(ttft) <= 9_ms, a_good_one()), std::invalid_argument);
    CHECK_THROWS_AS(half_way(output_throughput >= 1100_tps, a_good_one()), std::invalid_argument);
}
TEST_CASE("how a program ends is good, bad, to be passed over, or the end of a bisection") {
    CHECK(bisect_code_of(gate_outcome::passed) == 0);
    CHECK(bisect_code_of(gate_outcome::failed) == 1);
    CHECK(bisect_code_of(gate_outcome::refused) == 128);
    for (const gate_outcome o :
         {gate_outcome::unfinished, gate_outcome::invalid, gate_outcome::skipped})
        CHECK(bisect_code_of(o) == 125);
}
