// waiting for sockets, on systems other than Linux
#pragma once

#include "effects/system/clock.hpp"
#include "effects/net/network.hpp"
#include "effects/net/sockets.hpp"

#include <cerrno>  // errno
#include <functional>  // what is done in between
#include <memory>  // shared_ptr, make_shared, static_pointer_cast
#include <stdexcept>  // runtime_error
#include <string>
#include <utility>  // move
#include <vector>

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
inline namespace v0 {
namespace detail {

#if !defined(__linux__) || defined(LLMBENCH_WAIT_BY_ASIO)
// A type of a single executor: asio's default for any of them takes half a second to compile.
using io_executor = asio::io_context::executor_type;
using io_timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                            asio::wait_traits<std::chrono::steady_clock>,
                                            io_executor>;
using stream_socket = asio::basic_stream_socket<asio::generic::stream_protocol, io_executor>;

struct asio_socket final : network_socket {
    asio_socket(asio::io_context& c, int of, socket_user& u)
        : network_socket(u), carrier(c), family(of) {
        awaits_room = false;
    }

    stream_socket carrier;
    const int family;  // of its addresses
    bool awaits_bytes = false;
};

/// asio only waits; users read themselves, so that each stamp is taken right after its read.
class asio_network final : public network {
public:
    asio_network() try : timer_(context_), busy_(context_.get_executor()) {
    } catch (const asio::system_error& e) {
        throw std::runtime_error("the client cannot start: " + e.code().message());
    }

    socket connect(const address& to, const address* from, socket_user& user) override {
        return watch(connecting_socket(to, from), to.storage.ss_family, user);
    }
    /// Takes over a connecting socket.
    socket watch(descriptor fd, int family, socket_user& user) {
        if (fd.get() < 0) return nullptr;
        auto s = std::make_shared<asio_socket>(context_, family, user);
        if (!take(*s, std::move(fd))) return nullptr;
        await_room(s);
        return s;
    }
    static int fd(const socket& s) {
        return static_cast<asio_socket&>(*s).carrier.native_handle();
    }
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
    std::vector<ready> ready_{};
    long long rings_at_ns_ = 0;
};
#endif

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
