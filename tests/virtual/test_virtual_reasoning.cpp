// Reasoning before the answer: measured on the simulated server, told in the reports, judged again
// from the records.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"

#include <string>

using namespace llmbench;
using namespace live;

TEST_CASE("a reasoning model's first answer comes after its thoughts, on every API that tells them") {
    for (const api_format api : {openai_chat, ollama, ollama_generate, anthropic}) {
        engine e = engine_of(20_ms);
        e.reasoning = 50_pct;
        const logging_server server(e);
        scenario s = brief(endpoint{.url = server.url(), .model = "simulated", .api = api},
                           (std::string("reasoning ") + std::to_string(static_cast<int>(api))).c_str());
        s.workload = prompts({"a question"});
        s.options.max_tokens = 12;
        s.slos = {mean(ttft) <= 10_s, mean(time_to_first_answer) <= 20_s,
                  p50(second_token_gap) <= 10_s, mean(tokens_per_event) >= 0.5,
                  goodput(time_to_first_answer <= 20_s) >= 60_pct};
        const result r = run(s);
        for (const record& q : r.requests()) {
            REQUIRE(q.status == request_status::ok);
            CHECK(q.first_token_ns < q.second_token_ns);
            CHECK(q.second_token_ns < q.first_answer_ns);
            CHECK(q.first_answer_ns < q.last_token_ns);
            if (api == openai_chat) CHECK(q.reasoning_tokens == q.output_tokens / 2);
            else CHECK(q.reasoning_tokens == -1);
        }
        for (const slo_verdict& v : r.verdicts()) {
            CAPTURE(std::string(v.line()));
            CHECK(v.outcome == verdict::pass);
        }
        // Six tokens of twelve are thought: five steps of 20 ms lie between the first of either.
        CHECK(r.measured(p50(time_to_first_answer)) > r.measured(p50(ttft)) + 0.050);
        check_rejudged(r, s.slos);
    }
}

TEST_CASE("reports have the first answer and the share of reasoning where there was some") {
    engine e = engine_of(2_ms);
    e.reasoning = 50_pct;
    scenario s = brief(simulated(e), "told");
    s.workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(8)};
    run(s);
    const std::string json = content_of(report_file("result.json"));
    CHECK(json.find("\"time_to_first_answer\"") != std::string::npos);
    CHECK(json.find("\"reasoning_tokens\"") != std::string::npos);
}
