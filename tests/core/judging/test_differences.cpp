// Verdicts on differences to a baseline: `baseline + 1_ms`.
#include "llmbench.hpp"
#include "core/judging/values.hpp"
#include "core/described/verdict_text.hpp"
#include "support/verdicts.hpp"

#include <cmath>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {

/// Pairs of these times to first token, in ms.
measurement pairs_of(const vector<double>& candidate, const vector<double>& baseline) {
    measurement m;
    m.candidate = repeats_with_ttft(candidate);
    m.baseline = repeats_with_ttft(baseline);
    for (repeat_data& d : m.baseline) d.variant = run_variant::baseline;
    return m;
}
slo_verdict verdict_on_times(const vector<double>& candidate, const vector<double>& baseline,
                             const slo& s) {
    measurement m = pairs_of(candidate, baseline);
    m.slos = {s};
    return judged(m, s);
}
slo_verdict verdict_on_added(double ms, const slo& s, double base = 10) {
    return verdict_on_times(vector<double>(8, base + ms), vector<double>(8, base), s);
}

}  // namespace

TEST_CASE("a difference is judged in the metric's unit") {
    const slo_verdict v = verdict_on_added(2, mean(ttft) <= baseline + 4_ms);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.limit == about(0.004));
    CHECK(v.measured == about(0.002));
    CHECK(v.estimate.value == about(0.002));
    CHECK(v.numerator == about(0.012));
    CHECK(v.denominator == about(0.010));
    CHECK(verdict_on_added(6, mean(ttft) <= baseline + 4_ms).outcome == verdict::fail);
    CHECK(verdict_on_added(4, mean(ttft) <= baseline + 4_ms).outcome == verdict::inconclusive);
    // It may have to be faster.
    CHECK(verdict_on_added(-6, mean(ttft) <= baseline - 4_ms).outcome == verdict::pass);
    CHECK(verdict_on_added(-2, mean(ttft) <= baseline - 4_ms).outcome == verdict::fail);
}

TEST_CASE("the noise of a difference is that of the baseline's value") {
    const slo_verdict v = verdict_on_added(2, mean(ttft) <= baseline + 4_ms);
    CHECK(input(v, "scale") == about(0.010));
    CHECK(input(v, "prior_sd") == about(prior_sd * std::sqrt(2.0)));
    CHECK(input(v, "differences") == about(0.002));
    CHECK(input(v, "distances") == about(-0.2));
    // The same in a ratio: 1.4 against 1.2, by the same spread.
    const slo_verdict ratio = verdict_on_added(2, mean(ttft) <= 1.4 * baseline);
    CHECK(input(v, "standard_error") == about(input(ratio, "standard_error")));
}

TEST_CASE("a proportion and a floor: the limit is the sum of both") {
    CHECK(verdict_on_added(4, mean(ttft) <= 1.05 * baseline + 1_ms, 100).measured ==
          about(-0.001));
    CHECK(verdict_on_added(-15, mean(ttft) <= 1.05 * baseline + 1_ms, 100).outcome ==
          verdict::pass);
    CHECK(verdict_on_added(25, mean(ttft) <= 1.05 * baseline + 1_ms, 100).outcome ==
          verdict::fail);
}

TEST_CASE("zero is a value of a difference") {
    const slo_verdict none = verdict_on_times({0, 0, 0, 0}, {0, 0, 0, 0},
                                              mean(ttft) <= baseline + 1_ms);
    CHECK(none.outcome == verdict::pass);
    CHECK(none.measured == 0);
    CHECK(input(none, "scale") == about(0.001));
    CHECK(verdict_on_times({3, 3, 3, 3}, {0, 0, 0, 0}, mean(ttft) <= baseline + 1_ms).outcome ==
          verdict::fail);
}

TEST_CASE("throughput may be less by so much") {
    const slo s = p50(decode_speed) >= baseline - 2_tps;
    CHECK(judged(pairs_of({10, 10, 10, 10}, {10, 10, 10, 10}), s).limit == -2);
    CHECK(judged(pairs_of({10, 10, 10, 10}, {10, 10, 10, 10}), s).measured == 0);
}

