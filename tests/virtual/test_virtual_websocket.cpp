// The Responses API over a WebSocket: one socket a conversation, and servers that break the protocol.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "support/texts.hpp"
#include "virtual/execution_environment.hpp"
#include "virtual/scripted_server.hpp"
#include "llmbench_websocket.hpp"

#include <functional>
#include <map>
#include <memory>
#include <picojson.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace llmbench;
using namespace live;
using texts::holds;

namespace {

/// A frame of a server, which does not mask it.
std::string frame(int opcode, const std::string& payload, bool is_last = true) {
    std::string f(1, static_cast<char>((is_last ? 0x80 : 0) | opcode));
    if (payload.size() < 126) f += static_cast<char>(payload.size());
    else {
        f += static_cast<char>(126);
        f += static_cast<char>(payload.size() >> 8);
        f += static_cast<char>(payload.size() & 0xFF);
    }
    return f + payload;
}
std::string text(const std::string& json) { return frame(1, json); }
constexpr const char* content = R"({"type":"response.output_text.delta","delta":" word"})";
std::string end_of(const std::string& id, int input_tokens) {
    return R"({"type":"response.completed","response":{"id":")" + id +
           R"(","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},)"
           R"("usage":{"input_tokens":)" + std::to_string(input_tokens) + R"(,"output_tokens":2}}})";
}
std::string delta() { return text(content); }
std::string ending(const std::string& id, int input_tokens = 30) { return text(end_of(id, input_tokens)); }
std::string answer(const std::string& id, int input_tokens = 30) {
    return delta() + delta() + ending(id, input_tokens);
}

/// What came over one socket, and how it began and ended.
struct socket_log {
    std::string upgrade{};
    std::vector<std::string> messages{};  // decoded
    int pongs = 0, closes = 0;
};
/// "" as the answer to a message ends the connection; HTTP requests that are no upgrades get a
/// healthy answer of a stream.
class websocket_server {
public:
    using answers = std::function<std::string(const std::string& message, std::size_t nth_of_socket)>;
    explicit websocket_server(answers with)
        : with_(std::move(with)), port_([this](const std::shared_ptr<virtual_world::end>& e) {
              return std::make_shared<connection>(*this, e);
          }) {}
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_.number()); }
    std::vector<socket_log> sockets() const {
        std::vector<socket_log> all;
        for (const auto& s : sockets_) all.push_back(*s);
        return all;
    }
    /// Sent after the upgrade, before any message.
    std::string greeting{};
    /// Cuts what is sent into pieces of this size, a microsecond apart; 0: whole.
    std::size_t pieces = 0;

private:
    class connection final : public virtual_world::talk, public std::enable_shared_from_this<connection> {
    public:
        connection(websocket_server& of, const std::shared_ptr<virtual_world::end>& e) : of_(of), end_(e) {}
        void on_bytes(std::string_view bytes) override {
            held_ += bytes;
            if (!log_) take_http();
            if (log_) take_frames();
        }
        void on_end() override {}

    private:
        void take_http() {
            const std::size_t end = held_.find("\r\n\r\n");
            if (end == std::string::npos) return;
            const std::string head = held_.substr(0, end + 2);
            if (!holds(head, "Upgrade: websocket")) {
                const std::size_t at = head.find("Content-Length: ");
                const std::size_t n = at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
                if (held_.size() < end + 4 + n) return;
                held_.erase(0, end + 4 + n);
                const bool models = head.starts_with("GET");
                const std::string id = "c" + std::to_string(++of_.by_http_);
                const std::string body = models ? R"({"object":"list","data":[{"id":"m"}]})"
                    : scripted::sse_event(content) + scripted::sse_event(content) +
                      scripted::sse_event(end_of(id, 5 + 3 * of_.by_http_));
                send(scripted::sized("200 OK", models ? "application/json" : "text/event-stream", body));
                return;
            }
            held_.erase(0, end + 4);
            log_ = std::make_shared<socket_log>();
            log_->upgrade = head;
            of_.sockets_.push_back(log_);
            const std::size_t at = head.find("Sec-WebSocket-Key: ") + 19;
            send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: upgrade\r\n"
                 "Sec-WebSocket-Accept: " + accepted_key_of(head.substr(at, head.find("\r\n", at) - at)) +
                 "\r\n\r\n" + of_.greeting);
        }
        void take_frames() {
            while (held_.size() >= 6) {
                const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(held_[i]); };
                REQUIRE((byte(1) & 0x80) != 0);  // a client masks
                std::size_t n = byte(1) & 127, at = 2;
                if (n == 126) {
                    n = static_cast<std::size_t>(byte(2) << 8 | byte(3));
                    at = 4;
                }
                if (held_.size() < at + 4 + n) return;
                std::string payload = held_.substr(at + 4, n);
                for (std::size_t i = 0; i < n; ++i)
                    payload[i] = static_cast<char>(payload[i] ^ held_[at + i % 4]);
                const int opcode = byte(0) & 15;
                held_.erase(0, at + 4 + n);
                if (opcode == 10) ++log_->pongs;
                if (opcode == 8) ++log_->closes;
                if (opcode != 1) continue;
                log_->messages.push_back(payload);
                const std::string said = of_.with_(payload, log_->messages.size());
                if (said.empty()) {
                    if (const auto e = end_.lock()) e->close();
                    return;
                }
                send(said);
            }
        }
        void send(const std::string& bytes) {
            if (of_.pieces == 0) {
                if (const auto e = end_.lock()) e->send(bytes);
                return;
            }
            for (std::size_t at = 0, n = 0; at < bytes.size(); at += of_.pieces)
                virtual_world::after(static_cast<long long>(++n) * 1000,
                                     [piece = bytes.substr(at, of_.pieces), known = end_] {
                                         if (const auto e = known.lock()) e->send(piece);
                                     });
        }
        websocket_server& of_;
        const std::weak_ptr<virtual_world::end> end_;
        std::string held_{};
        std::shared_ptr<socket_log> log_{};
    };

    const answers with_;
    std::vector<std::shared_ptr<socket_log>> sockets_{};
    int by_http_ = 0;
    virtual_world::port port_;
};

