// How gates are called in reports: what a reader sees first.
#include "support/live.hpp"

#include <string>

using namespace llmbench;
using namespace live;

namespace {
scenario small_one() {
    scenario s = quick_scenario();
    s.requests = 20;
    s.repeats = 1;
    return s;
}
}  // namespace

TEST_CASE("gates are named after their subcases") {
    const std::string name = "gates are named after their subcases";
    SUBCASE("small") {
        SUBCASE("deep") { CHECK(run(small_one()).name() == name + " / small / deep"); }
        CHECK(true);
    }
    SUBCASE("in a loop") {
        CHECK(run(small_one()).name() == name + " / in a loop");
        CHECK(run(small_one()).name() == name + " / in a loop (2)");
        scenario own = small_one();
        own.name = "its own";
        CHECK(run(own).name() == "its own");
    }
}
