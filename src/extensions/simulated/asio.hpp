// the parts of asio for the simulated server
#pragma once

#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE
#endif
#include <version>  // before asio: it asks for library features
#include <asio/basic_socket_acceptor.hpp>
#include <asio/basic_stream_socket.hpp>
#include <asio/basic_waitable_timer.hpp>  // points in time
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>  // what must wait for the current handler

#include <chrono>

namespace llmbench {
inline namespace v0 {
namespace detail {

// A type of a single executor: asio's default for any of them takes half a second to compile.
using tcp_executor = asio::io_context::executor_type;
using tcp_socket = asio::basic_stream_socket<asio::ip::tcp, tcp_executor>;
using tcp_acceptor = asio::basic_socket_acceptor<asio::ip::tcp, tcp_executor>;
using tcp_timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                             asio::wait_traits<std::chrono::steady_clock>,
                                             tcp_executor>;

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
