// The other one has declarations only. Whatever the header defines above its line is in both, so
// a function that should have been inline shows as a duplicate symbol.
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"
#include "gates.hpp"

// Linked first, it comes before any static object of the implementation's file, and nothing here
// includes <iostream>.
static const bool is_early = [] {
    llmbench::gate(tiny_scenario());
    return true;
}();

TEST_CASE("a gate in a second file") {
    using namespace llmbench;
    const result r = run(tiny_scenario());
    CHECK_SLO(r, mean(tpot) <= 10_s);
    CHECK(r.requests().size() > 0);
}
