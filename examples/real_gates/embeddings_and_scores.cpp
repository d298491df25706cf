// SGLang's gates on what generates nothing, in our words; see the README beside this. A simulated server speaks
// the API that is named:
//   LLMBENCH_API=openai_embeddings ./embeddings_and_scores -tc="embeddings*"
//   LLMBENCH_API=sglang_score ./embeddings_and_scores -tc="scores*"
// In your CI: `.target = endpoint{.api = openai_embeddings}`.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_embeddings.hpp"
#include "llmbench_simulated.hpp"

#include <string>

using namespace llmbench;

static const any_target reader = simulated(engine{.decode_step = 3_ms, .prefill_per_token = 0.002_ms});

struct limits_of {
    int inputs;
    time_span average, slow;
};

// Theirs sends one text in each request, which a cache knows from the second one on; here each begins with new
// words, in every repeat. A throughput of one user is its latency once more: it has no line of its own.
TEST_CASE("embeddings of 1, 10, 25 and 50 inputs") {
    for (const limits_of& l : {limits_of{1, 23_ms, 34_ms}, {10, 44_ms, 52_ms}, {25, 72_ms, 101_ms}, {50, 126_ms, 200_ms}})
        gate({.name = "embeddings of " + std::to_string(l.inputs),
              .target = reader,
              .workload = synthetic{.prompt_tokens = fixed(500 * l.inputs)},
              .arrivals = closed_loop(1),
              .requests = 500,
              .slos = {mean(e2e) <= l.average, p95(e2e) <= l.slow},
              .options = {.documents = l.inputs}});
}

// A prompt is cut into a query and so many items, of about 180 tokens each; theirs has 120 in the query.
TEST_CASE("scores of 10, 25 and 50 items") {
    for (const limits_of& l : {limits_of{10, 32_ms, 40_ms}, {25, 37_ms, 42_ms}, {50, 54_ms, 64_ms}})
        gate({.name = "scores of " + std::to_string(l.inputs),
              .target = reader,
              .workload = synthetic{.prompt_tokens = fixed(180 * (l.inputs + 1))},
              .arrivals = closed_loop(1),
              .requests = 500,
              .slos = {mean(e2e) <= l.average, p95(e2e) <= l.slow},
              .options = {.documents = l.inputs, .extra_body = R"({"label_token_ids": [9454, 2753]})"}});
}
