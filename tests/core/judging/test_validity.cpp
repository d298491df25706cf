// What makes a verdict invalid: whose fault it is, and what comes before what.
#include "llmbench.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/validity.hpp"
#include "support/verdicts.hpp"

#include <string>
#include <utility>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

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
              "server: 4 of 40 completed requests have no tokens after their first event, which " +
                  std::string(s.what.metric == metric_id::decode_speed ? "decode_speed" : "tpot") +
                  " needs");
        measurement asked_for = with_short(2);
        asked_for.short_outputs_expected = true;
        CHECK(judged(asked_for, s).outcome == verdict::pass);
        measurement all_short = with_short(20);
        all_short.short_outputs_expected = true;
        CHECK(judged(all_short, s).outcome == verdict::invalid);
    }
    CHECK(judged(with_short(2), mean(ttft) <= 100_ms).outcome == verdict::pass);
}

TEST_CASE("what over 5 percent of the completed requests have no value of is not judged") {
    // Two of 40 are 5 %, which is allowed; three are not, and those that failed have no say.
    const auto without_prompt_tokens = [](int n) {
        measurement m = measured({steady_repeat(80), steady_repeat(80)});
        for (repeat_data& d : m.candidate) {
            d.window_from_ns = at_ms(0);
            d.window_to_ns = at_ms(2000);
            for (record& r : d.records)
                if (n > 0 && n-- > 0) r.prompt_tokens = 0;
        }
        return m;
    };
    const std::string needed = "completed requests have no prompt_tokens in their usage, which ";
    const std::pair<slo, const char*> of_prompts[] = {
        {mean(ttft_per_prompt_token) <= 10_ms, "ttft_per_prompt_token"},
        {max(ttft_per_prompt_token) <= 10_ms, "ttft_per_prompt_token"},
        {p90(ttft_per_prompt_token) <= 10_ms, "ttft_per_prompt_token"},
        {goodput(ttft <= 1_s && ttft_per_prompt_token <= 10_ms) >= 50_pct, "ttft_per_prompt_token"},
        {p10(prefill_speed) >= 50_tps, "prefill_speed"},
        {total_throughput >= 10_tps, "total_throughput"},
        {prefill_throughput >= 10_tps, "prefill_throughput"}};
    for (const auto& [s, name] : of_prompts) {
        CAPTURE(str(s.text()));
        CHECK(judged(without_prompt_tokens(0), s).outcome == verdict::pass);
        CHECK(judged(without_prompt_tokens(2), s).outcome == verdict::pass);
        const slo_verdict v = judged(without_prompt_tokens(3), s);
        CHECK(v.outcome == verdict::invalid);
        CHECK(str(v.reason) == "server: 3 of 40 " + needed + name + " needs");
        const slo_verdict none = judged(without_prompt_tokens(40), s);
        CHECK(none.outcome == verdict::invalid);
        CHECK(str(none.reason) == "server: 40 of 40 " + needed + name + " needs");
    }
    for (const slo& s : {mean(ttft) <= 100_ms, goodput(ttft <= 1_s) >= 50_pct,
                         mean(normalized_latency) <= 1_s, output_throughput >= 10_tps,
                         request_throughput >= 1_rps}) {
        CAPTURE(str(s.text()));
        CHECK(judged(without_prompt_tokens(40), s).outcome == verdict::pass);
    }
}

TEST_CASE("each arm's missing values are its own, and what speaks of one arm needs that one's") {
    const slo relative = p50(ttft_per_prompt_token) <= 1.1 * baseline;
    measurement m = pairs_with_ratio({1, 1, 1, 1});
    for (repeat_data& d : m.baseline)
        for (record& r : d.records) r.prompt_tokens = 0;
    CHECK(str(judged(m, relative).reason) ==
          "baseline server: 80 of 80 completed requests have no prompt_tokens in their usage, "
          "which ttft_per_prompt_token needs");
    CHECK(judged(m, p50(ttft_per_prompt_token) <= 20_ms).outcome == verdict::pass);
    std::swap(m.candidate, m.baseline);
    CHECK(mentions(judged(m, relative).reason, "server: 80 of 80"));
    CHECK(judged(m, p50(ttft_per_prompt_token) <= 20_ms).outcome == verdict::invalid);
}

TEST_CASE("answers of one event have no gaps to judge") {
    const auto with_short = [](int n) {
        std::vector<request> requests;
        for (int i = 0; i < 20; ++i)
            requests.push_back(answered(100.0 * i, 80, 10, i < n ? 1 : 11));
        return measured({repeat_of(requests), repeat_of(requests)});
    };
    for (const slo& s : {p50(itl) <= 20_ms, goodput(itl <= 20_ms) >= 50_pct}) {
        CHECK(judged(with_short(1), s).outcome == verdict::pass);
        CHECK(str(judged(with_short(2), s).reason) ==
              "server: 4 of 40 completed requests have no second content event, which itl needs");
        measurement asked_for = with_short(2);
        asked_for.short_outputs_expected = true;
        CHECK(judged(asked_for, s).outcome == verdict::pass);
        asked_for = with_short(20);
        asked_for.short_outputs_expected = true;
        CHECK(judged(asked_for, s).outcome == verdict::invalid);
    }
}

