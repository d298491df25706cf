// What makes a verdict invalid: whose fault it is, and what comes before what.
#include "llmbench.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/checks.hpp"
#include "support/verdicts.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

// ---- invalid -----------------------------------------------------------------------------------

namespace {
/// Why a verdict is invalid, by the name and the first two numbers of its first cause: "no_usage 4 of
/// 40". "" where it is another one.
std::string invalid_by(const slo_verdict& v) {
    if (v.outcome != verdict::invalid || v.causes.empty()) return "";
    const verdict_cause& c = v.causes[0];
    return str(c.name) + printed(" %g of %g", c.numbers[0], c.numbers[1]);
}
}  // namespace

TEST_CASE("what over 5 percent of the completed requests have no value of is not judged") {
    const struct {
        const char* lack;
        slo_list decided, others;
        request (*odd)(double at);
        bool may_be_asked_for;
    } rows[] = {
        {"tokens after their first event",
         {mean(tpot) <= 20_ms, p50(decode_speed) >= 50_tps,
          goodput(ttft <= 1_s && tpot <= 20_ms) >= 50_pct},
         {mean(ttft) <= 100_ms},
         [](double at) { return answered(at, 80, 10, 1); }, true},
        {"second content event", {p50(itl) <= 20_ms, goodput(itl <= 20_ms) >= 50_pct}, {},
         [](double at) { return answered(at, 80, 10, 1); }, true},
        {"second content event in a read of its own", {p50(second_token_gap) <= 1_s}, {},
         [](double at) {
             return request(at).content(at + 80).content(at + 80).content(at + 90).usage(at + 90, 10, 3).done(at + 90);
         }, true},
        {"prompt_tokens in their usage",
         {mean(ttft_per_prompt_token) <= 10_ms, max(ttft_per_prompt_token) <= 10_ms,
          p75(ttft_per_prompt_token) <= 10_ms, p50(prefill_speed) >= 50_tps,
          goodput(ttft <= 1_s && ttft_per_prompt_token <= 10_ms) >= 50_pct,
          total_throughput >= 10_tps, prefill_throughput >= 10_tps},
         {mean(ttft) <= 100_ms, goodput(ttft <= 1_s) >= 50_pct, mean(normalized_latency) <= 1_s,
          output_throughput >= 10_tps, request_throughput >= 1_rps},
         [](double at) {
             request q(at);
             for (int i = 0; i < 11; ++i) q.content(at + 80 + 10 * i);
             return q.usage(at + 180, 0, 11).done(at + 180);
         }, false},
        {"content but reasoning",
         {mean(time_to_first_answer) <= 100_ms, goodput(time_to_first_answer <= 100_ms) >= 50_pct},
         {mean(ttft) <= 100_ms},
         [](double at) { return request(at).reasoning(at + 10).reasoning(at + 40).done(at + 50); }, false},
        {"output tokens in their usage", {mean(tokens_per_event) >= 0.5}, {mean(ttft) <= 100_ms},
         [](double at) { return request(at).content(at + 80).content(at + 90).done(at + 90); }, false}};
    for (const auto& x : rows) {
        CAPTURE(std::string(x.lack));
        // Two repeats of 20 answers: one lack in each is 5 %, which is allowed; two are not.
        const auto with = [&](int lacks, const slo& s, bool is_asked_for = false) {
            vector<request> all;
            for (int i = 0; i < 20; ++i)
                all.push_back(i < lacks ? x.odd(100.0 * i) : answered(100.0 * i, 80));
            measurement m = measured({repeat_of(all), repeat_of(all)});
            for (repeat_data& d : m.candidate) d.window = time_interval::between(at_ms(0), at_ms(2000));
            m.short_outputs_expected = is_asked_for;
            return judged(m, s);
        };
        for (const slo& s : x.decided) {
            CAPTURE(str(s.text()));
            CHECK(with(0, s).outcome == verdict::pass);
            CHECK(with(1, s).outcome == verdict::pass);
            CHECK(invalid_by(with(2, s)) == "lacks_values 4 of 40");
            CHECK(mentions(with(2, s).reason, x.lack));
            CHECK(invalid_by(with(20, s)) == "lacks_values 40 of 40");
            CHECK((with(2, s, true).outcome == verdict::pass) == x.may_be_asked_for);
            CHECK(with(20, s, true).outcome == verdict::invalid);
        }
        for (const slo& s : x.others) CHECK(with(20, s).outcome == verdict::pass);
    }
}

TEST_CASE("answers that end earlier than the baseline's are not compared as a whole") {
    const slo whole = mean(e2e) <= 1.05 * baseline;
    measurement m = pairs_with_ratio({0.5, 0.5, 0.5, 0.5});
    const auto tokens = [](vector<repeat_data>& of, int n) {
        for (repeat_data& d : of)
            for (std::size_t i = 0; i < d.records.size(); ++i)
                d.records[i].output_tokens = n + static_cast<int>(i % 3);
    };
    tokens(m.baseline, 31);
    tokens(m.candidate, 31);
    CHECK(judged(m, whole).outcome == verdict::pass);
    tokens(m.candidate, 7);
    const slo_verdict v = judged(m, whole);
    CHECK(v.outcome == verdict::invalid);
    CHECK(mentions(v.reason, "the arms' requests differ by over 5 % in their tokens"));
    CHECK(mentions(v.reason, "whole answers are not compared"));
    CHECK(judged(m, p90(e2e) <= 1.05 * baseline).outcome == verdict::invalid);
    CHECK(judged(m, mean(ttft) <= 1.05 * baseline).outcome == verdict::pass);
    CHECK(judged(m, mean(e2e) <= 10_s).outcome == verdict::pass);
    m.other_requests = true;  // the author asked for shorter ones
    CHECK(judged(m, whole).outcome == verdict::pass);
}

