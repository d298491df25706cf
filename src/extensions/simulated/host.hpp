// the simulated server's sockets
#pragma once

#include "api/target.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/threads.hpp"
#include "extensions/simulated/api.hpp"
#include "extensions/simulated/service.hpp"
#include "extensions/simulated/session.hpp"

#include <array>
#include <functional>  // what is to be done at a time
#include <memory>  // make_shared, static_pointer_cast
#include <string>
#include <string_view>
#include <thread>
#include <utility>  // move
#include <vector>

#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE
#endif
#include <version>  // before asio: it asks for library features
#include <asio/basic_socket_acceptor.hpp>
#include <asio/basic_stream_socket.hpp>
#include <asio/basic_waitable_timer.hpp>  // points in time
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>  // what must wait for the current handler

#include <chrono>

namespace llmbench {
inline namespace v0 {
namespace detail {

// A type of a single executor: asio's default for any of them takes half a second to compile.
using tcp_executor = asio::io_context::executor_type;
using tcp_socket = asio::basic_stream_socket<asio::ip::tcp, tcp_executor>;
using tcp_acceptor = asio::basic_socket_acceptor<asio::ip::tcp, tcp_executor>;
using tcp_timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                             asio::wait_traits<std::chrono::steady_clock>,
                                             tcp_executor>;

/// A connection on a real socket.
class socket_session final : public simulated_session {
public:
    socket_session(asio::io_context& io, const request_handler& handler)
        : simulated_session(handler), socket(io) {}

    void begin() {
        asio::error_code ignored;
        socket.set_option(asio::ip::tcp::no_delay(true), ignored);
        socket.non_blocking(true, ignored);
        read();
    }
    tcp_socket socket;

private:
    std::shared_ptr<socket_session> self() {
        return std::static_pointer_cast<socket_session>(shared_from_this());
    }
    void read() {
        socket.async_read_some(asio::buffer(buffer_),
                               [this, me = self()](asio::error_code e, std::size_t n) {
                                   if (e) return gone();
                                   if (take({buffer_.data(), n})) read();
                               });
    }
    long long give(std::string_view bytes) override {
        asio::error_code error;
        const std::size_t n = socket.write_some(asio::buffer(bytes), error);
        if (error && error != asio::error::would_block) return -1;
        if (error)
            socket.async_wait(tcp_socket::wait_write, [this, me = self()](asio::error_code e) {
                if (!e) write_more();
            });
        return error ? 0 : static_cast<long long>(n);
    }
    void end(bool by_reset) override {
        asio::error_code ignored;
        if (by_reset) socket.set_option(asio::socket_base::linger(true, 0), ignored);
        socket.close(ignored);
    }

    std::array<char, 16384> buffer_{};
};

/// The simulated server on real sockets, in its own thread.
class simulated_host {
public:
    explicit simulated_host(const engine& e, int port = 0)
        : service_(
              e, [this](long long ns, std::function<void()> f) { at(ns, std::move(f)); },
              [this] {
                  asio::error_code ignored;
                  acceptor_.close(ignored);
              }) {
        const asio::ip::tcp::endpoint at(asio::ip::address_v4::loopback(),
                                         static_cast<unsigned short>(port));
        acceptor_.open(at.protocol());
        acceptor_.set_option(asio::socket_base::reuse_address(true));
        acceptor_.bind(at);
        acceptor_.listen(4096);
        port_ = acceptor_.local_endpoint().port();
        accept_next();
        thread_ = contained_thread([this] { io_.run(); },
                                   [this](const char*) { service_.go_away(); });
    }
    ~simulated_host() {
        asio::post(io_, [this] {
            service_.go_away();
            io_.stop();  // drops later events
        });
        thread_.join();
    }
    simulated_host(const simulated_host&) = delete;
    simulated_host& operator=(const simulated_host&) = delete;

    int port() const { return port_; }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    std::vector<simulated_service::log_entry> log() { return service_.log(); }
    std::vector<simulated_service::profiler_entry> profiler_log() {
        return service_.profiler_log();
    }

private:
    void accept_next() {
        auto s = std::make_shared<socket_session>(io_, service_.handler());
        acceptor_.async_accept(s->socket, [this, s](asio::error_code e) {
            if (!acceptor_.is_open()) return;
            // Perhaps without descriptors: connections wait in the queue until there is one.
            if (e) return accept_later();
            service_.add(s);
            s->begin();
            accept_next();
        });
    }
    void accept_later() {
        at(now_ns() + 10000000, [this] {
            if (acceptor_.is_open()) accept_next();
        });
    }
    void at(long long ns, std::function<void()> what) {
        auto timer = std::make_shared<tcp_timer>(io_, time_point_of(ns));
        timer->async_wait([timer, what = std::move(what)](asio::error_code e) {
            if (!e) what();
        });
    }

    asio::io_context io_{1};
    tcp_acceptor acceptor_{io_};
    simulated_service service_;
    std::thread thread_{};
    int port_ = 0;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
