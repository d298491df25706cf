// the network of a virtual machine
#pragma once

#include "effects/net/machine_network.hpp"
#include "effects/net/network.hpp"
#include "extensions/simulated/virtual_environment.hpp"

#include <algorithm>  // max, min
#include <cerrno>  // errno
#include <cstddef>  // size_t
#include <functional>  // what is done in between
#include <memory>  // make_shared, make_unique, unique_ptr
#include <utility>  // move, swap
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The client's end of a connection.
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
        const auto link = std::make_shared<virtual_link>();
        const auto s = std::make_shared<virtual_socket>(user, link);
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
        std::vector<known_socket> now;
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
    std::vector<known_socket> due_{};
};

inline std::unique_ptr<network> virtual_environment::new_network() {
    return std::make_unique<virtual_network>(*this);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
