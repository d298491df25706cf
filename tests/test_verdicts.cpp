// [P9] verdicts. Reference values of the t and beta distributions were computed with 30 digits.
#include "support/timelines.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;

namespace {

/// Repeats of 20 requests, each repeat with one ttft.
std::vector<repeat_data> repeats_with_ttft(const std::vector<double>& ms) {
    std::vector<repeat_data> repeats;
    for (const double v : ms) repeats.push_back(steady_repeat(v));
    return repeats;
}
measurement measured(std::vector<repeat_data> candidate, std::vector<slo> slos = {}) {
    measurement m;
    m.candidate = std::move(candidate);
    m.slos = std::move(slos);
    return m;
}
/// The verdict on repeats with these values of ttft.
slo_verdict verdict_on(const std::vector<double>& ms, const slo& s = mean(ttft) <= 100_ms) {
    return judged(measured(repeats_with_ttft(ms), {s}), s);
}

/// `n` requests, `failures` of them failed and evenly spread.
repeat_data repeat_with_failures(int n, int failures) {
    std::vector<request> requests;
    for (int i = 0; i < n; ++i) {
        const bool fails = (i + 1) * failures / n > i * failures / n;
        requests.push_back(fails ? failed(100.0 * i) : answered(100.0 * i, 50));
    }
    return repeat_of(requests);
}
slo_verdict verdict_on_failures(int n, int failures, const slo& s, int repeats = 2) {
    std::vector<repeat_data> data;
    for (int i = 0; i < repeats; ++i)
        data.push_back(repeat_with_failures(n / repeats,
                                            (i + 1) * failures / repeats - i * failures / repeats));
    return judged(measured(std::move(data), {s}), s);
}

/// Interleaved pairs whose ttft has this ratio to the baseline's 100 ms.
measurement pairs_with_ratio(const std::vector<double>& ratios) {
    measurement m;
    for (const double r : ratios) {
        m.candidate.push_back(steady_repeat(100 * r));
        m.baseline.push_back(steady_repeat(100));
        m.baseline.back().arm = run_arm::baseline;
    }
    return m;
}
slo_verdict verdict_on_pairs(const std::vector<double>& ratios,
                             const slo& s = mean(ttft) <= 1.10 * baseline) {
    measurement m = pairs_with_ratio(ratios);
    m.slos = {s};
    return judged(m, s);
}

/// Measured requests in turn were sent this late.
void send_late(repeat_data& d, const std::vector<double>& seconds) {
    for (std::size_t i = 0; i < d.records.size(); ++i)
        d.records[i].late_ns = std::llround(seconds[i % seconds.size()] * 1e9);
}

bool mentions(const text& t, const char* part) { return str(t).find(part) != std::string::npos; }

}  // namespace

// ---- one look ---------------------------------------------------------------------------------

TEST_CASE("a look has the bounds worked out by hand") {
    // Variance 0.0002, moderated (8 * 0.04^2 + 0.0002) / 9, so sd 0.0380058 at 9 degrees of
    // freedom; t is 2.497410 to pass and 3.675597 to fail.
    const look l = look_at({-0.10, -0.12}, 0.04);
    CHECK(l.moderated);
    CHECK(l.mean == about(-0.11));
    CHECK(l.df == 9);
    CHECK(l.sd == about(0.0380058475033046));
    CHECK(l.pass_bound == about(-0.04288412806627877));
    CHECK(l.fail_bound == about(-0.2087786922230938));
    CHECK(l.detectable == about(0.1290719505935702));
    CHECK(l.outcome == verdict::pass);

    const look missed = look_at({0.20, 0.22}, 0.04);
    CHECK(missed.pass_bound == about(0.2771158719337212));
    CHECK(missed.fail_bound == about(0.1112213077769062));
    CHECK(missed.outcome == verdict::fail);

    CHECK(look_at({0.01, -0.01}, 0.04).outcome == verdict::inconclusive);
}

TEST_CASE("a single value is believed to be as noisy as the prior says") {
    const look l = look_at({-0.2}, 0.04);
    CHECK(l.df == 8);
    CHECK(l.sd == about(0.04));
    CHECK(l.pass_bound == about(-0.2 + 0.04 * 2.55317824071153204735457));
    CHECK(l.fail_bound == about(-0.2 - 0.04 * 3.81716781061276658576251));
}

TEST_CASE("noisy repeats are judged by their own spread") {
    // A machine of 5 % shows four repeats with a sd over 0.0807 in one run of twenty. This one is
    // 0.1291, believed with 3 degrees of freedom beside 3 of 5 %: (3 * 0.05^2 + 0.05) / 6.
    const look l = look_at({-0.1, 0.1, 0.0, 0.2}, 0.04);
    CHECK_FALSE(l.moderated);
    CHECK(l.df == 6);
    CHECK(l.sd == about(0.0978945010372561));
    CHECK(l.pass_bound == about(0.1838207818).epsilon(1e-8));
    CHECK(l.fail_bound == about(-0.1603200367).epsilon(1e-8));
    // Half the spread may be chance; all of it is quiet where the prior expects more.
    CHECK(look_at({-0.05, 0.05, 0.0, 0.1}, 0.04).moderated);
    CHECK(look_at({-0.1, 0.1, 0.0, 0.2}, 0.10).moderated);
}

// ---- times, speeds, rates ---------------------------------------------------------------------

TEST_CASE("two repeats far inside the limit pass") {
    const slo_verdict v = verdict_on({80, 80});
    CHECK(v.outcome == verdict::pass);
    CHECK(v.repeats == 2);
    CHECK(v.requests == 40);
    CHECK(v.limit == 0.1);
    CHECK(v.estimate.value == about(0.080));
    CHECK(v.estimate.low == about(0.07484572835).epsilon(1e-8));
    CHECK(v.estimate.high == about(0.08550922198).epsilon(1e-8));
    CHECK(v.detectable == about(0.12801402).epsilon(1e-7));
}

