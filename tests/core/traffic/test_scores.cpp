// APIs that generate nothing: which questions they are asked, and which are refused.
#include "llmbench.hpp"
#include "core/dialects/table.hpp"
#include "core/traffic/requests.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/planning.hpp"
#include "support/texts.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using texts::holds;

namespace {
scenario asking(const slo_list& slos) {
    return {.workload = synthetic{.prompt_tokens = fixed(64)}, .arrivals = closed_loop(4),
            .requests = 200, .slos = slos};
}
plan plan_on(api_format api, const scenario& s) {
    return planned(s, 1, {}, scenario_use::measure, traits_of(api));
}
std::string refusal_on(api_format api, const scenario& s) {
    return texts::refusal_of([&] { plan_on(api, s); });
}
}  // namespace

TEST_CASE("what scores is planned without output lengths, and is not streamed") {
    for (const api_format api : {api_format::openai_embeddings, api_format::rerank, api_format::score}) {
        const plan p = plan_on(api, asking({p90(e2e) <= 1_s, input_throughput >= 100_tps,
                                            request_throughput >= 1_rps, error_rate <= 1_pct,
                                            goodput(e2e <= 1_s) >= 90_pct}));
        CHECK(!p.sent->common.stream);
        CHECK(!p.sent->forces_length);
        CHECK(p.sent->workload_text == "synthetic, prompt 64 tokens");
        CHECK(forced_tokens(p, 0) == 0);
    }
    CHECK(options_text(plan_on(api_format::rerank, asking({}))) == "8 documents");
    CHECK(options_text(plan_on(api_format::score, asking({}))) == "8 documents");
    CHECK(options_text(plan_on(api_format::openai_embeddings, asking({}))) == "");
    scenario cut = asking({});
    cut.options.documents = 1;
    CHECK(options_text(plan_on(api_format::rerank, cut)) == "1 documents");
    cut.options.documents = 25;
    CHECK(options_text(plan_on(api_format::openai_embeddings, cut)) == "25 inputs");
    CHECK(options_text(plan_on(api_format::score, cut)) == "25 documents");
}

TEST_CASE("an objective on tokens that nobody generates is refused in a sentence") {
    const slo all[] = {p90(ttft) <= 1_s, mean(tpot) <= 1_s, p50(itl) <= 1_s,
                       output_throughput >= 1_tps, total_throughput >= 1_tps,
                       prefill_throughput >= 1_tps, mean(normalized_latency) <= 1_s,
                       goodput(ttft <= 1_s) >= 90_pct, p50(time_to_first_answer) <= 1_s,
                       mean(tokens_per_event) >= 1.0, p5(decode_speed) >= 1_tps};
    for (const slo& s : all) {
        CAPTURE(str(s.text()));
        CHECK(refusal_on(api_format::rerank, asking({s})) ==
              "the SLO " + str(s.text()) + " is refused: rerank answers in one piece and generates "
              "no tokens: use e2e, input_throughput, request_throughput or error_rate");
        CHECK(refusal_on(openai_chat, asking({s})) == "");
    }
}

TEST_CASE("options of generation and conversations are refused where nothing is generated") {
    const auto refused = [](const request_options& o) {
        scenario s = asking({});
        s.workload = prompts({"one two"});
        s.options = o;
        return refusal_on(api_format::openai_embeddings, s);
    };
    CHECK(refused({}) == "");
    CHECK(refused({.max_tokens = 5}) ==
          "options.max_tokens is set, and openai_embeddings generates nothing that it could be of");
    CHECK(holds(refused({.temperature = 0.5}), "options.temperature is set"));
    CHECK(holds(refused({.system_prompt = "be"}), "options.system_prompt is set"));
    CHECK(holds(refused({.ignore_eos = true}), "options.ignore_eos is set"));
    CHECK(refused({.documents = 10001}) ==
          "options.documents is 10001: it runs from 1 to 10000, and 0 is the API's own");
    CHECK(holds(refused({.documents = -1}), "options.documents is -1"));
    CHECK(holds(refused({.extra_body = R"({"input": "x"})"}), "that field belongs to llmbench"));
    CHECK(refused({.extra_body = R"({"dimensions": 256})"}) == "");
    for (const char* ours : {"text_1", "text_2", "items", "query", "documents"})
        CHECK(holds(refused({.extra_body = ("{\"" + std::string(ours) + "\": 1}").c_str()}),
                    "that field belongs to llmbench"));
    CHECK(refusal_on(api_format::sglang_score, asking({})) ==
          "options.extra_body has no \"label_token_ids\": sglang_score answers no request without it");
    scenario talk = asking({});
    talk.workload = conversations{};
    CHECK(holds(refusal_on(api_format::rerank, talk), "workload is of conversations, and rerank"));
}
