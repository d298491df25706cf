// the clock
#pragma once

#include "core/base/text.hpp"

#include <chrono>
#include <cmath>  // llround
#include <ctime>  // clock_gettime, timespec

namespace llmbench {
inline namespace v0 {
namespace detail {

/// CLOCK_MONOTONIC, nanoseconds.
inline long long now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
/// Seconds since 1970, by the machine's clock: for what others say in such seconds. It may jump.
inline double unix_s() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}
inline std::chrono::steady_clock::time_point time_point_of(long long ns) {
    return std::chrono::steady_clock::time_point(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::nanoseconds(ns)));
}
inline long long ns_of(double seconds) { return std::llround(seconds * 1e9); }

/// Of a core, that the calling thread has had.
inline double thread_cpu_seconds() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Infinite where there is no deadline, 0.
inline double seconds_until(long long deadline_ns) {
    return deadline_ns > 0 ? static_cast<double>(deadline_ns - now_ns()) * 1e-9 : infinity;
}

inline const long long program_began_ns = now_ns();

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