TEST_CASE("no data is never green") {
    for (const slo& s : {mean(ttft) <= 1_s, error_rate <= 50_pct, goodput(ttft <= 1_s) >= 1_pct}) {
        CHECK(judged(measured({}), s).outcome == verdict::invalid);
        CHECK(judged(measured({repeat_data{}, repeat_data{}}), s).outcome == verdict::invalid);
        CHECK(str(judged(measured({}), s).reason) == "no request was measured");
    }
    CHECK(judge_all(measured({})).back().outcome == verdict::invalid);
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

TEST_CASE("a pass on ttft names what the prefix cache did for it") {
    measurement m = measured({steady_repeat(80), steady_repeat(80)});
    CHECK(judged(m, p50(ttft) <= 100_ms).reason.empty());
    for (repeat_data& d : m.candidate)
        for (record& r : d.records) r.cached_tokens = 4;  // of 10
    for (const slo& s : {slo(p50(ttft) <= 100_ms), slo(mean(ttft_from_send) <= 100_ms),
                         slo(p50(prefill_speed) >= 50_tps),
                         slo(goodput(ttft <= 100_ms && tpot <= 20_ms) >= 50_pct)}) {
        CAPTURE(str(s.text()));
        CHECK(judged(m, s).outcome == verdict::pass);
        CHECK(str(judged(m, s).reason) ==
              "40 % of the prompt tokens came from the server's prefix cache");
    }
    CHECK(judged(m, mean(tpot) <= 20_ms).reason.empty());  // no prompt is part of it
    m.candidate.push_back(steady_repeat(80));
    CHECK_FALSE(mentions(judged(m, p50(ttft) <= 60_ms).reason, "cache"));  // a miss in spite of it
    measurement pairs = pairs_with_ratio({1, 1, 1, 1});
    for (repeat_data& d : pairs.baseline)
        for (record& r : d.records) r.cached_tokens = 0;
    for (repeat_data& d : pairs.candidate)
        for (record& r : d.records) r.cached_tokens = 9;
    CHECK(str(judged(pairs, mean(ttft) <= 1.10 * baseline).reason) ==
          "90 % of the prompt tokens came from the server's prefix cache, with the baseline 0 %");
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

TEST_CASE("a goodput of later turns needs some") {
    measurement m = measured({steady_repeat(80), steady_repeat(80)});
    const slo s = goodput(later_turn_ttft <= 1_ms) >= 90_pct;
    CHECK(str(judged(m, s).reason) == "server: no measured request is one of later_turn_ttft");
    for (repeat_data& d : m.candidate) d.records[1].turn = 1;  // 80 ms
    CHECK(judged(m, goodput(later_turn_ttft <= 1_ms) >= 50_pct).outcome == verdict::pass);
}

TEST_CASE("a statistic of some requests is judged on those alone") {
    // Every second request belongs to "slow", of which one in ten fails.
    measurement m = measured(repeats_with_ttft({80, 80, 80}));
    for (repeat_data& d : m.candidate) {
        d.labels = {"fast", "slow"};
        for (std::size_t i = 1; i < d.records.size(); i += 2) {
            record& r = d.records[i];
            r.part = 1;
            r.depth = 1;
            r.turn = 1;
            r.first_token_ns += 100000000;
            r.second_token_ns = 0;
        }
    }
    for (const selection& slow : {label("slow"), turns(2), depth(1), label("slow") && depth(1)}) {
        CAPTURE(selection_text(slow));
        const slo_verdict v = judged(m, p50(ttft).of(slow) <= 200_ms);
        CHECK(v.outcome == verdict::pass);
        CHECK(v.estimate.value == about(0.180));
        CHECK(v.measured == about(0.180));
        CHECK(v.requests == 10 * v.repeats);
        CHECK(judged(m, p50(ttft).of(slow) <= 100_ms).outcome == verdict::fail);
    }
    CHECK(judged(m, p50(ttft).of("fast") <= 100_ms).estimate.value == about(0.080));
    CHECK(judged(m, p50(ttft).of(turns(1, 1)) <= 100_ms).outcome == verdict::pass);
    CHECK(judged(m, goodput(ttft <= 100_ms).of("fast") >= 50_pct).estimate.value == about(1));
    CHECK(judged(m, goodput(ttft <= 100_ms).of("slow") >= 50_pct).outcome == verdict::fail);
    CHECK(str(judged(m, p50(ttft).of(turns(3)) <= 1_s).reason) ==
          "server: no measured request is one of turns(3)");
    CHECK(str(judged(m, p50(ttft).of("other") <= 1_s).reason) ==
          "server: no measured request is one of \"other\"");
}

TEST_CASE("errors of some requests are no limit on those of all") {
    measurement m = measured(repeats_with_ttft({80, 80, 80}));
    for (repeat_data& d : m.candidate) {
        d.labels = {"fine", "failing"};
        for (std::size_t i = 0; i < d.records.size(); i += 2) {
            d.records[i].part = 1;
            if (i > 0) d.records[i].status = request_status::http;
        }
    }
    CHECK(judged(m, of(error_rate, "fine") <= 1_pct).estimate.value == 0);
    CHECK(judged(m, of(error_rate, "failing") <= 1_pct).outcome == verdict::fail);
    CHECK(judged(m, of(error_rate, "failing") <= 1_pct).estimate.value == about(0.9));
    CHECK_FALSE(is_of_all_errors(of(error_rate, "failing") <= 50_pct));
    CHECK(is_of_all_errors(error_rate <= 50_pct));
}

TEST_CASE("a label that fails by itself fails the guard, which speaks of all requests") {
    const auto guarded = [](std::size_t every, std::size_t of_those, slo_list slos = {}) {
        measurement m = measured(vector<repeat_data>(3, steady_repeat(80, 400)));
        for (repeat_data& d : m.candidate) {
            d.labels = {"big", "small"};
            for (std::size_t i = 0; i < d.records.size(); i += every) {
                d.records[i].part = 1;
                if (i / every % of_those == 0) d.records[i].status = request_status::http;
            }
        }
        m.slos = {slos.begin(), slos.end()};
        return judge_all(m).back();
    };
    // Three in 400 requests are within the limit, of the 20 in "small" they are not.
    const slo_verdict failed = guarded(20, 7);
    CHECK(str(failed.objective.text()) == "error_rate of \"small\" <= 1 %");
    CHECK(failed.outcome == verdict::fail);
    CHECK(failed.requests == 20 * failed.repeats);
    CHECK(guarded(20, 1000).outcome == verdict::pass);
    CHECK(str(guarded(20, 1000).objective.text()) == "error_rate <= 1 %");
    // A limit that the gate states holds for each label, too.
    const slo_verdict stated = guarded(20, 7, {error_rate <= 2_pct});
    CHECK(str(stated.objective.text()) == "error_rate of \"small\" <= 2 %");
    CHECK(stated.outcome == verdict::fail);
    CHECK(str(guarded(20, 7, {error_rate <= 40_pct}).objective.text()) == "error_rate <= 40 %");
    CHECK(str(guarded(20, 1000, {error_rate <= 1_pct}).objective.text()) == "error_rate <= 1 %");
    // A limit of its own takes the label out of the guard.
    CHECK(guarded(20, 7, {of(error_rate, "small") <= 50_pct}).outcome == verdict::pass);
    const slo_verdict lost = guarded(100, 1);
    CHECK(lost.outcome == verdict::invalid);
    CHECK(str(lost.reason) == "server: none of the 12 requests of \"small\" succeeded");
}

TEST_CASE("a server that reads a part of each prompt is asked another load") {
    measurement m = measured(vector<repeat_data>(2, steady_repeat(80, 100)));
    const auto reason = [&] { return std::string(judged(m, mean(ttft) <= 1_s).reason); };
    for (repeat_data& d : m.candidate)
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            d.records[i].prompt_tokens = 2048;
            d.records[i].most_prompt_tokens = 20000 + static_cast<int>(i);
        }
    CHECK(reason() == "");  // prompts of one length
    for (repeat_data& d : m.candidate)
        for (std::size_t i = 0; i < d.records.size(); i += 3) d.records[i].most_prompt_tokens = 50000;
    CHECK(reason() == "server: 200 of 200 completed requests report 2048 prompt tokens each, though "
                      "what was sent has other lengths: it reads no more of a prompt");
    for (repeat_data& d : m.candidate)
        for (std::size_t i = 0; i < 50; ++i) d.records[i].prompt_tokens = 1000 + static_cast<int>(i);
    CHECK(reason() == "");  // half of them
    const auto ask_for = [&](std::size_t n, int tokens) {
        for (std::size_t i = 0; i < n; ++i) m.candidate[0].records[i].asked_prompt_tokens = tokens;
    };
    ask_for(10, 2000);
    CHECK(reason() == "");
    ask_for(11, 1200);
    CHECK(reason() == "");
    ask_for(11, 2000);
    CHECK(reason() == "server: 11 of 200 completed requests report under 80 % of the prompt tokens "
                      "that were asked for: it reads only a part of its prompts");
}

TEST_CASE("a turn is compared with the last answered one of its conversation's main line") {
    // Conversations of five turns: two on the main line, a subagent, a failed turn, the third.
    measurement m = measured(repeats_with_ttft({100, 100}));
    for (repeat_data& d : m.candidate)
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            record& r = d.records[i];
            r.conversation = static_cast<long long>(i / 5);
            r.turn = std::array{0, 1, 0, 2, 3}[i % 5];
            r.depth = i % 5 == 2;
            r.prompt_tokens = std::array{300, 400, 50, 0, 500}[i % 5];
            r.most_prompt_tokens = i % 5 == 0 || i % 5 == 2 ? 2000 : -2000;
            if (i % 5 == 3) r.status = request_status::http;
        }
    const auto reason = [&] { return str(judged(m, mean(ttft) <= 1_s).reason); };
    CHECK(reason() == "");
    const auto with_last = [&](int tokens) {
        for (repeat_data& d : m.candidate)
            for (std::size_t i = 4; i < d.records.size(); i += 5) d.records[i].prompt_tokens = tokens;
        return reason();
    };
    CHECK(with_last(401) == "");
    CHECK(with_last(400) == "server: 8 of 16 turns that go on from a response have no more prompt tokens "
                            "than the turn before: it ignores the history, loses or cuts it, or its "
                            "usage leaves it out");
    CHECK(with_last(0) == "the server reports no prompt tokens, which would show whether it kept the history");
}

TEST_CASE("a ratio of two statistics is one of each repeat, judged by what the ratios spread by") {
    // Repeats differ by half, and the two halves of each by a fifth.
    measurement m = measured(repeats_with_ttft({80, 120, 100}));
    for (repeat_data& d : m.candidate) {
        d.labels = {"base", "sql"};
        for (std::size_t i = 0; i < d.records.size(); i += 2) {
            record& r = d.records[i];
            r.part = 1;
            r.first_token_ns += (r.first_token_ns - r.scheduled_ns) / 5;
            r.second_token_ns = 0;
        }
    }
    const slo fair = p50(ttft).of("sql") <= 1.3 * p50(ttft).of("base");
    CHECK(str(fair.text()) == "p50(ttft) of \"sql\" <= 1.3 * p50(ttft) of \"base\"");
    const slo_verdict v = judged(m, fair);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.estimate.value == about(1.2));
    CHECK(judged(m, p50(ttft).of("sql") <= 0.8 * p50(ttft).of("base")).outcome == verdict::fail);
    CHECK(judged(m, p50(ttft).of("sql") <= 1.2 * p50(ttft).of("lost")).outcome == verdict::invalid);
    for (repeat_data& d : m.candidate)
        for (std::size_t i = 0; i < d.records.size(); i += 2)
            if (i > 0) d.records[i].status = request_status::http;
    CHECK(judged(m, fair).outcome != verdict::pass);
    for (repeat_data& d : m.candidate) d.records[0].status = request_status::http;
    CHECK(judged(m, fair).outcome == verdict::invalid);
}

namespace {
/// Two repeats of 600 requests, of label "a" every second one, which are as fast as those of "b";
/// of these so many failed.
measurement two_labels(std::size_t failed) {
    vector<repeat_data> repeats = {steady_repeat(80, 600), steady_repeat(80, 600)};
    for (repeat_data& d : repeats) {
        d.labels = {"a", "b"};
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            d.records[i].part = i % 2;
            if (i % 2 == 1 && i / 2 < failed) d.records[i].status = request_status::http;
        }
    }
    return measured(repeats);
}
}  // namespace

