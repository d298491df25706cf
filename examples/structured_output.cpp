// What does structured output cost? The same traffic twice, free and held to a schema, and a limit on
// the difference. Any field that llmbench does not know reaches the server in the same way.
#define LLMBENCH_MAIN
#include "llmbench.hpp"

using namespace llmbench;

static const scenario chat = {
    // The simulated server ignores response_format, so here it costs nothing.
    .target = simulated(),  // your own server: remove this line and set LLMBENCH_URL
    .workload = synthetic{.prompt_tokens = fixed(200), .output_tokens = fixed(64)},
    .arrivals = closed_loop(8),
    .requests = 60,
};

TEST_CASE("a schema slows answers down by at most a fifth") {
    const result free = run(chat);
    REQUIRE(free.self_check().ok);

    scenario structured = chat;
    structured.options.extra_body = R"({"response_format": {"type": "json_schema", "json_schema": {
        "name": "city", "schema": {"type": "object", "required": ["name", "people"], "properties": {
            "name": {"type": "string"}, "people": {"type": "integer"}}}}}})";
    // The limits are of this machine and this hour. How well the first run knows its own means is not
    // in the verdict's interval, so a fifth is meant, and not a twentieth.
    const auto at_most = [&](auto what) {
        return what <= time_span::from_seconds(1.20 * free.estimate(what).value);
    };
    structured.slos = {at_most(mean(tpot)), at_most(mean(ttft))};
    gate(structured);
}
