// Verdicts where the client was late: what stands, and what is measured again.
#include "llmbench.hpp"
#include "core/judging/client.hpp"
#include "core/described/causes.hpp"
#include "core/judging/judge.hpp"
#include "support/verdicts.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {

/// One of twenty requests was sent so late, which a burst of them was behind.
repeat_data late_repeat(double ttft_ms, double late_ms) {
    repeat_data d = steady_repeat(ttft_ms);
    d.records[3].late_ns = static_cast<long long>(late_ms * 1e6);
    note_lateness(d);
    return d;
}
/// Where nobody else stamps what it reads.
repeat_data lost_repeat(double fraction, long long disturbed = 0) {
    repeat_data d = steady_repeat(80);
    d.lost_fraction = fraction;
    d.disturbed_requests = disturbed;
    return d;
}
verdict outcome_on(const vector<repeat_data>& repeats, const slo& s) {
    return judged(measured(repeats, {s}), s).outcome;
}

}  // namespace

TEST_CASE("a send is late by 1 % of the limit on the time to first token, else by 5 ms") {
    const auto after = [](vector<slo> slos) {
        judging_parameters t;
        t.slos = std::move(slos);
        return late_after_s(t);
    };
    CHECK(after({}) == about(0.005));
    CHECK(after({mean(tpot) <= 20_ms, p99(e2e) <= 1_s}) == about(0.005));
    CHECK(after({p99(ttft) <= 2_s, p90(ttft) <= 300_ms}) == about(0.003));
    CHECK(after({goodput(ttft <= 200_ms && tpot <= 30_ms) >= 90_pct}) == about(0.002));
    CHECK(after({p99(ttft) <= 1.1 * baseline}) == about(0.005));
    judging_parameters searched;
    searched.objectives_held = {p99(ttft) <= 1_s};
    CHECK(late_after_s(searched) == about(0.010));
}

TEST_CASE("a pass stands however late sends were, for their lateness is in it") {
    for (const slo& s : {p50(ttft) <= 100_ms, mean(e2e) <= 300_ms, mean(tpot) <= 20_ms})
        CHECK(outcome_on({late_repeat(80, 30), late_repeat(80, 30)}, s) == verdict::pass);
}

TEST_CASE("a miss stands where it is one without what was late") {
    const vector<repeat_data> three(3, late_repeat(180, 30));
    CHECK(outcome_on(three, p50(ttft) <= 100_ms) == verdict::fail);  // 150 ms at best
    CHECK(outcome_on(three, mean(tpot) <= 5_ms) == verdict::fail);
}

TEST_CASE("a miss that late sends may have made is nobody's, and measured again") {
    const slo s = p50(ttft) <= 160_ms;
    const vector<repeat_data> three{late_repeat(180, 29), late_repeat(180, 30),
                                    late_repeat(180, 28)};
    const measurement m = measured(three, {s});
    CHECK(judge_measurements(m, s).outcome == verdict::fail);
    const analysis f = analyse(m, m);
    CHECK(f.verdicts[0].outcome == verdict::invalid);
    REQUIRE(f.by_client);
    CHECK_FALSE(f.on.self_check.ok);
    CHECK(described(f.by_client->why) == "client: 5.0 % of the requests of a repeat were sent over 1.6 ms "
                                    "late, so its load was not the one asked for");
    // Sends that were late by less than counts, or fewer than count, are no such thing.
    CHECK(outcome_on({3, late_repeat(180, 1.5)}, s) == verdict::fail);
    const slo part = goodput(ttft <= 160_ms) >= 90_pct;
    CHECK(outcome_on(three, part) == verdict::invalid);
    CHECK(outcome_on({3, late_repeat(180, 1.5)}, part) == verdict::fail);
    vector<request> many;
    for (int i = 0; i < 200; ++i) many.push_back(answered(100.0 * i, 180));
    repeat_data one_of_100 = repeat_of(many);
    for (std::size_t i = 0; i < 2; ++i) one_of_100.records[i].late_ns = 30'000'000;
    note_lateness(one_of_100);
    CHECK(outcome_on({3, one_of_100}, s) == verdict::fail);
    one_of_100.records[2].late_ns = 30'000'000;
    note_lateness(one_of_100);
    CHECK(outcome_on({3, one_of_100}, s) == verdict::invalid);
}

