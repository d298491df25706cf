// SLOs from their texts: what is printed is read as the same SLO, what cannot be read says where.
#include "llmbench.hpp"
#include "program/slo_text.hpp"
#include "extensions/capacity/api.hpp"
#include "extensions/answers/api.hpp"
#include "extensions/work/api.hpp"
#include "extensions/work/core/objective.hpp"

#include <cstddef>
#include <stdexcept>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

bool same(const slo& a, const slo& b) {
    bool steps = a.statistic.where.size() == b.statistic.where.size();
    for (std::size_t i = 0; steps && i < a.statistic.where.size(); ++i) {
        const predicate_step &x = a.statistic.where[i], &y = b.statistic.where[i];
        steps = x.op == y.op && x.metric == y.metric && x.at_most == y.at_most &&
                x.bound == doctest::Approx(y.bound).epsilon(1e-6);
    }
    return steps && a.statistic.kind == b.statistic.kind &&
           a.statistic.metric == b.statistic.metric &&
           a.statistic.q == doctest::Approx(b.statistic.q).epsilon(1e-6) &&
           a.statistic.gauge == b.statistic.gauge && a.at_most == b.at_most &&
           a.bound == doctest::Approx(b.bound).epsilon(1e-6) &&
           a.factor == doctest::Approx(b.factor).epsilon(1e-6) &&
           a.offset == doctest::Approx(b.offset).epsilon(1e-6) && a.is_advisory == b.is_advisory &&
           a.statistic.name == b.statistic.name &&
           selection_text(a.statistic.which) == selection_text(b.statistic.which);
}
std::string refusal(const std::string& text) {
    try {
        parse_slo(text);
    } catch (const std::invalid_argument& e) { return e.what(); }
    return "";
}

}  // namespace

