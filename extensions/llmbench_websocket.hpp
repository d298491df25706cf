// llmbench_websocket 1.0.0-rc.1: one socket a conversation. Include it after llmbench.hpp.
// Put together from src/ by ci/assemble.py: edit there, not here.
//
// Part one: declarations
//   [A] requests over a WebSocket
// Part three: WebSocket frames, and requests and events over them
//
// SPDX-License-Identifier: MIT
//
// Copyright (c) 2026 the llmbench authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
// associated documentation files (the "Software"), to deal in the Software without restriction,
// including without limitation the rights to use, copy, modify, merge, publish, distribute,
// sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all copies or
// substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
// NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
// NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
// DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

#ifndef LLMBENCH_HPP
#error "llmbench_websocket.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_WEBSOCKET_HPP
#define LLMBENCH_WEBSOCKET_HPP
static_assert(__builtin_strcmp(LLMBENCH_RELEASE_, "llmbench_1.0.0rc.1") == 0,
              "llmbench_websocket.hpp is of 1.0.0-rc.1, but llmbench.hpp is " LLMBENCH_RELEASE_
              ": take both from one release");

// ===== [A] requests over a WebSocket =============================================================

namespace llmbench {
inline namespace v1 {

namespace detail {
/// Defined in this extension's implementation. If it is missing, the linker shows the name.
own_transport* include_llmbench_websocket_hpp_where_LLMBENCH_MAIN_is(const char* api);
}  // namespace detail

/// `.transport = websocket()`, for openai_responses: requests are `response.create` messages, and
/// events come a message each. A conversation has a socket of its own, for all its turns; its
/// first turn waits for the upgrade, too. The check before a load uses HTTP. The protocol is
/// https://developers.openai.com/api/docs/guides/websocket-mode (2026-11), over RFC 6455.
inline new_transport websocket() {
    return &detail::include_llmbench_websocket_hpp_where_LLMBENCH_MAIN_is;
}

}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_WEBSOCKET_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_WEBSOCKET_IMPLEMENTED)
#define LLMBENCH_WEBSOCKET_IMPLEMENTED

#include <algorithm>  // min
#include <array>
#include <bit>  // rotl
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t, uint64_t
#include <string>
#include <string_view>
#include <utility>  // exchange, move

#include <picojson.h>  // JSON of servers

// ===== [E] WebSocket frames (RFC 6455) ===========================================================
// Without extensions and subprotocols. Bytes in, messages out; no socket, no clock.

