// Several workloads at once, and what is judged of each of them.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"

#include <algorithm>
#include <map>
#include <string>

using namespace llmbench;
using namespace live;

namespace {
scenario mixed_gate(const engine& e, const char* name) {
    scenario s = brief(simulated(e), name);
    s.workload = mix({{.name = "short", .weight = 3,
                       .workload = synthetic{.prompt_tokens = fixed(20), .output_tokens = fixed(4)}},
                      {.name = "long", .weight = 1, .workload = conversations{
                           .turns = fixed(2), .user_tokens = fixed(200), .output_tokens = fixed(12)}}});
    s.arrivals = closed_loop(4);
    s.requests = 100;
    return s;
}
}  // namespace

TEST_CASE("the parts of a mix are measured, judged and reported each by itself, and judged again") {
    engine e = engine_of(5_ms);
    e.prefill_per_token = time_span::from_seconds(0.0005);
    scenario s = mixed_gate(e, "a mix");
    s.slos = {p50(ttft).of("short") <= 1_s, p50(ttft).of("long") <= 1_s,
              p50(ttft).of(label("long") && turns(2)) <= 1_s, p50(itl).of("long") <= 1_s,
              of(output_throughput, "short") >= 1_tps, of(output_throughput, "long") >= 1_tps,
              of(request_throughput, "short") >= 1_rps, of(error_rate, "short") <= 30_pct,
              goodput(e2e <= 10_s).of("long") >= 50_pct, output_throughput >= 1_tps};
    const heard_run heard = heard_of(s);
    const result& r = heard.result;
    check_rejudged(r, s.slos);
    std::map<int, int> counts;
    for (const record& q : r.requests())
        if (q.phase == run_phase::measure && q.repeat == 0) {
            ++counts[q.part];
            CHECK(q.output_tokens == (q.part == 0 ? 4 : 12));
        }
    CHECK(counts[0] == 60);
    CHECK(counts[1] == 40);
    CHECK(r.measured(p50(ttft).of("long")) > r.measured(p50(ttft).of("short")));
    CHECK(r.measured(of(output_throughput, "short")) + r.measured(of(output_throughput, "long")) ==
          doctest::Approx(r.measured(output_throughput)));
    const std::string json = content_of(report_file("result.json"));
    CHECK(holds(json, "\"p50(ttft) of \\\"long\\\"\""));
    CHECK(holds(json, "\"of\": \"\\\"long\\\" && turns(2)\""));
    CHECK(holds(texts::unwrapped(heard.said), "p50(ttft) of \"long\" && turns(2) <= 1 s"));
    CHECK(holds(texts::unwrapped(heard.said), "mix of \"short\" (3 in 4)"));
    // Every report has a table of the labels.
    CHECK(holds(heard.said, "label          failed   ttft p50"));
    CHECK(holds(heard.said, "\n  short        0 of "));
    CHECK(holds(json, "\"labels\": [\n"));
    CHECK(holds(content_of(report_file("report.html")), "<h3>Labels</h3>"));
}

namespace {
scenario beside_each_other(const engine& e, const char* name, request_rate rate) {
    scenario s = brief(simulated(e), name);
    const synthetic words{.prompt_tokens = fixed(20), .output_tokens = fixed(10)};
    s.workload = mix({{.name = "chat", .workload = words, .arrivals = poisson(rate)},
                      {.name = "batch", .workload = words, .arrivals = closed_loop(8)}});
    s.arrivals = {};
    s.warmup = 2_s;
    s.requests = 0;
    s.duration = 20_s;
    return s;
}
}  // namespace

TEST_CASE("an open part goes beside a closed one, each with its own load and its own verdicts") {
    scenario s = beside_each_other(engine_of(20_ms), "side by side", 4_rps);
    s.slos = {p90(ttft).of("chat") <= 1_s, of(output_throughput, "batch") >= 10_tps,
              p50(ttft).of("chat") <= 3 * p50(ttft).of("batch"), of(error_rate, "chat") <= 20_pct};
    const heard_run heard = heard_of(s);
    const result& r = heard.result;
    for (const slo_verdict& v : r.verdicts()) {
        CAPTURE(v.reason);
        CHECK(v.outcome == verdict::pass);
    }
    check_rejudged(r, s.slos);
    std::map<int, int> chats;
    long long first = 0, last = 0;
    std::map<long long, int> batch_in_flight;
    for (const record& q : r.requests()) {
        if (q.repeat != 0) continue;
        if (q.part == 1) {
            ++batch_in_flight[q.dispatched_ns];
            --batch_in_flight[q.end_ns];
        }
        if (q.phase != run_phase::measure) continue;
        ++chats[q.part];
        if (first == 0 || q.scheduled_ns < first) first = q.scheduled_ns;
        last = std::max(last, q.scheduled_ns);
    }
    CHECK(chats[0] == 80);
    CHECK(chats[1] > 500);  // eight users, whose answers take 200 ms
    CHECK(last - first < 20000000000ll);
    int in_flight = 0, most = 0;
    for (const auto& [at, n] : batch_in_flight) most = std::max(most, in_flight += n);
    CHECK(most == 8);
    CHECK(r.measured(of(request_throughput, "batch")) == doctest::Approx(40).epsilon(0.1));
    CHECK(holds(texts::unwrapped(heard.said), "of each part: poisson(4 req/s), closed_loop(8 users)"));
}

TEST_CASE("a part over the capacity says nothing of its latencies, and another part still does") {
    engine e = engine_of(20_ms);
    e.slots = 4;  // 20 requests a second
    scenario s = beside_each_other(e, "one part too many", 30_rps);
    s.slos = {p50(ttft).of("chat") <= 100_s, of(output_throughput, "batch") >= 1_tps,
              p50(ttft) <= 100_s};
    const heard_run heard = heard_of(s);
    const auto& v = heard.result.verdicts();
    CHECK(v[0].outcome == verdict::invalid);
    CHECK(holds(v[0].reason, "\"chat\" is over-saturated: requests in flight grew by"));
    CHECK(v[1].outcome == verdict::pass);
    CHECK(v[2].outcome == verdict::invalid);
    check_rejudged(heard.result, s.slos);
}

TEST_CASE("arms of two workloads say what their tokens were, and compare no tokens per second") {
    scenario s = brief(simulated(engine_of(5_ms)), "two workloads");
    s.baseline = otherwise{.workload = synthetic{.prompt_tokens = fixed(40),
                                                 .output_tokens = fixed(4)}};
    s.workload = synthetic{.prompt_tokens = fixed(20), .output_tokens = fixed(8)};
    s.slos = {output_throughput >= 0.1 * baseline, mean(ttft) <= 3 * baseline};
    const heard_run heard = heard_of(s);
    CHECK(heard.result.verdicts()[0].outcome == verdict::invalid);
    CHECK(holds(heard.result.verdicts()[0].reason, "8 of an answer and with the baseline 4"));
    CHECK(heard.result.verdicts()[1].outcome == verdict::pass);
    CHECK(holds(texts::unwrapped(heard.said),
                "tokens of a request: prompt 20, output 8; baseline: prompt 40, output 4"));
    const std::string json = content_of(report_file("result.json"));
    CHECK(holds(json, "\"tokens_per_request\": {\n"));
    check_rejudged(heard.result, s.slos);
}