TEST_CASE("every SLO that can be written is read from its text") {
    vector<slo> all = {
        p50(ttft) <= 300_ms, p75(tpot) <= 30_ms, p90(itl) <= 1.5_s, p95(e2e) <= 2_min,
        p99(normalized_latency) <= 0.25_ms, p999(ttft_from_send) <= 0.123456_s,
        percentile(ttft_per_prompt_token, 0.93) <= 1_ms, percentile(ttft, 0.9375) <= 1_s,
        percentile(ttft, 0.005) <= 1_s, mean(first_turn_ttft) <= 1_s, max(later_turn_ttft) <= 1_s,
        p90(time_to_first_answer) <= 5_s, p95(second_token_gap) <= 80_ms,
        mean(tokens_per_event) >= 1.8, p5(tokens_per_event) >= 0.9 * baseline,
        goodput(time_to_first_answer <= 5_s && tokens_per_event >= 1.5) >= 90_pct,
        p1(decode_speed) >= 20_tps, p5(prefill_speed) >= 2000_tps, p10(decode_speed) >= 1.5_tps,
        min(decode_speed) >= 3_tps, mean(prefill_speed) >= 1e6_tps,
        output_throughput >= 400_tps, total_throughput >= 1_tps, prefill_throughput >= 20000_tps,
        decode_throughput >= 12345.6_tps, request_throughput >= 8_rps, error_rate <= 0.5_pct,
        startup_time <= 30_s, first_answer_time <= 2_min, of(recovery_time, during("kill")) <= 30_s, mean(queue_time) <= 50_ms, mean(server_prefill_time) <= 1_s,
        mean(server_decode_time) <= 1_s, max(queued_requests) <= 8, mean(running_requests) >= 2,
        max(running_requests) <= 9.5, max(kv_cache_usage) <= 95_pct, preemptions <= 0,
        prefix_cache_hits >= 60_pct, acceptance_length >= 2.2, energy_per_token <= 0.6_J,
        cost_per_million_tokens <= 0.4_usd, cost_per_million_tokens <= 1.05 * baseline,
        cached_tokens == expected, cached_tokens >= 0.98 * expected, prefilled_tokens <= 2'200,
        generated_tokens <= baseline, server_requests == 1.05 * baseline, engine_steps <= 12,
        drafted_tokens >= 1, accepted_tokens == expected, preemptions == 0,
        llmbench::counted("x:y_total{m=\"a <= b\"}") == 0, advisory(cached_tokens == 3),
        capacity >= 12_rps, capacity >= 32_users,
        max(server_metric("vllm:num_requests_waiting{model_name=\"m\"}")) <= 8,
        mean(server_metric("up")) >= -1.5, p90(queued_requests) <= 8, p50(running_requests) >= 2,
        p95(kv_cache_usage) <= 90_pct, percentile(running_requests, 0.125) >= 1,
        p95(server_metric("up{a=\"b\"}")) <= 1, percentile(server_metric("up"), 0.995) <= 1,
        goodput(ttft <= 300_ms) >= 90_pct,
        goodput(ttft <= 300_ms && tpot <= 30_ms) >= 99.5_pct,
        goodput((ttft <= 300_ms || e2e <= 2_s) && decode_speed >= 20_tps) >= 90_pct,
        goodput(ttft <= 300_ms || (e2e <= 2_s && itl <= 1_s)) >= 90_pct,
        goodput((ttft <= 1_s || e2e <= 2_s) || tpot <= 1_ms) >= 1_pct,
        p90(ttft).of("sql") <= 1_s, mean(itl).of(turns(2)) <= 1_s, of(error_rate, "a b") <= 1_pct,
        p50(e2e).of(label("chat") && turns(1, 3) && depth(0) && during("reload")) <= 1_s,
        p90(first_turn_ttft).of("chat") <= 1_s, goodput(e2e <= 1_s).of(depth(2)) >= 90_pct,
        of(cached_share, turns(2)) >= 85_pct, of(output_throughput, during("x")) >= 1_tps,
        p90(session_time) <= 60_s, mean(session_time) <= 60_s, max(session_time).of("a") <= 60_s,
        accuracy >= 93_pct, same_answers >= 99_pct,
        drift(p90(ttft).of("sql")) <= 110_pct, drift(p90(ttft)).of("sql") <= 110_pct,
        p90(ttft).of("sql") <= 1.25 * p90(ttft).of("base"),
        of(output_throughput, "a") >= 0.5 * of(output_throughput, "b"),
        advisory(mean(tpot).of(turns(2)) <= 2 * mean(tpot).of(turns(1, 1))),
        p90(ttft).of("sql") <= 1.25 * baseline, advisory(p90(ttft).of("sql") <= 1_s),
        mean(tpot) <= 1.10 * baseline, p50(ttft) <= baseline, p90(e2e) <= 110_pct * baseline,
        advisory(p99(ttft) <= 450_ms), advisory(mean(e2e) <= 1.5 * baseline),
        mean(ttft) <= baseline + 1_ms, p99(itl) <= baseline + 200_us,
        mean(tpot) <= 1.05 * baseline + 0.5_ms, output_throughput >= baseline - 10_tps,
        accuracy >= baseline - 1_pct, advisory(max(queued_requests) <= baseline + 2)};
    for (const auto* preset : {&presets::mlperf_llama2_70b_server, &presets::chat})
        for (const slo& s : preset->slos()) all.push_back(s);
    for (const slo& s : all) {
        const std::string text = str(s.text());
        CAPTURE(text);
        const slo read = parse_slo(text);
        CHECK(same(read, s));
        CHECK(str(read.text()) == text);
    }
}

TEST_CASE("an exception ends on a day, in quotes or without") {
    for (const char* text : {"advisory(p99(ttft) <= 450 ms).until(2026-12-31)",
                             "advisory(p99(ttft) <= 450 ms) .until(\"2026-12-31\")"})
        CHECK(str(parse_slo(text).advisory_until) == "2026-12-31");
    CHECK(parse_slo("advisory(p99(ttft) <= 450 ms).until(2026-12-31)").is_advisory);
}

TEST_CASE("units are written as in C++, or in words") {
    for (const char* text : {"p90(ttft) <= 300 ms", "p90(ttft)<=300ms", "p90(ttft) <= 300_ms",
                             " p90( ttft )  <=  0.3 s ", "p90 (ttft) <= 0.3 s", "p90(ttft) <= 0.005 min"})
        CHECK(same(parse_slo(text), p90(ttft) <= 300_ms));
    CHECK(same(parse_slo("error_rate <= 1_pct"), error_rate <= 1_pct));
    CHECK(same(parse_slo("output_throughput >= 400 tps"), output_throughput >= 400_tps));
    CHECK(same(parse_slo("capacity >= 12_rps"), capacity >= 12_rps));
    CHECK(same(parse_slo("capacity >= 32users"), capacity >= 32_users));
    CHECK(same(parse_slo("p90(ttft) <= baseline"), p90(ttft) <= baseline));
    CHECK(same(parse_slo("p99(itl)<=baseline+200us"), p99(itl) <= baseline + 200_us));
    CHECK(same(parse_slo("mean(ttft) <= 1.05 * baseline + 1_ms"),
               mean(ttft) <= 1.05 * baseline + 1_ms));
    CHECK(same(parse_slo("p90(ttft).of(\"sql\") <= 300_ms"), p90(ttft).of("sql") <= 300_ms));
    CHECK(same(parse_slo("of(error_rate, \"sql\") <= 1_pct"), of(error_rate, "sql") <= 1_pct));
    CHECK(same(parse_slo("p90(ttft).of(label(\"chat\") && turns(2)) <= 1 s"),
               p90(ttft).of(label("chat") && turns(2)) <= 1_s));
}

