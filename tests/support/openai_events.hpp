// Events of OpenAI's APIs, read by themselves and in a stream.
#pragma once

#include "core/base/json_reader.hpp"
#include "core/dialects/event_reader.hpp"
#include "core/dialects/openai.hpp"
#include "core/dialects/stream_event.hpp"

#include <string_view>

namespace openai_events {

inline llmbench::detail::stream_event read_event(std::string_view type, std::string_view data) {
    llmbench::detail::stream_memory none;
    llmbench::detail::json_reader json;
    return llmbench::detail::read_json_event(type, data, json.read(data), llmbench::detail::read_openai, none);
}
/// The events of one stream.
struct stream_reader {
    llmbench::detail::event_reader events{};
    llmbench::detail::stream_memory memory{};
    const llmbench::detail::stream_event& read(std::string_view type, std::string_view data) {
        return events.read(type, data, llmbench::detail::read_openai, memory);
    }
};

}  // namespace openai_events
