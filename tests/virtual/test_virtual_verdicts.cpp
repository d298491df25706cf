// Verdicts end to end: what a gate says of a healthy, a slow and a crowded
// server, and what variables of the environment and the time budget make of it.
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "virtual/scripted_server.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

using namespace llmbench;
using namespace live;

// ---- fast, slow, at the limit, over capacity

TEST_CASE(
    "a gate with 10 percent of headroom passes in two repeats, and fails on an engine 20 "
    "percent slower") {
    scenario s = chat_on(engine_of(30_ms), "headroom of 10 percent");
    s.slos = {p50(tpot) <= 33_ms, goodput(ttft_from_send <= 5_s && tpot <= 1_s) >= 80_pct,
              p90(itl) <= 1_s};
    const result healthy = run(s);
    check_passes(healthy);
    CHECK(verdict_of(healthy, "p50(tpot) <= 33 ms").repeats == 2);
    CHECK(repeats_of(healthy).size() == 2);
    check_rejudged(healthy, s.slos);

    s.name = "20 percent slower";
    s.target = simulated(engine_of(36_ms));
    const result slower = run(s);
    CHECK(outcome_of(slower, "p50(tpot) <= 33 ms") == verdict::fail);
    CHECK(outcome_of(slower, "goodput(ttft_from_send <= 5 s && tpot <= 1 s) >= 80 %") ==
          verdict::pass);
    CHECK(slower.estimate(p50(tpot)).value > 0.035);
    check_rejudged(slower, s.slos);
}

TEST_CASE("a server right at its limit is inconclusive or decided rightly") {
    scenario s = brief(simulated(engine_of(15_ms)), "at the limit");
    s.repeats = 2;
    const double typical = run(s).estimate(p50(tpot)).value;
    CHECK(typical > 0.014);
    s.name = "right at the limit";
    s.repeats = 0;
    s.slos = {p50(tpot) <= time_span::from_seconds(typical)};
    const result r = run(s);
    const slo_verdict v = r.verdicts()[0];
    CHECK(v.outcome != verdict::invalid);
    if (v.outcome == verdict::pass) CHECK(v.estimate.high < typical);
    if (v.outcome == verdict::fail) CHECK(v.estimate.value > typical);
    if (v.outcome == verdict::inconclusive) {
        CHECK(v.repeats == 8);
        CHECK(v.estimate.high >= typical);
        CHECK_FALSE(v.advice.empty());
    }
    check_rejudged(r, s.slos);
}

// ---- five repeats, and the last look at eight

namespace {

/// A server whose first tokens take so many ms in each repeat of twelve requests, one at a time.
result of_repeats(const std::vector<int>& first_token_ms, int repeats = 0) {
    int asked = 0;
    const scripted::server server([&](const scripted::request&) {
        const auto repeat = std::min<std::size_t>(static_cast<std::size_t>(asked++ / 12),
                                                  first_token_ms.size() - 1);
        scripted::answer a = {scripted::wait(scripted::milliseconds(first_token_ms[repeat]))};
        for (const scripted::step& s : scripted::healthy()) a.push_back(s);
        return a;
    });
    scenario s = asking(endpoint{.url = server.url()}, 12);
    s.repeats = repeats;
    s.slos = {p50(ttft) <= 100_ms};
    const result r = run(s);
    check_rejudged(r, s.slos);
    return r;
}
slo_verdict of_first_tokens(const result& r) { return verdict_of(r, "p50(ttft) <= 100 ms"); }

}  // namespace

TEST_CASE("a gate whose repeats spread goes on from five to eight, and looks once more there") {
    // At six and seven nobody looks, as each look costs.
    const result passed = of_repeats({78, 100, 85, 105, 90, 60, 60, 80});
    CHECK(of_first_tokens(passed).outcome == verdict::pass);
    CHECK(of_first_tokens(passed).repeats == 8);
    CHECK(repeats_of(passed).size() == 8);
    const result failed = of_repeats({135, 100, 125, 105, 120, 130, 128, 132});
    CHECK(of_first_tokens(failed).outcome == verdict::fail);
    CHECK(of_first_tokens(failed).repeats == 8);
    const result open = of_repeats({78, 100, 85, 105, 90, 110, 80, 105});
    CHECK(of_first_tokens(open).outcome == verdict::inconclusive);
    CHECK(of_first_tokens(open).repeats == 8);
}

