// from the bytes of a body to events
#pragma once

#include "core/base/text.hpp"
#include "core/wire/event_stream.hpp"
#include "core/dialects/event_reader.hpp"
#include "core/dialects/stream_event.hpp"
#include "core/dialects/table.hpp"

#include <algorithm>  // max, min
#include <functional>  // less
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // exchange

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Splits the body of an answer into events, by the framing of its API.
class body_reader {
public:
    static constexpr std::size_t most = event_stream_parser::max_event;

    void reset(const api_traits& a, const asked_answer& asked = {}) {
        *this = body_reader();
        memory_.asked = asked;
        api_ = &a;
        framed_ = asked.is_streamed ? a.framed : framing::document;
    }
    const generated_text& said() const { return memory_.said; }
    const std::string& model() const { return memory_.model; }
    /// A hash of how the text begins, 0 where it is shorter than that.
    unsigned long long opening() const {
        return memory_.opening_bytes < stream_memory::whole_opening ? 0 : memory_.opening;
    }
    /// Whether this content type is the one asked for; others are errors.
    bool takes(std::string_view content_type) const {
        switch (framed_) {
        case framing::events:
            return same_ignoring_case(trimmed(content_type.substr(0, content_type.find(';'))),
                                      "text/event-stream");
        case framing::pieces: return true;
        default: return api_->is_own || content_type.find("json") != std::string_view::npos;
        }
    }
    /// Whether a body of another content type is of the framing asked for, by its first bytes;
    /// nothing where there are too few of them.
    std::optional<bool> begins_as_asked(std::string_view body) const {
        body.remove_prefix(std::min(body.find_first_not_of(" \t\r\n"), body.size()));
        if (body.empty()) return {};
        if (framed_ != framing::events) return body.starts_with('{');
        bool may_follow = false;
        for (const std::string_view field : {"data:", "event:", "id:", "retry:", ":"}) {
            if (body.starts_with(field)) return true;
            may_follow = may_follow || field.starts_with(body);
        }
        return may_follow ? std::optional<bool>() : false;
    }
    const char* wanted() const {
        return framed_ == framing::events  ? "an event stream"
               : framed_ == framing::lines ? "a stream of JSON lines"
                                           : "a JSON document";
    }
    /// Takes events like the one before off the start of the bytes. False if there is none.
    template <class OnEvent>
    bool take_next(std::string_view& bytes, OnEvent&& on_event, between events = between::none) {
        const bool is_between = framed_ == framing::events  ? events_.is_between_events()
                                : framed_ == framing::lines ? held_.empty()
                                                            : false;
        if (!is_between || room_ == 0) return false;
        if (api_->is_own) return take_next_own(bytes, on_event, events);
        const stream_event* const e =
            events_of_thread().read_next(bytes, api_->read, memory_, room_, events);
        if (e) on_event(*e);
        return e;
    }
    /// Calls `on_event(event)` for each event. False if one is too long.
    template <class OnEvent>
    bool feed(std::string_view bytes, OnEvent&& on_event) {
        switch (framed_) {
        case framing::events: {
            std::string_view left;  // from the start of the event on
            return events_.feed(
                bytes,
                [&](std::string_view type, std::string_view data) {
                    if (room_ > 0)
                        on_data(type, data, block_of(data, std::exchange(left, {})), on_event);
                },
                [&](std::string_view& rest) {
                    left = rest;
                    return take_next(rest, on_event);
                });
        }
        case framing::lines:
            for (;;) {
                while (take_next(bytes, on_event)) {}
                const std::size_t at = bytes.find('\n');
                if (at == std::string_view::npos) break;
                if (held_.size() + at > most) return false;
                const bool is_whole = held_.empty();
                const std::string_view line = bytes.substr(0, at);
                on_line(is_whole ? line : held_.append(line), on_event,
                        bytes.substr(0, is_whole ? at + 1 : 0));
                bytes.remove_prefix(at + 1);
                held_.clear();
            }
            break;
        case framing::pieces:
            if (room_ == 0 || bytes.empty()) return true;
            if (api_->own_read) on_data("", bytes, {}, on_event);
            if (api_->own_read) return true;
            memory_.keep(bytes);
            on_event(text_event(bytes));
            return true;
        case framing::document: break;
        }
        held_.append(bytes);
        return held_.size() <= most;
    }
    /// Whether no event is the last one.
    bool ends_with_body() const { return framed_ != framing::document && api_->ends_with_body; }
    /// So many events like the one before may come in one call, one at first. 0: the rest of the
    /// answer is ignored, in this read and later ones.
    void make_room(std::size_t events) { room_ = events; }
    /// Ends the body. Returns what is wrong with it, "" if nothing.
    template <class OnEvent>
    std::string end(OnEvent&& on_event) {
        if (framed_ == framing::document) return on_document(on_event);
        if (framed_ == framing::lines) on_line(held_, on_event);  // it may lack its end
        stream_event last;
        last.done = last.is_body_end = true;
        if (ends_with_body()) on_event(last);
        return {};
    }

private:
    static stream_event text_event(std::string_view text) {
        stream_event e;
        e.take(text);
        return e;
    }
    template <class OnEvent>
    [[gnu::noinline]] bool take_next_own(std::string_view& bytes, OnEvent&& on_event,
                                         between events) {
        const json_view* v = nullptr;
        const std::string_view data = events_of_thread().next_document(bytes, v, events);
        if (!data.empty()) on_event(read_own(api_->own_read, "", data, memory_, {}, v));
        return !data.empty();
    }
    /// The bytes of an event up to its blank line, "" if its data are a copy of them.
    static std::string_view block_of(std::string_view data, std::string_view from) {
        const std::less<const char*> before;
        if (before(data.data(), from.data()) || before(from.data() + from.size(), data.data()))
            return {};
        const auto n = static_cast<std::size_t>(data.data() - from.data()) + data.size();
        for (const std::string_view blank : {"\n\n", "\r\n\r\n"})
            if (from.substr(n).starts_with(blank)) return from.substr(0, n + blank.size());
        return {};
    }
    template <class OnEvent>
    void on_data(std::string_view type, std::string_view data, std::string_view block,
                 OnEvent&& on_event) {
        if (api_->is_own) on_event(read_own(api_->own_read, type, data, memory_, block));
        else on_event(events_of_thread().read(type, data, api_->read, memory_, block));
    }
    template <class OnEvent>
    void on_line(std::string_view line, OnEvent&& on_event, std::string_view block = {}) {
        if (room_ > 0 && !trimmed(line).empty()) on_data("", trimmed(line), block, on_event);
    }
    /// Python's json writes numbers that JSON lacks.
    std::string unknown_number() const {
        if (api_->generates) return {};
        for (const char* word : {"NaN", "Infinity"})
            if (held_.find(word) != std::string::npos)
                return std::string(": it has ") + word + " among its numbers";
        return {};
    }
    /// One event with everything. Only usage tells its tokens.
    template <class OnEvent>
    std::string on_document(OnEvent&& on_event) {
        stream_event e = api_->is_own
                             ? read_own(api_->own_read, "", held_, memory_)
                             : events_of_thread().read("", held_, api_->read_whole, memory_);
        if (e.malformed && (e.tokenless || api_->is_own)) return e.error;
        if (e.malformed) return "the answer is not a JSON object" + unknown_number();
        if (e.error.empty() && e.content && e.completion_tokens < 0 && !api_->is_own)
            return "the answer does not tell its number of tokens, and is not streamed";
        e.count(std::max(e.completion_tokens, 1));
        e.done = e.is_body_end = true;
        on_event(e);
        return {};
    }

    const api_traits* api_ = &apis[0];
    framing framed_ = framing::events;
    std::size_t room_ = 1;
    event_stream_parser events_{};
    stream_memory memory_{};
    std::string held_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
