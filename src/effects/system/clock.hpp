// the clock
// All time comes from here and all sleeping goes through here, so that a thread may live in a world
// of its own, whose time somebody else makes.
#pragma once

#include "core/base/text.hpp"

#include <chrono>
#include <cmath>  // llround
#include <condition_variable>
#include <cstddef>  // size_t
#include <ctime>  // clock_gettime, strftime, time_t, timespec
#include <functional>  // what happens at a time
#include <memory>  // unique_ptr
#include <mutex>  // unique_lock
#include <string>
#include <thread>  // this_thread
#include <utility>  // exchange, forward
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

class network;
struct address;
struct http_url;

/// What a thread takes for the machine, where that is made up.
class world {
public:
    virtual long long now_ns() const = 0;
    virtual double unix_s() const = 0;
    /// Lets everything happen that happens until then.
    virtual void sleep_until(long long at_ns) = 0;
    /// Has something happen at a time, while whoever lives in it waits or sleeps.
    virtual void at(long long ns, std::function<void()> what) = 0;
    /// How long its threads have waited for a core, as the system counts it; -1: nobody does.
    virtual long long waited_ns() const = 0;
    virtual std::unique_ptr<network> new_network() = 0;
    /// Throws std::runtime_error.
    virtual std::vector<address> resolved(const http_url& u) const = 0;
    /// A file is opened, or so many bytes are for one: 0, with those its disk takes; or an errno.
    virtual int use_disk(std::size_t&) { return 0; }

protected:
    ~world() = default;
};

/// The calling thread's, null: the machine. A value of a thread, so that many live side by side.
inline constinit thread_local world* current_world = nullptr;
/// The thread lives in it as long as this does.
class inside_world {
public:
    explicit inside_world(world* w) : before_(std::exchange(current_world, w)) {}
    ~inside_world() { current_world = before_; }
    inside_world(const inside_world&) = delete;
    inside_world& operator=(const inside_world&) = delete;

private:
    world* before_;
};

/// CLOCK_MONOTONIC, nanoseconds.
inline long long now_ns() {
    if (current_world) [[unlikely]] return current_world->now_ns();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
/// Seconds since 1970, by the machine's clock: for what others say in such seconds. It may jump.
inline double machine_unix_s() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}
inline double unix_s() { return current_world ? current_world->unix_s() : machine_unix_s(); }
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
    if (current_world) return current_world->sleep_until(at_ns);
    std::this_thread::sleep_until(time_point_of(at_ns));
}
inline void sleep_s(double seconds) { sleep_until(now_ns() + ns_of(seconds)); }
/// Whether what a thread of the machine waits for came before that time.
template <class Came>
bool wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                long long at_ns,
                Came&& came) {
    return changed.wait_until(lock, time_point_of(at_ns), std::forward<Came>(came));
}

/// Of a core, that the calling thread has had: none in a world that is made up.
inline double thread_cpu_seconds() {
    if (current_world) return 0;
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
