// sockets and addresses
#pragma once

#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/wire/url.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/limits.hpp"

#include <algorithm>  // any_of, max
#include <atomic>
#include <cerrno>  // errno, EINPROGRESS, EMFILE
#include <cstdint>  // uint16_t
#include <cstring>  // memcpy
#include <random>  // random_device
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <utility>  // exchange, pair, swap
#include <vector>

#ifndef __linux__
#include <fcntl.h>  // what a socket is made with elsewhere
#endif
#include <netdb.h>  // getaddrinfo
#include <netinet/in.h>  // sockaddr_in
#include <netinet/tcp.h>  // TCP_NODELAY
#include <sys/socket.h>  // socklen_t, SOCK_STREAM
#include <sys/un.h>  // Unix-domain sockets
#include <unistd.h>  // close

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A file descriptor that closes itself.
class descriptor {
public:
    descriptor() = default;
    explicit descriptor(int fd) : fd_(fd) {}
    descriptor(descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
    descriptor& operator=(descriptor&& o) noexcept { std::swap(fd_, o.fd_); return *this; }
    ~descriptor() { if (fd_ >= 0) ::close(fd_); }
    int get() const { return fd_; }
    int release() { return std::exchange(fd_, -1); }

private:
    int fd_ = -1;
};

struct address {
    sockaddr_storage storage{};
    socklen_t size = 0;
};

/// A name that is always this machine's own (RFC 6761, 6.3), also where no /etc/hosts says so.
inline bool is_localhost(std::string_view host) {
    const std::size_t dot = host.rfind('.');
    return same_ignoring_case(dot < host.size() ? host.substr(dot + 1) : host, "localhost");
}

/// All addresses of a host, or the one of a Unix-domain socket. Throws std::runtime_error where
/// there is none.
inline std::vector<address> resolved(const http_url& u) {
    if (current_world) return current_world->resolved(u);
    if (!u.socket.empty()) {
        sockaddr_un a{};
        a.sun_family = AF_UNIX;
        u.socket.copy(a.sun_path, sizeof a.sun_path - 1);
        address x;
        std::memcpy(&x.storage, &a, sizeof a);
        x.size = sizeof a;
        return {x};
    }
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    int error = ::getaddrinfo(u.host.c_str(), u.port.c_str(), &hints, &found);
    if (error != 0 && is_localhost(u.host))
        error = ::getaddrinfo(nullptr, u.port.c_str(), &hints, &found);  // its own addresses
    if (error != 0)
        throw std::runtime_error("the host \"" + printable(u.host) +
                                 "\" cannot be resolved: " + resolver_error_text(error));
    std::vector<address> out;
    for (const addrinfo* a = found; a; a = a->ai_next) {
        address x;
        std::memcpy(&x.storage, a->ai_addr, a->ai_addrlen);
        x.size = a->ai_addrlen;
        out.push_back(x);
    }
    ::freeaddrinfo(found);
    return out;
}

#ifdef MSG_NOSIGNAL
inline constexpr int no_signal = MSG_NOSIGNAL;
#else
inline constexpr int no_signal = 0;  // the socket knows
#endif
#ifndef __linux__
/// What Linux does as it makes a socket, and as something is sent.
inline void set_apart(int fd) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
#ifdef SO_NOSIGPIPE
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
}
#endif
/// A socket that no server of ours inherits, and that does not end the program when its other side
/// has gone.
inline descriptor new_socket(int family, bool blocks) {
#ifdef __linux__
    const int how = SOCK_CLOEXEC | (blocks ? 0 : SOCK_NONBLOCK);
    return descriptor(::socket(family, SOCK_STREAM | how, 0));  // its sends say no_signal
#else
    descriptor fd(::socket(family, SOCK_STREAM, 0));
    if (fd.get() < 0) return fd;
    set_apart(fd.get());
    if (!blocks) ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
    return fd;
#endif
}
/// Two such sockets, each other's other side; none, with errno, where they cannot be had.
inline std::pair<descriptor, descriptor> socket_pair() {
    int ends[2] = {-1, -1};
#ifdef __linux__
    ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
#else
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0)
        for (const int end : ends) set_apart(end);
#endif
    return {descriptor(ends[0]), descriptor(ends[1])};
}

