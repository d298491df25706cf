// one connection of the load
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/units.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/answers/answer_reader.hpp"
#include "core/answers/timeline.hpp"
#include "core/measured/histograms.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/alertness.hpp"
#include "core/traffic/plan.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/net/exchange.hpp"
#include "effects/net/machine_network.hpp"
#include "effects/net/network.hpp"
#include "effects/net/sockets.hpp"
#include "effects/net/tls.hpp"
#include "effects/load/order.hpp"

#include <algorithm>  // max
#include <cerrno>  // errno, EAGAIN
#include <memory>  // unique_ptr
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // exchange, move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What the connections of one thread share: what they need to talk to the target, and what they
/// count while they do.
struct client_io {
    client_io(const load_target& t, const planned_traffic& p)
        : target(t),
          limits(p.limits),
          streamed(p.common.stream),
          hang_ups(t.hang_ups),
          from(local_addresses(p.client.from)),
          addresses(reached_from(from, t.addresses.in_order())) {}

    const load_target& target;
    const llmbench::limits& limits;
    const bool streamed;  // answers are; else limits.total alone holds
    int hang_ups;  // the server's, those before this load included
    const std::vector<address> from;  // in turns, none: the system chooses
    const std::vector<address> addresses;  // of the target, when this load began
    std::size_t next_from = 0;
    const std::unique_ptr<network> sockets = new_network();
    std::vector<char> buffer = std::vector<char>(256 * 1024);
    std::vector<char> plain{};     // of one read, where it was TLS
    tls_session session{};
    std::size_t good_address = 0;  // the first to try: the last that connected
    long long woke_ns = 0, seen_ns = 0;  // the last wait's end, and the last stamp since
    alertness alert{};

    lag_counts stamp_lag{};
    long long connections_opened = 0, content_events = 0, coalesced_events = 0;
    handshakes_t handshakes_full{}, handshakes_resumed{};

    bool keeps_connections() const { return hang_ups < hang_ups_of_habit; }
    /// Where the next connection to this address comes from; null: from wherever.
    const address* from_for(const address& to) {
        for (std::size_t i = 0; i < from.size(); ++i) {
            const address& a = from[next_from++ % from.size()];
            if (a.storage.ss_family == to.storage.ss_family) return &a;
        }
        return nullptr;
    }
    /// The arrival stamp of a read.
    void on_stamp(long long at_ns) {
        stamp_lag.add(at_ns - woke_ns);
        seen_ns = at_ns;
        alert.on_step(at_ns);
    }
};

class connection;

/// Whoever gives connections their requests, and is told once a request what became of it.
class request_sink {
public:
    /// The record is whole but for what the sink itself knows of the request.
    virtual void on_delivered(const planned_request& w, record&& r, const answer_reader& a) = 0;
    /// It is open, and nothing is on it.
    virtual void on_idle(connection& c) = 0;
    /// It is closed and done with, but for what it is doing now.
    virtual void on_retired(connection& c) = 0;

protected:
    ~request_sink() = default;
};

/// A request on its way to a connection.
struct dispatched_request {
    planned_request what{};
    std::string bytes{};
    long long dispatched_ns = 0;
    long long late_ns = 0;      // by the client's own fault
    bool keeps_answer = false;  // its words are wanted, for the next turn of a conversation
    asked_answer asked{};
    double leaves_after_s = 0;
};

/// What a connection is doing.
enum class connection_state : unsigned char {
    closed,
    opening,              // with nothing to send yet
    opening_for_request,
    idle,                 // open, for a request to come
    busy,                 // with a request that is not answered yet
    draining              // what became of the request is told, and its answer has not ended
};

/// One connection and, while it is busy, the request on it. It goes from closed to opening to
/// idle, and round from idle to busy, mostly draining, and idle. start() takes it on from wherever
/// it is before busy; a request that a kept connection lost goes back from busy to opening once;
/// all that fails ends in closed.
class connection final : public socket_user {
public:
    connection(client_io& io, request_sink& sink) : io_(io), sink_(sink) {}

