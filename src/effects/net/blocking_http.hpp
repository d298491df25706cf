// requests that are not measured
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/exchange.hpp"
#include "effects/net/machine_network.hpp"
#include "effects/net/network.hpp"
#include "effects/net/sockets.hpp"
#include "effects/net/tls.hpp"

#include <algorithm>  // min
#include <cerrno>  // errno, EAGAIN, ETIMEDOUT
#include <memory>  // unique_ptr
#include <optional>
#include <stdexcept>  // exception, runtime_error
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
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

/// One request on its own connection, not measured: readiness, model lists, side tasks. It advances
/// when its user calls, for as long as the user can wait.
class plain_request final : private socket_user {
public:
    /// `at` must outlive it. Of a request that does not ask to close the connection it is seen
    /// within 100 ms whether the server closes it anyway.
    plain_request(const http_server& at, std::string request, double within_s)
        : at_(at),
          request_(std::move(request)),
          within_s_(within_s),
          deadline_ns_(now_ns() + ns_of(within_s)),
          stays_(request_.find("\r\nConnection: close\r\n") == std::string::npos) {
        try {
            addresses_ = at.addresses.in_order();
            limit_address();
        } catch (const std::runtime_error& e) {
            end(e.what());
        }
    }
    /// Does what can be done until then. Returns whether it has ended.
    bool advance(long long until_ns) {
        if (step_ == step::over) return true;
        called_ = false;
        const long long now = now_ns();
        if (!wire_.is_open() && !wire_.connect(addresses_[which_], *net_, *this)) {
            // The queue of a Unix-domain socket is full, and no event reports its end.
            if (errno != EAGAIN || now >= limit_ns_) on_connect_error(errno);
            else if (until_ns > now) sleep_s(0.005);
            return step_ == step::over;
        }
        if (now < limit_ns_) {
            net_->wait(std::min(until_ns, limit_ns_), now);
            net_->each();
        }
        if (called_) act();
        else if (now_ns() >= limit_ns_) on_time_over();
        return step_ == step::over;
    }
    http_answer& answer() { return answer_; }

private:
    static constexpr std::size_t max_body = 8u << 20;
    enum class step : unsigned char { connect, shake_hands, answer, see_reset, over };

