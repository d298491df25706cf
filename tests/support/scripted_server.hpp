// A server that does exactly what a test tells it, byte by byte, over sockets. It answers by itself
// the list of models and the check before a load; every other request gets the next answer of the
// script.
#pragma once

#include "script.hpp"
#include "sockets.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace scripted {

class server {
public:
    /// Answers are given in the order in which requests come; the last one is used again and again.
    explicit server(std::vector<answer> answers = {healthy()}, afterwards then = afterwards::listen)
        : server(std::function<answer(const request&)>(), std::move(answers), then) {}
    /// What is answered depends on the request.
    explicit server(std::function<answer(const request&)> choose)
        : server(std::move(choose), {}, afterwards::listen) {}
    ~server() {
        going_.ring();
        acceptor_.join();
        for (std::thread& t : talks_) t.join();
        for (const int fd : fillers_) ::close(fd);
        ::close(listener_);
    }
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    int port() const { return port_; }
    std::string authority() const { return "127.0.0.1:" + std::to_string(port_); }
    std::string url() const { return "http://" + authority(); }

    /// Requests that the script answered, in the order in which they came.
    std::vector<request> log() const {
        const std::lock_guard lock(mutex_);
        return script_.log;
    }
    std::vector<request> model_lists() const {
        const std::lock_guard lock(mutex_);
        return script_.model_lists;
    }

    /// What its page of metrics says; without it there is none. Not in the log.
    void report(std::function<std::string(const request&)> page) {
        const std::lock_guard lock(mutex_);
        script_.page = std::move(page);
    }
    /// What comes of the request that is sent before a load; a healthy answer, where this is not told.
    void answer_check(answer a) { answer_checks({std::move(a)}); }
    /// One after the other, and then the last one.
    void answer_checks(std::vector<answer> all) {
        const std::lock_guard lock(mutex_);
        script_.checks = std::move(all);
        script_.checked = 0;
    }
    std::size_t checked() {
        const std::lock_guard lock(mutex_);
        return script_.checked;
    }
    /// What is done when that request comes.
    void on_check(std::function<void()> done) {
        const std::lock_guard lock(mutex_);
        script_.on_check = std::move(done);
    }
    /// From now on a request is answered as soon as its head is there, and its body is not read.
    /// So little of it is taken that a megabyte cannot be sent.
    void answer_early() {
        early_ = true;
        const int little = 16 * 1024;
        ::setsockopt(listener_, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    }
    /// From now on connections are refused.
    void stop_listening() {
        const std::lock_guard lock(mutex_);
        ::shutdown(listener_, SHUT_RDWR);
    }
    /// From now on connections are neither taken nor refused: the queue of the port is full.
    void stop_accepting() {
        const std::lock_guard lock(mutex_);
        accepting_ = false;
        ::listen(listener_, 0);
        for (int i = 0; i < 4; ++i) {
            const int fd = sockets::made(AF_INET, false);
            const sockaddr_in a = address(port_);
            ::connect(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a);
            fillers_.push_back(fd);
            pollfd p{fd, POLLOUT, 0};
            if (i == 0) ::poll(&p, 1, 5000);  // the first one does get through
        }
    }

private:
    server(std::function<answer(const request&)> choose, std::vector<answer> answers,
           afterwards then)
        : then_(then), script_(std::move(answers), std::move(choose)) {
        listener_ = sockets::made(AF_INET, false);
        sockaddr_in a = address(0);
        socklen_t size = sizeof a;
        auto* any = reinterpret_cast<sockaddr*>(&a);
        if (listener_ < 0 || going_.fd() < 0 || ::bind(listener_, any, size) != 0 ||
            ::listen(listener_, 1024) != 0 || ::getsockname(listener_, any, &size) != 0)
            throw std::runtime_error("the scripted server has no port");
        port_ = ntohs(a.sin_port);
        acceptor_ = std::thread([this] { accept_all(); });
    }

    static sockaddr_in address(int port) {
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        a.sin_port = htons(static_cast<std::uint16_t>(port));
        return a;
    }

    /// Waits for input, at most so long. False once the server goes.
    bool wait_for(int fd, int at_most_ms) const {
        pollfd p[2] = {{going_.fd(), POLLIN, 0}, {fd, POLLIN, 0}};
        while (::poll(p, fd < 0 ? 1 : 2, at_most_ms) < 0 && errno == EINTR) {}
        return p[0].revents == 0;
    }

    void accept_all() {
        for (int connection = 0; wait_for(listener_, -1); ++connection) {
            const std::lock_guard lock(mutex_);
            if (!accepting_) return;
            const int fd = sockets::accepted(listener_);
            if (fd < 0 && errno == EAGAIN) continue;
            if (fd < 0) return;
            const int on = 1;
            ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            talks_.emplace_back([this, fd, connection] { talk(fd, connection); });
        }
    }

    void talk(int fd, int connection) {
        std::string held;
        bool open = true;
        sockaddr_in other{};
        socklen_t size = sizeof other;
        ::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &size);
        const std::uint32_t from = ntohl(other.sin_addr.s_addr);
        for (int place = 0; open; ++place) {
            request r;
            open = read_request(fd, held, r);
            if (!open) break;
            r.from = std::to_string(from >> 24) + "." + std::to_string(from >> 16 & 255) + "." +
                     std::to_string(from >> 8 & 255) + "." + std::to_string(from & 255);
            r.connection = connection;
            r.place = place;
            open = play(fd, answer_to(r));
        }
        ::close(fd);
    }

