// a connection of the simulated server
#pragma once

#include "core/simulated/replies.hpp"
#include "core/wire/http.hpp"
#include "core/wire/http_date.hpp"
#include "effects/system/clock.hpp"

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

/// One connection: requests in, one answer at a time out. Its bytes are carried by whoever derives
/// from it.
class simulated_session : public std::enable_shared_from_this<simulated_session> {
public:
    explicit simulated_session(const request_handler& handler) : handler_(handler) {}
    virtual ~simulated_session() = default;
    simulated_session(const simulated_session&) = delete;
    simulated_session& operator=(const simulated_session&) = delete;

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
        ++answered_;
        const bool keep = parser_.keep_alive;
        parser_.reset();
        const std::string held = std::exchange(early_, {});
        if (!keep) close_when_written_ = true;
        else if (parser_.feed(held)) serve();
        if (close_when_written_ && queue_.empty()) close();
    }
    void reset() {
        queue_.clear();
        end(true);
    }

    std::uint64_t answering = 0;  // the handler's name of the answer that it is giving, 0: none

protected:
    /// It is kept after an answer, and none is given now.
    bool is_kept() const { return answered_ > 0 && !busy_; }
    /// Bytes have come. False where none are wanted after them.
    bool take(std::string_view bytes) {
        if (busy_) early_.append(bytes);
        else if (parser_.feed(bytes)) serve();
        else if (parser_.broken()) {
            answer(error_reply(400, "not an HTTP/1.1 request"));
            return false;
        }
        return true;
    }
    /// Straight on their way where all are taken: the stamp in the log is then the write's own.
    void write_more() {
        while (!queue_.empty()) {
            const long long n = give(queue_.front());
            if (n < 0) return gone();
            if (n == 0) return;
            if (n == static_cast<long long>(queue_.front().size())) queue_.pop_front();
            else queue_.front().erase(0, static_cast<std::size_t>(n));
        }
        if (close_when_written_) close();
    }
    void gone() {
        if (answering != 0) handler_.on_gone(std::exchange(answering, 0));
        close();
    }

private:
    /// How many of these bytes are taken now; where it is none, write_more() is called when some
    /// are. Below 0: nobody will.
    virtual long long give(std::string_view bytes) = 0;
    virtual void end(bool by_reset) = 0;

    void serve() {
        busy_ = true;
        handler_.on_request(*this);
    }
    void close() {
        queue_.clear();
        end(false);
    }

    const request_handler& handler_;
    request_parser parser_{};
    std::string early_{};  // bytes of the next request, come while this one is answered
    std::deque<std::string> queue_{};
    long long answered_ = 0;
    bool busy_ = false;
    bool close_when_written_ = false;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
