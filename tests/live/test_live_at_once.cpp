// Two servers at once over sockets: a load that ends in its middle.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "support/scripted_server.hpp"

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

TEST_CASE("errors of one of two servers at once fail the gate over sockets, after its only load") {
    const auto answers = [](bool fails_every_second) {
        return [=, i = 0](const scripted::request&) mutable -> scripted::answer {
            if (fails_every_second && i++ % 2 == 0)
                return {scripted::send(scripted::json("500 Oh", "{}"))};
            return scripted::healthy(8);
        };
    };
    const scripted::server mine(answers(true)), other(answers(false));
    scenario s = asking(endpoint{.url = mine.url()});
    s.name = "errors at once over sockets";
    s.baseline = endpoint{.url = other.url()};
    s.pairs = at_once;
    s.arrivals = constant(6_rps);
    s.requests = 0;
    s.duration = 40_s;
    s.repeats = 0;
    s.slos = {mean(e2e) <= baseline + 60_s, goodput(e2e <= 20_s) >= 90_pct};
    const result r = run(s);
    CHECK(outcome_of(r, "goodput(e2e <= 20 s) >= 90 %") == verdict::fail);
    CHECK(outcome_of(r, "error_rate <= 1 %") == verdict::fail);  // the guard
    CHECK(reported_gate(s.name).get("outcome").to_str() == "failed");
    check_rejudged(r, s.slos);
}