TEST_CASE("a stored baseline has differences, too") {
    const slo s = mean(ttft) <= baseline + 60_ms;
    const auto verdict_at = [&](double ms) {
        return judged(against_stored(vector<double>(5, ms), vector<double>(5, 0.1)), s);
    };
    const slo_verdict same = verdict_at(110);
    CHECK(same.outcome == verdict::pass);
    CHECK(same.measured == about(0.010));
    CHECK(input(same, "day_to_day_sd") == about(0.05));
    CHECK(verdict_at(260).outcome == verdict::fail);
    CHECK(verdict_at(165).outcome == verdict::inconclusive);
}

TEST_CASE("a line in words") {
    slo_verdict v = verdict_on_added(2, mean(ttft) <= baseline + 4_ms);
    CHECK(verdict_line(v).find("mean(ttft) <= baseline + 4 ms  measured +2 ms (12 ms against 10 ms), "
                               "2 ms inside the limit (interval +") != std::string::npos);
    CHECK(limit_text(v.objective) == "baseline + 4 ms");
    v = verdict_on_added(6, mean(ttft) <= 1.1 * baseline + 2_ms);
    CHECK(verdict_line(v).find("measured +5 ms (16 ms against 10 ms), 3 ms over the limit") !=
          std::string::npos);
    CHECK(limit_text(v.objective) == "1.1 * baseline + 2 ms");
    v = verdict_on_added(4, mean(ttft) <= baseline + 4_ms);
    CHECK(str(v.reason) == "too close to call");
    CAPTURE(str(v.advice));
    CHECK(mentions(v.advice, "<= baseline + 4.4 ms would pass"));
}

TEST_CASE("what the client adds widens the interval of a difference") {
    const slo s = mean(ttft) <= baseline + 4_ms;
    measurement m = pairs_of(vector<double>(8, 12), vector<double>(8, 10));
    m.slos = {s};
    const slo_verdict punctual = judged(m, s);
    for (auto* variant : {&m.candidate, &m.baseline})
        for (repeat_data& d : *variant) send_late(d, {0.0002});
    const slo_verdict late = judged(m, s);
    CHECK(late.estimate.high == about(punctual.estimate.high + 0.0004));
    CHECK(late.estimate.low == about(punctual.estimate.low - 0.0004));
    CHECK(late.outcome == verdict::pass);
}

TEST_CASE("a late send counts once in a difference: in its interval, or in the requests' times") {
    const slo s = mean(ttft) <= baseline + 14_ms;
    measurement m = pairs_of(vector<double>(8, 12), vector<double>(8, 10));
    m.slos = {s};
    for (auto* variant : {&m.candidate, &m.baseline})
        for (repeat_data& d : *variant) send_late(d, {0.021, 0, 0, 0});
    const slo_verdict v = judged(m, s);  // 2 ms more, 4.5 ms without the baseline's delays
    CHECK(input(v, "client_part") == about(0.0105));
    CHECK(v.outcome == verdict::pass);
    // One that delays may bring about is none of the server.
    CHECK(judged(m, mean(ttft) <= baseline + 1_ms).outcome == verdict::invalid);
}

TEST_CASE("a difference that the client cannot tell is no pass") {
    const slo s = mean(ttft) <= baseline + 300_us;
    measurement m = pairs_of(vector<double>(8, 8), vector<double>(8, 10));
    m.slos = {s};
    CHECK(judged(m, s).outcome == verdict::pass);
    for (auto* variant : {&m.candidate, &m.baseline})
        for (repeat_data& d : *variant) send_late(d, {0.0002});
    const slo_verdict v = judged(m, s);
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(str(v.reason).find("the client can tell differences from 400 us on in this run, and the "
                             "limit is smaller") != std::string::npos);
    // Times between tokens do not depend on when a request was sent.
    CHECK(!mentions(judged(m, mean(tpot) <= baseline + 300_us).reason, "the client"));
}

TEST_CASE("failed requests reach a percentile, and its difference") {
    measurement m = pairs_of(vector<double>(8, 10), vector<double>(8, 10));
    for (repeat_data& d : m.candidate) d = stage_of_ttft(spread(40, 10, 10, infinity));
    for (repeat_data& d : m.baseline) d = stage_of_ttft(spread(40, 0, 10, infinity));
    for (repeat_data& d : m.baseline) d.variant = run_variant::baseline;
    const slo s = p90(ttft) <= baseline + 5_ms;
    CHECK(judged(m, s).outcome == verdict::fail);
    std::swap(m.candidate, m.baseline);
    CHECK(judged(m, s).outcome != verdict::pass);
}
