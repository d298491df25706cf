// Capacities of engines whose knee is known: as a gate, as an interval, in reports.
#include "support/loads.hpp"

#include <cmath>
#include <string>

using namespace llmbench;
using namespace live;

TEST_CASE("a gate probes at the load that it names, and says what decides it") {
    scenario s = load_on(engine_with(8), "carries what it names");
    s.arrivals = poisson(up_to(200_rps));
    s.slos = {p50(ttft) <= 400_ms, p50(tpot) <= 60_ms, advisory(capacity >= 8_rps),
              advisory(capacity >= 120_rps)};
    const result r = gate(s);
    REQUIRE(r.verdicts().size() == 2);
    const slo_verdict light = r.verdicts()[0], heavy = r.verdicts()[1];
    check_rejudged(r, s.slos);
    CHECK(light.outcome == verdict::pass);
    CHECK(holds(light.reason, "carries at least 8 req/s"));
    CHECK(holds(light.reason, "p50("));
    CHECK(light.repeats == 2);
    CHECK(heavy.outcome == verdict::fail);
    CHECK(heavy.limit == 120);
    CHECK(heavy.estimate.low == 8);
    // What was measured at the load that it carries, not at all of them together.
    CHECK(r.measured(p50(ttft)) < 0.4);

    const picojson::value g = reported_gate("carries what it names");
    const picojson::value found = g.get("capacity");
    CHECK(found.get("unit").to_str() == "requests/s");
    CHECK(found.get("low").get<double>() == 8);
    CHECK(found.get("high").get<double>() == 120);
    const auto& probes = found.get("probes").get<picojson::array>();
    CHECK(probes.size() == g.get("candidate").get("repeats").get<picojson::array>().size());
    CHECK(probes.front().get("part").to_str() == "asked");
}

TEST_CASE("a server with half the slots is shown to carry less") {
    const capacity_result wide = find_capacity(users_on(engine_with(8), "eight slots"));
    const capacity_result narrow = find_capacity(users_on(engine_with(4), "four slots"));
    INFO(wide, "\n", std::string(wide.explain().c_str()));
    INFO(narrow, "\n", std::string(narrow.explain().c_str()));
    CHECK(wide.low() >= 4);
    CHECK(narrow.low() >= 1);
    CHECK(wide.high() <= 40);
    CHECK(narrow.high() <= wide.low() + 1);
    CHECK(wide.low() == std::floor(wide.low()));
    CHECK(wide.probes() <= 16);
    CHECK(holds(wide.limiting_objective(), "p50(ttft)"));
    CHECK(holds(wide.line(), "capacity in ["));
    const slo_list slos = {p50(ttft) <= 150_ms, capacity >= 1_users, capacity >= 40_users};
    const auto again = judge(report_file("records.jsonl"), slos, "eight slots");
    REQUIRE(again.size() == 2);
    check_same(again[0], judge(wide, slos[1]));
    check_same(again[1], judge(wide, slos[2]));
    CHECK(again[0].outcome == verdict::pass);
    CHECK(again[1].outcome == verdict::fail);
}

TEST_CASE("a time budget ends a search with what was shown by then") {
    scenario s = users_on(engine_with(8), "cut short");
    const variable budget("LLMBENCH_TIME_BUDGET", budget_from_now(9));
    const capacity_result c = find_capacity(s);
    CHECK(c.probes() < 16);
    const slo_verdict v = judge(c, capacity >= 30_users);
    CHECK(v.outcome != verdict::pass);
    if (v.outcome == verdict::inconclusive) CHECK(holds(v.reason, "LLMBENCH_TIME_BUDGET"));
}

/// Eight slots and 10 ms a token: answers of 64 * exp(0.5) tokens on the average are 7.6 a second.
static scenario varied_lengths(const std::string& name, long long seed) {
    engine e = engine_of(10_ms);
    e.slots = 8;
    scenario s = quick_scenario(simulated(e));
    s.name = name + std::to_string(seed);
    s.workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = lognormal(64, 1)};
    s.arrivals = poisson(up_to(64_rps));
    s.warmup = 0;
    s.requests = 0;
    s.duration = 0_s;
    s.seed = seed;
    s.slos = {p90(ttft) <= 2_s, advisory(capacity >= 9_rps), advisory(capacity >= 5_rps)};
    return s;
}

TEST_CASE("the capacity of a workload is not that of a light draw of its lengths") {
    const scenario s = varied_lengths("varied lengths ", 1);
    const result r = gate(s);
    CHECK(r.verdicts()[0].outcome == verdict::fail);
    CHECK(r.verdicts()[1].outcome == verdict::pass);
    check_rejudged(r, s.slos);
}

TEST_CASE("probes that are shorter than the work asks say how long they would have to be") {
    int too_short = 0;
    for (const long long seed : {7, 8}) {
        CAPTURE(seed);
        scenario s = varied_lengths("varied lengths in short probes ", seed);
        s.requests = 100;
        const result r = gate(s);
        const slo_verdict v = r.verdicts()[0];
        CHECK(v.outcome != verdict::pass);
        const bool says = holds(v.reason, "probes of about ");
        too_short += says;
        if (says) CHECK(v.repeats == 2);  // more of them would show no more
        check_rejudged(r, s.slos);
    }
    CHECK(too_short == 1);  // of seed 7
}
