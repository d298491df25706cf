// the time that a thread waited for a core
#pragma once

#include "effects/system/clock.hpp"

#include <cstdio>  // sscanf

#include <fcntl.h>  // open
#include <unistd.h>  // pread, close

namespace llmbench {
inline namespace v0 {
namespace detail {

/// By the kernel, for the constructing thread: includes busy neighbours and quotas, but not time
/// taken from the whole machine. Linux only.
class run_queue_wait {
public:
    run_queue_wait() : file_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
    ~run_queue_wait() {
        if (file_ >= 0) ::close(file_);
    }
    run_queue_wait(const run_queue_wait&) = delete;
    run_queue_wait& operator=(const run_queue_wait&) = delete;

    /// Nanoseconds since the thread began, -1: unknown.
    long long so_far_ns() const {
        if (current_environment) return current_environment->waited_ns();
        char text[96] = {};
        long long waited = -1;
        if (file_ < 0 || ::pread(file_, text, sizeof text - 1, 0) <= 0) return -1;
        return std::sscanf(text, "%*d %lld", &waited) == 1 ? waited : -1;
    }

private:
    int file_;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
