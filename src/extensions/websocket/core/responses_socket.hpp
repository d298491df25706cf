// the Responses API over a WebSocket
// Its messages become the event stream that the same server sends over HTTP, so that everything
// behind the connection reads both alike.
#pragma once

#include "api/target.hpp"
#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "extensions/websocket/core/frames.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t, uint64_t
#include <string>
#include <string_view>
#include <utility>  // exchange

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

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
        has_begun_ = false;
        const std::string_view body = http.substr(std::min(end + 4, http.size()));
        const std::string message = frame(opcode::text, message_of(std::string(body)));
        if (at_ == state::open) return message;
        first_ = message;
        return upgrade_of(head);
    }
    carried received(const types::text& bytes) override {
        answer_.clear();
        reply_.clear();
        std::string_view rest(bytes.data(), bytes.size());
        if (at_ == state::upgrading) rest = take_head(rest);
        if (at_ == state::plain_http) answer_ += rest;
        if (at_ == state::open) {
            const std::string wrong = frames_.feed(
                rest, [this](opcode what, std::string_view payload) { on_message(what, payload); });
            if (!wrong.empty()) give_up("the WebSocket is broken: " + wrong);
        }
        return {answer_, reply_, at_ == state::over || (closes_after_ && !is_asked_)};
    }

private:
    enum class state : unsigned char { upgrading, open, plain_http, over };
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

    /// Returns what follows the head of the answer to the upgrade.
    std::string_view take_head(std::string_view bytes) {
        const std::size_t before = head_.size();
        head_ += bytes;
        const std::size_t end = head_.find("\r\n\r\n");
        if (end == std::string::npos && head_.size() <= max_head) return {};
        const std::string_view head = std::string_view(head_).substr(0, end);
        if (end == std::string::npos || !is_switching(head)) {
            at_ = state::plain_http;  // a refusal, which is told as any other
            answer_ = std::exchange(head_, {});
            return {};
        }
        at_ = state::open;
        const std::string wrong = fault_of_upgrade(head);
        const std::size_t used = end + 4 - before;
        head_.clear();
        if (!wrong.empty()) give_up(wrong);
        else reply_ += std::exchange(first_, {});
        return bytes.substr(used);
    }
    static bool is_switching(std::string_view head) {
        return head.starts_with("HTTP/1.1 101") && (head.size() == 12 || head[12] == ' ' || head[12] == '\r');
    }
    std::string fault_of_upgrade(std::string_view head) const {
        std::string upgrade, accept, agreed;
        for_each_field(head, [&](std::string_view name, std::string_view value, std::string_view) {
            if (same_ignoring_case(name, "upgrade")) upgrade = value;
            if (same_ignoring_case(name, "sec-websocket-accept")) accept = value;
            if (same_ignoring_case(name, "sec-websocket-extensions") ||
                same_ignoring_case(name, "sec-websocket-protocol"))
                agreed = name;
        });
        if (!same_ignoring_case(upgrade, "websocket"))
            return "the server's upgrade is to \"" + printable(upgrade, 40) + "\", not to websocket";
        if (accept != accepted_key(key_))
            return "the server's Sec-WebSocket-Accept does not belong to the key that was sent";
        return agreed.empty() ? "" : "the server agreed to " + agreed + ", which nobody asked for";
    }

    // ---- the answer

    void on_message(opcode what, std::string_view payload) {
        if (at_ != state::open) return;
        if (what == opcode::ping) reply_ += frame(opcode::pong, payload);
        if (what == opcode::close) return on_close(payload);
        if (what == opcode::binary) return give_up("the server sent a binary message: events are text");
        if (what == opcode::text) on_event(payload);
    }
    void on_event(std::string_view json) {
        begin();
        std::string event = "data: ";
        for (const char c : json) {
            event += c;
            if (c == '\n') event += "data: ";
        }
        add_chunk(event + "\n\n");
        if (is_final(json)) end();
    }
    /// With status code and reason (RFC 6455, 5.5.1 and 7.4).
    void on_close(std::string_view payload) {
        const bool has_code = payload.size() >= 2;
        reply_ += frame(opcode::close, payload.substr(0, has_code ? 2 : 0));
        std::string why = "the server closed the WebSocket";
        if (has_code) why += printed(": %d", octet(payload[0]) << 8 | octet(payload[1]));
        if (payload.size() > 2) why += " (" + printable(std::string(payload.substr(2)), 100) + ")";
        give_up(why);
    }
    /// Ends the answer that is awaited, as an error of the server, and the socket.
    void give_up(const std::string& why) {
        if (at_ == state::over) return;
        at_ = state::over;
        if (!is_asked_) return;
        begin();
        add_chunk("event: error\ndata: {\"type\":\"error\",\"message\":" + json_quoted(why) + "}\n\n");
        end();
    }
    /// Whether this event is the last of its answer. Cheap for all others.
    static bool is_final(std::string_view json) {
        constexpr std::string_view last[] = {"\"response.completed\"", "\"response.incomplete\"",
                                             "\"response.failed\"", "\"error\""};
        picojson::value v;
        if (!any_of(last, [&](std::string_view type) { return json.find(type) != json.npos; }) ||
            !parse_json(json, v))
            return false;
        const std::string is = json_quoted(string_member(v, "type"));
        return any_of(last, [&](std::string_view type) { return type == is; });
    }
    void begin() {
        if (std::exchange(has_begun_, true)) return;
        answer_ += "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n";
    }
    void add_chunk(const std::string& data) {
        answer_ += printed("%zx\r\n", data.size()) + data + "\r\n";
    }
    void end() {
        answer_ += "0\r\n\r\n";
        is_asked_ = false;
    }

    state at_ = state::upgrading;
    frame_reader frames_{};
    std::string head_{}, key_{}, first_{};  // of the upgrade: its answer, its key, what waits for it
    std::string answer_{}, reply_{};        // of one call
    bool is_asked_ = false, has_begun_ = false, closes_after_ = false;
    std::uint64_t drawn_ = 0;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
