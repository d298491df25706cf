// the warm-up of a load, watched until it has settled
#pragma once

#include "api/result.hpp"
#include "core/measured/settling.hpp"

#include <atomic>
#include <cstddef>  // size_t
#include <map>
#include <mutex>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Of all threads of one load. Nothing of it is touched once the measured part has begun.
class settling_watch {
public:
    /// Asked for at all: the offsets in ns at which the measured part begins at the latest, and
    /// from which on the load is the one that is to be stable.
    void begin(long long latest_ns, long long whole_from_ns) {
        whole_from_ns_ = whole_from_ns;
        latest_ns_ = latest_ns;
        ends_at_ = latest_ns;
    }
    bool is_on() const { return latest_ns_ > 0; }
    /// The offset at which the measured part begins, as far as is known.
    long long ends_at() const { return ends_at_.load(); }
    /// By how much everything after the warm-up is sent earlier than planned.
    long long earlier_by() const { return latest_ns_ - ends_at_.load(); }

    void on_sent(std::size_t index, long long scheduled_ns) {
        const std::lock_guard lock(mutex_);
        sent_[{scheduled_ns, index}] = {};
    }
    /// Times of the clock; the measured part begins a little later than the end that shows it.
    void on_ended(std::size_t index, const record& r, long long start_ns) {
        const std::lock_guard lock(mutex_);
        const auto at = sent_.find({r.scheduled_ns, index});
        if (at == sent_.end()) return;
        const auto seconds = [](long long ns) { return static_cast<double>(ns) * 1e-9; };
        at->second = {true, r.status == request_status::ok, seconds(r.end_ns - start_ns),
                      seconds(r.first_token_ns - r.scheduled_ns),
                      static_cast<double>(r.output_tokens)};
        if (stable_ || r.end_ns < next_look_ns_) return;
        next_look_ns_ = r.end_ns + between_looks_ns;
        const long long cut = r.end_ns - start_ns + notice_ns;
        if (cut >= latest_ns_ || !is_settled(in_order(start_ns + whole_from_ns_))) return;
        stable_ = true;
        ends_at_ = cut;
    }
    warmup_seen seen() const {
        const std::lock_guard lock(mutex_);
        const std::vector<warming_request> all = in_order(0);
        return {is_on(), stable_, static_cast<double>(ends_at_.load()) * 1e-9, all.size(),
                ttft_at(all, false), ttft_at(all, true)};
    }

private:
    static constexpr long long between_looks_ns = 100'000'000;
    static constexpr long long notice_ns = 100'000'000;  // every thread is awake within it

    std::vector<warming_request> in_order(long long from_ns) const {
        std::vector<warming_request> all;
        for (auto at = sent_.lower_bound({from_ns, 0}); at != sent_.end(); ++at)
            all.push_back(at->second);
        return all;
    }

    mutable std::mutex mutex_{};
    std::map<std::pair<long long, std::size_t>, warming_request> sent_{};  // by planned send
    bool stable_ = false;
    long long latest_ns_ = 0, whole_from_ns_ = 0, next_look_ns_ = 0;
    std::atomic<long long> ends_at_{0};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