scenario talk(const std::string& url, int conversations_of_three = 2) {
    scenario s;
    s.target = endpoint{.url = url, .model = "m", .api = openai_responses, .transport = websocket()};
    s.workload = conversations{.turns = fixed(3), .user_tokens = fixed(20), .output_tokens = fixed(2),
                               .force_output = false};
    s.options.server_history = true;
    s.arrivals = closed_loop(1);
    s.warmup = 0;
    s.requests = 3 * conversations_of_three;
    s.repeats = 1;
    s.limits = {.first_event = 2_s, .between_events = 2_s, .total = 10_s};
    return s;
}
record only_record(const std::string& said) {
    const websocket_server server([&](const std::string&, std::size_t) { return said; });
    scenario s = talk(server.url(), 1);
    s.requests = 1;
    const auto all = records_of(s);
    REQUIRE(all.size() == 1);
    return all[0];
}

}  // namespace

TEST_CASE("a conversation has one socket for all its turns, and requests are messages") {
    for (const std::size_t pieces : {0u, 1u, 7u}) {
        CAPTURE(pieces);
        int n = 0;
        websocket_server server([&](const std::string&, std::size_t nth) {
            ++n;
            return answer("r" + std::to_string(n), static_cast<int>(nth) * 40);
        });
        server.pieces = pieces;
        const auto records = records_of(talk(server.url()));
        REQUIRE(records.size() == 6);
        for (const record& r : records) {
            CAPTURE(error(r));
            CHECK(status(r) == "ok");
            CHECK(r.output_tokens == 2);
            CHECK(r.prompt_tokens == (r.turn + 1) * 40);
        }
        const std::vector<socket_log> sockets = server.sockets();
        REQUIRE(sockets.size() == 2);
        CHECK(sockets[0].upgrade.substr(sockets[0].upgrade.find("-Key: ")) !=
              sockets[1].upgrade.substr(sockets[1].upgrade.find("-Key: ")));
        int id = 0;
        for (const socket_log& s : sockets) {
            CHECK(s.upgrade.starts_with("GET /v1/responses HTTP/1.1\r\n"));
            CHECK(holds(s.upgrade, "Sec-WebSocket-Version: 13\r\n"));
            CHECK_FALSE(holds(s.upgrade, "Content-Length"));
            REQUIRE(s.messages.size() == 3);
            for (std::size_t i = 0; i < 3; ++i) {
                picojson::value v;
                REQUIRE(picojson::parse(v, s.messages[i]).empty());
                CHECK(v.get("type").to_str() == "response.create");
                CHECK(v.get("model").to_str() == "m");
                CHECK_FALSE(v.contains("stream"));
                CHECK(v.contains("previous_response_id") == (i > 0));
                if (i > 0) CHECK(v.get("previous_response_id").to_str() == "r" + std::to_string(id));
                ++id;
            }
        }
    }
}

TEST_CASE("pings are answered, between turns and within an answer, and messages may be in fragments") {
    const std::string whole = R"({"type":"response.output_text.delta","delta":" word"})";
    const std::string fragments = frame(1, whole.substr(0, 9), false) + frame(9, "are you there") +
                                  frame(0, whole.substr(9), false) + frame(0, "");
    int n = 0;
    websocket_server server([&](const std::string&, std::size_t) {
        ++n;
        return fragments + frame(10, "unasked") + delta() + ending("r" + std::to_string(n), 30 * n) +
               frame(9, "idle");
    });
    server.greeting = frame(9, "hello");
    for (const record& r : records_of(talk(server.url()))) {
        CAPTURE(error(r));
        CHECK(status(r) == "ok");
        CHECK(r.events == 2);
    }
    for (const socket_log& s : server.sockets()) {
        CHECK(s.messages.size() == 3);
        CHECK(s.pongs >= 5);  // the client may leave before the last answer's two are heard
    }
}

