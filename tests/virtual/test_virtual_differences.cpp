// Gates whose limits are differences to a baseline, in virtual time.
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "support/scratch.hpp"
#include "llmbench_history.hpp"

#include <string>

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

TEST_CASE("fractions are held against a stored run by the counts that it keeps") {
    const scratch files;
    const std::string file = files.file("main.json");
    scenario s = pair_of(10_ms, 10_ms, "fractions of a stored run");
    s.baseline = stored(file.c_str(), 0.2_pct);
    s.requests = 300;
    s.slos = {goodput(ttft <= 100_ms) >= baseline - 5_pct, error_rate <= baseline + 2_pct};
    {
        const variable writing("LLMBENCH_WRITE_BASELINE", "1");
        run(s);
    }
    const std::string written = content_of(file);
    CHECK(texts::count(written, "\"misses(error_rate)\"") == 5);
    CHECK(texts::count(written, "\"requests(error_rate)\": 300") == 5);
    const result same = run(s);
    CHECK(same.verdicts()[0].outcome == verdict::pass);
    CHECK(same.verdicts()[1].outcome == verdict::pass);
    CHECK(same.verdicts()[1].counted_in == verdict_unit::repeat);
    CHECK(same.verdicts().size() == 3);  // the guard on errors stays
    check_rejudged(same, s.slos);
    engine failing;
    failing.decode_step = 10_ms;
    failing.faults.error_rate = 20_pct;
    s.target = simulated(failing);
    const result worse = run(s);
    CHECK(worse.verdicts()[0].outcome == verdict::fail);
    CHECK(worse.verdicts()[1].outcome == verdict::fail);
    check_rejudged(worse, s.slos);
    // As an earlier version wrote it.
    write(file, texts::replaced(written, "\"misses(error_rate)\"", "\"other(error_rate)\""));
    CHECK(holds(refusal_of(s), "it has no counts of error_rate in every repeat, write it again"));
}