    void start(dispatched_request r) {
        request_ = r.what;
        leaves_after_ns_ = ns_of(r.leaves_after_s);
        bytes_ = std::move(r.bytes);
        rec_ = record{};
        rec_.scheduled_ns = r.what.scheduled_ns;
        rec_.dispatched_ns = r.dispatched_ns;
        rec_.late_ns = r.late_ns;
        rec_.most_prompt_tokens = r.asked.most_prompt_tokens;
        answer_.reset(*io_.target.api, io_.streamed, r.keeps_answer, r.asked);
        connect_from_ns_ = r.dispatched_ns;
        // One that was opened ahead is as good as new, unless a server may have tired of it.
        may_send_again_ =
            wire_.is_open() && (answers_ > 0 || r.dispatched_ns - opened_ns_ > 1000000000);
        if (state_ == state::idle) return send();
        const bool was_closed = std::exchange(state_, state::opening_for_request) == state::closed;
        if (was_closed) connect(0);
    }
    /// Without a request, for one to come.
    void open_ahead() {
        state_ = state::opening;
        connect(0);
    }
    void on_writable() override {
        if (!is_opening()) write_some();
        else if (wire_.has_tls()) wire_.flush();  // where it fails, a read will tell
        else on_connected();
    }
    void on_readable() override {
        if (state_ != state::idle) return read_now();
        if (!is_usable()) retire();
    }
    /// False where the server closed an idle connection, or sent what nobody asked for.
    bool is_usable() {
        if (answers_ > 0 && !io_.keeps_connections()) return false;
        const bool is_quiet = wire_.is_quiet(io_.buffer, io_.plain);
        if (!is_quiet) learn_of_end();
        return is_quiet;
    }
    void close() {
        wire_.close();
        state_ = state::closed;
    }
    /// Ends the request with this outcome, and the connection with it.
    void abandon(request_status status, const std::string& why) {
        answer_.timeline().fail(status, why);
        wire_.close();
        deliver();
        retire();
    }
    void check_limits(long long now) {
        if (is_delivered()) {
            if (now - drain_from_ns_ > 1000000000) abandon(request_status::ok, "");
            return;
        }
        const llmbench::limits& l = io_.limits;
        // Time in which the client did not run is none that the server was given.
        const auto over = [&](long long since, time_span limit) {
            const long long most = ns_of(limit.seconds());
            return since > 0 && now - since > most &&
                   now - since - io_.alert.lost_since(since) > most;
        };
        const auto within = [](const char* what, const char* field, time_span t) {
            return printed("%s within %s (limits.%s)", what, time_text(t.seconds()).c_str(), field);
        };
        // Of what was cut off before it could end nothing is judged, and nothing is owed.
        if (leaves_after_ns_ > 0 && now - rec_.dispatched_ns >= leaves_after_ns_)
            return abandon(request_status::left,
                           "after " + time_text(static_cast<double>(leaves_after_ns_) * 1e-9));
        if (rec_.sent_ns == 0 && over(connect_from_ns_, l.connect))
            return abandon(request_status::connect, within("no connection", "connect", l.connect));
        check_opening(now);
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
    void check_opening(long long now) { if (is_opening()) try_elsewhere(now); }
    bool is_delivered() const { return state_ == state::draining; }

    // The pool's list with this in it, and where.
    std::vector<std::unique_ptr<connection>>* list = nullptr;
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

    /// An address that never answers leaves its share of limits.connect to the others. One that
    /// could not be asked yet is asked again.
    void try_elsewhere(long long now) {
        const auto n = static_cast<double>(io_.addresses.size());
        if (!wire_.is_open()) return connect_to(which_);
        if (!more_addresses()) return;
        if (now - opened_ns_ <= ns_of(io_.limits.connect.seconds() / n)) return;
        wire_.close();
        unanswered_ = which_;
        connect(tried_ + 1);
    }
    bool more_addresses() const { return tried_ + 1 < io_.addresses.size(); }
    /// `tried`: addresses of the target that this attempt has seen fail.
    void connect(std::size_t tried) {
        if (tried == 0) unanswered_.reset();
        tried_ = tried;
        connect_to(tried == 0 ? io_.good_address : (which_ + 1) % io_.addresses.size());
    }
    void connect_to(std::size_t which) {
        which_ = which;
        const address& to = io_.addresses[which];
        const bool begins = wire_.connect(to, *io_.sockets, *this, io_.from_for(to));
        // EAGAIN: check_limits tries again.
        if (!begins && errno != EAGAIN) return on_connect_error(errno);
        answers_ = 0;
        opened_ns_ = now_ns();
    }
    void on_connect_error(int error) {
        wire_.close();
        if (more_addresses()) return connect(tried_ + 1);
        // What was only slow may answer yet, in what is left of limits.connect.
        if (const auto slow = std::exchange(unanswered_, {})) return connect_to(*slow);
        if (state_ == state::opening) return retire();
        const std::string lack = own_lack(error);
        abandon(request_status::connect, lack.empty() ? "cannot connect: " + error_text(error)
                                                      : std::string(client_lacks) + lack);
    }
    void on_connected() {
        if (const int error = wire_.connect_error()) return on_connect_error(error);
        ++io_.connections_opened;
        io_.good_address = which_;
        io_.target.addresses.answered(io_.addresses[which_]);
        if (!io_.target.tls) return on_open();
        shaking_from_ns_ = now_ns();
        on_handshake(wire_.begin_handshake(*io_.target.tls, &io_.session, io_.plain));
    }
    void on_handshake(const handshake& hands) {
        if (hands.is == handshake::state::failed) return on_no_handshake(hands.why);
        if (hands.is == handshake::state::going_on) return;
        const double took = static_cast<double>(now_ns() - shaking_from_ns_) * 1e-9;
        add_handshakes(wire_.resumed() ? io_.handshakes_resumed : io_.handshakes_full,
                       {1, took, took});
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
        wire_.send(bytes_);
        rec_.sent_ns = now_ns();
        write_some();
    }
    // What takes no more of a request may have answered it already, as with 413.
    void write_some() { if (!wire_.flush()) read_now(); }

    // ---- the answer

    void read_now() {
        const arrival a = wire_.read(io_.buffer);
        if (a.what == arrival::kind::nothing_yet) return;
        io_.on_stamp(a.at_ns);
        if (a.what == arrival::kind::end) return on_end(a);
        if (is_opening()) return on_handshake(wire_.shake_hands(a.bytes, io_.plain));
        const std::string_view bytes = wire_.content(a.bytes, io_.plain);
        const int events_before = answer_.timeline().events();
        answer_.feed(bytes, a.at_ns);
        const int events = answer_.timeline().events() - events_before;
        io_.content_events += events;
        io_.coalesced_events += std::max(0, events - 1);
        // An answer has begun, so this will not be sent again; it may be long.
        if (wire_.unsent() == 0 && !bytes_.empty() && !answer_.untouched())
            std::string().swap(bytes_);
        if (answer_.finished()) return on_finished();
        if (wire_.tls_ended()) return on_end_of_tls(a.at_ns);
        if (answer_.timeline().ended()) deliver();
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
    /// Later than a second after an answer it may as well be one that nobody used for too long.
    void learn_of_end() {
        const bool is_new = wire_.is_open() && answers_ == 1;
        if (is_new && now_ns() - answered_ns_ < 1000000000) ++io_.hang_ups;
    }
    void on_end_of_input(long long now, const std::string& error) {
        // A reused connection may have been closed by the server at the very moment we sent: it is
        // tried once afresh, and the record tells.
        if (answer_.untouched() && std::exchange(may_send_again_, false)) {
            learn_of_end();
            wire_.close();
            state_ = state::opening_for_request;
            ++rec_.resends;
            rec_.connected_ns = rec_.sent_ns = 0;
            connect_from_ns_ = now;
            return connect(0);
        }
        answer_.end_of_input(now, error);
        on_finished();
    }
    void on_finished() {
        const bool keep = io_.keeps_connections() && answer_.keeps_connection() &&
                          wire_.unsent() == 0 && !wire_.tls_ended();
        if (!keep) wire_.close();
        deliver();
        ++answers_;
        answered_ns_ = now_ns();
        if (!keep) return retire();
        state_ = state::idle;
        sink_.on_idle(*this);
    }
    void deliver() {
        if (std::exchange(state_, state::draining) == state::draining) return;
        drain_from_ns_ = now_ns();
        answer_.timeline().write_to(rec_);
        rec_.http_status = answer_.http_status();
        rec_.error = without_secrets(str(rec_.error), io_.target.secrets);
        rec_.finish_reason = without_secrets(str(rec_.finish_reason), io_.target.secrets);
        if (rec_.end_ns == 0) rec_.end_ns = drain_from_ns_;
        sink_.on_delivered(request_, std::move(rec_), answer_);
    }

    client_io& io_;
    request_sink& sink_;
    exchange wire_{};
    planned_request request_{};
    record rec_{};
    answer_reader answer_{};
    std::string bytes_{};
    std::size_t which_ = 0;  // of the target's addresses
    std::size_t tried_ = 0;  // addresses before it that failed
    std::optional<std::size_t> unanswered_{};  // the last of them that did not answer in its share
    long long leaves_after_ns_ = 0;
    long long connect_from_ns_ = 0, drain_from_ns_ = 0;
    long long opened_ns_ = 0, shaking_from_ns_ = 0, answered_ns_ = 0;
    int answers_ = 0;  // since it was opened
    state state_ = state::closed;
    bool may_send_again_ = false;  // a kept connection may be lost as we send, once a request
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
