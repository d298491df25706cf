// one connection of the load
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/target.hpp"
#include "api/units.hpp"
#include "core/base/vector.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/answers/answer_reader.hpp"
#include "core/answers/timeline.hpp"
#include "core/measured/client_counts.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/net/exchange.hpp"
#include "effects/net/sockets.hpp"
#include "effects/net/tls.hpp"
#include "effects/load/client_io.hpp"
#include "effects/load/load_target.hpp"

#include <algorithm>  // max, min
#include <cerrno>  // errno, EAGAIN
#include <memory>  // unique_ptr
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // exchange, move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// For server-sent events or lines of JSON, chunked or not.
inline bool ends_with_event(std::string_view bytes) {
    return bytes.ends_with("\n\n") || bytes.ends_with("\n\r\n") || bytes.ends_with("}\n");
}

class connection;

/// Gives connections their requests, and gets the result of each one once.
class request_sink {
public:
    /// The record is complete, except for the sink's own knowledge of the request.
    virtual void on_delivered(const planned_request& w, record&& r, const answer_reader& a) = 0;
    /// The connection is open without a request.
    virtual void on_idle(connection& c) = 0;
    /// The connection is closed; only the current call still uses it.
    virtual void on_retired(connection& c) = 0;

protected:
    ~request_sink() = default;
};

/// A request given to a connection.
struct dispatched_request {
    planned_request what{};
    std::string bytes{};
    long long dispatched_ns = 0;
    long long late_ns = 0;      // caused by the client
    asked_answer asked{};
    double cancel_after_s = 0;
};

enum class connection_state : unsigned char {
    closed,
    opening,              // without a request
    opening_for_request,
    idle,                 // open, without a request
    busy,                 // with an unanswered request
    draining              // the result is reported, the answer has not ended
};

/// One connection and, while busy, its request. States: closed, opening, idle; then idle, busy,
/// mostly draining, idle. start() works in every state before busy. A request lost by a kept
/// connection goes back from busy to opening once. Every failure ends in closed.
class connection final : public socket_user {
public:
    connection(client_io& io, request_sink& sink) : io_(io), sink_(sink) {}