TEST_CASE("nothing is a part of what failures reach, and the verdict says so") {
    const slo slower = p99(ttft).of("a") <= 1.25 * p99(ttft).of("b");
    CHECK(judged(two_labels(0), slower).outcome == verdict::pass);
    const slo_verdict v = judged(two_labels(6), slower);
    CHECK(v.outcome == verdict::invalid);
    CHECK(std::isnan(v.measured));
    CHECK(str(v.reason) == "server: repeat 1: p99(ttft) of \"b\" is infinite, as 6 of 300 requests "
                           "failed, so nothing is compared with it");
    const slo_verdict speeds =
        judged(two_labels(40), p10(decode_speed).of("a") >= 0.8 * p10(decode_speed).of("b"));
    CHECK(speeds.outcome == verdict::invalid);
    CHECK(str(speeds.reason) == "server: repeat 1: p10(decode_speed) of \"b\" is zero, as 40 of 300 "
                                "requests failed, so nothing is compared with it");
    // Failures that may reach it in the next run have made it larger than it is.
    const slo_verdict nearly = judged(two_labels(2), slower);
    CHECK(nearly.outcome == verdict::inconclusive);
    CHECK(mentions(nearly.reason, "4 of 600 failed"));
    CHECK(mentions(nearly.reason, "p99(ttft) of \"b\" leaves 1 % beyond it"));
    // What they reach in the numerator is a miss.
    CHECK(judged(two_labels(6), p99(ttft).of("b") <= 1.25 * p99(ttft).of("a")).outcome !=
          verdict::invalid);
    // All of a run's requests fail in its first third: nothing has drifted from there.
    repeat_data d = steady_repeat(80, 300);
    for (std::size_t i = 0; i < 100; ++i) d.records[i].status = request_status::http;
    CHECK(std::isnan(evaluate(drift(p90(ttft)).data, d)));
}

TEST_CASE("requests during a side task are those that overlap one of its steps") {
    repeat_data d = steady_repeat(80);
    const auto step = [](double from, double to) {
        return side_step{"", at_ms(from), at_ms(from), at_ms(to), ""};
    };
    d.side_tasks = {{"reload", false, 0, not_a_number, {step(250, 450), step(1000, 1001)}},
                {"other", false, 0, not_a_number, {step(0, 1e6)}}};
    const selects during_reload(during("reload"), d);
    record r;
    const auto in = [&](double from, double to) {
        r.scheduled_ns = at_ms(from);
        r.end_ns = at_ms(to);
        return during_reload(r);
    };
    CHECK_FALSE(in(0, 249));
    CHECK(in(0, 251));
    CHECK(in(300, 310));
    CHECK(in(449, 900));
    CHECK_FALSE(in(451, 999));
    CHECK(in(0, 2000));
    CHECK_FALSE(in(1002, 2000));
    r.phase = run_phase::warmup;
    CHECK_FALSE(in(300, 310));
    CHECK(during_reload.has(r));
}

TEST_CASE("the share of cached tokens is a value of each repeat, and needs requests that tell") {
    measurement m = measured({steady_repeat(80), steady_repeat(80), steady_repeat(80)});
    const slo s = cached_share >= 40_pct;
    CHECK(mentions(judged(m, s).reason, "have no cached_tokens in their usage"));
    for (repeat_data& d : m.candidate) {
        share_tokens(d, 1000);
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            d.records[i].prompt_tokens = i % 2 == 0 ? 300 : 100;
            d.records[i].cached_tokens = i % 2 == 0 ? 210 : 10;
            d.records[i].turn = i % 2 == 0;
        }
    }
    CHECK(judged(m, s).outcome == verdict::pass);
    CHECK(judged(m, s).measured == about(0.55));
    CHECK(judged(m, s).estimate.value == about(0.55));
    CHECK(judged(m, cached_share >= 70_pct).outcome == verdict::fail);
    CHECK(judged(m, of(cached_share, turns(2)) >= 60_pct).estimate.value == about(0.70));
    CHECK(judged(m, of(cached_share, turns(1, 1)) >= 60_pct).estimate.value == about(0.10));
    m.candidate[0].records[0].cached_tokens = -1;
    CHECK(judged(m, s).outcome == verdict::pass);
    for (repeat_data& d : m.candidate)
        for (std::size_t i = 0; i < d.records.size(); i += 4) d.records[i].cached_tokens = -1;
    CHECK(judged(m, s).outcome == verdict::invalid);
}

TEST_CASE("a busy client that reads events together spoils the gaps between them") {
    measurement m = measured(repeats_with_ttft({80, 80}));  // 220 content events a repeat
    const auto read_together = [&](long long events, double cpu) {
        for (repeat_data& d : m.candidate) {
            d.coalesced_events = events;
            d.cpu_utilization = cpu;
        }
        return judged(m, p50(itl) <= 20_ms);
    };
    CHECK(read_together(11, 0.9).outcome == verdict::pass);  // 5 %
    CHECK(read_together(12, 0.9).outcome == verdict::invalid);
    CHECK(mentions(read_together(12, 0.9).reason,
                   "client: it was late and read 5.5 % of the events together"));
    CHECK(read_together(12, 0.5).outcome == verdict::pass);  // the server sent them together
    CHECK(judged(m, mean(tpot) <= 20_ms).outcome == verdict::pass);
}

TEST_CASE("gaps that a late client read together are unknown, and over 5 % of them spoil itl") {
    measurement m = measured(repeats_with_ttft({80, 80}));
    const auto gaps = static_cast<long long>(pooled_gap_count(m.candidate[0]));
    const auto unknown = [&](long long of_each, long long stamped) {
        for (repeat_data& d : m.candidate) {
            d.reads = 1000;
            d.stamped_reads = stamped;
            d.unknown_gaps = of_each;
            d.coalesced_events = 200;  // as servers send them: where stamps are the kernel's, no fault
            d.cpu_utilization = 0.85;
        }
        return judged(m, p50(itl) <= 20_ms);
    };
    CHECK(unknown(gaps / 20, 1000).outcome == verdict::pass);
    CHECK(unknown(gaps / 20 + 1, 1000).outcome == verdict::invalid);
    CHECK(mentions(unknown(gaps / 10, 1000).reason,
                   "client: it was late and read 10.0 % of the events together"));
    CHECK(judged(m, mean(tpot) <= 20_ms).outcome == verdict::pass);
    CHECK(unknown(0, 0).outcome == verdict::invalid);  // nobody stamps what this busy client reads
}

TEST_CASE("the client's own account is over all repeats and arms") {
    measurement m = pairs_with_ratio({1, 1});
    for (auto* variant : {&m.candidate, &m.baseline})
        for (repeat_data& d : *variant)
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
    m.candidate[0].cpu_utilization = 0.4;
    m.candidate[0].coalesced_events = 44;
    const self_check_t c = self_check_of(m);
    CHECK(c.lateness_p50 == 0.002);
    CHECK(c.lateness_p99 == 0.020);
    CHECK(c.lateness_max == 0.020);
    CHECK(c.late_fraction == 0.25);
    CHECK(c.connections_opened == 7);
    CHECK(c.cpu_utilization == 0.4);
    CHECK(c.coalesced_fraction == about(44 / 880.0));
}

// ---- whose fault it is, and what comes before what ---------------------------------------------

TEST_CASE("a client whose core is full proves nothing about the server") {
    measurement m = measured(repeats_with_ttft({80, 80, 80}));
    for (repeat_data& d : m.candidate) d.cpu_utilization = 0.90;
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::pass);
    for (repeat_data& d : m.candidate) d.cpu_utilization = 0.91;
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

TEST_CASE("answers of other lengths than forced are another load than the one asked for") {
    const struct { int tokens; const char* name; } rows[] = {{12, "stops_early 3 of 40"},
                                                              {10, "too_long 3 of 40"}};
    for (const auto& [tokens, name] : rows) {  // each answer has 11
        CAPTURE(std::string(name));
        measurement m = measured(repeats_with_ttft({80, 80}));
        force_lengths(m.candidate[1], 2, tokens);  // 5 % of 40
        CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::pass);
        force_lengths(m.candidate[0], 1, tokens);
        for (const slo& s : {mean(ttft) <= 100_ms, mean(tpot) <= 20_ms, p50(e2e) <= 1_s,
                             goodput(ttft <= 1_s) >= 50_pct, p50(decode_speed) >= 50_tps})
            CHECK(invalid_by(judged(m, s)) == name);
        CHECK(judged(m, error_rate <= 50_pct).outcome == verdict::pass);
        m.candidate.push_back(steady_repeat(80));  // 3 of 60 are 5 % again, 4 are not
        CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::pass);
        force_lengths(m.candidate[2], 1, tokens);
        CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::invalid);
    }
    // What ended those that are shorter: a length of the server's own, or nothing that it tells.
    const auto ended = [](int at_length, const char* others) {
        measurement m = measured(repeats_with_ttft({80, 80}));
        int i = 0;
        for (repeat_data& d : m.candidate)
            for (record& r : d.records) r.finish_reason = i++ < at_length ? "length" : others;
        force_lengths(m.candidate[0], 10, 64);
        const verdict_cause why = judged(m, mean(ttft) <= 100_ms).causes[0];
        return str(why.name) + printed(" %g %g", why.numbers[2], why.numbers[3]);
    };
    CHECK(ended(40, "") == "context_full 10 21");  // so many at their length, none longer than this
    CHECK(ended(34, "stop") == "context_full 4 21");
    CHECK(ended(30, "stop") == "stops_early 10 0");  // by themselves
    CHECK(ended(10, "").find("stops_early") == 0);
    CHECK(ended(0, "").find("stops_early") == 0);
}

