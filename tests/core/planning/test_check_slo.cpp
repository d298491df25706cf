// Objectives that are refused: what no run of this scenario could show.
#include "llmbench.hpp"
#include "core/planning/check_slo.hpp"
#include "core/planning/planning.hpp"
#include "support/scenarios.hpp"
#include "support/texts.hpp"
#include "support/histories.hpp"
#include "extensions/capacity/api.hpp"
#include "extensions/answers/api.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;
using doctest::Approx;
using texts::holds;

namespace {

std::string refusal_of_relative_slo(const slo& s) {
    return refusal({.baseline = endpoint{.url = "http://h"},
                    .arrivals = closed_loop(16),
                    .requests = 300,
                    .slos = {s}});
}

}  // namespace

// ---- refusals: SLOs ----------------------------------------------------------------------------

TEST_CASE("an SLO that nothing could show or miss is quoted, and refused with what is allowed") {
    const auto s = [](double seconds) { return time_span::from_seconds(seconds); };
    const struct { slo refused; const char *quoted, *why; } rows[] = {
        {output_throughput >= 400_tps, "output_throughput >= 400 tok/s is refused", "arrival rate"},
        {advisory(output_throughput >= 400_tps), "output_throughput", "arrival rate"},
        // limits
        {p90(ttft) <= 0_ms, "p90(ttft) <= 0 ms", "above zero"},
        {p90(ttft) <= s(-1), "p90(ttft) <= -1000 ms", "above zero"},
        {p90(ttft) <= s(inf), "p90(ttft)", "above zero"},
        {p90(ttft) <= s(nan_value), "p90(ttft)", "above zero"},
        {error_rate <= 0_pct, "error_rate <= 0 %", "above zero"},
        {error_rate <= 100_pct, "error_rate <= 100 %", "under 100 %"},
        {goodput(ttft <= 1_s) >= 100_pct, "goodput(ttft <= 1 s) >= 100 %", "under 100 %"},
        {preemptions <= -1, "preemptions <= -1", "not be below zero"},
        {preemptions <= nan_value, "preemptions", "not be below zero"},
        {mean(queue_time) <= 0_ms, "mean(queue_time)", "must be above zero"},
        {max(kv_cache_usage) <= 100_pct, "max(kv_cache_usage)", "under 100 %"},
        {energy_per_token <= 0_J, "energy_per_token", "must be above zero"},
        // baselines, and what needs one
        {mean(queue_time) <= 1.1 * baseline, "mean(queue_time)", "has no baseline"},
        {mean(tpot) <= 1.1 * baseline, "mean(tpot) <= 1.1 * baseline", "has no baseline"},
        {same_answers >= 90_pct, "same_answers >= 90 %", "live baseline"},
        {accuracy >= 90_pct, "accuracy >= 90 %", "workload is not questions{...}"}};
    for (const auto& [refused, quoted, why] : rows)
        CHECK_REFUSED(refusal_of_slo(refused), "the SLO ", quoted, why);
    for (const double q : {0.0, 1.0, -0.1, 1.5, nan_value})
        CHECK_REFUSED(refusal_of_slo(percentile(ttft, q) <= 1_s), "the SLO p", "(ttft", "<= 1 s",
                      "strictly between 0 and 1");
    for (const slo& sound :
         {percentile(ttft, 0.42) <= 1_s, goodput(ttft <= 1_s) >= 99.9_pct, preemptions <= 0, max(queued_requests) <= 0,
          p90(queued_requests) <= 8, mean(server_metric("x")) >= -3, mean(queue_time) <= 50_ms})
        CHECK(refusal_of_slo(sound) == "");

    const struct { slo refused; const char *quoted, *why; } beside_a_baseline[] = {
        {error_rate <= 1.1 * baseline, "error_rate <= 1.1 * baseline", "limit of its own"},
        {goodput(ttft <= 1_s) >= 0.9 * baseline, "goodput", "limit of its own"},
        {startup_time <= 1.1 * baseline, "startup_time <= 1.1 * baseline", "startup_time of two servers"},
        {accuracy >= 0.98 * baseline, "accuracy", "workload is not questions{...}"},
        {same_answers >= 90_pct, "same_answers", "prompts differ from repeat"},
        {mean(ttft) <= -1.1 * baseline, "<= -1.1 * baseline", "above zero"}};
    for (const auto& [refused, quoted, why] : beside_a_baseline)
        CHECK_REFUSED(refusal_of_relative_slo(refused), "the SLO ", quoted, why);
    for (const double bad : {0.0, -1.1, inf, -inf, nan_value}) {
        CAPTURE(bad);
        CHECK_REFUSED(refusal_of_relative_slo(mean(ttft) <= bad * baseline), "mean(ttft) <= ", "above zero");
        CHECK_REFUSED(refusal_of_relative_slo(p50(decode_speed) >= bad * baseline), "above zero");
    }
    CHECK(refusal_of_relative_slo(mean(tpot) <= 1.1 * baseline) == "");
    CHECK(refusal_of_relative_slo(output_throughput >= 0.9 * baseline) == "");
}

