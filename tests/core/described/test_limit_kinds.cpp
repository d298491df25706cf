// A limit is absolute, a ratio to the baseline or a difference from it: each text of it is made
// once, and reads as what the limit is.
#include "core/described/described.hpp"
#include "core/described/verdict_text.hpp"
#include "core/reports/ci_files.hpp"
#include "core/reports/page/verdicts.hpp"
#include "extensions/simulated/core/foreseen.hpp"
#include "support/sample_gates.hpp"
#include "support/texts.hpp"
#include "support/verdicts.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;
using texts::holds;

namespace {

measurement pairs_of(vector<repeat_data> candidate, vector<repeat_data> baseline, const slo& s) {
    measurement m;
    m.candidate = std::move(candidate);
    m.baseline = std::move(baseline);
    for (repeat_data& d : m.baseline) d.variant = run_variant::baseline;
    m.slos = {s};
    return m;
}
slo_verdict verdict_on_times(double candidate_ms, double baseline_ms, const slo& s) {
    return judged(pairs_of(repeats_with_ttft(vector<double>(4, candidate_ms)),
                           repeats_with_ttft(vector<double>(4, baseline_ms)), s), s);
}
/// Of 60 requests of a repeat so many failed, on both sides.
slo_verdict verdict_on_fractions(int failed, int failed_of_baseline, const slo& s) {
    return judged(pairs_of(vector<repeat_data>(4, repeat_with_failures(60, failed)),
                           vector<repeat_data>(4, repeat_with_failures(60, failed_of_baseline)), s),
                  s);
}

}  // namespace

TEST_CASE("what a limit is held against is said once") {
    CHECK(kind_of(mean(ttft) <= 100_ms) == limit_kind::absolute);
    CHECK(kind_of(p90(ttft) <= 3 * p50(ttft)) == limit_kind::absolute);
    CHECK(kind_of(mean(ttft) <= 1.1 * baseline) == limit_kind::ratio);
    CHECK(kind_of(mean(ttft) <= baseline + 1_ms) == limit_kind::difference);
    CHECK(kind_of(goodput(ttft <= 1_s) >= baseline - 1_pct) == limit_kind::difference);
}

TEST_CASE("a limit reads as its author wrote it, whatever its objective is named") {
    const auto limit = [](const slo& s) { return limit_text(s); };
    CHECK(limit(goodput(ttft <= 500_ms) >= baseline - 1_pct) == "baseline - 1 %");
    CHECK(limit(advisory(goodput(ttft <= 500_ms) >= baseline - 1_pct)) == "baseline - 1 %");
    CHECK(limit(mean(ttft) <= 1.05 * baseline + 3_ms) == "1.05 * baseline + 3 ms");
    CHECK(limit(mean(ttft) <= 1.1 * baseline) == "1.1 * baseline");
    CHECK(limit(p90(ttft) <= 3 * p50(ttft)) == "3 * p50(ttft)");
    CHECK(limit(mean(ttft) <= 100_ms) == "100 ms");
    CHECK(str((mean(ttft) <= 1.05 * baseline + 3_ms).text()) ==
          "mean(ttft) <= 1.05 * baseline + 3 ms");
}

TEST_CASE("how far a value is from its limit, in one sentence of each kind") {
    CHECK(against_limit(verdict_on({120, 120, 120})) == "mean(ttft) is 120 ms, the limit is 100 ms");
    CHECK(against_limit(verdict_on_times(120, 100, mean(ttft) <= 1.1 * baseline)) ==
          "mean(ttft) is 120 ms, the limit is 110 ms, 1.1 times the baseline's 100 ms");
    CHECK(against_limit(verdict_on_times(22.4, 17.3, mean(ttft) <= baseline + 1_ms)) ==
          "mean(ttft) is 22.4 ms, 5.1 ms more than the baseline's 17.3 ms, the limit is 1 ms more");
    CHECK(against_limit(verdict_on_times(8, 10, mean(ttft) <= baseline - 4_ms)) ==
          "mean(ttft) is 8 ms, 2 ms less than the baseline's 10 ms, the limit is 4 ms less");
    CHECK(against_limit(verdict_on_times(10, 10, mean(ttft) <= baseline - 4_ms)) ==
          "mean(ttft) is 10 ms, as the baseline's 10 ms, the limit is 4 ms less");
    CHECK(against_limit(verdict_on_times(16, 10, mean(ttft) <= 1.1 * baseline + 2_ms)) ==
          "mean(ttft) is 16 ms, 5 ms more than 1.1 times the baseline's 10 ms, the limit is 2 ms "
          "more");
    CHECK(against_limit(verdict_on_fractions(30, 0, goodput(ttft <= 500_ms) >= baseline - 1_pct)) ==
          "goodput(ttft <= 500 ms) is 50 %, 50 % less than the baseline's 100 %, the limit is 1 % "
          "less");
    // Without a value there is a reason.
    CHECK(against_limit(slo_verdict{}).empty());
}

