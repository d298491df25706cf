// a connection of the simulated server
#pragma once

#include "core/wire/http.hpp"
#include "effects/system/clock.hpp"
#include "extensions/simulated/core/replies.hpp"
#include "extensions/simulated/core/questions.hpp"

#include <cstddef>  // size_t
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

/// A Date header for these Unix seconds.
inline std::string http_date_of(long long unix_s) {
    const long long days = unix_s / 86400, at = unix_s % 86400;
    int year = 1970, month = 1;
    while (days_of_date(year + 1, 1, 1) <= days) ++year;
    while (month < 12 && days_of_date(year, month + 1, 1) <= days) ++month;
    const long long day = days - days_of_date(year, month, 1) + 1;
    return printed("%.3s, %02lld %.3s %d %02lld:%02lld:%02lld GMT",
                   &"ThuFriSatSunMonTueWed"[3 * (days % 7)], day,
                   &month_names[3 * static_cast<std::size_t>(month - 1)], year, at / 3600,
                   at / 60 % 60, at % 60);
}

class simulated_session;

/// The handler of requests on connections.
struct request_handler {
    /// Called for each request, which one answer must follow, now or later.
    std::function<void(simulated_session&)> on_request{};
    /// The client left during this answer.
    std::function<void(std::uint64_t)> on_gone{};
};

/// One connection: requests in, one answer at a time out. Derived classes carry its bytes.
class simulated_session : public std::enable_shared_from_this<simulated_session> {
public:
    explicit simulated_session(const request_handler& handler) : handler_(handler) {}
    virtual ~simulated_session() = default;
    simulated_session(const simulated_session&) = delete;
    simulated_session& operator=(const simulated_session&) = delete;

    const request_parser& request() const { return parser_; }

    /// Writes a whole answer with a Date header.
    void answer(const reply& r) {
        std::string bytes = reply_bytes(r);
        bytes.insert(bytes.find("\r\n"),
                     "\r\nDate: " + http_date_of(static_cast<long long>(unix_s())));
        write(std::move(bytes));
        next();
    }
    /// Writes a part of an answer, which next() ends.
    void write(std::string bytes) {
        queue_.push_back(std::move(bytes));
        if (queue_.size() == 1) write_more();
    }
    /// Ends an answer: the next pipelined request may follow.
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

    std::uint64_t answering = 0;  // the handler's id of the current answer, 0: none

protected:
    /// The connection is kept after an answer and idle.
    bool is_kept() const { return answered_ > 0 && !busy_; }
    /// Takes bytes. Returns false if no more are wanted.
    bool take(std::string_view bytes) {
        if (busy_) early_.append(bytes);
        else if (parser_.feed(bytes)) serve();
        else if (parser_.broken()) {
            answer(error_reply(400, "not an HTTP/1.1 request"));
            return false;
        }
        return true;
    }
    /// Written at once if possible, so that the log has the time of the write.
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
    /// Returns the number of bytes taken; 0: write_more() is called later; below 0: closed.
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
    std::string early_{};  // bytes of the next request during an answer
    std::deque<std::string> queue_{};
    long long answered_ = 0;
    bool busy_ = false;
    bool close_when_written_ = false;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
