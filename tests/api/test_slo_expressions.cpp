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
std::string text_of(const slo& s) { return str(s.text()); }
std::string text_of(const predicate& p) { return str(p.text); }
}  // namespace

// ---- the text -----------------------------------------------------------------------------------

TEST_CASE("an SLO reads as it was written") {
    using namespace std::chrono;
    const struct { slo s; const char* text; } table[] = {
        {p50(ttft) <= 300_ms, "p50(ttft) <= 300 ms"},
        {p75(tpot) <= 25.5_ms, "p75(tpot) <= 25.5 ms"},
        {p90(itl) <= 40_ms, "p90(itl) <= 40 ms"},
        {p95(e2e) <= 2.5_s, "p95(e2e) <= 2.5 s"},
        {p99(ttft_from_send) <= 300_ms, "p99(ttft_from_send) <= 300 ms"},
        {p999(normalized_latency) <= 30_ms, "p999(normalized_latency) <= 30 ms"},
        {p50(ttft_per_prompt_token) <= 0.05_ms, "p50(ttft_per_prompt_token) <= 0.05 ms"},
        {mean(queue_time) <= 50_ms, "mean(queue_time) <= 50 ms"},
        {max(queued_requests) <= 8, "max(queued_requests) <= 8"},
        {mean(running_requests) >= 2.5, "mean(running_requests) >= 2.5"},
        {max(kv_cache_usage) <= 95_pct, "max(kv_cache_usage) <= 95 %"},
        {preemptions <= 0, "preemptions <= 0"},
        {prefix_cache_hits >= 60_pct, "prefix_cache_hits >= 60 %"},
        {mean(tokens_per_event) >= 1.8, "mean(tokens_per_event) >= 1.8"},
        {p90(time_to_first_answer) <= 5_s, "p90(time_to_first_answer) <= 5 s"},
        {p95(second_token_gap) <= 80_ms, "p95(second_token_gap) <= 80 ms"},
        {goodput(tokens_per_event >= 1.5) >= 90_pct, "goodput(tokens_per_event >= 1.5) >= 90 %"},
        {acceptance_length >= 2.2, "acceptance_length >= 2.2"},
        {energy_per_token <= 0.6_J, "energy_per_token <= 0.6 J"},
        {cost_per_million_tokens <= 0.4_usd, "cost_per_million_tokens <= 0.4 USD"},
        {p1(decode_speed) >= 12_tps, "p1(decode_speed) >= 12 tok/s"},
        {p5(decode_speed) >= 15.5_tps, "p5(decode_speed) >= 15.5 tok/s"},
        {p10(prefill_speed) >= 900_tps, "p10(prefill_speed) >= 900 tok/s"},
        {p50(prefill_speed) >= 1000_tps, "p50(prefill_speed) >= 1000 tok/s"},
        {mean(tpot) <= 25_ms, "mean(tpot) <= 25 ms"},
        {mean(decode_speed) >= 40_tps, "mean(decode_speed) >= 40 tok/s"},
        {max(e2e) <= 30_s, "max(e2e) <= 30 s"},
        {min(decode_speed) >= 10_tps, "min(decode_speed) >= 10 tok/s"},
        {output_throughput >= 400_tps, "output_throughput >= 400 tok/s"},
        {total_throughput >= 4000_tps, "total_throughput >= 4000 tok/s"},
        {prefill_throughput >= 9000_tps, "prefill_throughput >= 9000 tok/s"},
        {decode_throughput >= 300_tps, "decode_throughput >= 300 tok/s"},
        {request_throughput >= 7.5_rps, "request_throughput >= 7.5 req/s"},
        {error_rate <= 0.5_pct, "error_rate <= 0.5 %"},
        {startup_time <= 2_min, "startup_time <= 120 s"},
        {goodput(ttft <= 300_ms) >= 90_pct, "goodput(ttft <= 300 ms) >= 90 %"},
        {goodput(ttft <= 300_ms && tpot <= 30_ms) >= 99.5_pct,
         "goodput(ttft <= 300 ms && tpot <= 30 ms) >= 99.5 %"},
        {percentile(ttft, 0.99) <= 300_ms, "p99(ttft) <= 300 ms"},
        {percentile(decode_speed, 0.05) >= 15_tps, "p5(decode_speed) >= 15 tok/s"},
        {percentile(ttft, 0.999) <= 300_ms, "p999(ttft) <= 300 ms"},
        {percentile(ttft, 0.42) <= 300_ms, "p42(ttft) <= 300 ms"},
        {percentile(ttft, 0.58) <= 300_ms, "p58(ttft) <= 300 ms"},  // 0.58 * 100 < 58
        {percentile(ttft, 0.995) <= 1_s, "percentile(ttft, 0.995) <= 1 s"},
        {percentile(ttft, 0.001) <= 1_s, "percentile(ttft, 0.001) <= 1 s"},
        {max(server_metric("vllm:num_requests_waiting")) <= plain_number(10),
         "max(server_metric(\"vllm:num_requests_waiting\")) <= 10"},
        {mean(server_metric("queue")) >= plain_number(2.5), "mean(server_metric(\"queue\")) >= 2.5"},
        {mean(tpot) <= 1.10 * baseline, "mean(tpot) <= 1.1 * baseline"},
        {mean(tpot) <= 110_pct * baseline, "mean(tpot) <= 1.1 * baseline"},
        {p5(decode_speed) >= 0.95 * baseline, "p5(decode_speed) >= 0.95 * baseline"},
        {p50(ttft) <= baseline, "p50(ttft) <= 1 * baseline"},
        {p99(ttft) <= 300ms, "p99(ttft) <= 300 ms"},
        {startup_time <= 2min, "startup_time <= 120 s"},
        {goodput(ttft <= 300ms && e2e <= 10s) >= 90_pct, "goodput(ttft <= 300 ms && e2e <= 10 s) >= 90 %"},
        {mean(ttft) <= baseline + 1_ms, "mean(ttft) <= baseline + 1 ms"},
        {p99(itl) <= baseline + 200_us, "p99(itl) <= baseline + 0.2 ms"},
        {mean(ttft) <= 1.05 * baseline + 1_ms, "mean(ttft) <= 1.05 * baseline + 1 ms"},
        {mean(e2e) <= 110_pct * baseline - 1_s, "mean(e2e) <= 1.1 * baseline - 1 s"},
        {output_throughput >= baseline - 10_tps, "output_throughput >= baseline - 10 tok/s"},
        {accuracy >= baseline - 1_pct, "accuracy >= baseline - 1 %"},
        {mean(running_requests) <= baseline + 2, "mean(running_requests) <= baseline + 2"},
        {p90(ttft) <= baseline + 5ms, "p90(ttft) <= baseline + 5 ms"}};
    for (const auto& [s, text] : table) CHECK(text_of(s) == text);
}

TEST_CASE("an SLO prints itself to streams and to doctest") {
    const slo s = p99(ttft) <= 300_ms;
    std::ostringstream out;
    out << s;
    CHECK(out.str() == "p99(ttft) <= 300 ms");
    CHECK(doctest::toString(s) == "p99(ttft) <= 300 ms");
}

// ---- the data -----------------------------------------------------------------------------------

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

// ---- predicates ---------------------------------------------------------------------------------

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
