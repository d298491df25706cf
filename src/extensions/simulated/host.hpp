// the simulated server on real sockets
// One thread waits for them as the client does for its own, so that the kernel's stamps tell when a
// request came.
#pragma once

#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "effects/net/machine_network.hpp"
#include "effects/net/sockets.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/threads.hpp"
#include "extensions/simulated/api.hpp"
#include "extensions/simulated/service.hpp"

#include <algorithm>  // min
#include <atomic>
#include <cerrno>  // errno
#include <cstddef>  // size_t
#include <functional>  // what is to be done at a time
#include <map>  // multimap
#include <memory>  // shared_ptr, static_pointer_cast
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <thread>
#include <utility>  // exchange, move, swap

#include <fcntl.h>  // O_NONBLOCK

namespace llmbench {
inline namespace v1 {
namespace detail {

class socket_host;

/// One connection. What an action writes is sent at its end, in one piece.
class socket_session : public simulated_session, public socket_user {
public:
    socket_session(socket_host& host, const request_handler& handler)
        : simulated_session(handler), host_(host) {}
    void begin(network::socket s) {
        socket_ = std::move(s);
        keeps_this_ = shared_from_this();
    }
    void on_readable() override;
    void on_writable() override { write_more(); }
    long long arrived_ns() const override { return arrived_ns_; }
    using simulated_session::write_more;

protected:
    long long give(std::string_view bytes) override;
    void end(int error) override;

private:
    void on_written() override;
    virtual void received(std::string_view bytes) { take(bytes); }

    socket_host& host_;
    network::socket socket_{};
    std::shared_ptr<simulated_session> keeps_this_{};  // while it has a socket
    long long arrived_ns_ = 0;
};

/// Sockets of a service that a derived class has: it calls serve() last when it is made, and stop()
/// first when it is destroyed.
class socket_host : private socket_user {
public:
    /// Throws std::runtime_error if the port is not available.
    explicit socket_host(address at) {
        network_.stamp_arrivals();
        descriptor fd = new_socket(at.storage.ss_family);
        sockaddr* const bound = reinterpret_cast<sockaddr*>(&at.storage);
        const int on = 1;
        ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (::bind(fd.get(), bound, at.size) == 0 && ::listen(fd.get(), 4096) == 0 &&
            ::getsockname(fd.get(), bound, &at.size) == 0)
            listener_ = network_.listen(std::move(fd), *this);
        if (!listener_) throw std::runtime_error(error_text(errno));
        port_ = ntohs(at.storage.ss_family == AF_INET6
                          ? reinterpret_cast<const sockaddr_in6*>(bound)->sin6_port
                          : reinterpret_cast<const sockaddr_in*>(bound)->sin_port);
    }

    int port() const { return port_; }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    /// Why it ended by itself, "" if it did not.
    std::string error() const { return has_failed_ ? error_ : ""; }
    /// All connections end.
    void stop() {
        stops_ = true;
        if (thread_.joinable()) thread_.join();
    }

protected:
    virtual std::shared_ptr<socket_session> new_session() {
        return new_shared<socket_session>(*this, service_->handler());
    }
    service_carrier carrier() {
        return {[this](long long ns, std::function<void()> f) { due_.emplace(ns, std::move(f)); },
                [this] { send(); },
                [this] {
                    if (listener_) network_.close(std::exchange(listener_, nullptr));
                }};
    }
    void serve(simulated_service& s) {
        service_ = &s;
        thread_ = contained_thread([this] { run(); },
                                   [this](const std::string& why) {
                                       error_ = why;
                                       has_failed_ = true;
                                       leave();
                                   });
    }

private:
    friend class socket_session;
    void run() {
        while (!stops_) {
            const long long now = now_ns(), tick = now + ns_of(0.02);
            network_.wait(due_.empty() ? tick : std::min(due_.begin()->first, tick), now);
            network_.each([this] { act(); });
            act();
        }
        leave();
    }
    void leave() {
        service_->go_away();
        send();
        gone_.clear();
    }
    /// Does what is due. After so many the sockets have their turn.
    void act() {
        send();
        for (int i = 0; i < 256 && !due_.empty() && due_.begin()->first <= now_ns(); ++i) {
            due_.extract(due_.begin()).mapped()();
            send();
        }
        gone_.clear();
    }
    void send() {
        while (!written_.empty()) {
            vector<std::shared_ptr<socket_session>> now;
            std::swap(now, written_);
            for (const auto& s : now) s->write_more();
        }
        service_->on_sent();
    }
    void on_readable() override {
        while (listener_) {
            descriptor fd(::accept(machine_network::fd(listener_), nullptr, nullptr));
            // Without descriptors, connections wait in the queue until there is one.
            if (fd.get() < 0 && errno != EAGAIN)
                due_.emplace(now_ns() + ns_of(0.01), [this] { on_readable(); });
            if (fd.get() < 0) return;
            ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
            ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
            const int on = 1;
            ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            const auto s = new_session();
            if (network::socket known = network_.watch(std::move(fd), AF_INET, *s)) {
                s->begin(std::move(known));
                service_->add(s);
            }
        }
    }
    void on_writable() override {}

    machine_network network_{};
    simulated_service* service_ = nullptr;
    network::socket listener_{};
    int port_ = 0;
    std::multimap<long long, std::function<void()>> due_{};  // of one time: in their order
    vector<std::shared_ptr<socket_session>> written_{};  // they have bytes to send
    vector<std::shared_ptr<simulated_session>> gone_{};  // they may be on the stack
    char buffer_[65536] = {};
    std::string error_{};
    std::atomic<bool> has_failed_{false}, stops_{false};
    std::thread thread_{};
};

inline void socket_session::on_readable() {
    if (!socket_) return;
    const long long n = host_.network_.read(socket_, host_.buffer_, sizeof host_.buffer_);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return gone();
    arrived_ns_ = socket_->came_ns > 0 ? socket_->came_ns : now_ns();
    received({host_.buffer_, static_cast<std::size_t>(n)});
}
inline void socket_session::on_written() {
    host_.written_.push_back(std::static_pointer_cast<socket_session>(shared_from_this()));
}
inline long long socket_session::give(std::string_view bytes) {
    const long long n = socket_ ? host_.network_.write(socket_, bytes.data(), bytes.size()) : -1;
    if (n >= 0 || !socket_ || errno != EAGAIN) return n;
    host_.service_->note_waiting();
    host_.network_.await_room(socket_);
    return 0;
}
inline void socket_session::end(int error) {
    if (!socket_) return;
    const linger at_once{1, 0};
    if (error != 0)
        ::setsockopt(machine_network::fd(socket_), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    host_.network_.close(std::exchange(socket_, nullptr));
    host_.gone_.push_back(std::move(keeps_this_));
}

/// simulated() in its own thread, on this machine.
class simulated_host final : public socket_host {
public:
    explicit simulated_host(const engine& e, int port = 0, service_observer* told = nullptr)
        : socket_host(look_up("127.0.0.1", std::to_string(port).c_str()).found.at(0)),
          service_(e, carrier(), told) {
        serve(service_);
    }
    ~simulated_host() { stop(); }

private:
    simulated_service service_;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
