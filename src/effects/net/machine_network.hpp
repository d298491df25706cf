// waiting for sockets: by epoll on Linux, by asio elsewhere
#pragma once

#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/measured/alertness.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/net/network.hpp"
#include "effects/net/sockets.hpp"

#include <algorithm>  // max
#include <cerrno>  // errno
#include <cstring>  // memcpy
#include <ctime>  // timespec
#include <functional>  // what is done in between
#include <memory>  // make_unique, shared_ptr, static_pointer_cast, unique_ptr
#include <stdexcept>  // runtime_error
#include <utility>  // exchange, move

#ifdef __linux__
#include <netinet/tcp.h>  // TCP_INFO
#include <sys/epoll.h>  // epoll_event
#include <sys/socket.h>  // recv, recvmsg, send
#include <sys/timerfd.h>  // waiting for a point in time
#include <sys/uio.h>  // iovec
#endif

#if !defined(__linux__) || defined(LLMBENCH_WAIT_BY_ASIO)
#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE
#endif
#include <version>  // before asio: it asks for library features
#include <asio/basic_stream_socket.hpp>
#include <asio/basic_waitable_timer.hpp>  // points in time
#include <asio/executor_work_guard.hpp>  // a context without work would stop
#include <asio/generic/stream_protocol.hpp>  // TCP and Unix-domain sockets alike
#include <asio/io_context.hpp>
#include <sys/socket.h>  // recv, send
#endif

namespace llmbench {
inline namespace v1 {
namespace detail {

struct machine_socket : network_socket {
    machine_socket(socket_user& u, int of_it) : network_socket(u), fd(of_it) {}
    const int fd;
};

/// What is the same however it waits.
class socket_network : public network {
public:
    socket connect(const address& to, const address* from, socket_user& user) final {
        descriptor fd = connecting_socket(to, from);
        return fd.get() < 0 ? nullptr : watch(std::move(fd), to.storage.ss_family, user);
    }
    /// Takes over a socket that connects, or is connected.
    virtual socket watch(descriptor fd, int family, socket_user& user) = 0;
    static int fd(const socket& s) { return static_cast<machine_socket&>(*s).fd; }
    int connect_error(const socket& s) final { return connect_error_of(fd(s)); }
    long long read(const socket& s, char* into, std::size_t bytes) override {
        return ::recv(fd(s), into, bytes, 0);
    }
    long long write(const socket& s, const char* from, std::size_t bytes) final {
        return ::send(fd(s), from, bytes, no_signal);
    }
};

#ifdef __linux__
struct epoll_socket final : machine_socket {
    epoll_socket(descriptor d, socket_user& u)
        : machine_socket(u, d.get()), owned(std::move(d)) {}
    descriptor owned;
    bool is_stamped = false;
    long long read_ns = 0;   // time of the last read
    long long since_ns = 0;  // unread input could not be read before
    unsigned disordered = 0;   // segments that came out of order, when last asked
};

/// A socket is reported while it holds bytes, so one read a turn is enough, and no socket starves.
class epoll_network final : public socket_network {
public:
    epoll_network() : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
                      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
        epoll_event e{};
        e.events = EPOLLIN | EPOLLET;  // a signal only, never read
        if (epoll_.get() < 0 || timer_.get() < 0 ||
            ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), &e) != 0)
            throw std::runtime_error("the client cannot start: " + error_text(errno));
    }

    /// Kernels start to stamp only a moment after a socket asks: one that is never connected asks
    /// all the time.
    void stamp_arrivals() override {
        asks_ = new_socket(AF_INET);
        stamps_ = asks_.get() < 0 || asks_for_stamps(asks_.get());
    }
    socket watch(descriptor fd, int family, socket_user& user) override {
        auto s = new_shared<epoll_socket>(std::move(fd), user);
        s->is_stamped = stamps_ && family != AF_UNIX && asks_for_stamps(s->fd);
        if (s->is_stamped) s->read_ns = now_ns();
        return control(EPOLL_CTL_ADD, *s, EPOLLOUT) ? s : nullptr;
    }
    /// Takes over a socket that listens: it is readable each time that connections come.
    socket listen(descriptor fd, socket_user& user) {
        auto s = new_shared<epoll_socket>(std::move(fd), user);
        return control(EPOLL_CTL_ADD, *s, EPOLLIN | EPOLLET) ? s : nullptr;
    }
    long long read(const socket& s, char* into, std::size_t bytes) override {
        return its(s).is_stamped ? read_stamped(its(s), into, bytes)
                                 : socket_network::read(s, into, bytes);
    }
    void await_room(const socket& s) override {
        if (!std::exchange(s->awaits_room, true))
            control(EPOLL_CTL_MOD, its(s), EPOLLIN | EPOLLOUT);
    }
    void close(socket s) override {
        control(EPOLL_CTL_DEL, its(s), 0);  // a child of ours may still hold it open
        s->user = nullptr;
        its(s).owned = descriptor();
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
        // A signal ends the wait, as do stop and continue, without events for bytes that came
        // meanwhile: they must be noticed in this turn.
        was_interrupted_ = reported < 0 && errno == EINTR;
        if (was_interrupted_) reported = ::epoll_wait(epoll_.get(), events_, most, 0);
        count_ = std::max(0, reported);
    }
    bool was_interrupted() const override { return was_interrupted_; }
    long long full_turns(std::size_t sockets) const override {
        return count_ < most ? 0 : static_cast<long long>(sockets) / most + 1;
    }
    void each(const std::function<void()>& after_each) override {
        for (int i = 0; i < count_; ++i) {
            auto* const s = static_cast<epoll_socket*>(events_[i].data.ptr);
            if (!s) rings_at_ns_ = 0;
            if (!s || !s->user) continue;
            const bool bytes = (events_[i].events & EPOLLIN) != 0;
            const bool has_room = s->awaits_room && (events_[i].events & ~EPOLLIN) != 0;
            if (has_room) {
                s->awaits_room = false;
                s->user->on_writable();
                if (s->user && !s->awaits_room) control(EPOLL_CTL_MOD, *s, EPOLLIN);
            }
            if (s->user && (bytes || !has_room)) s->user->on_readable();
            after_each();
        }
        count_ = 0;
    }

private:
    static constexpr int most = 256;  // events of a turn