TEST_CASE("a selection of requests is judged by its own answers") {
    const struct { const char* name; void (*spoil)(record& r); } rows[] = {
        {"stops_early", [](record& r) { r.length_forced = true, r.most_output_tokens = 64; }},
        {"too_long", [](record& r) { r.length_forced = true, r.most_output_tokens = 5; }},
        {"short_prompts", [](record& r) { r.asked_prompt_tokens = 2000; }},
        {"known_prompts", [](record& r) { r.shared_tokens = 0; }}};
    // One answer in four is of "chat", whose requests are turns of one conversation.
    const auto judged_of = [](void (*spoil)(record& r), int odd_part, const slo& s) {
        measurement m = measured({steady_repeat(80, 80), steady_repeat(80, 80)});
        for (repeat_data& d : m.candidate) {
            d.labels = {"chat", "code"};
            for (std::size_t i = 0; i < d.records.size(); ++i) {
                record& r = d.records[i];
                r.part = i % 4 > 0;
                r.turn = r.part == 0 ? static_cast<int>(i / 4) : 0;
                r.prompt_tokens = 1000;
                r.cached_tokens = r.shared_tokens = 900;
                if (r.part == odd_part) spoil(r);
            }
        }
        const slo_verdict v = judged(m, s);
        return v.outcome == verdict::invalid ? str(v.causes[0].name) : std::string();
    };
    for (const auto& [name, spoil] : rows) {
        CAPTURE(std::string(name));
        for (const int odd : {0, 1}) {
            CAPTURE(odd);
            CHECK(judged_of(spoil, odd, mean(ttft).of("chat") <= 1_s) == (odd == 0 ? name : ""));
            CHECK(judged_of(spoil, odd, mean(ttft).of("code") <= 1_s) == (odd == 1 ? name : ""));
            CHECK(judged_of(spoil, odd, mean(ttft).of(turns(2)) <= 1_s) == (odd == 0 ? name : ""));
            CHECK(judged_of(spoil, odd, mean(ttft) <= 1_s) == name);
        }
    }
}

TEST_CASE("a later turn is asked with all that its conversation has said, a subagent is not") {
    // Turns of 100 tokens, answered with eleven.
    const auto is_short = [](int turn, int depth, int prompt_tokens, int reasoned = 0) {
        vector<request> asked(static_cast<std::size_t>(turn) + 1, answered(0, 80));
        repeat_data d = repeat_of(asked);
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            record& r = d.records[i];
            r.conversation = 7;
            r.turn = static_cast<int>(i);
            r.asked_prompt_tokens = 100;
            r.prompt_tokens = 1000;
            r.reasoning_tokens = reasoned;
        }
        d.records.back().depth = depth;
        d.records.back().prompt_tokens = prompt_tokens;
        return answer_counts_of({d}).short_prompts == 1;
    };
    CHECK_FALSE(is_short(0, 0, 64));
    CHECK(is_short(0, 0, 63));
    CHECK_FALSE(is_short(2, 0, 242));  // 80 % of 322, less 16
    CHECK(is_short(2, 0, 241));
    CHECK_FALSE(is_short(2, 0, 224, 11));  // of 300: reasoning is not read again
    CHECK(is_short(2, 0, 223, 11));
    CHECK_FALSE(is_short(2, 1, 64));
    CHECK(is_short(2, 1, 63));
}

TEST_CASE("answers that begin alike are counted in each repeat, among those that are selected") {
    measurement m = measured(repeats_with_ttft({80, 80}));
    for (std::size_t k = 0; k < 2; ++k) {
        repeat_data& d = m.candidate[k];
        d.labels = {"chat", "code"};
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            d.records[i].part = i % 4 > 0;
            d.records[i].opening_hash = i % 4 > 0 ? 100 + i : 7 + k;
        }
    }
    const auto alike = [&](const statistic_data& of) {
        return answer_counts_of(m.candidate, of.which).equal_openings;
    };
    CHECK(alike(p50(ttft).data) == 10);
    CHECK(alike(p50(ttft).of("chat").data) == 10);
    CHECK(alike(p50(ttft).of("code").data) == 2);
}

TEST_CASE("answers that end at their length before the one asked for are not what was asked for") {
    const auto with = [](int cut, int tokens, token_origin by = token_origin::usage) {
        measurement m = measured(repeats_with_ttft({80, 80}));
        int i = 0;
        for (repeat_data& d : m.candidate)
            for (record& r : d.records) {
                r.finish_reason = i++ < cut ? "length" : "stop";
                r.most_output_tokens = tokens;
                r.token_source = by;
            }
        return judged(m, mean(e2e) <= 1_s);
    };
    CHECK(str(with(3, 64).reason) ==
          "server: 3 of 40 completed requests ended with the finish reason \"length\" before the "
          "length that was asked for, and none had more than 21 tokens with its prompt: its context "
          "is full, or it has a limit of its own");
    CHECK(with(3, 64).outcome == verdict::invalid);
    CHECK(with(2, 64).outcome == verdict::pass);
    CHECK(with(40, 11).outcome == verdict::pass);  // that was it
    CHECK(with(40, 0).outcome == verdict::pass);   // nothing was asked for
    CHECK(with(40, 64, token_origin::events).outcome == verdict::pass);  // events may bring several
}

TEST_CASE("answers of several models are told with their shares, and over 5 percent decide nothing") {
    const auto with = [](int others, const char* first = "") {
        measurement m = measured(repeats_with_ttft({80, 80}));
        int i = 0;
        for (repeat_data& d : m.candidate)
            for (record& r : d.records) r.model = i++ < 40 - others ? first : "small";
        return judged(m, mean(ttft) <= 100_ms);
    };
    CHECK(str(with(0).reason) == "");
    CHECK(str(with(40).reason) == "");  // an alias
    CHECK(with(16).outcome == verdict::invalid);
    CHECK(str(with(16).reason) ==
          "server: 16 of 40 completed requests name another model than the others (60 % the name "
          "asked for, 40 % \"small\"): a gateway falls back, or routes between several");
    CHECK(mentions(with(16, "large").reason, "(60 % \"large\", 40 % \"small\")"));
    CHECK(with(2).outcome == verdict::pass);
    CHECK(str(with(2).reason) == "2 of 40 completed requests name another model than the others "
                                 "(95 % the name asked for, 5 % \"small\")");
    // Parts of a mix may have their own.
    measurement m = measured(repeats_with_ttft({80, 80}));
    for (repeat_data& d : m.candidate) {
        d.labels = {"base", "sql"};
        for (std::size_t i = 0; i < d.records.size(); i += 2) {
            d.records[i].part = 1;
            d.records[i].model = "sql-lora";
        }
    }
    CHECK(str(judged(m, mean(ttft) <= 100_ms).reason) == "");
}

TEST_CASE("answers from a gateway's cache are told, and over 5 percent decide nothing") {
    const auto with = [](int cached) {
        measurement m = measured(repeats_with_ttft({80, 80}));
        int i = 0;
        for (repeat_data& d : m.candidate)
            for (record& r : d.records) r.from_cache = i++ < cached;
        return judged(m, mean(ttft) <= 100_ms);
    };
    CHECK(str(with(0).reason) == "");
    CHECK(with(2).outcome == verdict::pass);
    CHECK(str(with(2).reason) ==
          "2 of 40 completed requests came from a cache of answers, by their headers");
    CHECK(with(3).outcome == verdict::invalid);
    CHECK(mentions(with(28).reason, "server: 28 of 40 completed requests came from a cache"));
}

