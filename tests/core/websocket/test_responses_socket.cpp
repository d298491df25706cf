// What a WebSocket says after each read: the answer as HTTP, a reply, and whether it is kept, over or
// broken. Without a network.
#include "extensions/websocket/core/responses_socket.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

std::string frame(opcode what, const std::string& payload) {
    std::string f(1, static_cast<char>(0x80 | static_cast<int>(what)));
    if (payload.size() < 126) f += static_cast<char>(payload.size());
    else f += {static_cast<char>(126), static_cast<char>(payload.size() >> 8),
               static_cast<char>(payload.size() & 0xFF)};
    return f + payload;
}
std::string text_of(const std::string& json) { return frame(opcode::text, json); }
std::string created(const std::string& id) {
    return text_of(R"({"type":"response.created","response":{"id":")" + id + R"("}})");
}
std::string delta(const std::string& item = "") {
    return text_of(R"({"type":"response.output_text.delta","item_id":")" + item +
                   R"(","delta":" word"})");
}
std::string ending(const std::string& id, const std::string& item = "") {
    return text_of(R"({"type":"response.completed","response":{"id":")" + id +
                   R"(","output":[{"id":")" + item + R"("}],"usage":{"output_tokens":1}}})");
}
constexpr const char* limit_reached =
    R"({"type":"error","status":400,"error":{"code":"websocket_connection_limit_reached",)"
    R"("message":"60 minutes are over."}})";

/// The opcodes of a client's frames.
std::string opcodes_of(std::string_view s) {
    std::string all;
    while (s.size() >= 6) {
        std::size_t n = octet(s[1]) & 127, at = 6;
        if (n == 126) n = static_cast<std::size_t>(octet(s[2]) << 8 | octet(s[3])), at = 8;
        all += static_cast<char>('0' + (octet(s[0]) & 15));
        s.remove_prefix(at + n);
    }
    return all;
}

struct talk {
    responses_socket socket{};
    std::string upgrade = ask();
    std::string answer{}, reply{}, why{};
    socket_use use = socket_use::kept;
    bool has_more = false;

    std::string ask(const std::string& fields = "") {
        return str(socket.sent(text("POST /v1/responses HTTP/1.1\r\nHost: h\r\n" + fields +
                                    "\r\n{\"model\":\"m\",\"stream\":true}")));
    }
    void feed(const std::string& bytes) {
        const own_transport::carried c = socket.received(text(bytes));
        answer = str(c.answer);
        reply = str(c.reply);
        why = str(c.why);
        use = c.use;
        has_more = c.has_more;
    }
    std::string key() const {
        const std::size_t at = upgrade.find("Sec-WebSocket-Key: ") + 19;
        return upgrade.substr(at, upgrade.find("\r\n", at) - at);
    }
    std::string head(const std::string& connection = "Connection: keep-alive, Upgrade\r\n") const {
        return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n" + connection +
               "Sec-WebSocket-Accept: " + accepted_key(key()) + "\r\n\r\n";
    }
    bool is_answered() const { return answer.ends_with("\r\n0\r\n\r\n"); }
};
std::unique_ptr<talk> opened() {
    auto t = std::make_unique<talk>();
    t->feed(t->head());
    REQUIRE(t->use == socket_use::kept);
    REQUIRE(opcodes_of(t->reply) == "1");
    return t;
}
std::unique_ptr<talk> after_one_answer(const std::string& said) {
    auto t = opened();
    t->feed(said);
    REQUIRE(t->is_answered());
    REQUIRE(t->use == socket_use::kept);
    t->ask();
    return t;
}

}  // namespace

// ---- the upgrade

TEST_CASE("interim answers may come before the 101, in pieces of any size") {
    const std::string interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    for (const std::size_t piece : {1u, 7u, 1000u}) {
        CAPTURE(piece);
        talk t;
        std::string replies;
        const std::string all = interim + t.head();
        for (std::size_t at = 0; at < all.size(); at += piece) {
            t.feed(all.substr(at, piece));
            CHECK(t.answer == "");
            replies += t.reply;
        }
        CHECK(t.use == socket_use::kept);
        CHECK(opcodes_of(replies) == "1");
    }
    talk endless;
    for (int i = 0; i < 3000 && endless.answer.empty(); ++i) endless.feed("HTTP/1.1 100 Continue\r\n\r\n");
    CHECK(endless.use == socket_use::over);  // the reader of HTTP has the same limit
}

TEST_CASE("a 101 must say that it is this connection's") {
    talk t;
    t.feed(t.head("Connection: keep-alive\r\n"));
    CHECK(t.use == socket_use::broken);
    CHECK(t.why == "the server's 101 has no \"Connection: Upgrade\", so it is not this connection's");
    CHECK(t.reply == "");
    talk two;
    two.feed(two.head("Connection: keep-alive\r\nConnection: Upgrade\r\n"));
    CHECK(two.use == socket_use::kept);
    const std::string other = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n";
    talk elsewhere;
    elsewhere.feed(other + "Upgrade: h2c\r\n\r\n");
    CHECK(elsewhere.use == socket_use::broken);
    CHECK(elsewhere.why == "the server's upgrade is to \"h2c\", not to websocket");
    talk mixed_up;
    mixed_up.feed(other + "Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n");
    CHECK(mixed_up.use == socket_use::broken);
    CHECK(mixed_up.why == "the server's Sec-WebSocket-Accept does not belong to the key that was sent");
}

TEST_CASE("a refused upgrade is told as HTTP, and its connection is over") {
    talk t;
    const std::string refusal = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n";
    t.feed(refusal);
    CHECK(t.answer == refusal);
    CHECK(t.use == socket_use::over);
    CHECK(t.why == "");
    t.feed("{}");
    CHECK(t.answer == "{}");
    CHECK(str(t.socket.goodbye()) == "");
}

