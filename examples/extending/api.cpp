// An API of your own: two functions, one that writes a request and one that reads a part of an answer.
// Everything else is as with ours: connections, times of arrival, validity, records, reports, which
// call it by its name.
//
// `.write` is given the prompt, the model and the length, and adds the fields of a JSON object; those
// of options.extra_body follow. `.read` is given one part of the answer, cut by `.framed`: the data of a
// server-sent event (answer_parts::events, the default), a line, bare bytes as they come (answer_parts::pieces), or
// all of it (answer_parts::document). It says what the part brings: content, tokens so far, why the answer
// ends, that it ends, or an error. An event without content is no token, so what only opens an answer
// says nothing. Neither captures anything. An answer that ends without end(), finish() or
// `.ends_with_body` was cut off, and failed; so did one whose reading throws.
//
// `.tells_usage`: answers say how many tokens they have, and one that does not makes metrics of tokens
// invalid. Without it each event passes for a token. `.models` is the path of a list of models as
// OpenAI's; without it the model is what endpoint{.model} says.
#define LLMBENCH_MAIN
#include "llmbench.hpp"

using namespace llmbench;

namespace {

// POST /v1/speak  {"model": "m", "say": "...", "words": 32, "live": true}
// data: {"kind": "piece", "text": " word"}
// data: {"kind": "bye", "why": "length", "asked": 12, "said": 32}
// data: {"kind": "sorry", "text": "no room left"}
const api acme{
    .name = "acme",
    .path = "/v1/speak",
    .write = [](api_request& r) {
        r.text("model", r.model()).text("say", r.prompt()).flag("live", r.streams());
        if (r.max_tokens() > 0) r.number("words", static_cast<double>(r.max_tokens()));
    },
    .read = [](api_event& e) {
        if (e.text("kind") == "piece") e.content(e.text("text"));
        if (e.text("kind") == "sorry") e.error(e.text("text"));
        if (e.text("kind") != "bye") return;
        e.prompt_tokens(e.number("asked"));
        e.output_tokens(e.number("said"));
        e.finish(e.text("why"));
        e.end();
    },
    .tells_usage = true,
    .forces_lengths = true,
};

}  // namespace

TEST_CASE("acme's server speaks at once") {
    gate({
        .target = endpoint{.model = "m", .api = acme},
        .workload = synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(16)},
        .arrivals = closed_loop(2),
        .requests = 60,
        .slos = {p90(ttft) <= 1_s, mean(tpot) <= 200_ms, output_throughput >= 5_tps},
    });
}