TEST_CASE("late sends of the warm-up that reach into the measured part change its load, too") {
    const slo s = p50(ttft) <= 160_ms;
    vector<request> requests;
    for (int i = 0; i < 20; ++i) requests.push_back(answered(100.0 * i - 500, 180));
    for (int i = 0; i < 5; ++i) requests[static_cast<std::size_t>(i)].warmup();
    const auto repeat_with = [&](double late_ms) {
        repeat_data d = repeat_of(requests);
        for (std::size_t i = 0; i < 5; ++i)
            d.records[i].late_ns = static_cast<long long>(late_ms * 1e6);
        note_lateness(d);
        return d;
    };
    // The last one was due 100 ms before the window.
    CHECK(outcome_on({3, repeat_with(90)}, s) == verdict::fail);
    CHECK(outcome_on({3, repeat_with(150)}, s) == verdict::invalid);
    const measurement m = measured({3, repeat_with(150)}, {s});
    REQUIRE(analyse(m, m).by_client);
    CHECK(described(analyse(m, m).by_client->why).find("client: 6.2 % of the requests of a repeat "
                                                       "were sent over 1.6 ms late") == 0);
}

TEST_CASE("a miss stands where the server was idle between what was late and what was slow") {
    vector<request> requests;
    for (int i = 0; i < 20; ++i) requests.push_back(answered(400.0 * i, 180));
    repeat_data apart = repeat_of(requests);
    apart.asked_rate = apart.achieved_rate = 2.5;
    apart.records[3].late_ns = 30'000'000;
    note_lateness(apart);
    const slo s = p50(ttft) <= 160_ms;
    CHECK(outcome_on({3, apart}, s) == verdict::fail);
    apart.asked_rate = 0;  // of users, who send later, too
    note_lateness(apart);
    CHECK(outcome_on({3, apart}, s) == verdict::invalid);
}

TEST_CASE("the repeat with most late sends is the one to measure again") {
    const slo s = p50(ttft) <= 160_ms;
    repeat_data worst = late_repeat(180, 30);
    worst.records[5].late_ns = 30'000'000;
    const measurement m = measured({late_repeat(180, 30), worst, late_repeat(180, 30)}, {s});
    REQUIRE(analyse(m, m).by_client);
    CHECK(analyse(m, m).by_client->repeat == 1);
}

TEST_CASE("the repeat of which a late client read most gaps together is the one to measure again") {
    const slo s = p50(itl) <= 20_ms;
    vector<repeat_data> three(3, steady_repeat(80));
    for (std::size_t i = 0; i < 3; ++i) {
        three[i].reads = three[i].stamped_reads = 1000;
        three[i].unknown_gaps = i == 1 ? 40 : 10;  // of 200
    }
    const measurement m = measured(three, {s});
    const analysis f = analyse(m, m);
    CHECK(f.verdicts[0].outcome == verdict::invalid);
    REQUIRE(f.by_client);
    CHECK(f.by_client->repeat == 1);
    CHECK_FALSE(f.on.self_check.ok);
}

TEST_CASE("what late sends leave undecided is measured again, and stays open") {
    const slo s = p50(ttft) <= 81_ms;
    const measurement m = measured(vector<repeat_data>(3, late_repeat(80, 30)), {s});
    CHECK(judge_measurements(m, s).outcome == verdict::inconclusive);
    const analysis f = analyse(m, m);
    CHECK(f.verdicts[0].outcome == verdict::inconclusive);
    REQUIRE(f.by_client);
    CHECK_FALSE(f.on.self_check.ok);
    CHECK(described(f.verdicts[0].why, f.verdicts[0]).find("client: 5.0 % of the requests") == 0);
    // What would be undecided anyhow is.
    const measurement close = measured({late_repeat(89, 30), late_repeat(91, 30)},
                                       {p50(ttft) <= 62_ms});
    CHECK(analyse(close, close).verdicts[0].outcome == verdict::inconclusive);
    CHECK_FALSE(analyse(close, close).by_client);
}

