// A server that does exactly what a test tells it, byte by byte. It answers by itself the list of
// models and the check before a load; every other request gets the next answer of the script.
#pragma once

#include "sockets.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
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
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

namespace scripted {

using std::chrono::milliseconds;

// ---- what an answer does

struct step {
    enum class kind { send, wait, close, reset, stall, cut };
    kind what = kind::close;
    std::string bytes{};
    milliseconds time{0};
    std::size_t size = 0;
};
using answer = std::vector<step>;

inline step send(std::string bytes) { return {step::kind::send, std::move(bytes), {}, 0}; }
inline step wait(milliseconds t) { return {step::kind::wait, {}, t, 0}; }
/// An orderly end of the connection.
inline step close() { return {step::kind::close, {}, {}, 0}; }
/// An end by RST.
inline step reset() { return {step::kind::reset, {}, {}, 0}; }
/// Says nothing more and keeps the connection open until the server goes.
inline step stall() { return {step::kind::stall, {}, {}, 0}; }
/// What is sent after this goes out in pieces of n bytes, with a pause after each.
inline step cut(std::size_t n, milliseconds pause = milliseconds(0)) {
    return {step::kind::cut, {}, pause, n};
}

// ---- events of a chat answer

/// The id of the one request that is sent before a load, to see whether the server serves it.
inline constexpr const char* check_id = "11bbec40-0000-8c00-8000-000000000000";

inline std::string sse_event(const std::string& json) { return "data: " + json + "\n\n"; }
inline std::string chat_choice(const std::string& delta, const std::string& finish_reason = "") {
    const std::string reason = finish_reason.empty() ? "null" : "\"" + finish_reason + "\"";
    return sse_event(R"({"object":"chat.completion.chunk","choices":[{"index":0,"delta":)" + delta +
                     R"(,"finish_reason":)" + reason + "}]}");
}
inline std::string role() { return chat_choice(R"({"role":"assistant","content":""})"); }
/// `text` is put between quotes as it is.
inline std::string chat_chunk(const std::string& text) {
    return chat_choice(R"({"content":")" + text + R"("})");
}
inline std::string finish(const std::string& reason = "stop") { return chat_choice("{}", reason); }
inline std::string usage(int prompt_tokens, int completion_tokens) {
    return sse_event(R"({"choices":[],"usage":{"prompt_tokens":)" + std::to_string(prompt_tokens) +
                     R"(,"completion_tokens":)" + std::to_string(completion_tokens) + "}}");
}
inline std::string done() { return sse_event("[DONE]"); }

/// The events of a healthy answer of n tokens, one an event.
inline std::string healthy_events(int n, int prompt_tokens = 5) {
    std::string events = role();
    for (int i = 0; i < n; ++i) events += chat_chunk(" word");
    return events + finish() + usage(prompt_tokens, n) + done();
}

// ---- how bytes become an answer

inline std::string head(const std::string& status, const std::string& fields) {
    return "HTTP/1.1 " + status + "\r\n" + fields + "\r\n";
}
/// The head of a stream whose length is not said beforehand; `fields` are further header lines.
inline std::string chunked_head(const std::string& fields = "") {
    return head("200 OK",
                "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n" + fields);
}
inline std::string until_close_head(const std::string& fields = "") {
    return head("200 OK", "Content-Type: text/event-stream\r\n" + fields);
}
inline std::string chunk(const std::string& data) {
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", data.size());
    return size + data + "\r\n";
}
inline std::string last_chunk() { return "0\r\n\r\n"; }
/// A whole answer with a content length.
inline std::string sized(const std::string& status, const std::string& type,
                         const std::string& body, const std::string& fields = "") {
    return head(status, "Content-Type: " + type + "\r\nContent-Length: " +
                            std::to_string(body.size()) + "\r\n" + fields) +
           body;
}
inline std::string json(const std::string& status, const std::string& body) {
    return sized(status, "application/json", body);
}
inline std::string sized_stream(const std::string& events, const std::string& fields = "") {
    return sized("200 OK", "text/event-stream", events, fields);
}

/// A whole healthy answer of n tokens with usage, and how its end is told.
enum class framing { chunked, sized, until_close };
inline answer healthy(int n = 3, framing how = framing::sized) {
    const std::string events = healthy_events(n);
    switch (how) {
        case framing::chunked: return {send(chunked_head() + chunk(events) + last_chunk())};
        case framing::sized: return {send(sized_stream(events))};
        case framing::until_close: return {send(until_close_head() + events), close()};
    }
    return {};
}

// ---- the server

struct request {
    std::string method{}, path{}, body{};
    std::vector<std::pair<std::string, std::string>> headers{};
    long long received_ns = 0;  // steady clock, when its last byte was there
    int connection = 0;         // counted from 0; asking for the models takes one of its own
    int place = 0;              // on its connection, from 0
    std::string from{};         // the address of its other side

    std::string header(const char* name) const {
        for (const auto& [n, value] : headers)
            if (strcasecmp(n.c_str(), name) == 0) return value;
        return {};
    }
};

/// What happens to the port when the list of models was asked for, before it is answered: a server
/// that was there when it was looked at, and is not there for the load.
enum class afterwards { listen, refuse, ignore };

class server {
public:
    /// Answers are given in the order in which requests come; the last one is used again and again.
    explicit server(std::vector<answer> script = {healthy()}, afterwards then = afterwards::listen)
        : server(std::function<answer(const request&)>(), std::move(script), then) {}
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
        return log_;
    }
    std::vector<request> model_lists() const {
        const std::lock_guard lock(mutex_);
        return model_lists_;
    }