TEST_CASE("a number of tokens that is not known, or contradicts itself, decides nothing that needs it") {
    const auto outcome_of = [](auto&& change, const slo& s, int n) {
        measurement m = measured(repeats_with_ttft({80, 80}));
        for (repeat_data& d : m.candidate)
            for (int i = 0; i < n; ++i) change(d.records[static_cast<std::size_t>(i)]);
        return judged(m, s);
    };
    const auto no_usage = [](record& r) { r.token_source = token_origin::no_usage; };
    const auto too_long = [](record& r) { r.most_output_tokens = r.output_tokens / 2; };
    const auto too_few = [](record& r) {
        r.token_source = token_origin::usage;
        r.text_bytes = 1000;
        r.events = 2 * r.output_tokens;
        r.first_answer_ns = r.last_token_ns;
    };
    const auto check = [&](auto&& change, const char* why) {
        for (const slo& s : {mean(tpot) <= 20_ms, p50(decode_speed) >= 50_tps,
                             p50(normalized_latency) <= 1_s, output_throughput >= 1_tps,
                             goodput(tpot <= 1_s) >= 50_pct}) {
            CAPTURE(str(s.text()));
            const slo_verdict v = outcome_of(change, s, 2);  // over 5 % of each repeat's 20
            CHECK(v.outcome == verdict::invalid);
            CHECK(mentions(v.reason, why));
            CHECK_FALSE(mentions(outcome_of(change, s, 1).reason, "2 of 40"));
        }
        CHECK(outcome_of(change, mean(ttft) <= 100_ms, 20).outcome == verdict::pass);
        CHECK(outcome_of(change, goodput(ttft <= 1_s) >= 50_pct, 20).outcome == verdict::pass);
    };
    check(no_usage, "server: 4 of 40 completed requests have no usage, and an event may bring several "
                    "tokens or a part of one, so how many there were is not known; if each event is "
                    "one token, say options.events_are_tokens");
    check(too_long, "server: 4 of 40 completed requests have a number of tokens in usage that cannot be");
    check(too_few, "server: 4 of 40 completed requests have a number of tokens in usage that cannot be");
}

TEST_CASE("what the client lacked for one request, or for one in a hundred, is nobody's failure") {
    const auto outcome = [](int n) {
        measurement m = measured({steady_repeat(80, 200), steady_repeat(80, 200)});
        for (repeat_data& d : m.candidate) {
            for (int i = 0; i < n; ++i) {
                record& r = d.records[static_cast<std::size_t>(i)];
                r.status = request_status::connect;
                r.error = std::string(client_lacks).append("no descriptor").c_str();
            }
            note_exempt(d);
        }
        return judged(m, error_rate <= 5_pct);
    };
    CHECK(outcome(1).outcome == verdict::pass);
    CHECK(outcome(1).measured == 0);
    CHECK(outcome(2).outcome == verdict::pass);
    CHECK(outcome(3).outcome == verdict::invalid);
    CHECK(mentions(outcome(3).reason, "client: no descriptor (6 of 400 requests)"));
}

TEST_CASE("more cached tokens than prompt tokens are told, and are no share") {
    measurement m = measured(repeats_with_ttft({80, 80}));
    for (repeat_data& d : m.candidate) {
        share_tokens(d, 1000);
        for (record& r : d.records) {
            r.prompt_tokens = 100;
            r.cached_tokens = 108;
        }
    }
    const slo_verdict v = judged(m, cached_share >= 40_pct);
    CHECK(v.outcome == verdict::invalid);
    CHECK(mentions(v.reason, "its usage has 4320 cached tokens of 4000 prompt tokens, which cannot be"));
    CHECK(std::isnan(v.measured));
    CHECK_FALSE(mentions(judged(m, mean(ttft) <= 100_ms).reason, "108"));
    for (repeat_data& d : m.candidate) share_tokens(d, 0);
    CHECK(mentions(judged(m, mean(ttft) <= 100_ms).reason, "4320 cached tokens of 4000"));
}

// ---- answers that cannot have come as their numbers say ----------------------------------------

namespace {
/// Two repeats of 20 answers, of which so many are of the other kind.
template <class Odd>
measurement some_odd(int odd, Odd&& answer) {
    vector<request> all;
    for (int i = 0; i < 40; ++i)
        all.push_back(i < odd ? answer(100.0 * i) : answered(100.0 * i, 80));
    measurement m = measured({repeat_of({all.begin(), all.begin() + 20}),
                              repeat_of({all.begin() + 20, all.end()})});
    for (repeat_data& d : m.candidate) {
        d.window = time_interval::between(at_ms(0), at_ms(4000));
    }
    m.rule.trusts_prior = true;  // what is odd is all in the first repeat
    return m;
}
/// Reads of so many content events each, `gap_ms` apart, of one token each and of text that holds
/// them.
request read_in(double at, double wait_ms, double gap_ms, vector<int> reads) {
    request q(at);
    stream_event e;
    e.content = true;
    e.text_bytes = 5;
    int tokens = 0;
    double now = at + wait_ms;
    for (const int events : reads) {
        for (int i = 0; i < events; ++i) q.event(now, e);
        tokens += events;
        now += gap_ms;
    }
    return q.finish(now).usage(now, 10, tokens).done(now);
}
const slo of_decoding[] = {mean(tpot) <= 20_ms,
                           p50(itl) <= 20_ms,
                           p50(decode_speed) >= 40_tps,
                           decode_throughput >= 1_tps,
                           goodput(ttft <= 10_s && tpot <= 20_ms) >= 50_pct};
/// What three answers of 40 can decide that waited for 900 ms or longer.
const slo closer[] = {mean(tpot) <= 12_ms,
                      max(itl) <= 20_ms,
                      min(decode_speed) >= 50_tps,
                      decode_throughput >= 1_tps,
                      goodput(ttft <= 10_s && tpot <= 20_ms) >= 90_pct};
}  // namespace

TEST_CASE("whole answers handed over at once have no time per token") {
    const auto in_one_read = [](double at) { return read_in(at, 900, 0, {11}); };
    // As a proxy on the same machine, and one behind a network that takes a turn for each window.
    const auto nearly = [](double at) { return read_in(at, 3000, 0.05, {20, 20, 10}); };
    const auto over_network = [](double at) { return read_in(at, 6000, 15, {50, 78}); };
    const auto one_event = [](double at) {
        return request(at).content(at + 900).finish(at + 900).usage(at + 900, 10, 11).done(at + 900);
    };
    for (const slo& s : of_decoding) {
        CAPTURE(str(s.text()));
        CHECK(judged(some_odd(2, in_one_read), s).outcome == verdict::pass);
        CHECK(judged(some_odd(21, in_one_read), s).outcome == verdict::invalid);
    }
    for (const slo& s : closer) {
        CAPTURE(str(s.text()));
        CHECK(judged(some_odd(0, in_one_read), s).outcome == verdict::pass);
        CHECK(judged(some_odd(3, one_event), s).outcome == verdict::invalid);
        for (const slo_verdict& v : {judged(some_odd(3, in_one_read), s), judged(some_odd(3, nearly), s),
                                     judged(some_odd(3, over_network), s)}) {
            CHECK(v.outcome == verdict::invalid);
            CHECK(str(v.reason) == "the stream does not stream: 3 of 40 answers came in one piece, "
                                   "5 % may: the server, a proxy or a busy machine holds them back");
        }
    }
    for (const slo& s : {mean(e2e) <= 2_s, p50(ttft) <= 2_s, request_throughput >= 1_rps})
        CHECK(judged(some_odd(40, in_one_read), s).outcome == verdict::pass);
}

TEST_CASE("a verdict that holds in the worst case holds, whatever was buffered or read late") {
    // Whole answers of 32 tokens in 149 ms, as a client on busy cores read those of vLLM.
    const auto whole = [](double at) { return read_in(at, 149, 0, {32}); };
    const slo_verdict wide = judged(some_odd(40, whole), mean(tpot) <= 50_ms);
    CHECK(wide.outcome == verdict::pass);
    CHECK(wide.measured == about(0.149 / 31));
    CHECK(str(wide.reason) == "40 of 40 answers brought tokens together: it passes even if these took "
                              "all the time since the send, which is counted here");
    CHECK(judged(some_odd(40, whole), p50(itl) <= 150_ms).outcome == verdict::pass);
    CHECK(judged(some_odd(40, whole), goodput(tpot <= 50_ms) >= 90_pct).outcome == verdict::pass);
    CHECK(judged(some_odd(40, whole), mean(tpot) <= 4_ms).outcome == verdict::invalid);
    const slo_verdict few = judged(some_odd(4, whole), mean(tpot) <= 50_ms);
    CHECK(few.outcome == verdict::pass);
    CHECK(few.measured == about((36 * 0.010) / 40));

    // 768 tokens of 10 ms in events of 32, or one first and then 20 an event.
    const auto in_events = [](int first, int each) {
        return [=](double at) {
            request q(at);
            q.content(at + 100 + 10 * (first - 1));
            int n = first;
            while (n < 768) {
                n = std::min(n + each, 768);
                q.content(at + 100 + 10 * (n - 1));
            }
            return q.finish(at + 7770).usage(at + 7770, 10, 768).done(at + 7770);
        };
    };
    for (const auto& answer : {in_events(32, 32), in_events(16, 16), in_events(1, 20), in_events(64, 64)}) {
        measurement m = some_odd(40, answer);
        m.candidate.push_back(m.candidate[0]);  // three repeats can fail
        for (repeat_data& d : m.candidate)
            for (record& r : d.records) r.text_bytes = 4 * 768;
        CHECK(judged(m, mean(tpot) <= 12_ms).outcome == verdict::pass);
        CHECK(judged(m, mean(tpot) <= 8_ms).outcome == verdict::fail);
        CHECK(judged(m, p50(decode_speed) >= 80_tps).outcome == verdict::pass);
        CHECK(judged(m, p50(decode_speed) >= 130_tps).outcome == verdict::fail);
    }
    const slo_verdict near = judged(some_odd(40, in_events(64, 64)), mean(tpot) <= 9.5_ms);
    CHECK(near.outcome == verdict::invalid);
    CHECK(mentions(near.reason, "40 of 40 answers came in events of 64 tokens each"));
}

