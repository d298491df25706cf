// llmbench_websocket: one socket a conversation. Include it after llmbench.hpp.
//
// Part one: declarations
// Part three: WebSocket frames, and requests and events over them
//
// SPDX-License-Identifier: MIT

#ifndef LLMBENCH_HPP
#error "llmbench_websocket.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_WEBSOCKET_HPP
#define LLMBENCH_WEBSOCKET_HPP
#include "extensions/websocket/api.hpp"
#endif  // LLMBENCH_WEBSOCKET_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_WEBSOCKET_IMPLEMENTED)
#define LLMBENCH_WEBSOCKET_IMPLEMENTED
#include "extensions/websocket/bodies.hpp"
#endif  // LLMBENCH_WEBSOCKET_IMPLEMENTED