TEST_CASE("red takes three repeats, however far they are outside") {
    const slo_verdict v = verdict_on({125, 125, 125, 125, 125});
    CHECK(v.outcome == verdict::fail);
    CHECK(v.repeats == 3);
    CHECK(v.estimate.value == about(0.125));
    CHECK(verdict_on({125, 125}).outcome == verdict::inconclusive);
    CHECK(str(verdict_on({125, 125}).reason) == "two repeats are too few to fail");
    // Where no more than two are planned, they must do.
    measurement two = measured(repeats_with_ttft({125, 125}));
    two.rule.most = 2;
    CHECK(judged(two, mean(ttft) <= 100_ms).outcome == verdict::fail);
}

TEST_CASE("one repeat decides nothing") {
    CHECK(verdict_on({50}).outcome == verdict::inconclusive);
    CHECK(verdict_on({500}).outcome == verdict::inconclusive);
    CHECK(verdict_on({500}).repeats == 1);
}

TEST_CASE("closer values take as many repeats as it needs") {
    // 5 % inside: the upper bound of the second look is 101.54 ms, of the third 99.94 ms.
    const slo_verdict inside = verdict_on({95, 95, 95, 95, 95});
    CHECK(inside.outcome == verdict::pass);
    CHECK(inside.repeats == 3);
    CHECK(inside.estimate.high == about(0.09994028882).epsilon(1e-8));
    // 10 % outside: the lower 1 % bound is over the limit at the third look.
    const slo_verdict outside = verdict_on({110, 110, 110, 110, 110});
    CHECK(outside.outcome == verdict::fail);
    CHECK(outside.repeats == 3);
}

TEST_CASE("what the last repeat leaves open is inconclusive and says what would decide") {
    const slo_verdict v = verdict_on({99, 99, 99, 99, 99});
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(v.repeats == 5);
    CHECK(v.detectable == about(0.064170325).epsilon(1e-7));
    // The upper bound is 102.52 ms; the limit it names really passes.
    CHECK(str(v.reason) == "too close to call");
    CHECK(verdict_on({99, 99, 99, 99, 99}, mean(ttft) <= 105_ms).outcome == verdict::pass);
}

TEST_CASE("a decision stands whatever comes after it") {
    const slo_verdict passed = verdict_on({80, 80, 300, 300, 300});
    CHECK(passed.outcome == verdict::pass);
    CHECK(passed.repeats == 2);
    CHECK(passed.estimate.value == about(0.080));
    const slo_verdict failed_early = verdict_on({130, 130, 130, 10, 10});
    CHECK(failed_early.outcome == verdict::fail);
    CHECK(failed_early.repeats == 3);
}

TEST_CASE("more repeats are not more chances") {
    // Noise around the limit crosses some bound sooner or later. The constants hold for five looks,
    // so that after the fourth repeat only the last one is looked at.
    const std::vector<double> ms = {100, 100, 100, 100, 92, 92, 92, 92, 107, 107, 107, 107};
    CHECK(verdict_on(std::vector<double>(ms.begin(), ms.begin() + 8)).outcome == verdict::pass);
    CHECK(verdict_on(ms).outcome == verdict::inconclusive);
    CHECK(verdict_on(ms).repeats == 12);
}

TEST_CASE("an estimate is of all repeats, whatever a verdict would have needed") {
    const auto estimated = [](const std::vector<repeat_data>& data, const statistic_data& what) {
        gate_report g;
        g.measured.candidate = data;
        return detail::estimate(box::make(std::make_shared<gate_report>(g)), what);
    };
    const std::vector<repeat_data> data = repeats_with_ttft({40, 90, 60});
    CHECK(estimated(data, mean(ttft).data).value == about(0.060));
    CHECK(estimated(data, p50(decode_speed).data).value == about(100));
    const std::vector<repeat_data> failing = {
        repeat_with_failures(20, 0), repeat_with_failures(20, 0), repeat_with_failures(20, 6)};
    CHECK(
        estimated(failing, make_statistic(statistic_kind::value, metric_id::error_rate, 0)).value ==
        about(0.1));
    CHECK(estimated(failing, goodput(ttft <= 1_s).data).value == about(0.9));
    CHECK(estimated({failing[2], failing[2]}, p10(decode_speed).data).value == 0);
    CHECK(std::isnan(estimated({}, mean(ttft).data).value));
}

TEST_CASE("a speed has its limit below it") {
    // One token every 10 ms: 100 tokens/s.
    CHECK(verdict_on({50, 50}, p50(decode_speed) >= 80_tps).outcome == verdict::pass);
    CHECK(verdict_on({50, 50, 50}, p50(decode_speed) >= 125_tps).outcome == verdict::fail);
    const slo_verdict v = verdict_on({50, 50}, p50(decode_speed) >= 80_tps);
    CHECK(v.estimate.value == about(100));
    CHECK(v.estimate.low == about(93.55716044));
    CHECK(v.estimate.high == about(106.8865275));
}

TEST_CASE("a throughput is judged on its window") {
    std::vector<repeat_data> repeats = repeats_with_ttft({50, 50, 50});
    for (repeat_data& d : repeats) {
        d.window_from_ns = at_ms(0);
        d.window_to_ns = at_ms(2200);  // all 20 x 11 tokens arrive inside: 100 tokens/s
    }
    const measurement m = measured(repeats);
    CHECK(judged(m, output_throughput >= 80_tps).outcome == verdict::pass);
    CHECK(judged(m, output_throughput >= 125_tps).outcome == verdict::fail);
    CHECK(judged(m, output_throughput >= 80_tps).estimate.value == about(100));
}

