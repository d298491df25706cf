// A server that speaks TLS in front of one that does not, over sockets.
#pragma once

#include "relay.hpp"
#include "sockets.hpp"
#include "tls_channel.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tls {

class front {
public:
    /// The n-th connection is handled in the n-th manner, all others in the last.
    front(int port_behind, std::vector<manner> manners)
        : port_behind_(port_behind),
          terms_(std::move(manners)),
          listener_(relay::ipv4_listener()),
          port_(relay::port_of(listener_)),
          acceptor_(listener_, [this](int fd, int going) { serve(fd, going); }) {}
    int port() const { return port_; }
    std::string url(const std::string& host = "localhost") const {
        return "https://" + host + ":" + std::to_string(port_);
    }
    int full() const { return terms_.full(); }
    int resumed() const { return terms_.resumed(); }
    std::string server_name() const { return terms_.server_name(); }
    std::string protocol() const { return terms_.protocol(); }

private:
    void serve(int fd, int going) {
        channel tls(terms_);
        const int on = 1;
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        pollfd p[3] = {{going, POLLIN, 0}, {tls.stalls() ? -1 : fd, POLLIN, 0}, {-1, POLLIN, 0}};
        while (::poll(p, 3, -1) > 0 && !p[0].revents && pass_on(tls, fd, p)) {}
        if (p[2].fd >= 0) ::close(p[2].fd);
    }
    /// What there is, both ways. False where nothing follows.
    bool pass_on(channel& tls, int fd, pollfd (&p)[3]) const {
        char buffer[65536];
        const auto received = [&buffer](int from) {
            const ssize_t n = ::recv(from, buffer, sizeof buffer, 0);
            return std::string_view(buffer, n > 0 ? static_cast<std::size_t>(n) : 0);
        };
        const auto flushed = [&tls, fd] {
            return tls.flush([fd](std::string_view bytes) { return sent(fd, bytes); });
        };
        if (p[1].revents) {
            const std::string_view bytes = received(fd);
            std::string plain;
            const bool goes_on = !bytes.empty() && tls.take(bytes, plain);
            if (tls.is_open() && p[2].fd < 0) p[2].fd = relay::connected_to(port_behind_);
            if (!plain.empty()) sent(p[2].fd, plain);
            if (!flushed() || !goes_on) return false;
        }
        if (p[2].revents) {
            const std::string_view bytes = received(p[2].fd);
            if (bytes.empty()) tls.say_goodbye();
            else tls.say(bytes);
            if (!flushed() || bytes.empty()) return false;
        }
        return true;
    }
    static bool sent(int to, std::string_view bytes) {
        return ::send(to, bytes.data(), bytes.size(), sockets::no_signal) ==
               static_cast<ssize_t>(bytes.size());
    }

    const int port_behind_;
    judging_parameters terms_;
    const int listener_, port_;
    relay::acceptor acceptor_;
};

}  // namespace tls