TEST_CASE("a difference of which nothing was measured is told without values") {
    verdict_numbers v;
    v.objective = mean(ttft) <= baseline + 1_ms;
    v.measured = not_a_number;
    CHECK(ratio_of_text(v) == "");
    CHECK(against_limit(v) == "");
    v.measured = 0;
    CHECK(ratio_of_text(v) != "");
}

TEST_CASE("the summary begins with a difference as with other limits") {
    sample_gates::test_gate g = sample_gates::sampled_gate("gateway", {mean(ttft) <= 100_ms});
    g.verdicts = {verdict_on_times(22.4, 17.3, mean(ttft) <= baseline + 1_ms)};
    g.outcome = gate_outcome::failed;
    const std::string summary = summary_md({g});
    CAPTURE(summary);
    CHECK(holds(summary, "**Failed: gateway: mean(ttft) is 22.4 ms, 5.1 ms more than the baseline's "
                         "17.3 ms, the limit is 1 ms more**"));
    CHECK_FALSE(holds(summary, "times the baseline"));
    // The distance is in the limit's unit, as on the console.
    CHECK(holds(summary, "| 4.1 ms over the limit |"));
}

TEST_CASE("the page draws the repeats of each kind, and names its limit") {
    const auto drawn = [](const slo_verdict& v) { return interval_drawing(v); };
    const std::string bar = drawn(verdict_on_times(12, 10, mean(ttft) <= baseline + 4_ms));
    CHECK(holds(bar, "\"repeats\":[0.002,0.002,0.002,0.002]"));
    CHECK(holds(bar, "\"words\":\"limit baseline + 4 ms\""));
    CHECK(holds(drawn(verdict_on_times(12, 10, mean(ttft) <= 1.4 * baseline)),
                "\"repeats\":[1.2,1.2,1.2,1.2]"));
    CHECK(holds(drawn(verdict_on({80, 80})), "\"repeats\":[0.08,0.08]"));
}

TEST_CASE("what other runs would show of a difference is foreseen as of a ratio") {
    // The same spread and distance, said in both ways: 2 ms of 10 ms, and 1.2 times.
    const foreseen of_difference = foreseen_of(
        verdict_on_times(12, 10, mean(ttft) <= baseline + 4_ms), judging_rule{}, {0.04});
    const foreseen of_ratio = foreseen_of(verdict_on_times(12, 10, mean(ttft) <= 1.4 * baseline),
                                          judging_rule{}, {0.04});
    REQUIRE(of_difference.is_known());
    REQUIRE(of_ratio.is_known());
    // The distance is told in the limit's unit.
    const slo_verdict v = verdict_on_times(12, 10, mean(ttft) <= baseline + 4_ms);
    CHECK(distance_text(v, 0.005) == "1 ms over");
    CHECK(holds(foreseen_text(v, {0.005, 0.1}), "from +5 ms on, 1 ms over the limit"));
    CHECK(0.010 + of_difference.shows_from == doctest::Approx(0.010 * of_ratio.shows_from)
                                                  .epsilon(0.05));
}

TEST_CASE("a fraction differs from another by 100 % at most, and so does its interval") {
    const slo_verdict v = verdict_on_fractions(58, 0, goodput(ttft <= 1_s) >= baseline - 1_pct);
    CHECK(v.outcome == verdict::fail);
    CHECK(v.estimate.low >= -1);
    CHECK(v.estimate.high <= 1);
    CAPTURE(verdict_line(v));
    CHECK(holds(verdict_line(v), "interval -100 to -8"));
    const slo_verdict all = verdict_on_fractions(58, 0, error_rate <= baseline + 1_pct);
    CHECK(all.estimate.high <= 1);
}

TEST_CASE("the arithmetic of a difference names the client's part, on which it rests") {
    const slo s = mean(ttft) <= baseline + 4_ms;
    measurement m = pairs_of(repeats_with_ttft(vector<double>(4, 12)),
                             repeats_with_ttft(vector<double>(4, 10)), s);
    CHECK(inputs(judged(m, s), "client_part").empty());
    for (auto* variant : {&m.candidate, &m.baseline})
        for (repeat_data& d : *variant) send_late(d, {0.0002});
    const slo_verdict v = judged(m, s);
    CHECK(input(v, "client_part") == about(0.0004));
}