namespace llmbench {
inline namespace v1 {
namespace detail {

inline std::uint8_t octet(char c) { return static_cast<std::uint8_t>(c); }

/// SHA-1 (RFC 3174), which a server proves with that it speaks the protocol. Not for secrets.
inline std::string sha1(std::string_view s) {
    std::array<std::uint32_t, 5> h{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
    std::string m(s);
    m += '\x80';
    m.append((120 - m.size() % 64) % 64, '\0');
    for (int shift = 56; shift >= 0; shift -= 8)
        m += static_cast<char>((s.size() * 8ull >> shift) & 0xFF);
    for (std::size_t at = 0; at < m.size(); at += 64) {
        std::array<std::uint32_t, 80> w{};
        for (std::size_t i = 0; i < 64; ++i) w[i / 4] = w[i / 4] << 8 | octet(m[at + i]);
        for (std::size_t i = 16; i < 80; ++i)
            w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
        auto [a, b, c, d, e] = h;
        for (std::size_t i = 0; i < 80; ++i) {
            const std::uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5A827999
                                    : i < 40 ? (b ^ c ^ d) + 0x6ED9EBA1
                                    : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC
                                             : (b ^ c ^ d) + 0xCA62C1D6;
            const std::uint32_t next = std::rotl(a, 5) + f + e + w[i];
            e = d; d = c; c = std::rotl(b, 30); b = a; a = next;
        }
        h = {h[0] + a, h[1] + b, h[2] + c, h[3] + d, h[4] + e};
    }
    std::string digest;
    for (const std::uint32_t word : h)
        for (int shift = 24; shift >= 0; shift -= 8)
            digest += static_cast<char>((word >> shift) & 0xFF);
    return digest;
}
/// The answer to a Sec-WebSocket-Key.
inline std::string accepted_key(const std::string& key) {
    return base64(sha1(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
}

enum class opcode : unsigned char { more = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };
inline bool is_control(opcode o) { return static_cast<int>(o) >= 8; }

/// A whole frame of a client, which masks it.
inline std::string masked_frame(opcode what, std::string_view payload, std::uint32_t mask) {
    std::string f(1, static_cast<char>(0x80 | static_cast<int>(what)));
    const std::uint64_t n = payload.size();
    const int bytes = n < 126 ? 0 : n < 65536 ? 2 : 8;
    f += static_cast<char>(0x80 | (bytes == 0 ? static_cast<int>(n) : bytes == 2 ? 126 : 127));
    for (int i = bytes - 1; i >= 0; --i) f += static_cast<char>(n >> (8 * i) & 0xFF);
    std::array<char, 4> key{};
    for (std::size_t i = 0; i < 4; ++i) key[i] = static_cast<char>(mask >> (24 - 8 * i) & 0xFF);
    f.append(key.data(), key.size());
    const std::size_t at = f.size();
    f += payload;
    for (std::size_t i = 0; i < payload.size(); ++i)
        f[at + i] = static_cast<char>(f[at + i] ^ key[i % 4]);
    return f;
}

/// Puts the frames of a server together to messages, of at most 16 MiB.
class frame_reader {
public:
    static constexpr std::size_t max_message = std::size_t{16} << 20;
    static constexpr std::size_t max_control = 125;

    /// Calls `on(opcode, payload)` for each message and each control frame. Returns why the bytes
    /// are no frames of a server, "" if they are; nothing is read after that.
    template <class On>
    std::string feed(std::string_view bytes, On&& on) {
        if (!fault_.empty()) return fault_;
        held_ += bytes;
        std::size_t at = 0;
        while (const std::size_t used = take(std::string_view(held_).substr(at), on)) at += used;
        held_.erase(0, at);
        return fault_;
    }

    /// Whether a part of a frame, or of a message, has come.
    bool holds_part() const { return !held_.empty() || within_ != opcode::more; }

private:
    /// Returns the bytes of one frame, 0 if it is not complete, or none.
    template <class On>
    std::size_t take(std::string_view s, On&& on) {
        if (s.size() < 2 || !fault_.empty()) return 0;
        const std::uint8_t first = octet(s[0]), second = octet(s[1]);
        const auto what = static_cast<opcode>(first & 15);
        const bool is_last = first & 0x80;
        const std::size_t wide = (second & 127) == 126 ? 2 : (second & 127) == 127 ? 8 : 0;
        if (first & 0x70) return broken("a frame has a reserved bit, and no extension was agreed on");
        if (second & 0x80) return broken("a frame of the server is masked");
        if (!is_known(what)) return broken(printed("a frame has opcode %d", first & 15));
        if (is_control(what) && (!is_last || wide > 0))
            return broken("a control frame is in fragments, or over 125 bytes");
        if ((what == opcode::more) != (within_ != opcode::more) && !is_control(what))
            return broken(what == opcode::more ? "a message goes on that has not begun"
                                               : "a message begins within another");
        if (s.size() < 2 + wide) return 0;
        std::uint64_t n = second & 127;
        if (wide > 0) n = 0;
        for (std::size_t i = 0; i < wide; ++i) n = n << 8 | octet(s[2 + i]);
        if (wide > 0 && n < (wide == 2 ? 126u : 65536u))
            return broken("the length of a frame takes more bytes than it needs");
        if (n > max_message - message_.size()) return broken("a message is over 16 MiB");
        const auto size = static_cast<std::size_t>(n);
        if (s.size() - 2 - wide < size) return 0;
        const std::string_view payload = s.substr(2 + wide, size);
        if (is_control(what)) {
            on(what, payload);
        } else if (is_last && message_.empty() && what != opcode::more) {
            on(what, payload);
        } else {
            message_ += payload;
            if (what != opcode::more) within_ = what;
            if (is_last) {
                const std::string whole = std::move(message_);
                message_.clear();
                on(std::exchange(within_, opcode::more), whole);
            }
        }
        return 2 + wide + size;
    }
    static bool is_known(opcode o) {
        const int n = static_cast<int>(o);
        return n <= 2 || (n >= 8 && n <= 10);
    }
    std::size_t broken(const std::string& why) {
        fault_ = why;
        return 0;
    }

    std::string held_{}, message_{}, fault_{};
    opcode within_ = opcode::more;  // of the message that has begun; more: none has
};

// ===== [E] the Responses API over a WebSocket ====================================================
// Its messages become the event stream that the same server sends over HTTP, so that everything
// behind the connection reads both alike.

/// One socket, from the upgrade on: one request at a time.
class responses_socket final : public own_transport {
public:
    types::text name() const override { return "WebSocket"; }
    types::text sent(const types::text& request) override {
        const std::string_view http(request.data(), request.size());
        const std::size_t end = std::min(http.find("\r\n\r\n"), http.size());
        const std::string_view head = http.substr(0, end);
        closes_after_ = head.find("\r\nConnection: close") != std::string_view::npos;
        is_asked_ = true;
        turn_ = {};
        const std::string_view body = http.substr(std::min(end + 4, http.size()));
        const std::string message = frame(opcode::text, message_of(std::string(body)));
        if (at_ == state::open) return message;
        first_ = message;
        return upgrade_of(head);
    }
    carried received(const types::text& bytes) override {
        answer_.clear();
        reply_.clear();
        why_.clear();
        std::string_view rest(bytes.data(), bytes.size());
        if (at_ == state::upgrading) rest = take_heads(rest);
        if (at_ == state::refused) answer_ += rest;
        if (at_ == state::open) take_frames(rest);
        // What came until now was sent before the server could have the message.
        if (at_ == state::open) reply_ += std::exchange(first_, {});
        const bool has_more = frames_.holds_part() || !ends_with_event_;
        return {answer_, reply_, use_, why_, has_more};
    }
    types::text goodbye() override {
        if (at_ != state::open) return {};
        at_ = state::closed;
        return frame(opcode::close, normal_closure);
    }

private:
    enum class state : unsigned char { upgrading, open, refused, closed };
    static constexpr std::string_view normal_closure = "\x03\xE8", protocol_error = "\x03\xEA";
    static constexpr std::size_t max_head = response_parser::max_head;

    // ---- the request

    std::string upgrade_of(std::string_view head) {
        std::string lines;
        for_each_field(head, [&](std::string_view name, std::string_view, std::string_view line) {
            for (const char* of_post : {"content-length", "content-type", "accept", "connection"})
                if (same_ignoring_case(name, of_post)) return;
            lines.append(line).append("\r\n");
        });
        const std::string_view first = head.substr(0, head.find("\r\n"));
        const std::size_t from = std::min(first.find(' '), first.size());
        drawn_ = hash_of(head).value();  // with the id of the request
        std::string nonce;
        for (int i = 0; i < 4; ++i) {
            const std::uint32_t word = random_word();
            for (int shift = 24; shift >= 0; shift -= 8)
                nonce += static_cast<char>(word >> shift & 0xFF);
        }
        key_ = base64(nonce);
        return joined({"GET", std::string(first.substr(from)), "\r\n", lines,
                       "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                       "Sec-WebSocket-Key: ", key_, "\r\n\r\n"});
    }
    /// The body without what only HTTP needs: everything is streamed. Quotes in texts are escaped.
    static std::string message_of(std::string body) {
        for (const std::string_view stream : {",\"stream\":true", "\"stream\":true,"})
            if (const std::size_t at = body.find(stream); at != std::string::npos) {
                body.erase(at, stream.size());
                break;
            }
        return "{\"type\":\"response.create\"," + body.substr(std::min<std::size_t>(1, body.size()));
    }
    /// Not secret: the mask keeps intermediaries from taking a page's script for HTTP, and no page
    /// is here.
    std::uint32_t random_word() { return static_cast<std::uint32_t>(mixed(++drawn_) >> 16); }
    std::string frame(opcode what, std::string_view payload) {
        return masked_frame(what, payload, random_word());
    }

    // ---- the upgrade

    /// Returns what follows the head of the answer to the upgrade, and heads of interim answers.
    std::string_view take_heads(std::string_view bytes) {
        const std::size_t before = head_.size();
        head_ += bytes;
        for (;;) {
            const std::size_t end = head_.find("\r\n\r\n", from_);
            if (end == std::string::npos && head_.size() <= max_head) return {};
            const std::string_view head = std::string_view(head_).substr(from_, end - from_);
            if (end == std::string::npos || !is_interim(head)) return refused();
            from_ = end + 4;
            if (!is_switching(head)) continue;
            const std::string wrong = fault_of_upgrade(head);
            head_.clear();
            if (wrong.empty()) at_ = state::open;
            else give_up(wrong);
            return bytes.substr(from_ - before);
        }
    }
    /// The answer is told as any other, and no second upgrade is tried on this connection.
    std::string_view refused() {
        at_ = state::refused;
        use_ = socket_use::over;
        answer_ = std::exchange(head_, {});
        return {};
    }
    static bool is_interim(std::string_view head) { return head.starts_with("HTTP/1.1 1"); }
    static bool is_switching(std::string_view head) {
        return head.starts_with("HTTP/1.1 101") && (head.size() == 12 || head[12] == ' ' || head[12] == '\r');
    }
    std::string fault_of_upgrade(std::string_view head) const {
        std::string upgrade, accept, agreed;
        bool is_connections = false;
        for_each_field(head, [&](std::string_view name, std::string_view value, std::string_view) {
            if (same_ignoring_case(name, "upgrade")) upgrade = value;
            if (same_ignoring_case(name, "connection"))
                is_connections = is_connections || lists(value, "upgrade");
            if (same_ignoring_case(name, "sec-websocket-accept")) accept = value;
            if (same_ignoring_case(name, "sec-websocket-extensions") ||
                same_ignoring_case(name, "sec-websocket-protocol"))
                agreed = name;
        });
        if (!same_ignoring_case(upgrade, "websocket"))
            return "the server's upgrade is to \"" + printable(upgrade, 40) + "\", not to websocket";
        if (!is_connections)
            return "the server's 101 has no \"Connection: Upgrade\", so it is not this connection's";
        if (accept != accepted_key(key_))
            return "the server's Sec-WebSocket-Accept does not belong to the key that was sent";
        return agreed.empty() ? "" : "the server agreed to " + agreed + ", which nobody asked for";
    }

    // ---- the answer

    void take_frames(std::string_view bytes) {
        const std::string wrong = frames_.feed(
            bytes, [this](opcode what, std::string_view payload) { on_message(what, payload); });
        // What follows an end is not read, however it came.
        if (!wrong.empty() && at_ == state::open) give_up("the WebSocket is broken: " + wrong);
    }
    void on_message(opcode what, std::string_view payload) {
        if (use_ == socket_use::broken || at_ != state::open) return;
        ends_with_event_ = what == opcode::text;
        if (what == opcode::ping) reply_ += frame(opcode::pong, payload);
        if (what == opcode::close) return on_close(payload);
        if (what == opcode::binary) return give_up("the server sent a binary message: events are text");
        if (what == opcode::text) on_event(payload);
    }
    void on_event(std::string_view json) {
        if (!first_.empty()) return give_up("the server sent an event before it was asked");
        if (!is_asked_) return give_up("the server sent an event that nobody asked for");
        const event_facts e = facts_of(json);
        if (const char* const why = why_not_of_turn(e)) return give_up(why);
        if (e.is_error && e.code == "websocket_connection_limit_reached") {
            const std::string why = printable(e.message.empty() ? e.code : e.message);
            return ends(socket_use::over, why, normal_closure);
        }
        turn_.has_begun = turn_.has_begun || e.is_of_response;
        begin();
        std::string event = "data: ";
        for (const char c : json) {
            event += c;
            if (c == '\n') event += "data: ";
        }
        add_chunk(event + "\n\n");
        if (e.is_final) end(e);
    }
    /// With status code and reason (RFC 6455, 5.5.1 and 7.4).
    void on_close(std::string_view payload) {
        const bool has_code = payload.size() >= 2;
        std::string why = "the server closed the WebSocket";
        if (has_code) why += printed(": %d", octet(payload[0]) << 8 | octet(payload[1]));
        if (payload.size() > 2) why += " (" + printable(std::string(payload.substr(2)), 100) + ")";
        ends(socket_use::over, why, payload.substr(0, has_code ? 2 : 0));
    }
    void give_up(const std::string& why) { ends(socket_use::broken, why, protocol_error); }
    /// Ends the socket, and the answer that is awaited.
    void ends(socket_use use, const std::string& why, std::string_view code) {
        use_ = use;
        if (std::exchange(at_, state::closed) == state::open) reply_ += frame(opcode::close, code);
        if (std::exchange(is_asked_, false)) why_ = why;
    }

    // ---- whose an event is

    struct event_facts {
        std::string response{}, item{};  // ids
        vector<std::string> items{};     // of a whole response
        std::string code{}, message{};   // of an error
        bool is_of_response = false, begins = false, is_final = false, is_error = false;
    };
    /// Of what this answer has said so far.
    struct turn {
        std::string id{};
        bool has_begun = false, is_open = false;  // by an event of the response; as HTTP
    };
    /// Cheap for the events of text within an answer.
    event_facts facts_of(std::string_view json) const {
        event_facts e;
        constexpr std::string_view rare[] = {"\"response\":", "\"response.completed\"",
                                             "\"response.incomplete\"", "\"response.failed\"",
                                             "\"error\""};
        const auto has = [&](std::string_view what) { return json.find(what) != json.npos; };
        const bool tells = !turn_.has_begun || any_of(rare, has);
        picojson::value v;
        if (!tells || !parse_json(json, v)) return e;
        const std::string type = string_member(v, "type");
        e.is_of_response = type.starts_with("response.");
        e.begins = type == "response.created";
        e.is_error = type == "error";
        e.is_final = e.is_error || type == "response.completed" || type == "response.incomplete" ||
                     type == "response.failed";
        e.item = string_member(v, "item_id");
        if (const picojson::value* r = member(v, "response")) {
            e.response = string_member(*r, "id");
            if (const picojson::value* all = member(*r, "output"); all && all->is<picojson::array>())
                for (const picojson::value& item : all->get<picojson::array>())
                    e.items.push_back(string_member(item, "id"));
        }
        const picojson::value* const error = member(v, "error");
        e.code = string_member(error ? *error : v, "code");
        e.message = string_member(error ? *error : v, "message");
        return e;
    }
    /// Null if it belongs to the request that waits. Nobody else's is its first token, or its end.
    const char* why_not_of_turn(const event_facts& e) {
        if (is_ended(e.response)) return "the response has the id of an earlier one";
        if (e.begins) {
            if (turn_.has_begun) return "a response began within another one";
            turn_.id = e.response;
            says_begin_ = true;
            return nullptr;
        }
        if (!e.response.empty() && !turn_.id.empty() && e.response != turn_.id)
            return "an event has the id of another response";
        const bool is_first = e.is_of_response && !turn_.has_begun;
        if (is_first && (says_begin_ || is_ended(e.item)) && !e.is_final)
            return "an event of an earlier response came after its end";
        return nullptr;
    }
    bool is_ended(const std::string& id) const {
        return !id.empty() && any_of(ended_, [&](const std::string& i) { return i == id; });
    }

    // ---- as HTTP

    void begin() {
        if (std::exchange(turn_.is_open, true)) return;
        answer_ += "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n";
    }
    void add_chunk(const std::string& data) {
        answer_ += printed("%zx\r\n", data.size()) + data + "\r\n";
    }
    void end(const event_facts& e) {
        answer_ += "0\r\n\r\n";
        is_asked_ = false;
        if (closes_after_) use_ = socket_use::over;
        for (const std::string& id : e.items) ended_.push_back(id);
        ended_.push_back(e.response);
    }

    state at_ = state::upgrading;
    frame_reader frames_{};
    std::string head_{}, key_{}, first_{};  // of the upgrade: its answer, its key, what waits for it
    std::size_t from_ = 0;                  // of the head that is read
    std::string answer_{}, reply_{}, why_{};  // of one call
    socket_use use_ = socket_use::kept;
    turn turn_{};
    vector<std::string> ended_{};  // ids of responses that have ended, and of their items
    bool is_asked_ = false, closes_after_ = false;
    bool says_begin_ = false;      // this server sends response.created
    bool ends_with_event_ = true;  // the last frame was one
    std::uint64_t drawn_ = 0;
};

// ===== [E] the body of websocket() ===============================================================

own_transport* include_llmbench_websocket_hpp_where_LLMBENCH_MAIN_is(const char* api) {
    return std::string_view(api) == "openai_responses" ? new responses_socket() : nullptr;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_WEBSOCKET_IMPLEMENTED
