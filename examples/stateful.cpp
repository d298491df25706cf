// What does it save to leave the conversation on the server? Later turns with `previous_response_id`
// against the whole history in each turn, one gate on one server:
//   LLMBENCH_URL=http://127.0.0.1:8000 ./stateful
// At the same time in the place of turns: .pairs = at_once, .arrivals = poisson(1_rps), .duration = 70_s.
// Over a WebSocket: include llmbench_websocket.hpp, and set .transport = websocket() in the target.
#define LLMBENCH_MAIN
#include "llmbench.hpp"

using namespace llmbench;

TEST_CASE("later turns are as fast where the server keeps the history") {
    gate({
        .target = endpoint{.api = openai_responses},
        .baseline = otherwise{.options = request_options{}},  // sends the whole history
        .workload = conversations{.turns = fixed(4), .user_tokens = fixed(32), .output_tokens = fixed(16)},
        .arrivals = closed_loop(4),
        .requests = 200,
        .slos = {mean(later_turn_ttft) <= 1.25 * baseline},
        .options = {.server_history = true},
    });
}
