// the clock, and random bits
// All time and all sleeping goes through here, so that a thread may live in a virtual environment
// with its own time.
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // min
#include <chrono>
#include <cmath>  // floor, llround
#include <condition_variable>
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <cstdio>  // sscanf
#include <ctime>  // clock_gettime, strftime, time_t, timespec
#include <functional>  // what happens at a time
#include <limits>
#include <memory>  // unique_ptr
#include <mutex>  // unique_lock
#include <string>
#include <thread>  // this_thread
#include <utility>  // exchange, forward

#include <fcntl.h>  // open
#ifdef __APPLE__
#include <sys/random.h>  // getentropy
#endif
#include <unistd.h>  // close, getentropy, pread

namespace llmbench {
inline namespace v1 {
namespace detail {

class network;
struct address;
struct http_url;

/// Replaces the machine for a thread, if it is virtual.
class execution_environment {
public:
    virtual ~execution_environment() = default;
    virtual long long now_ns() const = 0;
    virtual double unix_s() const = 0;
    /// Runs all events until then.
    virtual void sleep_until(long long at_ns) = 0;
    /// Runs `what` at a time, while the thread waits or sleeps.
    virtual void at(long long ns, std::function<void()> what) = 0;
    /// Time that its threads waited for a core, by the system; -1: unknown.
    virtual long long waited_ns() const = 0;
    virtual std::unique_ptr<network> new_network() = 0;
    /// Throws std::runtime_error.
    virtual vector<address> resolved(const http_url& u) const = 0;
    /// Opens a file (0 bytes) or takes space for bytes: returns 0, with the bytes that fit, or an
    /// errno.
    virtual int use_disk(std::size_t&) { return 0; }
};

/// The calling thread's; null: the machine. One per thread, so that many exist side by side.
inline constinit thread_local execution_environment* current_environment = nullptr;
/// The thread is in the environment while this lives.
class inside_environment : not_copied {
public:
    explicit inside_environment(execution_environment* w)
        : before_(std::exchange(current_environment, w)) {}
    ~inside_environment() { current_environment = before_; }

private:
    execution_environment* before_;
};

/// CLOCK_MONOTONIC, nanoseconds.
inline long long now_ns() {
    if (current_environment) [[unlikely]] return current_environment->now_ns();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
inline long long ns_in(const timespec& t) { return t.tv_sec * 1000000000ll + t.tv_nsec; }
/// CLOCK_REALTIME, used by kernel arrival stamps, nanoseconds.
inline long long day_ns() {
    timespec t{};
    ::clock_gettime(CLOCK_REALTIME, &t);
    return ns_in(t);
}
/// By how much the time of day is ahead of now_ns(). It changes where somebody sets the clock, not
/// where NTP slews both. The narrowest of a few readings counts, because a thread may be delayed.
inline long long day_ahead_ns() {
    long long ahead = 0, narrowest = std::numeric_limits<long long>::max();
    for (int i = 0; i < 5 && !current_environment; ++i) {
        const long long before = now_ns(), day = day_ns(), width = now_ns() - before;
        if (width >= narrowest) continue;
        narrowest = width;
        ahead = day - before - width / 2;
    }
    return ahead;
}
inline constexpr long long noticed_step_ns = 2000000;
/// Returns random bits of the system, or of the clock where it has none. <random> would take half a
/// percent of the time to compile the header, and 25 MB.
inline std::uint64_t entropy() {
    std::uint64_t bits = 0;
    return ::getentropy(&bits, sizeof bits) == 0 ? bits : static_cast<std::uint64_t>(now_ns());
}
/// Seconds since 1970 by the machine's clock, to compare with others' times. It may jump.
inline double machine_unix_s() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}
inline double unix_s() {
    return current_environment ? current_environment->unix_s() : machine_unix_s();
}
/// Days since 1970-01-01 of UTC.
inline long long utc_day() { return static_cast<long long>(std::floor(unix_s() / 86400)); }
/// "2026-11-23T02:15:04Z"
inline std::string utc_text(double unix_time_s) {
    const auto t = static_cast<std::time_t>(unix_time_s);
    std::tm utc{};
    gmtime_r(&t, &utc);
    char buffer[32];
    std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return buffer;
}
inline std::chrono::steady_clock::time_point time_point_of(long long ns) {
    return std::chrono::steady_clock::time_point(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::nanoseconds(ns)));
}
inline long long ns_of(double seconds) { return std::llround(seconds * 1e9); }

inline void sleep_until(long long at_ns) {
    if (current_environment) return current_environment->sleep_until(at_ns);
    std::this_thread::sleep_until(time_point_of(at_ns));
}
inline void sleep_s(double seconds) { sleep_until(now_ns() + ns_of(seconds)); }
/// Waits for what nobody tells of: looks at once, and then so often. Returns whether it came before
/// that time.
template <class Came>
bool comes_by(Came&& came, long long until_ns, double every_s) {
    while (!came()) {
        const long long left_ns = until_ns - now_ns();
        if (left_ns <= 0) return false;
        sleep_s(std::min(every_s, static_cast<double>(left_ns) * 1e-9));
    }
    return true;
}
/// Whether an event that a machine's thread waits for came before that time.
template <class Came>
bool wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                long long at_ns,
                Came&& came) {
    return changed.wait_until(lock, time_point_of(at_ns), std::forward<Came>(came));
}

/// CPU seconds of the calling thread; none in a virtual environment.
inline double thread_cpu_seconds() {
    if (current_environment) return 0;
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Infinite if the deadline is 0: none.
inline double seconds_until(long long deadline_ns) {
    return deadline_ns > 0 ? static_cast<double>(deadline_ns - now_ns()) * 1e-9 : infinity;
}

inline constinit long long program_began_ns = 0;
/// Runs before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void note_that_program_began() { program_began_ns = now_ns(); }

/// By the kernel, for the constructing thread: includes busy neighbours and quotas, but not time
/// taken from the whole machine. Linux only.
class run_queue_wait : not_copied {
public:
    run_queue_wait() : file_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
    ~run_queue_wait() {
        if (file_ >= 0) ::close(file_);
    }

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
}  // inline namespace v1
}  // namespace llmbench