TEST_CASE("a gate goes on from five repeats neither where it was told how many, nor where they spread as usual") {
    const std::vector<int> spread = {78, 100, 85, 105, 90, 60, 60, 80};
    const result told = of_repeats(spread, 5);
    CHECK(of_first_tokens(told).outcome == verdict::inconclusive);
    CHECK(repeats_of(told).size() == 5);
    const result usual = of_repeats({97, 102, 99, 97, 102});
    CHECK(of_first_tokens(usual).outcome == verdict::inconclusive);
    CHECK(repeats_of(usual).size() == 5);
    // Repeats that agree may decide with some more of them.
    const result quiet = of_repeats({99, 100, 99, 100, 99});
    CHECK(of_first_tokens(quiet).outcome == verdict::inconclusive);
    CHECK(repeats_of(quiet).size() == 8);
}

TEST_CASE("a gate ends at its first miss where it is asked to, and what is open stays open") {
    scenario s = brief(simulated(engine_of(15_ms)), "stops at a miss");
    s.repeats = 2;
    const double typical = run(s).estimate(p50(tpot)).value;
    s.repeats = 0;
    const time_span at_it = time_span::from_seconds(typical);
    s.slos = {mean(tpot) <= 5_ms, p50(tpot) <= at_it};
    const std::size_t all = repeats_of(run(s)).size();
    CHECK(all >= 5);
    const auto check_ends_at = [&](std::size_t repeats) {
        const result r = run(s);
        CHECK(repeats_of(r).size() == repeats);
        CHECK(r.verdicts()[0].outcome == verdict::fail);
        CHECK(r.verdicts()[1].outcome == verdict::inconclusive);
        check_rejudged(r, s.slos);
    };
    {
        const variable stop("LLMBENCH_STOP", "first_miss");
        check_ends_at(2);
    }
    s.stop = at_first_miss;
    check_ends_at(2);
    // Under twice the limit it takes three. A miss that is advisory ends nothing.
    s.slos = {mean(tpot) <= 10_ms, p50(tpot) <= at_it};
    check_ends_at(3);
    s.slos = {advisory(mean(tpot) <= 5_ms), p50(tpot) <= at_it};
    CHECK(repeats_of(run(s)).size() == all);
}

TEST_CASE("a gate that ends at its first miss measures whole repeats: a slow start is one of them") {
    int asked = 0;
    const scripted::server filling([&](const scripted::request&) {
        scripted::answer a = {scripted::wait(scripted::milliseconds(asked++ < 130 ? 500 : 20))};
        for (const scripted::step& s : scripted::healthy()) a.push_back(s);
        return a;
    });
    scenario s = asking(endpoint{.url = filling.url()}, 300);
    s.repeats = 0;
    s.stop = at_first_miss;
    s.slos = {p90(ttft) <= 100_ms, p50(e2e) <= 10_s};
    const result r = run(s);
    for (const int repeat : {0, 1})
        CHECK(std::ranges::count_if(r.requests(), [&](const record& x) {
                  return x.repeat == repeat && x.phase == run_phase::measure;
              }) == 300);
    CHECK(r.verdicts()[0].outcome != verdict::fail);
    CHECK(r.verdicts()[1].outcome == verdict::pass);
    CHECK(r.verdicts()[1].repeats == 2);
    check_rejudged(r, s.slos);
}

TEST_CASE("a gate with users says how long it takes once it knows") {
    scenario s = brief(simulated(engine_of(15_ms)), "users");
    s.arrivals = closed_loop(2);
    s.slos = {p50(tpot) <= 1_s};
    CHECK(holds(heard_of(s).said, "  the gate takes about "));
}

