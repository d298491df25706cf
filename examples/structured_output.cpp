// What does structured output cost? One server, asked in turns for free text and for text that is held
// to a schema, on the same prompts: the cost is a ratio with an interval, and a limit on it is a gate.
// Any field that llmbench does not know reaches the server in the same way.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

using namespace llmbench;

static const char* const city = R"({"response_format": {"type": "json_schema", "json_schema": {
    "name": "city", "schema": {"type": "object", "required": ["name", "people"], "properties": {
        "name": {"type": "string"}, "people": {"type": "integer"}}}}}})";

TEST_CASE("a schema slows answers down by at most a fifth") {
    gate({
        // The simulated server ignores response_format, so here it costs nothing.
        .target = simulated(),  // your own server: remove this line and set LLMBENCH_URL
        .baseline = otherwise{.options = request_options{}},
        .workload = synthetic{.prompt_tokens = fixed(200), .output_tokens = fixed(64)},
        .arrivals = closed_loop(8),
        .requests = 60,
        .slos = {mean(tpot) <= 1.20 * baseline, advisory(mean(ttft) <= 1.20 * baseline)},
        .options = {.extra_body = city},
    });
}
