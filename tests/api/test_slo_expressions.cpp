// SLO expressions.
#include "llmbench.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "extensions/answers/api.hpp"

#include <chrono>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;

namespace {
using op = predicate_step::op_kind;

std::string text_of(const slo& s) { return str(s.text()); }
std::string text_of(const predicate& p) { return str(p.text); }

/// A postfix program, readable: "ttft tpot both".
std::string program(const predicate& p) {
    std::string out;
    for (const predicate_step& s : p.steps) {
        if (!out.empty()) out += ' ';
        out += s.op == op::compare ? metric_name(s.metric) : s.op == op::both ? "both" : "either";
    }
    return out;
}
}  // namespace

// ---- the text -----------------------------------------------------------------------------------

TEST_CASE("an SLO on a percentile of times reads as it was written") {
    CHECK(text_of(p50(ttft) <= 300_ms) == "p50(ttft) <= 300 ms");
    CHECK(text_of(p75(tpot) <= 25.5_ms) == "p75(tpot) <= 25.5 ms");
    CHECK(text_of(p90(itl) <= 40_ms) == "p90(itl) <= 40 ms");
    CHECK(text_of(p95(e2e) <= 2.5_s) == "p95(e2e) <= 2.5 s");
    CHECK(text_of(p99(ttft_from_send) <= 300_ms) == "p99(ttft_from_send) <= 300 ms");
    CHECK(text_of(p999(normalized_latency) <= 30_ms) == "p999(normalized_latency) <= 30 ms");
    CHECK(text_of(p50(ttft_per_prompt_token) <= 0.05_ms) ==
          "p50(ttft_per_prompt_token) <= 0.05 ms");
    CHECK(text_of(mean(queue_time) <= 50_ms) == "mean(queue_time) <= 50 ms");
    CHECK(text_of(max(queued_requests) <= 8) == "max(queued_requests) <= 8");
    CHECK(text_of(mean(running_requests) >= 2.5) == "mean(running_requests) >= 2.5");
    CHECK(text_of(max(kv_cache_usage) <= 95_pct) == "max(kv_cache_usage) <= 95 %");
    CHECK(text_of(preemptions <= 0) == "preemptions <= 0");
    CHECK(text_of(prefix_cache_hits >= 60_pct) == "prefix_cache_hits >= 60 %");
    CHECK(text_of(mean(tokens_per_event) >= 1.8) == "mean(tokens_per_event) >= 1.8");
    CHECK(text_of(p90(time_to_first_answer) <= 5_s) == "p90(time_to_first_answer) <= 5 s");
    CHECK(text_of(p95(second_token_gap) <= 80_ms) == "p95(second_token_gap) <= 80 ms");
    CHECK(text_of(goodput(tokens_per_event >= 1.5) >= 90_pct) ==
          "goodput(tokens_per_event >= 1.5) >= 90 %");
    CHECK(text_of(acceptance_length >= 2.2) == "acceptance_length >= 2.2");
    CHECK(text_of(energy_per_token <= 0.6_J) == "energy_per_token <= 0.6 J");
    CHECK(text_of(cost_per_million_tokens <= 0.4_usd) == "cost_per_million_tokens <= 0.4 USD");
}

TEST_CASE("an SLO on a percentile of speeds reads as it was written") {
    CHECK(text_of(p1(decode_speed) >= 12_tps) == "p1(decode_speed) >= 12 tok/s");
    CHECK(text_of(p5(decode_speed) >= 15.5_tps) == "p5(decode_speed) >= 15.5 tok/s");
    CHECK(text_of(p10(prefill_speed) >= 900_tps) == "p10(prefill_speed) >= 900 tok/s");
    CHECK(text_of(p50(prefill_speed) >= 1000_tps) == "p50(prefill_speed) >= 1000 tok/s");
}

TEST_CASE("means and extremes read as they were written") {
    CHECK(text_of(mean(tpot) <= 25_ms) == "mean(tpot) <= 25 ms");
    CHECK(text_of(mean(decode_speed) >= 40_tps) == "mean(decode_speed) >= 40 tok/s");
    CHECK(text_of(max(e2e) <= 30_s) == "max(e2e) <= 30 s");
    CHECK(text_of(min(decode_speed) >= 10_tps) == "min(decode_speed) >= 10 tok/s");
}

