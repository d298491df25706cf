// The other one has declarations only. Whatever the header defines above its line is in both, so
// a function that should have been inline shows as a duplicate symbol.
#include "llmbench.hpp"
#include "gates.hpp"

TEST_CASE("a gate in a second file") {
    using namespace llmbench;
    const result r = run(tiny_scenario());
    CHECK_SLO(r, mean(tpot) <= 10_s);
    CHECK(r.requests().size() > 0);
}
