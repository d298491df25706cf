// waiting for sockets
#pragma once

#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/net/sockets.hpp"

#include <algorithm>  // max
#include <cerrno>  // errno
#include <stdexcept>  // runtime_error
#include <string>

#include <sys/epoll.h>  // EPOLLIN, epoll_event
#include <sys/timerfd.h>  // waiting for a point in time

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Waits for sockets and for one point in time. Not asio: a wait there costs an epoll_ctl, which at
/// one event a read is a third system call beside the two that nobody can do without. A socket is
/// told of while it holds bytes, so one read a turn is enough, and none starves the others.
class poller {
public:
    poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
               timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
        if (epoll_.get() < 0 || timer_.get() < 0)
            throw std::runtime_error(std::string("the client cannot start: ") +
                                     error_text(errno));
        watch(EPOLL_CTL_ADD, timer_.get(), EPOLLIN | EPOLLET, nullptr);  // rings, and is not read
    }
    /// False, with errno, where it cannot.
    bool watch(int operation, int fd, unsigned events, void* who) {
        epoll_event e{};
        e.events = events;
        e.data.ptr = who;
        return ::epoll_ctl(epoll_.get(), operation, fd, &e) == 0;
    }
    /// Until something happens, or until then; not at all where that has passed. A timer, because
    /// epoll's own limit is in milliseconds.
    void wait(long long until_ns) { wait(until_ns, now_ns()); }
    void wait(long long until_ns, long long now) {
        const bool passed = until_ns <= now;
        if (!passed && until_ns != rings_at_ns_) {
            const itimerspec at{{0, 0}, {until_ns / 1000000000, until_ns % 1000000000}};
            ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
            rings_at_ns_ = until_ns;
        }
        count_ = std::max(0, ::epoll_wait(epoll_.get(), events_, most, passed ? 0 : -1));
    }
    /// Nothing has happened that the wait did not tell of.
    bool told_all() const { return count_ < most; }
    /// `on_ready(who, events)` for each socket that the wait found.
    template <class OnReady>
    void each(OnReady&& on_ready) {
        for (int i = 0; i < count_; ++i)
            if (events_[i].data.ptr) on_ready(events_[i].data.ptr, events_[i].events);
            else rings_at_ns_ = 0;
    }

    static constexpr int most = 256;

private:
    descriptor epoll_, timer_;
    epoll_event events_[most] = {};
    int count_ = 0;
    long long rings_at_ns_ = 0;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
