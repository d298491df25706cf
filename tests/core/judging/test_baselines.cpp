// Verdicts on pairs with a baseline, and against a stored one.
#include "llmbench.hpp"
#include "core/judging/values.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/planning.hpp"
#include "core/described/verdict_text.hpp"
#include "support/verdicts.hpp"
#include "extensions/answers/api.hpp"

#include <cmath>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

// ---- baselines ---------------------------------------------------------------------------------

TEST_CASE("pairs are judged on the ratio, from the fourth on") {
    const slo_verdict same = verdict_on_pairs({1, 1, 1, 1, 1, 1, 1, 1});
    CHECK(same.outcome == verdict::pass);
    CHECK(same.repeats == 4);
    CHECK(same.limit == 1.10);
    CHECK(same.estimate.value == about(1));
    // The prior of one run, 4 %, gives 0.959564353 and 1.042139589; a ratio has the noise of two.
    CHECK(same.estimate.low ==
          about(std::exp(analysis_of(vector<double>(4, 0.0), prior_sd * std::sqrt(2.0)).fail_bound)));
    CHECK(same.estimate.high == about(std::pow(1.042139589, std::sqrt(2.0))));
    CHECK(verdict_on_pairs({1.2, 1.2, 1.2, 1.2}).outcome == verdict::fail);
    CHECK(verdict_on_pairs({1.2, 1.2, 1.2, 1.2}).repeats == 4);
    // Three pairs are too few, however clear they look.
    CHECK(verdict_on_pairs({0.5, 0.5, 0.5}).outcome == verdict::inconclusive);
    CHECK(verdict_on_pairs({2, 2, 2}).outcome == verdict::inconclusive);
}

TEST_CASE("pairs of a plan with fewer than four are judged by those that it has") {
    const auto of_plan = [](const vector<double>& ratios) {
        measurement m = pairs_with_ratio(ratios);
        m.slos = {mean(ttft) <= 1.1 * baseline};
        m.rule = rule_of({}, static_cast<int>(ratios.size()), static_cast<int>(ratios.size()));
        return judged(m, m.slos[0]);
    };
    CHECK(of_plan({2, 2.02, 1.99}).outcome == verdict::fail);
    CHECK(of_plan({0.5, 0.5, 0.505}).outcome == verdict::pass);
    CHECK(of_plan({2.4, 2.6}).outcome == verdict::fail);  // twice the limit, whatever the machine
    // What two or three do not show, more would: the reason says so.
    const slo_verdict open = of_plan({1.9, 2.0});
    CHECK(open.outcome == verdict::inconclusive);
    CHECK(mentions(open.reason, "2 pairs hardly know their own spread, 4 do"));
    CHECK(of_plan({1.1, 1.12, 1.08}).outcome == verdict::inconclusive);
    measurement m = pairs_with_ratio({2, 2, 2});
    m.slos = {mean(ttft) <= 1_ms, mean(ttft) <= 1.1 * baseline};
    m.rule = rule_of({}, 3, 3);
    CHECK(judged(m, m.slos[0]).outcome == verdict::fail);
}

TEST_CASE("the offset of a metric that can be zero moves no limit of a stored baseline") {
    // Eleven queued requests are 1.1 times ten.
    measurement m;
    m.slos = {max(queued_requests) <= 1.1 * baseline};
    m.stored = {"b.json", 0, {{"max(queued_requests)", {10, 10, 10}}}};
    const comparison stored = comparison_of(columns_of(m, m.slos[0]), m, m.slos[0]);
    CHECK(stored.of(11, 0) == about(1.1));
    CHECK(stored.of(11.1, 0) > 1.1);
    CHECK(stored.of(0, 0) < 0.11);
}

TEST_CASE("close pairs take up to eight") {
    const slo_verdict inside = verdict_on_pairs(vector<double>(8, 1.045));
    CHECK(inside.outcome == verdict::pass);
    CHECK(inside.repeats == 5);
    const slo_verdict outside = verdict_on_pairs(vector<double>(8, 1.185));
    CHECK(outside.outcome == verdict::fail);
    CHECK(outside.repeats == 5);
    const slo_verdict at_limit = verdict_on_pairs(vector<double>(8, 1.10));
    CHECK(at_limit.outcome == verdict::inconclusive);
    CHECK(at_limit.repeats == 8);
    CHECK(str(at_limit.reason) == "too close to call");
}

