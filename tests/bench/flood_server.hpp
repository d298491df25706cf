// A server that costs next to nothing: answers are built before, so that what is measured is the
// client. One thread, one epoll; chat completions and /v1/models, nothing else.
#ifndef LLMBENCH_BENCH_FLOOD_SERVER_HPP
#define LLMBENCH_BENCH_FLOOD_SERVER_HPP
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

class flood_server {
public:
    /// `interval` of zero: an answer goes out as fast as the client takes it. Else every stream gets
    /// one event an interval, in a write of its own.
    explicit flood_server(std::chrono::microseconds interval = {}) : interval_(interval) {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof a;
        if (::bind(listener_, reinterpret_cast<sockaddr*>(&a), size) != 0 || ::listen(listener_, 4096) != 0 ||
            ::getsockname(listener_, reinterpret_cast<sockaddr*>(&a), &size) != 0)
            throw std::runtime_error("the flood server cannot listen");
        url_ = "http://127.0.0.1:" + std::to_string(ntohs(a.sin_port));
        epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
        watch(listener_, EPOLLIN, EPOLL_CTL_ADD);
        thread_ = std::thread([this] { serve(); });
    }
    ~flood_server() {
        ending_ = true;
        thread_.join();
        for (const auto& [fd, c] : connections_) ::close(fd);
        ::close(listener_);
        ::close(epoll_);
    }
    flood_server(const flood_server&) = delete;
    flood_server& operator=(const flood_server&) = delete;
    const std::string& url() const { return url_; }

private:
    /// An answer, and where each of its writes ends when it is paced.
    struct answer {
        std::string bytes{};
        std::vector<std::size_t> pieces{};
    };
    struct connection {
        std::string in{};
        const answer* out = nullptr;  // null: waiting for a request
        std::size_t sent = 0, piece = 0;
    };

    void watch(int fd, unsigned events, int operation) {
        epoll_event e{};
        e.events = events;
        e.data.fd = fd;
        ::epoll_ctl(epoll_, operation, fd, &e);
    }

    static std::string chunk(const std::string& data) {
        char size[16];
        std::snprintf(size, sizeof size, "%zx\r\n", data.size());
        return size + data + "\r\n";
    }
    /// About 230 bytes, what common servers send for one token.
    static std::string event(const std::string& choices, const std::string& more) {
        return "data: {\"id\":\"chatcmpl-7f3a9c52d1e84b06a7c5\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,"
               "\"model\":\"flood\",\"system_fingerprint\":\"fp_44709d6fcb\",\"choices\":[" + choices + "]" + more + "}\n\n";
    }
    const answer& answer_of(int tokens) {
        answer& a = answers_[tokens];
        if (!a.bytes.empty()) return a;
        const auto add = [&](const std::string& s) {
            a.bytes += s;
            a.pieces.push_back(a.bytes.size());
        };
        const std::string choice = R"({"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null})";
        a.bytes = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (int i = 0; i < tokens; ++i) add(chunk(event(choice, "")));
        add(chunk(event(R"({"index":0,"delta":{},"finish_reason":"length"})", "")) +
            chunk(event("", ",\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":" + std::to_string(tokens) + "}")) +
            chunk("data: [DONE]\n\n") + "0\r\n\r\n");
        return a;
    }
    const answer& models() {
        if (models_.bytes.empty()) {
            const std::string body = R"({"object":"list","data":[{"id":"flood","object":"model"}]})";
            models_.bytes = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
            models_.pieces = {models_.bytes.size()};
        }
        return models_;
    }

    void accept_all() {
        for (int fd; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
            const int on = 1;
            ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            connections_[fd] = std::make_unique<connection>();
            watch(fd, EPOLLIN, EPOLL_CTL_ADD);
        }
    }
    void drop(int fd) {
        ::close(fd);
        connections_.erase(fd);
    }
    void on_readable(int fd) {
        connection& c = *connections_[fd];
        char buffer[16384];
        const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
        if (n <= 0) return drop(fd);
        c.in.append(buffer, static_cast<std::size_t>(n));
        const std::size_t head = c.in.find("\r\n\r\n");
        if (head == std::string::npos || c.out) return;
        const std::size_t length = c.in.find("Content-Length: ");
        const std::size_t body = length < head ? std::strtoul(c.in.c_str() + length + 16, nullptr, 10) : 0;
        if (c.in.size() < head + 4 + body) return;
        const std::size_t most = c.in.find("\"max_tokens\":");
        c.out = most == std::string::npos ? &models() : &answer_of(std::atoi(c.in.c_str() + most + 13));
        c.in.erase(0, head + 4 + body);
        c.sent = c.piece = 0;
        if (interval_.count() == 0) write_until(fd, c, c.out->bytes.size());
    }
    void write_until(int fd, connection& c, std::size_t end) {
        while (c.sent < end) {
            const ssize_t n = ::send(fd, c.out->bytes.data() + c.sent, end - c.sent, MSG_NOSIGNAL);
            if (n > 0) c.sent += static_cast<std::size_t>(n);
            else if (errno == EAGAIN) return watch(fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
            else return drop(fd);
        }
        if (c.sent < c.out->bytes.size()) return;
        c.out = nullptr;
        watch(fd, EPOLLIN, EPOLL_CTL_MOD);
    }
    void tick() {
        std::vector<int> busy;
        for (const auto& [fd, c] : connections_)
            if (c->out) busy.push_back(fd);
        for (const int fd : busy) {
            connection& c = *connections_[fd];
            write_until(fd, c, c.out->pieces[c.piece++]);
        }
    }
    void serve() {
        using clock = std::chrono::steady_clock;
        auto next = clock::now();
        epoll_event events[256];
        while (!ending_) {
            int wait_ms = 50;
            if (interval_.count() > 0) {
                const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - clock::now()).count();
                wait_ms = static_cast<int>(std::max<long long>(0, left));
            }
            const int n = ::epoll_wait(epoll_, events, 256, wait_ms);
            for (int i = 0; i < n; ++i) {
                const int fd = events[i].data.fd;
                if (fd == listener_) { accept_all(); continue; }
                if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_readable(fd);
                const auto found = connections_.find(fd);
                if ((events[i].events & EPOLLOUT) && found != connections_.end() && found->second->out && interval_.count() == 0)
                    write_until(fd, *found->second, found->second->out->bytes.size());
            }
            if (interval_.count() > 0 && clock::now() >= next) {
                tick();
                next += interval_;
            }
        }
    }

    std::chrono::microseconds interval_;
    int listener_ = -1, epoll_ = -1;
    std::string url_{};
    std::map<int, answer> answers_{};
    answer models_{};
    std::map<int, std::unique_ptr<connection>> connections_{};
    std::atomic<bool> ending_{false};
    std::thread thread_{};
};
#endif
