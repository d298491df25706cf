// Another way into a server on 127.0.0.1: a Unix-domain socket or an IPv6 port that passes all
// bytes on, both ways.
#pragma once

#include "sockets.hpp"

#include <list>
#include <stdexcept>
#include <string>
#include <thread>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace relay {

/// A connected socket to this port of 127.0.0.1, -1 where there is none.
inline int connected_to(int port) {
    const int fd = sockets::made(AF_INET);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons(static_cast<in_port_t>(port));
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0) return fd;
    ::close(fd);
    return -1;
}

/// Accepts connections until it goes; each is handled by `talk(fd)` in a thread of its own, which
/// must end once `going()` is readable.
class acceptor {
public:
    template <class Talk> acceptor(int listener, Talk talk) : listener_(listener) {
        thread_ = std::thread([this, talk] {
            for (;;) {
                pollfd p[2] = {{going_.fd(), POLLIN, 0}, {listener_, POLLIN, 0}};
                ::poll(p, 2, -1);
                if (p[0].revents) return;
                const int fd = sockets::accepted(listener_);
                if (fd < 0) continue;
                talks_.emplace_back([this, talk, fd] {
                    talk(fd, going_.fd());
                    ::close(fd);
                });
            }
        });
    }
    ~acceptor() {
        going_.ring();
        thread_.join();
        for (std::thread& t : talks_) t.join();
        ::close(listener_);
    }
    acceptor(const acceptor&) = delete;
    acceptor& operator=(const acceptor&) = delete;

private:
    int listener_;
    sockets::bell going_{};
    std::list<std::thread> talks_{};
    std::thread thread_{};
};

/// Passes bytes on until either side ends.
inline void pass_on(int from, int going, int port) {
    const int to = connected_to(port);
    pollfd p[3] = {{going, POLLIN, 0}, {from, POLLIN, 0}, {to, POLLIN, 0}};
    char buffer[65536];
    while (to >= 0 && ::poll(p, 3, -1) > 0 && !p[0].revents) {
        for (const auto& [in, out] : {std::pair{1, 2}, std::pair{2, 1}}) {
            if (!p[in].revents) continue;
            const ssize_t n = ::recv(p[in].fd, buffer, sizeof buffer, 0);
            if (n <= 0 || ::send(p[out].fd, buffer, static_cast<std::size_t>(n), sockets::no_signal) != n)
                return void(::close(to));
        }
    }
    if (to >= 0) ::close(to);
}

/// The same as a proxy that buffers: what the server says is handed over in lumps of at least so
/// many bytes, and what is left of an answer once it is whole.
inline void pass_on_in_lumps(int from, int going, int port, std::size_t bytes) {
    const int to = connected_to(port);
    pollfd p[3] = {{going, POLLIN, 0}, {from, POLLIN, 0}, {to, POLLIN, 0}};
    char buffer[65536];
    std::string held;
    while (to >= 0 && ::poll(p, 3, -1) > 0 && !p[0].revents) {
        if (p[1].revents) {
            const ssize_t n = ::recv(from, buffer, sizeof buffer, 0);
            if (n <= 0 || ::send(to, buffer, static_cast<std::size_t>(n), sockets::no_signal) != n) break;
        }
        if (!p[2].revents) continue;
        const ssize_t n = ::recv(to, buffer, sizeof buffer, 0);
        if (n > 0) held.append(buffer, static_cast<std::size_t>(n));
        const bool streams = held.find("HTTP/1.1") != 0 || held.find("chunked") != held.npos;
        const bool whole = held.size() >= 5 && held.substr(held.size() - 5) == "0\r\n\r\n";
        if (n > 0 && streams && !whole && held.size() < bytes) continue;
        if (::send(from, held.data(), held.size(), sockets::no_signal) < 0 || n <= 0) break;
        held.clear();
    }
    if (to >= 0) ::close(to);
}

inline int bound(int family, const sockaddr* a, socklen_t size, int queue) {
    const int fd = sockets::made(family);
    if (::bind(fd, a, size) != 0 || ::listen(fd, queue) != 0)
        throw std::runtime_error("the relay cannot listen");
    return fd;
}
/// A listening Unix-domain socket; `queue` connections at most wait to be accepted.
inline int unix_listener(const std::string& path, int queue = 1024) {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    path.copy(a.sun_path, sizeof a.sun_path - 1);
    return bound(AF_UNIX, reinterpret_cast<const sockaddr*>(&a), sizeof a, queue);
}
/// A listening port of 127.0.0.1.
inline int ipv4_listener() {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return bound(AF_INET, reinterpret_cast<const sockaddr*>(&a), sizeof a, 1024);
}
/// A listening port of ::1, -1 where this machine has no IPv6.
inline int ipv6_listener() {
    const int fd = sockets::made(AF_INET6);
    sockaddr_in6 a{};
    a.sin6_family = AF_INET6;
    a.sin6_addr = in6addr_loopback;
    if (fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0 &&
        ::listen(fd, 1024) == 0)
        return fd;
    ::close(fd);
    return -1;
}
inline int port_of(int listener) {
    sockaddr_in6 a{};  // the port of sockaddr_in is at the same place
    socklen_t size = sizeof a;
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&a), &size);
    return ntohs(a.sin6_port);
}

}  // namespace relay
