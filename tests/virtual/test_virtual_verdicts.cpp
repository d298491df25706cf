// Verdicts end to end: what a gate says of a healthy, a slow and a crowded
// server, and what variables of the environment and the time budget make of it.
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "virtual/scripted_server.hpp"

#include <algorithm>
#include <chrono>
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
    // Neither where it was told how many, nor where they spread as usual.
    CHECK(repeats_of(of_repeats({78, 100, 85, 105, 90, 60, 60, 80}, 5)).size() == 5);
    CHECK(repeats_of(of_repeats({97, 102, 99, 97, 102})).size() == 5);
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

// ---- values of variables

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

TEST_CASE("a server that fails every request is told of, also where the time ends in the first repeat") {
    const scripted::answer fails{scripted::wait(std::chrono::milliseconds(500)),
                                 scripted::send(scripted::json("500 Internal Server Error", "{}"))};
    const scripted::server host(std::vector<scripted::answer>{fails});
    scenario s;
    s.name = "cut while it fails";
    s.target = endpoint{.url = host.url()};
    s.workload = prompts({"hi"});
    s.arrivals = closed_loop(1);
    s.warmup = 0;
    s.requests = 100;
    s.slos = {p50(ttft) <= 1_s};
    const variable budget("LLMBENCH_TIME_BUDGET", budget_from_now(3));
    const result r = run(s);
    for (const slo_verdict& v : r.verdicts()) {
        CHECK(v.outcome == verdict::invalid);
        CHECK(holds(v.reason, "requests succeeded (http: HTTP 500"));
    }
}

/// Pairs of forty seconds a load; the candidate has these faults, the baseline none.
static scenario pairs_with(const engine_faults& f, pairing order, const char* name) {
    engine failing;
    failing.faults = f;
    return {.name = name,
            .target = simulated(failing),
            .baseline = simulated(engine()),
            .pairs = order,
            .workload = synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(4)},
            .arrivals = constant(4_rps),
            .warmup = 0,
            .duration = 40_s,
            .slos = {mean(tpot) <= 1.1 * baseline},
            .limits = {.total = 2_s}};
}

TEST_CASE("a candidate that fails every request is told of, also where the time ends in its pair") {
    // Beside a baseline that ends in time, before one that is cut off, and behind one.
    const struct { pairing order; double budget_s; long long seed; } rows[] = {
        {at_once, 41, 1}, {in_turns, 81.5, 1}, {in_turns, 81.5, 2}};
    for (const auto& [order, budget_s, seed] : rows) {
        CAPTURE(budget_s);
        CAPTURE(seed);
        scenario s = pairs_with({.stall_rate = 100_pct}, order, "cut beside a baseline");
        s.seed = seed;
        const variable budget("LLMBENCH_TIME_BUDGET", budget_from_now(budget_s));
        const result r = run(s);
        for (const slo_verdict& v : r.verdicts()) {
            CHECK(v.outcome == verdict::invalid);
            CHECK(holds(v.reason, "requests succeeded (timeout"));
        }
        check_rejudged(r, s.slos);
    }
}

TEST_CASE("what had failed in a pair that the time cut off is told, though the pair does not count") {
    for (const long long seed : {1, 2}) {  // the time ends in the baseline, in the candidate
        scenario s = pairs_with({.stall_rate = 60_pct}, in_turns, "a half of a pair");
        s.seed = seed;
        const variable budget("LLMBENCH_TIME_BUDGET", budget_from_now(81));
        const heard_run heard = heard_of(s);
        CHECK(repeats_of(heard.result).empty());
        CHECK(holds(texts::unwrapped(heard.said),
                    "the time ended before repeat 1 was whole, so it does not count; "));
        CHECK(holds(texts::unwrapped(heard.said), " of its requests had failed (timeout: "));
    }
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