TEST_CASE("pairs that spread are judged by their own spread") {
    // Believed 5.66 %, moderated 8 %: that bound alone would pass. Their own says no such thing.
    const slo_verdict four = verdict_on_pairs({0.80, 1.02, 0.85, 0.99});
    CHECK(input(four, "prior_df") == 0);
    CHECK(input(four, "df") == 3);
    CHECK(input(four, "pass_bound") > 0);
    CHECK(four.outcome == verdict::inconclusive);
    CHECK(str(four.method) == "paired t");
    CHECK(str(four.reason) ==
          "the pairs spread by 12 %, more than the 5.7 % believed of them");
    vector<double> distances;
    for (const double r : {0.80, 1.02, 0.85, 0.99}) distances.push_back(std::log(r / 1.10));
    CHECK(analysis_of(distances, 0.04 * std::sqrt(2.0)).outcome == verdict::pass);
    // Red as well as green.
    const slo_verdict slower = verdict_on_pairs({1.60, 1.15, 1.50, 1.20});
    CHECK(slower.outcome == verdict::inconclusive);
    // Quiet pairs are judged as ever: few of them may look quieter than the machine is.
    const slo_verdict quiet = verdict_on_pairs({1.00, 1.01, 0.99, 1.00});
    CHECK(quiet.outcome == verdict::pass);
    CHECK(str(quiet.method) == "paired moderated t");
    CHECK(quiet.reason.empty());
}

TEST_CASE("pairs of fresh processes that agree decide by their own spread") {
    // Modes that four pairs may hide are 1.05 % for a pass and 1.37 % for a fail.
    const vector<double> same = {1.000, 1.001, 0.999, 1.000, 1.001, 1.000, 0.999, 1.000};
    const slo s = mean(ttft) <= 1.02 * baseline;
    measurement m = pairs_with_ratio(same);
    const slo_verdict lasting = judged(m, s);
    CHECK(lasting.outcome == verdict::inconclusive);
    CHECK(lasting.repeats == 8);
    CHECK(str(lasting.reason) ==
          "the pairs agree within 0.076 %, but two processes of one build may differ by luck while "
          "they run: let the gate start them again for each pair "
          "(.restart_between_repeats)");
    m.pairs_are_fresh = true;
    CHECK(judged(m, s).outcome == verdict::pass);
    CHECK(judged(m, s).repeats == 4);
    CHECK(!inputs(judged(m, s), "pass_margin").empty());
    measurement slower = pairs_with_ratio({1.040, 1.041, 1.039, 1.040});
    CHECK(judged(slower, s).outcome == verdict::inconclusive);
    slower.pairs_are_fresh = true;
    CHECK(judged(slower, s).outcome == verdict::fail);
    // Pairs that do not agree are judged as ever, and so are runs of an earlier rule.
    measurement noisy = pairs_with_ratio({0.80, 1.02, 0.85, 0.99});
    const slo_verdict before = judged(noisy, mean(ttft) <= 1.10 * baseline);
    noisy.pairs_are_fresh = true;
    CHECK(judged(noisy, mean(ttft) <= 1.10 * baseline).estimate.high == before.estimate.high);
    m.rule.revision = 1;
    CHECK(judged(m, s).outcome == verdict::inconclusive);
}

TEST_CASE("what is believed of pairs may widen their own spread and never narrows it") {
    const judging_rule rule = rule_of({}, 4, 8, 1);
    for (const double step : {0.0, 0.01, 0.03, 0.06, 0.1, 0.3}) {
        const vector<double> x = {-0.2, step - 0.2, 2 * step - 0.2, -0.2, step - 0.2};
        CAPTURE(step);
        const double own_se = std::sqrt(sample_variance(x) / 5);
        const interim_analysis l = analysis_of_pairs(x, 0.0566, rule), believed = analysis_of(x, 0.0566, rule);
        CHECK(l.pass_bound >= believed.pass_bound);
        CHECK(l.pass_bound >=
              mean_of(x) + student_t_quantile(normal_cdf(2.17), 4) * own_se - 1e-12);
    }
}

