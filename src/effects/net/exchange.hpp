// a server, and one request and its answer over one socket
// The base of every client in this program. It never waits: its user waits.
#pragma once

#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/wire/url.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/net/network.hpp"
#include "effects/net/sockets.hpp"
#include "effects/net/tls.hpp"

#include <algorithm>  // find_if, rotate
#include <cerrno>  // EAGAIN, EINTR, errno, EWOULDBLOCK
#include <cstring>  // memcmp
#include <functional>  // how a name is resolved
#include <memory>  // make_unique, shared_ptr, unique_ptr
#include <mutex>  // lock_guard
#include <string>
#include <string_view>
#include <utility>  // exchange, move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The addresses of a server: the name is resolved once for all users, and the address that
/// answered last comes first, so that one that never answers is waited for once, not in every
/// repeat. Copies share their state.
class known_addresses {
public:
    using resolver = std::function<vector<address>()>;

    explicit known_addresses(vector<address> all = {})
        : known_(new_shared<known>()) { known_->all = std::move(all); }
    /// Resolves at the first use, and again after an exception.
    explicit known_addresses(resolver ask)
        : known_(new_shared<known>()) { known_->ask = std::move(ask); }

    /// Throws the resolver's exceptions.
    vector<address> in_order() const {
        const std::lock_guard lock(known_->mutex);
        if (known_->ask) {
            known_->all = known_->ask();
            known_->ask = nullptr;
        }
        return known_->all;
    }
    void answered(const address& a) const {
        const std::lock_guard lock(known_->mutex);
        vector<address>& all = known_->all;
        const auto at = std::find_if(all.begin(), all.end(), [&](const address& x) {
            return x.size == a.size && std::memcmp(&x.storage, &a.storage, a.size) == 0;
        });
        if (at != all.end()) std::rotate(all.begin(), at, at + 1);
    }

private:
    struct known {
        std::mutex mutex{};
        vector<address> all{};
        resolver ask{};  // null: `all` is known
    };
    std::shared_ptr<known> known_;
};

struct http_server {
    http_url url{};
    known_addresses addresses{};
    std::shared_ptr<tls_client> tls{};  // null: plain HTTP
};
inline http_server server_at(const http_url& u, std::shared_ptr<tls_client> tls = {}) {
    return {u, known_addresses([u] { return resolved(u); }), std::move(tls)};
}

/// The memory of reads: exchanges of one thread may share it.
struct read_room {
    vector<char> network = vector<char>(16384), plain{};  // `plain`: for TLS
};
/// The result of one read of a socket.
struct arrival {
    enum class kind : unsigned char { nothing_yet, bytes, end };
    kind what = kind::nothing_yet;
    long long at_ns = 0;       // arrival of the last byte by the kernel, else read_ns
    long long read_ns = 0;     // when the bytes left the socket, before any parsing
    bool is_stamped = false;   // by the kernel
    std::string_view bytes{};  // as from the network, in the buffer of the read
    int error = 0;             // errno of the end; 0: an orderly close
};

/// The state of a TLS handshake.
struct handshake {
    enum class state : unsigned char { going_on, done, failed };
    state is = state::going_on;
    std::string why{};  // why it failed
};
inline constexpr const char* closed_in_handshake =
    "the connection was closed during the TLS handshake";

/// A non-blocking socket, with TLS if the target wants it. read() returns network bytes with their
/// time; content() returns HTTP bytes.
class exchange : not_copied {
public:
    ~exchange() { let_go(); }

    /// Begins to connect; `user` is called when connected, and for bytes. Returns false, with
    /// errno, on failure. `from`: a local address, or null.
    bool connect(const address& to, network& net, socket_user& user,
                 const address* from = nullptr) {
        net_ = &net;
        socket_ = net.connect(to, from, user);
        return is_open();
    }
    /// Valid once it is writable: 0, or the errno of connecting.
    int connect_error() const { return net_->connect_error(socket_); }
    bool is_open() const { return socket_ != nullptr; }
    const network::socket& socket() const { return socket_; }

    // ---- TLS

    /// `last`: the session to resume, replaced by the server's next one; may be null.
    handshake begin_handshake(const tls_client& client, tls_session* last, read_room& room) {
        tls_ = std::make_unique<tls_channel>(client, last);
        return shake_hands({}, room);
    }
    /// Takes network bytes of the handshake.
    handshake shake_hands(std::string_view bytes, read_room& room) {
        using state = handshake::state;
        const bool spoke_first = !tls_->received(bytes, room.plain).empty();
        const bool lost = !flush();
        if (tls_->ended())
            return {state::failed, tls_->error().empty() ? closed_in_handshake : tls_->error()};
        if (spoke_first) return {state::failed, "the server answered before it was asked"};
        if (lost) return {state::failed, error_text(errno)};
        return {tls_->open() ? state::done : state::going_on, ""};
    }
    bool has_tls() const { return tls_ != nullptr; }
    bool distrusts() const { return tls_ && tls_->distrusts(); }
    /// Whether TLS has ended: no more content will come.
    bool tls_ended() const { return tls_ && tls_->ended(); }
    /// Why TLS ended, empty if in an orderly way.
    std::string tls_error() const { return tls_->error(); }

    // ---- the request

    /// Prepares the request for flush(). Its memory must stay until all is sent.
    void send(std::string_view request) {
        request_ = request;
        unsent_ = request.size();
        if (tls_) tls_->send(request);
    }
    /// Writes as much as the socket takes; the user is called when it takes more. Returns false,
    /// with errno, if the socket is closed for writing.
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
    /// Bytes of the request, or of its TLS form, that are not written yet.
    std::size_t unsent() const { return unsent_; }

    // ---- the answer

    /// Reads once; the time is taken before anything else.
    arrival read(read_room& room) {
        vector<char>& to = room.network;
        const long long n = net_->read(socket_, to.data(), to.size());
        const long long now = now_ns();
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return {};
        if (n <= 0) return {arrival::kind::end, now, now, false, {}, n < 0 ? errno : 0};
        const long long came = socket_->came_ns;
        return {arrival::kind::bytes, came > 0 ? came : now, now, came > 0,
                {to.data(), static_cast<std::size_t>(n)}, 0};
    }
    /// Returns the HTTP bytes of a read; with TLS the complete ones, in `room`.
    std::string_view content(std::string_view bytes, read_room& room) {
        if (!tls_) return bytes;
        bytes = tls_->received(bytes, room.plain);
        flush();  // a later read reports its failure
        return bytes;
    }
    /// Whether a part of a TLS message has come, whose rest is missing.
    bool holds_part() const { return tls_ && tls_->holds_part(); }
    /// Returns false if the server closed an idle connection, or sent unexpected bytes. TLS
    /// messages such as new sessions are expected.
    bool is_quiet(read_room& room) {
        if (!is_open()) return false;
        const arrival a = read(room);
        if (a.what == arrival::kind::nothing_yet) return true;
        return a.what == arrival::kind::bytes && tls_ &&
               tls_->received(a.bytes, room.plain).empty() && !tls_->ended();
    }
    /// Sends TLS's goodbye if nothing unsent is left before it.
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
}  // inline namespace v1
}  // namespace llmbench