TEST_CASE("a percentile of the server's page needs three readings beyond it") {
    const auto lasting = [](const time_span& duration) {
        return refusal({.arrivals = closed_loop(16), .duration = duration, .slos = {p90(queued_requests) <= 8}});
    };
    CHECK(lasting(20_s) ==
          "the SLO p90(queued_requests) <= 8 is refused: p90(queued_requests) needs at least 30 "
          "readings of the server's page, one a second, so that three lie beyond it, and the "
          "duration is 20 s");
    CHECK(lasting(30_s) == "");
}

TEST_CASE("a series of the server's page is named as the page names it") {
    CHECK(refusal_of_slo(max(server_metric("vllm:waiting{engine=\"0\"}")) <= 5) == "");
    for (const char* name : {"", "two words", "a{b=}", "a\nb", "9lives", "a{b=\"c\"} 3", "# a"}) {
        CAPTURE(name);
        CHECK_REFUSED(refusal_of_slo(max(server_metric(name)) <= 5), "names no series");
    }
}

TEST_CASE("a predicate without a condition is refused, alone and as a side of a combination") {
    const predicate none{}, some = ttft <= 1_s;
    for (const predicate& p : {none, none && none, none && some, some && none, none || some,
                               some || none, (some && none) || some, some && (some || none)}) {
        CAPTURE(std::string(p.text));
        CHECK_REFUSED(refusal_of_slo(goodput(p) >= 95_pct), "the SLO goodput(",
                      "a predicate is empty: goodput, && and || need conditions");
        CHECK_REFUSED(refusal_of_slo(advisory(goodput(p) >= 95_pct)), "a predicate is empty");
    }
    CHECK(refusal_of_slo(goodput((some && some) || some) >= 95_pct) == "");
}

TEST_CASE("limits inside of predicates are limits as well") {
    const auto seconds = [](double s) { return time_span::from_seconds(s); };
    CHECK_REFUSED(refusal_of_slo(goodput(ttft <= seconds(-0.005)) >= 95_pct), "goodput(ttft <= -5 ms)",
                  "the limit of ttft must be above zero");
    for (const double bad : {0.0, -1.0, inf, -inf, nan_value}) {
        CAPTURE(bad);
        CHECK_REFUSED(refusal_of_slo(goodput(e2e <= seconds(bad)) >= 95_pct), "limit of e2e");
        CHECK_REFUSED(refusal_of_slo(goodput(ttft <= 1_s && tpot <= seconds(bad)) >= 95_pct),
                      "limit of tpot");
        CHECK_REFUSED(refusal_of_slo(goodput(ttft <= 1_s || e2e <= seconds(bad)) >= 95_pct),
                      "limit of e2e");
        CHECK_REFUSED(refusal_of_slo(goodput(decode_speed >= token_rate(bad)) >= 95_pct),
                      "limit of decode_speed");
    }
}

TEST_CASE("a throughput below saturation only measures the arrival rate and is refused") {
    for (const open_loop& load : {constant(8_rps), poisson(8_rps), gamma(8_rps, 0.5),
                                  ramp(8_rps, 16_rps, 60_s), steps({{8_rps, 60_s}})})
        for (const slo& s : {output_throughput >= 400_tps, total_throughput >= 400_tps,
                             request_throughput >= 4_rps}) {
            const std::string name = arrival_text(load.data());
            CHECK_REFUSED(refusal({.arrivals = load, .requests = 300, .slos = {s}}), str(s.text()),
                          name, "arrival rate", "closed_loop");
            CHECK(refusal({.arrivals = closed_loop(16), .requests = 300, .slos = {s}}) == "");
            CHECK(refusal({.arrivals = all_at_once(), .requests = 300, .slos = {s}}) == "");
        }
}

