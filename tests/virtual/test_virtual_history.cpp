// Gates and the history of main: what becomes a night, and 60 mornings of a server's life.
#include "support/environment.hpp"
#include "support/rejudged.hpp"

using namespace llmbench;
using namespace live;

TEST_CASE("what has no verdict of its own is no night, and says so") {
    const variable appends("LLMBENCH_HISTORY", "append");
    scenario s = brief(simulated(engine_of(15_ms)), "a run and no night");
    CHECK(holds(heard_of(s).said, "not added to the history: run() has no verdict of its own, and "
                                  "nights are of gates"));
    s.name = "compared and no night";
    s.target = {};
    const heard console;
    compare(s, {{"one", simulated(engine_of(15_ms))}, {"other", simulated(engine_of(20_ms))}});
    CHECK(holds(console.text(), "not added to the history: compare() has no verdict of its own"));
}