T0.08580497669_CASE("noisy repeats say so") {
    const slo_verdict v = verdict_on({75, 105, 75, 105, 75});
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(str(v.reason) == "the repeats spread by 18 %, far more than a quiet machine's 5 %");
    CHECK(v.estimate.value == about(0.08580497669).epsilon(1e-8));
    CHECK(v.estimate.high == about(0.1015218115).epsilon(1e-8));
}

TEST_CASE("a time to start may be decided by one start") {
    std::vector<repeat_data> repeats = repeats_with_ttft({50, 50});
    CHECK(judged(measured(repeats), startup_time <= 20_s).outcome == verdict::invalid);
    CHECK(mentions(judged(measured(repeats), startup_time <= 20_s).reason,
                   "startup_time is only known of a process"));
    repeats[0].startup_s = 15;
    CHECK(judged(measured(repeats), startup_time <= 20_s).outcome == verdict::pass);
    CHECK(judged(measured(repeats), startup_time <= 20_s).repeats == 1);
    repeats[0].startup_s = 28;
    CHECK(judged(measured(repeats), startup_time <= 20_s).outcome == verdict::inconclusive);
    repeats[0].startup_s = 30;
    CHECK(judged(measured(repeats), startup_time <= 20_s).outcome == verdict::fail);
}

// ---- repeats with so many failures that the statistic has no size ------------------------------

TEST_CASE("infinite repeats fail where they are two and half of all, and never pass") {
    const repeat_data good = repeat_with_failures(20, 0), bad = repeat_with_failures(20, 4);
    const slo s = p90(ttft) <= 100_ms;  // good ones have 50 ms, bad ones are infinite
    const auto on = [&](const std::vector<repeat_data>& data) {
        return judged(measured(data, {s}), s);
    };
    CHECK(on({bad, bad}).outcome == verdict::fail);
    CHECK(on({good, bad, bad}).outcome == verdict::fail);
    CHECK(on({bad, good, good, bad}).outcome == verdict::fail);
    CHECK(on({bad, good, good, good, bad}).outcome == verdict::inconclusive);
    CHECK(on({bad, good, good, good, good}).outcome == verdict::inconclusive);
    CHECK(on({good, bad}).outcome == verdict::inconclusive);
    CHECK(on({good, good, bad, bad, bad}).outcome == verdict::pass);  // decided before

    const slo_verdict v = on({bad, bad});
    CHECK(v.estimate.value == infinity);
    CHECK(v.repeats == 2);
    CHECK(str(v.reason) == "2 of 2 repeats have so many failures that the statistic is infinite");
}

TEST_CASE("for speeds a repeat of the worst value is zero") {
    const repeat_data good = repeat_with_failures(20, 0), bad = repeat_with_failures(20, 4);
    const slo s = p10(decode_speed) >= 50_tps;  // good ones have 100 tokens/s
    CHECK(judged(measured({good, good}), s).outcome == verdict::pass);
    const slo_verdict v = judged(measured({bad, bad}), s);
    CHECK(v.outcome == verdict::fail);
    CHECK(v.estimate.value == 0);
    CHECK(mentions(v.reason, "the statistic is zero"));
    CHECK(judged(measured({bad, good, good, good, good}), s).outcome == verdict::inconclusive);
}

TEST_CASE("a statistic that some repeat does not have cannot be judged") {
    const repeat_data good = repeat_with_failures(20, 0), dead = repeat_with_failures(20, 20);
    const slo_verdict v = judged(measured({good, dead}), mean(ttft) <= 100_ms);
    CHECK(v.outcome == verdict::invalid);
    CHECK(mentions(v.reason, "repeat 2 has no value of mean(ttft)"));
}

// ---- shares -----------------------------------------------------------------------------------

TEST_CASE("without an error a limit of 1 % is shown by 410 requests and not by 380") {
    CHECK(verdict_on_failures(410, 0, error_rate <= 1_pct).outcome == verdict::pass);
    CHECK(verdict_on_failures(380, 0, error_rate <= 1_pct).outcome == verdict::inconclusive);
    CHECK(verdict_on_failures(816, 0, error_rate <= 0.5_pct).outcome == verdict::pass);
    CHECK(verdict_on_failures(780, 0, error_rate <= 0.5_pct).outcome == verdict::inconclusive);
}

TEST_CASE("errors are shown to exceed their limit by an exact test") {
    // 12 of 400: lower 1 % bound 1.143 %; 11 of 400: 0.994 %.
    const slo_verdict v = verdict_on_failures(400, 12, error_rate <= 1_pct);
    CHECK(v.outcome == verdict::fail);
    CHECK(v.estimate.value == about(0.03));
    CHECK(v.estimate.low == about(0.0147308918436));
    CHECK(v.estimate.high == about(0.053740188).epsilon(1e-7));
    CHECK(v.repeats == 2);
    CHECK(v.requests == 400);
    CHECK(verdict_on_failures(400, 11, error_rate <= 1_pct).outcome == verdict::inconclusive);
}

TEST_CASE("goodput is judged on its misses") {
    // 2 misses of 200: the upper bound is 3.81 % misses, the lower 0.0986 %.
    const slo_verdict v = verdict_on_failures(200, 2, goodput(ttft <= 1_s) >= 95_pct);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.estimate.value == about(0.99));
    CHECK(v.estimate.low == about(1 - 0.03808653534));
    CHECK(v.estimate.high == about(1 - 0.0009860001801));
    CHECK(verdict_on_failures(200, 2, goodput(ttft <= 1_s) >= 97_pct).outcome ==
          verdict::inconclusive);
    CHECK(verdict_on_failures(200, 20, goodput(ttft <= 1_s) >= 97_pct).outcome == verdict::fail);
    CHECK(verdict_on_failures(200, 0, goodput(ttft <= 49_ms) >= 50_pct).outcome == verdict::fail);
}