TEST_CASE("a goodput of later turns needs some") {
    measurement m = measured({steady_repeat(80), steady_repeat(80)});
    const slo s = goodput(later_turn_ttft <= 1_ms) >= 90_pct;
    CHECK(str(judged(m, s).reason) == "server: no request was one that later_turn_ttft is of");
    for (repeat_data& d : m.candidate) d.records[1].turn = 1;  // 80 ms
    CHECK(judged(m, goodput(later_turn_ttft <= 1_ms) >= 50_pct).outcome == verdict::pass);
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
    CHECK(c.cpu_share == 0.4);
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

// ---- whose fault it is, and what comes before what ---------------------------------------------

TEST_CASE("a client whose core is full proves nothing about the server") {
    measurement m = measured(repeats_with_ttft({80, 80, 80}));
    for (repeat_data& d : m.candidate) d.cpu_share = 0.90;
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::pass);
    for (repeat_data& d : m.candidate) d.cpu_share = 0.91;
    for (const slo& s : {mean(ttft) <= 100_ms, mean(tpot) <= 20_ms, p90(itl) <= 20_ms,
                         goodput(ttft <= 1_s) >= 50_pct, mean(ttft) <= 10_ms}) {
        CAPTURE(str(s.text()));
        CHECK(judged(m, s).outcome == verdict::invalid);
        CHECK(str(judged(m, s).reason) ==
              "client: its busiest thread used 91 % of a core; give it client.threads or a core of "
              "its own");
    }
    CHECK(judged(m, error_rate <= 50_pct).outcome == verdict::pass);
    // A client that was told to spin uses all of its core and is none the worse for it.
    m.spins = true;
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::pass);
    CHECK(judged(m, mean(ttft) <= 10_ms).outcome == verdict::fail);
}

TEST_CASE("answers shorter than forced are another load than the one asked for") {
    measurement m = measured(repeats_with_ttft({80, 80}));
    m.candidate[1].short_outputs = 2;  // 5 % of 40
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::pass);
    m.candidate[0].short_outputs = 1;
    for (const slo& s : {mean(ttft) <= 100_ms, mean(tpot) <= 20_ms, p50(e2e) <= 1_s,
                         goodput(ttft <= 1_s) >= 50_pct, p50(decode_speed) >= 50_tps}) {
        CAPTURE(str(s.text()));
        CHECK(judged(m, s).outcome == verdict::invalid);
        CHECK(str(judged(m, s).reason) ==
              "server: 3 of 40 completed requests brought fewer tokens than forced: it does not "
              "heed ignore_eos, or stops by itself");
    }
    CHECK(judged(m, error_rate <= 50_pct).outcome == verdict::pass);
    m.candidate.push_back(steady_repeat(80));  // 3 of 60 are 5 % again, 4 are not
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::pass);
    m.candidate[2].short_outputs = 1;
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::invalid);
}

TEST_CASE("the baseline's faults are named as its own") {
    const slo s = p50(ttft) <= 1.1 * baseline;
    const auto reason = [&](auto&& spoil) {
        measurement m = pairs_with_ratio({1, 1, 1, 1});
        spoil(m);
        const slo_verdict v = judged(m, s);
        CHECK(v.outcome == verdict::invalid);
        return str(v.reason);
    };
    CHECK(reason([](measurement& m) {
              for (repeat_data& d : m.baseline) d = repeat_with_failures(20, 20);
          }) == "baseline server: none of 80 requests succeeded (timeout: no answer)");
    CHECK(reason([](measurement& m) { m.baseline[3].target_gone = "it went away"; }) ==
          "baseline server: it went away");
    CHECK(reason([](measurement& m) { m.candidate[3].target_gone = "it went away"; }) ==
          "server: it went away");
    CHECK(reason([](measurement& m) { m.baseline[0].interrupted = true; }) ==
          "the run was interrupted");
    const std::string shorter = reason([](measurement& m) {
        for (repeat_data& d : m.baseline) d.short_outputs = 20;
    });
    CHECK(shorter.find("baseline server: 80 of 80") == 0);
}

TEST_CASE("a baseline without one repeat is no baseline") {
    measurement m = pairs_with_ratio({1, 1, 1, 1});
    m.baseline.clear();
    CHECK(str(judged(m, mean(ttft) <= 1.1 * baseline).reason) == "there is no baseline");
}

TEST_CASE("errors over the gate's limit are a miss and not invalid") {
    const measurement m = measured({repeat_with_failures(400, 40), repeat_with_failures(400, 40)},
                                   {p50(ttft) <= 100_ms});
    const std::vector<slo_verdict> v = judge_all(m);
    CHECK(v[0].outcome == verdict::pass);
    CHECK(v[1].outcome == verdict::fail);
}
