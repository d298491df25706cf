// Verdicts on fresh traffic: quantiles by counts, means by batches, stages.
#include "llmbench.hpp"
#include "core/measured/metrics.hpp"
#include "core/described/verdict_text.hpp"
#include "support/verdicts.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {

repeat_data stage_of_gaps(const std::vector<double>& ms) {
    std::vector<request> requests;
    for (std::size_t i = 0; i < ms.size(); ++i)
        requests.push_back(answered(100.0 * static_cast<double>(i), 50, ms[i]));
    return repeat_of(requests);
}

}  // namespace

TEST_CASE("fresh quantiles without one request beyond pass from a known number on") {
    // Level 0.0170030 at each look: ln 0.0170030 / ln q.
    const struct {
        slo s;
        int needed;
    } table[] = {{p50(ttft) <= 100_ms, 6},          {p90(ttft) <= 100_ms, 39},
                 {p95(ttft) <= 100_ms, 80},         {p99(ttft) <= 100_ms, 406},
                 {p10(decode_speed) >= 50_tps, 39}, {p1(decode_speed) >= 50_tps, 406}};
    for (const auto& [s, needed] : table) {
        CAPTURE(str(s.text()));
        const auto outcome = [&, objective = s](int n) {
            return judged(fresh_stages({steady_repeat(80, n)}), objective).outcome;
        };
        CHECK(outcome(needed) == verdict::pass);
        CHECK(outcome(needed - 1) == verdict::inconclusive);
    }
}

TEST_CASE("fresh quantiles are judged on the number of requests beyond the limit") {
    // Binomial, 100 trials at 10 %: P(X <= 3) = 0.0078 and P(X <= 4) = 0.0237 around the level
    // 0.0170; P(X >= 20) = 0.0020 and P(X >= 19) = 0.0046 around 0.00256.
    const struct {
        int slow;
        verdict outcome;
    } table[] = {{3, verdict::pass},
                 {4, verdict::inconclusive},
                 {19, verdict::inconclusive},
                 {20, verdict::fail}};
    for (const auto& [slow, outcome] : table) {
        CAPTURE(slow);
        const slo_verdict times =
            judged(fresh_stages({stage_of_ttft(spread(100, slow, 80, 120))}), p90(ttft) <= 100_ms);
        CHECK(times.outcome == outcome);
        CHECK(times.method == text("Clopper-Pearson on counts"));
        CHECK(times.repeats == 1);
        CHECK(times.requests == 100);
        CHECK(input(times, "misses") == slow);
        CHECK(input(times, "trials") == 100);
        CHECK(input(times, "design_effect") == 1);
        CHECK(input(times, "allowed") == about(0.1));
        CHECK(judged(fresh_stages({stage_of_gaps(spread(100, slow, 10, 20))}),
                     p10(decode_speed) >= 80_tps)
                  .outcome == outcome);
        // A request that failed is a miss of every time and of every speed.
        const measurement failing = fresh_stages({stage_of_ttft(spread(100, slow, 80, infinity))});
        CHECK(judged(failing, p90(ttft) <= 100_ms).outcome == outcome);
        CHECK(judged(failing, p10(decode_speed) >= 80_tps).outcome == outcome);
    }
    // At 1 %: P(X >= 6) = 0.0005 and P(X >= 5) = 0.0034.
    const auto p99_with = [](int slow) {
        // By the counts alone: three times as many requests could pass.
        return judge_evidence(fresh_stages({stage_of_ttft(spread(100, slow, 80, 120))}),
                              p99(ttft) <= 100_ms)
            .outcome;
    };
    CHECK(p99_with(5) == verdict::inconclusive);
    CHECK(p99_with(6) == verdict::fail);
}

TEST_CASE("a value on the limit is no miss") {
    for (int ms = 1; ms < 400; ++ms) {
        const measurement m = fresh_stages({stage_of_ttft({1.0 * ms})});
        const time_span limit = time_span::from_seconds(ms / 1e3);
        CAPTURE(ms);
        CHECK(input(judged(m, p50(ttft) <= limit), "misses") == 0);
        CHECK(input(judged(m, goodput(ttft <= limit && itl <= 10_ms) >= 1_pct), "misses") == 0);
    }
    CHECK(input(judged(fresh_stages({steady_repeat(100, 40)}), p90(ttft) <= 100_ms), "misses") ==
          0);
    CHECK(input(judged(fresh_stages({steady_repeat(80, 40)}), p10(decode_speed) >= 100_tps),
                "misses") == 0);
}

