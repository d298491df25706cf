// requests over a WebSocket
#pragma once

#include "api/target.hpp"

namespace llmbench {
inline namespace v1 {

namespace detail {
/// Defined in this extension's implementation. If it is missing, the linker shows the name.
own_transport* include_llmbench_websocket_hpp_where_LLMBENCH_MAIN_is(const char* api);
}  // namespace detail

/// `.transport = websocket()`, for openai_responses: requests are `response.create` messages, and
/// events come a message each. A conversation has a socket of its own, for all its turns; its
/// first turn waits for the upgrade, too. The check before a load uses HTTP. The protocol is
/// https://developers.openai.com/api/docs/guides/websocket-mode (2026-11), over RFC 6455.
inline new_transport websocket() {
    return &detail::include_llmbench_websocket_hpp_where_LLMBENCH_MAIN_is;
}

}  // inline namespace v1
}  // namespace llmbench
