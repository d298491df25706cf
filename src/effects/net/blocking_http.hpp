// requests that are not measured
#pragma once

#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/wire/url.hpp"
#include "effects/system/clock.hpp"
#include "effects/net/sockets.hpp"
#include "effects/net/tls.hpp"

#include <cerrno>  // errno, EAGAIN, ETIMEDOUT, EINTR
#include <chrono>
#include <cstring>  // strerror
#include <memory>  // unique_ptr, make_unique
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <thread>  // this_thread
#include <vector>

#include <poll.h>  // requests one at a time
#include <sys/socket.h>  // socklen_t, SOL_SOCKET, MSG_NOSIGNAL
#include <sys/types.h>  // ssize_t

namespace llmbench {
inline namespace v0 {
namespace detail {

struct http_answer {
    int status = 0;
    std::string body{};
    std::string error{};  // why there is none
    bool distrusted = false;  // because of the server's certificate
};

/// One request on a connection of its own, for what is not measured: readiness, model lists.
inline http_answer blocking_request(const http_url& u, const std::string& request,
                                    double within_s, const tls_client* tls = nullptr) {
    http_answer answer;
    const long long deadline = now_ns() + ns_of(within_s);
    const auto wait = [&](int fd, short events, long long until) {
        pollfd p{fd, events, 0};
        const long long left = (until - now_ns()) / 1000000;
        return left > 0 && ::poll(&p, 1, static_cast<int>(left)) > 0;
    };
    std::vector<address> addresses;
    try {
        addresses = resolved(u);
    } catch (const std::runtime_error& e) {
        answer.error = e.what();
        return answer;
    }
    descriptor fd;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        // An address that never answers leaves time for those after it.
        const long long until = now_ns() + (deadline - now_ns()) /
                                               static_cast<long long>(addresses.size() - i);
        while ((fd = connecting_socket(addresses[i])).get() < 0 && errno == EAGAIN &&
               now_ns() < until)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        int error = fd.get() < 0 ? errno : 0;
        socklen_t size = sizeof error;
        if (error == 0 && !wait(fd.get(), POLLOUT, until)) error = ETIMEDOUT;
        if (error == 0) ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
        if (error == 0) break;
        answer.error = std::string("cannot connect: ") + std::strerror(error);
        fd = descriptor();
    }
    if (fd.get() < 0) return answer;
    answer.error.clear();
    const auto failed = [&](const std::string& why) {
        answer.error = why;
        return answer;
    };
    std::unique_ptr<tls_channel> channel;
    const auto send_all = [&](std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t n = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
            else if (errno != EAGAIN || !wait(fd.get(), POLLOUT, deadline)) return false;
        }
        return true;
    };
    const auto flush = [&] {
        const std::string_view bytes = channel->outgoing();
        const bool taken = send_all(bytes);
        channel->sent(bytes.size());
        return taken;
    };
    char buffer[16384];
    std::vector<char> room;
    const std::string no_answer = "no answer within " + time_text(within_s);
    if (tls) {
        channel = std::make_unique<tls_channel>(*tls, nullptr);
        channel->received({}, room);
        for (;;) {
            const bool lost = !flush();
            answer.distrusted = channel->distrusts();
            if (channel->ended()) return failed(channel->error());
            if (channel->open()) break;
            if (!lost && !wait(fd.get(), POLLIN, deadline)) return failed(no_answer);
            const ssize_t n = ::recv(fd.get(), buffer, sizeof buffer, 0);
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
            if (n <= 0) return failed("the connection was closed during the TLS handshake");
            channel->received({buffer, static_cast<std::size_t>(n)}, room);
        }
        channel->send(request);
    }
    if (channel ? !flush() : !send_all(request))
        return failed("the connection was lost while sending");
    response_parser parser;
    while (!parser.complete() && !parser.broken()) {
        if (!wait(fd.get(), POLLIN, deadline)) return failed(no_answer);
        const ssize_t n = ::recv(fd.get(), buffer, sizeof buffer, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n == 0 && channel && !parser.body_may_be_cut()) return failed(tls_was_cut);
        if (n <= 0) { parser.end_of_input(); continue; }
        std::string_view bytes(buffer, static_cast<std::size_t>(n));
        if (channel) bytes = channel->received(bytes, room);
        parser.feed(bytes, [&](std::string_view body) {
            if (answer.body.size() < (8u << 20)) answer.body.append(body);
        });
        if (!channel || !channel->ended() || parser.complete()) continue;
        if (!channel->error().empty()) return failed(channel->error());
        parser.end_of_input();
    }
    answer.status = parser.complete() ? parser.status() : 0;
    answer.error = parser.error();
    return answer;
}

inline http_answer blocking_post(const http_url& u, const std::string& path,
                                 const std::string& fields, const std::string& body,
                                 double within_s, const tls_client* tls = nullptr) {
    return blocking_request(u,
                            "POST " + path + " HTTP/1.1\r\nHost: " + u.authority() +
                                "\r\nConnection: close\r\n" + fields + "Content-Length: " +
                                std::to_string(body.size()) + "\r\n\r\n" + body,
                            within_s, tls);
}
inline http_answer blocking_get(const http_url& u, const std::string& path,
                                const std::string& fields, double within_s,
                                const tls_client* tls = nullptr) {
    return blocking_request(u,
                            "GET " + path + " HTTP/1.1\r\nHost: " + u.authority() +
                                "\r\nConnection: close\r\n" + fields + "\r\n",
                            within_s, tls);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
