// Servers that serve none of a load: told before it, in their own words.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "virtual/scripted_server.hpp"
#include "support/texts.hpp"

#include <string>
#include <utility>

using namespace llmbench;
using namespace live;
using texts::holds;

TEST_CASE("a server that serves none of a load says so before it") {
    const std::pair<const char*, std::string> refusals[] = {
        {"401 Unauthorized", "answered HTTP 401: not for you; no key was sent"},
        {"403 Forbidden", "answered HTTP 403: not for you"},
        {"404 Not Found", "POST /v1/chat/completions answered HTTP 404: not for you"}};
    for (const auto& [status, words] : refusals) {
        scripted::server server;
        server.answer_check({scripted::send(scripted::json(
            status, R"({"error":{"message":"not for you"}})"))});
        CHECK(holds(refusal_of(asking(endpoint{.url = server.url()})), words));
        CHECK(server.log().empty());
    }
    const scripted::server server;
    CHECK(refusal_of(asking(endpoint{.url = server.url(), .model = "not listed"})) == "");
}

TEST_CASE("a first answer from cold is asked of what is cold, and nothing is left cold for nothing") {
    const scripted::server server;
    scenario s = asking(endpoint{.url = server.url()}, 10);
    s.repeats = 2;
    s.slos = {first_answer_time <= 60_s};
    CHECK(holds(refusal_of(s), "the target is no process, and no endpoint with a command"));
    CHECK(holds(refusal_of(asking(endpoint{.url = server.url(), .cold = "true"})),
                "endpoint.cold is a command, and no objective is on first_answer_time"));
    CHECK(server.log().empty());
}

TEST_CASE("a simulated server whose steps take no time is refused before the load") {
    engine e;
    e.decode_step = 0_s;
    CHECK(holds(refusal_of(asking(simulated(e))), "engine.decode_step is 0 s: from 1e-06 to 3600 s"));
}
