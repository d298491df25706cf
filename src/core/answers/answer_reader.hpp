// from bytes to the timeline of an answer
#pragma once

#include "api/result.hpp"
#include "api/target.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/dialects/body_reader.hpp"
#include "core/dialects/stream_event.hpp"
#include "core/dialects/table.hpp"
#include "core/answers/timeline.hpp"

#include <algorithm>  // max, min
#include <optional>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Whether a field of the head says that a gateway's cache gave the answer: X-Cache-Status of Kong
/// and nginx, x-portkey-cache-status ("SEMANTIC HIT"), cf-aig-cache-status, Helicone-Cache, X-Cache
/// of CDNs. LiteLLM names the key of a hit.
inline bool tells_of_cache(std::string_view name, std::string_view value) {
    const std::string field = in_lower_case(name), says = in_lower_case(value);
    if (field == "x-litellm-cache-key") return !is_nothing(says);
    constexpr std::string_view fields[] = {
        "x-cache-status", "x-portkey-cache-status", "cf-aig-cache-status", "cf-cache-status",
        "helicone-cache", "x-cache", "x-proxy-cache", "x-litellm-cache-hit"};
    const bool is_known = any_of(fields, [&](std::string_view f) { return field == f; });
    return is_known && !has_any_of(says, {"miss"}) &&
           (has_any_of(says, {"hit", "stale", "updating", "revalidated"}) || says == "true");
}

/// Reads one answer without I/O: it takes the bytes of a connection in pieces of any size with
/// their times, and gives the result of the request.
class answer_reader {
public:
    /// Takes the bytes of one read. Bytes after a complete answer are ignored.
    void feed(std::string_view bytes, long long came_ns) {
        const long long now_ns = not_before_last(came_ns);
        const std::size_t used = http_.feed(
            bytes, [&](std::string_view body) { on_body(body, now_ns); },
            [&](std::string_view& rest) { return take_chunks(rest, now_ns); });
        more_came_ = more_came_ || (used < bytes.size() && http_.complete());
        if (http_.complete()) on_complete(now_ns);
        else if (http_.broken()) on_cut(http_.error());
    }
    /// The connection ended; `error` is empty if the server closed it properly.
    void end_of_input(long long came_ns, const std::string& error = "") {
        const long long now_ns = not_before_last(came_ns);
        const bool untouched = http_.untouched();
        // Without a length and a final event nothing else tells a cut from the end.
        const bool is_cut = !error.empty() && !http_.body_may_be_cut() && reader_.ends_with_body();
        http_.end_of_input();
        if (untouched)
            return timeline_.fail(request_status::truncated,
                                  "the connection was lost before an answer: " +
                                      (error.empty() ? "the server closed it" : error));
        if (http_.complete() && !is_cut) return on_complete(now_ns);
        // A stream that was cut is judged by its events so far.
        if (is_asked_for()) timeline_.on_body_end(now_ns);
        on_cut(error.empty() ? http_.error() : "the connection was lost: " + error);
    }
    /// The answer is complete or broken.
    bool finished() const { return http_.complete() || http_.broken(); }
    /// No byte has arrived.
    bool untouched() const { return http_.untouched(); }
    /// Of the connection, as far as is known. Nobody asked for bytes behind an answer.
    socket_use use() const { return more_came_ ? socket_use::broken : http_.use(); }
    /// The time of the last bytes of this answer; 0 before the first.
    long long came_ns() const { return came_ns_; }
    /// 0 before the head.
    int http_status() const { return http_.head_done() ? http_.status() : 0; }
    stream_timeline& timeline() { return timeline_; }
    const stream_timeline& timeline() const { return timeline_; }
    const generated_text& said() const { return reader_.said(); }
    const std::string& words() const { return said().answer; }
    /// As the answer names it, "" if it does not.
    const std::string& model() const { return reader_.model(); }
    unsigned long long opening() const { return reader_.opening(); }
    bool is_from_cache() const {
        return http_status() / 100 == 2 && http_.any_header(tells_of_cache);
    }
    void reset(const api_traits& api = apis[0], const asked_answer& asked = {}) {
        timeline_.reset(asked);
        http_.reset();
        reader_.reset(api, asked);
        body_.clear();
        body_is_ = body_kind::unknown;
        more_came_ = false;
        came_ns_ = 0;
    }

private:
    enum class body_kind : unsigned char { unknown, asked_for, other };

