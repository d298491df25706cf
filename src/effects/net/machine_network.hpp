// the network of a thread
#pragma once

#include "effects/system/clock.hpp"
#include "effects/net/asio_network.hpp"
#include "effects/net/epoll_network.hpp"
#include "effects/net/network.hpp"

#include <memory>  // make_unique, unique_ptr

namespace llmbench {
inline namespace v0 {
namespace detail {

// epoll and asio do the same. On Linux we use epoll, because asio costs too much there (CPU time an
// event, as a multiple of a raw reader's; medians of five runs; see tests/bench/README.md):
//
//                                                 epoll    asio
//     a flood, 64 streams                            4.0     4.2
//     an event each 20 ms, 128 streams               1.3     1.5
//     an event each 20 ms, 1000 streams              1.2     1.3
//
// A wait of asio needs a system call for each event, and one for each turn to know that all are
// reported; its reads need a buffer per stream, of 64 KiB for a flood. LLMBENCH_WAIT_BY_ASIO uses
// asio on Linux, too, for a test program.
#if defined(__linux__) && !defined(LLMBENCH_WAIT_BY_ASIO)
using machine_network = epoll_network;
#else
using machine_network = asio_network;
#endif

/// Returns the network of the thread's environment.
inline std::unique_ptr<network> new_network() {
    return current_environment ? current_environment->new_network()
                               : std::make_unique<machine_network>();
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