    void start(dispatched_request r) {
        request_ = r.what;
        cancel_after_ns_ = ns_of(r.cancel_after_s);
        bytes_ = std::move(r.bytes);
        rec_ = record{};
        rec_.scheduled_ns = r.what.scheduled_ns;
        rec_.dispatched_ns = r.dispatched_ns;
        rec_.late_ns = r.late_ns;
        rec_.most_prompt_tokens = r.asked.most_prompt_tokens;
        rec_.most_output_tokens = r.asked.most_output_tokens;
        answer_.reset(*io_.target.api, r.asked);
        connect_from_ns_ = r.dispatched_ns;
        // One opened ahead counts as new, unless the server may have timed it out.
        idle_ns_ = r.dispatched_ns - (answers_ > 0 ? answered_ns_ : opened_ns_);
        may_send_again_ = wire_.is_open() && (answers_ > 0 || idle_ns_ > tires_after_ns);
        if (state_ == state::idle) return send();
        const bool was_closed = std::exchange(state_, state::opening_for_request) == state::closed;
        if (was_closed) connect(0);
    }
    /// Opens it for a later request.
    void open_ahead() {
        state_ = state::opening;
        connect(0);
    }
    void on_writable() override {
        if (is_opening() && !wire_.has_tls()) return on_connected();
        // A server that reads no more may have answered already, as with 413. A later read reports
        // the failure of a handshake.
        if (!wire_.flush() && !is_opening()) read_now();
    }
    void on_readable() override {
        if (state_ != state::idle) return read_now();
        if (!is_usable()) retire();
    }
    /// Of an idle connection, after one read: what comes between two requests are pings, TLS
    /// messages, the end, or bytes that nobody asked for.
    socket_use use() {
        if (!wire_.is_open() || (answers_ > 0 && !io_.keeps_connections())) return socket_use::over;
        const arrival a = wire_.read(io_.room);
        if (a.what == arrival::kind::nothing_yet) return use_;
        if (a.what == arrival::kind::end) learn(socket_use::over);
        else if (!http_of(wire_.content(a.bytes, io_.room)).empty()) learn(socket_use::broken);
        if (wire_.tls_ended()) learn(socket_use::over);
        if (use_ != socket_use::kept) learn_of_end();
        return use_;
    }
    bool is_usable() { return use() == socket_use::kept; }
    void close() {
        hang_up();
        state_ = state::closed;
    }
    /// Ends the request with this outcome, and the connection.
    void abandon(request_status status, const std::string& why) {
        answer_.timeline().fail(status, why);
        hang_up();
        deliver();
        retire();
    }
    void check_limits(long long now) {
        if (is_delivered()) {
            if (now - drain_from_ns_ > 1000000000) abandon(request_status::ok, "");
            return;
        }
        const llmbench::limits& l = io_.limits;
        // Time in which the client did not run must not count against the server.
        const auto over = [&](long long since, time_span limit) {
            const long long most = ns_of(limit.seconds());
            return since > 0 && now - since > most &&
                   now - since - io_.alert.lost_since(since) > most;
        };
        const auto within = [](const char* what, const char* field, time_span t) {
            return printed("%s within %s (limits.%s)", what, time_text(t.seconds()).c_str(), field);
        };
        // A request that was cancelled is not judged.
        if (cancel_after_ns_ > 0 && now - rec_.dispatched_ns >= cancel_after_ns_)
            return abandon(request_status::left,
                           "after " + time_text(static_cast<double>(cancel_after_ns_) * 1e-9));
        if (rec_.sent_ns == 0 && over(connect_from_ns_, l.connect))
            return abandon(request_status::connect, within("no connection", "connect", l.connect));
        check_opening(now);
        if (state_ == state::closed) return;  // it was given up
        if (over(rec_.dispatched_ns, l.total))
            return abandon(request_status::timeout, within("not complete", "total", l.total));
        if (rec_.sent_ns == 0) return;
        const stream_timeline& seen = answer_.timeline();
        if (!io_.streamed) return;  // all at the end: `total` is its limit
        if (seen.events() == 0 && over(rec_.sent_ns, l.first_event))
            return abandon(request_status::timeout,
                           within("no content", "first_event", l.first_event));
        if (seen.events() > 0 && over(seen.last_content_ns(), l.between_events))
            return abandon(request_status::timeout,
                           within("no further content", "between_events", l.between_events));
    }
    /// None of its limits passes before this time; 0: one may at any time.
    long long next_limit_ns() const {
        if (is_delivered() || rec_.sent_ns == 0 || cancel_after_ns_ > 0) return 0;
        const llmbench::limits& l = io_.limits;
        const stream_timeline& seen = answer_.timeline();
        const bool is_first = seen.events() == 0;
        const long long whole = rec_.dispatched_ns + ns_of(l.total.seconds());
        const long long since = is_first ? rec_.sent_ns : seen.last_content_ns();
        const time_span wait = is_first ? l.first_event : l.between_events;
        return io_.streamed ? std::min(whole, since + ns_of(wait.seconds())) : whole;
    }
    void check_opening(long long now) { if (is_opening()) try_elsewhere(now); }
    /// Called for one that could not connect yet.
    void ask_again() { if (is_opening() && !wire_.is_open()) connect_to(which_); }
    bool is_delivered() const { return state_ == state::draining; }
    long long scheduled_ns() const { return request_.scheduled_ns; }

    /// The conversation whose turns it carries, where a transport keeps one on a connection.
    static constexpr std::size_t nobody = static_cast<std::size_t>(-1);
    std::size_t conversation = nobody;

    // The pool's list that has this connection, and its index.
    vector<std::unique_ptr<connection>>* list = nullptr;
    std::size_t slot = 0;

private:
    using state = connection_state;
    bool is_opening() const {
        return state_ == state::opening || state_ == state::opening_for_request;
    }
    void retire() {
        close();
        sink_.on_retired(*this);
    }

    // ---- on the way

