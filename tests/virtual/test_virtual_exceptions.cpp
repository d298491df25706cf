// Objectives that are advisory until a day, in gates of a world in which it is 2001-09-09.
#include "support/environment.hpp"
#include "support/rejudged.hpp"

#include <string>

using namespace llmbench;
using namespace live;

namespace {
heard_run heard_until(const char* date, const char* name) {
    scenario s = brief(simulated(engine_of(4_ms)), name);
    s.repeats = 3;
    s.slos = {mean(tpot) <= 10_ms, advisory(mean(tpot) <= 1_ms).until(date)};
    return heard_of(s);
}
bool is_advisory(const result& r) { return r.verdicts()[1].objective.is_advisory; }
}  // namespace

TEST_CASE("an objective that is missed blocks from its day on, and says so from a week before") {
    const heard_run far = heard_until("2001-09-17", "far");
    CHECK(far.result.verdicts()[1].outcome == verdict::fail);
    CHECK(is_advisory(far.result));
    CHECK(!holds(far.said, "advisory until"));
    CHECK(reported_gate("far").get("slos").get(1).get("advisory_until").to_str() == "2001-09-17");

    const heard_run near = heard_until("2001-09-16", "near");
    CHECK(is_advisory(near.result));
    CHECK(holds(texts::unwrapped(near.said),
                "mean(tpot) <= 1 ms is advisory until 2001-09-16: it blocks again in 7 days"));
    for (const char* file : {"report.html", "summary.md"})
        CHECK(holds(content_of(report_file(file)), "it blocks again in 7 days"));

    const heard_run over = heard_until("2001-09-09", "over");
    CHECK(over.result.verdicts()[1].outcome == verdict::fail);
    CHECK(!is_advisory(over.result));
    CHECK(holds(texts::unwrapped(over.said), "mean(tpot) <= 1 ms was advisory until 2001-09-09: it blocks again"));
}

TEST_CASE("what is asserted of a run is advisory until its day, too") {
    const heard console;
    const result r = heard_until("2001-09-12", "asserted").result;
    CHECK_SLO(r, advisory(mean(tpot) <= 1_ms).until("2001-09-10"));  // a warning
    CHECK_SLO(r, advisory(mean(tpot) <= 10_ms).until("2001-09-08"));
    CHECK(holds(texts::unwrapped(console.text()), "mean(tpot) <= 10 ms was advisory until 2001-09-08"));
    CHECK(reported_gate("asserted").get("outcome").to_str() == "passed");
}