TEST_CASE("a percentile needs three measured requests beyond it") {
    const struct { slo s; int needed; } table[] = {
        {p50(ttft) <= 1_s, 6},
        {p75(ttft) <= 1_s, 12},
        {p90(ttft) <= 1_s, 30},
        {p95(e2e) <= 1_s, 60},
        {p99(tpot) <= 1_s, 300},
        {p999(ttft) <= 1_s, 3000},
        {p10(decode_speed) >= 1_tps, 30},
        {p5(decode_speed) >= 1_tps, 60},
        {p1(prefill_speed) >= 1_tps, 300},
        {percentile(ttft, 0.2) <= 1_s, 4},
        {percentile(decode_speed, 0.9) >= 1_tps, 4}};
    for (const auto& [s, needed] : table) {
        CAPTURE(s);
        const std::string number = std::to_string(needed), one_less = std::to_string(needed - 1);
        CHECK_REFUSED(refusal({.arrivals = poisson(8_rps), .requests = needed - 1, .slos = {s}}),
                      str(s.text()), str(s.statistic.name), ("at least " + number),
                      ("has " + one_less));
        CHECK(refusal({.arrivals = poisson(8_rps), .requests = needed, .slos = {s}}) == "");
    }
}

TEST_CASE("the requests that a percentile needs may come from a duration") {
    const auto with = [](const open_loop& load, time_span duration, long long requests = 0) {
        return refusal({.arrivals = load,
                        .requests = requests,
                        .duration = duration,
                        .slos = {p90(ttft) <= 1_s}});
    };
    CHECK_REFUSED(with(poisson(2_rps), 14_s), "at least 30", "has 28");
    CHECK(with(poisson(2_rps), 15_s) == "");
    CHECK_REFUSED(with(poisson(2_rps), 15_s, 29), "has 29");
    CHECK_REFUSED(with(poisson(2_rps), 10_s, 1000), "has 20");
    CHECK_REFUSED(with(ramp(1_rps, 2_rps, 10_s), 10_s), "has 15");
    CHECK_REFUSED(with(steps({{1_rps, 10_s}, {2_rps, 5_s}}), 0_s), "has 20");
    CHECK(with(steps({{1_rps, 10_s}, {2_rps, 10_s}}), 0_s) == "");
}

TEST_CASE("where only the run can tell the number of requests a percentile is not refused") {
    CHECK(refusal({.arrivals = closed_loop(4), .duration = 10_s, .slos = {p99(ttft) <= 1_s}}) ==
          "");
    CHECK(refusal({.arrivals = poisson(8_rps), .requests = 10, .slos = {p99(itl) <= 1_s}}) ==
          "");  // many gaps each
    CHECK_REFUSED(refusal({.arrivals = closed_loop(4), .requests = 10, .slos = {p99(ttft) <= 1_s}}),
                  "has 10");
}

TEST_CASE("a mean beside a loose limit on errors is refused") {
    const auto with = [](const slo& errors) {
        return refusal_after([&](scenario& s) { s.slos = {mean(tpot) <= 25_ms, errors}; });
    };
    CHECK_REFUSED(with(error_rate <= 6_pct), "mean(tpot) <= 25 ms", "over 5 %");
    CHECK(with(error_rate <= 5_pct) == "");
    CHECK(with(advisory(error_rate <= 6_pct)) == "");
    CHECK(refusal_after([](scenario& s) {
              s.slos = {p90(tpot) <= 25_ms, error_rate <= 6_pct};
          }) == "");
}

TEST_CASE("the first SLO that is unsound is the one refused") {
    const std::string first = refusal_after([](scenario& s) {
        s.slos = {p90(ttft) <= 1_s, p999(ttft) <= 1_s, output_throughput >= 400_tps};
    });
    CHECK_REFUSED(first, "the SLO p999(ttft)");
    CHECK_FALSE(holds(first, "output_throughput"));
}

// ---- error levels -------------------------------------------------------------------------------

