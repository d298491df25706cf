// Drift: the last third of a run against its first one.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "program/slo_text.hpp"
#include "core/measured/columns.hpp"
#include "core/judging/numbers.hpp"
#include "core/planning/planning.hpp"
#include "support/verdicts.hpp"

#include <cmath>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {
/// A run of 300 s, a request each 0.25 s; ttft is about 100 ms times a factor of the time that has
/// passed, 0 to 1.
template <class Factor>
repeat_data long_run(std::uint64_t seed, Factor&& factor, int requests = 1200) {
    generator random(seed);
    vector<request> all;
    for (int i = 0; i < requests; ++i) {
        const double at = 250.0 * i, passed = static_cast<double>(i) / requests;
        const double wait = 100 * factor(passed) * std::exp(0.3 * random.normal());
        all.push_back(answered(at, wait));
    }
    repeat_data d = repeat_of(all);
    d.window = time_interval::between(at_ms(0), at_ms(250.0 * requests));
    return d;
}
slo_verdict drift_of_runs(const vector<repeat_data>& runs, const slo& s) {
    return judged(measured(runs), s);
}
const auto stays = [](double) { return 1.0; };
const auto grows = [](double passed) { return 1 + 0.4 * passed; };
}  // namespace

TEST_CASE("a drift is written as a fraction, and read again") {
    const slo s = drift(p90(ttft)) <= 110_pct;
    CHECK(str(s.text()) == "drift(p90(ttft)) <= 110 %");
    CHECK(str((drift(output_throughput) >= 95_pct).text()) == "drift(output_throughput) >= 95 %");
    for (const slo& one : {s, drift(mean(tpot)) <= 105_pct, drift(decode_throughput) >= 90_pct,
                           drift(p5(decode_speed)) >= 90_pct}) {
        const slo again = parse_slo(one.text());
        CHECK(str(again.text()) == str(one.text()));
        CHECK(again.statistic.of == one.statistic.of);
        CHECK(again.at_most == one.at_most);
    }
    CHECK_THROWS(parse_slo("drift(mean(ttft)) >= 95 %"));  // more of a time is no better
    CHECK_THROWS(parse_slo("drift(ttft) <= 110 %"));
    CHECK_THROWS(parse_slo("drift(drift(mean(ttft))) <= 110 %"));
}

TEST_CASE("a drift is the last third over the first one") {
    const repeat_data d = long_run(1, [](double passed) { return passed < 1.0 / 3 ? 1.0 : 2.0; });
    CHECK(evaluate(drift(mean(ttft)).data, d) == about(2).epsilon(0.05));
    CHECK(evaluate(drift(p50(ttft)).data, long_run(1, stays)) == about(1).epsilon(0.05));
    repeat_data none = d;
    none.window = time_interval::between(none.window.from_ns(), 0);
    CHECK(std::isnan(evaluate(drift(mean(ttft)).data, none)));
}

TEST_CASE("one run shows a drift, and that there is none") {
    const slo limit = drift(mean(ttft)) <= 110_pct;
    const slo_verdict steady = drift_of_runs({long_run(1, stays)}, limit);
    CHECK(steady.outcome == verdict::pass);
    CHECK(steady.repeats == 1);
    CHECK(str(steady.method) == "t of slices");
    CHECK(mentions(steady.reason, "in the first third"));
    const slo_verdict worse = drift_of_runs({long_run(2, grows)}, limit);
    CHECK(worse.outcome == verdict::fail);
    CHECK(worse.estimate.value > 1.2);
    // Right at the limit neither is shown.
    const auto at_it = [](double passed) {
        return passed < 1.0 / 3 ? 1 : passed < 2.0 / 3 ? 1.05 : 1.1;
    };
    CHECK(drift_of_runs({long_run(3, at_it)}, limit).outcome == verdict::inconclusive);
}

TEST_CASE("an open drift says how much longer a run would decide, and which limit this one would") {
    const slo_verdict v = drift_of_runs({long_run(2, stays)}, drift(p90(ttft)) <= 103_pct);
    REQUIRE(v.outcome == verdict::inconclusive);
    INFO(v.advice.c_str());
    CHECK(mentions(v.advice, "a run "));
    CHECK(mentions(v.advice, " times as long would mostly decide, and <= 1"));
    CHECK(mentions(v.advice, " % would mostly pass as it is"));
    const slo_verdict kept = drift_of_runs({long_run(2, stays)}, drift(p90(ttft)) <= 150_pct);
    CHECK(kept.outcome == verdict::pass);
    CHECK(kept.advice.empty());
}

TEST_CASE("what traffic makes of a third is no drift, in however many repeats") {
    // All repeats have one trace, of which the last third is a little slower by chance: slices of
    // the same seed differ alike in all of them.
    int failed = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const repeat_data d = long_run(seed, stays, 300);
        failed += drift_of_runs({d, d, d, d, d}, drift(mean(ttft)) <= 101_pct).outcome ==
                  verdict::fail;
    }
    CHECK(failed <= 2);
}

TEST_CASE("slices that depend on each other are worth fewer") {
    CHECK(dependence_of_slices({1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}) == 0);
    CHECK(dependence_of_slices({1, 2, 3, 4, 5, 6, 7, 8, 9}) == 0);  // an even drift is no noise
    CHECK(dependence_of_slices({1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}) > 0.4);
    const slo s = drift(mean(ttft)) <= 110_pct;
    const vector<double> runs = {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1},
                              turns = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
    CHECK(analysis_of_drift(s, runs, {}).se > 1.5 * analysis_of_drift(s, turns, {}).se);
}

TEST_CASE("what cannot drift, or is too short to show it, is refused") {
    const auto refused = [](const slo& s, scenario with = {}) {
        with.slos = {s};
        if (with.requests == 0) with.requests = 3000;
        try {
            planned(with, 1);
        } catch (const std::invalid_argument& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(refused(drift(mean(ttft)) <= 110_pct).empty());
    CHECK(mentions(refused(drift(p50(itl)) <= 110_pct), "itl drifts as tpot does"));
    CHECK(mentions(refused(drift(mean(ttft)) <= 90_pct), "the side that it may drift to"));
    CHECK(mentions(refused(drift(error_rate) <= 110_pct), "of times and speeds"));
    scenario open_loop;
    open_loop.arrivals = poisson(4_rps);
    CHECK(mentions(refused(drift(output_throughput) >= 95_pct, open_loop), "below saturation"));
    open_loop.arrivals = closed_loop(8);
    CHECK(refused(drift(output_throughput) >= 95_pct, open_loop).empty());
    scenario brief;
    brief.requests = 100;
    CHECK(mentions(refused(drift(mean(ttft)) <= 110_pct, brief), "needs at least 150"));
    scenario once;
    once.repeats = 1;
    CHECK(refused(drift(mean(ttft)) <= 110_pct, once).empty());
    const slo_verdict v = drift_of_runs({long_run(1, stays, 100)}, drift(mean(ttft)) <= 110_pct);
    CHECK(v.outcome == verdict::invalid);
    CHECK(mentions(v.reason, "let it run longer"));
}
