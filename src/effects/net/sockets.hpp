// sockets and addresses
#pragma once

#include "api/text.hpp"
#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/wire/url.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/limits.hpp"
#include "effects/system/signals.hpp"
#include "effects/system/threads.hpp"

#include <algorithm>  // any_of, max
#include <atomic>
#include <cerrno>  // errno, EINPROGRESS, EMFILE
#include <cstdint>  // uint16_t
#include <cstring>  // memcpy
#include <functional>  // what may block
#include <optional>
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <utility>  // exchange, pair, swap

#ifndef __linux__
#include <fcntl.h>  // what a socket is made with elsewhere
#endif
#include <netdb.h>  // getaddrinfo, getnameinfo
#include <netinet/in.h>  // sockaddr_in
#include <netinet/tcp.h>  // TCP_NODELAY
#include <sys/socket.h>  // socklen_t, SOCK_STREAM
#include <sys/un.h>  // Unix-domain sockets
#include <unistd.h>  // close

namespace llmbench {
inline namespace v1 {
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

/// The address without its port, "" if it is no IP address.
inline std::string digits_of(const address& a) {
    char digits[64] = {};
    const int error = ::getnameinfo(reinterpret_cast<const sockaddr*>(&a.storage), a.size, digits,
                                    sizeof digits, nullptr, 0, NI_NUMERICHOST);
    return error == 0 ? digits : "";
}

/// Always this machine's own name (RFC 6761, 6.3), also without a line in /etc/hosts.
inline bool is_localhost(std::string_view host) {
    const std::size_t dot = host.rfind('.');
    return same_ignoring_case(dot < host.size() ? host.substr(dot + 1) : host, "localhost");
}

/// The result of a function that may block for long: it runs in its own thread, which is left
/// behind after the time limit or an interruption. It must not throw.
template <class Answer>
std::optional<Answer> answered_within(std::function<Answer()> ask, double within_s) {
    struct asked {
        std::atomic<bool> is_done{false};
        Answer answer{};
    };
    const auto one = new_shared<asked>();
    const auto work = [one, ask = std::move(ask)] {
        one->answer = ask();
        one->is_done = true;
    };
    contained_thread(work, [](const std::string&) {}).detach();
    const bool was_interrupted = stop_asked.load();
    const auto is_over = [&] { return one->is_done || stop_asked.load() != was_interrupted; };
    comes_by(is_over, now_ns() + ns_of(within_s), 0.001);
    if (!one->is_done) return {};
    return std::move(one->answer);
}

/// The result of the system's resolver.
struct looked_up {
    int error = 0;
    vector<address> found{};
};
inline looked_up look_up(const char* host, const char* port, int flags = 0) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    looked_up all;
    all.error = ::getaddrinfo(host, port, &hints, &found);
    if (all.error != 0) return all;
    for (const addrinfo* a = found; a; a = a->ai_next) {
        address x;
        std::memcpy(&x.storage, a->ai_addr, a->ai_addrlen);
        x.size = a->ai_addrlen;
        all.found.push_back(x);
    }
    ::freeaddrinfo(found);
    return all;
}
/// The resolver gives up a silent name server only after 10 to 30 s, whatever our limits are.
inline constexpr double longest_lookup_s = 5;

/// Returns all addresses of a host, or that of a Unix-domain socket. Throws std::runtime_error if
/// there is none.
inline vector<address> resolved(const http_url& u) {
    if (current_environment) return current_environment->resolved(u);
    if (!u.socket.empty()) {
        sockaddr_un a{};
        a.sun_family = AF_UNIX;
        u.socket.copy(a.sun_path, sizeof a.sun_path - 1);
        address x;
        std::memcpy(&x.storage, &a, sizeof a);
        x.size = sizeof a;
        return {x};
    }
    const auto fails = [&](const std::string& why) {
        return std::runtime_error("the host \"" + printable(u.host) + "\" cannot be resolved: " +
                                  why);
    };
    looked_up all = look_up(u.host.c_str(), u.port.c_str(), AI_NUMERICHOST);
    if (all.error != 0) {
        const auto asked = answered_within<looked_up>(
            [host = u.host, port = u.port] { return look_up(host.c_str(), port.c_str()); },
            longest_lookup_s);
        if (!asked)
            throw fails(stop_asked.load() ? "it was interrupted"
                                          : "no answer within " + time_text(longest_lookup_s));
        all = *asked;
    }
    if (all.error != 0 && is_localhost(u.host))
        all = look_up(nullptr, u.port.c_str());  // this machine's addresses
    if (all.error != 0) throw fails(resolver_error_text(all.error));
    return std::move(all.found);
}

#ifdef MSG_NOSIGNAL
inline constexpr int no_signal = MSG_NOSIGNAL;
#else
inline constexpr int no_signal = 0;  // the socket has the option
#endif
#ifndef __linux__
/// Flags that Linux takes when it makes a socket, and when it sends.
inline void set_apart(int fd) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
#ifdef SO_NOSIGPIPE
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
}
#endif
/// Returns a non-blocking socket that servers of ours do not inherit, and whose closed peer does
/// not end the program.
inline descriptor new_socket(int family) {
#ifdef __linux__
    // its sends use no_signal
    return descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
#else
    descriptor fd(::socket(family, SOCK_STREAM, 0));
    if (fd.get() < 0) return fd;
    set_apart(fd.get());
    ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
    return fd;
#endif
}
/// Returns two connected sockets; none, with errno, on failure.
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

