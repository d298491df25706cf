// doctest's own main with our implementation: it knows green and red, and nothing of our exit codes.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#define LLMBENCH_IMPLEMENT
#include "scenarios.hpp"

#include <iostream>  // what is told

// Before main(), of which doctest never hears.
static const bool early = [] {
    if (std::getenv("GATE_BEFORE_MAIN")) gate(quick(simulated(fast_engine()), out_of_reach()));
    return true;
}();

TEST_CASE("pass") { gate(quick(simulated(fast_engine()), within_reach())); }

TEST_CASE("miss") { gate(quick(simulated(fast_engine()), out_of_reach())); }

// main() does not ask for the exit code: it is told when static objects are destroyed.
TEST_CASE("told at the end") {
    gate(quick(simulated(fast_engine()), within_reach()));
    on_report([](const report_view& r) { CHECK_FALSE(r.exit_code != 0); });
    on_report([](const report_view& r) { std::cout << "told of " << r.exit_code << "\n"; });
}

TEST_CASE("exit after a miss") {
    gate(quick(simulated(fast_engine()), out_of_reach()));
    std::exit(0);
}

TEST_CASE("many threads") {
    scenario s = quick(served(), answered());
    s.client.threads = 64;
    gate(s);
}

TEST_CASE("server gone") {
    engine e = fast_engine();
    e.faults.stop_after = 60;
    gate(quick(simulated(e), within_reach()));
}

TEST_CASE("nothing but errors") {
    engine e = fast_engine();
    e.faults.error_rate = 50_pct;
    gate(quick(simulated(e), {}));
}

TEST_CASE("refused") {
    scenario s = quick(simulated(fast_engine()), {output_throughput >= 400_tps});
    s.arrivals = poisson(20_rps);
    gate(s);
}

TEST_CASE("cannot be measured in time") {
    scenario s = quick(simulated(fast_engine()), within_reach());
    s.arrivals = constant(1_rps);
    gate(s);
}

TEST_CASE("stored baseline") { gate(compared_with_stored(5_ms)); }

TEST_CASE("four times slower than stored") { gate(compared_with_stored(20_ms)); }
