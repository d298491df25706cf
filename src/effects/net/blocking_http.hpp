// requests that are not measured
#pragma once

#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/exchange.hpp"
#include "effects/net/http_server.hpp"
#include "effects/net/machine_network.hpp"
#include "effects/net/network.hpp"
#include "effects/net/sockets.hpp"
#include "effects/net/tls.hpp"

#include <algorithm>  // min
#include <cerrno>  // errno, EAGAIN, EINTR, ETIMEDOUT
#include <memory>  // unique_ptr
#include <optional>
#include <stdexcept>  // exception, runtime_error
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

struct http_answer {
    int status = 0;
    std::string body{};
    std::string content_type{};
    std::optional<double> date_s{};  // time of writing, by the server's clock
    std::string error{};  // why there is no answer
    bool distrusted = false;  // because of the server's certificate
    bool reset_by_server = false;  // the server closed right after an answer, against its promise
};

/// One request on its own connection, not measured: readiness, model lists.
class blocking_exchange final : private socket_user {
public:
    /// `stays`: the request does not ask to close the connection; whether the server closes it
    /// anyway is seen within 100 ms.
    explicit blocking_exchange(double within_s, bool stays = false)
        : within_s_(within_s), deadline_ns_(now_ns() + ns_of(within_s)), stays_(stays) {}

    http_answer ask(const http_server& at, const std::string& request) {
        if (connect(at.addresses) && (!at.tls || secure(*at.tls)) && send(request)) read_answer();
        return std::move(answer_);
    }

private:
    static constexpr std::size_t max_body = 8u << 20;
    static constexpr long long look_up_ns = 50000000;  // to notice an interruption

    void on_readable() override { called_ = readable_ = true; }
    void on_writable() override { called_ = true; }
    /// Returns false if nothing happens until then, or the program is interrupted.
    bool wait(long long until_ns) {
        const bool was_interrupted = stop_asked.load();
        called_ = readable_ = false;
        for (long long now = now_ns(); !called_; now = now_ns()) {
            if (now >= until_ns || stop_asked.load() != was_interrupted) return false;
            net_->wait(std::min(until_ns, now + look_up_ns), now);
            net_->each();
        }
        return true;
    }

    bool failed(std::string why) {
        answer_.error = std::move(why);
        return false;
    }
    bool failed_by_time() {
        return failed(now_ns() < deadline_ns_ ? "the run was interrupted before it answered"
                                              : "no answer within " + time_text(within_s_));
    }
    bool connect(const known_addresses& to) {
        std::vector<address> addresses;
        try {
            addresses = to.in_order();
        } catch (const std::runtime_error& e) {
            return failed(e.what());
        }
        for (std::size_t i = 0; i < addresses.size(); ++i) {
            // An address that never answers must leave time for the others.
            const long long until = now_ns() + (deadline_ns_ - now_ns()) /
                                                   static_cast<long long>(addresses.size() - i);
            const int error = try_address(addresses[i], until);
            if (error == 0) {
                to.answered(addresses[i]);
                answer_.error.clear();
                return true;
            }
            failed(std::string("cannot connect: ") + error_text(error));
            wire_.close();
        }
        return false;
    }
    /// Returns 0 or an errno.
    int try_address(const address& to, long long until_ns) {
        while (!wire_.connect(to, *net_, *this)) {
            if (errno != EAGAIN || now_ns() >= until_ns) return errno;
            sleep_s(0.005);
        }
        if (wait(until_ns)) return wire_.connect_error();
        return now_ns() < until_ns ? EINTR : ETIMEDOUT;
    }
    bool secure(const tls_client& tls) {
        handshake hands = wire_.begin_handshake(tls, nullptr, room_);
        while (hands.is == handshake::state::going_on) {
            if (!wait(deadline_ns_)) return failed_by_time();
            if (wire_.unsent() > 0 && !wire_.flush()) return failed(closed_in_handshake);
            const arrival a = wire_.read(buffer_);
            if (a.what == arrival::kind::end) return failed(closed_in_handshake);
            if (a.what == arrival::kind::bytes) hands = wire_.shake_hands(a.bytes, room_);
        }
        answer_.distrusted = wire_.distrusts();
        return hands.is == handshake::state::done || failed(hands.why);
    }
    /// The answer may come before the request is sent completely.
    bool send(const std::string& request) {
        wire_.send(request);
        readable_ = false;
        while (wire_.flush() && wire_.unsent() > 0 && !readable_ && wait(deadline_ns_)) {}
        return wire_.unsent() == 0 || readable_ || failed("the connection was lost while sending");
    }
    bool read_answer() {
        response_parser parser;
        while (!parser.complete() && !parser.broken()) {
            if (!wait(deadline_ns_)) return failed_by_time();
            const arrival a = wire_.read(buffer_);
            if (a.what == arrival::kind::nothing_yet) continue;
            if (a.what == arrival::kind::end) {
                const bool orderly = a.error == 0;
                if (orderly && wire_.has_tls() && !parser.body_may_be_cut())
                    return failed(tls_was_cut);
                parser.end_of_input();
                continue;
            }
            parser.feed(wire_.content(a.bytes, room_), [&](std::string_view body) {
                if (answer_.body.size() < max_body) answer_.body.append(body);
            });
            if (!wire_.tls_ended() || parser.complete()) continue;
            if (const std::string why = wire_.tls_error(); !why.empty()) return failed(why);
            parser.end_of_input();
        }
        answer_.status = parser.complete() ? parser.status() : 0;
        answer_.error = parser.error();
        answer_.content_type = parser.header("content-type");
        // A cached answer was written before the request.
        if (parser.header("age").empty())
            answer_.date_s = seconds_of_http_date(parser.header("date"));
        if (stays_ && parser.complete() && parser.keep_alive() && !wire_.tls_ended())
            answer_.reset_by_server = wait(now_ns() + 100000000) && !wire_.is_quiet(buffer_, room_);
        return parser.complete();
    }

    const double within_s_;
    const long long deadline_ns_;
    const bool stays_;
    const std::unique_ptr<network> net_ = new_network();
    exchange wire_{};
    http_answer answer_{};
    std::vector<char> buffer_ = std::vector<char>(16384);
    std::vector<char> room_{};  // of one read, for TLS
    bool called_ = false, readable_ = false;  // results of the last wait
};

/// A missing resource of the client, such as descriptors, is given as the reason.
inline http_answer answer_to(const http_server& at, const std::string& request, double within_s,
                             bool stays = false) {
    try {
        return blocking_exchange(within_s, stays).ask(at, request);
    } catch (const std::exception& e) {
        http_answer none;
        none.error = e.what();
        return none;
    }
}
inline http_answer blocking_post(const http_server& at, const std::string& path,
                                 const std::string& fields, const std::string& body,
                                 double within_s) {
    const std::string request = request_text(http_method::post, path, at.url.authority(),
                                             "Connection: close\r\n" + fields, body);
    return answer_to(at, request, within_s);
}
/// Like the requests of a load, on a connection that may be kept.
inline http_answer blocking_post_kept(const http_server& at, const std::string& path,
                                      const std::string& fields, const std::string& body,
                                      double within_s) {
    const std::string request =
        request_text(http_method::post, path, at.url.authority(), fields, body);
    return answer_to(at, request, within_s, true);
}
inline http_answer blocking_get(const http_server& at, const std::string& path,
                                const std::string& fields, double within_s) {
    const std::string request = request_text(http_method::get, path, at.url.authority(),
                                             "Connection: close\r\n" + fields);
    return answer_to(at, request, within_s);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