TEST_CASE("frames that no server may send fail their request") {
    const auto broken = [](const std::string& said) {
        const record r = only_record(said);
        CHECK(status(r) != "ok");
        return error(r);
    };
    const std::string is = "the WebSocket is broken: ";
    std::string masked = delta();
    masked[1] = static_cast<char>(masked[1] | 0x80);
    CHECK(broken(masked) == is + "a frame of the server is masked");
    std::string reserved = delta();
    reserved[0] = static_cast<char>(reserved[0] | 0x40);
    CHECK(broken(reserved) == is + "a frame has a reserved bit, and no extension was agreed on");
    CHECK(broken(frame(3, "x")) == is + "a frame has opcode 3");
    CHECK(broken(frame(0, "x")) == is + "a message goes on that has not begun");
    CHECK(broken(frame(1, "x", false) + frame(1, "y")) == is + "a message begins within another");
    CHECK(broken(frame(9, "x", false)) == is + "a control frame is in fragments, or over 125 bytes");
    CHECK(broken(frame(9, std::string(126, 'x'))) == is + "a control frame is in fragments, or over 125 bytes");
    CHECK(broken(std::string("\x81\x7F\0\0\0\1\0\0\0\0", 10)) == is + "a message is over 16 MiB");
    CHECK(broken(std::string("\x81\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 10)) == is + "a message is over 16 MiB");
    CHECK(broken(std::string("\x81\x7E\0\5", 4)) == is + "the length of a frame takes more bytes than it needs");
    CHECK(broken(frame(2, "x")) == "the server sent a binary message: events are text");
    CHECK(broken(delta() + frame(8, "\x03\xF3" "too long")) == "the server closed the WebSocket: 1011 (too long)");
    CHECK(broken(delta() + frame(8, "")) == "the server closed the WebSocket");
    CHECK(holds(broken(text("{not json")), "an event is not a JSON object"));
}

TEST_CASE("a WebSocket against plain HTTP, one server, in turns and at once") {
    int n = 0;
    const websocket_server server([&](const std::string&, std::size_t nth) {
        ++n;
        return answer("r" + std::to_string(n), static_cast<int>(nth) * 40);
    });
    scenario s = talk(server.url(), 20);
    s.baseline = endpoint{.url = server.url(), .model = "m", .api = openai_responses};
    s.slos = {mean(later_turn_ttft) <= 1.25 * baseline};
    s.repeats = 4;
    const auto sent = [&] {
        const result r = run(s);
        CHECK(r.verdicts()[0].outcome == verdict::pass);
        std::map<run_variant, std::size_t> all;
        for (const record& q : r.requests()) {
            CHECK(error(q) == "");
            ++all[q.variant];
        }
        return all;
    };
    const auto in_turns = sent();
    CHECK(in_turns.at(run_variant::candidate) == 4 * 60);
    CHECK(in_turns.at(run_variant::baseline) == 4 * 60);
    std::size_t messages = 0;
    for (const socket_log& socket : server.sockets()) messages += socket.messages.size();
    CHECK(messages == 4 * 60);
    s.pairs = at_once;
    s.arrivals = poisson(1_rps);
    s.requests = 0;
    s.duration = 70_s;
    s.repeats = {};
    const auto together = sent();
    CHECK(together.at(run_variant::candidate) == together.at(run_variant::baseline));
}

TEST_CASE("a turn that meets the end of its socket goes over a new one, as over HTTP") {
    for (const std::string& end : {frame(8, "\x03\xE9"), std::string(),
                                   text(R"({"type":"error","status":400,"error":{"code":)"
                                        R"("websocket_connection_limit_reached","message":"60 minutes"}})")}) {
        int n = 0;
        bool has_ended = false;
        const websocket_server server([&](const std::string&, std::size_t nth) {
            if (nth == 2 && !std::exchange(has_ended, true)) return end;
            ++n;
            return answer("r" + std::to_string(n), 40 * n);
        });
        const auto records = records_of(talk(server.url(), 1));
        REQUIRE(records.size() == 3);
        for (const record& r : records) {
            CAPTURE(error(r));
            CHECK(status(r) == "ok");
            CHECK(r.resends == (r.turn == 1 ? 1 : 0));
        }
        const std::vector<socket_log> sockets = server.sockets();
        REQUIRE(sockets.size() == 2);
        CHECK(sockets[0].messages.back() == sockets[1].messages.front());
        CHECK(sockets[0].closes == (end.empty() ? 0 : 1));
    }
}

TEST_CASE("an API that the transport does not carry is refused") {
    const websocket_server server([](const std::string&, std::size_t) { return answer("r"); });
    CHECK(refusal_to_bring_up(
              endpoint{.url = server.url(), .model = "m", .transport = websocket()}) ==
          "endpoint.transport does not carry openai_chat: websocket() is for .api = openai_responses");
}