TEST_CASE("counts are pooled over repeats") {
    // Each repeat alone would be undecided.
    const slo_verdict v = verdict_on_failures(500, 0, error_rate <= 1_pct, 5);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.repeats == 5);
    CHECK(v.requests == 500);
    CHECK(verdict_on_failures(1000, 0, error_rate <= 1_pct, 5).repeats == 3);
}

TEST_CASE("one repeat decides no share") {
    const slo_verdict v = verdict_on_failures(1000, 0, error_rate <= 1_pct, 1);
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(v.repeats == 1);
    CHECK(v.estimate.value == 0);
}

TEST_CASE("failures in one burst say less than the same number spread out") {
    std::vector<request> requests;
    for (int i = 0; i < 200; ++i)
        requests.push_back(i >= 100 && i < 106 ? failed(100.0 * i) : answered(100.0 * i, 50));
    const repeat_data burst = repeat_of(requests);
    const slo s = error_rate <= 1_pct;
    const slo_verdict bursty = judged(measured({burst, burst}, {s}), s),
                      spread = verdict_on_failures(400, 12, s);
    CHECK(spread.outcome == verdict::fail);
    CHECK(bursty.outcome == verdict::inconclusive);
    CHECK(bursty.estimate.value == spread.estimate.value);
    CHECK(bursty.estimate.high > spread.estimate.high);
}

// ---- the guard on errors -----------------------------------------------------------------------

TEST_CASE("the guard fails where errors are shown and else says nothing") {
    const auto guard_on = [](int n, int failures) {
        return judge_all(measured({repeat_with_failures(n / 2, failures / 2),
                                   repeat_with_failures(n / 2, failures - failures / 2)},
                                  {mean(ttft) <= 100_ms}))
            .back();
    };
    CHECK(guard_on(400, 12).outcome == verdict::fail);
    for (const int failures : {0, 1, 4, 8, 11}) {
        CAPTURE(failures);
        const slo_verdict v = guard_on(400, failures);
        CHECK(v.outcome == verdict::pass);
        CHECK(str(v.reason) == "not shown to be exceeded");
    }
    CHECK(guard_on(1000, 0).reason.empty());  // shown to be met
}

TEST_CASE("a gate that states its error rate has no guard") {
    const std::vector<repeat_data> data = {repeat_with_failures(200, 6),
                                           repeat_with_failures(200, 6)};
    CHECK(judge_all(measured(data, {})).size() == 1);
    CHECK(judge_all(measured(data, {})).back().limit == 0.01);
    CHECK(judge_all(measured(data, {mean(ttft) <= 100_ms})).size() == 2);
    const std::vector<slo_verdict> own = judge_all(measured(data, {error_rate <= 10_pct}));
    CHECK(own.size() == 1);
    CHECK(own[0].outcome == verdict::pass);
    // What is only noted guards nothing.
    CHECK(judge_all(measured(data, {advisory(error_rate <= 10_pct)})).size() == 2);
}

TEST_CASE("verdicts come in the order of their objectives") {
    const std::vector<slo_verdict> v = judge_all(
        measured(repeats_with_ttft({80, 80, 80}), {mean(ttft) <= 50_ms, p50(ttft) <= 100_ms}));
    REQUIRE(v.size() == 3);
    CHECK(v[0].outcome == verdict::fail);
    CHECK(v[1].outcome == verdict::pass);
    CHECK(v[2].what.what.metric == metric_id::error_rate);
    CHECK(all_decided(v));
    CHECK_FALSE(
        all_decided(judge_all(measured(repeats_with_ttft({99, 99}), {mean(ttft) <= 100_ms}))));
}

// ---- invalid -----------------------------------------------------------------------------------

TEST_CASE("without one success nothing can be said") {
    const measurement m = measured({repeat_with_failures(20, 20), repeat_with_failures(20, 20)},
                                   {mean(ttft) <= 100_ms});
    for (const slo_verdict& v : judge_all(m)) {
        CHECK(v.outcome == verdict::invalid);
        CHECK(str(v.reason) == "server: none of 40 requests succeeded (timeout: no answer)");
    }
    CHECK(judge_all(m).size() == 2);
}

TEST_CASE("no data is never green") {
    for (const slo& s : {mean(ttft) <= 1_s, error_rate <= 50_pct, goodput(ttft <= 1_s) >= 1_pct}) {
        CHECK(judged(measured({}), s).outcome == verdict::invalid);
        CHECK(judged(measured({repeat_data{}, repeat_data{}}), s).outcome == verdict::invalid);
        CHECK(str(judged(measured({}), s).reason) == "no request was measured");
    }
    CHECK(judge_all(measured({})).back().outcome == verdict::invalid);
}

TEST_CASE("a server that went away leaves nothing to judge, but the estimates stay") {
    measurement m = measured(repeats_with_ttft({80, 80}));
    m.candidate[1].target_gone = "its process exited with code 1";
    const slo_verdict v = judged(m, mean(ttft) <= 100_ms);
    CHECK(v.outcome == verdict::invalid);
    CHECK(str(v.reason) == "server: its process exited with code 1");
    CHECK(v.estimate.value == about(0.080));
    CHECK(judged(m, error_guard(), true).outcome == verdict::invalid);

    measurement pairs = pairs_with_ratio({1, 1, 1, 1});
    pairs.baseline[2].target_gone = "its process exited with code 1";
    CHECK(str(judged(pairs, mean(ttft) <= 1.1 * baseline).reason) ==
          "baseline server: its process exited with code 1");
}

TEST_CASE("an interrupted run has no verdict") {
    measurement m = measured(repeats_with_ttft({80, 80}));
    m.candidate[1].interrupted = true;
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::invalid);
    CHECK(str(judged(m, mean(ttft) <= 100_ms).reason) == "the run was interrupted");
}

