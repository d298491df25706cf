// a virtual machine: its time and its network
// Everything happens in one thread, in the order of its times, so that every run gives the same
// bytes.
#pragma once

#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/wire/url.hpp"
#include "effects/net/machine_network.hpp"
#include "effects/net/network.hpp"
#include "effects/net/sockets.hpp"
#include "effects/system/clock.hpp"

#include <algorithm>  // max, min
#include <cerrno>  // errno
#include <cstddef>  // size_t
#include <cstdint>  // uint16_t
#include <cstring>  // memcpy
#include <functional>  // what happens, what is done in between
#include <map>  // multimap
#include <memory>  // shared_ptr, unique_ptr, make_unique
#include <stdexcept>  // logic_error, runtime_error
#include <string>
#include <string_view>
#include <utility>  // exchange, forward, move, swap

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The server's end of a connection.
class virtual_peer {
public:
    virtual void on_bytes(std::string_view bytes) = 0;
    virtual void on_end() = 0;
    /// Called when it takes bytes again.
    virtual void on_room() = 0;
    /// Whether it has answered a request and is idle.
    virtual bool is_kept_idle() const = 0;
    virtual ~virtual_peer() = default;
};

/// A connection between client and server in one environment: two ordered streams of bytes.
struct virtual_link {
    struct direction {
        long long last_ns = 0;      // arrival of the last bytes on the way
        std::size_t under_way = 0;  // in bytes, unread ones included
    };
    direction to_server{}, to_client{};
    std::shared_ptr<virtual_peer> server{};  // null: not accepted yet, or gone
    // The client's end.
    std::string inbox{};
    long long came_ns = 0;  // arrival of the last byte
    bool has_ended = false, is_let_go = false;
    int error = 0;  // of the end, or of connecting
    bool is_writable = false, is_broken = false;
    std::function<void()> on_change{};  // called on events

    static constexpr std::size_t window = 1 << 18;
};
using shared_link = std::shared_ptr<virtual_link>;

class virtual_listener {
public:
    /// Null: it accepts none now.
    virtual std::shared_ptr<virtual_peer> accepted(const shared_link& l) = 0;
    /// It goes away, and returns later without memory.
    virtual void restart(double away_s) = 0;

protected:
    ~virtual_listener() = default;
};

/// Everything is immediate and nothing fails: functions are virtual for harder environments
/// (tests/simulated/hard_world.hpp).
class virtual_environment : public execution_environment {
public:
    virtual_environment() = default;
    virtual ~virtual_environment() = default;
    virtual_environment(const virtual_environment&) = delete;
    virtual_environment& operator=(const virtual_environment&) = delete;

    // ---- time

    long long now_ns() const override { return now_ns_; }
    double unix_s() const override { return static_cast<double>(now_ns_) * 1e-9 + 1e9; }
    long long waited_ns() const override { return 0; }
    void sleep_until(long long at_ns) override { pass(at_ns, [] { return false; }); }
    void at(long long ns, std::function<void()> what) override {
        to_come_.emplace(std::max(ns, now_ns_), std::move(what));
    }
    /// Runs all events until then, or until the moment in which `enough` is true.
    template <class Enough>
    void pass(long long until_ns, Enough&& enough) {
        bool ends = false;
        while (!to_come_.empty() && to_come_.begin()->first <= (ends ? now_ns_ : until_ns)) {
            const auto next = to_come_.extract(to_come_.begin());
            move_to(next.key());
            next.mapped()();
            ends = ends || enough();
        }
        if (!ends) move_to(until_ns);
    }
    /// A loop without progress in time would never end.
    void note_turn() {
        if (++turns_ > max_turns_at_a_time)
            throw std::logic_error("a million turns in one moment of virtual time");
    }
    /// Whether its kernel stamps arrivals.
    virtual bool stamps_arrivals() const { return true; }
    /// May stop the client for a while, with all else going on.
    virtual void client_runs() {}

    // ---- addresses

    /// Accepts connections from now on; returns the URL.
    std::string listen(virtual_listener& server) {
        servers_.push_back(&server);
        return prefix + std::to_string(servers_.size());
    }
    vector<address> resolved(const http_url& u) const override {
        vector<address> all;
        for (std::size_t n = 1; n <= servers_.size(); ++n)
            if ("http://" + u.host == prefix + std::to_string(n)) all.push_back(address_of(n));
        if (all.empty())
            throw std::runtime_error("the host \"" + printable(u.host) +
                                     "\" is not in this virtual world");
        return all;
    }
    std::unique_ptr<network> new_network() override;
    int use_disk(std::size_t& bytes) override { return disk ? disk(bytes) : 0; }
    std::function<int(std::size_t& bytes)> disk{};  // null: unlimited
    /// Null if nobody ever answers.
    virtual virtual_listener* listener_at(const address& a) {
        sockaddr_in in{};
        std::memcpy(&in, &a.storage, sizeof in);
        const std::size_t number = ntohs(in.sin_port);
        return number > servers_.size() ? nullptr : servers_[number - 1];
    }
    /// The errno of connecting now.
    virtual int error_of_connecting() { return 0; }
    virtual bool refuses() { return false; }

