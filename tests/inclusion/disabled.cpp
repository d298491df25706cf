// DOCTEST_CONFIG_DISABLE turns the tests of a program into nothing; it must still compile.
#define DOCTEST_CONFIG_DISABLE
#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"
#include "gates.hpp"

TEST_CASE("never runs") {
    using namespace llmbench;
    const result r = run(tiny_scenario());
    CHECK_SLO(r, mean(tpot) <= 10_s);
}

int main() {}