    static epoll_socket& its(const socket& s) { return static_cast<epoll_socket&>(*s); }
    /// Values of linux/net_tstamp.h: SOF_TIMESTAMPING_RX_SOFTWARE and SOF_TIMESTAMPING_SOFTWARE.
    static bool asks_for_stamps(int fd) {
        const int how = 1 << 3 | 1 << 4;
        return ::setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &how, sizeof how) == 0;
    }
    /// The number of segments that came out of order so far, 0 if unknown: the field at this offset
    /// of Linux's tcp_info since 5.4, which the C library's lacks.
    static unsigned disordered(const epoll_socket& s) {
        constexpr std::size_t offset = 224;
        unsigned char info[offset + sizeof(unsigned)] = {};
        socklen_t size = sizeof info;
        unsigned n = 0;
        if (::getsockopt(s.fd, IPPROTO_TCP, TCP_INFO, info, &size) == 0 &&
            size == sizeof info)
            std::memcpy(&n, info + offset, sizeof n);
        return n;
    }
    /// Reads, with the arrival time of the last segment. Segments after a lost one could be read
    /// only when it was sent again, which no stamp shows: they have the time of their read.
    long long read_stamped(epoll_socket& s, char* into, std::size_t bytes) {
        using stamps = timespec[3];  // scm_timestamping of linux/errqueue.h; software first
        alignas(cmsghdr) char room[CMSG_SPACE(sizeof(stamps)) + 64];
        iovec where{into, bytes};
        msghdr m{};
        m.msg_iov = &where;
        m.msg_iovlen = 1;
        m.msg_control = room;
        m.msg_controllen = sizeof room;
        const long long asked = now_ns();
        const long long n = ::recvmsg(s.fd, &m, 0);
        if (n <= 0) return n;
        long long stamp = 0;
        for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
            if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_TIMESTAMPING ||
                c->cmsg_len < CMSG_LEN(sizeof(stamps)))
                continue;
            timespec t{};
            std::memcpy(&t, CMSG_DATA(c), sizeof t);
            stamp = ns_in(t);
        }
        const long long before = now_ns();
        const long long day = day_ns();
        clock_.on_readings(before, day, now_ns());
        s.came_ns = clock_.time_of(stamp, s.read_ns, s.since_ns, before);
        if (s.came_ns > 0 && before - s.came_ns > kernel_clock::early_ns)
            if (const unsigned all = disordered(s); all != std::exchange(s.disordered, all))
                s.came_ns = before;
        s.read_ns = before;
        const bool is_empty = static_cast<std::size_t>(n) < bytes;
        s.since_ns = is_empty ? asked : std::max(s.since_ns, s.came_ns);
        return n;
    }
    /// Returns false, with errno, on failure.
    bool control(int operation, epoll_socket& s, unsigned events) {
        epoll_event e{};
        e.events = events;
        e.data.ptr = &s;
        return ::epoll_ctl(epoll_.get(), operation, s.fd, &e) == 0;
    }

    descriptor epoll_, timer_;
    epoll_event events_[most] = {};
    int count_ = 0;
    bool was_interrupted_ = false, stamps_ = false;
    descriptor asks_{};
    kernel_clock clock_{};
    long long rings_at_ns_ = 0;
    vector<socket> gone_{};  // events of this turn may still name them
};
#endif

#if !defined(__linux__) || defined(LLMBENCH_WAIT_BY_ASIO)
// A type of a single executor: asio's default for any of them takes half a second to compile.
using io_executor = asio::io_context::executor_type;
using io_timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                            asio::wait_traits<std::chrono::steady_clock>,
                                            io_executor>;
