// A capacity held against another server's, and against an earlier one.
#include "support/loads.hpp"

#include <string>

using namespace llmbench;
using namespace live;

TEST_CASE("a capacity is held against a stored one") {
    const scratch files;
    scenario s = users_on(engine_with(8), "against a stored capacity");
    s.baseline = stored(files.file("carried.json").c_str());
    s.slos = {p50(ttft) <= 150_ms, advisory(capacity >= 0.5 * baseline)};
    {
        const variable write("LLMBENCH_WRITE_BASELINE", "1");
        CHECK(gate(s).verdicts()[0].outcome == verdict::skipped);
    }
    CHECK(gate(s).verdicts()[0].outcome == verdict::pass);
    s.target = simulated(engine_with(1));
    CHECK(gate(s).verdicts()[0].outcome == verdict::fail);
}

TEST_CASE("a capacity is held against a live baseline's, at loads of their own") {
    scenario s = users_on(engine_with(2), "a quarter of the slots");
    s.baseline = simulated(engine_with(8));
    s.slos = {p50(ttft) <= 150_ms, advisory(capacity >= 0.8 * baseline)};
    const result r = gate(s);
    const slo_verdict v = r.verdicts()[0];
    check_rejudged(r, s.slos);
    CHECK(v.outcome == verdict::fail);
    CHECK(holds(v.reason, "the baseline breaks at about "));
    CHECK(v.limit == 0.8);
    CHECK(std::string(v.unit.c_str()) == "pair");
    const picojson::value found = reported_gate("a quarter of the slots").get("capacity");
    const auto& probes = found.get("probes").get<picojson::array>();
    CHECK(probes.front().get("arm").to_str() == "candidate");
    CHECK(probes.back().get("arm").to_str() == "baseline");
}
