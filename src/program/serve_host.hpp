// the sockets of `llmbench serve`
// One thread waits for them as the client does for its own, so that the kernel's stamps tell when a
// request came.
#pragma once

#include "core/base/vector.hpp"
#include "effects/net/machine_network.hpp"
#include "effects/net/sockets.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/limits.hpp"
#include "effects/system/threads.hpp"
#include "program/serve_service.hpp"
#include "program/serve_tls.hpp"
#include "program/values.hpp"

#include <algorithm>  // max, min, push_heap, pop_heap
#include <array>
#include <atomic>
#include <cerrno>  // errno
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>  // exchange, move, swap

#include <fcntl.h>  // open
#include <netinet/tcp.h>  // TCP_NODELAY
#include <sys/socket.h>

namespace llmbench_program {

class serving_host;

/// One connection. What an action writes is sent at its end, in one piece.
class serving_session final : public simulated_session, public socket_user {
public:
    serving_session(serving_host& host, const request_handler& handler, const tls_identity* tls)
        : simulated_session(handler), host_(host) {
        if (tls) tls_.emplace(*tls);
    }
    void begin(network::socket s) { socket_ = std::move(s); }
    void on_readable() override;
    void on_writable() override { flush(); }
    long long arrived_ns() const override { return arrived_ns_; }
    /// Gives what was written to the kernel. It may end the connection.
    void flush();

private:
    long long give(std::string_view bytes) override;
    void end(bool by_reset) override;
    void close();

    serving_host& host_;
    network::socket socket_{};
    std::optional<tls_server_channel> tls_{};
    std::string out_{};
    std::size_t sent_ = 0;
    long long arrived_ns_ = 0;
    bool ends_ = false, is_reset_ = false, is_dirty_ = false;
};

/// Listens until it is destroyed.
class serving_host final : private socket_user {
public:
    /// Throws std::runtime_error if the port is not available.
    serving_host(const serving& what, const address& at, std::optional<tls_identity> tls)
        : tls_(std::move(tls)),
          service_(
              what,
              [this](long long ns, std::function<void()> f) {
                  due_.push_back({ns, ++number_, std::move(f)});
                  std::push_heap(due_.begin(), due_.end(), later);
              },
              [this] { flush(); },
              [this] {
                  if (listener_) network_.close(std::exchange(listener_, nullptr));
              }) {
        raised_open_files(1 << 20);
        network_.stamp_arrivals();
        descriptor fd = new_socket(at.storage.ss_family, false);
        const int on = 1;
        ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        address bound = at;
        if (fd.get() < 0 ||
            ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at.storage), at.size) != 0 ||
            ::listen(fd.get(), 4096) != 0 ||
            ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.size) != 0)
            throw std::runtime_error(error_text(errno));
        port_ = port_of(bound);
        listener_fd_ = fd.get();
        listener_ = network_.watch(std::move(fd), AF_UNIX, *this);  // it has no bytes to stamp
        if (!listener_) throw std::runtime_error(error_text(errno));
#ifdef __linux__
        listener_->awaits_room = false;
        network_.await_room(listener_);  // and reports who waits
#else
        look_for_connections();
#endif
        thread_ = contained_thread([this] { run(); },
                                   [this](const std::string& why) {
                                       const std::lock_guard lock(mutex_);
                                       error_ = why.empty() ? "its thread failed" : why;
                                   });
    }
    ~serving_host() { stop(); }
    serving_host(const serving_host&) = delete;
    serving_host& operator=(const serving_host&) = delete;

    int port() const { return port_; }
    served_since take() { return service_.take(); }
    std::string error() const {
        const std::lock_guard lock(mutex_);
        return error_;
    }
    /// All connections end.
    void stop() {
        stops_ = true;
        if (thread_.joinable()) thread_.join();
    }

