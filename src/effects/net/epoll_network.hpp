// waiting for sockets, on Linux
#pragma once

#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/net/network.hpp"
#include "effects/net/sockets.hpp"

#include <algorithm>  // max
#include <cerrno>  // errno
#include <functional>  // what is done in between
#include <memory>  // make_shared
#include <stdexcept>  // runtime_error
#include <string>
#include <utility>  // move
#include <vector>

#ifdef __linux__
#include <sys/epoll.h>  // epoll_event
#include <sys/socket.h>  // recv, send
#include <sys/timerfd.h>  // waiting for a point in time
#endif

namespace llmbench {
inline namespace v0 {
namespace detail {

#ifdef __linux__
struct epoll_socket final : network_socket {
    epoll_socket(descriptor d, socket_user& u) : network_socket(u), fd(std::move(d)) {}
    descriptor fd;
};

/// A socket is told of while it holds bytes, so one read a turn is enough, and none starves the
/// others.
class epoll_network final : public network {
public:
    epoll_network() : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
                      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
        epoll_event e{};
        e.events = EPOLLIN | EPOLLET;  // rings, and is not read
        if (epoll_.get() < 0 || timer_.get() < 0 ||
            ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), &e) != 0)
            throw std::runtime_error("the client cannot start: " + error_text(errno));
    }

    socket connect(const address& to, const address* from, socket_user& user) override {
        return watch(connecting_socket(to, from), to.storage.ss_family, user);
    }
    /// Takes over a socket on its way to its peer.
    socket watch(descriptor fd, int, socket_user& user) {
        if (fd.get() < 0) return nullptr;
        auto s = std::make_shared<epoll_socket>(std::move(fd), user);
        return control(EPOLL_CTL_ADD, *s, EPOLLOUT) ? s : nullptr;
    }
    static int fd(const socket& s) { return its(s).fd.get(); }
    int connect_error(const socket& s) override { return connect_error_of(fd(s)); }
    long long read(const socket& s, char* into, std::size_t bytes) override {
        return ::recv(fd(s), into, bytes, 0);
    }
    long long write(const socket& s, const char* from, std::size_t bytes) override {
        return ::send(fd(s), from, bytes, no_signal);
    }
    void await_room(const socket& s) override {
        if (s->awaits_room) return;
        s->awaits_room = true;
        control(EPOLL_CTL_MOD, its(s), EPOLLIN | EPOLLOUT);
    }
    void close(socket s) override {
        control(EPOLL_CTL_DEL, its(s), 0);  // a child of ours may hold it open yet
        s->user = nullptr;
        its(s).fd = descriptor();
        gone_.push_back(std::move(s));
    }

    using network::each;
    using network::wait;
    void wait(long long until_ns, long long now) override {
        gone_.clear();
        const bool passed = until_ns <= now;
        if (!passed && until_ns != rings_at_ns_) {
            const itimerspec at{{0, 0}, {until_ns / 1000000000, until_ns % 1000000000}};
            ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
            rings_at_ns_ = until_ns;
        }
        int reported = ::epoll_wait(epoll_.get(), events_, most, passed ? 0 : -1);
        // A signal ends the wait, and so does being stopped and continued, with nothing told of
        // what has come in meanwhile: whoever is blind until now has to see it in this turn.
        if (reported < 0 && errno == EINTR) reported = ::epoll_wait(epoll_.get(), events_, most, 0);
        count_ = std::max(0, reported);
    }
    long long turns_for_all(std::size_t sockets) const override {
        return count_ < most ? 0 : static_cast<long long>(sockets) / most + 1;
    }
    void each(const std::function<void()>& after_each) override {
        for (int i = 0; i < count_; ++i) {
            if (auto* const s = static_cast<epoll_socket*>(events_[i].data.ptr)) {
                if (!s->user) continue;
                report(*s, events_[i].events);
                after_each();
            } else rings_at_ns_ = 0;
        }
        count_ = 0;
    }

private:
    static constexpr int most = 256;  // events of a turn

    static epoll_socket& its(const socket& s) { return static_cast<epoll_socket&>(*s); }
    /// False, with errno, where it cannot.
    bool control(int operation, epoll_socket& s, unsigned events) {
        epoll_event e{};
        e.events = events;
        e.data.ptr = &s;
        return ::epoll_ctl(epoll_.get(), operation, s.fd.get(), &e) == 0;
    }
    void report(epoll_socket& s, unsigned events) {
        const bool bytes = (events & EPOLLIN) != 0, more = (events & ~EPOLLIN) != 0;
        if (!s.awaits_room || !more) return s.user->on_readable();
        s.awaits_room = false;
        s.user->on_writable();
        if (s.user && !s.awaits_room) control(EPOLL_CTL_MOD, s, EPOLLIN);
        if (s.user && bytes) s.user->on_readable();
    }

    descriptor epoll_, timer_;
    epoll_event events_[most] = {};
    int count_ = 0;
    long long rings_at_ns_ = 0;
    std::vector<socket> gone_{};  // which events of this turn may still name
};
#endif

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