namespace {
/// A hundred values, each 9 % over the next: what two runs are believed to differ by moves none of
/// them over a limit in the middle between two.
std::vector<double> far_apart(double from) {
    std::vector<double> values = scattered(0, 1);
    for (double& v : values) v = from * std::pow(1.09, v);
    return values;
}
double between(double from, int rank) { return from * std::pow(1.09, rank + 0.5); }
}  // namespace

TEST_CASE("the estimate of a fresh quantile is a value that was measured, between two limits") {
    // The 90th of them. At the pass level, as all intervals: 3 beyond the 97th are few enough,
    // P(X <= 3) = 0.0078, and 18 beyond the 82nd too many, P(X >= 18) = 0.0100.
    const measurement m = fresh_stages({stage_of_ttft(far_apart(1))});
    const auto at = [&](int rank) { return judged(m, p90(ttft) <= time_span::from_seconds(between(1, rank) / 1000)); };
    const slo_verdict v = at(89);
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(v.estimate.value == about(0.001 * std::pow(1.09, 89)).epsilon(1e-4));
    CHECK(v.estimate.low == about(0.001 * std::pow(1.09, 81)).epsilon(1e-4));
    CHECK(v.estimate.high == about(0.001 * std::pow(1.09, 96)).epsilon(1e-4));
    CHECK(v.estimate.value == evaluate(v.what.what, m.candidate[0]));
    CHECK(at(96).outcome == verdict::pass);
    CHECK(at(95).outcome == verdict::inconclusive);
    // 20 beyond are shown to be too many, P(X >= 20) = 0.0020; 19 are not.
    CHECK(at(80).outcome == verdict::inconclusive);
    CHECK(at(79).outcome == verdict::fail);
}

TEST_CASE("a fresh quantile allows for what its runs differ by") {
    // Within 4 % of the limit lie 8 of the 100: by as much may a run have moved their share.
    const slo_verdict v =
        judged(fresh_stages({stage_of_ttft(scattered(50, 1))}), p90(ttft) <= 139.5_ms);
    CHECK(input(v, "design_effect") > 1.5);
    CHECK(v.estimate.low < 0.131);
    // In more runs, by less.
    const slo_verdict more = judged(fresh_stages({stage_of_ttft(scattered(50, 1)),
                                                  stage_of_ttft(scattered(50, 1))}),
                                    p90(ttft) <= 139.5_ms);
    CHECK(input(more, "design_effect") < 2 * input(v, "design_effect"));
}

TEST_CASE("the estimate of a fresh quantile of speeds is the definition's") {
    const measurement m = fresh_stages({stage_of_gaps(far_apart(0.5))});
    const auto at = [&](int rank) {
        return judged(m, p10(decode_speed) >= token_rate(1000 / between(0.5, rank)));
    };
    const slo_verdict v = at(89);
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(v.estimate.low == about(2000 / std::pow(1.09, 96)).epsilon(0.01));
    CHECK(v.estimate.high == about(2000 / std::pow(1.09, 81)).epsilon(0.01));
    CHECK(v.estimate.value == about(2000 / std::pow(1.09, 90)).epsilon(0.01));
    CHECK(v.estimate.value == evaluate(v.what.what, m.candidate[0]));
    CHECK(at(96).outcome == verdict::pass);
    CHECK(at(95).outcome == verdict::inconclusive);
    CHECK(at(80).outcome == verdict::inconclusive);
    CHECK(at(79).outcome == verdict::fail);
}

TEST_CASE("a quantile that failures reach is infinite, and too few requests leave a side open") {
    const measurement m = fresh_stages({stage_of_ttft(spread(100, 15, 80, infinity))});
    CHECK(judged(m, p90(ttft) <= 100_ms).estimate.value == infinity);
    CHECK(judged(m, p90(ttft) <= 100_ms).estimate.high == infinity);
    const measurement few = fresh_stages({steady_repeat(80, 38)});
    CHECK(judged(few, p90(ttft) <= 100_ms).estimate.value == about(0.080));
    CHECK(judged(few, p90(ttft) <= 100_ms).estimate.high == infinity);
    CHECK(judged(few, p10(decode_speed) >= 50_tps).estimate.low == 0);
}