TEST_CASE("a comparison of streams that come in lumps holds where it does in the worst case of both") {
    const auto pairs_with = [](double mine_ms, double other_ms, const slo& s) {
        const auto answers = [](double ms) {
            vector<request> all;
            for (int i = 0; i < 20; ++i) all.push_back(read_in(2000.0 * i, 10 * ms, 10 * ms, {10, 10, 10, 10}));
            return repeat_of(all);
        };
        measurement m;
        for (int i = 0; i < 4; ++i) {
            m.candidate.push_back(answers(mine_ms));
            m.baseline.push_back(answers(other_ms));
        }
        return judged(m, s).outcome;
    };
    CHECK(pairs_with(10, 10, mean(tpot) <= 3 * baseline) == verdict::pass);
    CHECK(pairs_with(10, 10, mean(tpot) <= 1.1 * baseline) == verdict::invalid);
    CHECK(pairs_with(40, 10, mean(tpot) <= 1.1 * baseline) == verdict::fail);
    CHECK(pairs_with(12, 10, mean(tpot) <= 1.1 * baseline) == verdict::invalid);
}

TEST_CASE("a ratio withstands what its buffered part can hide as a ratio, not as a time") {
    const auto in_one_read = [](double at) { return read_in(at, 900, 0, {11}); };
    const auto ratio_with = [&](int odd, const slo& s) {
        measurement m = some_odd(odd, in_one_read);
        for (repeat_data& d : m.candidate) {
            d.labels = {"a", "b"};
            for (std::size_t i = 0; i < d.records.size(); ++i) d.records[i].part = i >= 10;
        }
        return judged(m, s);
    };
    const slo slower = mean(tpot).of("a") <= 1.5 * mean(tpot).of("b");
    CHECK(ratio_with(0, slower).outcome == verdict::pass);
    const slo_verdict v = ratio_with(2, slower);  // 10 ms a token, or 82 ms where it was buffered
    CHECK(v.outcome == verdict::invalid);
    CHECK(mentions(v.reason, "the stream does not stream: 2 of 20 answers"));
    CHECK(ratio_with(2, mean(tpot).of("a") <= 100 * mean(tpot).of("b")).outcome == verdict::pass);
}

TEST_CASE("an answer that begins with many tokens at once hides how long those took") {
    // 8 KiB of events, every 400 ms.
    const auto buffered = [](double at) { return read_in(at, 480, 400, {40, 40, 40, 8}); };
    for (const slo& s : {mean(tpot) <= 12_ms, p50(itl) <= 20_ms, p50(decode_speed) >= 90_tps,
                         decode_throughput >= 1_tps, goodput(tpot <= 12_ms) >= 50_pct}) {
        CAPTURE(str(s.text()));
        const slo_verdict v = judged(some_odd(40, buffered), s);
        CHECK(v.outcome == verdict::invalid);
        CHECK(str(v.reason) == "the stream does not stream: 40 of 40 answers began with over 5 % of "
                               "their tokens at once, 5 % may: the server, a proxy or a busy "
                               "machine holds them back");
    }
    // Seven of 128 in the first read are over 5 %; six are not, and their time is told by the rest.
    vector<int> seven{8}, six{7};
    for (int i = 0; i < 120; ++i) { seven.push_back(1); six.push_back(1); }
    const auto with = [](vector<int> reads) {
        return some_odd(40, [=](double at) { return read_in(at, 100, 10, reads); });
    };
    const slo close = goodput(tpot <= 10_ms) >= 50_pct;
    CHECK(judged(with(seven), close).outcome == verdict::invalid);
    CHECK(judged(with(six), close).outcome == verdict::pass);
    CHECK(judged(with(seven), mean(tpot) <= 20_ms).outcome == verdict::pass);  // 10.2 ms at most
}

namespace {
/// Two repeats of 40 answers of eight tokens, 2 ms apart, of which four begin together every 100 ms;
/// at so many of those moments this many of the four brought six tokens in their first read, and the
/// others a while after it.
measurement coalesced_at(int moments, int of_four, double wait_ms = 60, double gap_ms = 10) {
    vector<request> repeats[2];
    for (int i = 0; i < 80; ++i) {
        const double at = 100.0 * (i / 4);
        const bool is_lumped = i / 4 < moments && i % 4 < of_four;
        repeats[i / 40].push_back(is_lumped ? read_in(at, wait_ms, gap_ms, {6, 1, 1})
                                            : read_in(at, 5, 2, {1, 1, 1, 1, 1, 1, 1, 1}));
    }
    return measured({repeat_of(repeats[0]), repeat_of(repeats[1])});
}
}  // namespace

TEST_CASE("a pass far inside its limit stands, whatever a lump in one of its repeats can hide") {
    // 20 ms for the last two tokens, and up to 50 ms before those: 7 ms a token more for a fifth
    // of the answers of one repeat, which makes two repeats spread so that nothing is shown.
    const measurement m = coalesced_at(8, 1);
    for (const slo& s : {mean(tpot) <= 1_s, mean(tpot) <= 10_ms, mean(decode_speed) >= 2_tps})
        CHECK(judged(m, s).outcome == verdict::pass);
    CHECK(str(judged(m, mean(tpot) <= 5_ms).reason) ==
          "the stream does not stream: 8 of 80 answers began with over 5 % of their tokens at once, "
          "5 % may: the server, a proxy or a busy machine holds them back");
    // Where most answers lump their pace is worth nothing: 11.4 ms at most.
    CHECK(judged(coalesced_at(20, 4), mean(tpot) <= 10_ms).outcome == verdict::invalid);
    CHECK(judged(coalesced_at(20, 4), mean(tpot) <= 1_s).outcome == verdict::pass);
}

TEST_CASE("what began in lumps at a moment or two is a machine that stood still, and no habit") {
    const slo close = goodput(tpot <= 5_ms) >= 90_pct;  // which no tenth of the answers may miss
    CHECK(judged(coalesced_at(0, 0), close).outcome == verdict::pass);
    CHECK(judged(coalesced_at(2, 4), close).outcome == verdict::pass);
    CHECK(judged(coalesced_at(3, 4), close).outcome == verdict::invalid);
    CHECK(judged(coalesced_at(8, 1), close).outcome == verdict::invalid);
}

TEST_CASE("an event of more tokens than a step brings may be a lump, too") {
    const auto of = [](int tokens) {
        return some_odd(40, [=](double at) {
            request q(at);
            for (int i = 0; i < 5; ++i) q.content(at + 80 + 10 * i);
            return q.finish(at + 120).usage(at + 120, 10, tokens).done(at + 120);
        });
    };
    CHECK(judged(of(65), mean(tpot) <= 1_ms).outcome == verdict::pass);  // 16 an event
    CHECK(mentions(judged(of(66), mean(tpot) <= 1_ms).reason,
                   "40 of 40 answers came in events of 13.2 tokens each"));
}

TEST_CASE("a server whose tokens are as fast as the client's reads is not buffered") {
    // 0.1 ms a token, read one to four at a time.
    const auto fast = [](double at) { return read_in(at, 5, 0.2, {2, 1, 3, 1, 4, 1, 2, 2}); };
    const auto waiting = [](double at) { return read_in(at, 60, 0.2, {2, 1, 3, 1, 4, 1, 2, 2}); };
    for (const slo& s : of_decoding) {
        CAPTURE(str(s.text()));
        CHECK(judged(some_odd(40, fast), s).outcome == verdict::pass);
        CHECK(judged(some_odd(40, waiting), s).outcome == verdict::pass);
    }
    // Nor where a busy machine has some of them read in one piece: 12 tokens are 1.2 ms. A quarter
    // may, or as many as 5 % where a whole answer hides over 10 ms.
    const auto some_at_once = [](int odd, int tokens) {
        vector<request> all;
        for (int i = 0; i < 40; ++i)
            all.push_back(i < odd ? read_in(100.0 * i, 3000, 0, {tokens})
                                  : read_in(100.0 * i, 5, 0.1, vector<int>(
                                                static_cast<std::size_t>(tokens), 1)));
        measurement m = measured({repeat_of(all), repeat_of(all)});
        return judged(m, goodput(itl <= 20_ms && tpot <= 20_ms) >= 90_pct);
    };
    CHECK(some_at_once(10, 12).outcome == verdict::pass);
    CHECK(some_at_once(11, 12).outcome == verdict::invalid);
    CHECK(some_at_once(2, 128).outcome == verdict::pass);
    CHECK(some_at_once(3, 128).outcome == verdict::invalid);
    // Lumps within the client's own turns are nobody's holding back; a tpot of 0 is none, though.
    const auto at_once = [](double wait, vector<int> reads) {
        const auto answer = [=](double at) { return read_in(at, wait, 0.1, reads); };
        return judged(some_odd(40, answer), goodput(ttft <= 1_s && tpot <= 90_us) >= 50_pct);
    };
    CHECK(at_once(9, {6, 5}).outcome == verdict::pass);
    CHECK(at_once(11, {6, 5}).outcome == verdict::invalid);
    CHECK(at_once(1, {11}).outcome == verdict::invalid);
    CHECK(at_once(0.8, {11}).outcome == verdict::pass);  // 80 us at most
}