TEST_CASE("error levels out of their range are refused by name") {
    const auto levels = [](double pass, double fail) {
        return refusal_after([&](scenario& s) {
            s.judging.false_pass = fraction(pass);
            s.judging.false_fail = fraction(fail);
        });
    };
    CHECK_REFUSED(levels(0.25, 0.01), "judging.false_pass is 25 %", "0.01 to 20 %");
    CHECK_REFUSED(levels(0.05, 0.25), "judging.false_fail is 25 %", "0.01 to 20 %");
    CHECK_REFUSED(levels(0, 0.01), "judging.false_pass is 0 %");
    CHECK_REFUSED(levels(0.05, 0.00009), "judging.false_fail is 0.009 %");
    CHECK_REFUSED(levels(-0.05, 0.01), "judging.false_pass is -5 %");
    CHECK_REFUSED(levels(nan_value, 0.01), "judging.false_pass is");
    CHECK_REFUSED(levels(0.05, inf), "judging.false_fail is");
    CHECK(levels(0.0001, 0.2) == "");
    CHECK(levels(0.2, 0.0001) == "");
}

TEST_CASE("the plan carries the rule that its verdicts follow") {
    scenario s = sound();
    s.slos = {p90(ttft) <= 1_s};
    const judging_rule usual = planned(s, 1).judged->rule;
    CHECK(usual.analyses == 5);
    CHECK(usual.most == 5);
    CHECK(usual.pass_z == 2.12);
    CHECK(usual.fail_z == 2.80);
    CHECK_FALSE(usual.holm);

    s.repeats = 9;
    s.judging = {.false_pass = 2.5_pct, .false_fail = 0.5_pct, .holm = true};
    const judging_rule strict = planned(s, 1).judged->rule;
    CHECK(strict.analyses == 8);  // after 2, 3, ... 9 repeats
    CHECK(strict.most == 9);
    CHECK(strict.pass_level == Approx(0.025));
    CHECK(strict.fail_level == Approx(0.005));
    // Jennison and Turnbull (2000), table 2.1: 8 looks, two-sided 0.05 and 0.01.
    CHECK(strict.pass_z == Approx(2.512).epsilon(0.0003));
    CHECK(strict.fail_z == Approx(3.078).epsilon(0.0003));
    CHECK(strict.holm);
}

TEST_CASE("a stored baseline needs a file and a spread of days that is one") {
    const auto with = [](const any_baseline& b) {
        return refusal({.baseline = b,
                        .arrivals = poisson(8_rps),
                        .requests = 300,
                        .slos = {mean(tpot) <= 1.1 * baseline}});
    };
    CHECK_REFUSED(with(stored("")), "stored(\"\")", "file");
    CHECK_REFUSED(with(stored("a.json", fraction(-0.01))), "day-to-day", "is -1 %", "from above 0 to 50 %");
    CHECK_REFUSED(with(stored("a.json", 51_pct)), "day-to-day", "is 51 %");
    CHECK_REFUSED(with(stored("a.json", 200_pct)), "day-to-day", "is 200 %");
    CHECK_REFUSED(with(stored("a.json", fraction(nan_value))), "day-to-day");
    CHECK(with(stored("a.json")) == "");
    CHECK_REFUSED(with(stored("a.json", 0_pct)), "day-to-day", "do differ");
    CHECK(with(stored("a.json", 0.1_pct)) == "");
    CHECK(with(stored("a.json", 50_pct)) == "");
    CHECK(with(history()) == "");
    CHECK(with(history("runs", 3_pct)) == "");
    CHECK_REFUSED(with(history("")), "history(\"\")", "folder");
    CHECK_REFUSED(with(history("runs", 51_pct)), "runs is 51 %", "left out and learned");
    CHECK_REFUSED(with(history("runs", fraction(-0.01))), "between runs is -1 %");
    CHECK_REFUSED(with(history("runs", fraction(nan_value))), "between runs");
}

