// Verdicts on values: times, speeds, rates, and repeats that have no size.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/measured/columns.hpp"
#include "core/judging/values.hpp"
#include "core/bodies/result_data.hpp"
#include "support/verdicts.hpp"

#include <cmath>
#include <memory>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

// ---- times, speeds, rates ----------------------------------------------------------------------

TEST_CASE("two repeats far inside the limit pass") {
    const slo_verdict v = verdict_on({80, 80});
    CHECK(v.outcome == verdict::pass);
    CHECK(v.repeats == 2);
    CHECK(v.requests == 40);
    CHECK(v.limit == 0.1);
    CHECK(v.estimate.value == about(0.080));
    // Two repeats hardly fail, so that both ends are at the level of a pass.
    CHECK(v.estimate.low == about(0.0064 / 0.08550922198).epsilon(1e-8));
    CHECK(v.estimate.high == about(0.08550922198).epsilon(1e-8));
    // Three do: each end is the bound that decides on its side, at 1 % for a fail, at 5 % for a
    // pass.
    const slo_verdict three = verdict_on({97, 97, 97});
    CHECK(three.repeats == 3);
    CHECK(three.outcome == verdict::pass);
    CHECK(three.estimate.high / 0.097 < 0.097 / three.estimate.low);
    CHECK(v.detectable == about(0.12801402).epsilon(1e-7));
}

TEST_CASE("a pass of two repeats that spread has an interval of a size, not one from nothing") {
    const slo_verdict v = verdict_on({9.6, 10.8});
    CHECK(v.outcome == verdict::pass);
    CHECK(v.repeats == 2);
    CHECK(v.estimate.low == about(v.estimate.value * v.estimate.value / v.estimate.high));
    const slo_verdict speed = verdict_on({9.6, 10.8}, p50(decode_speed) >= 50_tps);
    CHECK(speed.outcome == verdict::pass);
    CHECK(speed.estimate.high ==
          about(speed.estimate.value * speed.estimate.value / speed.estimate.low));
}

TEST_CASE("a miss that no machine's noise makes is shown by two repeats") {
    const slo_verdict v = verdict_on({210, 260, 205, 230, 250});
    CHECK(v.outcome == verdict::fail);
    CHECK(v.repeats == 2);
    CHECK(input(v, "prior_sd") == most_noise);
    CHECK(input(verdict_on({15000, 40000}), "prior_sd") == most_noise);
    // Each repeat is at twice the limit, not their mean.
    CHECK(verdict_on({199, 300}).outcome == verdict::inconclusive);
    // A speed: at half of the limit.
    CHECK(verdict_on({50, 50}, p50(decode_speed) >= 201_tps).outcome == verdict::fail);
    CHECK(verdict_on({50, 50}, p50(decode_speed) >= 199_tps).outcome == verdict::inconclusive);
}

