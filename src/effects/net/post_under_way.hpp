// a request in the background
#pragma once

#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/net/exchange.hpp"
#include "effects/net/http_server.hpp"
#include "effects/net/machine_network.hpp"
#include "effects/net/network.hpp"

#include <cerrno>  // errno, EAGAIN
#include <memory>  // unique_ptr
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// For a virtual environment, whose one thread also runs the load. Without TLS.
class post_under_way final : private socket_user {
public:
    post_under_way(const http_server& at, std::string request, double within_s)
        : at_(at), request_(std::move(request)), within_s_(within_s),
          until_ns_(now_ns() + ns_of(within_s)) {}

    /// Does what can be done now. Returns whether it has ended.
    bool advance() {
        if (!ended_ && !wire_.is_open() &&
            !wire_.connect(at_.addresses.in_order().front(), *net_, *this) && errno != EAGAIN)
            failed(std::string("cannot connect: ") + error_text(errno));
        if (!ended_) {
            net_->wait(now_ns(), now_ns());
            net_->each();
        }
        if (!ended_ && now_ns() >= until_ns_) failed("no answer within " + time_text(within_s_));
        return ended_;
    }
    const http_answer& answer() const { return answer_; }

private:
    void on_writable() override {
        if (!is_connected_) {
            is_connected_ = true;
            if (const int error = wire_.connect_error(); error != 0)
                return failed(std::string("cannot connect: ") + error_text(error));
            wire_.send(request_);
        }
        if (!wire_.flush()) failed("the connection was lost while sending");
    }
    void on_readable() override {
        const arrival a = wire_.read(buffer_);
        if (ended_ || a.what == arrival::kind::nothing_yet) return;
        if (a.what == arrival::kind::end) parser_.end_of_input();
        else parser_.feed(a.bytes, [&](std::string_view body) { answer_.body.append(body); });
        if (!parser_.complete() && !parser_.broken()) return;
        answer_.status = parser_.complete() ? parser_.status() : 0;
        failed(parser_.error());
    }
    void failed(std::string why) {
        answer_.error = std::move(why);
        ended_ = true;
    }

    const http_server& at_;
    const std::string request_;
    const double within_s_;
    const long long until_ns_;
    const std::unique_ptr<network> net_ = new_network();
    exchange wire_{};
    response_parser parser_{};
    std::vector<char> buffer_ = std::vector<char>(16384);
    http_answer answer_{};
    bool is_connected_ = false, ended_ = false;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