/// Whether an address, without a port, is this machine's; errno if not.
inline bool is_of_this_machine(const address& a) {
    const descriptor fd = new_socket(a.storage.ss_family);
    return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&a.storage), a.size) == 0;
}
/// Parses an IP address in digits. Throws std::invalid_argument if it is none, or not this
/// machine's.
inline address local_address(const std::string& digits) {
    const looked_up known = look_up(digits.c_str(), nullptr, AI_NUMERICHOST);
    if (digits.empty() || known.error != 0)
        refuse({"client.from is \"", printable(digits, 80),
                "\": it must be an IP address of this machine, such as 10.0.0.2"});
    const address x = known.found[0];
    const bool is_ours = is_of_this_machine(x);
    const int problem = errno;
    if (!is_ours)
        refuse({"client.from is \"", printable(digits, 80),
                "\": this machine has no such address (", error_text(problem), ")"});
    return x;
}
inline vector<address> local_addresses(const list<text>& digits) {
    vector<address> all;
    for (const text& d : digits) all.push_back(local_address(str(d)));
    return all;
}
/// Returns the server addresses of the same family as a local one; all if none is given.
inline vector<address> reached_from(const vector<address>& from, const vector<address>& to) {
    if (from.empty()) return to;
    vector<address> reached;
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

/// Returns a connecting non-blocking socket, from a local address if one is given; errno on
/// failure. EAGAIN: the queue of a Unix-domain socket is full, and no event follows: ask again.
inline descriptor connecting_socket(const address& to, const address* from = nullptr) {
    descriptor fd = new_socket(to.storage.ss_family);
    if (fd.get() < 0) return fd;
    if (from) {
#ifdef IP_BIND_ADDRESS_NO_PORT
        // The port is chosen when the peer is known: the full range for each peer.
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

/// Valid once it is writable: 0, or the errno of connecting.
inline int connect_error_of(int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

/// Returns the missing resource for a connection, with its remedy; "" for other errors.
inline std::string missing_resource(int error) {
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

/// Ports for servers, outside the range of outgoing connections, so that none is taken while a
/// server starts. Empty if that range is nearly everything.
inline port_range ports_for_servers(port_range outgoing) {
    if (outgoing.size() == 0) outgoing = {32768, 65535};  // no known system begins lower
    const port_range below{10000, outgoing.low - 1};
    const port_range above{std::max(outgoing.high + 1, 10000LL), 65535};
    const port_range more = below.size() < above.size() ? above : below;
    return more.size() < 100 ? port_range{} : more;
}

/// Returns a port without a listener, for a server: never the same twice in a program, and hardly
/// ever in two programs.
inline int free_port() {
    static std::atomic<unsigned> next{static_cast<unsigned>(entropy())};
    const port_range ports = ports_for_servers(outgoing_ports());
    for (int tries = 0; tries < 1000; ++tries) {
        const descriptor fd = new_socket(AF_INET);
        if (fd.get() < 0)
            throw std::runtime_error("no free port can be looked for: " +
                                     (missing_resource(errno).empty() ? error_text(errno)
                                                              : missing_resource(errno)));
        sockaddr_in a{};  // all addresses, because a server may listen on all
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
}  // inline namespace v1
}  // namespace llmbench
