// the network that a thread has
#pragma once

#include "effects/system/clock.hpp"
#include "effects/net/asio_network.hpp"
#include "effects/net/epoll_network.hpp"
#include "effects/net/network.hpp"

#include <memory>  // make_unique, unique_ptr

namespace llmbench {
inline namespace v0 {
namespace detail {

// epoll and asio do the same. On Linux it is epoll itself, because asio costs more there than the
// raw reader may be exceeded by (1.3 times its CPU time an event of paced streams, 4 times that of
// a flood).
// The whole client, medians of five runs in turns; tests/bench/README.md has all of it:
//
//   CPU time an event, times the raw reader's    epoll    asio
//   a flood, 64 streams                            4.0     4.2
//   an event each 20 ms, 128 streams               1.3     1.5
//   an event each 20 ms, 1000 streams              1.2     1.3
//
// A wait of asio's is a system call for each event more, and another one for each turn to know that
// all is told; its reads need a buffer for each stream, which a flood wants as large as 64 KiB.
// LLMBENCH_WAIT_BY_ASIO takes asio on Linux, too: the tests do, in a program of their own.
#if defined(__linux__) && !defined(LLMBENCH_WAIT_BY_ASIO)
using machine_network = epoll_network;
#else
using machine_network = asio_network;
#endif

/// Of the calling thread's world.
inline std::unique_ptr<network> new_network() {
    return current_world ? current_world->new_network() : std::make_unique<machine_network>();
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
