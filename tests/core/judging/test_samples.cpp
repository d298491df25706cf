// How many requests a verdict rests on at least.
#include "llmbench.hpp"
#include "core/judging/samples.hpp"
#include "support/texts.hpp"
#include "support/verdicts.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {

/// Repeats with so many requests each.
measurement repeats_of(const vector<int>& requests, const slo& s) {
    vector<repeat_data> data;
    for (const int n : requests) data.push_back(repeat_with_failures(n, 0));
    return measured(data, {s});
}
slo_verdict on(const vector<int>& requests, const slo& s) {
    return judged(repeats_of(requests, s), s);
}

}  // namespace

TEST_CASE("where most requests failed a longer run is no advice") {
    const slo s = p99(itl) <= 1_s;
    vector<repeat_data> data(2, repeat_with_failures(100, 97));
    const std::string reason = str(judged(measured(data, {s}), s).reason);
    CHECK(mentions(reason, "most requests failed, which is why"));
    CHECK_FALSE(mentions(reason, "longer"));
}

TEST_CASE("a percentile of what came in needs three values beyond it") {
    const slo s = p999(ttft) <= 1_s;
    const slo_verdict v = on({4, 4}, s);
    CHECK(v.outcome == verdict::invalid);
    CHECK(str(v.reason) == "the plan: repeat 1 measured 4 requests, p999(ttft) needs 3000 so that "
                           "three lie beyond it: let it run longer");
    CHECK(v.estimate.value == about(0.050));  // told all the same
    CHECK(on({3000, 3000}, s).outcome == verdict::pass);
    CHECK(mentions(on({3000, 2999}, s).reason, "repeat 2 measured 2999 requests"));
    CHECK(on({299, 299}, p99(ttft) <= 1_s).outcome == verdict::invalid);
    CHECK(on({300, 300}, p99(ttft) <= 1_s).outcome == verdict::pass);
    CHECK(on({29, 29}, p90(ttft) <= 1_s).outcome == verdict::invalid);
    CHECK(on({30, 30}, p90(ttft) <= 1_s).outcome == verdict::pass);
    CHECK(on({299, 299}, p1(decode_speed) >= 1_tps).outcome == verdict::invalid);
    CHECK(on({300, 300}, p1(decode_speed) >= 1_tps).outcome == verdict::pass);
    // Failed ones are among those beyond it.
    const measurement failing = measured(
        {repeat_with_failures(30, 3), repeat_with_failures(30, 3), repeat_with_failures(30, 3)});
    CHECK(judged(failing, p90(ttft) <= 1_s).outcome == verdict::inconclusive);
}

TEST_CASE("the table of requests that a repeat needs is that of the rule") {
    const auto cell = [](const slo& s) { return printed(" %lld |", least_values_of(s.statistic)); };
    std::string row = "| three beyond a percentile |";
    for (const slo& s : {p50(ttft) <= 1_s, p75(ttft) <= 1_s, p90(ttft) <= 1_s, p95(ttft) <= 1_s,
                         p99(ttft) <= 1_s, p999(ttft) <= 1_s, mean(ttft) <= 1_s,
                         drift(mean(ttft)) <= 110_pct, drift(p95(ttft)) <= 110_pct,
                         drift(p99(ttft)) <= 110_pct})
        row += cell(s);
    INFO("tests/README.md, under Verdicts, lacks the row " << row);
    CHECK(texts::holds(texts::content_of("README.md"), row));
    CHECK(cell(max(ttft) <= 1_s) == cell(output_throughput >= 1_tps));
    CHECK(cell(max(ttft) <= 1_s) == cell(mean(ttft) <= 1_s));
}

TEST_CASE("gaps are counted as gaps") {
    // Ten of each request.
    CHECK(on({30, 30}, p99(itl) <= 1_s).outcome == verdict::pass);
    const slo_verdict v = on({29, 29}, p99(itl) <= 1_s);
    CHECK(v.outcome == verdict::invalid);
    CHECK(mentions(v.reason, "repeat 1 measured 290 gaps, p99(itl) needs 300"));
}

TEST_CASE("two repeats of one request decide nothing") {
    for (const slo& s : {mean(ttft) <= 1_s, max(ttft) <= 1_s, min(decode_speed) >= 1_tps}) {
        CAPTURE(str(s.text()));
        CHECK(on({1, 1}, s).outcome == verdict::invalid);
        CHECK(mentions(on({1, 1}, s).reason, "repeat 1 measured 1 request, "));
        CHECK(mentions(on({1, 1}, s).reason, " needs 10: let it run longer"));
        CHECK(on({9, 9}, s).outcome == verdict::invalid);
        CHECK(on({10, 10}, s).outcome == verdict::pass);
    }
    vector<repeat_data> few(3, repeat_with_failures(9, 0));
    for (repeat_data& d : few) {
        d.window = time_interval::between(at_ms(0), at_ms(2200));
    }
    CHECK(judged(measured(few), output_throughput >= 1_tps).outcome == verdict::invalid);
    // Counts know by themselves how little they show.
    CHECK(on({9, 9}, error_rate <= 0.9_pct).outcome == verdict::inconclusive);
    CHECK(on({9, 9}, goodput(ttft <= 1_s) >= 90_pct).outcome == verdict::inconclusive);
}

TEST_CASE("what is under way as the window ends may be what a throughput lacks") {
    // The first user has nothing left.
    repeat_data d = repeat_that_ends_in_mid_answer();
    const auto on_three = [&] {
        return judged(measured({d, d, d}), request_throughput >= 0.001_rps);
    };
    CHECK(on_three().outcome == verdict::invalid);
    CHECK(mentions(on_three().reason, "the plan: 0 answers ended in the steady window of a repeat"));
    CHECK(mentions(on_three().reason, "warm up with as many as there are users"));
    // What cannot reach the limit is a miss all the same.
    d.window = time_interval::between(0, d.records[5].end_ns + 1);
    const slo_verdict v = judged(measured({d, d, d}), request_throughput >= 1e6_rps);
    CAPTURE(str(v.reason));
    CHECK(v.outcome == verdict::fail);
}

TEST_CASE("the baseline needs as many") {
    measurement m = pairs_with_ratio({1, 1, 1, 1});
    m.slos = {mean(ttft) <= 1.1 * baseline};
    CHECK(judged(m, m.slos[0]).outcome == verdict::pass);
    m.baseline[2].records.resize(3);
    CHECK(mentions(judged(m, m.slos[0]).reason,
                   "repeat 3 of the baseline measured 3 requests, mean(ttft) needs 10"));
    // What is not compared with it is not concerned.
    CHECK(judged(m, mean(ttft) <= 1_s).outcome == verdict::pass);
}

TEST_CASE("a plan and what came of it are held against the same numbers") {
    for (const double q : {0.5, 0.9, 0.95, 0.99, 0.999})
        CHECK(least_values_of(percentile(ttft, q).data) ==
              (q == 0.5 ? 6 : q == 0.9 ? 30 : q == 0.95 ? 60 : q == 0.99 ? 300 : 3000));
    CHECK(least_values_of(percentile(decode_speed, 0.01).data) == 300);
    CHECK(least_values_of(mean(tpot).data) == 10);
    CHECK(least_values_of(make_statistic(statistic_kind::value, metric_id::error_rate, 0)) == 0);
}