TEST_CASE("a selection of a selection has what both have") {
    CHECK(str(p90(ttft).of("sql").data.name) == "p90(ttft) of \"sql\"");
    CHECK(str(p90(ttft).of("sql").of(turns(2)).data.name) == "p90(ttft) of \"sql\" && turns(2)");
    CHECK(selection_text(turns(2, 5) && turns(4)) == "turns(4, 5)");
    CHECK(selection_text(turns(3) && turns(1, 8)) == "turns(3, 8)");
    CHECK(selection_text(depth(1) && depth(1) && label("a") && label("a")) == "\"a\" && depth(1)");
    CHECK(selection_text(turns(1)).empty());
    CHECK(str(p90(first_turn_ttft).data.name) == "p90(first_turn_ttft)");
    CHECK(selection_text(p90(first_turn_ttft).data.which) == "turns(1, 1)");
    CHECK(selection_text(p90(later_turn_ttft).data.which) == "turns(2)");
}

TEST_CASE("what cannot be read says where, and what is expected there") {
    const auto says = [](const std::string& text, const std::string& from,
                         const std::string& expected) {
        const std::string why = refusal(text);
        CAPTURE(why);
        return why.find("\"" + text + "\" cannot be read from character " + from) !=
                   std::string::npos &&
               why.find(expected) != std::string::npos;
    };
    CHECK(says("", "1 on (\"\")", "a metric (ttft, tpot, itl"));
    CHECK(says("p90(tft) <= 300 ms", "5 on (\"tft) <= 300 ms\")", "a metric is expected there; is ttft meant?"));
    CHECK(says("eror_rate <= 1 %", "1 on", "is error_rate meant?"));
    // Words of other tools.
    CHECK(says("p95_ttft <= 300 ms", "1 on", "is p95(ttft) meant?"));
    CHECK(says("ttft_p95 <= 300 ms", "1 on", "is p95(ttft) meant?"));
    CHECK(says("mean_tpot_ms <= 30 ms", "1 on", "is mean(tpot) meant?"));
    CHECK(says("P90(TTFT) <= 300 ms", "1 on", "is p90 meant?"));
    CHECK(says("p90(TTFT) <= 300 ms", "5 on", "is ttft meant?"));
    CHECK(says("median(ttft) <= 300 ms", "1 on", "is p50 meant?"));
    CHECK(says("avg(ttft) <= 300 ms", "1 on", "is mean meant?"));
    CHECK(says("throughput >= 400 tok/s", "1 on", "is output_throughput meant?"));
    CHECK(says("p99(latency) <= 3 s", "5 on", "is e2e meant?"));
    CHECK(says("p90(time) <= 300 ms", "5 on", "a metric (ttft, tpot"));
    CHECK(says("q90(ttft) <= 300 ms", "1 on", "mean, max, min, p1 to p99, p999"));
    CHECK(says("p100(ttft) <= 300 ms", "1 on", "p1 to p99"));
    CHECK(says("ttft <= 300 ms", "1 on", "a metric of the whole run is expected there; is p90(ttft) meant?"));
    CHECK(says("p90 ttft <= 300 ms", "5 on", "\"(\" is expected there; is p90(ttft) meant?"));
    CHECK(says("mean tpot <= 30 ms", "6 on", "is mean(tpot) meant?"));
    CHECK(says("p999 <= 30 ms", "6 on", "is p999(ttft) meant?"));
    CHECK(says("p90 output_throughput >= 3 tps", "5 on", "\"(\" is expected there"));
    CHECK(refusal("p90 output_throughput >= 3 tps").find("meant?") == std::string::npos);
    CHECK(says("decode_speed >= 3 tps", "1 on", "is p10(decode_speed) meant?"));
    CHECK(says("queue_time <= 3 ms", "1 on", "is mean(queue_time) meant?"));
    CHECK(says("p90(ttft) >= 300 ms", "11 on", "\"<=\""));
    CHECK(says("p90(ttft) == 300 ms", "11 on", "\"<=\""));
    CHECK(says("p90(ttft) <= 1.2 * output_throughput", "20 on", "a statistic of the same unit"));
    CHECK(says("p90(ttft) of sql <= 1 s", "14 on", "a label in quotes, turns(first, last)"));
    CHECK(says("p90(ttft) of \"sql <= 1 s", "15 on", "a closing quote"));
    CHECK(says("p90(ttft) of turns(1.5) <= 1 s", "23 on", "whole number"));
    CHECK(says("p90(ttft) of \"a\" && <= 1 s", "21 on", "a label in quotes"));
    CHECK(says("of(ttft, \"a\") <= 1 s", "4 on", "a metric of the whole run"));
    CHECK(says("p90(ttft) <= ms", "14 on", "a number"));
    CHECK(says("p90(ttft) <= nan ms", "14 on", "a number"));
    CHECK(says("p90(ttft) <= inf ms", "14 on", "a number"));
    CHECK(says("p90(ttft) <= 300", "17 on", "the unit of ttft, which is one of ms, s, min,"));
    CHECK(says("p90(ttft) <= 300 tok/s", "18 on", "the unit of ttft"));
    CHECK(says("p90(ttft) <= 300 msec", "18 on", "the unit of ttft"));
    CHECK(says("p90(ttft) <= 300 ms, ", "20 on", "the end"));
    CHECK(says("p90(ttft <= 300 ms", "10 on", "\")\""));
    CHECK(says("percentile(ttft, 1.5) <= 300 ms", "21 on", "strictly between 0 and 1"));
    CHECK(says("max(decode_speed) >= 3 tps", "5 on", "a metric that has a max"));
    CHECK(says("mean(error_rate) <= 1 %", "6 on", "a metric that has a mean"));
    CHECK(says("goodput(ttft <= 300 ms &) >= 90 %", "24 on", "\")\""));
    CHECK(says("goodput(p90(ttft) <= 300 ms) >= 90 %", "9 on", "a metric (ttft"));
    CHECK(says("goodput(session_time <= 1 ms) >= 99 %", "9 on", "a metric of each request"));
    CHECK(says("goodput(ttft <= 1 s && error_rate <= 1 %) >= 99 %", "24 on", "a metric of each request"));
    CHECK(says("advisory(p90(ttft) <= 300 ms", "29 on", "\")\""));
    CHECK(says("advisory(p90(ttft) <= 300 ms).until(2026-02-30)", "37 on", "a day of UTC such as 2026-12-31"));
    CHECK(says("advisory(p90(ttft) <= 300 ms).until(2026-12-31", "47 on", "\")\""));
    CHECK(says("p90(ttft) <= 300 ms.until(2026-12-31)", "20 on", "the end"));
    CHECK(says("p90(ttft) <= 1.1 * main", "20 on", "\"baseline\""));
    CHECK(says("p90(ttft) <= baseline + 10 tps", "27 on", "the unit of ttft"));
    CHECK(says("p90(ttft) <= baseline +", "24 on", "a number"));
    CHECK(says("p90(ttft) <= baseline 1 ms", "23 on", "the end"));
    const std::string deep = "goodput(" + std::string(2000, '(');
    CHECK(refusal(deep).find("at most 50 brackets") != std::string::npos);
    CHECK(refusal(std::string(5000, 'p')).find("up to 4000 characters") != std::string::npos);
}

TEST_CASE("an objective on work that cannot be read says where") {
    CHECK(refusal("cached_tokens = expected") ==
          "the SLO \"cached_tokens = expected\" cannot be read from character 15 on (\"= "
          "expected\"): \"==\", \"<=\" or \">=\" is expected there");
    CHECK(refusal("cached_tokens == 0.98 * ttft").find("\"expected\" or \"baseline\"") !=
          std::string::npos);
    CHECK(refusal("cached_tokens == many").find("a number is expected there") !=
          std::string::npos);
    CHECK(refusal("counted(\"x == 0").find("the end of a name") != std::string::npos);
    CHECK(refusal("preemptions == 0").empty());
    CHECK(refusal("preemptions <= 0").empty());
    CHECK(refusal("ttft == 300 ms") != "");
    CHECK(refusal("p90(ttft) == 300 ms") != "");
    CHECK(refusal("work <= 3") != "");
}