TEST_CASE("late sends spoil what counts from the planned time and nothing else") {
    measurement m = measured(repeats_with_ttft({80, 80}), {mean(ttft) <= 100_ms});
    // p99 of the lateness is 5 % of the limit: still allowed.
    for (repeat_data& d : m.candidate) send_late(d, {0.005});
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::pass);
    for (repeat_data& d : m.candidate) send_late(d, {0.0051});
    for (const slo& s :
         {mean(ttft) <= 100_ms, p90(e2e) <= 1_s, goodput(ttft <= 100_ms) >= 50_pct}) {
        const slo_verdict v = judged(m, s);
        CAPTURE(str(s.text()));
        CHECK(v.outcome == verdict::invalid);
        CHECK(
            str(v.reason) ==
            "client: requests were sent late, p99 5.1 ms, over 5 % of the tightest limit (100 ms)");
    }
    for (const slo& s : {mean(tpot) <= 20_ms, p50(itl) <= 20_ms, p50(ttft_from_send) <= 1_s,
                         goodput(tpot <= 20_ms) >= 50_pct, p50(decode_speed) >= 50_tps}) {
        CAPTURE(str(s.text()));
        CHECK(judged(m, s).outcome == verdict::pass);
    }
}

TEST_CASE("over 2 percent of sends later than 10 ms are too many without any time limit") {
    measurement m = measured({steady_repeat(80, 100), steady_repeat(80, 100)});
    for (repeat_data& d : m.candidate)
        d.records[0].late_ns = d.records[1].late_ns = 20'000'000;
    CHECK(self_check_of(m).ok);
    m.candidate[0].records[2].late_ns = 20'000'000;
    CHECK_FALSE(self_check_of(m).ok);
    CHECK(str(self_check_of(m).reason) ==
          "client: 2.5 % of the requests were sent over 10 ms late");
}

TEST_CASE("a client that did not send at the rate asked for proves nothing about latency") {
    measurement m = measured({steady_repeat(80, 25), steady_repeat(80, 25)});
    for (repeat_data& d : m.candidate) {
        d.asked_rate = 10;
        d.achieved_rate = 9.81;
    }
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::pass);
    for (repeat_data& d : m.candidate) d.achieved_rate = 9.79;
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::invalid);
    CHECK(str(judged(m, mean(ttft) <= 100_ms).reason) ==
          "client: sent 9.79 requests/s instead of 10");
    CHECK(judged(m, mean(tpot) <= 20_ms).outcome == verdict::pass);
}

TEST_CASE("a client thread that comes late spoils what it stamps") {
    measurement m = measured(repeats_with_ttft({80, 80}), {mean(ttft) <= 400_ms});
    m.candidate[1].stamp_lag_p99 = 0.020;  // 5 % of the limit: still allowed
    CHECK(judged(m, mean(ttft) <= 400_ms).outcome == verdict::pass);
    m.candidate[1].loop_lag_p99 = 0.021;
    CHECK(judged(m, mean(ttft) <= 400_ms).outcome == verdict::invalid);
    CHECK(str(judged(m, mean(ttft) <= 400_ms).reason) ==
          "client: its thread came late, p99 20 ms to read and 21 ms to wake, over 5 % of the "
          "tightest limit (400 ms)");
    CHECK(judged(m, mean(tpot) <= 20_ms).outcome == verdict::pass);
}

TEST_CASE("answers of one token spoil verdicts on the time per output token") {
    // One of 20 requests is 5 %, which is allowed; two are not.
    const auto with_short = [](int n) {
        std::vector<request> requests;
        for (int i = 0; i < 20; ++i)
            requests.push_back(answered(100.0 * i, 80, 10, i < n ? 1 : 11));
        return measured({repeat_of(requests), repeat_of(requests)});
    };
    const slo on_tpot[] = {mean(tpot) <= 20_ms, p10(decode_speed) >= 50_tps,
                           goodput(ttft <= 1_s && tpot <= 20_ms) >= 50_pct};
    for (const slo& s : on_tpot) {
        CAPTURE(str(s.text()));
        CHECK(judged(with_short(1), s).outcome == verdict::pass);
        CHECK(judged(with_short(2), s).outcome == verdict::invalid);
        CHECK(str(judged(with_short(2), s).reason) ==
              "server: 4 of 40 completed requests have too few tokens for a tpot");
        measurement asked_for = with_short(2);
        asked_for.short_outputs_expected = true;
        CHECK(judged(asked_for, s).outcome == verdict::pass);
        measurement all_short = with_short(20);
        all_short.short_outputs_expected = true;
        CHECK(judged(all_short, s).outcome == verdict::invalid);
    }
    CHECK(judged(with_short(2), mean(ttft) <= 100_ms).outcome == verdict::pass);
}

TEST_CASE("a busy client that reads events together spoils the gaps between them") {
    measurement m = measured(repeats_with_ttft({80, 80}));  // 220 content events a repeat
    const auto read_together = [&](long long events, double cpu) {
        for (repeat_data& d : m.candidate) {
            d.coalesced_events = events;
            d.cpu_share = cpu;
        }
        return judged(m, p50(itl) <= 20_ms);
    };
    CHECK(read_together(11, 0.9).outcome == verdict::pass);  // 5 %
    CHECK(read_together(12, 0.9).outcome == verdict::invalid);
    CHECK(mentions(read_together(12, 0.9).reason,
                   "client: it was busy and read 5.5 % of the events together"));
    CHECK(read_together(12, 0.5).outcome == verdict::pass);  // the server sent them together
    CHECK(judged(m, mean(tpot) <= 20_ms).outcome == verdict::pass);
}

TEST_CASE("a limit relative to a baseline needs one") {
    const slo_verdict v = verdict_on({80, 80}, mean(ttft) <= 1.10 * baseline);
    CHECK(v.outcome == verdict::invalid);
    CHECK(str(v.reason) == "there is no baseline");
}

