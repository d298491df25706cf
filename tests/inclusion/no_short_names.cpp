// With doctest's short names off, every short name is the user's own, CHECK_SLO included; so is
// main(), to which only our implementation is added, asked for as late as can be.
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#define DOCTEST_CONFIG_IMPLEMENT
#define CHECK mine
#define REQUIRE mine
#define INFO mine
#define CAPTURE mine
#define TEST_CASE mine
#define CHECK_SLO mine
#define REQUIRE_SLO mine
#define WARN_SLO mine
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"
#include "gates.hpp"

DOCTEST_TEST_CASE("long names") {
    using namespace llmbench;
    const result r = run(tiny_scenario());
    LLMBENCH_CHECK_SLO(r, mean(tpot) <= 10_s);
    LLMBENCH_REQUIRE_SLO(r, goodput(ttft <= 10_s && tpot <= 10_s) >= 1_pct);
    LLMBENCH_WARN_SLO(r, advisory(p50(ttft) <= 10_s));
}

DOCTEST_TEST_CASE("a gate under another main") { llmbench::gate(tiny_scenario()); }

int main(int argc, char** argv) { return doctest::Context(argc, argv).run(); }

#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"
