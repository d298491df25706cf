// OpenAI's responses
#pragma once

#include "core/base/json.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/stream_event.hpp"

#include <string>
#include <string_view>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

inline std::string responses_content(const request_spec& r) {
    if (r.image.empty()) return json_quoted(r.prompt);
    return "[{\"type\":\"input_text\",\"text\":" + json_quoted(r.prompt) +
           "},{\"type\":\"input_image\",\"image_url\":" + json_quoted(r.image) + "}]";
}
/// The server stores nothing: each request sends the history.
inline void write_responses(body_writer& b, const std::string& model, const request_spec& r) {
    b.string("model", model).messages(responses_content, false, "input").system("instructions");
    b.flag("stream", r.stream).flag("store", false);
    b.max_tokens("max_output_tokens").ignore_eos().temperature();
}

/// The final event. vLLM calls an answer completed that was cut off at its length, so the status
/// decides, not the event name.
inline void read_response_end(const picojson::value& v, stream_event& e) {
    if (const picojson::value* usage = member(v, "usage")) {
        e.prompt_tokens = count_member(*usage, "input_tokens");
        e.completion_tokens = count_member(*usage, "output_tokens");
        if (const picojson::value* of = member(*usage, "input_tokens_details"))
            e.cached_tokens = count_member(*of, "cached_tokens");
        if (const picojson::value* of = member(*usage, "output_tokens_details"))
            e.reasoning_tokens = count_member(*of, "reasoning_tokens");
    }
    const std::string status = string_member(v, "status");
    const picojson::value* cut = member(v, "incomplete_details");
    const std::string why = cut ? string_member(*cut, "reason") : "";
    e.finish(status == "completed"           ? "stop"
             : why == "max_output_tokens"    ? "length"
             : status == "incomplete"        ? (why.empty() ? status : why)
                                             : status);
    if (e.error.empty()) e.error = error_message(v);
    if (e.error.empty() && status == "failed") e.error = "the response failed";
}
/// Text comes in events that end in "delta", and again in full in later ones.
inline void read_responses(const picojson::value& v, stream_event& e, stream_memory& memory) {
    const std::string type = string_member(v, "type");
    if (type.ends_with(".delta") && has_text(v, "delta")) {
        if (type.starts_with("response.reasoning")) e.take_reasoning(v, "delta");
        else if (type == "response.refusal.delta" || type == "response.output_text.delta")
            e.take_text(v, "delta");
        else e.take_call();
        if (type.starts_with("response.reasoning")) memory.think(v, "delta");
        else if (type == "response.output_text.delta") memory.say(v, "delta");
        else memory.call(v, "name", "delta");
    }
    if (const picojson::value* item = member(v, "item"); item && type.ends_with("item.added"))
        memory.call(*item);
    for (const char* end : {"response.completed", "response.incomplete", "response.failed"})
        if (type == end) e.done = true;
    if (type == "error") {
        e.done = true;
        if (const std::string why = string_member(v, "message"); !why.empty()) e.error = why;
    }
    const picojson::value* response = member(v, "response");
    if (e.done && response) read_response_end(*response, e);
}
inline void read_responses_whole(const picojson::value& v, stream_event& e,
                                 stream_memory& memory) {
    for (const picojson::value& item : array_member(v, "output")) {
        const std::string type = string_member(item, "type");
        if (type.ends_with("_call")) e.take_call();
        if (type.ends_with("_call")) memory.call(item);
        for (const char* list : {"summary", "content"})
            for (const picojson::value& piece : array_member(item, list)) {
                if (type == "reasoning") memory.think(piece, "text");
                if (type == "reasoning") e.take_reasoning(piece, "text");
                else if (e.take_text(piece, "text")) memory.say(piece, "text");
                e.take_text(piece, "refusal");
            }
    }
    read_response_end(v, e);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
