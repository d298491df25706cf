// Verdicts where the client did not run all the time: what stands, and what is measured again.
#include "llmbench.hpp"
#include "core/judging/client_bias.hpp"
#include "core/described/sentences.hpp"
#include "core/judging/judge.hpp"
#include "support/verdicts.hpp"

#include <string>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {

client_stall stall_ms(double from, double to) {
    const long long a = at_ms(from), b = at_ms(to);
    return {a, b, b - a, b - a};
}
/// Requests that each see their last three of eleven events at once, `late_ms` after the third last
/// was due: the client was away then.
repeat_data starved_repeat(double late_ms, double gap_ms = 10) {
    std::vector<request> requests;
    repeat_data d;
    for (int i = 0; i < 20; ++i) {
        const double t = 1000.0 * i;
        request r(t);
        for (int k = 0; k < 8; ++k) r.content(t + 80 + k * gap_ms);
        const double back = t + 80 + 8 * gap_ms + late_ms;
        for (int k = 8; k < 11; ++k) r.content(back);
        r.finish(back).usage(back, 10, 11).done(back);
        requests.push_back(r);
        d.stalls.push_back(stall_ms(t + 80 + 7.5 * gap_ms, back + 1));
    }
    const client_stalls stalls = d.stalls;
    d = repeat_of(requests);
    d.stalls = stalls;
    return d;
}
verdict outcome_on(const std::vector<repeat_data>& repeats, const slo& s) {
    return judged(measured(repeats, {s}), s).outcome;
}

}  // namespace

TEST_CASE("a pass that holds with the client's delays counted in is a pass, and says so") {
    const slo s = p50(itl) <= 20_ms;
    const measurement m = measured({starved_repeat(60), starved_repeat(60)}, {s});
    CHECK(judge_all(m)[0].outcome == verdict::pass);
    const self_check_t c = self_check_of(m);
    CHECK(c.ok);
    CHECK(c.stalls == 40);
    CHECK(c.stall_max == about(0.066));
}

TEST_CASE("a miss that remains without the client's delays is a miss") {
    const std::vector<repeat_data> three(3, starved_repeat(60, 50));
    CHECK(outcome_on(three, p50(itl) <= 20_ms) == verdict::fail);
    CHECK(outcome_on(three, p50(ttft) <= 10_ms) == verdict::fail);
    CHECK(outcome_on(three, mean(tpot) <= 20_ms) == verdict::fail);
}

TEST_CASE("what only the client's delays miss is nobody's miss") {
    const std::vector<repeat_data> three(3, starved_repeat(92));
    const slo s = p95(itl) <= 40_ms;
    const slo_verdict v = judged(measured(three, {s}), s);
    CHECK(judge_evidence(measured(three, {s}), s).outcome == verdict::fail);
    CHECK(v.outcome == verdict::invalid);
    CHECK(str(v.reason) == "client: it was stalled 20 times, for up to 98 ms, and p95(itl) could be "
                           "anything from 10 ms to 102 ms; the limit is 40 ms");
    CHECK(v.estimate.value == about(0.102));  // as measured
    CHECK(outcome_on(three, mean(tpot) <= 12_ms) == verdict::invalid);
    CHECK(outcome_on(three, p50(e2e) <= 200_ms) == verdict::invalid);
    CHECK(outcome_on(three, goodput(e2e <= 200_ms) >= 90_pct) == verdict::invalid);
}

TEST_CASE("what only the client's blindness meets is not met") {
    // All of the answer is read in its last moment: the gaps are zero, and may have been anything.
    std::vector<request> requests;
    repeat_data d;
    for (int i = 0; i < 20; ++i) {
        const double t = 1000.0 * i;
        request r(t);
        for (int k = 0; k < 11; ++k) r.content(t + 500);
        requests.push_back(r.finish(t + 500).usage(t + 500, 10, 11).done(t + 500));
    }
    d = repeat_of(requests);
    for (int i = 0; i < 20; ++i) d.stalls.push_back(stall_ms(1000.0 * i + 20, 1000.0 * i + 501));
    CHECK(judge_evidence(measured({d, d}), p95(itl) <= 20_ms).outcome == verdict::pass);
    CHECK(outcome_on({d, d}, p95(itl) <= 20_ms) == verdict::invalid);
    CHECK(outcome_on({d, d}, p50(itl) <= 20_ms) == verdict::invalid);
    CHECK(outcome_on({d, d}, mean(tpot) <= 20_ms) == verdict::invalid);
    CHECK(outcome_on({d, d}, mean(tpot) <= 60_ms) == verdict::pass);
    CHECK(outcome_on({d, d}, p50(ttft) <= 600_ms) == verdict::pass);
}

TEST_CASE("the repeat with the client's greatest part is measured again, however good it was") {
    const slo s = mean(itl) <= 12_ms;
    for (const double other : {10.0, 30.0}) {
        measurement m = measured({steady_repeat(80, 20, 10), starved_repeat(50, 11.5),
                                  steady_repeat(80, 20, other)},
                                 {s});
        const findings f = assess(m, m);
        if (!f.bias) continue;   // decided by the others
        CHECK(f.bias->repeat == 1);
        CHECK(f.verdicts[0].outcome == verdict::invalid);
        CHECK_FALSE(f.on.self_check.ok);
        CHECK(described(f.on.self_check.why) == described(f.bias->why));
    }
    measurement m = measured({steady_repeat(80), starved_repeat(92)}, {s});
    REQUIRE(assess(m, m).bias);
    CHECK(assess(m, m).bias->repeat == 1);
}

