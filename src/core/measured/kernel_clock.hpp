// kernel receive times on the clock of all other times
#pragma once

#include <algorithm>  // max, min
#include <cstdlib>  // llabs

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The kernel stamps input by the time of day. Both clocks run alike, also when slewed. Only a step
/// of the time of day shifts them, and then input before and after the step looks the same.
class kernel_clock {
public:
    static constexpr long long noticed_ns = 5000;

    /// The time of day, with the clock read before and after it.
    void on_readings(long long before_ns, long long day_ns, long long after_ns) {
        const long long width = after_ns - before_ns;
        const long long ahead = day_ns - before_ns - width / 2;
        const bool is_narrow = width <= noticed_ns;  // else the thread was interrupted
        if (is_known_ && std::llabs(ahead - ahead_ns_) > noticed_ns + width / 2) {
            stepped_ns_ = before_ns;
            is_known_ = false;
        }
        if (!is_narrow) return;
        ahead_ns_ = ahead;
        is_known_ = true;
    }
    /// The time of input read until now, at least the time of the previous read's input; 0 if
    /// unknown.
    long long time_of(long long stamp_ns, long long last_read_ns, long long last_came_ns,
                      long long now_ns) const {
        if (stamp_ns == 0 || !is_known_ || last_read_ns < stepped_ns_) return 0;
        const long long came = stamp_ns - ahead_ns_;
        if (came > now_ns + noticed_ns) return 0;
        return std::min(std::max(came, last_came_ns), now_ns);
    }

private:
    long long ahead_ns_ = 0, stepped_ns_ = 0;
    bool is_known_ = false;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