// ---- whose an event is

TEST_CASE("an event that nobody asked for ends the socket") {
    talk early;
    early.feed(early.head() + delta());
    CHECK(early.use == socket_use::broken);
    CHECK(early.why == "the server sent an event before it was asked");
    CHECK(early.answer == "");
    CHECK(opcodes_of(early.reply) == "8");
    const auto t = opened();
    t->feed(delta() + ending("r1") + ending("r2"));
    CHECK(t->is_answered());
    CHECK(t->use == socket_use::broken);
    CHECK(t->why == "");  // the answer is whole
    const auto idle = opened();
    idle->feed(delta() + ending("r1"));
    idle->feed(delta());
    CHECK(idle->use == socket_use::broken);
    CHECK(idle->answer == "");
}

TEST_CASE("an event of an earlier response is not the next turn's") {
    const auto fails = [](talk& t, const std::string& bytes) {
        t.feed(bytes);
        CHECK(t.use == socket_use::broken);
        CHECK(t.answer == "");
        return t.why;
    };
    // A second terminal event.
    CHECK(fails(*after_one_answer(delta() + ending("r1")), ending("r1")) ==
          "the response has the id of an earlier one");
    CHECK(fails(*after_one_answer(created("r1") + delta() + ending("r1")), created("r1")) ==
          "the response has the id of an earlier one");
    // A late part of the text: this server says when a response begins.
    CHECK(fails(*after_one_answer(created("r1") + delta() + ending("r1")), delta()) ==
          "an event of an earlier response came after its end");
    // It does not, and names the item.
    CHECK(fails(*after_one_answer(delta("i1") + ending("r1", "i1")), delta("i1")) ==
          "an event of an earlier response came after its end");
    const auto another = opened();
    another->feed(created("r1"));
    another->feed(ending("r7"));
    CHECK(another->why == "an event has the id of another response");
    const auto within = opened();
    within->feed(delta());
    within->feed(created("r2"));
    CHECK(within->why == "a response began within another one");
}

TEST_CASE("turns of servers that tell much, little or nothing of ids") {
    for (const bool tells : {true, false})
        for (const std::string item : {"", "i"}) {
            const auto t = opened();
            for (const std::string n : {"1", "2", "3"}) {
                if (n != "1") t->ask();
                const std::string of_turn = item.empty() ? "" : item + n;
                t->feed((tells ? created("r" + n) : "") + delta(of_turn) + ending("r" + n, of_turn));
                CHECK(t->why == "");
                CHECK(t->is_answered());
                CHECK(t->use == socket_use::kept);
            }
        }
    // A note of the server's own, as on rate limits, comes before the response, and is none of it.
    const auto t = after_one_answer(created("r1") + ending("r1"));
    t->feed(text_of(R"({"type":"server.rate_limits"})") + created("r2") + delta() + ending("r2"));
    CHECK(t->is_answered());
}

TEST_CASE("a server's error event is the answer of its turn, and the socket goes on") {
    const auto t = opened();
    t->feed(text_of(R"({"type":"error","status":400,"error":{"code":"previous_response_not_found"}})"));
    CHECK(t->is_answered());
    CHECK(t->answer.find("previous_response_not_found") != std::string::npos);
    CHECK(t->use == socket_use::kept);
}

// ---- ends

TEST_CASE("a turn that meets the server's Close, or its limit of time, has no answer") {
    for (const std::string& last : {frame(opcode::close, "\x03\xE9" "idle"), text_of(limit_reached)}) {
        const auto t = after_one_answer(delta() + ending("r1"));
        t->feed(last);
        CHECK(t->use == socket_use::over);
        CHECK(t->answer == "");
        CHECK(opcodes_of(t->reply) == "8");
        CHECK((t->why == "60 minutes are over." || t->why == "the server closed the WebSocket: 1001 (idle)"));
        CHECK(str(t->socket.goodbye()) == "");  // it was said
        t->feed(delta());
        CHECK(t->answer == "");
        // What follows in the same bytes is not read, either.
        const auto together = after_one_answer(delta() + ending("r1"));
        together->feed(last + "\xFF\xFF");
        CHECK(together->use == socket_use::over);
    }
    const auto idle = opened();
    idle->feed(delta() + ending("r1") + frame(opcode::close, ""));
    CHECK(idle->is_answered());
    CHECK(idle->use == socket_use::over);
    CHECK(idle->why == "");
}

TEST_CASE("the last turn of a conversation ends its socket with a Close") {
    auto t = opened();
    t->feed(delta() + ending("r1"));
    t->ask("Connection: close\r\n");
    t->feed(delta());
    CHECK(t->use == socket_use::kept);
    t->feed(ending("r2"));
    CHECK(t->use == socket_use::over);
    CHECK(opcodes_of(str(t->socket.goodbye())) == "8");
    CHECK(str(t->socket.goodbye()) == "");
}

TEST_CASE("bytes behind an event are told, since its time is that of the read") {
    const auto t = opened();
    t->feed(delta());
    CHECK_FALSE(t->has_more);
    const std::string next = delta();
    t->feed(delta() + next.substr(0, 1));
    CHECK(t->has_more);
    t->feed(next.substr(1));
    CHECK_FALSE(t->has_more);
    t->feed(delta() + frame(opcode::ping, "x"));
    CHECK(t->has_more);
    CHECK(opcodes_of(t->reply) == ":");  // 10: a pong
    std::string begun = text_of("{\"type\":");
    begun[0] = 1;  // more fragments follow
    t->feed(delta() + begun);
    CHECK(t->has_more);
}