TEST_CASE("fresh traffic is looked at after one, two and three stages") {
    const auto stage = [](int n, int slow) { return stage_of_ttft(spread(n, slow, 80, 120)); };
    const slo s = p90(ttft) <= 100_ms;
    const auto on = [&](std::vector<repeat_data> stages) {
        return judged(fresh_stages(std::move(stages)), s);
    };
    CHECK(on({stage(100, 3), stage(100, 15), stage(200, 20)}).repeats == 1);
    CHECK(on({stage(100, 3), stage(100, 15), stage(200, 20)}).outcome == verdict::pass);
    // Unless all of them together say otherwise.
    CHECK(on({stage(100, 3), stage(100, 90), stage(200, 180)}).outcome == verdict::fail);
    const slo_verdict bent = on({stage(100, 3), stage(100, 15), stage(200, 24)});
    CHECK(bent.outcome == verdict::inconclusive);
    CHECK(str(bent.reason) == "all repeats together: 120 ms, over the limit; the first stage: "
                              "80 ms");
    // 4 of 100, then 4 of 200: P(X <= 4) < 0.0001.
    const slo_verdict second = on({stage(100, 4), stage(100, 0), stage(200, 30)});
    CHECK(second.outcome == verdict::pass);
    CHECK(second.repeats == 2);
    CHECK(second.requests == 200);
    CHECK(input(second, "misses") == 4);
    // 10 of 100, 20 of 200, 40 of 400: on the limit.
    const slo_verdict third = on({stage(100, 10), stage(100, 10), stage(200, 20)});
    CHECK(third.outcome == verdict::inconclusive);
    CHECK(third.repeats == 3);
    CHECK(third.requests == 400);
    CHECK(input(third, "trials") == 400);
    CHECK(on({stage(100, 10), stage(100, 10), stage(200, 60)}).outcome == verdict::fail);
}

TEST_CASE("misses that come together count for less") {
    // The same 20 of 100, in one row: the whole block is in 4 batches of 5.
    std::vector<double> block(100, 80);
    for (std::size_t i = 40; i < 60; ++i) block[i] = 120;
    const slo_verdict v = judged(fresh_stages({stage_of_ttft(block)}), p90(ttft) <= 100_ms);
    CHECK(v.outcome == verdict::inconclusive);
    // 4 batches of 5 misses and 16 of none: (4 x 4^2 + 16 x 1^2) / (20 x 5 x 0.2 x 0.8).
    CHECK(input(v, "design_effect") == about(80 / 16.0));
}

TEST_CASE("batches are of a repeat, and of all stages of fresh traffic together") {
    // The first 20 of 400 requests are slow. 5, 5 and 10 batches of 20: one has all of them. In 20
    // batches each, four of 5 have all of them.
    std::vector<double> first(100, 80);
    for (std::size_t i = 0; i < 20; ++i) first[i] = 120;
    const std::vector<repeat_data> repeats = {stage_of_ttft(first), steady_repeat(80, 100),
                                              steady_repeat(80, 200)};
    const slo s = goodput(ttft <= 100_ms) >= 90_pct;
    const slo_verdict stages = judged(fresh_stages(repeats), s), each = judged(measured(repeats), s);
    REQUIRE(stages.repeats == 3);
    REQUIRE(each.repeats == 3);
    CHECK(input(stages, "design_effect") == about(380 / 19.0));
    CHECK(input(each, "design_effect") == about(97.5 / 19));
}