using stream_socket = asio::basic_stream_socket<asio::generic::stream_protocol, io_executor>;

struct asio_socket final : machine_socket {
    asio_socket(asio::io_context& c, int of, int fd_of_it, socket_user& u)
        : machine_socket(u, fd_of_it), carrier(c), family(of) {
        awaits_room = false;
    }

    stream_socket carrier;
    const int family;  // of its addresses
    bool awaits_bytes = false;
};

/// asio only waits; users read themselves, so that each stamp is taken right after its read.
class asio_network final : public socket_network {
public:
    asio_network() try : timer_(context_), busy_(context_.get_executor()) {
    } catch (const asio::system_error& e) {
        throw std::runtime_error("the client cannot start: " + e.code().message());
    }

    socket watch(descriptor fd, int family, socket_user& user) override {
        const known_socket s = taken(std::move(fd), family, user);
        if (s) await_room(s);
        return s;
    }
    /// Takes over a socket that listens.
    socket listen(descriptor fd, socket_user& user) {
        const known_socket s = taken(std::move(fd), AF_UNIX, user);
        if (s) await_bytes(s);
        return s;
    }
    void await_room(const socket& s) override {
        if (std::exchange(s->awaits_room, true)) return;
        its(s)->carrier.async_wait(stream_socket::wait_write,
                                   [this, of = its(s)](const asio::error_code& e) mutable {
                                       if (e != asio::error::operation_aborted)
                                           ready_.push_back({std::move(of), false});
                                   });
    }
    void close(socket s) override {
        asio::error_code ignored;
        s->user = nullptr;
        its(s)->carrier.close(ignored);
    }

    using network::each;
    using network::wait;
    void wait(long long until_ns, long long now) override {
        if (until_ns > now) {
            ring(until_ns);
            context_.run_one();
        }
        context_.poll();  // handles all else that is ready
    }
    long long full_turns(std::size_t) const override { return 0; }
    void each(const std::function<void()>& after_each) override {
        for (ready& r : ready_) {
            if (!r.s->user) continue;
            if (r.to_read) r.s->user->on_readable();
            else {
                r.s->awaits_room = false;
                r.s->user->on_writable();
                if (r.s->user && !r.s->awaits_room) begin_anew(*r.s);
            }
            if (r.s->user && !r.s->awaits_bytes) await_bytes(std::move(r.s));
            after_each();
        }
        ready_.clear();
    }

private:
    using known_socket = std::shared_ptr<asio_socket>;
    struct ready {
        known_socket s;
        bool to_read;
    };

    static known_socket its(const socket& s) { return std::static_pointer_cast<asio_socket>(s); }
    known_socket taken(descriptor fd, int family, socket_user& user) {
        auto s = new_shared<asio_socket>(context_, family, fd.get(), user);
        return take(*s, std::move(fd)) ? s : nullptr;
    }
    static bool take(asio_socket& s, descriptor fd) {
        asio::error_code error;
        s.carrier.assign(asio::generic::stream_protocol(s.family, 0), fd.get(), error);
        if (!error) fd.release();
        errno = error.value();
        return !error;
    }
    void await_bytes(known_socket s) {
        s->awaits_bytes = true;
        stream_socket& from = s->carrier;
        from.async_wait(stream_socket::wait_read,
                        [this, s = std::move(s)](const asio::error_code& e) mutable {
                            if (e == asio::error::operation_aborted) return;
                            s->awaits_bytes = false;
                            ready_.push_back({std::move(s), true});
                        });
    }
    /// After asio has waited for room once, epoll reports room at every later wait for bytes, which
    /// then returns at once. So the socket becomes one that is new to asio.
    static void begin_anew(asio_socket& s) {
        asio::error_code error;
        take(s, descriptor(s.carrier.release(error)));  // the next wait reports its failure
        s.awaits_bytes = false;
    }
    void ring(long long at_ns) {
        if (rings_at_ns_ != 0 && rings_at_ns_ <= at_ns) return;  // an early timer is harmless
        rings_at_ns_ = at_ns;
        timer_.expires_at(time_point_of(at_ns));
        timer_.async_wait([this](const asio::error_code& e) {
            if (!e) rings_at_ns_ = 0;
        });
    }

    asio::io_context context_{ASIO_CONCURRENCY_HINT_UNSAFE};  // one thread: no locks
    io_timer timer_;
    asio::executor_work_guard<io_executor> busy_;
    vector<ready> ready_{};
    long long rings_at_ns_ = 0;
};
#endif

// Both do the same. asio costs more (tests/bench/README.md): a system call for each event, and one
// for each turn to know that all are reported. LLMBENCH_WAIT_BY_ASIO: a test program uses it.
#if defined(__linux__) && !defined(LLMBENCH_WAIT_BY_ASIO)
using machine_network = epoll_network;
#else
using machine_network = asio_network;
#endif

/// Returns the network of the thread's environment.
inline std::unique_ptr<network> new_network() {
    return current_environment ? current_environment->new_network()
                               : std::make_unique<machine_network>();
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
