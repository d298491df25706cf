// simulated() as a target
#pragma once

#include "api/target.hpp"
#include "core/base/vector.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/threads.hpp"
#include "effects/targets/extension_server.hpp"
#include "extensions/simulated/api.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "extensions/simulated/service.hpp"
#include "extensions/simulated/virtual_environment.hpp"

#include <array>
#include <cerrno>  // ECONNRESET
#include <cstddef>  // size_t
#include <functional>  // what is to be done at a time
#include <memory>  // make_shared, static_pointer_cast, shared_ptr, unique_ptr, weak_ptr, ...
#include <string>
#include <string_view>
#include <system_error>  // error_code
#include <thread>
#include <utility>  // move

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
inline namespace v1 {
namespace detail {

// A type of a single executor: asio's default for any of them takes half a second to compile.
using tcp_executor = asio::io_context::executor_type;
using tcp_socket = asio::basic_stream_socket<asio::ip::tcp, tcp_executor>;
using tcp_acceptor = asio::basic_socket_acceptor<asio::ip::tcp, tcp_executor>;
using tcp_timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                             asio::wait_traits<std::chrono::steady_clock>,
                                             tcp_executor>;

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
    vector<simulated_service::log_entry> log() { return service_.log(); }
    vector<simulated_service::profiler_entry> profiler_log() {
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

class virtual_session : public simulated_session, public virtual_peer {
public:
    virtual_session(virtual_environment& w, const shared_link& l, const request_handler& handler)
        : simulated_session(handler), environment_(w), link_(l) {}

    void on_bytes(std::string_view bytes) override {
        if (wants_bytes_) wants_bytes_ = take(bytes);
    }
    void on_end() override { gone(); }
    void on_room() override { write_more(); }
    bool is_kept_idle() const override { return is_kept(); }

protected:
    long long give(std::string_view bytes) override {
        const shared_link l = link_.lock();
        return l ? environment_.send_to_client(l, bytes) : -1;
    }
    void end(bool by_reset) override {
        wants_bytes_ = false;
        if (const shared_link l = link_.lock())
            environment_.end_from_server(l, by_reset ? ECONNRESET : 0);
    }

private:
    virtual_environment& environment_;
    const std::weak_ptr<virtual_link> link_;
    bool wants_bytes_ = true;
};

/// The simulated server at a virtual address.
class virtual_server : public virtual_listener {
public:
    /// Must stay until its environment has no more events.
    virtual_server(virtual_environment& w, const engine& e)
        : environment_(w), engine_(e), service_(new_service()), url_(w.listen(*this)) {}
    virtual_server(const virtual_server&) = delete;
    virtual_server& operator=(const virtual_server&) = delete;
    virtual ~virtual_server() = default;

    const std::string& url() const { return url_; }
    /// Finished answers so far, as seen by the server.
    vector<simulated_service::log_entry> log() {
        vector<simulated_service::log_entry> all = of_old_;
        for (auto& x : service_->log()) all.push_back(std::move(x));
        return all;
    }

    vector<simulated_service::profiler_entry> profiler_log() {
        return service_->profiler_log();
    }

    std::shared_ptr<virtual_peer> accepted(const shared_link& l) override {
        if (is_away_) return nullptr;
        const auto s = session_on(l, service_->handler());
        service_->add(s);
        return s;
    }
    void restart(double away_s) override {
        if (is_away_) return;
        service_->go_away();
        of_old_ = log();
        alive_ = std::make_shared<int>();
        environment_.at(environment_.now_ns() + ns_of(away_s),
                        [this] { service_ = new_service(); });
    }

protected:
    virtual std::shared_ptr<virtual_session> session_on(const shared_link& l,
                                                        const request_handler& handler) {
        return std::make_shared<virtual_session>(environment_, l, handler);
    }

private:
    std::unique_ptr<simulated_service> new_service() {
        is_away_ = false;
        return std::make_unique<simulated_service>(
            engine_,
            [this, life = std::weak_ptr(alive_)](long long ns, std::function<void()> what) {
                environment_.at_server(ns, [life, what = std::move(what)] {
                    if (!life.expired()) what();
                });
            },
            [this] { is_away_ = true; });
    }
    virtual_environment& environment_;
    const engine engine_;
    std::shared_ptr<int> alive_ = std::make_shared<int>();
    bool is_away_ = false;
    vector<simulated_service::log_entry> of_old_{};
    std::unique_ptr<simulated_service> service_;
    const std::string url_;
};

/// In the gate's virtual environment if there is one, else in its own thread.
class simulated_engine final : public extension_server {
public:
    explicit simulated_engine(const engine& e) : settings_(e) { check_engine(e); }
    std::string start() override {
        if (auto* const execution_environment =
                dynamic_cast<virtual_environment*>(current_environment)) {
            sleep_s(0.1);  // no two begin at once
            server_ = std::make_unique<virtual_server>(*execution_environment, settings_);
            return server_->url();
        }
        host_ = std::make_unique<simulated_host>(settings_);
        return host_->url();
    }
    std::string description() const override { return engine_text(settings_); }

private:
    const engine settings_;
    std::unique_ptr<simulated_host> host_{};
    std::unique_ptr<virtual_server> server_{};
};

class simulated_extension final : public target_extension {
public:
    std::unique_ptr<extension_server> server(const box& settings) const override {
        return std::make_unique<simulated_engine>(*settings.get<engine>());
    }
    std::unique_ptr<execution_environment> new_environment() const override {
        return std::make_unique<virtual_environment>();
    }
};
inline constinit const simulated_extension simulated_targets{};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