    /// Moves on from an address that does not answer in its share of limits.connect. One that could
    /// not be asked yet is asked again.
    void try_elsewhere(long long now) {
        const auto n = static_cast<double>(io_.addresses.size());
        if (!wire_.is_open()) return ask_again();
        if (!more_addresses()) return;
        if (now - opened_ns_ <= ns_of(io_.limits.connect.seconds() / n)) return;
        wire_.close();
        unanswered_ = which_;
        connect(tried_ + 1);
    }
    bool more_addresses() const { return tried_ + 1 < io_.addresses.size(); }
    /// `tried`: number of the target's addresses that failed in this attempt.
    void connect(std::size_t tried) {
        if (tried == 0) unanswered_.reset();
        tried_ = tried;
        connect_to(tried == 0 ? io_.good_address : (which_ + 1) % io_.addresses.size());
    }
    void connect_to(std::size_t which) {
        which_ = which;
        const address& to = io_.addresses[which];
        const bool begins = wire_.connect(to, *io_.sockets, *this, io_.from_for(to));
        const load_target& target = io_.target;
        carrier_.reset(target.transport ? target.transport(target.api->name) : nullptr);
        use_ = socket_use::kept;
        replies_ = 0;
        if (!begins && errno != EAGAIN) return on_connect_error(errno);
        if (!begins) io_.asks_again = true;
        answers_ = 0;
        opened_ns_ = now_ns();
    }
    void on_connect_error(int error) {
        wire_.close();
        if (more_addresses()) return connect(tried_ + 1);
        // A slow address may still answer in the rest of limits.connect.
        if (const auto slow = std::exchange(unanswered_, {})) return connect_to(*slow);
        if (state_ == state::opening) return retire();
        const std::string lack = missing_resource(error);
        abandon(request_status::connect, lack.empty() ? "cannot connect: " + error_text(error)
                                                      : std::string(client_lacks) + lack);
    }
    void on_connected() {
        if (const int error = wire_.connect_error()) return on_connect_error(error);
        ++io_.connections_opened;
        io_.good_address = which_;
        io_.target.addresses.answered(io_.addresses[which_]);
        if (!io_.target.tls) return on_open();
        on_handshake(wire_.begin_handshake(*io_.target.tls, &io_.session, io_.room));
    }
    void on_handshake(const handshake& hands) {
        if (hands.is == handshake::state::failed) return on_no_handshake(hands.why);
        if (hands.is == handshake::state::going_on) return;
        on_open();
    }
    void on_no_handshake(const std::string& why) {
        if (state_ == state::opening) return retire();
        abandon(request_status::tls, why);
    }
    void on_open() {
        if (state_ == state::opening_for_request) return send();
        state_ = state::idle;
        sink_.on_idle(*this);
    }

    // ---- the request

    void send() {
        state_ = state::busy;
        rec_.connected_ns = now_ns();
        if (carrier_) carried_ = std::string(carrier_->sent(bytes_));
        wire_.send(carrier_ ? carried_ : bytes_);
        rec_.sent_ns = now_ns();
        if (!wire_.flush()) read_now();
    }

    // ---- the answer

