// Profiles of failed gates: which are refused, and which load is profiled.
#include "extensions/faults/api.hpp"
#include "extensions/faults/core/tasks.hpp"

#include "llmbench.hpp"
#include "core/planning/planning.hpp"
#include "support/scenarios.hpp"
#include "support/texts.hpp"
#include "extensions/capacity/api.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;

namespace {

std::string refusal_of_profile(const profile& p) {
    return refusal_after([&](scenario& s) { s.on_fail = p; });
}
scenario profiled_for(time_span t, const arrival_pattern& load) {
    scenario s = sound();
    s.arrivals = load;
    s.on_fail = profile{.duration = t};
    return s;
}

}  // namespace

TEST_CASE("a profile is asked for by two commands or by none") {
    CHECK(refusal_of_profile({}) == "");
    CHECK(refusal_of_profile({.start = "perf record", .stop = "perf stop"}) == "");
    CHECK_REFUSED(refusal_of_profile({.start = "perf record"}),
                  "on_fail: profile.start is \"perf record\" and profile.stop is empty",
                  "give both commands");
    CHECK_REFUSED(refusal_of_profile({.stop = "perf stop"}),
                  "on_fail: profile.stop is \"perf stop\" and profile.start is empty");
}

TEST_CASE("a profile lasts up to a minute") {
    for (const double s : {0.0, -1.0, 60.1, inf, nan_value})
        CHECK_REFUSED(refusal_of_profile({.duration = time_span::from_seconds(s)}),
                      "on_fail: profile.duration is ", "above 0 and at most 60 s");
    CHECK(refusal_of_profile({.duration = 1_min}) == "");
    CHECK((*scenario{.on_fail = profile{}}.on_fail).duration.seconds() == 5);
}

TEST_CASE("a search has no load that failed") {
    for (const auto use : {scenario_use::gate, scenario_use::find_capacity})
        CHECK_REFUSED(texts::refusal_of([&] {
                          scenario s = profiled_for(5_s, poisson(up_to(64_rps)));
                          s.slos = {p90(ttft) <= 1_s};
                          if (use == scenario_use::gate) s.slos = {p90(ttft) <= 1_s,
                                                                   capacity >= 3_rps};
                          planned(s, 1, {}, use);
                      }),
                      "on_fail is a profile of the load that failed", "poisson(up to 64 req/s)",
                      "gate one load");
}

TEST_CASE("the same load is profiled, for as long as the profile lasts") {
    scenario s = profiled_for(3_s, poisson(8_rps));
    s.warmup = 20;
    const plan p = planned(s, 1), q = profiled(p);
    CHECK(q.sent->seed == p.sent->seed);
    CHECK(q.sent->arrivals.rate == 8);
    CHECK(q.sent->workload_text == p.sent->workload_text);
    CHECK(q.sent->warmup_requests == 0);
    CHECK(q.sent->requests == 0);
    CHECK(q.sent->duration_s == 3);
    const schedule sent = schedule_of(q);
    CHECK(sent.at.size() > 5);
    CHECK(sent.at.back() <= 3);

    scenario timed = profiled_for(2_s, closed_loop(4).ramp(60_s));
    timed.warmup = 10_s;
    const plan users = profiled(planned(timed, 1));
    CHECK(users.sent->arrivals.users == 4);
    CHECK(users.sent->warmup_s == 0);
    // Else it would be a profile of one or two of them.
    CHECK(users.sent->arrivals.users_ramp_s == 0);
    CHECK(users.sent->duration_s == 2);

    // A batch has a size and no duration: the profile's end cuts it off.
    const plan batch = profiled(planned(profiled_for(2_s, all_at_once()), 1));
    CHECK(batch.sent->requests == sound().requests);
    CHECK(batch.sent->warmup_requests == 0);
    CHECK(batch.sent->duration_s == 0);
}
