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

/// One program's part in a repeat: a rank of MPI, or a shard. Every latency is of its own clock;
/// its start is all that is compared with others', and only the pattern of arrivals hangs on that.
struct rank_part {
    int index = 0, count = 1;
    std::string host{};
    long long start_ns = 0;   // of its load, on its own clock
    double off_s = 0;         // how much later than the common start that was
    double error_s = not_a_number;  // how well that is known; NaN: nobody can tell
    bool synchronised = true; // its machine's clock, by its system's own account
    double cpu_share = 0;     // of its busiest thread
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
