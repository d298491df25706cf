// asio, under every client and the simulated server
#pragma once

#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE
#endif
#include <version>  // before asio: it asks for library features
#include <asio/basic_stream_socket.hpp>
#include <asio/basic_waitable_timer.hpp>  // points in time
#include <asio/io_context.hpp>

#include <chrono>

namespace llmbench {
inline namespace v0 {
namespace detail {

// Of one executor, where asio's own names are of any: that costs a compiler half a second.
using io_executor = asio::io_context::executor_type;
using io_timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                            asio::wait_traits<std::chrono::steady_clock>,
                                            io_executor>;

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