/// An IP address in digits. Throws std::invalid_argument where it is none, or not of this machine.
inline address local_address(const std::string& digits) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_flags = AI_NUMERICHOST;
    hints.ai_socktype = SOCK_STREAM;
    if (digits.empty() || ::getaddrinfo(digits.c_str(), nullptr, &hints, &found) != 0)
        refuse({"client.from is \"", printable(digits, 80),
                "\": it must be an IP address of this machine, such as 10.0.0.2"});
    address x;
    std::memcpy(&x.storage, found->ai_addr, found->ai_addrlen);
    x.size = found->ai_addrlen;
    ::freeaddrinfo(found);
    const descriptor fd = new_socket(x.storage.ss_family, true);
    const bool is_ours =
        ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&x.storage), x.size) == 0;
    const int problem = errno;
    if (!is_ours)
        refuse({"client.from is \"", printable(digits, 80),
                "\": this machine has no such address (", error_text(problem), ")"});
    return x;
}
inline std::vector<address> local_addresses(const list<text>& digits) {
    std::vector<address> all;
    for (const text& d : digits) all.push_back(local_address(str(d)));
    return all;
}
/// Of a server's addresses those that are of the kind of a local one; all where none is named.
inline std::vector<address> reached_from(const std::vector<address>& from,
                                         const std::vector<address>& to) {
    if (from.empty()) return to;
    std::vector<address> reached;
    for (const address& a : to)
        if (std::any_of(from.begin(), from.end(), [&](const address& x) {
                return x.storage.ss_family == a.storage.ss_family;
            }))
            reached.push_back(a);
    if (reached.empty())
        refuse({"client.from has IPv4 addresses and the server IPv6 ones, or the other way round, "
                "or it is a Unix-domain socket: name local addresses of the server's kind"});
    return reached;
}

/// A non-blocking socket on its way to `to`, from a local address where one is named; errno where
/// it is not. EAGAIN: the queue of a Unix-domain socket is full, and only asking again tells when
/// it is not.
inline descriptor connecting_socket(const address& to, const address* from = nullptr) {
    descriptor fd = new_socket(to.storage.ss_family, false);
    if (fd.get() < 0) return fd;
    if (from) {
#ifdef IP_BIND_ADDRESS_NO_PORT
        // The port is chosen when the other side is known: as many for each as there are.
        const int late = 1;
        ::setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &late, sizeof late);
#endif
        if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&from->storage), from->size) != 0) {
            const int error = errno;
            fd = descriptor();
            errno = error;
            return fd;
        }
    }
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) != 0 &&
        errno != EINPROGRESS) {
        const int error = errno;
        fd = descriptor();
        errno = error;
    }
    return fd;
}

/// Once it can be written to: 0, or the errno that came of connecting.
inline int connect_error_of(int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

/// What this machine lacks for one more connection, in words and with the remedy; "" where an error
/// is not of that kind.
inline std::string own_lack(int error) {
    switch (error) {
    case EMFILE: return "no file descriptor is left (EMFILE): raise its limit, ulimit -n";
    case ENFILE: return "the machine has no file left to open (ENFILE): raise fs.file-max";
    case EADDRNOTAVAIL:
        return "no local address or port is left (EADDRNOTAVAIL): widen "
               "net.ipv4.ip_local_port_range, name more local addresses in client.from, or reuse "
               "connections";
    case ENOBUFS: return "the machine has no room for another socket (ENOBUFS): raise net.core and "
                         "net.ipv4.tcp_mem limits";
    case ENOMEM: return "the machine has no memory for another socket (ENOMEM)";
    case ENOSPC: return "no more sockets can be watched (ENOSPC): raise fs.epoll.max_user_watches";
    default: return {};
    }
}

/// Ports for servers: no connection that goes out is ever given one of these, however long a server
/// takes to listen on it. None where those of the connections are nearly all there are.
inline port_range ports_for_servers(port_range outgoing) {
    if (outgoing.size() == 0) outgoing = {32768, 65535};  // no system is known to begin lower
    const port_range below{10000, outgoing.low - 1};
    const port_range above{std::max(outgoing.high + 1, 10000LL), 65535};
    const port_range more = below.size() < above.size() ? above : below;
    return more.size() < 100 ? port_range{} : more;
}

/// A port that nothing on this machine listens on now, for a server that will: not the same twice
/// in a program, and in two programs hardly ever.
inline int free_port() {
    static std::atomic<unsigned> next{std::random_device{}()};
    const port_range ports = ports_for_servers(outgoing_ports());
    for (int tries = 0; tries < 1000; ++tries) {
        const descriptor fd = new_socket(AF_INET, true);
        sockaddr_in a{};  // of all addresses, for a server may listen on all of them
        a.sin_family = AF_INET;
        if (ports.size() > 0)
            a.sin_port = htons(static_cast<std::uint16_t>(ports.low + next++ % ports.size()));
        socklen_t size = sizeof a;
        if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) == 0 &&
            ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&a), &size) == 0)
            return ntohs(a.sin_port);
    }
    throw std::runtime_error("no free port can be had on this machine");
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
