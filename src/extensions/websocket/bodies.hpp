// the body of websocket()
#pragma once

#include "extensions/websocket/api.hpp"
#include "extensions/websocket/core/responses_socket.hpp"

#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

own_transport* include_llmbench_websocket_hpp_where_LLMBENCH_MAIN_is(const char* api) {
    return std::string_view(api) == "openai_responses" ? new responses_socket() : nullptr;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
