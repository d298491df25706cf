// connections, waiting for them, and whoever is told of them
#pragma once

#include "effects/system/clock.hpp"

#include <cstddef>  // size_t
#include <functional>  // what is done in between
#include <memory>  // shared_ptr

namespace llmbench {
inline namespace v0 {
namespace detail {

struct address;

/// Whoever reads from a socket and writes to it.
class socket_user {
public:
    /// There are bytes to read, or the end. It is told again as long as there are.
    virtual void on_readable() = 0;
    /// What it waited for: the socket is connected, or takes bytes again.
    virtual void on_writable() = 0;

protected:
    ~socket_user() = default;
};

/// A connection that somebody is told of, whoever carries it.
struct network_socket {
    explicit network_socket(socket_user& u) : user(&u) {}

    socket_user* user;  // null: closed
    bool awaits_room = true;  // to connect, or to write more

protected:
    ~network_socket() = default;
};

/// The connections of one thread, and one point in time. What fails says why in errno, as calls of
/// the system do; nothing blocks but wait().
class network {
public:
    using socket = std::shared_ptr<network_socket>;

    network() = default;
    virtual ~network() = default;
    network(const network&) = delete;
    network& operator=(const network&) = delete;

    /// On its way to its peer, from a local address where one is named. Its user is told when it
    /// has arrived, and of bytes from then on. Null where it cannot; EAGAIN: only asking again
    /// tells when it can.
    virtual socket connect(const address& to, const address* from, socket_user& user) = 0;
    /// What came of connecting: 0, or an errno.
    virtual int connect_error(const socket& s) = 0;
    /// As recv() and send() have it. Writing to a peer that is gone is an error and no signal.
    virtual long long read(const socket& s, char* into, std::size_t bytes) = 0;
    virtual long long write(const socket& s, const char* from, std::size_t bytes) = 0;
    /// Its user has more to write than it takes now.
    virtual void await_room(const socket& s) = 0;
    /// What is still to be said of it goes nowhere.
    virtual void close(socket s) = 0;

    /// Until something happens, or until then; not at all where that has passed.
    virtual void wait(long long until_ns, long long now) = 0;
    void wait(long long until_ns) { wait(until_ns, now_ns()); }
    /// After so many turns each that something came in at has been told of; 0: the wait found all.
    virtual long long turns_for_all(std::size_t sockets) const = 0;
    /// Tells of what the wait found; `after_each` is called in between.
    virtual void each(const std::function<void()>& after_each) = 0;
    void each() { each([] {}); }
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