TEST_CASE("right answers of pairs are believed to differ by 1 %, for most questions are always right or wrong") {
    // Four equal pairs: the bound of a pass is 0.01 x sqrt(8 / 11) / 2 x 2.4200 = 0.01032 further on,
    // and 0.97 x exp(0.01032) is 0.98006.
    const auto with_right = [](int right) {
        measurement m;
        for (int i = 0; i < 4; ++i)
            for (auto* variant : {&m.candidate, &m.baseline}) {
                repeat_data d = steady_repeat(50, 1000);
                for (std::size_t k = 0; k < d.records.size(); ++k) {
                    d.records[k].conversation = static_cast<long long>(k);
                    d.records[k].right = variant == &m.baseline || static_cast<int>(k) < right;
                    d.records[k].graded = "7";
                }
                if (variant == &m.baseline) d.variant = run_variant::baseline;
                variant->push_back(d);
            }
        return judged(m, accuracy >= 0.97 * baseline).outcome;
    };
    CHECK(with_right(981) == verdict::pass);
    CHECK(with_right(979) == verdict::inconclusive);
}

TEST_CASE("only what is open and spreads by more than is believed asks for more pairs") {
    const slo s = mean(ttft) <= 1.10 * baseline;
    const auto asks = [&](const vector<double>& ratios, const slo& held) {
        const measurement m = pairs_with_ratio(ratios);
        return asks_for_more(m, m, judged(m, held));
    };
    CHECK(asks({0.9, 1.2, 1.0, 1.3, 0.9, 1.2, 1.0, 1.3}, s));
    CHECK_FALSE(asks(vector<double>(8, 1.10), s));          // open, but quiet
    measurement fresh = pairs_with_ratio(vector<double>(8, 1.10));
    fresh.pairs_are_fresh = true;
    CHECK(asks_for_more(fresh, fresh, judged(fresh, s)));  // nothing but its own spread is in doubt
    CHECK_FALSE(asks({0.4, 0.5, 0.4, 0.5, 0.4, 0.5, 0.4}, s));   // decided
    CHECK_FALSE(asks({0.9, 1.2, 1.0, 1.3, 0.9, 1.2, 1.0, 1.3}, mean(ttft) <= 100_ms));
    const scenario gate = {.baseline = endpoint{.url = "http://127.0.0.1:1"},
                           .requests = 100,
                           .slos = {s}};
    CHECK(planned(gate, 1).judged->max_repeats == 8);
    CHECK(planned(gate, 1).judged->max_if_noisy == 12);
    CHECK(planned(gate, 1).judged->rule.analyses == 6);
    CHECK(repeats_text(planned(gate, 1)) == "4 to 8 pairs (12 if still open)");
    scenario other = gate;
    other.slos = {mean(ttft) <= 100_ms};
    CHECK(planned(other, 1).judged->max_if_noisy == 0);
    other = gate;
    other.repeats = 6;
    CHECK(planned(other, 1).judged->max_if_noisy == 0);
    CHECK(planned(other, 1).judged->rule.analyses == 5);
    // Alone it goes on from five repeats to eight.
    const scenario alone = {.requests = 100, .slos = {mean(ttft) <= 100_ms}};
    CHECK(planned(alone, 1).judged->max_repeats == 5);
    CHECK(planned(alone, 1).judged->max_if_noisy == 8);
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
    const slo_verdict v = judged(m, goodput(ttft <= 1_s) >= 99_pct);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.estimate.value == 1);  // of the candidate
    CHECK(v.repeats == 4);
    CHECK(judged(m, error_rate <= 1_pct).estimate.value == 0);
    CHECK(judged(m, error_rate <= 1_pct).repeats == 5);  // errors are judged on all there is
}

TEST_CASE("absolute limits of a gate with a baseline are looked at as often as its pairs") {
    measurement m = pairs_with_ratio({0.5, 0.5, 0.5, 0.5, 2});
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::pass);
    CHECK(judged(m, mean(ttft) <= 100_ms).repeats == 4);
    m.candidate.resize(3);
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::inconclusive);
}

