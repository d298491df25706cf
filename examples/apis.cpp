// One gate on many APIs. Each server speaks its own; what is measured is the same everywhere.
//   llmbench serve --slots 32 &          speaks all of them
//   LLMBENCH_URL=http://127.0.0.1:8000 ./apis
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_embeddings.hpp"

using namespace llmbench;

static void answers_in_time(const endpoint& server) {
    gate({
        .target = server,
        .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(16)},
        .arrivals = closed_loop(8),
        .requests = 24,
        .slos = {p50(ttft) <= 2_s, mean(tpot) <= 200_ms},
        .options = {.temperature = 0.0},
    });
}

TEST_CASE("vLLM, SGLang, llama.cpp, LMDeploy and others: chat") {
    answers_in_time({.api = openai_chat});
}
TEST_CASE("the same servers: completions") {
    answers_in_time({.api = openai_completions});
}
TEST_CASE("Text Generation Inference") {
    answers_in_time({.api = tgi});
}
TEST_CASE("Triton") {
    answers_in_time({.model = "simulated", .api = triton});
}
TEST_CASE("Ollama") {
    answers_in_time({.api = ollama});
}
TEST_CASE("llama-server's own") {
    answers_in_time({.api = llama_cpp});
}
TEST_CASE("SGLang's own") {
    answers_in_time({.api = sglang});
}
TEST_CASE("OpenAI's responses") {
    answers_in_time({.api = openai_responses});
}
TEST_CASE("Anthropic-style messages") {
    answers_in_time({.api = anthropic});
}

// These generate nothing: what is judged is how fast they read.
static void reads_in_time(const endpoint& server) {
    gate({
        .target = server,
        .workload = synthetic{.prompt_tokens = fixed(64)},
        .arrivals = closed_loop(8),
        .requests = 100,
        .slos = {p95(e2e) <= 2_s, input_throughput >= 100_tps},
    });
}

TEST_CASE("embeddings") {
    reads_in_time({.api = openai_embeddings});
}
TEST_CASE("a reranker") {
    reads_in_time({.api = rerank});
}
TEST_CASE("vLLM's scores") {
    reads_in_time({.api = score});
}
