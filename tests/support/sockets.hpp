// Sockets of servers made up by tests, on every system: what Linux has in one call is two elsewhere.
#pragma once

#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sockets {

#ifdef MSG_NOSIGNAL
/// A send to whoever is gone fails, and does not end the program.
inline constexpr int no_signal = MSG_NOSIGNAL;
#else
inline constexpr int no_signal = 0;  // the socket knows
#endif

/// None that a server started by the program under test would inherit.
inline int kept(int fd, bool blocks) {
    if (fd < 0) return fd;
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (!blocks) ::fcntl(fd, F_SETFL, O_NONBLOCK);
#ifdef SO_NOSIGPIPE
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    return fd;
}
#ifdef __linux__
inline int made(int family, bool blocks = true) {
    return ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | (blocks ? 0 : SOCK_NONBLOCK), 0);
}
inline int accepted(int listener) { return ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC); }
#else
inline int made(int family, bool blocks = true) {
    return kept(::socket(family, SOCK_STREAM, 0), blocks);
}
inline int accepted(int listener) {
    const int fd = kept(::accept(listener, nullptr, nullptr), true);
    if (fd >= 0) ::fcntl(fd, F_SETFL, 0);  // it has what its listener has
    return fd;
}
#endif

/// Can be read from once it has rung.
class bell {
public:
    bell() {
        if (::pipe(ends_) != 0) ends_[0] = ends_[1] = -1;
        for (const int end : ends_) kept(end, true);
    }
    ~bell() {
        for (const int end : ends_) ::close(end);
    }
    bell(const bell&) = delete;
    bell& operator=(const bell&) = delete;
    int fd() const { return ends_[0]; }
    void ring() const { [[maybe_unused]] const auto n = ::write(ends_[1], "x", 1); }

private:
    int ends_[2];
};

}  // namespace sockets
