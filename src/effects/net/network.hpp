// waiting for sockets
#pragma once

#include "effects/net/asio_network.hpp"
#include "effects/net/epoll_network.hpp"

namespace llmbench {
inline namespace v0 {
namespace detail {

// The sockets of one thread, and one point in time:
//   watch(fd, family, user)   takes over a socket on its way to its peer, and tells when it has
//                             arrived; of bytes from then on. Null, with errno, where it cannot
//   await_room(socket)        its user has more to write than it takes now
//   let_go(socket)            closes it; what is still to be said of it goes nowhere
//   wait(until_ns)            until something happens, or until then; not at all where that passed
//   turns_for_all(sockets)    after so many turns each that something came in at has been told of;
//                             0: the wait found all of them
//   each(after_each)          tells of what the wait found; `after_each` is called in between
//
// Both do the same. On Linux it is epoll itself, because asio costs more there than the raw reader
// may be exceeded by (1.3 times its CPU time an event of paced streams, 4 times that of a flood).
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
using network = epoll_network;
#else
using network = asio_network;
#endif

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