    /// What its page of metrics says; without it there is none. Not in the log.
    void report(std::function<std::string(const request&)> page) {
        const std::lock_guard lock(mutex_);
        page_ = std::move(page);
    }
    /// What comes of the request that is sent before a load; a healthy answer, where this is not told.
    void answer_check(answer a) { answer_checks({std::move(a)}); }
    /// One after the other, and then the last one.
    void answer_checks(std::vector<answer> all) {
        const std::lock_guard lock(mutex_);
        checks_ = std::move(all);
        checked_ = 0;
    }
    std::size_t checked() {
        const std::lock_guard lock(mutex_);
        return checked_;
    }
    /// What is done when that request comes.
    void on_check(std::function<void()> done) {
        const std::lock_guard lock(mutex_);
        on_check_ = std::move(done);
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
    server(std::function<answer(const request&)> choose, std::vector<answer> script,
           afterwards then)
        : choose_(std::move(choose)), script_(std::move(script)), then_(then) {
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
            r.from = std::to_string(from >> 24) + "." + std::to_string(from >> 16 & 255) + "." +
                     std::to_string(from >> 8 & 255) + "." + std::to_string(from & 255);
            r.connection = connection;
            r.place = place;
            open = read_request(fd, held, r) && play(fd, answer_to(r));
        }
        ::close(fd);
    }

    bool read_request(int fd, std::string& held, request& r) const {
        std::size_t head_end = 0, length = 0;
        for (;;) {
            if (head_end == 0 && held.find("\r\n\r\n") != std::string::npos) {
                head_end = held.find("\r\n\r\n") + 4;
                read_head(held.substr(0, head_end), r);
                const std::string said = r.header("Content-Length");
                if (!said.empty()) length = std::stoul(said);
            }
            if (head_end != 0 && (early_ || held.size() >= head_end + length)) break;
            char buffer[16384];
            if (!wait_for(fd, -1)) return false;
            const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
            if (n <= 0) return false;
            held.append(buffer, static_cast<std::size_t>(n));
        }
        const auto now = std::chrono::steady_clock::now().time_since_epoch();
        r.received_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
        r.body = held.substr(head_end, length);
        held.erase(0, r.body.size() + head_end);
        return true;
    }
    static void read_head(const std::string& head, request& r) {
        const std::size_t eol = head.find("\r\n");
        const std::string line = head.substr(0, eol);
        const std::size_t a = line.find(' '), b = line.rfind(' ');
        r.method = line.substr(0, a);
        r.path = a < b ? line.substr(a + 1, b - a - 1) : "";
        for (std::size_t at = eol + 2; at + 2 < head.size();) {
            const std::size_t end = head.find("\r\n", at);
            const std::size_t colon = std::min(head.find(':', at), end);
            const std::size_t value = std::min(head.find_first_not_of(": ", colon), end);
            r.headers.emplace_back(head.substr(at, colon - at), head.substr(value, end - value));
            at = end + 2;
        }
    }

    answer page_for(const request& r) {
        std::unique_lock lock(mutex_);
        const auto page = page_;
        lock.unlock();  // it may take its time
        if (!page) return {send(json("404 Not Found", "{}")), close()};
        return {send(head("200 OK", "Content-Type: text/plain; version=0.0.4\r\n") + page(r)),
                close()};
    }
    answer answer_to(const request& r) {
        if (r.method == "GET") {
            if (then_ == afterwards::refuse) stop_listening();
            if (then_ == afterwards::ignore) stop_accepting();
        }
        if (r.method == "GET" && r.path.ends_with("/metrics")) return page_for(r);
        const std::lock_guard lock(mutex_);
        if (r.method == "GET") {
            model_lists_.push_back(r);
            return {send(json("200 OK", R"({"object":"list","data":[{"id":"scripted"}]})")),
                    close()};
        }
        if (r.header("X-Request-Id") == check_id) {
            if (on_check_) on_check_();
            return checks_[std::min(checked_++, checks_.size() - 1)];
        }
        log_.push_back(r);
        if (choose_) return choose_(r);
        return script_[std::min(log_.size(), script_.size()) - 1];
    }

    /// False where nothing can follow on this connection.
    bool play(int fd, const answer& steps) const {
        std::size_t piece = 0;
        milliseconds pause{0};
        for (const step& s : steps) {
            switch (s.what) {
                case step::kind::send:
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

    std::function<answer(const request&)> choose_;
    std::function<std::string(const request&)> page_{};
    std::vector<answer> script_;
    std::vector<answer> checks_{healthy(1)};
    std::size_t checked_ = 0;
    std::function<void()> on_check_{};
    afterwards then_;
    int listener_ = -1, port_ = 0;
    sockets::bell going_{};
    std::atomic<bool> early_{false};
    mutable std::mutex mutex_{};  // guards what follows, and every accept
    bool accepting_ = true;
    std::vector<request> log_{}, model_lists_{};
    std::vector<int> fillers_{};
    std::list<std::thread> talks_{};
    std::thread acceptor_{};
};

}  // namespace scripted
