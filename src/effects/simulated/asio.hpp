// what of asio a server needs beyond a client
#pragma once

#include "effects/net/asio.hpp"

#include <asio/basic_socket_acceptor.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>  // what must wait for the current handler

namespace llmbench {
inline namespace v0 {
namespace detail {

using tcp_socket = asio::basic_stream_socket<asio::ip::tcp, io_executor>;
using tcp_acceptor = asio::basic_socket_acceptor<asio::ip::tcp, io_executor>;

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