TEST_CASE("events that are read together have no gaps of their own") {
    const auto in_twos = [](double at) { return read_in(at, 80, 40, {1, 2, 2, 2, 2, 2}); };
    const auto pass = verdict::pass;
    CHECK(judged(some_odd(4, in_twos), p75(itl) <= 15_ms).outcome == pass);  // 20 of 440
    // Of every third, gaps of 40 ms are 70 of 400 as measured, and may have been 140 of 20 ms.
    vector<request> all;
    for (int i = 0; i < 40; ++i)
        all.push_back(i % 3 == 0 ? in_twos(100.0 * i) : answered(100.0 * i, 80));
    const measurement m = measured({repeat_of({all.begin(), all.begin() + 20}),
                                    repeat_of({all.begin() + 20, all.end()})});
    const slo_verdict v = judged(m, p75(itl) <= 15_ms);
    CHECK(v.outcome == verdict::invalid);
    CHECK(str(v.reason) == "the stream comes in lumps: 15.9 % of the content events were read "
                           "together with an earlier one, 5 % may: the server, a proxy or a busy "
                           "machine holds them back");
    CHECK(judged(m, p75(itl) <= 25_ms).outcome == pass);
    CHECK(judged(some_odd(40, in_twos), p50(itl) <= 41_ms).outcome == pass);
    const auto in_fours = [](double at) { return read_in(at, 80, 20, {1, 4, 4, 2}); };
    CHECK(judged(some_odd(40, in_fours), p50(itl) <= 5_ms).outcome == verdict::invalid);
    CHECK(judged(some_odd(40, in_fours), p50(itl) <= 1_s).outcome == pass);
    CHECK(judged(some_odd(40, in_twos), mean(tpot) <= 40_ms).outcome == pass);
}

TEST_CASE("a client that was late explains no more than it may have read together itself") {
    // The first read of each answer has tokens that came up to so much earlier.
    const auto early_by = [](double ms, double wait_ms, vector<int> reads) {
        vector<request> all;
        for (int i = 0; i < 20; ++i) all.push_back(read_in(2000.0 * i, wait_ms, 20, reads));
        measurement m = measured({repeat_of(all), repeat_of(all)});
        for (repeat_data& d : m.candidate)
            for (record& r : d.records) r.first_early_ns = static_cast<long long>(ms * 1e6);
        return slo_invalid_reason(m, mean(tpot) <= 20_ms);
    };
    const std::string unclear =
        "client: it was late and read the first tokens of 40 of 40 answers together";
    // In one piece, 900 ms after the send: its tokens did not come in the last 80 ms.
    CHECK(early_by(80, 900, {11}).find("the stream does not stream: 40 of 40") == 0);
    CHECK(early_by(100, 900, {11}) == unclear);  // either may have gathered them
    // Ten of 40 tokens at first, 20 ms each: 200 ms are hidden, less than half of it from the client.
    vector<int> one_burst{11};
    for (int i = 0; i < 29; ++i) one_burst.push_back(1);
    CHECK(early_by(80, 300, one_burst).find("the stream does not stream: 40 of 40") == 0);
    CHECK(early_by(110, 300, one_burst) == unclear);
    // Where they are few, a pass must hold if the server gathered them: 200 ms more of 880 ms.
    const auto few = [&](const slo& s) {
        measurement m = some_odd(4, [&](double at) { return read_in(at, 300, 20, one_burst); });
        for (repeat_data& d : m.candidate)
            for (record& r : d.records)
                if (begins_in_a_burst(r)) r.first_early_ns = 101'000'000;
        return judged(m, s);
    };
    CHECK(few(mean(tpot) <= 20_ms).outcome == verdict::pass);
    CHECK(mentions(few(mean(tpot) <= 12_ms).reason,
                   "client: it was late and read the first tokens of 4 of 40 answers together"));
}

TEST_CASE("a stream that is buffered is the arm's whose it is") {
    const auto in_one_read = [](double at) { return read_in(at, 900, 0, {11}); };
    measurement m;
    for (const measurement& pairs : {some_odd(0, in_one_read), some_odd(0, in_one_read)})
        m.candidate.insert(m.candidate.end(), pairs.candidate.begin(), pairs.candidate.end());
    for (const measurement& pairs : {some_odd(40, in_one_read), some_odd(40, in_one_read)})
        m.baseline.insert(m.baseline.end(), pairs.candidate.begin(), pairs.candidate.end());
    CHECK(mentions(judged(m, mean(tpot) <= 1.1 * baseline).reason,
                   "baseline: the stream does not stream: 80 of 80 answers"));
    CHECK(judged(m, mean(tpot) <= 20_ms).outcome == verdict::pass);
}

TEST_CASE("usage of more tokens than the text can be decides nothing") {
    // Ten words of five bytes: 50 tokens at most, and 16 that no text shows.
    const auto with = [](int odd, int tokens, const slo& s) {
        measurement m = some_odd(odd, [](double at) { return read_in(at, 80, 10, vector<int>(10, 1)); });
        for (repeat_data& d : m.candidate)
            for (record& r : d.records)
                if (odd-- > 0) r.output_tokens = tokens;
        return judged(m, s);
    };
    CHECK(with(40, 66, mean(tpot) <= 20_ms).outcome == verdict::pass);
    CHECK(with(2, 100, mean(tpot) <= 20_ms).outcome == verdict::pass);
    CHECK(invalid_by(with(3, 67, mean(tpot) <= 20_ms)) == "wrong_usage 3 of 40");
    CHECK(with(40, 100, mean(ttft) <= 100_ms).outcome == verdict::pass);
}

// ---- prompts that a cache had seen -------------------------------------------------------------

TEST_CASE("more cached tokens than the workload shares are prompts that were seen before") {
    // 40 prompts of 1000 tokens, of which 100 each are shared: up to 166 may have been cached.
    const auto cached = [](int tokens, int shared = 100) {
        measurement m = measured(repeats_with_ttft({80, 80}));
        for (repeat_data& d : m.candidate) {
            share_tokens(d, shared);
            for (record& r : d.records) {
                r.prompt_tokens = 1000;
                r.cached_tokens = tokens;
            }
        }
        return m;
    };
    for (const slo& s : {mean(ttft) <= 100_ms, p50(e2e) <= 1_s, mean(tpot) <= 20_ms,
                         goodput(ttft <= 1_s) >= 50_pct, p50(prefill_speed) >= 1_tps}) {
        CAPTURE(str(s.text()));
        CHECK(judged(cached(0), s).outcome == verdict::pass);
        CHECK(judged(cached(166), s).outcome == verdict::pass);
        CHECK(judged(cached(167), s).outcome == verdict::invalid);
        CHECK(str(judged(cached(830), s).reason) ==
              "server: 83 % of the prompt tokens came from its prefix cache, the workload shares at "
              "most 10 %: the prompts were seen before");
    }
    CHECK(judged(cached(830), error_rate <= 50_pct).outcome == verdict::pass);
    // All of a prompt that is sent again and again; a file that does not tell what is shared; a
    // server that does not tell what was cached.
    CHECK(judged(cached(1000, 1000), mean(ttft) <= 100_ms).outcome == verdict::pass);
    CHECK(judged(cached(830, -1), mean(ttft) <= 100_ms).outcome == verdict::pass);
    CHECK(judged(cached(-1), mean(ttft) <= 100_ms).outcome == verdict::pass);
    // One arm whose prompts were seen is no comparison.
    measurement pairs = pairs_with_ratio({1, 1, 1, 1});
    for (repeat_data& d : pairs.baseline) {
        share_tokens(d, 0);
        for (record& r : d.records) r.prompt_tokens = r.cached_tokens = 1000;
    }
    CHECK(mentions(judged(pairs, mean(ttft) <= 1.1 * baseline).reason,
                   "baseline server: 100 % of the prompt tokens came from its prefix cache"));
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
        for (repeat_data& d : m.baseline) force_lengths(d, 20, 64);
    });
    CHECK(shorter.find("baseline server: 80 of 80") == 0);
}