TEST_CASE("a load of twice the capacity is told as over-saturated") {
    engine e = engine_of(10_ms);
    e.slots = 2;  // 50 requests of four tokens a second
    scenario s = quick_scenario(simulated(e));
    s.name = "twice the capacity";
    s.workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(4)};
    s.arrivals = constant(100_rps);
    s.warmup = 4;
    s.requests = 120;
    s.slos = {mean(ttft_from_send) <= 1_min, mean(ttft_from_send) <= 50_ms, p50(tpot) <= 1_s};
    const result r = run(s);
    CHECK(outcome_of(r, "mean(ttft_from_send) <= 60 s") == verdict::invalid);
    CHECK(outcome_of(r, "mean(ttft_from_send) <= 50 ms") == verdict::fail);
    CHECK(outcome_of(r, "p50(tpot) <= 1 s") == verdict::invalid);
    CHECK(outcome_of(r, "error_rate <= 1 %") == verdict::pass);
    for (std::size_t i = 0; i < s.slos.size(); ++i)
        CHECK(holds(r.verdicts()[i].reason, "over-saturated: requests in flight grew by"));
    check_rejudged(r, s.slos);
}

TEST_CASE("a load that ends before its answers do shows nothing of its rate, whatever may be in flight") {
    engine e = engine_of(10_ms);
    e.slots = 2;
    scenario s = quick_scenario(simulated(e));
    s.workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(4)};
    s.requests = 120;
    s.slos = {p90(ttft) <= 1_min, p50(e2e) <= 50_ms, error_rate <= 5_pct};
    for (const arrival_pattern& a : {arrival_pattern(poisson(2000_rps)),
                                     arrival_pattern(poisson(2000_rps).max_in_flight(1000)),
                                     arrival_pattern(poisson(2000_rps).max_in_flight(2)),
                                     arrival_pattern(ramp(1000_rps, 2000_rps, 1_s))}) {
        s.arrivals = a;
        s.name = "over before its answers";
        const result r = run(s);
        CHECK(outcome_of(r, "p90(ttft) <= 60 s") == verdict::invalid);
        CHECK(outcome_of(r, "p50(e2e) <= 50 ms") == verdict::fail);
        CHECK(outcome_of(r, "error_rate <= 5 %") == verdict::pass);
        CHECK(holds(r.verdicts()[0].reason, "the plan: an answer took "));
        CHECK(holds(r.verdicts()[0].advice, "let the load last "));
        check_rejudged(r, s.slos);
    }
    s.arrivals = all_at_once();  // which asks for no rate
    CHECK(outcome_of(run(s), "p90(ttft) <= 60 s") == verdict::pass);
}

TEST_CASE("one wave of whole answers shows no miss of a throughput") {
    scenario s = brief(simulated(engine_of(15_ms)), "one wave");
    s.workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(8)};
    s.options.stream = false;
    s.arrivals = closed_loop(16);
    s.warmup = 0;
    s.slos = {output_throughput >= 800_tps, request_throughput >= 100_rps};  // 16 in 0.12 s: 133
    const result r = run(s);
    for (const std::size_t i : {0u, 1u}) {
        const slo_verdict& v = r.verdicts()[i];
        CHECK(v.outcome == verdict::invalid);
        CHECK(holds(v.reason, "0 answers ended in the steady window"));
        CHECK(holds(v.reason, "warm up with as many as there are users"));
    }
    check_rejudged(r, s.slos);
    // As that says.
    s.name = "waves after a warm-up";
    s.warmup = 16;
    s.requests = 48;
    check_passes(run(s));
    // A server that is too slow by more than that is shown to be.
    s.name = "slow waves";
    s.target = simulated(engine_of(60_ms));
    s.warmup = 0;
    CHECK(run(s).verdicts()[1].outcome == verdict::fail);
}

// ---- values of variables

TEST_CASE("a variable that makes no sense is refused in one sentence with its name and value") {
    const scratch files;
    write(files.file("empty"), "");
    write(files.file("other.json"), R"({"schema": "llmbench/result/1", "gates": []})");
    scenario s = brief(simulated(engine_of(2_ms)), "bad values");
    const auto refuses = [&](const char* name, const std::string& value) {
        const variable bad(name, value);
        const std::string why = refusal_of(s);
        INFO(name, "=", value, ": ", why);
        CHECK(holds(why, name));
        CHECK(holds(why, value));
        CHECK(why.find('\n') == std::string::npos);
        CHECK(why.size() < 200);
    };
    for (const char* value : {"soon", "0", "-5", "5h", "1e30", "nan", "inf", "300 s", "5minutes"})
        refuses("LLMBENCH_TIME_BUDGET", value);
    for (const char* value : {"2", "101", "0", "-3", "three", "3.5", "3x", " 3", "1e1"})
        refuses("LLMBENCH_CALIBRATE", value);
    for (const char* name : {"missing", "empty", "other.json", ""})
        refuses("LLMBENCH_CALIBRATION", files.file(name));
    for (const char* value : {"0", "-1", "many", "1.5", "99999999999999999999"})
        refuses("LLMBENCH_SEED", value);
    for (const char* value : {"green", "FAIL", "1"}) refuses("LLMBENCH_INCONCLUSIVE", value);
    for (const char* name : {"LLMBENCH_WRITE_BASELINE", "LLMBENCH_SKIP_WITHOUT_SERVER"})
        for (const char* value : {"maybe", "2", "YES "}) refuses(name, value);

    const variable three("LLMBENCH_CALIBRATE", "3");
    s.baseline = stored(files.file("b.json").c_str());
    const variable writing("LLMBENCH_WRITE_BASELINE", "1");
    CHECK(holds(refusal_of(s), "LLMBENCH_CALIBRATE and LLMBENCH_WRITE_BASELINE are both set"));
}