TEST_CASE("the design effect of a high quantile is at least that of one five times as low") {
    // Of 1000 requests 50 are slower than the rest, in one row; none is beyond the limit. That row
    // is one batch of 50: (50 x 0.95)^2 + 19 (50 x 0.05)^2 over 1000 x 0.05 x 0.95.
    std::vector<double> row(1000, 80);
    for (std::size_t i = 500; i < 550; ++i) row[i] = 120;
    const double effect = (47.5 * 47.5 + 19 * 2.5 * 2.5) / 47.5;
    const slo_verdict v = judged(fresh_stages({stage_of_ttft(row)}), p99(ttft) <= 200_ms);
    CHECK(input(v, "misses") == 0);
    CHECK(input(v, "design_effect") == about(effect));
    CHECK(v.outcome == verdict::inconclusive);  // 20 independent ones show nothing
    CHECK(judged(fresh_stages({stage_of_ttft(spread(1000, 50, 80, 120))}), p99(ttft) <= 200_ms)
              .outcome == verdict::pass);
    // Speeds have their slow ones below.
    std::vector<double> gaps(1000, 10);
    for (std::size_t i = 500; i < 550; ++i) gaps[i] = 12;
    CHECK(input(judged(fresh_stages({stage_of_gaps(gaps)}), p1(decode_speed) >= 50_tps),
                "design_effect") == about(effect));
    // A share has no lower quantile: its own misses say it all.
    CHECK(input(judged(fresh_stages({stage_of_ttft(row)}), goodput(ttft <= 200_ms) >= 99_pct),
                "design_effect") == 1);
}

TEST_CASE("requests without a value are no trials of a fresh quantile") {
    std::vector<request> requests;
    for (int i = 0; i < 100; ++i)
        requests.push_back(answered(100.0 * i, 80, 10, i % 20 == 0 ? 1 : 11));
    const measurement m = fresh_stages({repeat_of(requests)});
    CHECK(input(judged(m, p90(tpot) <= 20_ms), "trials") == 95);
    CHECK(input(judged(m, p90(ttft) <= 100_ms), "trials") == 100);
    CHECK(input(judged(m, p90(tpot) <= 5_ms), "misses") == 95);
}

TEST_CASE("a fresh statistic that no request has is invalid and has no estimate") {
    std::vector<request> requests;
    for (int i = 0; i < 100; ++i) {
        const double at = 100.0 * i;  // the server does not tell prompt tokens
        requests.push_back(
            request(at).content(at + 50).content(at + 60).finish(at + 60).done(at + 60));
    }
    const measurement m = fresh_stages({repeat_of(requests)});
    for (const slo& s : {p50(ttft_per_prompt_token) <= 1_s, mean(ttft_per_prompt_token) <= 1_s,
                         p10(prefill_speed) >= 1_tps}) {
        CAPTURE(str(s.text()));
        CHECK(judged(m, s).outcome == verdict::invalid);
        CHECK(std::isnan(judged(m, s).estimate.value));
    }
}

TEST_CASE("fresh means are judged on the means of twenty batches") {
    // Batches of two requests have 90 and 110 ms in turn: their sd is sqrt(2000 / 19) ms, and t at
    // 19 degrees of freedom is 2.284626 to pass and 3.163978 to fail.
    std::vector<double> ms;
    for (int i = 0; i < 40; ++i) ms.push_back(i / 2 % 2 == 0 ? 90 : 110);
    const measurement m = fresh_stages({stage_of_ttft(ms)});
    // The batches of one stage cannot show what differs from run to run: 4 % is believed.
    const double se = std::hypot(std::sqrt(2000.0 / 19) / 100 / std::sqrt(20.0), 0.04);
    const slo_verdict v = judged(m, mean(ttft) <= 112_ms);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.method == text("batch means t"));
    CHECK(v.repeats == 1);
    CHECK(v.requests == 40);
    CHECK(v.estimate.value == about(0.100));
    CHECK(v.estimate.low == about(0.100 * std::exp(-2.28462552431824190 * se)));
    CHECK(v.estimate.high == about(0.100 * std::exp(2.28462552431824190 * se)));
    CHECK(input(v, "df") == 19);
    CHECK(inputs(v, "batch_means").size() == 20);
    CHECK(input(v, "fail_bound") == about(std::log(100 / 112.0) - 3.16397785458650784 * se));
    CHECK(judged(m, mean(ttft) <= 104_ms).outcome == verdict::inconclusive);
    CHECK(judged(m, mean(ttft) <= 90_ms).outcome == verdict::inconclusive);
    CHECK(judged(m, mean(ttft) <= 85_ms).outcome == verdict::fail);
    // More stages average it. Batches of four are all alike here: nothing else is left.
    const measurement two = fresh_stages({stage_of_ttft(ms), stage_of_ttft(ms)});
    CHECK(input(judged(two, mean(ttft) <= 100_ms), "standard_error") ==
          about(0.04 / std::sqrt(2.0)));
    measurement calibrated = m;
    calibrated.noise["mean(ttft)"] = 0.08;
    CHECK(input(judged(calibrated, mean(ttft) <= 112_ms), "run_sd") == 0.08);
    // The same numbers of a speed have their limit below.
    const measurement speeds = fresh_stages({stage_of_gaps(ms)});
    CHECK(judged(speeds, mean(decode_speed) >= 9_tps).outcome == verdict::pass);
    CHECK(judged(speeds, mean(decode_speed) >= 12_tps).outcome == verdict::fail);
}

