// time intervals
#pragma once

#include <algorithm>  // max, min

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Nanoseconds of one clock without the end. If the times are in the wrong order, the interval is
/// empty.
class time_interval {
public:
    time_interval() = default;
    static time_interval between(long long from_ns, long long to_ns) {
        time_interval t;
        t.from_ns_ = from_ns;
        t.to_ns_ = std::max(from_ns, to_ns);
        return t;
    }
    long long from_ns() const { return from_ns_; }
    long long to_ns() const { return to_ns_; }
    bool is_empty() const { return from_ns_ == to_ns_; }
    double length_ns() const {
        const auto from = static_cast<unsigned long long>(from_ns_);  // avoids overflow
        return static_cast<double>(static_cast<unsigned long long>(to_ns_) - from);
    }
    double seconds() const { return length_ns() * 1e-9; }
    bool holds(long long time_ns) const { return time_ns >= from_ns_ && time_ns < to_ns_; }
    /// The intersection. It begins at the later start.
    time_interval shared_with(const time_interval& o) const {
        return between(std::max(from_ns_, o.from_ns_), std::min(to_ns_, o.to_ns_));
    }
    bool operator==(const time_interval&) const = default;

private:
    long long from_ns_ = 0, to_ns_ = 0;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