TEST_CASE("SLOs on a whole run read as they were written") {
    CHECK(text_of(output_throughput >= 400_tps) == "output_throughput >= 400 tok/s");
    CHECK(text_of(total_throughput >= 4000_tps) == "total_throughput >= 4000 tok/s");
    CHECK(text_of(prefill_throughput >= 9000_tps) == "prefill_throughput >= 9000 tok/s");
    CHECK(text_of(decode_throughput >= 300_tps) == "decode_throughput >= 300 tok/s");
    CHECK(text_of(request_throughput >= 7.5_rps) == "request_throughput >= 7.5 req/s");
    CHECK(text_of(error_rate <= 0.5_pct) == "error_rate <= 0.5 %");
    CHECK(text_of(startup_time <= 2_min) == "startup_time <= 120 s");
}

TEST_CASE("goodput shows its predicate") {
    CHECK(text_of(goodput(ttft <= 300_ms) >= 90_pct) == "goodput(ttft <= 300 ms) >= 90 %");
    CHECK(text_of(goodput(ttft <= 300_ms && tpot <= 30_ms) >= 99.5_pct) ==
          "goodput(ttft <= 300 ms && tpot <= 30 ms) >= 99.5 %");
}

TEST_CASE("a percentile of one's own choice has the name of the ready-made one") {
    CHECK(text_of(percentile(ttft, 0.99) <= 300_ms) == "p99(ttft) <= 300 ms");
    CHECK(text_of(percentile(decode_speed, 0.05) >= 15_tps) == "p5(decode_speed) >= 15 tok/s");
    CHECK(text_of(percentile(ttft, 0.999) <= 300_ms) == "p999(ttft) <= 300 ms");
    CHECK(text_of(percentile(ttft, 0.42) <= 300_ms) == "p42(ttft) <= 300 ms");
    CHECK(text_of(percentile(ttft, 0.58) <= 300_ms) == "p58(ttft) <= 300 ms");  // 0.58 * 100 < 58
    CHECK(text_of(percentile(ttft, 0.995) <= 1_s) == "percentile(ttft, 0.995) <= 1 s");
    CHECK(text_of(percentile(ttft, 0.001) <= 1_s) == "percentile(ttft, 0.001) <= 1 s");
}

TEST_CASE("gauges of the server are named in quotes") {
    CHECK(text_of(max(server_metric("vllm:num_requests_waiting")) <= plain_number(10)) ==
          "max(server_metric(\"vllm:num_requests_waiting\")) <= 10");
    CHECK(text_of(mean(server_metric("queue")) >= plain_number(2.5)) ==
          "mean(server_metric(\"queue\")) >= 2.5");
}

TEST_CASE("a limit relative to the baseline reads as it was written") {
    CHECK(text_of(mean(tpot) <= 1.10 * baseline) == "mean(tpot) <= 1.1 * baseline");
    CHECK(text_of(mean(tpot) <= 110_pct * baseline) == "mean(tpot) <= 1.1 * baseline");
    CHECK(text_of(p5(decode_speed) >= 0.95 * baseline) == "p5(decode_speed) >= 0.95 * baseline");
    CHECK(text_of(p50(ttft) <= baseline) == "p50(ttft) <= 1 * baseline");
}

TEST_CASE("limits may be std::chrono durations") {
    using namespace std::chrono;
    CHECK(text_of(p99(ttft) <= 300ms) == "p99(ttft) <= 300 ms");
    CHECK(text_of(startup_time <= 2min) == "startup_time <= 120 s");
    CHECK(text_of(goodput(ttft <= 300ms && e2e <= 10s) >= 90_pct) ==
          "goodput(ttft <= 300 ms && e2e <= 10 s) >= 90 %");
}

TEST_CASE("an SLO prints itself to streams and to doctest") {
    const slo s = p99(ttft) <= 300_ms;
    std::ostringstream out;
    out << s;
    CHECK(out.str() == "p99(ttft) <= 300 ms");
    CHECK(doctest::toString(s) == "p99(ttft) <= 300 ms");
}

// ---- the data -----------------------------------------------------------------------------------

TEST_CASE("a percentile holds its metric and its quantile") {
    const struct { slo s; metric_id metric; double q; } table[] = {
        {p50(ttft) <= 1_s, metric_id::ttft, 0.5},
        {p75(tpot) <= 1_s, metric_id::tpot, 0.75},
        {p90(itl) <= 1_s, metric_id::itl, 0.9},
        {p95(e2e) <= 1_s, metric_id::e2e, 0.95},
        {p99(normalized_latency) <= 1_s, metric_id::normalized_latency, 0.99},
        {p999(ttft_per_prompt_token) <= 1_s, metric_id::ttft_per_prompt_token, 0.999},
        {p99(ttft_from_send) <= 1_s, metric_id::ttft_from_send, 0.99},
        {p1(prefill_speed) >= 1_tps, metric_id::prefill_speed, 0.01},
        {p5(decode_speed) >= 1_tps, metric_id::decode_speed, 0.05},
        {p10(decode_speed) >= 1_tps, metric_id::decode_speed, 0.1},
        {percentile(ttft, 0.123) <= 1_s, metric_id::ttft, 0.123}};
    for (const auto& [s, metric, q] : table) {
        CAPTURE(s);
        CHECK(s.statistic.kind == statistic_kind::percentile);
        CHECK(s.statistic.metric == metric);
        CHECK(s.statistic.q == q);
        CHECK(s.bound == 1);
    }
}

