// https:// over sockets: handshakes, sessions that are gone on with, and long messages.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "support/scripted_server.hpp"

using namespace llmbench;
using namespace live;

#ifndef LLMBENCH_WITH_TLS
TEST_CASE("TLS over sockets is left out where the program was built without OpenSSL") {
    MESSAGE("skipped: this program was built without OpenSSL");
}
#else
#include "support/certificates.hpp"
#include "support/relay.hpp"
#include "support/tls_server.hpp"

#include "llmbench_websocket.hpp"

namespace {

void send_all(int fd, const std::string& bytes) {
    ::send(fd, bytes.data(), bytes.size(), sockets::no_signal);
}
std::string event_frame(const std::string& json) {
    return std::string("\x81\x7E") + static_cast<char>(json.size() >> 8) +
           static_cast<char>(json.size() & 0xFF) + json;
}
/// Upgrades, and answers each frame with two words; without an upgrade, over HTTP.
void speak_websocket(int fd, int going) {
    std::string heard;
    pollfd p[2] = {{going, POLLIN, 0}, {fd, POLLIN, 0}};
    char buffer[65536];
    bool is_open = false;
    std::string accept;
    int n = 0;  // answers
    const auto ending = [&] {
        ++n;
        return R"({"type":"response.completed","response":{"id":"r)" + std::to_string(n) + accept +
               R"(","status":"completed","usage":{"input_tokens":)" + std::to_string(40 * n) +
               R"(,"output_tokens":2}},"padding":")" + std::string(100, '-') + "\"}";
    };
    const std::string word = R"({"type":"response.output_text.delta","delta":" word","padding":")" +
                             std::string(100, '-') + "\"}";
    while (::poll(p, 2, -1) > 0 && !p[0].revents) {
        const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
        if (got <= 0) return;
        heard.append(buffer, static_cast<std::size_t>(got));
        const std::size_t head = heard.find("\r\n\r\n"), key = heard.find("Sec-WebSocket-Key: ");
        if (is_open) {
            const auto octet = [&](std::size_t i) { return static_cast<unsigned char>(heard[i]); };
            if (heard.size() < 8 || heard.size() < 8u + octet(2) * 256u + octet(3)) continue;
            heard.clear();
            send_all(fd, event_frame(word) + event_frame(word) + event_frame(ending()));
        } else if (head != std::string::npos && key != std::string::npos) {
            is_open = true;
            accept = accepted_key_of(heard.substr(key + 19, 24));
            heard.clear();
            send_all(fd, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                         "Sec-WebSocket-Accept: " + accept + "\r\n\r\n");
        } else if (heard.ends_with("\r\n\r\n") || heard.ends_with("}")) {
            const std::string body = heard.starts_with("GET") ? R"({"data":[{"id":"m"}]})"
                                     : "data: " + word + "\n\ndata: " + ending() + "\n\n";
            heard.clear();
            send_all(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: " +
                             std::to_string(body.size()) + "\r\n\r\n" + body);
        }
    }
}

}  // namespace

TEST_CASE("a WebSocket behind TLS carries the turns of a conversation") {
    const int listener = relay::ipv4_listener();
    const int port = relay::port_of(listener);
    const relay::acceptor server(listener, speak_websocket);
    for (const std::size_t piece : {std::size_t{0}, std::size_t{1}}) {
        CAPTURE(piece);
        const tls::front front(port, {{.who = &known().good, .piece = piece}});
        endpoint at = trusted(front.url());
        at.model = "m";
        at.api = openai_responses;
        at.transport = websocket();
        scenario s = asking(at, 6);
        s.workload = conversations{.turns = fixed(3), .user_tokens = fixed(100), .force_output = false};
        s.options.server_history = true;
        const result r = run(s);
        const auto records = all_ok(r);
        REQUIRE(records.size() == 6);
        for (const record& x : records) {
            CHECK(x.events == 2);
            CHECK(x.prompt_tokens == 40 * (x.turn + 1));
        }
        CHECK(r.self_check().connections_opened == 2);
        CHECK(holds(content_of(report_file("result.json")), "\"transport\": \"WebSocket\""));
    }
}

TEST_CASE("a server behind TLS 1.2 or 1.3 is measured like any other") {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        CAPTURE(version);
        const scripted::server server({scripted::healthy(4, scripted::framing::chunked)});
        const tls::front front(server.port(), {{.who = &known().good, .version = version}});
        const result r = run(asking(trusted(front.url()), 5));
        for (const record& x : all_ok(r)) {
            CHECK(x.events == 4);
            CHECK(x.sent_ns >= x.connected_ns);
        }
        CHECK(front.server_name() == "localhost");
        CHECK(front.protocol() == "\x08http/1.1");
        REQUIRE(server.log().size() == 5);
        CHECK(server.log()[0].header("Host") == front.url().substr(8));
        CHECK(r.self_check().connections_opened == 1);
        CHECK(front.resumed() == 0);
#if defined(__linux__) && !defined(LLMBENCH_WAIT_BY_ASIO)
        CHECK(r.self_check().stamped_fraction > 0.9);  // the socket below has them
        CHECK(holds(content_of(report_file("result.json")), "\"stamps\": \"kernel\""));
#endif
    }
}

// The last one, for every later test would write its long prompt into the reports again.
TEST_CASE("long requests and long answers pass through TLS whole") {
    const scripted::server server({scripted::healthy(2000)});
    const tls::front front(server.port(), {{.who = &known().good}});
    scenario s = asking(trusted(front.url()), 2);
    const std::string prompt(150000, 'a');
    s.workload = prompts({prompt});
    for (const record& r : all_ok(run(s))) CHECK(r.events == 2000);
    REQUIRE(server.log().size() == 2);
    CHECK(holds(server.log()[1].body, prompt));
}
#endif
