// the end of a load before its planned time, once all is decided
// Threads that send tell until when all planned requests have ended; another thread looks at those,
// and may end the load.
#pragma once

#include <algorithm>  // min
#include <atomic>
#include <deque>
#include <mutex>  // lock_guard
#include <utility>  // exchange

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Shared by the loads of both variants. Times are steady-clock ns.
class decided_end {
public:
    /// Called for each worker before its thread starts.
    std::atomic<long long>& add_worker() { return settled_.emplace_back(0); }
    /// The measured part of an open loop, after the start.
    void expect(long long offset_ns, long long length_ns) {
        offset_ns_ = offset_ns;
        length_ns_ = length_ns;
    }
    /// That of a closed loop, from its first measured request on. `first_ns` lives until close().
    void expect_from(const std::atomic<long long>& first_ns, long long length_ns) {
        first_ns_ = &first_ns;
        length_ns_ = length_ns;
    }
    void begin(long long start_ns) { start_ns_ = start_ns; }
    /// Until then all planned requests have ended and are handed over; 0: unknown.
    long long settled_ns() const {
        long long least = settled_.empty() ? 0 : settled_.front().load();
        for (const auto& of_worker : settled_) least = std::min(least, of_worker.load());
        return least;
    }
    /// The time after so many quarters of the measured part, 0 before that has begun.
    long long after_quarters(int n) const {
        const std::lock_guard lock(mutex_);
        return time_after(n);
    }
    /// Ends the load, unless it is over. Requests planned after so many quarters do not count.
    void end_after(int quarters) {
        const std::lock_guard lock(mutex_);
        if (is_over_) return;
        quarters_ = quarters;
        ends_ns_ = time_after(quarters);
    }
    /// 0: it was not ended.
    long long ends_ns() const { return ends_ns_.load(); }
    /// The part of the planned time after which it was ended, else 1.
    double part() const { return quarters_ / 4.0; }
    bool is_over() const { return is_over_; }
    /// The load is over: nothing ends it afterwards. Returns ends_ns().
    long long close() {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
        if (const auto* first = std::exchange(first_ns_, nullptr)) start_ns_ = first->load();
        return ends_ns_.load();
    }

private:
    long long time_after(int n) const {
        const long long from = first_ns_ ? first_ns_->load() : start_ns_.load();
        return from == 0 ? 0 : from + offset_ns_ + length_ns_ / 4 * n;
    }

    mutable std::mutex mutex_{};
    std::atomic<bool> is_over_{false};
    std::deque<std::atomic<long long>> settled_{};  // of the workers
    std::atomic<long long> start_ns_{0}, ends_ns_{0};
    const std::atomic<long long>* first_ns_ = nullptr;
    long long offset_ns_ = 0, length_ns_ = 0;
    int quarters_ = 4;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