TEST_CASE("another miss takes three repeats") {
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

TEST_CASE("closer values take as many repeats as it needs") {
    // 5 % inside: the upper bound of the second look is 101.54 ms, of the third 96.2 ms.
    const slo_verdict inside = verdict_on({95, 95, 95, 95, 95});
    CHECK(inside.outcome == verdict::pass);
    CHECK(inside.repeats == 3);
    CHECK(inside.estimate.high == about(0.095 * std::exp(hidden_by_modes(3, 0.05))));
    // 1.4 % outside: four repeats may hide as much.
    const slo_verdict outside = verdict_on({101.3, 101.3, 101.3, 101.3, 101.3});
    CHECK(outside.outcome == verdict::fail);
    CHECK(outside.repeats == 5);
}

TEST_CASE("what the last repeat leaves open is inconclusive and says what would decide") {
    const vector<double> ms = {96.5, 99, 101, 97.5, 101};
    const slo_verdict v = verdict_on(ms);
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(v.repeats == 5);
    CHECK(str(v.method) == "moderated t");
    CHECK(str(v.reason) == "too close to call");
    CHECK(mentions(v.advice, "<= 106 ms would seldom be"));
    // The limit it names really passes, with room to spare.
    for (const time_span limit : {105_ms, 106_ms})
        CHECK(verdict_on(ms, mean(ttft) <= limit).outcome == verdict::pass);
}

TEST_CASE("a decision stands while the data as a whole agree with it") {
    const slo_verdict passed = verdict_on({80, 80, 110, 110, 110});
    CHECK(passed.outcome == verdict::pass);
    CHECK(passed.repeats == 2);
    CHECK(passed.estimate.value == about(0.080));
    CHECK(passed.measured == about(0.098));
    const slo_verdict failed_early = verdict_on({130, 130, 130, 60, 60});
    CHECK(failed_early.outcome == verdict::fail);
    CHECK(failed_early.repeats == 3);
    CHECK(failed_early.measured == about(0.102));
    // Otherwise it is looked at all of them.
    const slo_verdict slower = verdict_on({80, 80, 300, 300, 300});
    CHECK(slower.outcome == verdict::inconclusive);
    CHECK(slower.repeats == 5);
    CHECK(verdict_on({130, 130, 130, 10, 10}).outcome == verdict::inconclusive);
    CHECK(verdict_on({130, 130, 130, 10, 10}).repeats == 5);
    // What all of them show is shown.
    CHECK(verdict_on({93, 93, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112}).outcome == verdict::fail);
}

// ---- a verdict and the data ---------------------------------------------------------------------

TEST_CASE("one request over a limit on the largest value is never a pass") {
    vector<repeat_data> repeats = repeats_with_ttft({50, 50, 50, 50, 50});
    // Ten requests, one of which is unlike the others.
    const auto repeat_with_one = [](double ttft_ms, double gap_ms) {
        vector<request> requests;
        for (int i = 0; i < 10; ++i)
            requests.push_back(i == 1 ? answered(100.0, ttft_ms, gap_ms)
                                      : answered(100.0 * i, 50, 10));
        return repeat_of(requests);
    };
    repeats[3] = repeat_with_one(300, 10);
    const slo_verdict v = judged(measured(repeats), max(ttft) <= 200_ms);
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(v.measured == about(0.300));
    CHECK(v.estimate.value == about(std::pow(50.0 * 50 * 50 * 50 * 300, 0.2) / 1000));
    CHECK(str(v.reason).rfind("all repeats together: 300 ms, over the limit; the typical repeat: "
                              "71.5 ms", 0) == 0);
    CHECK(judged(measured(repeats), max(ttft) <= 300_ms).outcome == verdict::pass);  // on its limit
    repeats[3].records[1].status = request_status::timeout;
    CHECK(judged(measured(repeats), max(ttft) <= 200_ms).outcome != verdict::pass);
    // Of a speed the other way round.
    repeats[3] = repeat_with_one(50, 40);
    const slo_verdict slow = judged(measured(repeats), min(decode_speed) >= 50_tps);
    CHECK(slow.outcome == verdict::inconclusive);
    CHECK(mentions(slow.reason, "all repeats together: 25 tok/s, under the limit"));
}

TEST_CASE("no verdict lies on the other side of the limit than all requests together") {
    // Nearly all that is slow is in one repeat: the typical one is 11 % inside, the mean 5 % outside.
    const vector<double> bent = {80, 80, 80, 80, 205};
    const slo_verdict v = verdict_on(bent);
    CHECK(v.measured == about(0.105));
    CHECK(v.estimate.value < 0.1);
    CHECK(v.outcome == verdict::inconclusive);
    // Whatever the repeats are, and whatever the objective.
    generator draw(7);
    int passed = 0, failed = 0;
    for (int trial = 0; trial < 300; ++trial) {
        vector<repeat_data> repeats;
        for (int i = 0; i < 5; ++i) {
            vector<request> requests;
            const double level = 60 * std::exp(0.4 * draw.normal());
            for (int k = 0; k < 20; ++k)
                requests.push_back(draw.uniform() < 0.01
                                       ? request(timelines::failed(100 * k))
                                       : answered(100 * k, level * std::exp(0.3 * draw.normal())));
            repeats.push_back(repeat_of(requests));
            repeats.back().window =
                time_interval::between(at_ms(0), at_ms(2000 + 400 * draw.uniform()));
        }
        for (const slo& s :
             {slo(mean(ttft) <= 70_ms), slo(p50(ttft) <= 65_ms), slo(p90(e2e) <= 260_ms),
              slo(max(ttft) <= 150_ms), slo(p10(prefill_speed) >= 90_tps),
              slo(output_throughput >= 96_tps), slo(goodput(ttft <= 80_ms) >= 70_pct)}) {
            const slo_verdict of = judge_measurements(measured(repeats), s);
            const bool met = s.at_most ? of.measured <= of.limit : of.measured >= of.limit;
            CHECK(of.measured == pooled_value(s.statistic, repeats));
            if (of.outcome == verdict::pass) CHECK(met);
            if (of.outcome == verdict::fail) CHECK_FALSE(met);
            passed += of.outcome == verdict::pass;
            failed += of.outcome == verdict::fail;
        }
    }
    CHECK(passed > 50);
    CHECK(failed > 50);
}

TEST_CASE("more repeats are not more chances") {
    // Noise around the limit crosses some bound sooner or later. The constants hold for five looks,
    // so that after the fourth repeat only the last one is looked at.
    const vector<double> ms = {99, 99, 99, 99, 94, 94, 94, 94, 106, 106, 106, 106};
    CHECK(verdict_on(vector<double>(ms.begin(), ms.begin() + 8)).outcome == verdict::pass);
    CHECK(verdict_on(ms).outcome == verdict::inconclusive);
    CHECK(verdict_on(ms).repeats == 12);
}

TEST_CASE("an estimate is of all repeats, whatever a verdict would have needed") {
    const auto estimated = [](const vector<repeat_data>& data, const statistic_data& what) {
        const auto g = std::make_shared<result_data>();
        g->seen.candidate = data;
        return detail::estimate(box::make(std::shared_ptr<const result_data>(g)), what);
    };
    const vector<repeat_data> data = repeats_with_ttft({40, 90, 60});
    CHECK(estimated(data, mean(ttft).data).value == about(0.060));
    CHECK(estimated(data, p50(decode_speed).data).value == about(100));
    const vector<repeat_data> failing = {
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
    CHECK(v.estimate.high == about(106.887).epsilon(1e-5));
}

TEST_CASE("a throughput is judged on its window") {
    vector<repeat_data> repeats = repeats_with_ttft({50, 50, 50});
    for (repeat_data& d : repeats) {
        // All 20 x 11 tokens arrive inside: 100 tokens/s.
        d.window = time_interval::between(at_ms(0), at_ms(2200));
    }
    const measurement m = measured(repeats);
    CHECK(judged(m, output_throughput >= 80_tps).outcome == verdict::pass);
    CHECK(judged(m, output_throughput >= 125_tps).outcome == verdict::fail);
    CHECK(judged(m, output_throughput >= 80_tps).estimate.value == about(100));
}

TEST_CASE("noisy repeats say so") {
    const slo_verdict v = verdict_on({75, 105, 75, 105, 75});
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(str(v.reason) == "the repeats spread by 18.4 %, far more than a quiet machine's 5 %");
    CHECK(v.estimate.value == about(0.08580497669).epsilon(1e-8));
    // By their own spread alone: sd 0.184 with 4 degrees of freedom.
    CHECK(v.estimate.high == about(0.1126).epsilon(1e-4));
}

TEST_CASE("what their own spread leaves open asks for more repeats") {
    const auto asks = [](const vector<double>& ms, const slo& s) {
        const measurement m = measured(repeats_with_ttft(ms));
        return asks_for_more(m, m, judged(m, s));
    };
    CHECK(asks({85, 105, 95, 108, 90}, mean(ttft) <= 100_ms));
    CHECK(asks({99.5, 99.5, 99.5, 99.5, 99.5}, mean(ttft) <= 100_ms));  // so quiet that more decide
    CHECK_FALSE(asks({96.5, 99, 101, 97.5, 101}, mean(ttft) <= 100_ms));  // as is assumed
    CHECK_FALSE(asks({50, 60, 55, 52, 58}, mean(ttft) <= 100_ms));     // decided
    CHECK_FALSE(asks({85, 105, 95, 108, 90}, goodput(ttft <= 1_s) >= 90_pct));
    // One at the limit, two more decide what five could not.
    const vector<double> ms = {80, 100, 85, 98, 90, 88, 86, 91};
    CHECK(asks({80, 100, 85, 98, 90}, mean(ttft) <= 100_ms));
    CHECK(verdict_on(ms).outcome == verdict::pass);
    CHECK(verdict_on(ms).repeats == 8);
}

TEST_CASE("a time to start may be decided by one start") {
    vector<repeat_data> repeats = repeats_with_ttft({50, 50});
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

TEST_CASE("a maximum that failures reach never passes") {
    const repeat_data good = repeat_with_failures(20, 0), bad = repeat_with_failures(20, 4);
    const slo s = max(ttft) <= 100_ms;  // good ones have 50 ms, bad ones are infinite
    const auto on = [&](const vector<repeat_data>& data) {
        return judged(measured(data, {s}), s);
    };
    CHECK(on({bad, bad}).outcome == verdict::fail);  // beyond any limit
    CHECK(on({bad}).outcome == verdict::inconclusive);
    CHECK(on({good, bad, bad}).outcome == verdict::fail);
    CHECK(on({bad, good, bad, bad}).outcome == verdict::fail);
    CHECK(on({bad, good, good, bad}).outcome == verdict::fail);
    CHECK(on({bad, good, good, good, bad}).outcome == verdict::inconclusive);
    CHECK(on({bad, good, good, good, good}).outcome == verdict::inconclusive);
    CHECK(on({good, bad}).outcome == verdict::inconclusive);
    CHECK(on({good, good, bad, bad, bad}).outcome == verdict::fail);  // whatever the first two say

    const slo_verdict v = on({bad, good, bad});
    CHECK(v.estimate.value == infinity);
    CHECK(str(v.reason) == "2 of 3 repeats have so many failures that the statistic is infinite");
}

namespace {
/// Repeats of 300 requests, of which so many fail.
slo_verdict with_failures(const vector<int>& failures, const slo& s) {
    vector<repeat_data> data;
    for (const int n : failures) data.push_back(repeat_with_failures(300, n));
    return judged(measured(data, {s}), s);
}
}  // namespace

TEST_CASE("a percentile that failures reach is judged on all requests beyond its limit") {
    const slo s = p99(ttft) <= 100_ms;
    const auto on = [&](const vector<int>& failures) { return with_failures(failures, s); };
    // Four of 300 make a repeat infinite, and 1 % independent failures do that in every third one.
    const slo_verdict at_the_limit = on({4, 2, 4, 1, 4});
    CHECK(at_the_limit.outcome == verdict::inconclusive);
    CHECK(str(at_the_limit.reason) ==
          "15 of 1500 requests failed or lie beyond the limit, 1 % may");
    CHECK(at_the_limit.estimate.value == about(0.050));  // 99 % of all 1500 have that
    CHECK(at_the_limit.estimate.high == infinity);
    CHECK(on({4, 4}).outcome == verdict::inconclusive);
    CHECK(on({30, 30}).outcome == verdict::fail);
    CHECK(on({30, 2}).outcome == verdict::inconclusive);
    CHECK(on({30, 2, 30}).outcome == verdict::fail);
    const slo_verdict shown = on({12, 2, 22});
    CHECK(shown.outcome == verdict::fail);
    CHECK(input(shown, "misses") == 36);
    CHECK(shown.estimate.value == infinity);
    // The counts may show that it is met all the same.
    CHECK(on({4, 0, 0, 0, 0}).outcome == verdict::pass);
}

TEST_CASE("a finite percentile is no pass where failures may be more than it leaves beyond it") {
    const slo s = p99(ttft) <= 100_ms;
    const auto on = [&](const vector<int>& failures) { return with_failures(failures, s); };
    CHECK(on({0, 0}).outcome == verdict::pass);
    CHECK(on({1, 0}).outcome == verdict::pass);
    const slo_verdict v = on({3, 3});
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(str(v.reason) ==
          "6 of 600 failed, up to 2.3 % may, and p99(ttft) leaves 1 % beyond it");
    CHECK(on({3, 3, 3, 3, 3}).outcome == verdict::inconclusive);
    CHECK(on({1, 1, 0, 1, 0}).outcome == verdict::pass);
}

TEST_CASE("a slow percentile of speeds is judged as those of times") {
    const slo s = p1(decode_speed) >= 50_tps;  // good ones have 100
    const auto on = [&](const vector<int>& failures) { return with_failures(failures, s); };
    CHECK(on({0, 0}).outcome == verdict::pass);
    CHECK(on({4, 2, 4, 1, 4}).outcome == verdict::inconclusive);
    CHECK(on({4, 2, 4, 1, 3}).estimate.value == about(100));
    CHECK(on({12, 12, 12}).outcome == verdict::fail);
    CHECK(on({12, 12, 12}).estimate.value == 0);
}

TEST_CASE("against a baseline failures fail a percentile, and never show that it is met") {
    const auto on = [&](int failures, std::size_t pairs) {
        measurement m;
        for (std::size_t i = 0; i < pairs; ++i) {
            m.candidate.push_back(repeat_with_failures(300, failures));
            m.baseline.push_back(repeat_with_failures(300, 0));
            m.baseline.back().variant = run_variant::baseline;
        }
        m.slos = {p99(ttft) <= 1.1 * baseline};
        return judged(m, m.slos[0]);
    };
    CHECK(on(0, 4).outcome == verdict::pass);
    CHECK(on(4, 8).outcome == verdict::inconclusive);
    CHECK(on(20, 4).outcome == verdict::fail);
    CHECK(on(20, 4).estimate.value == infinity);
}

TEST_CASE("gaps that failures make infinite are judged by the repeats") {
    // Ten gaps a request, and one infinite one for each that failed.
    const slo s = p99(itl) <= 100_ms;
    const auto on = [&](int failures, int repeats) {
        const repeat_data d = repeat_with_failures(100, failures);
        return judged(measured(vector<repeat_data>(static_cast<std::size_t>(repeats), d), {s}),
                      s);
    };
    CHECK(on(5, 2).outcome == verdict::pass);
    CHECK(on(12, 5).outcome == verdict::inconclusive);  // 1.3 % of all gaps
    CHECK(on(60, 2).outcome == verdict::inconclusive);
    CHECK(on(60, 3).outcome == verdict::fail);
}

TEST_CASE("for speeds a repeat of the worst value is zero") {
    const repeat_data good = repeat_with_failures(20, 0), bad = repeat_with_failures(20, 4);
    const slo s = min(decode_speed) >= 50_tps;  // good ones have 100 tokens/s
    CHECK(judged(measured({good, good}), s).outcome == verdict::pass);
    const slo_verdict v = judged(measured({bad, bad, bad}), s);
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
    CHECK(v.repeats == 1);
    CHECK(v.requests == 20);
}

TEST_CASE("what is nothing is told as nothing") {
    const vector<repeat_data> repeats = {steady_repeat(80, 20, 0), steady_repeat(80, 20, 0)};
    const slo_verdict v = judge_measurements(measured(repeats), mean(itl) <= 1_ms);
    CHECK(v.measured == 0);
    CHECK(v.estimate.value == 0);
    CHECK(v.estimate.low == 0);
    CHECK(v.estimate.high == 0);
    CHECK(verdict_line(v).find("measured 0 ms, ") != std::string::npos);
}

TEST_CASE("a ratio has what it is of, in its unit") {
    const slo_verdict v = verdict_on_pairs({1.2, 1.2, 1.2, 1.2}, mean(ttft) <= 1.1 * baseline);
    CHECK(v.numerator == about(0.12));
    CHECK(v.denominator == about(0.1));
    CHECK(verdict_line(v).find("measured 1.200 x baseline (120 ms against 100 ms), ") !=
          std::string::npos);
    const slo_verdict stored = judged(against_stored({80, 80}, {0.1, 0.1}), mean(ttft) <= 1.1 * baseline);
    CHECK(stored.numerator == about(0.08));
    CHECK(stored.denominator == about(0.1));
    CHECK(verdict_on({80, 80}).denominator == 0);
}
