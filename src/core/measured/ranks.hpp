// the programs that sent a load together
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"

#include <cmath>  // fabs, isnan
#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// How far a machine's clock is ahead of the server's Date headers. These have whole seconds and
/// some servers write them once a second, so they may be two seconds old.
struct clock_ahead {
    double low_s = -infinity, high_s = infinity;
    bool is_reported() const {
        return low_s <= high_s && std::isfinite(low_s) && std::isfinite(high_s);
    }
};

/// One program's part in a repeat: a rank of MPI, or a shard. Latencies use its own clock. Only its
/// start is compared with others, which affects the pattern of arrivals.
struct rank_part {
    int index = 0, count = 1;
    std::string host{};
    long long start_ns = 0;   // of the load, on its own clock
    double off_s = 0;         // how much later than the common start
    double error_s = not_a_number;  // of off_s; NaN: unknown
    bool synchronised = true; // its machine's clock, as the system reports it
    clock_ahead lead{};        // before and after the load
    double cpu_utilization = 0;  // of the busiest thread
    double memory_bytes = 0;  // peak memory of the process
    double lateness_p99 = 0;  // of sends, in seconds
    std::size_t requests = 0, failed = 0;  // measured ones
};

/// Why the load was not as planned, by the part whose start may be the furthest off; "" if it was.
inline std::string skew_fault(const vector<rank_part>& parts, double max_s) {
    const rank_part* worst = nullptr;
    double most_s = max_s;
    for (const rank_part& r : parts) {
        const double off_s = std::fabs(r.off_s) + (std::isnan(r.error_s) ? 0 : r.error_s);
        if (off_s > most_s) {
            worst = &r;
            most_s = off_s;
        }
    }
    if (!worst) return {};
    const std::string known =
        std::isnan(worst->error_s) ? "" : " (known to within " + time_text(worst->error_s) + ")";
    return printed("client: rank %d of %d on %s began ", worst->index, worst->count,
                   worst->host.c_str()) +
           time_text(std::fabs(worst->off_s)) + (worst->off_s < 0 ? " early" : " late") + known +
           ", up to " + time_text(max_s) + " is allowed";
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
