// what each of several programs that sent a load says of itself
#pragma once

#include "core/base/text.hpp"

#include <algorithm>  // max
#include <cmath>  // fabs, isnan
#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// How far a machine's clock is ahead of the server's, as far as the server tells: whole seconds,
/// which some write once a second, so that a Date may be two seconds old.
struct clock_lead {
    double low_s = -infinity, high_s = infinity;
    bool is_reported() const {
        return low_s <= high_s && std::isfinite(low_s) && std::isfinite(high_s);
    }
    /// An answer that came between two times of this clock told that one.
    void note(double asked_s, double answered_s, double reported_s) {
        low_s = std::max(low_s, asked_s - reported_s - 2);
        high_s = std::min(high_s, answered_s - reported_s);
    }
    /// By how much two machines' clocks differ at least. Where several servers answer, each with a
    /// clock of its own, nothing is known.
    static double least_between(const clock_lead& a, const clock_lead& b) {
        if (!a.is_reported() || !b.is_reported()) return 0;
        return std::max({0.0, a.low_s - b.high_s, b.low_s - a.high_s});
    }
};

/// One program's part in a repeat: a rank of MPI, or a shard. Every latency is of its own clock;
/// its start is all that is compared with others', and only the pattern of arrivals hangs on that.
struct rank_part {
    int index = 0, count = 1;
    std::string host{};
    long long start_ns = 0;   // of its load, on its own clock
    double off_s = 0;         // how much later than the common start that was
    double error_s = not_a_number;  // how well that is known; NaN: nobody can tell
    bool synchronised = true; // its machine's clock, by its system's own account
    clock_lead lead{};        // of its machine's clock, seen before and after the load
    double cpu_utilization = 0;  // of its busiest thread
    double memory_bytes = 0;  // the most that its process has had
    double lateness_p99 = 0;  // of its sends, seconds
    std::size_t requests = 0, failed = 0;  // measured ones
};

/// The part whose start is off by more than is allowed, or may be; none: nullptr.
inline const rank_part* first_skewed(const std::vector<rank_part>& parts, double most_s) {
    for (const rank_part& r : parts) {
        const double error = std::isnan(r.error_s) ? 0 : r.error_s;
        if (std::fabs(r.off_s) + error > most_s) return &r;
    }
    return nullptr;
}

/// Why the load of these parts was another one than planned, "" where it was that.
inline std::string skew_fault(const std::vector<rank_part>& parts, double most_s) {
    const rank_part* r = first_skewed(parts, most_s);
    if (!r) return {};
    const std::string known =
        std::isnan(r->error_s) ? "" : " (known to within " + time_text(r->error_s) + ")";
    return printed("client: rank %d of %d on %s began ", r->index, r->count, r->host.c_str()) +
           time_text(std::fabs(r->off_s)) + (r->off_s < 0 ? " early" : " late") + known +
           ", up to " + time_text(most_s) + " is allowed";
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