    void read_now() {
        arrival a = wire_.read(io_.room);
        if (a.what == arrival::kind::nothing_yet) return;
        if (a.at_ns < rec_.sent_ns) {  // no answer comes before its request: the stamp is wrong
            a.at_ns = a.read_ns;
            a.is_stamped = false;
        }
        io_.on_read(a);
        if (a.what == arrival::kind::end) return on_end(a);
        if (is_opening()) return on_handshake(wire_.shake_hands(a.bytes, io_.room));
        const std::string_view content = wire_.content(a.bytes, io_.room);
        const std::string_view bytes = http_of(content);
        stream_timeline& seen = answer_.timeline();
        const int events_before = seen.events();
        const long long came_before_ns = answer_.came_ns();
        answer_.feed(bytes, a.at_ns);
        const int events = seen.events() - events_before;
        // If no byte of the next event follows, an event has the stamp of this read.
        const bool is_last = !has_more_ && !wire_.holds_part() &&
                             (answer_.finished() || ends_with_event(bytes));
        if (events > 1 || (events == 1 && !is_last))
            if (const long long since = io_.apart_since(a, std::max(came_before_ns, rec_.sent_ns)))
                seen.note_unknown(events, since);
        io_.content_events += events;
        io_.coalesced_events += std::max(0, events - 1);
        // The answer has begun, so the request is not sent again; its copy may be long.
        if (wire_.unsent() == 0 && !bytes_.empty() && !answer_.untouched())
            std::string().swap(bytes_);
        learn(answer_.use());
        if (answer_.finished()) return on_finished();
        if (!why_.empty()) return on_end_of_carried(a.at_ns);
        if (wire_.tls_ended()) return on_end_of_tls(a.at_ns);
        if (answer_.timeline().ended()) deliver();
    }
    /// Through the transport, which may have something to send.
    std::string_view http_of(std::string_view bytes) {
        if (!carrier_) return bytes;
        const own_transport::carried came = carrier_->received({bytes.data(), bytes.size()});
        learn(came.use);
        why_ = str(came.why);
        has_more_ = came.has_more;
        if (!came.reply.empty()) reply(str(came.reply));
        return answer_as_http_ = str(came.answer);
    }
    /// What the socket has not taken yet goes first; TLS keeps that itself.
    void reply(const std::string& bytes) {
        const std::size_t left = wire_.has_tls() ? 0 : wire_.unsent();
        replies_ = wire_.unsent() == 0 ? 0 : replies_ + bytes.size();
        if (replies_ > most_replies) {
            learn(socket_use::broken);
            why_ = "the server asks for replies and reads none: over 1 MiB of them waits";
            return;
        }
        carried_ = carried_.substr(carried_.size() - left) + bytes;
        wire_.send(carried_);
        wire_.flush();  // a later read reports its failure
    }
    /// No more comes for the request.
    void on_end_of_carried(long long now) {
        if (use_ == socket_use::over && sends_again(now)) return;
        answer_.timeline().fail(use_ == socket_use::broken ? request_status::protocol
                                                           : request_status::server, why_);
        on_finished();
    }
    void on_end(const arrival& a) {
        const bool orderly = a.error == 0;
        if (is_opening())
            return on_no_handshake(orderly ? closed_in_handshake : error_text(a.error));
        on_end_of_input(a.at_ns, !orderly           ? error_text(a.error)
                                 : wire_.has_tls() ? tls_was_cut
                                                   : "");
    }
    void on_end_of_tls(long long now) {
        const std::string error = wire_.tls_error();
        if (error.empty()) return on_end_of_input(now, "");
        abandon(request_status::tls, error);
    }
    /// A connection that ends over a second after an answer may just have been idle for too long.
    void learn_of_end() {
        const bool is_new = wire_.is_open() && answers_ == 1;
        if (is_new && now_ns() - answered_ns_ < tires_after_ns) ++io_.connection_resets;
    }
    void on_end_of_input(long long now, const std::string& error) {
        learn(socket_use::over);
        if (sends_again(now)) return;
        answer_.end_of_input(now, error);
        on_finished();
    }
    /// The server may close a kept connection just as we send: the request is sent once more on a
    /// new one, and its record says so.
    bool sends_again(long long now) {
        if (!answer_.untouched() || !std::exchange(may_send_again_, false)) return false;
        learn_of_end();
        hang_up();
        state_ = state::opening_for_request;
        ++rec_.resends;
        rec_.idle_ns = std::max(0LL, idle_ns_);
        rec_.connected_ns = rec_.sent_ns = 0;
        connect_from_ns_ = now;
        connect(0);
        return true;
    }
    /// The use of a connection never gets better.
    void learn(socket_use u) { use_ = std::max(use_, u); }
    void on_finished() {
        const bool is_free = wire_.unsent() == 0 && !wire_.tls_ended() && io_.keeps_connections();
        if (!is_free) learn(socket_use::over);
        if (use_ != socket_use::kept) hang_up();
        deliver();
        ++answers_;
        answered_ns_ = now_ns();
        if (use_ != socket_use::kept) return retire();
        state_ = state::idle;
        sink_.on_idle(*this);
    }
    /// A transport says goodbye where nothing unsent is left before it.
    void hang_up() {
        if (carrier_ && wire_.is_open() && !is_opening() && wire_.unsent() == 0) {
            carried_ = str(carrier_->goodbye());
            wire_.send(carried_);
            wire_.flush();
        }
        wire_.close();
    }
    void deliver() {
        if (std::exchange(state_, state::draining) == state::draining) return;
        drain_from_ns_ = now_ns();
        answer_.timeline().write_to(rec_);
        rec_.http_status = answer_.http_status();
        rec_.from_cache = answer_.is_from_cache();
        rec_.opening_hash = answer_.opening();
        if (answer_.model() != io_.target.model)
            rec_.model = without_secrets(answer_.model(), io_.target.secrets);
        rec_.error = without_secrets(str(rec_.error), io_.target.secrets);
        rec_.finish_reason = without_secrets(str(rec_.finish_reason), io_.target.secrets);
        if (rec_.end_ns == 0) rec_.end_ns = drain_from_ns_;
        sink_.on_delivered(request_, std::move(rec_), answer_);
    }

    client_io& io_;
    request_sink& sink_;
    exchange wire_{};
    std::unique_ptr<own_transport> carrier_{};  // null: HTTP
    std::string carried_{}, answer_as_http_{};  // sent by it, and read from it
    std::string why_{};  // it reads no more for this request
    std::size_t replies_ = 0;  // bytes of replies that the socket has not taken
    static constexpr std::size_t most_replies = std::size_t{1} << 20;
    bool has_more_ = false;  // bytes behind the answer's last came in the same read
    socket_use use_ = socket_use::kept;
    planned_request request_{};
    record rec_{};
    answer_reader answer_{};
    std::string bytes_{};
    std::size_t which_ = 0;  // of the target's addresses
    std::size_t tried_ = 0;  // addresses that failed before it
    std::optional<std::size_t> unanswered_{};  // the last one that exceeded its share
    long long cancel_after_ns_ = 0;
    long long connect_from_ns_ = 0, drain_from_ns_ = 0;
    long long opened_ns_ = 0, answered_ns_ = 0;
    long long idle_ns_ = 0;  // before this request
    int answers_ = 0;  // since the connection was opened
    state state_ = state::closed;
    bool may_send_again_ = false;  // a kept connection may be lost as we send; once a request
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