    // ---- bytes

    /// An event of the server.
    virtual void at_server(long long ns, std::function<void()> what) { at(ns, std::move(what)); }
    /// `arrive` gets the bytes, in pieces.
    template <class Arrive>
    void carry(virtual_link::direction& d, std::string_view bytes, const Arrive& arrive) {
        d.under_way += bytes.size();
        while (!bytes.empty()) {
            const std::size_t n = piece_of(bytes.size());
            after_all(d, n, [piece = std::string(bytes.substr(0, n)), arrive] { arrive(piece); });
            bytes.remove_prefix(n);
        }
    }
    /// After all bytes on the way.
    template <class What>
    void after_all(virtual_link::direction& d, std::size_t bytes, What&& what) {
        d.last_ns = arrival_ns(d.last_ns, bytes);
        at(d.last_ns, std::forward<What>(what));
    }
    /// The server's write: bytes taken, below 0 if the connection is closed.
    virtual long long send_to_client(const shared_link& l, std::string_view bytes) {
        if (l->is_let_go || l->is_broken) return -1;
        const std::size_t room =
            virtual_link::window - std::min(virtual_link::window, l->to_client.under_way);
        bytes = bytes.substr(0, room);
        carry(l->to_client, bytes, [this, l](const std::string& piece) {
            if (l->is_let_go || l->has_ended) return;
            l->inbox += piece;
            l->came_ns = now_ns();
            l->on_change();
        });
        return static_cast<long long>(bytes.size());
    }
    /// `error`: 0, or the errno of a reset.
    void end_from_server(const shared_link& l, int error) {
        if (l->is_broken) return;
        l->is_broken = true;
        after_all(l->to_client, 0, [l, error] {
            if (l->is_let_go || l->has_ended) return;
            l->has_ended = true;
            l->error = error;
            l->on_change();
        });
        at(now_ns_, [l] { l->server.reset(); });  // not during its own call
    }
    void send_to_server(const shared_link& l, std::string_view bytes) {
        carry(l->to_server, bytes, [this, l](const std::string& piece) {
            at_server(now_ns_, [this, l, piece] {
                l->to_server.under_way -= piece.size();
                if (!l->server || is_closed_instead(l)) return;
                l->server->on_bytes(piece);
                if (!l->is_let_go) l->on_change();
            });
        });
    }
    void end_from_client(const shared_link& l) {
        l->is_let_go = true;
        after_all(l->to_server, 0, [this, l] {
            at_server(now_ns_, [l] {  // as bytes are, so that the last of them come first
                if (const auto peer = std::exchange(l->server, nullptr)) peer->on_end();
            });
        });
    }

protected:
    /// The number of bytes that arrive at once.
    virtual std::size_t piece_of(std::size_t bytes) { return bytes; }
    /// The arrival of bytes after earlier ones.
    virtual long long arrival_ns(long long last_ns, std::size_t) {
        return std::max(now_ns_, last_ns);
    }
    /// The server closed the connection just as a request came.
    virtual bool is_closed_instead(const shared_link&) { return false; }
    const vector<virtual_listener*>& servers() const { return servers_; }

private:
    static constexpr long long max_turns_at_a_time = 1000000;
    static constexpr const char* prefix = "http://simulated-";

    void move_to(long long ns) {
        if (ns <= now_ns_) return;
        now_ns_ = ns;
        turns_ = 0;
    }
    static address address_of(std::size_t server) {
        sockaddr_in in{};
        in.sin_family = AF_INET;
        in.sin_port = htons(static_cast<std::uint16_t>(server));
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address a;
        std::memcpy(&a.storage, &in, sizeof in);
        a.size = sizeof in;
        return a;
    }

    long long now_ns_ = 1000000000000, turns_ = 0;
    std::multimap<long long, std::function<void()>> to_come_{};  // of one time: in their order
    vector<virtual_listener*> servers_{};
};

struct virtual_socket final : network_socket {
    virtual_socket(socket_user& u, shared_link l) : network_socket(u), link(std::move(l)) {}
    shared_link link;
    bool is_due = false;  // an event is pending