TEST_CASE("a baseline that fails its requests is nothing to be compared with") {
    const auto with_failures = [](int failures) {
        measurement m = pairs_with_ratio({1, 1, 1, 1});
        for (std::size_t i = 0; i < 4; ++i) {
            m.candidate[i] = repeat_with_failures(100, 0);
            m.baseline[i] = repeat_with_failures(100, failures);
            m.baseline[i].variant = run_variant::baseline;
        }
        return m;
    };
    measurement m = with_failures(40);
    const slo s = mean(ttft) <= 1.10 * baseline;
    m.slos = {s, mean(ttft) <= 100_ms};
    CHECK(judged(with_failures(0), s).outcome == verdict::pass);
    const slo_verdict v = judged(m, s);
    CHECK(v.outcome == verdict::invalid);
    CHECK(mentions(v.reason, "baseline server: 160 of 400 requests failed ("));
    CHECK(mentions(v.reason, "where 1 % may"));
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::pass);  // the candidate's own affair
    // Over the limit, and by so little that it is not shown: nothing is compared yet.
    m = with_failures(2);
    const slo_verdict open = judged(m, s);
    CHECK(open.outcome == verdict::inconclusive);
    CHECK(mentions(open.reason, "8 of 400 requests failed"));
    CHECK(mentions(open.reason, "do not show"));
    CHECK(judged(with_failures(1), s).outcome == verdict::pass);
    // The limit is that of the gate.
    m.slos = {s, error_rate <= 5_pct};
    CHECK(judged(m, s).outcome == verdict::pass);
    m.slos = {s, advisory(error_rate <= 5_pct)};
    CHECK(judged(m, s).outcome == verdict::inconclusive);
}

// ---- stored baselines --------------------------------------------------------------------------

TEST_CASE("a stored baseline adds its own spread and that of days") {
    // Ratios 0.80 and 0.84 to the geometric mean of 100, 104 and 96 ms.
    const slo_verdict v =
        judged(against_stored({80, 84}, {0.100, 0.104, 0.096}), mean(ttft) <= 1.1 * baseline);
    const double base = (std::log(0.100) + std::log(0.104) + std::log(0.096)) / 3;
    const double x1 = std::log(0.080) - base - std::log(1.1),
                 x2 = std::log(0.084) - base - std::log(1.1);
    double squares = (x1 - x2) * (x1 - x2) / 2;
    for (const double b : {0.100, 0.104, 0.096})
        squares += (std::log(b) - base) * (std::log(b) - base);
    const double variance = (8 * 0.04 * 0.04 + squares) / 11;
    const double se = std::sqrt(variance * (1 / 2.0 + 1 / 3.0) + 0.05 * 0.05);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.limit == 1.1);
    CHECK(input(v, "df") == 11);
    CHECK(input(v, "mean") == about((x1 + x2) / 2));
    CHECK(input(v, "standard_error") == about(se));
    CHECK(v.estimate.value == about(std::sqrt(0.080 * 0.084) / std::exp(base)));
    CHECK(mentions(v.method, "stored"));
    CHECK_FALSE(mentions(verdict_line(v), "pair"));
}

TEST_CASE("days that differ more say less") {
    const auto outcome = [](double day_sd) {
        return judged(against_stored(vector<double>(5, 97), {0.1, 0.1, 0.1}, day_sd),
                      mean(ttft) <= 1.1 * baseline)
            .outcome;
    };
    CHECK(outcome(0) == verdict::pass);
    CHECK(outcome(0.05) == verdict::inconclusive);
}

TEST_CASE("nothing under twice the difference of days is a regression") {
    // A loose level lets five repeats against ten show 9 %, which two days in a row may differ by.
    const vector<double> ten(10, 0.1);
    const auto on = [&](double ms, const slo& s) {
        measurement m = against_stored(vector<double>(5, ms), ten);
        m.rule = rule_of({.false_fail = 20_pct}, 2, 5);
        return judged(m, s);
    };
    const slo none_slower = mean(ttft) <= 1.0 * baseline;
    const slo_verdict within = on(109, none_slower);
    CHECK(input(within, "fail_bound") > 0);
    CHECK(within.outcome == verdict::inconclusive);
    CHECK(on(112, none_slower).outcome == verdict::fail);
    // The limit itself does not move it: what counts is the change, not the distance.
    CHECK(on(112, mean(ttft) <= 1.02 * baseline).outcome == verdict::fail);
}