    bool read_request(int fd, std::string& held, request& r) const {
        for (;;) {
            if (auto whole = taken_from(held, early_)) {
                r = std::move(*whole);
                break;
            }
            char buffer[16384];
            if (!wait_for(fd, -1)) return false;
            const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
            if (n <= 0) return false;
            held.append(buffer, static_cast<std::size_t>(n));
        }
        const auto now = std::chrono::steady_clock::now().time_since_epoch();
        r.received_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
        return true;
    }

    answer answer_to(const request& r) {
        if (r.method == "GET") {
            if (then_ == afterwards::refuse) stop_listening();
            if (then_ == afterwards::ignore) stop_accepting();
        }
        std::unique_lock lock(mutex_);
        if (!script::is_of_page(r)) return script_.answer_to(r);
        const auto page = script_.page;
        lock.unlock();  // it may take its time
        return script::page_answer(page, r);
    }

    /// False where nothing can follow on this connection.
    bool play(int fd, const answer& steps) const {
        std::size_t piece = 0;
        milliseconds pause{0};
        for (const step& s : steps) {
            switch (s.what) {
                case step::kind::send:
                    for (std::size_t i = 0; i < std::max<std::size_t>(1, s.size); ++i)
                        if (!send_all(fd, s.bytes, piece == 0 ? s.bytes.size() : piece, pause))
                            return false;
                    break;
                case step::kind::wait:
                    if (!wait_for(-1, static_cast<int>(s.time.count()))) return false;
                    break;
                case step::kind::cut:
                    piece = s.size;
                    pause = s.time;
                    break;
                case step::kind::stall: wait_for(-1, -1); return false;
                case step::kind::close: return false;
                case step::kind::reset: {
                    const linger at_once{1, 0};
                    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
                    return false;
                }
            }
        }
        return true;
    }
    bool send_all(int fd, const std::string& bytes, std::size_t piece, milliseconds pause) const {
        for (std::size_t at = 0; at < bytes.size();) {
            const std::size_t n = std::min(piece, bytes.size() - at);
            const ssize_t sent = ::send(fd, bytes.data() + at, n, sockets::no_signal);
            if (sent <= 0) return false;
            at += static_cast<std::size_t>(sent);
            if (pause.count() > 0 && !wait_for(-1, static_cast<int>(pause.count()))) return false;
        }
        return true;
    }

    const afterwards then_;
    int listener_ = -1, port_ = 0;
    sockets::bell going_{};
    std::atomic<bool> early_{false};
    mutable std::mutex mutex_{};  // guards what follows, and every accept
    script script_;
    bool accepting_ = true;
    std::vector<int> fillers_{};
    std::list<std::thread> talks_{};
    std::thread acceptor_{};
};

}  // namespace scripted