    void on_readable() override { called_ = true; }
    void on_writable() override { called_ = true; }
    void end(std::string why) {
        answer_.error = std::move(why);
        step_ = step::over;
    }
    /// An address that never answers must leave time for the others.
    void limit_address() {
        if (which_ == addresses_.size()) return end(answer_.error);
        const long long now = now_ns();
        limit_ns_ = now + (deadline_ns_ - now) / static_cast<long long>(addresses_.size() - which_);
    }
    void on_connect_error(int error) {
        wire_.close();
        answer_.error = std::string("cannot connect: ") + error_text(error);
        ++which_;
        limit_address();
    }
    void on_time_over() {
        switch (step_) {
        case step::connect: return on_connect_error(ETIMEDOUT);
        case step::see_reset: return end("");
        default: return end("no answer within " + time_text(within_s_));
        }
    }
    void act() {
        switch (step_) {
        case step::connect: return on_connected();
        case step::shake_hands: return shake_hands();
        case step::answer: return go_on();
        case step::see_reset: answer_.reset_by_server = !wire_.is_quiet(room_); break;
        case step::over: break;
        }
        step_ = step::over;
    }
    void on_connected() {
        if (const int error = wire_.connect_error()) return on_connect_error(error);
        at_.addresses.answered(addresses_[which_]);
        answer_.error.clear();
        limit_ns_ = deadline_ns_;
        if (!at_.tls) return begin_to_send();
        step_ = step::shake_hands;
        on_handshake(wire_.begin_handshake(*at_.tls, nullptr, room_));
    }
    void shake_hands() {
        if (wire_.unsent() > 0 && !wire_.flush()) return end(closed_in_handshake);
        const arrival a = wire_.read(room_);
        if (a.what == arrival::kind::end) return end(closed_in_handshake);
        if (a.what == arrival::kind::bytes) on_handshake(wire_.shake_hands(a.bytes, room_));
    }
    void on_handshake(const handshake& hands) {
        if (hands.is == handshake::state::going_on) return;
        answer_.distrusted = wire_.distrusts();
        if (hands.is == handshake::state::failed) end(hands.why);
        else begin_to_send();
    }
    void begin_to_send() {
        step_ = step::answer;
        wire_.send(request_);
        wire_.flush();  // a later read reports its failure
    }
    /// Bytes may come before the request is sent whole: interim answers, an early refusal, TLS
    /// messages. The rest is sent in any case.
    void go_on() {
        if (wire_.unsent() > 0) wire_.flush();
        read();
    }
    void read() {
        const arrival a = wire_.read(room_);
        if (a.what == arrival::kind::nothing_yet) return;
        if (a.what == arrival::kind::end) {
            if (a.error == 0 && wire_.has_tls() && !parser_.body_may_be_cut())
                return end(tls_was_cut);
            if (wire_.unsent() > 0 && parser_.untouched())
                return end("the connection was lost while sending");
            parser_.end_of_input();
        } else {
            parser_.feed(wire_.content(a.bytes, room_), [&](std::string_view body) {
                if (answer_.body.size() < max_body) answer_.body.append(body);
            });
            if (wire_.tls_ended() && !parser_.complete()) {
                if (const std::string why = wire_.tls_error(); !why.empty()) return end(why);
                parser_.end_of_input();
            }
        }
        if (parser_.complete() || parser_.broken()) on_answer();
    }
    void on_answer() {
        answer_.status = parser_.complete() ? parser_.status() : 0;
        answer_.content_type = parser_.header("content-type");
        // A cached answer was written before the request.
        if (parser_.header("age").empty())
            answer_.date_s = seconds_of_http_date(parser_.header("date"));
        if (!stays_ || parser_.use() != socket_use::kept || wire_.tls_ended())
            return end(parser_.error());
        step_ = step::see_reset;
        limit_ns_ = now_ns() + 100000000;
    }

    const http_server& at_;
    const std::string request_;
    const double within_s_;
    const long long deadline_ns_;
    const bool stays_;
    const std::unique_ptr<network> net_ = new_network();
    exchange wire_{};
    response_parser parser_{};
    http_answer answer_{};
    vector<address> addresses_{};
    std::size_t which_ = 0;    // of the addresses
    long long limit_ns_ = 0;  // of this step
    read_room room_{};
    step step_ = step::connect;
    bool called_ = false;  // in the last wait
};

/// Waits for the answer. A missing resource of the client, such as descriptors, is given as the
/// reason.
inline http_answer answer_to(const http_server& at, const std::string& request, double within_s) {
    constexpr long long look_up_ns = 50000000;  // to notice an interruption
    http_answer none;
    try {
        plain_request one(at, request, within_s);
        const bool was_interrupted = stop_asked.load();
        while (!one.advance(now_ns() + look_up_ns)) {
            if (one.answer().status > 0 || stop_asked.load() == was_interrupted) continue;
            none.error = "the run was interrupted before it answered";
            return none;
        }
        return std::move(one.answer());
    } catch (const std::exception& e) {
        none.error = e.what();
        return none;
    }
}
/// The text of a request after which its connection is closed.
inline std::string last_request(http_method how, const http_server& at, const std::string& path,
                                const std::string& fields, const std::string& body = "") {
    return request_text(how, path, at.url.authority(), "Connection: close\r\n" + fields, body);
}
inline http_answer blocking_post(const http_server& at, const std::string& path,
                                 const std::string& fields, const std::string& body,
                                 double within_s) {
    return answer_to(at, last_request(http_method::post, at, path, fields, body), within_s);
}
inline http_answer blocking_get(const http_server& at, const std::string& path,
                                const std::string& fields, double within_s) {
    return answer_to(at, last_request(http_method::get, at, path, fields), within_s);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