TEST_CASE("other statistics hold their kind and metric") {
    const struct { slo s; statistic_kind kind; metric_id metric; } table[] = {
        {mean(tpot) <= 1_s, statistic_kind::mean, metric_id::tpot},
        {max(e2e) <= 1_s, statistic_kind::max, metric_id::e2e},
        {min(decode_speed) >= 1_tps, statistic_kind::min, metric_id::decode_speed},
        {output_throughput >= 1_tps, statistic_kind::value, metric_id::output_throughput},
        {total_throughput >= 1_tps, statistic_kind::value, metric_id::total_throughput},
        {prefill_throughput >= 1_tps, statistic_kind::value, metric_id::prefill_throughput},
        {decode_throughput >= 1_tps, statistic_kind::value, metric_id::decode_throughput},
        {request_throughput >= 1_rps, statistic_kind::value, metric_id::request_throughput},
        {error_rate <= 100_pct, statistic_kind::value, metric_id::error_rate},
        {startup_time <= 1_s, statistic_kind::value, metric_id::startup_time},
        {goodput(ttft <= 1_s) >= 100_pct, statistic_kind::value, metric_id::goodput},
        {mean(server_metric("g")) <= plain_number(1), statistic_kind::mean,
         metric_id::server_metric},
        {max(server_metric("g")) <= plain_number(1), statistic_kind::max,
         metric_id::server_metric}};
    for (const auto& [s, kind, metric] : table) {
        CAPTURE(s);
        CHECK(s.statistic.kind == kind);
        CHECK(s.statistic.metric == metric);
        CHECK(s.bound == 1);
        CHECK(s.factor == 0);
    }
}

TEST_CASE("the name of a statistic is its text without the limit") {
    CHECK(str((p99(ttft) <= 300_ms).statistic.name) == "p99(ttft)");
    CHECK(str((error_rate <= 1_pct).statistic.name) == "error_rate");
    CHECK(str(mean(tpot).data.name) == "mean(tpot)");
}

TEST_CASE("a limit is held in SI units, on the side it was written") {
    const slo time = p99(ttft) <= 300_ms;
    CHECK(time.at_most);
    CHECK(time.bound == 0.3);
    const slo speed = p5(decode_speed) >= 15_tps;
    CHECK_FALSE(speed.at_most);
    CHECK(speed.bound == 15);
    const slo part = error_rate <= 2.5_pct;
    CHECK(part.at_most);
    CHECK(part.bound == 0.025);
    CHECK_FALSE((goodput(ttft <= 1_s) >= 90_pct).at_most);
    CHECK_FALSE((request_throughput >= 2_rps).at_most);
    CHECK_FALSE((mean(server_metric("g")) >= plain_number(2)).at_most);
}

TEST_CASE("a relative limit is a factor and no bound") {
    const slo written = mean(tpot) <= 1.10 * baseline;
    CHECK(written.factor == 1.10);
    CHECK(written.bound == 0);
    CHECK((mean(tpot) <= 110_pct * baseline).factor == doctest::Approx(1.1));
    CHECK((mean(tpot) <= baseline).factor == 1);
    CHECK((output_throughput >= 0.9 * baseline).factor == 0.9);
    CHECK((p99(ttft) <= 300_ms).factor == 0);
}

TEST_CASE("the advisory twin of an SLO differs in nothing else") {
    const slo blocking = p99(ttft) <= 300_ms;
    const slo noted = advisory(blocking);
    CHECK_FALSE(blocking.is_advisory);
    CHECK(noted.is_advisory);
    CHECK(text_of(noted) == "advisory(p99(ttft) <= 300 ms)");
    CHECK(noted.statistic.metric == blocking.statistic.metric);
    CHECK(noted.statistic.q == blocking.statistic.q);
    CHECK(noted.bound == blocking.bound);
    CHECK(noted.at_most == blocking.at_most);
    CHECK(noted.at.line == blocking.at.line);
}