TEST_CASE("a stored baseline takes repeats and not pairs") {
    const plan p = planned({.baseline = stored("a.json", 3_pct),
                            .arrivals = poisson(8_rps),
                            .requests = 300,
                            .slos = {mean(tpot) <= 1.1 * baseline}},
                           1);
    CHECK(p.judged->has_stored_baseline);
    CHECK_FALSE(p.judged->has_baseline);
    CHECK(p.judged->stored.file == text("a.json"));
    CHECK(p.judged->stored.day_to_day.value == Approx(0.03));
    CHECK(p.judged->first_repeats == 2);
    CHECK(p.judged->max_repeats == 5);
    // What is not compared with a live baseline is not compared with a stored one.
    const auto with = [](const slo& s) {
        return refusal({.baseline = stored("a.json"),
                        .arrivals = closed_loop(4),
                        .requests = 300,
                        .slos = {s}});
    };
    CHECK_REFUSED(with(error_rate <= 1.1 * baseline), "limit of its own");
    CHECK(with(error_rate <= baseline + 1_pct) == "");
    CHECK(with(goodput(ttft <= 1_s) >= baseline - 1_pct) == "");
    CHECK(with(error_rate <= baseline + 99_pct) == "");
    CHECK_REFUSED(with(error_rate <= baseline + 100_pct), "no fraction can miss it");
    CHECK_REFUSED(with(goodput(ttft <= 1_s) >= baseline - 100_pct), "no fraction can miss it");
    CHECK_REFUSED(with(same_answers >= baseline - 1_pct), "live baseline");
    CHECK_REFUSED(with(startup_time <= 1.1 * baseline), "startup_time of two servers");
    CHECK(with(output_throughput >= 0.9 * baseline) == "");
}

// ---- cost and drift ----------------------------------------------------------------------------

TEST_CASE("a cost is of all output tokens of a server whose price is known, and that is full") {
    using price = types::maybe<hourly_cost>;
    const auto refused = [](const slo& s, const price& cost = usd_per_hour(2.5), const any_baseline& b = {}) {
        return refusal({.baseline = b, .arrivals = closed_loop(16), .requests = 300, .slos = {s}, .cost = cost});
    };
    const slo sound = cost_per_million_tokens <= 0.4_usd;
    CHECK(refused(sound) == "");
    CHECK(refused(drift(cost_per_million_tokens) <= 105_pct) == "");
    CHECK_REFUSED(refused(sound, price()),
                  "the SLO cost_per_million_tokens <= 0.4 USD is refused: the scenario does not "
                  "say what the server costs: .cost = usd_per_hour(2.5)");
    CHECK_REFUSED(refused(drift(cost_per_million_tokens) <= 105_pct, price()), "does not say what the server costs");
    CHECK_REFUSED(refused(cost_per_million_tokens <= 0_usd), "the limit must be above zero");
    CHECK_REFUSED(refused(of(cost_per_million_tokens, turns(1, 1)) <= 0.4_usd),
                  "a server costs what it does, for whomever: the cost is of all tokens");
    for (const double usd : {0.0, -1.0, 2e6, infinity, not_a_number})
        CHECK_REFUSED(refused(mean(tpot) <= 1_s, usd_per_hour(usd)),
                      "USD an hour: it must be above 0 and at most 1000000 USD an hour");
    CHECK_REFUSED(refusal({.arrivals = poisson(8_rps), .requests = 300, .slos = {sound}, .cost = usd_per_hour(2.5)}),
                  "below saturation a cost per token only measures the arrival rate of poisson(8 req/s)");
    const scenario searched = {.arrivals = closed_loop(up_to(64)),
                               .slos = {sound, capacity >= 8_users},
                               .cost = usd_per_hour(2.5)};
    CHECK_REFUSED(texts::refusal_of([&] { planned(searched, 1, {}, scenario_use::gate); }),
                  "a cost per token falls with the load, and cannot be what the load must hold");
    // Prices change from one day to another.
    const slo compared = cost_per_million_tokens <= 1.05 * baseline;
    CHECK(refused(compared, usd_per_hour(2.5), endpoint{.url = "http://h"}) == "");
    for (const any_baseline& past : {any_baseline(stored("main.json")), any_baseline(history("runs"))})
        CHECK_REFUSED(refused(compared, usd_per_hour(2.5), past),
                      "prices change from one day to another: compare output_throughput");
}

TEST_CASE("a drift under a load that changes by plan is that of the load") {
    const auto refusal_under = [](const open_loop& load) {
        return refusal({.arrivals = load, .duration = 100_s, .slos = {drift(mean(tpot)) <= 110_pct}});
    };
    CHECK(refusal_under(poisson(8_rps)) == "");
    CHECK_REFUSED(refusal_under(ramp(2_rps, 20_rps, 60_s)),
                  "the SLO drift(mean(tpot)) <= 110 % is refused: arrivals is ramp(2 to 20 req/s over "
                  "60 s), so that the drift would be that of the load");
    CHECK_REFUSED(refusal_under(steps({{8_rps, 50_s}, {16_rps, 50_s}})), "that of the load");
}
