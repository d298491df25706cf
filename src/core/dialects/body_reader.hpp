// from the bytes of a body to events
#pragma once

#include "core/base/text.hpp"
#include "core/wire/event_stream.hpp"
#include "core/dialects/openai.hpp"
#include "core/dialects/stream_event.hpp"
#include "core/dialects/table.hpp"

#include <algorithm>  // max
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Takes the body of an answer apart into events, as its API frames it.
class body_reader {
public:
    static constexpr std::size_t most = event_stream_parser::max_event;

    /// `keeps_answer`: its words are wanted.
    void reset(const api_traits& a, bool streamed, bool keeps_answer = false,
               const asked_answer& asked = {}) {
        *this = body_reader();
        memory_.keeps_answer = keeps_answer;
        memory_.asked = asked;
        api_ = &a;
        framed_ = streamed ? a.framed : framing::document;
        is_fast_ = a.read == read_openai && !keeps_answer;
    }
    const generated_text& said() const { return memory_.said; }
    /// Whether an answer of this type is what was asked for; any other one tells an error.
    bool takes(std::string_view content_type) const {
        switch (framed_) {
        case framing::events:
            return same_ignoring_case(trimmed(content_type.substr(0, content_type.find(';'))),
                                      "text/event-stream");
        case framing::pieces: return true;
        default: return content_type.find("json") != std::string_view::npos;
        }
    }
    const char* wanted() const {
        return framed_ == framing::events  ? "an event stream"
               : framed_ == framing::lines ? "a stream of JSON lines"
                                           : "a JSON document";
    }
    /// Calls `on_event(event)` for each one. False where one is too long.
    template <class OnEvent>
    bool feed(std::string_view bytes, OnEvent&& on_event) {
        switch (framed_) {
        case framing::events:
            return events_.feed(bytes, [&](std::string_view type, std::string_view data) {
                if (over_) return;
                if (is_fast_) on_event(openai_.read(type, data));
                else on_event(read_json_event(type, data, api_->read, memory_));
            });
        case framing::lines:
            for (std::size_t at; (at = bytes.find('\n')) != std::string_view::npos;) {
                held_.append(bytes.substr(0, at));
                if (held_.size() > most) return false;
                bytes.remove_prefix(at + 1);
                on_line(on_event);
            }
            break;
        case framing::pieces:
            if (memory_.keeps_answer) memory_.said.answer += bytes;
            if (!bytes.empty())
                on_event(stream_event{.content = true, .answer = true,
                                      .text_bytes = static_cast<int>(bytes.size())});
            return true;
        case framing::document: break;
        }
        held_.append(bytes);
        return held_.size() <= most;
    }
    /// The answer has ended, and what follows says nothing, in the same read or in a later one.
    void stop() { over_ = true; }
    /// The body is complete. What is wrong with it, "" where nothing is.
    template <class OnEvent>
    std::string end(OnEvent&& on_event) {
        if (framed_ == framing::document) return on_document(on_event);
        if (framed_ == framing::lines) on_line(on_event);  // the last one may lack its line end
        if (api_->ends_with_body) on_event(stream_event{.done = true});
        return {};
    }

private:
    template <class OnEvent>
    void on_line(OnEvent&& on_event) {
        if (!over_ && !trimmed(held_).empty())
            on_event(read_json_event("", trimmed(held_), api_->read, memory_));
        held_.clear();
    }
    /// Python's json writes what JSON has no word for.
    std::string unknown_number() const {
        if (api_->generates) return {};
        for (const char* word : {"NaN", "Infinity"})
            if (held_.find(word) != std::string::npos)
                return std::string(": it has ") + word + " among its numbers";
        return {};
    }
    /// One event that brings everything. Nothing else tells its tokens, so usage must.
    template <class OnEvent>
    std::string on_document(OnEvent&& on_event) {
        stream_event e = read_json_event("", held_, api_->read_whole, memory_);
        if (e.malformed && e.tokenless) return e.error;
        if (e.malformed) return "the answer is not a JSON object" + unknown_number();
        if (e.error.empty() && e.content && e.completion_tokens < 0)
            return "the answer does not tell its number of tokens, and is not streamed";
        e.count(std::max(e.completion_tokens, 1));
        e.done = true;
        on_event(e);
        return {};
    }

    const api_traits* api_ = &apis[0];
    framing framed_ = framing::events;
    bool is_fast_ = true;  // OpenAI's events, which are many
    bool over_ = false;
    event_stream_parser events_{};
    event_reader openai_{};
    stream_memory memory_{};
    std::string held_{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
