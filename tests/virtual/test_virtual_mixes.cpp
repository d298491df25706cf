// Several workloads at once, and what is judged of each of them.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "virtual/scripted_server.hpp"

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

TEST_CASE("a label whose answers end early is invalid, and no other one") {
    // The answers of "code" have a token less than forced.
    const scripted::server host([](const scripted::request& r) {
        return scripted::healthy(holds(r.body, "\"max_tokens\":12") ? 11 : 4);
    });
    scenario s = brief(endpoint{.url = host.url()}, "one label ends early");
    s.workload = mix({{.name = "chat", .weight = 1,
                       .workload = synthetic{.prompt_tokens = fixed(20), .output_tokens = fixed(4)}},
                      {.name = "code", .weight = 3,
                       .workload = synthetic{.prompt_tokens = fixed(20), .output_tokens = fixed(12)}}});
    s.arrivals = closed_loop(4);
    s.requests = 100;
    s.slos = {p50(ttft).of("chat") <= 1_s, p50(ttft).of("code") <= 1_s, p50(ttft) <= 1_s};
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    for (const std::size_t i : {1u, 2u}) {
        CHECK(r.verdicts()[i].outcome == verdict::invalid);
        CHECK(holds(r.verdicts()[i].reason, "completed requests brought fewer tokens than forced"));
    }
    check_rejudged(r, s.slos);
    CHECK(holds(content_of(report_file("records.jsonl")), "\"length_forced\":true"));
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