TEST_CASE("the client's own account is over all repeats and arms") {
    measurement m = pairs_with_ratio({1, 1});
    for (auto* arm : {&m.candidate, &m.baseline})
        for (repeat_data& d : *arm)
            for (record& r : d.records) r.dispatched_ns = 0;  // but these four
    const auto sent = [](record& r, long long late_ns) {
        r.dispatched_ns = r.scheduled_ns + late_ns;
        r.late_ns = late_ns;
    };
    sent(m.candidate[0].records[0], 1'000'000);
    sent(m.candidate[0].records[1], 2'000'000);
    sent(m.baseline[1].records[0], 3'000'000);
    sent(m.baseline[1].records[1], 20'000'000);
    m.candidate[0].connections_opened = 3;
    m.baseline[0].connections_opened = 4;
    m.candidate[0].cpu_share = 0.4;
    m.candidate[0].coalesced_events = 44;
    const self_check_t c = self_check_of(m);
    CHECK(c.lateness_p50 == 0.002);
    CHECK(c.lateness_p99 == 0.020);
    CHECK(c.lateness_max == 0.020);
    CHECK(c.late_share == 0.25);
    CHECK(c.connections_opened == 7);
    CHECK(c.cpu_share == about(0.1));
    CHECK(c.coalesced_share == about(44 / 880.0));
}

TEST_CASE("the tightest limit is the smallest on ttft or e2e, wherever it is written") {
    const auto tightest = [](std::vector<slo> slos) {
        return tightest_time_limit(measured({}, std::move(slos)));
    };
    CHECK(tightest({mean(tpot) <= 1_ms, error_rate <= 1_pct}) == infinity);
    CHECK(tightest({p99(ttft) <= 300_ms, p50(e2e) <= 200_ms}) == 0.2);
    CHECK(tightest({p99(ttft) <= 300_ms, goodput(tpot <= 1_ms && ttft <= 150_ms) >= 90_pct}) ==
          0.15);
    measurement m = pairs_with_ratio({1, 1, 1, 1});
    m.slos = {mean(ttft) <= 1.5 * baseline};
    CHECK(tightest_time_limit(m) == about(0.150));
}

// ---- baselines --------------------------------------------------------------------------------

TEST_CASE("pairs are judged on the ratio, from the fourth on") {
    const slo_verdict same = verdict_on_pairs({1, 1, 1, 1, 1, 1, 1, 1});
    CHECK(same.outcome == verdict::pass);
    CHECK(same.repeats == 4);
    CHECK(same.limit == 1.10);
    CHECK(same.estimate.value == about(1));
    CHECK(same.estimate.low == about(0.959564353));
    CHECK(same.estimate.high == about(1.042139589));
    CHECK(verdict_on_pairs({1.2, 1.2, 1.2, 1.2}).outcome == verdict::fail);
    CHECK(verdict_on_pairs({1.2, 1.2, 1.2, 1.2}).repeats == 4);
    // Three pairs are too few, however clear they look.
    CHECK(verdict_on_pairs({0.5, 0.5, 0.5}).outcome == verdict::inconclusive);
    CHECK(verdict_on_pairs({2, 2, 2}).outcome == verdict::inconclusive);
}

TEST_CASE("close pairs take up to eight") {
    const slo_verdict inside = verdict_on_pairs(std::vector<double>(8, 1.06));
    CHECK(inside.outcome == verdict::pass);
    CHECK(inside.repeats == 5);
    const slo_verdict outside = verdict_on_pairs(std::vector<double>(8, 1.16));
    CHECK(outside.outcome == verdict::fail);
    CHECK(outside.repeats == 5);
    const slo_verdict at_limit = verdict_on_pairs(std::vector<double>(8, 1.10));
    CHECK(at_limit.outcome == verdict::inconclusive);
    CHECK(at_limit.repeats == 8);
    CHECK(str(at_limit.reason) == "too close to call");
}

TEST_CASE("what both arms of a pair share cancels out") {
    // The machine is twice as slow for two of the pairs; the ratio is not.
    measurement m;
    for (const double base : {100.0, 200.0, 200.0, 100.0}) {
        m.candidate.push_back(steady_repeat(base));
        m.baseline.push_back(steady_repeat(base));
    }
    const slo_verdict v = judged(m, mean(ttft) <= 1.10 * baseline);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.estimate.value == about(1));
}

TEST_CASE("a speed may fall to its share of the baseline's") {
    measurement m;
    for (int i = 0; i < 4; ++i) {
        m.candidate.push_back(steady_repeat(100, 20, 12.5));  // 80 tokens/s
        m.baseline.push_back(steady_repeat(100, 20, 10));     // 100 tokens/s
    }
    CHECK(judged(m, p50(decode_speed) >= 0.70 * baseline).outcome == verdict::pass);
    CHECK(judged(m, p50(decode_speed) >= 0.90 * baseline).outcome == verdict::fail);
    CHECK(judged(m, p50(decode_speed) >= 0.70 * baseline).estimate.value == about(0.8));
}

TEST_CASE("shares of a gate with a baseline are looked at as often as its pairs") {
    measurement m;
    for (int i = 0; i < 5; ++i) {
        m.candidate.push_back(repeat_with_failures(1000, 0));
        m.baseline.push_back(repeat_with_failures(1000, 500));
    }
    const slo_verdict v = judged(m, error_rate <= 1_pct);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.estimate.value == 0);  // of the candidate
    CHECK(v.repeats == 4);
}

TEST_CASE("absolute limits of a gate with a baseline are looked at as often as its pairs") {
    measurement m = pairs_with_ratio({0.5, 0.5, 0.5, 0.5, 2});
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::pass);
    CHECK(judged(m, mean(ttft) <= 100_ms).repeats == 4);
    m.candidate.resize(3);
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::inconclusive);
}

