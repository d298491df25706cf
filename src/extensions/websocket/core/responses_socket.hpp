// the Responses API over a WebSocket
// Its messages become the event stream that the same server sends over HTTP, so that everything
// behind the connection reads both alike.
#pragma once

#include "api/target.hpp"
#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
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

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
