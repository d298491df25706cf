// whoever is told of a socket
#pragma once

namespace llmbench {
inline namespace v0 {
namespace detail {

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

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