TEST_CASE("a speed may fall below a stored one by twice the difference of days") {
    const auto on = [](double gap_ms) {
        measurement m;
        for (int i = 0; i < 5; ++i) m.candidate.push_back(steady_repeat(50, 20, gap_ms));
        m.stored = {"chat.json", 0.05, {{"p50(decode_speed)", vector<double>(10, 100.0)}}};
        m.rule = rule_of({.false_fail = 20_pct}, 2, 5);
        return judged(m, p50(decode_speed) >= 1.0 * baseline);
    };
    CHECK(input(on(10.9), "fail_bound") > 0);  // 91.7 tokens/s
    CHECK(on(10.9).outcome == verdict::inconclusive);
    CHECK(on(11.3).outcome == verdict::fail);  // 88.5 tokens/s
    CHECK(on(8).outcome == verdict::pass);
}

TEST_CASE("what a stored baseline does not have cannot be compared") {
    const measurement m = against_stored({80, 80}, {0.1, 0.1});
    const slo_verdict v = judged(m, p99(ttft) <= 1.1 * baseline);
    CHECK(v.outcome == verdict::invalid);
    CHECK(str(v.reason) == "the stored baseline has no finite value of p99(ttft) in each of its "
                           "repeats");
    for (const vector<double>& bad :
         {vector<double>{}, {0.1, not_a_number}, {0.1, infinity}, {0.1, 0}})
        CHECK(judged(against_stored({80, 80}, bad), mean(ttft) <= 1.1 * baseline).outcome ==
              verdict::invalid);
}

TEST_CASE("absolute limits and shares of a gate with a stored baseline are judged as ever") {
    const measurement m = against_stored({80, 80}, {0.1, 0.1});
    CHECK(verdict_line(judged(m, mean(ttft) <= 100_ms)) == verdict_line(verdict_on({80, 80})));
    CHECK(judged(m, goodput(ttft <= 1_s) >= 50_pct).outcome == verdict::pass);
}

TEST_CASE("a candidate without a size fails against a stored baseline, too") {
    measurement m = against_stored({80, 80}, {0.1, 0.1});
    m.stored.values["p90(ttft)"] = {0.1, 0.1};
    m.candidate = vector<repeat_data>(3, repeat_with_failures(60, 24));
    CHECK(judged(m, p90(ttft) <= 2.0 * baseline).outcome == verdict::fail);
}

TEST_CASE("what failures of the baseline reach is no number to be compared with") {
    measurement m = pairs_with_ratio({1, 1, 1, 1});
    m.slos = {error_rate <= 20_pct};
    const slo s = p90(ttft) <= 1.1 * baseline;
    const std::size_t n = m.baseline[0].records.size();
    REQUIRE(n == 20);
    CHECK(judge_measurements(m, s).outcome == verdict::pass);
    for (std::size_t i = 0; i < 3; ++i)
        m.baseline[1].records[i].status = request_status::http;
    const slo_verdict v = judge_measurements(m, s);
    CHECK(v.outcome == verdict::invalid);
    CHECK(str(v.reason) == "baseline server: repeat 2: p90(ttft) is infinite, as 3 of 20 requests "
                           "failed, so nothing is compared with it");
    // Fewer than reach it have made it larger, as many as may reach it in the next run.
    m.baseline[1].records[0].status = request_status::ok;
    m.baseline[2].records[0].status = m.baseline[2].records[1].status = request_status::http;
    m.baseline[3].records[0].status = m.baseline[3].records[1].status = request_status::http;
    const slo_verdict nearly = judge_measurements(m, s);
    CHECK(nearly.outcome == verdict::inconclusive);
    CHECK(mentions(nearly.reason, "baseline: 6 of 80 failed"));
}