// ---- the time budget

TEST_CASE("a gate that the time budget cuts off is inconclusive with the reason") {
    scenario s = brief(endpoint_of(engine_of(5_ms)), "one repeat fits");
    s.arrivals = constant(10_rps);  // two seconds a repeat
    s.slos = {mean(tpot) <= 5_s, p50(ttft_from_send) <= 5_s};
    const variable budget("LLMBENCH_TIME_BUDGET", budget_from_now(3.7));
    const result r = run(s);
    CHECK(repeats_of(r) == std::set<int>{0});
    for (const char* slo : {"mean(tpot) <= 5 s", "p50(ttft_from_send) <= 5 s"}) {
        CHECK(outcome_of(r, slo) == verdict::inconclusive);
        CHECK(holds(reason_of(r, slo), "LLMBENCH_TIME_BUDGET of"));
        CHECK(holds(reason_of(r, slo), "after 1 of 5 repeats"));
        CHECK(verdict_of(r, slo).requests == 16);
        CHECK(verdict_of(r, slo).advice.empty());  // no other limit would have been decided
    }
    check_rejudged(r, s.slos);
}

TEST_CASE("a repeat that the time budget cuts in the middle is no evidence") {
    // Five quick answers, then none any more.
    std::vector<scripted::answer> script(5, scripted::healthy(3));
    script.push_back({scripted::stall()});
    const scripted::server host(script);
    scenario s;
    s.name = "cut in the second repeat";
    s.target = endpoint{.url = host.url()};
    s.workload = prompts({"hi"});
    s.warmup = 0;
    s.requests = 5;
    s.slos = {goodput(e2e <= 30_s) >= 90_pct, error_rate <= 20_pct};
    const variable budget("LLMBENCH_TIME_BUDGET", budget_from_now(2));
    const result r = run(s);
    CHECK(host.log().size() == 6);
    CHECK(all_ok(r).size() == 5);
    for (const slo_verdict& v : r.verdicts()) {
        CHECK(v.outcome == verdict::inconclusive);
        CHECK(holds(v.reason, "after 1 of 5 repeats"));
    }
    CHECK(r.estimate(error_rate).value == 0);
    check_rejudged(r, s.slos);
    // The cut one is in the records all the same, for whoever wants to know.
    CHECK(holds(content_of(report_file("records.jsonl")),
                "\"gate\":\"cut in the second repeat\",\"arm\":\"candidate\",\"repeat\":1"));
}

TEST_CASE("where the time budget leaves nothing measured, nothing is said to hold") {
    scenario s = brief(endpoint_of(engine_of(5_ms)), "nothing measured");
    s.arrivals = constant(1_rps);
    s.slos = {mean(tpot) <= 5_s, goodput(e2e <= 30_s) >= 80_pct};
    const variable budget("LLMBENCH_TIME_BUDGET", budget_from_now(1));
    const result r = run(s);
    CHECK(r.requests().empty());
    REQUIRE(r.verdicts().size() == 3);
    for (const slo_verdict& v : r.verdicts()) {
        CHECK(v.outcome == verdict::inconclusive);
        CHECK(holds(v.reason, "none of 5 was measured"));
        CHECK(std::isnan(v.estimate.value));
        CHECK(v.advice.empty());
    }
    check_rejudged(r, s.slos);
}
