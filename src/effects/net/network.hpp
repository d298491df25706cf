// connections, waiting for them, and their users
#pragma once

#include "core/base/vector.hpp"
#include "effects/system/clock.hpp"

#include <cstddef>  // size_t
#include <functional>  // what is done in between
#include <memory>  // shared_ptr

namespace llmbench {
inline namespace v1 {
namespace detail {

struct address;

/// A reader and writer of a socket.
class socket_user {
public:
    /// Called while there are bytes to read, or the end.
    virtual void on_readable() = 0;
    /// Called when the socket is connected, or takes bytes again.
    virtual void on_writable() = 0;

protected:
    ~socket_user() = default;
};

/// A connection with a user, on any network.
struct network_socket {
    explicit network_socket(socket_user& u) : user(&u) {}

    socket_user* user;  // null: closed
    bool awaits_room = true;  // to connect, or to write more
    long long came_ns = 0;    // arrival of the last read bytes by the kernel; 0: unknown

protected:
    ~network_socket() = default;
};

/// The connections of one thread, which all wait together. Failures set errno like system calls;
/// only wait() blocks.
class network : not_copied {
public:
    using socket = std::shared_ptr<network_socket>;

    virtual ~network() = default;

    /// Makes the kernel stamp arrivals, if it can, on later sockets.
    virtual void stamp_arrivals() {}
    /// Returns a connecting socket, from a local address if one is given. Its user is called when
    /// it is connected, and for bytes. Null on failure; EAGAIN: no event follows, ask again later.
    virtual socket connect(const address& to, const address* from, socket_user& user) = 0;
    /// The result of connecting: 0, or an errno.
    virtual int connect_error(const socket& s) = 0;
    /// As recv() and send(). Writing to a closed peer is an error, not a signal.
    virtual long long read(const socket& s, char* into, std::size_t bytes) = 0;
    virtual long long write(const socket& s, const char* from, std::size_t bytes) = 0;
    /// Its user has more to write than the socket takes.
    virtual void await_room(const socket& s) = 0;
    /// Later events of the socket are dropped.
    virtual void close(socket s) = 0;

    /// Waits for an event, or until then; not at all if that has passed.
    virtual void wait(long long until_ns, long long now) = 0;
    void wait(long long until_ns) { wait(until_ns, now_ns()); }
    /// Whether a signal ended the wait: the thread may have been stopped.
    virtual bool was_interrupted() const { return false; }
    /// The number of turns after which all ready sockets are reported; 0: one wait reports all.
    virtual long long full_turns(std::size_t sockets) const = 0;
    /// Reports the events of the wait, with `after_each` after each one.
    virtual void each(const std::function<void()>& after_each) = 0;
    void each() { each([] {}); }
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