    /// A read without the kernel's time may have a later one than the next read.
    long long not_before_last(long long ns) { return came_ns_ = std::max(ns, came_ns_); }

    /// By its content type, or where that is another one by its bytes.
    bool is_asked_for() const {
        if (http_.status() / 100 != 2 || body_is_ != body_kind::unknown)
            return body_is_ == body_kind::asked_for;
        return reader_.takes(http_.header("content-type"));
    }
    void on_body(std::string_view body, long long now_ns) {
        std::string begun;
        if (body_is_ == body_kind::unknown) {
            if (!is_asked_for()) body = begun = body_ + std::string(body);
            const std::optional<bool> is_as_asked = is_asked_for() ? true
                                                    : http_.status() / 100 == 2
                                                        ? reader_.begins_as_asked(body)
                                                        : false;
            if (is_as_asked) body_is_ = *is_as_asked ? body_kind::asked_for : body_kind::other;
            body_.clear();
        }
        if (body_is_ == body_kind::asked_for) return on_asked_for(body, now_ns);
        body_.append(body.substr(0, 65536 - std::min<std::size_t>(body_.size(), 65536)));
    }
    void on_event(const stream_event& e, long long now_ns) {
        timeline_.on_event(e, now_ns);
        reader_.make_room(timeline_.room());
    }
    void on_asked_for(std::string_view body, long long now_ns) {
        if (timeline_.ended()) return;
        if (!reader_.feed(body, [&](const stream_event& e) { on_event(e, now_ns); }))
            timeline_.fail(request_status::protocol, "an event is over 16 MiB");
    }
    /// The usual answer is events that are alike, in a chunk each: they pass no other reader.
    bool take_chunks(std::string_view& rest, long long now_ns) {
        return body_is_ == body_kind::asked_for && !timeline_.ended() &&
               reader_.take_next(rest, [&](const stream_event& e) { on_event(e, now_ns); },
                                 between::chunk_lines);
    }
    void on_complete(long long now_ns) {
        if (!is_asked_for()) return on_other_answer();
        const std::string wrong =
            reader_.end([&](const stream_event& e) { timeline_.on_event(e, now_ns); });
        if (!wrong.empty()) timeline_.fail(request_status::protocol, wrong);
        timeline_.on_body_end(now_ns);
    }
    /// An error status counts even if the rest of its answer is missing.
    void on_cut(const std::string& why) {
        if (http_status() != 0 && http_status() / 100 != 2) return on_other_answer();
        timeline_.fail(request_status::protocol, why);
    }
    /// Triton sends an error as the only event of a stream, with an error status.
    static std::string_view only_event(std::string_view body) {
        constexpr std::string_view field = "data:";
        if (!body.starts_with(field)) return body;
        body.remove_prefix(field.size());
        return body.substr(0, body.find('\n'));
    }
    static constexpr const char* too_large =
        "the request is larger than the server, or a proxy before it, accepts";
    void on_other_answer() {
        json_reader reader;
        const json_view* v = reader.read(only_event(body_));
        const bool is_refusal = http_.status() / 100 != 2;
        const std::string reported = !v           ? ""
                                     : is_refusal ? refusal_message(*v)
                                                  : error_message(*v);
        const std::string detail = !reported.empty()       ? printable(reported)
                                   : http_.status() == 413 ? too_large
                                                           : printable(body_, 200);
        const std::string_view to = http_.header("location");
        const std::string_view later = http_.header("retry-after");
        if (http_.status() / 100 == 3 && !to.empty())
            timeline_.fail(request_status::http,
                           printed("HTTP %d, a redirect to \"%s\": name the final URL",
                                   http_.status(), printable(to, 100).c_str()));
        else if (is_refusal)
            timeline_.fail(request_status::http,
                           printed("HTTP %d", http_.status()) +
                               (detail.empty() ? "" : ": " + detail) +
                               (later.empty() ? "" : " (Retry-After: " + printable(later) + ")"));
        else if (!reported.empty())
            timeline_.fail(request_status::server, detail);
        else
            timeline_.fail(request_status::protocol,
                           "the answer is \"" + printable(http_.header("content-type"), 60) +
                               "\" and not " + reader_.wanted());
    }

    stream_timeline timeline_{};
    response_parser http_{};
    body_reader reader_{};
    std::string body_{};
    body_kind body_is_ = body_kind::unknown;
    bool more_came_ = false;
    long long came_ns_ = 0;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