TEST_CASE("a pair of which the client may have made everything is the one to measure again") {
    // Of the third baseline nothing may be left, so that its ratio has no value at worst.
    measurement m = pairs_with_ratio({1, 1, 1, 1});
    m.baseline[2].stalls = {{at_ms(-1e6), at_ms(1e6), 2'000'000'000'000, 2'000'000'000'000}};
    m.candidate[1].stalls = {stall_ms(78, 81)};
    m.slos = {mean(ttft) <= 1.5 * baseline};
    REQUIRE(assess(m, m).bias);
    CHECK(assess(m, m).bias->repeat == 2);
    CHECK(mentions(text(described(assess(m, m).bias->why)), "could be anything from 0 x baseline to infinite"));
}

TEST_CASE("an advisory objective asks for no other repeat") {
    const slo s = advisory(p95(itl) <= 40_ms);
    const measurement m = measured({starved_repeat(92), starved_repeat(92), starved_repeat(92)}, {s});
    const findings f = assess(m, m);
    CHECK(f.verdicts[0].outcome == verdict::invalid);
    CHECK_FALSE(f.bias);
    CHECK(f.on.self_check.ok);
}

TEST_CASE("what is undecided because the client moved a repeat is the client's") {
    // Undisturbed 80 ms each; the client made 160 of one, so they spread.
    const slo s = p50(ttft) <= 120_ms;
    measurement m = measured(repeats_with_ttft({80, 160}), {s});
    CHECK(judged(m, s).outcome == verdict::inconclusive);
    for (int i = 0; i < 20; ++i)
        m.candidate[1].stalls.push_back(stall_ms(100.0 * i + 75, 100.0 * i + 161));
    for (std::size_t i = 1; i < m.candidate[1].stalls.size(); ++i)  // none reaches into the next
        m.candidate[1].stalls[i - 1].to_ns =
            std::min(m.candidate[1].stalls[i - 1].to_ns, m.candidate[1].stalls[i].from_ns);
    const findings f = assess(m, m);
    CHECK(f.verdicts[0].outcome == verdict::invalid);
    REQUIRE(f.bias);
    CHECK(f.bias->repeat == 1);
    // Moved by less than repeats differ anyway, it stays too close to call.
    measurement close = measured(repeats_with_ttft({118, 121}), {s});
    close.candidate[1].stalls = {stall_ms(119, 122)};
    CHECK(judged(close, s).outcome == verdict::inconclusive);
}

TEST_CASE("two misses that wait for a third one are not measured again for a client's delays") {
    // Far over its limit, with and without the 92 ms that the client may have made of each.
    const slo s = p95(itl) <= 1_ms;
    const measurement two = measured({starved_repeat(92), starved_repeat(92)}, {s});
    const findings f = assess(two, two);
    CHECK(f.verdicts[0].outcome == verdict::inconclusive);
    CHECK(waits_for_a_third(f.verdicts[0]));
    CHECK_FALSE(f.bias);
    const std::vector<repeat_data> three(3, starved_repeat(92));
    CHECK(outcome_on(three, s) == verdict::fail);
    // Within the limit without those delays, two of them do ask for another.
    const slo near = p95(itl) <= 40_ms;
    const measurement biased = measured({starved_repeat(92), starved_repeat(92)}, {near});
    CHECK(assess(biased, biased).bias);
}

TEST_CASE("of a pair the baseline is read the other way") {
    const slo s = p95(itl) <= 1.5 * baseline;
    measurement m = pairs_with_ratio({1, 1, 1, 1});
    m.slos = {s};
    CHECK(judged(m, s).outcome == verdict::pass);
    // The baseline's gaps look long because the client was away: at worst for us they were short.
    m.baseline[2] = starved_repeat(92);
    const findings f = assess(m, m);
    CHECK(f.verdicts[0].outcome == verdict::invalid);
    REQUIRE(f.bias);
    CHECK(f.bias->repeat == 2);
    CHECK(described(f.bias->why).find(" x baseline") != std::string::npos);
}

TEST_CASE("errors are no matter of the client's delays") {
    const measurement m = measured({starved_repeat(500), starved_repeat(500)}, {});
    CHECK(judge_all(m).back().outcome != verdict::invalid);
}

TEST_CASE("what a disturbed client measured is no baseline for later") {
    measurement m = measured({steady_repeat(80), starved_repeat(92)}, {p95(itl) <= 1.1 * baseline});
    const auto bias = bias_of_baseline(m, m);
    REQUIRE(bias);
    CHECK(bias->repeat == 1);
    CHECK(described(bias->why) == "client: it was stalled 20 times, for up to 98 ms, and p95(itl) could be "
                        "anything from 10 ms to 102 ms");
    m.candidate[1] = steady_repeat(80);
    CHECK_FALSE(bias_of_baseline(m, m));
    m.slos = {p95(itl) <= 40_ms};  // of its own
    m.candidate[1] = starved_repeat(92);
    CHECK_FALSE(bias_of_baseline(m, m));
}
