// One event of OpenAI's APIs, read by itself.
#pragma once

#include "core/dialects/openai.hpp"
#include "core/dialects/stream_event.hpp"

#include <string_view>

namespace openai_events {

inline llmbench::detail::stream_event read_event(std::string_view type, std::string_view data) {
    llmbench::detail::stream_memory none;
    return llmbench::detail::read_json_event(type, data, llmbench::detail::read_openai, none);
}

}  // namespace openai_events
