// Gates whose limits are differences to a baseline, in virtual time.
#include "support/environment.hpp"
#include "support/rejudged.hpp"

using namespace llmbench;
using namespace live;

namespace {

/// Two engines, the candidate's tokens take longer.
scenario pair_of(time_span candidate, time_span base, const char* name) {
    engine slow, fast;
    slow.decode_step = candidate;
    fast.decode_step = base;
    scenario s{.name = name,
               .target = simulated(slow),
               .baseline = simulated(fast),
               .workload = synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(16)},
               .arrivals = constant(4_rps),
               .warmup = 4,
               .requests = 40};
    return s;
}

}  // namespace

TEST_CASE("a difference is judged by gates, and again from their files") {
    scenario s = pair_of(12_ms, 10_ms, "two milliseconds a token");
    s.slos = {mean(tpot) <= baseline + 4_ms, mean(tpot) <= 1.05 * baseline + 3_ms,
              advisory(mean(tpot) <= baseline + 500_us)};
    const heard_run heard = heard_of(s);
    const result& r = heard.result;
    REQUIRE(r.verdicts().size() == 4);
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    CHECK(r.verdicts()[0].measured == doctest::Approx(0.002).epsilon(0.2));
    CHECK(r.verdicts()[1].outcome == verdict::pass);
    CHECK(r.verdicts()[2].outcome == verdict::fail);
    CHECK(holds(heard.said, "mean(tpot) <= baseline + 4 ms"));
    CHECK(holds(heard.said, "measured +"));
    const auto gate = reported_gate("two milliseconds a token");
    const auto& slo = gate.get("slos").get(0);
    CHECK(slo.get("difference_to_baseline").get<bool>());
    CHECK(slo.get("factor").get<double>() == 1);
    check_rejudged(r, s.slos);
}

TEST_CASE("fractions differ by so much at most: errors and goodput in pairs, and from the files") {
    scenario s = pair_of(10_ms, 10_ms, "fractions of two engines");
    s.requests = 300;
    s.slos = {goodput(ttft <= 100_ms) >= baseline - 5_pct, error_rate <= baseline + 2_pct};
    const result r = gate(s);
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    CHECK(r.verdicts()[1].outcome == verdict::pass);
    CHECK(r.verdicts()[0].counted_in == verdict_unit::pair);
    CHECK(r.verdicts().size() == 3);  // the guard on errors stays
    check_rejudged(r, s.slos);
}

TEST_CASE("differences that no gate can have are refused") {
    scenario s = pair_of(12_ms, 10_ms, "refused");
    s.slos = {error_rate <= 1.10 * baseline};
    CHECK(holds(refusal_of(s), "a fraction is judged against a limit of its own"));
    s.baseline = stored("baselines/none.json");
    s.slos = {error_rate <= baseline + 1_pct};
    CHECK(holds(refusal_of(s), "a stored baseline keeps no fractions: give it a limit of its own, or "
                                  "hold it against a live baseline or history()"));
    s.baseline = {};
    s.slos = {mean(tpot) <= baseline + 1_ms};
    CHECK(holds(refusal_of(s), "the scenario has no baseline"));
}