    bool can_be_read() const { return !link->inbox.empty() || link->has_ended; }
    bool can_be_written() const {
        return link->is_writable &&
               (link->has_ended || link->to_server.under_way < virtual_link::window);
    }
};

class virtual_network final : public network {
public:
    explicit virtual_network(virtual_environment& w) : environment_(w) {}

    socket connect(const address& to, const address*, socket_user& user) override {
        environment_.client_runs();
        if (const int error = environment_.error_of_connecting()) {
            errno = error;
            return nullptr;
        }
        const auto link = new_shared<virtual_link>();
        const auto s = new_shared<virtual_socket>(user, link);
        link->on_change = [this, weak = std::weak_ptr(s)] {
            if (const auto known = weak.lock()) note(known);
        };
        virtual_listener* const server = environment_.listener_at(to);
        if (!server) return s;
        const bool is_refused = environment_.refuses();
        environment_.after_all(link->to_server, 0, [this, link, server, is_refused] {
            if (!is_refused && !link->is_let_go) link->server = server->accepted(link);
            if (!link->server) link->error = ECONNREFUSED;
            environment_.after_all(link->to_client, 0, [link] {
                link->is_writable = true;
                if (!link->is_let_go) link->on_change();
            });
        });
        return s;
    }
    int connect_error(const socket& s) override {
        const virtual_link& l = *its(s).link;
        return l.has_ended ? 0 : std::exchange(its(s).link->error, 0);
    }
    long long read(const socket& s, char* into, std::size_t bytes) override {
        virtual_link& l = *its(s).link;
        if (l.inbox.empty() && !l.has_ended) return failed(EAGAIN);
        if (l.inbox.empty()) return l.error == 0 ? 0 : failed(l.error);
        s->came_ns = environment_.stamps_arrivals() ? l.came_ns : 0;
        const std::size_t n = l.inbox.copy(into, std::min(bytes, l.inbox.size()));
        l.inbox.erase(0, n);
        const bool was_full = l.to_client.under_way >= virtual_link::window;
        l.to_client.under_way -= n;
        if (was_full && l.server)
            environment_.after_all(l.to_server, 0, [link = its(s).link] {
                if (link->server) link->server->on_room();
            });
        environment_.client_runs();
        return static_cast<long long>(n);
    }
    long long write(const socket& s, const char* from, std::size_t bytes) override {
        const shared_link& l = its(s).link;
        if (l->has_ended && l->error != 0) return failed(l->error);
        const std::size_t room =
            virtual_link::window - std::min(virtual_link::window, l->to_server.under_way);
        const std::size_t n = std::min(bytes, room);
        if (n == 0) return failed(EAGAIN);
        environment_.send_to_server(l, {from, n});
        return static_cast<long long>(n);
    }
    void await_room(const socket& s) override {
        s->awaits_room = true;
        if (its(s).can_be_written()) note(std::static_pointer_cast<virtual_socket>(s));
    }
    void close(socket s) override {
        s->user = nullptr;
        environment_.end_from_client(its(s).link);
    }

    using network::each;
    using network::wait;
    void wait(long long until_ns, long long now) override {
        environment_.note_turn();
        const bool has_some = !due_.empty();
        environment_.pass(has_some ? now : std::max(until_ns, now),
                          [this] { return !due_.empty(); });
        environment_.client_runs();
    }
    long long full_turns(std::size_t) const override { return 0; }
    void each(const std::function<void()>& after_each) override {
        vector<known_socket> now;
        std::swap(now, due_);
        for (const known_socket& s : now) {
            s->is_due = false;
            if (s->user && s->awaits_room && s->can_be_written()) {
                s->awaits_room = false;
                s->user->on_writable();
            }
            if (s->user && s->link->is_writable && s->can_be_read()) s->user->on_readable();
            if (s->user) note(s);  // as long as there is an event
            after_each();
        }
    }

private:
    using known_socket = std::shared_ptr<virtual_socket>;

    static virtual_socket& its(const socket& s) { return static_cast<virtual_socket&>(*s); }
    static long long failed(int error) {
        errno = error;
        return -1;
    }
    void note(const known_socket& s) {
        const bool any = s->can_be_read() || (s->awaits_room && s->can_be_written());
        if (s->is_due || !s->user || !s->link->is_writable || !any) return;
        s->is_due = true;
        due_.push_back(s);
    }

    virtual_environment& environment_;
    vector<known_socket> due_{};
};

inline std::unique_ptr<network> virtual_environment::new_network() {
    return std::make_unique<virtual_network>(*this);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