TEST_CASE("fresh means are over completed requests, and of forty at least") {
    const slo s = mean(ttft) <= 100_ms;
    const slo_verdict v = judged(fresh_stages({stage_of_ttft(spread(100, 5, 80, infinity))}), s);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.estimate.value == about(0.080));
    CHECK(judged(fresh_stages({steady_repeat(80, 40)}), s).outcome == verdict::pass);
    CHECK(judged(fresh_stages({steady_repeat(80, 39)}), s).outcome == verdict::invalid);
    CHECK(mentions(judged(fresh_stages({steady_repeat(80, 39)}), s).reason, "fewer than 40"));
}

TEST_CASE("a mean that drifts within the run is known less well than its requests say") {
    // The same values, sorted: the batches differ by all that the requests do.
    std::vector<double> ms = drawn_ttft(3, 400);
    const slo_verdict mixed_up = judged(fresh_stages({stage_of_ttft(ms)}), mean(ttft) <= 120_ms);
    std::sort(ms.begin(), ms.end());
    const slo_verdict drifting = judged(fresh_stages({stage_of_ttft(ms)}), mean(ttft) <= 120_ms);
    CHECK(drifting.estimate.value == about(mixed_up.estimate.value));
    CHECK(drifting.estimate.high / drifting.estimate.value >
          1.1 * mixed_up.estimate.high / mixed_up.estimate.value);
}

TEST_CASE("fresh verdicts stop at the first stage that decides them") {
    const std::vector<repeat_data> stages = {stage_of_ttft(drawn_ttft(1, 300)),
                                             stage_of_ttft(drawn_ttft(2, 300)),
                                             stage_of_ttft(drawn_ttft(3, 600))};
    int seen[4] = {};
    for (double limit = 90; limit < 240; limit += 0.5)
        for (const slo& s : {mean(ttft) <= time_span::from_seconds(limit / 1000),
                             p90(ttft) <= time_span::from_seconds(limit / 1000)}) {
            const slo_verdict v = judged(fresh_stages(stages), s);
            ++seen[v.repeats];
            CHECK(v.requests == (v.repeats == 1 ? 300 : v.repeats == 2 ? 600 : 1200));
            // What came later was not looked at.
            const auto looked_at = stages.begin() + v.repeats;
            const slo_verdict again = judged(fresh_stages({stages.begin(), looked_at}), s);
            CHECK(again.outcome == v.outcome);
            CHECK(again.estimate.value == v.estimate.value);
            CHECK(again.estimate.high == v.estimate.high);
            if (v.outcome == verdict::inconclusive) CHECK(v.repeats == 3);
        }
    CHECK(seen[1] > 100);
    CHECK(seen[2] > 5);
    CHECK(seen[3] > 5);
}

TEST_CASE("advice on fresh traffic is of the look that was decided last") {
    // Headroom is small at the first stage and gone at the second.
    const auto stage_of_mean = [](double ms, std::uint64_t seed) {
        std::vector<double> values = drawn_ttft(seed, 300);
        const double scale = ms / mean_of(values);
        for (double& v : values) v *= scale;
        return stage_of_ttft(values);
    };
    const slo_verdict v =
        judged(fresh_stages({stage_of_mean(99, 1), stage_of_mean(103, 2)}), mean(ttft) <= 100_ms);
    REQUIRE(v.outcome == verdict::inconclusive);
    REQUIRE(v.estimate.value > 0.100);
    CHECK_FALSE(mentions(v.advice, "headroom"));
    CHECK(mentions(v.advice, "would pass"));
}

TEST_CASE("fresh stages are called stages") {
    const measurement m = fresh_stages({steady_repeat(100, 100), steady_repeat(100, 200)});
    const std::string line = verdict_line(judged(m, goodput(ttft <= 99_ms) >= 1_pct));
    CHECK_FALSE(mentions(line, "repeat"));
}
