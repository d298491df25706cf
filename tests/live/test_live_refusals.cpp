// Servers that serve none of a load: told before it, in their own words.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "support/relay.hpp"
#include "support/scripted_server.hpp"
#include "support/sockets.hpp"
#include "support/texts.hpp"

#include <string>
#include <utility>

#include <sys/socket.h>

using namespace llmbench;
using namespace live;
using texts::holds;

TEST_CASE("a server that serves none of a load says so before it") {
    const auto answering = [](const char* status, const char* body) {
        return [=](int fd, int) {
            char taken[4096];
            const auto n = ::recv(fd, taken, sizeof taken, 0);
            const bool is_get = n > 3 && std::string(taken, 3) == "GET";
            const std::string all =
                is_get ? scripted::json("200 OK", R"({"data":[{"id":"m"}]})")
                       : scripted::json(status, body);
            ::send(fd, all.data(), all.size(), sockets::no_signal);
        };
    };
    const std::pair<const char*, std::string> refusals[] = {
        {"401 Unauthorized", "answered HTTP 401: not for you; no key was sent"},
        {"403 Forbidden", "answered HTTP 403: not for you"},
        {"404 Not Found", "POST /v1/chat/completions answered HTTP 404: not for you"}};
    for (const auto& [status, words] : refusals) {
        const int listener = relay::ipv4_listener();
        const relay::acceptor server(listener,
                                     answering(status, R"({"error":{"message":"not for you"}})"));
        const std::string url = "http://127.0.0.1:" + std::to_string(relay::port_of(listener));
        CHECK(holds(refusal_of(asking(endpoint{.url = url})), words));
    }
    const scripted::server server;
    CHECK(refusal_of(asking(endpoint{.url = server.url(), .model = "not listed"})) == "");
}