TEST_CASE("what is undecided because the baseline was sent late may be a miss, and is nobody's") {
    const slo s = p50(ttft) <= 1.0 * baseline;
    measurement m = pairs_with_ratio({1, 1, 1, 1});
    m.slos = {s};
    CHECK(judged(m, s).outcome == verdict::inconclusive);
    for (repeat_data& d : m.baseline) {
        for (record& r : d.records) r.late_ns = r.dispatched_ns > 0 ? 30'000'000 : 0;
        note_lateness(d);
    }
    CHECK(judged(m, s).outcome == verdict::invalid);
}

TEST_CASE("a first token that a late client may have had earlier is no miss, and no pace that passes") {
    repeat_data d = steady_repeat(80);
    for (record& r : d.records) r.first_early_ns = 30'000'000;
    CHECK(outcome_on({d, d, d}, p50(ttft) <= 60_ms) == verdict::invalid);
    CHECK(outcome_on({d, d, d}, p50(ttft) <= 40_ms) == verdict::fail);
    CHECK(outcome_on({d, d}, mean(tpot) <= 12_ms) == verdict::invalid);  // 10 ms, or 13
    CHECK(outcome_on({d, d}, mean(tpot) <= 20_ms) == verdict::pass);
}

TEST_CASE("where nobody else stamps what it reads, a client that lost much time has no verdict") {
    const slo s = mean(ttft) <= 1_s;
    CHECK(outcome_on({lost_repeat(0), lost_repeat(0.01)}, s) == verdict::pass);
    const measurement m = measured({lost_repeat(0), lost_repeat(0.011, 0)}, {s});
    const analysis f = analyse(m, m);
    CHECK(f.verdicts[0].outcome == verdict::invalid);
    REQUIRE(f.by_client);
    CHECK(f.by_client->repeat == 1);
    CHECK(described(f.by_client->why) ==
          "client: it lost 1.1 % of the time of a repeat, and over 20 ms in that of 0 of 20 "
          "requests: where the kernel tells no times of arrival, they may be that late");
    CHECK(outcome_on({lost_repeat(0), lost_repeat(0.001, 1)}, s) == verdict::invalid);
    CHECK(self_check_of(m).lost_fraction == about(0.011));
    // No time is in these.
    CHECK(judge_all(m).back().outcome != verdict::invalid);
}

TEST_CASE("an advisory objective asks for no other repeat") {
    const slo s = advisory(mean(ttft) <= 1_s);
    const measurement m = measured({lost_repeat(0.5), lost_repeat(0.5)}, {s});
    const analysis f = analyse(m, m);
    CHECK(f.verdicts[0].outcome == verdict::invalid);
    CHECK_FALSE(f.by_client);
    CHECK(f.on.self_check.ok);
}

TEST_CASE("a baseline that was sent late passes nobody") {
    const slo s = p50(ttft) <= 1.05 * baseline;
    measurement m = pairs_with_ratio({0.9, 0.9, 0.9, 0.9});
    m.slos = {s};
    CHECK(judged(m, s).outcome == verdict::pass);
    for (repeat_data& d : m.baseline) {
        for (record& r : d.records) r.late_ns = r.dispatched_ns > 0 ? 30'000'000 : 0;
        note_lateness(d);
    }
    CHECK(judged(m, s).outcome == verdict::invalid);
}

TEST_CASE("what a disturbed client measured is no baseline for later") {
    measurement m = measured({steady_repeat(80), late_repeat(80, 30)}, {p50(ttft) <= 1.1 * baseline});
    auto bias = error_of_baseline(m, m);
    REQUIRE(bias);
    CHECK(bias->repeat == 1);
    m.candidate[1] = lost_repeat(0.02);
    bias = error_of_baseline(m, m);
    REQUIRE(bias);
    CHECK(bias->repeat == 1);
    m.candidate[1] = late_repeat(800, 6);  // by less than repeats differ
    CHECK_FALSE(error_of_baseline(m, m));
    m.slos = {p50(ttft) <= 40_ms};  // of its own
    m.candidate[1] = lost_repeat(0.02);
    CHECK_FALSE(error_of_baseline(m, m));
}
