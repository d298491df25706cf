// Two servers at once over sockets: a load that ends in its middle.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"

#include <algorithm>

using namespace llmbench;
using namespace live;

TEST_CASE("a load at once ends in its middle when all is decided, and its report says when") {
    scenario s = brief(served(), "looks at once");
    s.baseline = served();
    s.pairs = at_once;
    s.arrivals = poisson(2_rps);
    s.requests = 0;
    s.duration = 80_s;
    s.slos = {mean(e2e) <= baseline + 60_s};  // whatever else the machine does
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    const double after =
        reported_gate("looks at once").get("judging").get("decided_after").get<double>();
    CHECK((after == 0.5 || after == 0.75));
    long long first = 0, last = 0;
    for (const record& x : r.requests()) {
        if (x.phase != run_phase::measure) continue;
        if (first == 0) first = x.scheduled_ns;
        first = std::min(first, x.scheduled_ns);
        last = std::max(last, x.scheduled_ns);
    }
    CHECK(last - first < after * 80e9);
    check_rejudged(r, s.slos);
}