TEST_CASE("a candidate that fails half of its pairs is not saved by a good baseline") {
    measurement m = pairs_with_ratio({1, 1, 1, 1});
    for (repeat_data& d : m.candidate) d = repeat_with_failures(20, 4);
    CHECK(judged(m, p90(ttft) <= 1.5 * baseline).outcome == verdict::fail);
}

// ---- properties -------------------------------------------------------------------------------

namespace {

/// Requests with random latencies, about 2 % of them failed; everything takes `slower` times as
/// long.
repeat_data random_repeat(std::uint64_t seed, double typical_ttft_ms, double slower) {
    generator random(seed);
    std::vector<request> requests;
    for (int i = 0; i < 30; ++i) {
        const double first = typical_ttft_ms * std::exp(0.3 * random.normal()),
                     gap = 10 * std::exp(0.1 * random.normal());
        const bool fails = random.uniform() < 0.02;
        requests.push_back(fails ? failed(100.0 * i)
                                 : answered(100.0 * i, slower * first, slower * gap));
    }
    return repeat_of(requests);
}
measurement random_measurement(std::uint64_t seed, double slower) {
    generator random(seed, 1);
    const double typical = 100 * std::exp(0.15 * random.normal());
    const std::uint64_t repeats = 2 + random.below(4);
    measurement m;
    for (std::uint64_t i = 0; i < repeats; ++i)
        m.candidate.push_back(
            random_repeat(seed * 100 + i, typical * std::exp(0.03 * random.normal()), slower));
    return m;
}
const slo time_slos[] = {mean(ttft) <= 110_ms,       p50(ttft) <= 105_ms, p90(ttft) <= 160_ms,
                         mean(tpot) <= 11_ms,        p90(itl) <= 12_ms,   p50(e2e) <= 220_ms,
                         p50(decode_speed) >= 95_tps};

}  // namespace

TEST_CASE("a uniformly slower copy never turns a fail into a pass") {
    // Of times and speeds: there a slower copy shifts every distance by the same amount. Shares
    // have no such proof, since more misses may also be less clustered ones.
    int failed_fast = 0, passed_fast = 0, changed = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        const double slower = 1 + 0.01 * static_cast<double>(seed % 20 + 1);
        const measurement fast = random_measurement(seed, 1),
                          slow = random_measurement(seed, slower);
        for (const slo& s : time_slos) {
            const verdict before = judged(fast, s).outcome, after = judged(slow, s).outcome;
            CAPTURE(seed);
            CAPTURE(str(s.text()));
            CHECK_FALSE((before == verdict::fail && after == verdict::pass));
            CHECK_FALSE((before == verdict::inconclusive && after == verdict::pass));
            failed_fast += before == verdict::fail;
            passed_fast += before == verdict::pass;
            changed += before != after;
        }
    }
    // The loop has seen what it is about.
    CHECK(failed_fast > 20);
    CHECK(passed_fast > 20);
    CHECK(changed > 20);
}

TEST_CASE("the order of requests inside a repeat changes no verdict on times") {
    // Shares are left out on purpose: their design effect is computed in arrival order, and must
    // be.
    generator random(7);
    int decided = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const measurement m = random_measurement(seed, 1);
        measurement permuted;
        for (const repeat_data& d : m.candidate) {
            std::vector<std::size_t> order(d.records.size());
            for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
            for (std::size_t i = order.size(); i > 1; --i)
                std::swap(order[i - 1], order[random.below(i)]);
            repeat_data p;
            for (const std::size_t i : order) {
                p.records.push_back(d.records[i]);
                p.gap_offsets.push_back(p.gaps.size());
                const auto from = d.gaps.begin() + static_cast<std::ptrdiff_t>(d.gap_offsets[i]);
                p.gaps.insert(p.gaps.end(), from,
                              from + static_cast<std::ptrdiff_t>(gap_count(d.records[i])));
            }
            permuted.candidate.push_back(std::move(p));
        }
        for (const slo& s : time_slos) {
            CAPTURE(str(s.text()));
            const slo_verdict a = judged(m, s), b = judged(permuted, s);
            CHECK(a.outcome == b.outcome);
            CHECK(a.repeats == b.repeats);
            if (s.what.kind == statistic_kind::percentile)
                CHECK(verdict_line(a) == verdict_line(b));
            decided += a.outcome == verdict::pass || a.outcome == verdict::fail;
        }
    }
    CHECK(decided > 50);
}

TEST_CASE("a share without misses, or with nothing else, does not depend on the order") {
    // The design effect is 1 there; in between the order matters, as the burst above shows.
    for (const int failures : {0, 200}) {
        const repeat_data d = repeat_with_failures(200, failures);
        repeat_data reversed = d;
        std::reverse(reversed.records.begin(), reversed.records.end());
        const repeat_data whole = repeat_with_failures(200, 0);
        CHECK(verdict_line(judged(measured({d, whole}), error_rate <= 40_pct)) ==
              verdict_line(judged(measured({reversed, whole}), error_rate <= 40_pct)));
    }
}

TEST_CASE("the same records give the same verdict, bit for bit") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        measurement m = random_measurement(seed, 1), again = random_measurement(seed, 1);
        m.slos.assign(std::begin(time_slos), std::end(time_slos));
        m.slos.push_back(goodput(ttft <= 150_ms && tpot <= 11_ms) >= 60_pct);
        again.slos = m.slos;
        const std::vector<slo_verdict> a = judge_all(m), b = judge_all(again);
        REQUIRE(a.size() == m.slos.size() + 1);
        REQUIRE(b.size() == a.size());
        for (std::size_t i = 0; i < a.size(); ++i) {
            CHECK(verdict_line(a[i]) == verdict_line(b[i]));
            CHECK(str(a[i].arithmetic) == str(b[i].arithmetic));
            CHECK(std::memcmp(&a[i].estimate, &b[i].estimate, sizeof(estimate_t)) == 0);
        }
    }
}