private:
    friend class serving_session;
    struct action {
        long long at_ns = 0, number = 0;
        std::function<void()> what{};
    };
    static bool later(const action& a, const action& b) {
        return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.number > b.number;
    }
    static int port_of(const address& a) {
        const bool is_v6 = a.storage.ss_family == AF_INET6;
        return ntohs(is_v6 ? reinterpret_cast<const sockaddr_in6&>(a.storage).sin6_port
                           : reinterpret_cast<const sockaddr_in&>(a.storage).sin_port);
    }

    void run() {
        while (!stops_) {
            const long long now = now_ns(), tick = now + ns_of(0.05);
            network_.wait(due_.empty() ? tick : std::min(due_.front().at_ns, tick), now);
            network_.each([this] { act(); });
            act();
        }
        service_.go_away();
        flush();
        sessions_.clear();
    }
    /// Does what is due. After so many the sockets have their turn.
    void act() {
        flush();
        for (int i = 0; i < 256 && !due_.empty() && due_.front().at_ns <= now_ns(); ++i) {
            std::pop_heap(due_.begin(), due_.end(), later);
            const action next = std::move(due_.back());
            due_.pop_back();
            next.what();
            flush();
        }
        gone_.clear();
    }
    void flush() {
        while (!dirty_.empty()) {
            vector<std::shared_ptr<serving_session>> now;
            std::swap(now, dirty_);
            for (const auto& s : now) s->flush();
        }
        service_.on_sent();
    }

    /// Connections wait. Without a descriptor for the next one, a spare one takes and refuses it.
    void on_readable() override {
        for (;;) {
            descriptor fd(::accept(listener_fd_, nullptr, nullptr));
            if (fd.get() < 0 && (errno == EMFILE || errno == ENFILE)) {
                spare_ = descriptor();
                descriptor(::accept(listener_fd_, nullptr, nullptr));
                spare_ = descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
                return;
            }
            if (fd.get() < 0) return;
            ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
            ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
            const int on = 1;
            ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            auto s = std::make_shared<serving_session>(*this, service_.handler(),
                                                       tls_ ? &*tls_ : nullptr);
            network::socket socket = network_.watch(std::move(fd), AF_INET, *s);
            if (!socket) continue;
            s->begin(std::move(socket));
            service_.add(s);
            sessions_[s.get()] = s;
        }
    }
    void on_writable() override {}
#ifndef __linux__
    /// asio waits for bytes only.
    void look_for_connections() {
        if (!listener_) return;
        on_readable();
        due_.push_back({now_ns() + ns_of(0.001), ++number_, [this] { look_for_connections(); }});
        std::push_heap(due_.begin(), due_.end(), later);
    }
#endif

    std::optional<tls_identity> tls_;
    machine_network network_{};
    serving_service service_;
    descriptor spare_{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    int listener_fd_ = -1, port_ = 0;
    network::socket listener_{};
    vector<action> due_{};  // a heap
    long long number_ = 0;
    std::unordered_map<serving_session*, std::shared_ptr<serving_session>> sessions_{};
    vector<std::shared_ptr<serving_session>> dirty_{}, gone_{};
    std::array<char, 65536> buffer_{};
    mutable std::mutex mutex_{};
    std::string error_{};
    std::atomic<bool> stops_{false};
    std::thread thread_{};
};

inline void serving_session::on_readable() {
    if (!socket_) return;
    const long long n = host_.network_.read(socket_, host_.buffer_.data(), host_.buffer_.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return gone();
    arrived_ns_ = socket_->came_ns > 0 ? socket_->came_ns : now_ns();
    const std::string_view bytes(host_.buffer_.data(), static_cast<std::size_t>(n));
    if (!tls_) {
        take(bytes);
        return;
    }
    const std::string plain = tls_->received(bytes);
    give({});  // answers of the handshake
    if (!plain.empty()) take(plain);
    if (tls_->ended() && socket_) gone();
}
inline long long serving_session::give(std::string_view bytes) {
    if (!socket_) return -1;
    if (tls_) {
        tls_->send(bytes);
        out_ += tls_->taken();
    } else out_ += bytes;
    if (!std::exchange(is_dirty_, true))
        host_.dirty_.push_back(std::static_pointer_cast<serving_session>(shared_from_this()));
    return static_cast<long long>(bytes.size());
}
inline void serving_session::flush() {
    is_dirty_ = false;
    while (socket_ && sent_ < out_.size()) {
        const long long n = host_.network_.write(socket_, out_.data() + sent_, out_.size() - sent_);
        if (n > 0) sent_ += static_cast<std::size_t>(n);
        else if (n < 0 && errno == EAGAIN) {
            host_.service_.note_waiting();
            return host_.network_.await_room(socket_);
        } else {
            sent_ = out_.size();
            gone();
            return close();
        }
    }
    out_.clear();
    sent_ = 0;
    if (ends_) close();
}
inline void serving_session::end(bool by_reset) {
    if (!socket_ || ends_) return;
    if (tls_ && !by_reset) {
        tls_->say_goodbye();
        give({});
    }
    ends_ = true;
    is_reset_ = by_reset;
    flush();
    if (by_reset) close();
}
inline void serving_session::close() {
    if (!socket_) return;
    const linger at_once{1, 0};
    if (is_reset_)
        ::setsockopt(machine_network::fd(socket_), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    host_.network_.close(std::exchange(socket_, nullptr));
    const auto found = host_.sessions_.find(this);
    if (found == host_.sessions_.end()) return;
    host_.gone_.push_back(std::move(found->second));  // it may be on the stack
    host_.sessions_.erase(found);
}

}  // namespace llmbench_program
