// from one time to another that is not before it
#pragma once

#include <algorithm>  // max, min

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Nanoseconds of one clock, the end not included. None ends before it begins: where two times that
/// were found apart from each other are in the wrong order, nothing lies between them.
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
        const auto from = static_cast<unsigned long long>(from_ns_);  // any two times, however far
        return static_cast<double>(static_cast<unsigned long long>(to_ns_) - from);
    }
    double seconds() const { return length_ns() * 1e-9; }
    bool holds(long long time_ns) const { return time_ns >= from_ns_ && time_ns < to_ns_; }
    /// What is in both; it begins where the later one does.
    time_interval shared_with(const time_interval& o) const {
        return between(std::max(from_ns_, o.from_ns_), std::min(to_ns_, o.to_ns_));
    }
    bool operator==(const time_interval&) const = default;

private:
    long long from_ns_ = 0, to_ns_ = 0;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