TEST_CASE("tokens per second of arms whose workloads differ in tokens are not compared") {
    const auto variant = [](int prompt, int output) {
        repeat_data d = stage_of_ttft(vector<double>(40, 100));
        for (record& r : d.records) {
            r.prompt_tokens = prompt;
            r.output_tokens = output;
            d.window = time_interval::between(d.records.front().scheduled_ns, r.end_ns + 1);
        }
        return vector<repeat_data>(4, d);
    };
    measurement m = measured(variant(350, 100));
    const auto with = [&](int prompt, int output, bool is_other, const slo& s) {
        m.baseline = variant(prompt, output);
        m.other_workload = is_other;
        return judged(m, s);
    };
    const slo of_outputs = output_throughput >= 0.1 * baseline;
    const slo of_prompts = prefill_throughput >= 0.1 * baseline;
    const slo_verdict v = with(350, 106, true, of_outputs);
    CHECK(v.outcome == verdict::invalid);
    CHECK(mentions(v.reason, "differ by over 5 % in their tokens, 100 of an answer and with the "
                             "baseline 106: tokens per second are not compared"));
    CHECK(with(350, 105, true, of_outputs).outcome == verdict::pass);
    CHECK(with(350, 106, false, of_outputs).outcome == verdict::pass);
    CHECK(with(350, 106, true, of_prompts).outcome == verdict::pass);
    CHECK(mentions(with(100, 100, true, of_prompts).reason, "350 of a prompt"));
    CHECK(with(100, 100, true, of_outputs).outcome == verdict::pass);
    CHECK(mentions(with(100, 100, true, total_throughput >= 0.1 * baseline).reason, "prompt"));
    CHECK(with(100, 50, true, mean(ttft) <= 1.5 * baseline).outcome == verdict::pass);
    CHECK(with(100, 50, true, request_throughput >= 0.5 * baseline).outcome == verdict::pass);
}

TEST_CASE("a mean of sessions does not pass over those that fail, as no percentile does") {
    // 24 sessions of ten steps: one failed request in 240 fails a session, ten of them half.
    const auto failing = [](std::size_t sessions) {
        vector<request> requests;
        for (int i = 0; i < 240; ++i) requests.push_back(answered(100.0 * i, 80, 10, 10));
        repeat_data d = repeat_of(requests);
        d.plays_out = true;
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            d.records[i].conversation = static_cast<long long>(i / 10);
            d.records[i].turn = static_cast<int>(i % 10);
            if (i % 10 == 3 && i / 10 < sessions) d.records[i].status = request_status::server;
        }
        return vector<repeat_data>(4, d);
    };
    const slo mean_time = mean(session_time) <= 10_s, errors = advisory(error_rate <= 5_pct);
    CHECK(judge_all(measured(failing(0), {mean_time, errors}))[0].outcome == verdict::pass);
    CHECK(judge_all(measured(failing(1), {mean_time, errors}))[0].outcome == verdict::pass);
    CHECK(judge_all(measured(failing(12), {mean_time, errors}))[0].outcome == verdict::fail);
    CHECK(judge_all(measured(failing(12), {p75(session_time) <= 10_s, errors}))[0].outcome != verdict::pass);
}

TEST_CASE("sessions that the client's own limit ends are no errors of the server") {
    // A step each second, of sessions of four steps; of the last one two are cut off or never sent.
    const auto cut = [](bool plays_out, std::size_t failed_as_well = 0) {
        vector<request> requests;
        for (int i = 0; i < 48; ++i) requests.push_back(answered(1000.0 * i, 80, 10, 10));
        repeat_data d = repeat_of(requests);
        d.plays_out = plays_out;
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            d.records[i].conversation = static_cast<long long>(i / 4);
            const bool is_cut = i >= 46;
            if (!is_cut && i >= failed_as_well) continue;
            d.records[i].status = is_cut ? i == 46 ? request_status::cancelled : request_status::unsent
                                         : request_status::server;
            d.records[i].error = is_cut ? "cut off 10 min after the last session began (limits.drain)"
                                        : "broken";
        }
        return d;
    };
    const slo limit = p90(session_time) <= 10_s, errors = error_rate <= 1_pct;
    const vector<repeat_data> three(3, cut(true));
    const auto v = judge_all(measured(three, {max(session_time) <= 10_s, advisory(limit), errors, p50(ttft) <= 1_s}));
    CHECK(v[0].outcome == verdict::invalid);
    CHECK(str(v[0].reason) ==
          "client: 6 requests had not ended when their run did (cut off 10 min after the last session "
          "began (limits.drain)), and the verdict depends on them: let a run end by a number of "
          "requests; give limits.drain the time that a session takes");
    CHECK(v[2].outcome != verdict::fail);
    CHECK(v[2].estimate.value == 0);
    CHECK(v[3].outcome == verdict::pass);
    CHECK(judge_all(measured(three, {advisory(limit)})).back().outcome == verdict::pass);  // the guard
    // Where over 5 % are unanswered, nothing says that the server fails none of them.
    vector<repeat_data> many = three;
    for (repeat_data& d : many)
        for (std::size_t i = 40; i < 46; ++i) {
            d.records[i].status = request_status::cancelled;
            d.records[i].error = d.records[46].error;
        }
    CHECK(judge_all(measured(many, {advisory(limit)})).back().outcome == verdict::invalid);
    // What the server fails, and what a load without sessions leaves unanswered, counts.
    const vector<repeat_data> failing(3, cut(true, 8)), plain(3, cut(false));
    CHECK(judge_all(measured(failing, {errors}))[0].outcome == verdict::fail);
    CHECK(judge_all(measured(plain, {errors}))[0].outcome != verdict::pass);
}

// ---- metrics of users ----------------------------------------------------------------------------

namespace {
// No value where the answer took over a second.
const metric silent_if_slow = of_request("silent_if_slow", in_seconds, [](const request_view& r) {
    if (r[e2e] > 1) throw r[e2e];
    return r[e2e];
});
const metric speed_or_none = of_request("speed_or_none", more_is_better, [](const request_view& r) {
    return r[e2e] > 1 ? std::nan("") : 1 / r[e2e];
});
const metric pace_of_agents = of_request("pace_of_agents", in_seconds, [](const request_view& r) {
    return r.label()[0] == 'a' ? r[tpot] : r[ttft];
});
measurement with_slow(int slow, int of = 400) {
    vector<request> requests;
    for (int i = 0; i < of; ++i)
        requests.push_back(answered(100.0 * i, 80, 10, i * slow / of != (i + 1) * slow / of ? 201 : 21));
    return measured({repeat_of(requests), repeat_of(requests), repeat_of(requests), repeat_of(requests)});
}
}  // namespace

TEST_CASE("requests that a user's function has no value of are the worst ones in what they could decide") {
    const slo all[] = {max(silent_if_slow) <= 1_s, p999(silent_if_slow) <= 1_s, p50(silent_if_slow) <= 1_s,
                       goodput(silent_if_slow <= 1_s) >= 99.9_pct, goodput(silent_if_slow <= 1_s) >= 90_pct,
                       min(speed_or_none) >= 0.5, p50(speed_or_none) >= 0.5, mean(silent_if_slow) <= 1_s};
    const auto outcomes = [&](const measurement& m) {
        std::string text;
        for (const slo& s : all) text += std::string(to_string(judged(m, s).outcome)) + " ";
        return text;
    };
    CHECK(outcomes(with_slow(0, 4000)) == "pass pass pass pass pass pass pass pass ");
    // 0.5 % of the requests: in none of the medians.
    CHECK(outcomes(with_slow(20, 4000)) == "invalid invalid pass invalid pass invalid pass pass ");
    CHECK(str(judged(with_slow(20, 4000), max(silent_if_slow) <= 1_s).reason) ==
          "server: 80 of 16000 completed requests have no value of the function, which silent_if_slow needs");
    // 4 %: the function says too little.
    CHECK(outcomes(with_slow(160, 4000)) ==
          "invalid invalid invalid invalid invalid invalid invalid invalid ");
    // Those of the baseline may have been the best ones, which no maximum depends on.
    measurement pairs = with_slow(0);
    pairs.baseline = with_slow(2).candidate;
    CHECK(judged(pairs, p50(silent_if_slow) <= 1.1 * baseline).outcome == verdict::pass);
    CHECK(judged(pairs, max(silent_if_slow) <= 1.1 * baseline).outcome == verdict::pass);
    std::swap(pairs.baseline, pairs.candidate);
    CHECK(judged(pairs, max(silent_if_slow) <= 1.1 * baseline).outcome == verdict::invalid);
}

TEST_CASE("what a user's function reads of some requests alone is checked as all else") {
    measurement m = measured(repeats_with_ttft({80, 80}));
    CHECK(judged(m, p50(pace_of_agents) <= 1_s).outcome == verdict::pass);
    for (repeat_data& d : m.candidate) {
        d.labels = {"agents"};
        for (record& r : d.records) r.token_source = token_origin::events;
    }
    m.candidate[0].records[0].output_tokens = 5;
    const slo_verdict v = judged(m, p50(pace_of_agents) <= 1_s);
    CHECK(v.outcome == judged(m, p50(tpot) <= 1_s).outcome);
    CHECK(str(v.reason) == str(judged(m, p50(tpot) <= 1_s).reason));
}
