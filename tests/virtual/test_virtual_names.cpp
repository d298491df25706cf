// How gates are called in reports, and how many repeats they take: what a reader sees first.
#include "support/live.hpp"

#include <algorithm>
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
int repeats_of(const result& r) {
    int last = -1;
    for (const record& x : r.requests()) last = std::max(last, x.repeat);
    return last + 1;
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

TEST_CASE("an advisory objective costs no repeats, unless some are asked for") {
    scenario s = quick_scenario();
    s.slos = {mean(tpot) <= 1_s, advisory(error_rate <= 0.01_pct)};  // 240 requests cannot show it
    const result r = run(s);
    CHECK(outcome_of(r, "mean(tpot) <= 1 s") == verdict::pass);
    CHECK(outcome_of(r, "advisory(error_rate <= 0.01 %)") == verdict::inconclusive);
    CHECK(repeats_of(r) == 2);
    s.repeats = 3;
    CHECK(repeats_of(run(s)) == 3);
}
