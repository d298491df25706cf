// The other side of a connection under test, in the same thread: a port of 127.0.0.1 that takes one
// connection after the other, and says byte by byte what a test tells it.
#pragma once

#include "relay.hpp"
#include "sockets.hpp"

#include <chrono>
#include <string>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace peers {

/// Far more than anything here takes: a test that waits so long has failed.
inline constexpr int patience_ms = 20000;

/// Waits until the socket has these events; false where it never does.
inline bool wait_for(int fd, short events, int within_ms = patience_ms) {
    pollfd p{fd, events, 0};
    return ::poll(&p, 1, within_ms) > 0;
}

/// Turns until it holds; false where it never does.
template <class Holds, class Turn>
bool turn_until(Holds&& holds, Turn&& turn) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    while (!holds() && std::chrono::steady_clock::now() < patience) turn();
    return holds();
}

/// A server that listens, for a client in the same thread.
class peer {
public:
    peer() : listener_(relay::ipv4_listener()), port_(relay::port_of(listener_)) {}
    ~peer() {
        hang_up();
        stop_listening();
    }
    peer(const peer&) = delete;
    peer& operator=(const peer&) = delete;

    int port() const { return port_; }
    /// Takes the next connection, and lets go of the one before.
    bool accept() {
        hang_up();
        if (!wait_for(listener_, POLLIN)) return false;
        fd_ = sockets::accepted(listener_);
        return fd_ >= 0;
    }
    void say(const std::string& bytes) const {
        ::send(fd_, bytes.data(), bytes.size(), sockets::no_signal);
    }
    /// What came, up to these bytes; all there is where they never come.
    const std::string& heard_until(const std::string& end) {
        while (heard_.find(end) == std::string::npos && hear()) {}
        return heard_;
    }
    /// What came, once it is so much.
    const std::string& heard(std::size_t size) {
        while (heard_.size() < size && hear()) {}
        return heard_;
    }
    /// Takes what is there now.
    bool hear() {
        char buffer[65536];
        if (!wait_for(fd_, POLLIN)) return false;
        const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
        if (n > 0) heard_.append(buffer, static_cast<std::size_t>(n));
        return n > 0;
    }
    /// Takes what is there now and forgets it; returns its size.
    std::size_t hear_on() {
        heard_.clear();
        return hear() ? heard_.size() : 0;
    }
    int fd() const { return fd_; }
    /// The orderly end of the connection.
    void hang_up() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
        heard_.clear();
    }
    /// The end that is not: RST.
    void reset() {
        const linger at_once{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        hang_up();
    }
    void stop_listening() {
        if (listener_ >= 0) ::close(listener_);
        listener_ = -1;
    }

private:
    int listener_, port_, fd_ = -1;
    std::string heard_{};
};

}  // namespace peers