TEST_CASE("an SLO is a value that can be shared and kept") {
    slo_list shared = {p99(ttft) <= 300_ms, mean(tpot) <= 25_ms};
    const slo_list kept = shared;
    shared.push_back(error_rate <= 1_pct);
    REQUIRE(kept.size() == 2);
    CHECK(text_of(kept[1]) == "mean(tpot) <= 25 ms");
    CHECK(text_of(shared.back()) == "error_rate <= 1 %");
}

// ---- the line -----------------------------------------------------------------------------------

TEST_CASE("every SLO of a list knows its own line") {
    const int before = __LINE__;
    const slo_list slos = {
        p50(ttft) <= 300_ms,
        output_throughput >= 400_tps,
        goodput(ttft <= 300_ms) >= 90_pct,
        mean(tpot) <= 1.10 * baseline,
        mean(tpot) <= baseline,
        advisory(p99(ttft) <= 450_ms),
        max(server_metric("g")) <= plain_number(1),
        startup_time <= std::chrono::seconds(10),
    };
    REQUIRE(slos.size() == 8);
    int line = before + 2;
    for (const slo& s : slos) {
        CAPTURE(s);
        CHECK(s.at.line == line++);
        CHECK(std::string_view(s.at.file) == __FILE__);
    }
}

TEST_CASE("an SLO made elsewhere keeps the line it was made on") {
    const int line = __LINE__ + 1;
    const auto make_it = [] { return p50(ttft) <= 300_ms; };
    const slo a = make_it();
    const slo b = make_it();
    CHECK(a.at.line == line);
    CHECK(b.at.line == line);
}

// ---- predicates ---------------------------------------------------------------------------------

TEST_CASE("one comparison is one step") {
    const predicate p = ttft <= 300_ms;
    REQUIRE(p.steps.size() == 1);
    CHECK(p.steps[0].op == op::compare);
    CHECK(p.steps[0].metric == metric_id::ttft);
    CHECK(p.steps[0].at_most);
    CHECK(p.steps[0].bound == 0.3);
    CHECK(text_of(p) == "ttft <= 300 ms");

    const predicate fast = decode_speed >= 20_tps;
    REQUIRE(fast.steps.size() == 1);
    CHECK(fast.steps[0].metric == metric_id::decode_speed);
    CHECK_FALSE(fast.steps[0].at_most);
    CHECK(fast.steps[0].bound == 20);
    CHECK(text_of(fast) == "decode_speed >= 20 tok/s");
}

TEST_CASE("predicates are programs in postfix order") {
    const predicate a = ttft <= 1_s, b = tpot <= 2_s, c = e2e <= 3_s;
    CHECK(program(a && b) == "ttft tpot both");
    CHECK(program(a || b) == "ttft tpot either");
    CHECK(program(a && b && c) == "ttft tpot both e2e both");
    CHECK(program(a || (b && c)) == "ttft tpot e2e both either");
    CHECK(program((a || b) && c) == "ttft tpot either e2e both");
    CHECK(program(a && (b || c)) == "ttft tpot e2e either both");
}

TEST_CASE("the bounds stay with their comparisons") {
    const predicate p = (ttft <= 1_s || tpot <= 2_s) && decode_speed >= 3_tps;
    REQUIRE(p.steps.size() == 5);
    CHECK(p.steps[0].bound == 1);
    CHECK(p.steps[1].bound == 2);
    CHECK(p.steps[3].bound == 3);
    CHECK(p.steps[1].at_most);
    CHECK_FALSE(p.steps[3].at_most);
}

TEST_CASE("the text of a predicate can be read only one way") {
    const predicate a = ttft <= 1_s, b = tpot <= 2_s, c = e2e <= 3_s;
    CHECK(text_of(a && b) == "ttft <= 1 s && tpot <= 2 s");
    CHECK(text_of(a || b) == "(ttft <= 1 s || tpot <= 2 s)");
    CHECK(text_of((a || b) && c) == "(ttft <= 1 s || tpot <= 2 s) && e2e <= 3 s");
    CHECK(text_of(a || (b && c)) == "(ttft <= 1 s || tpot <= 2 s && e2e <= 3 s)");
}

TEST_CASE("goodput takes over the program of its predicate") {
    const predicate p = ttft <= 300_ms && tpot <= 30_ms;
    const slo s = goodput(p) >= 90_pct;
    REQUIRE(s.statistic.where.size() == p.steps.size());
    for (size_type i = 0; i < p.steps.size(); ++i) {
        CHECK(s.statistic.where[i].op == p.steps[i].op);
        CHECK(s.statistic.where[i].metric == p.steps[i].metric);
        CHECK(s.statistic.where[i].bound == p.steps[i].bound);
    }
    CHECK((p99(ttft) <= 1_s).statistic.where.empty());
}

