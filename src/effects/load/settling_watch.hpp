// the warm-up of a load, until the load is stable
#pragma once

#include "api/result.hpp"
#include "core/measured/settling.hpp"

#include <algorithm>  // lower_bound
#include <atomic>
#include <cstddef>  // ptrdiff_t, size_t
#include <mutex>
#include <span>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Shared by all threads of one load. Unused after the measured part has begun.
class settling_watch {
public:
    /// `latest_ns`: offset at which the measured part begins at the latest; `whole_from_ns`: from
    /// here on the load is complete and should be stable.
    void begin(long long latest_ns, long long whole_from_ns) {
        whole_from_ns_ = whole_from_ns;
        latest_ns_ = latest_ns;
        ends_at_ = latest_ns;
    }
    bool is_on() const { return latest_ns_ > 0; }
    /// The offset of the measured part, as far as is known.
    long long ends_at() const { return ends_at_.load(); }
    /// The time by which requests after the warm-up are sent earlier than planned.
    long long earlier_by() const { return latest_ns_ - ends_at_.load(); }

    void on_sent(std::size_t index, long long scheduled_ns) {
        const std::lock_guard lock(mutex_);
        const auto at = place_of({scheduled_ns, index});
        keys_.insert(keys_.begin() + at, {scheduled_ns, index});
        sent_.insert(sent_.begin() + at, warming_request{});
    }
    /// Clock times; the measured part begins a little after the end that shows stability.
    void on_ended(std::size_t index, const record& r, long long start_ns) {
        const std::lock_guard lock(mutex_);
        const key sought{r.scheduled_ns, index};
        const auto at = static_cast<std::size_t>(place_of(sought));
        if (at == keys_.size() || keys_[at] != sought) return;
        const auto seconds = [](long long ns) { return static_cast<double>(ns) * 1e-9; };
        sent_[at] = {true, r.status == request_status::ok, seconds(r.end_ns - start_ns),
                      seconds(r.first_token_ns - r.scheduled_ns),
                      static_cast<double>(r.output_tokens)};
        // A look goes over all requests while senders wait: the more there are, the rarer the
        // looks.
        ++ended_;
        if (stable_ || r.end_ns < next_look_ns_ || ended_ < next_look_at_) return;
        next_look_ns_ = r.end_ns + between_looks_ns;
        next_look_at_ = ended_ + ended_ / 50;
        const long long cut = r.end_ns - start_ns + notice_ns;
        if (cut >= latest_ns_ || !is_settled(sent_from(start_ns + whole_from_ns_))) return;
        stable_ = true;
        ends_at_ = cut;
    }
    warmup_seen seen() const {
        const std::lock_guard lock(mutex_);
        return {is_on(), stable_, static_cast<double>(ends_at_.load()) * 1e-9, sent_.size(),
                ttft_at(sent_, false), ttft_at(sent_, true)};
    }

private:
    static constexpr long long between_looks_ns = 100'000'000;
    static constexpr long long notice_ns = 100'000'000;  // every thread wakes within it

    using key = std::pair<long long, std::size_t>;
    std::ptrdiff_t place_of(const key& k) const {
        return std::lower_bound(keys_.begin(), keys_.end(), k) - keys_.begin();
    }
    std::span<const warming_request> sent_from(long long from_ns) const {
        return std::span(sent_).subspan(static_cast<std::size_t>(place_of({from_ns, 0})));
    }

    mutable std::mutex mutex_{};
    std::vector<key> keys_{};  // in order of the planned sends
    std::vector<warming_request> sent_{};
    std::size_t ended_ = 0, next_look_at_ = 0;
    bool stable_ = false;
    long long latest_ns_ = 0, whole_from_ns_ = 0, next_look_ns_ = 0;
    std::atomic<long long> ends_at_{0};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
