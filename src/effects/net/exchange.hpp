// one request and its answer over one socket
// What every client of this program stands on. It never waits: whoever has it knows when.
#pragma once

#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/net/network.hpp"
#include "effects/net/tls.hpp"

#include <cerrno>  // errno, EAGAIN, EWOULDBLOCK, EINTR
#include <memory>  // unique_ptr, make_unique
#include <string>
#include <string_view>
#include <utility>  // exchange
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What one read of a socket brought.
struct arrival {
    enum class kind : unsigned char { nothing_yet, bytes, end };
    kind what = kind::nothing_yet;
    long long at_ns = 0;       // when the bytes left the socket, before anybody looked at them
    std::string_view bytes{};  // as the network brought them, in the buffer of the read
    int error = 0;             // of the end: errno, 0 where the other side closed in an orderly way
};

/// How far a TLS handshake is.
struct handshake {
    enum class state : unsigned char { going_on, done, failed };
    state is = state::going_on;
    std::string why{};  // it failed
};
inline constexpr const char* closed_in_handshake =
    "the connection was closed during the TLS handshake";

/// A socket that does not block, and TLS on it where the target wants that. Bytes of the network
/// come out of read() with their time; content() makes HTTP of them.
class exchange {
public:
    exchange() = default;
    ~exchange() { let_go(); }
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;

    /// Begins to connect; `user` is told when it did, and of bytes from then on. False, with errno,
    /// where it cannot. `from`: a local address, or none.
    bool connect(const address& to, network& net, socket_user& user,
                 const address* from = nullptr) {
        net_ = &net;
        socket_ = net.connect(to, from, user);
        return is_open();
    }
    /// Once it can be written to: 0, or the errno that came of connecting.
    int connect_error() const { return net_->connect_error(socket_); }
    bool is_open() const { return socket_ != nullptr; }
    const network::socket& socket() const { return socket_; }

    // ---- TLS

    /// `last`: the session to go on with, and where the server's next one is put; may be null.
    handshake begin_handshake(const tls_client& client, tls_session* last,
                              std::vector<char>& room) {
        tls_ = std::make_unique<tls_channel>(client, last);
        return shake_hands({}, room);
    }
    /// Takes what the network brought for it.
    handshake shake_hands(std::string_view bytes, std::vector<char>& room) {
        using state = handshake::state;
        const bool spoke_first = !tls_->received(bytes, room).empty();
        const bool lost = !flush();
        if (tls_->ended())
            return {state::failed, tls_->error().empty() ? closed_in_handshake : tls_->error()};
        if (spoke_first) return {state::failed, "the server answered before it was asked"};
        if (lost) return {state::failed, error_text(errno)};
        return {tls_->open() ? state::done : state::going_on, ""};
    }
    bool has_tls() const { return tls_ != nullptr; }
    /// Of a handshake that is done: a short one, with an earlier session.
    bool resumed() const { return tls_->resumed(); }
    /// The server's certificate is what is wrong.
    bool distrusts() const { return tls_ && tls_->distrusts(); }
    /// TLS came to its end: nothing more will be content.
    bool tls_ended() const { return tls_ && tls_->ended(); }
    /// Why it did, empty where the server said so in an orderly way.
    std::string tls_error() const { return tls_->error(); }

    // ---- the request

    /// Makes it ready for flush(). It must stay where it is as long as something of it is unsent.
    void send(std::string_view request) {
        request_ = request;
        unsent_ = request.size();
        if (tls_) tls_->send(request);
    }
    /// Gives the socket what it takes; where that is not all, its user is told when it takes more.
    /// False, with errno, where it takes no more at all.
    bool flush() {
        if (tls_) unsent_ = tls_->outgoing().size();
        while (unsent_ > 0) {
            const char* const from = tls_ ? tls_->outgoing().data()
                                          : request_.data() + request_.size() - unsent_;
            const long long n = net_->write(socket_, from, unsent_);
            if (n > 0) {
                unsent_ -= static_cast<std::size_t>(n);
                if (tls_) tls_->sent(static_cast<std::size_t>(n));
            } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
                net_->await_room(socket_);
                break;
            } else if (errno != EINTR) return false;
        }
        return true;
    }
    /// Bytes of the request, or of what TLS made of it, that the socket did not take yet.
    std::size_t unsent() const { return unsent_; }

    // ---- the answer

    /// One read, stamped before anything else is done.
    arrival read(std::vector<char>& buffer) {
        const long long n = net_->read(socket_, buffer.data(), buffer.size());
        const long long now = now_ns();
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return {};
        if (n <= 0) return {arrival::kind::end, now, {}, n < 0 ? errno : 0};
        return {arrival::kind::bytes, now, {buffer.data(), static_cast<std::size_t>(n)}, 0};
    }
    /// The bytes of HTTP in what a read brought; of TLS those that are whole by now, in `room`.
    std::string_view content(std::string_view bytes, std::vector<char>& room) {
        if (!tls_) return bytes;
        bytes = tls_->received(bytes, room);
        flush();  // where it fails, a read will tell
        return bytes;
    }
    /// False where the server closed an idle connection, or sent what nobody asked for. TLS may
    /// bring words of its own, such as sessions to go on with.
    bool is_quiet(std::vector<char>& buffer, std::vector<char>& room) {
        if (!is_open()) return false;
        const long long n = net_->read(socket_, buffer.data(), buffer.size());
        if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        if (n == 0 || !tls_) return false;
        const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
        return tls_->received(bytes, room).empty() && !tls_->ended();
    }
    /// Says goodbye where TLS has a word for it and nothing is left that should go before.
    void close() {
        if (tls_ && is_open() && unsent_ == 0) {
            tls_->say_goodbye();
            const std::string_view words = tls_->outgoing();
            if (!words.empty()) net_->write(socket_, words.data(), words.size());
        }
        tls_.reset();
        let_go();
        unsent_ = 0;
    }

private:
    void let_go() {
        if (socket_) net_->close(std::exchange(socket_, nullptr));
    }

    network* net_ = nullptr;
    network::socket socket_{};
    std::unique_ptr<tls_channel> tls_{};
    std::string_view request_{};
    std::size_t unsent_ = 0;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