TEST_CASE("a gauge keeps the name of the server's metric") {
    const slo s = max(server_metric("vllm:num_requests_waiting")) <= plain_number(10);
    CHECK(str(s.statistic.gauge) == "vllm:num_requests_waiting");
    CHECK(s.bound == 10);
}

TEST_CASE("a name of one's own may be a metric's") {
    const int ttft = 3;  // metrics are enumerators, so this neither warns nor clashes
    CHECK(text_of(p50(latency_metric::ttft) <= 1_s) == "p50(ttft) <= 1 s");
    CHECK(ttft == 3);
}

// ---- presets ------------------------------------------------------------------------------------

TEST_CASE("presets are values that print themselves, can be changed and become objectives") {
    namespace presets = llmbench::presets;
    CHECK(std::string(presets::mlperf_llama2_70b_interactive.text()) ==
          "mlperf llama2-70b interactive: p99(ttft) <= 450 ms, p99(tpot) <= 40 ms (MLPerf Inference "
          "rules (MLCommons inference_policies, as of August 2026))");
    CHECK(std::string(presets::chat.text()) ==
          "chat: p99(ttft) <= 2 s, p99(tpot) <= 50 ms (a rule of thumb)");
    auto mine = presets::mlperf_llama3_1_8b_server;
    mine.ttft = llmbench::time_span::from_seconds(1);
    mine.quantile = 0.9;
    const llmbench::slo_list list = mine.slos();
    REQUIRE(list.size() == 2);
    CHECK(std::string(list[0].text()) == "p90(ttft) <= 1 s");
    CHECK(std::string(list[1].text()) == "p90(tpot) <= 100 ms");
    CHECK(list[0].at.line > 0);
    CHECK(std::string(presets::chat.predicate().text) == "ttft <= 2 s && tpot <= 50 ms");
    CHECK(std::string(presets::silent_reading.predicate().text) == "tpot <= 160 ms");
}

TEST_CASE("reading speeds are times of a token, by words a minute and tokens a word") {
    namespace presets = llmbench::presets;
    CHECK(presets::silent_reading.tpot.seconds() == doctest::Approx(0.160));
    CHECK(presets::subvocal_reading.tpot.seconds() == doctest::Approx(0.0889).epsilon(0.001));
    CHECK(presets::visual_reading.tpot.seconds() == doctest::Approx(0.0571).epsilon(0.001));
    CHECK(presets::reading(250, 1.0).tpot.seconds() == doctest::Approx(0.240));
    CHECK(presets::silent_reading.slos().size() == 1);
}

TEST_CASE("a difference to the baseline reads as it was written") {
    CHECK(text_of(mean(ttft) <= baseline + 1_ms) == "mean(ttft) <= baseline + 1 ms");
    CHECK(text_of(p99(itl) <= baseline + 200_us) == "p99(itl) <= baseline + 0.2 ms");
    CHECK(text_of(mean(ttft) <= 1.05 * baseline + 1_ms) == "mean(ttft) <= 1.05 * baseline + 1 ms");
    CHECK(text_of(mean(e2e) <= 110_pct * baseline - 1_s) == "mean(e2e) <= 1.1 * baseline - 1 s");
    CHECK(text_of(output_throughput >= baseline - 10_tps) ==
          "output_throughput >= baseline - 10 tok/s");
    CHECK(text_of(accuracy >= baseline - 1_pct) == "accuracy >= baseline - 1 %");
    CHECK(text_of(mean(running_requests) <= baseline + 2) ==
          "mean(running_requests) <= baseline + 2");
    CHECK(text_of(p90(ttft) <= baseline + std::chrono::milliseconds(5)) ==
          "p90(ttft) <= baseline + 5 ms");
}

TEST_CASE("a difference keeps its factor, its SI value and its line") {
    const slo written = mean(ttft) <= 1.05 * baseline + 200_us;
    const int line = __LINE__ - 1;
    CHECK(written.factor == 1.05);
    CHECK(written.offset == doctest::Approx(0.0002));
    CHECK(written.at.line == line);
    CHECK((output_throughput >= baseline - 10_tps).offset == -10);
    CHECK(is_difference(written));
    CHECK(!is_difference(mean(ttft) <= 1.05 * baseline));
}