// ---- the lines that people read ---------------------------------------------------------------

TEST_CASE("every outcome has its line") {
    CHECK(verdict_line(verdict_on({80, 80})) ==
          "PASS          mean(ttft) <= 100 ms  80 ms [74.8 ms, 85.5 ms], 20.0 % inside the limit, "
          "2 repeats x 20 requests, moderated t, shows a miss from 13 %");
    CHECK(verdict_line(verdict_on({125, 125, 125})) ==
          "FAIL          mean(ttft) <= 100 ms  125 ms [119 ms, 132 ms], 25.0 % outside the limit, "
          "3 repeats x 20 requests, moderated t, shows a miss from 9.5 %");
    CHECK(verdict_line(verdict_on({99, 99, 99, 99, 99})) ==
          "INCONCLUSIVE  mean(ttft) <= 100 ms  99 ms [95.6 ms, 103 ms], 1.0 % inside the limit, "
          "5 repeats x 20 requests, moderated t, shows a miss from 6.4 %; too close to call");

    std::vector<repeat_data> one_token = {repeat_of({answered(0, 50, 10, 1)}),
                                          repeat_of({answered(0, 50, 10, 1)})};
    CHECK(verdict_line(judged(measured(one_token), mean(tpot) <= 25_ms)) ==
          "INVALID       mean(tpot) <= 25 ms  none; server: 2 of 2 completed requests have too few "
          "tokens for a tpot");

    slo_verdict skipped;
    skipped.what = mean(ttft) <= 100_ms;
    skipped.estimate = {not_a_number, not_a_number, not_a_number};
    skipped.reason = "no server";
    CHECK(verdict_line(skipped) == "SKIPPED       mean(ttft) <= 100 ms  none; no server");
}

TEST_CASE("lines of shares, speeds, pairs and misses without a size") {
    CHECK(verdict_line(verdict_on_failures(400, 12, error_rate <= 1_pct)) ==
          "FAIL          error_rate <= 1 %  3 % [1.473 %, 5.374 %], 2 repeats x 200 requests, "
          "Clopper-Pearson on counts, shows misses from 3.7 %");
    CHECK(verdict_line(verdict_on({50, 50}, p50(decode_speed) >= 80_tps)) ==
          "PASS          p50(decode_speed) >= 80 tok/s  100 tok/s [93.6 tok/s, 107 tok/s], 25.0 % "
          "inside the limit, 2 repeats x 20 requests, moderated t, shows a miss from 13 %");
    CHECK(verdict_line(verdict_on_pairs({1, 1, 1, 1})) ==
          "PASS          mean(ttft) <= 1.1 * baseline  1.000 x baseline [0.960 x baseline, 1.042 x "
          "baseline], "
          "9.1 % inside the limit, 4 pairs x 20 requests, paired moderated t, shows a miss from 7.7 %");
    const repeat_data bad = repeat_with_failures(20, 4);
    CHECK(
        verdict_line(judged(measured({bad, bad}), p90(ttft) <= 100_ms)) ==
        "FAIL          p90(ttft) <= 100 ms  infinite, 2 repeats x 20 requests, counted misses; 2 of 2 repeats have "
        "so many failures that the statistic is infinite");
}

TEST_CASE("a line may be given a width for its objective") {
    CHECK(verdict_line(verdict_on({80, 80}), 24)
              .find("PASS          mean(ttft) <= 100 ms      80 ms [") == 0);
    CHECK(
        verdict_line(verdict_on({80, 80}), 3).find("PASS          mean(ttft) <= 100 ms  80 ms [") ==
        0);
}

TEST_CASE("a ratio without a value or without a size is told in words") {
    CHECK(verdict_line(verdict_on({80, 80}, mean(ttft) <= 1.10 * baseline)) ==
          "INVALID       mean(ttft) <= 1.1 * baseline  none; there is no baseline");
    measurement m = pairs_with_ratio({1, 1, 1, 1});
    for (repeat_data& d : m.candidate) d = repeat_with_failures(20, 4);
    CHECK(verdict_line(judged(m, p90(ttft) <= 1.5 * baseline)) ==
          "FAIL          p90(ttft) <= 1.5 * baseline  infinite, 4 pairs x 20 requests, counted misses; 4 of 4 "
          "repeats have so many "
          "failures that the statistic is infinite");
}

TEST_CASE("headroom is how far inside the limit the estimate is") {
    CHECK(headroom(verdict_on({80, 80})) == about(0.20));
    CHECK(headroom(verdict_on({125, 125})) == about(-0.25));
    CHECK(headroom(verdict_on({50, 50}, p50(decode_speed) >= 80_tps)) == about(0.25));
    const repeat_data bad = repeat_with_failures(20, 4);
    CHECK(std::isnan(headroom(judged(measured({bad, bad}), p90(ttft) <= 100_ms))));
}

TEST_CASE("the arithmetic of a verdict names every number it used") {
    CHECK(str(verdict_on({80, 80}).arithmetic) ==
          "values 0.08, 0.08; ln distances from the limit -0.223144, -0.223144; mean -0.223144, sd "
          "0.0377124 "
          "(moderated), df 9, standard error 0.0266667; bounds: pass -0.223144 + 2.4974 x se = "
          "-0.156546 < 0, fail -0.223144 - 3.6756 x se = -0.321159 > 0 (t quantiles of the normal "
          "scores 2.1200 and 2.8000, Pocock's for 5 looks at 0.05 and 0.01)");
    CHECK(str(verdict_on_failures(400, 12, error_rate <= 1_pct).arithmetic) ==
          "misses 12 of 400, design effect 1.000, so 12 of 400 independent ones; upper bound 0.0537402 at level 0.017, lower "
          "bound 0.0114291 at "
          "level 0.002555 (one-sided Clopper-Pearson); allowed share of misses 0.01");
}
