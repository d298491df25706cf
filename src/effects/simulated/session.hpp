// a connection of the simulated server
#pragma once

#include "core/simulated/replies.hpp"
#include "core/wire/http.hpp"
#include "core/wire/http_date.hpp"
#include "effects/system/clock.hpp"
#include "effects/simulated/asio.hpp"

#include <array>
#include <cstdint>  // uint64_t
#include <deque>
#include <functional>  // what stands behind connections
#include <memory>  // enable_shared_from_this
#include <string>
#include <string_view>
#include <utility>  // exchange, move

namespace llmbench {
inline namespace v0 {
namespace detail {

class simulated_session;

/// What stands behind connections.
struct request_handler {
    /// A request is there, which one answer has to follow, now or later.
    std::function<void(simulated_session&)> on_request{};
    /// The client went away while this answer was given.
    std::function<void(std::uint64_t)> on_gone{};
};

/// One connection: requests in, one answer at a time out.
class simulated_session : public std::enable_shared_from_this<simulated_session> {
public:
    simulated_session(asio::io_context& io, const request_handler& handler)
        : socket(io), handler_(handler) {}

    void read() {
        socket.async_read_some(asio::buffer(buffer_),
                               [self = shared_from_this()](asio::error_code e, std::size_t n) {
                                   if (e) return self->gone();
                                   self->take({self->buffer_.data(), n});
                               });
    }
    const request_parser& request() const { return parser_; }

    /// The whole answer, with the time by this machine's clock, as servers tell it.
    void answer(const reply& r) {
        std::string bytes = reply_bytes(r);
        bytes.insert(bytes.find("\r\n"),
                     "\r\nDate: " + http_date_of(static_cast<long long>(unix_s())));
        write(std::move(bytes));
        next();
    }
    /// A part of an answer, which next() ends.
    void write(std::string bytes) {
        queue_.push_back(std::move(bytes));
        if (queue_.size() == 1) write_more();
    }
    /// An answer is complete: the next pipelined request may follow.
    void next() {
        busy_ = false;
        const bool keep = parser_.keep_alive;
        parser_.reset();
        const std::string held = std::exchange(early_, {});
        if (!keep) close_when_written_ = true;
        else if (parser_.feed(held)) serve();
        if (close_when_written_ && queue_.empty()) close();
    }
    void reset() {
        asio::error_code ignored;
        socket.set_option(asio::socket_base::linger(true, 0), ignored);
        close();
    }

    tcp_socket socket;
    std::uint64_t answering = 0;  // the handler's name of the answer that it is giving, 0: none

private:
    void take(std::string_view bytes) {
        if (busy_) early_.append(bytes);
        else if (parser_.feed(bytes)) serve();
        else if (parser_.broken()) return answer(error_reply(400, "not an HTTP/1.1 request"));
        read();
    }
    void serve() {
        busy_ = true;
        handler_.on_request(*this);
    }
    void write_more() {
        // Straight into the socket where it takes all: the stamp in the log is then the write's
        // own.
        asio::error_code error;
        socket.non_blocking(true, error);
        while (!queue_.empty()) {
            const std::size_t n = socket.write_some(asio::buffer(queue_.front()), error);
            if (error == asio::error::would_block) break;
            if (error) return gone();
            if (n == queue_.front().size()) queue_.pop_front();
            else queue_.front().erase(0, n);
        }
        if (queue_.empty()) {
            if (close_when_written_) close();
            return;
        }
        socket.async_wait(tcp_socket::wait_write,
                          [self = shared_from_this()](asio::error_code e) {
                              if (!e) self->write_more();
                          });
    }
    void gone() {
        if (answering != 0) handler_.on_gone(std::exchange(answering, 0));
        close();
    }
    void close() {
        asio::error_code ignored;
        socket.close(ignored);
        queue_.clear();
    }

    const request_handler& handler_;
    std::array<char, 16384> buffer_{};
    request_parser parser_{};
    std::string early_{};  // bytes of the next request, come while this one is answered
    std::deque<std::string> queue_{};
    bool busy_ = false;
    bool close_when_written_ = false;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
