// Embeddings and rerankers on the simulated server, which reads a prompt and generates nothing.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"

#include <string>

using namespace llmbench;
using namespace live;

namespace {
scenario scoring(const std::string& url, api_format api, const char* name) {
    scenario s = brief(endpoint{.url = url, .model = "simulated", .api = api}, name);
    s.workload = synthetic{.prompt_tokens = fixed(90)};
    s.requests = 60;
    if (api == api_format::sglang_score) s.options.extra_body = R"({"label_token_ids": [7, 8]})";
    return s;
}
engine reader() {
    engine e = engine_of(2_ms);
    e.prefill_per_token = time_span::from_seconds(0.00005);
    e.prefix_cache = false;
    return e;
}
}  // namespace

TEST_CASE("inputs are counted, answers are timed from end to end, and nothing is an output") {
    for (const api_format api : {api_format::openai_embeddings, api_format::rerank, api_format::score,
                                 api_format::sglang_score}) {
        const logging_server server(reader());
        const char* const name = api == api_format::rerank              ? "rerank"
                                 : api == api_format::score             ? "score"
                                 : api == api_format::sglang_score      ? "sglang_score"
                                                            : "embeddings";
        scenario s = scoring(server.url(), api, name);
        s.slos = {p90(e2e) <= 10_s, input_throughput >= 10_tps, request_throughput >= 0.1_rps,
                  goodput(e2e <= 10_s) >= 60_pct};
        const heard_run heard = heard_of(s);
        const result& r = heard.result;
        const std::string& said = heard.said;
        CAPTURE(said);
        for (const slo_verdict& v : r.verdicts()) {
            CAPTURE(std::string(v.line()));
            CHECK(v.outcome == verdict::pass);
        }
        for (const record& q : r.requests()) {
            CAPTURE(std::string(q.error));
            REQUIRE(q.status == request_status::ok);
            CHECK(q.prompt_tokens == 90);
            CHECK(q.output_tokens == 0);
            CHECK(q.token_source == token_origin::usage);
            CHECK(q.first_token_ns == q.end_ns);
        }
        const double per_request =
            r.measured(input_throughput) / r.measured(request_throughput);
        CHECK(per_request > 89);
        CHECK(per_request < 91);
        CHECK(holds(said, "input "));
        CHECK(!holds(said, "  ttft "));
        CHECK(!holds(said, "usage reports fewer"));
        const picojson::value gate = reported_gate(name);
        CHECK(gate.get("candidate").get("input_throughput").get<double>() > 10);
        CHECK(!gate.get("candidate").contains("ttft"));
        check_rejudged(r, s.slos);
    }
}

TEST_CASE("a prompt is cut into as many inputs as options.documents says") {
    const logging_server server(reader());
    for (const int n : {1, 10, 25, 50}) {
        scenario s = scoring(server.url(), api_format::openai_embeddings, "inputs");
        s.workload = synthetic{.prompt_tokens = fixed(10 * n)};
        s.options.documents = n;
        s.slos = {mean(e2e) <= 1_s, p95(e2e) <= 1_s};
        const result r = run(s);
        check_passes(r);
        for (const record& q : r.requests()) CHECK(q.prompt_tokens == 10 * n);
    }
}
