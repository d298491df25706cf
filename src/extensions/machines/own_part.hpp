// facts of this program's part in a shared load
#pragma once

#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/shard.hpp"

#include <algorithm>  // sort
#include <fstream>
#include <string>
#include <vector>

#include <sys/resource.h>  // getrusage
#ifdef __linux__
#include <sys/timex.h>  // adjtimex
#endif
#include <unistd.h>  // gethostname

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Peak memory of this process, in bytes.
inline double max_memory_so_far() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
#ifdef __APPLE__
    return static_cast<double>(used.ru_maxrss);
#else
    return 1024.0 * static_cast<double>(used.ru_maxrss);
#endif
}
inline std::string name_of_the_machine() {
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    return name;
}
/// An id of this machine's start, "" if there is none.
inline std::string name_of_the_boot() {
    std::string id;
#ifdef __linux__
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
#endif
    return id;
}
/// Whether the system reports a synchronised clock.
inline bool clock_is_synchronised() {
#ifdef __linux__
    timex reported{};
    return ::adjtimex(&reported) != TIME_ERROR;
#else
    return true;  // unknown
#endif
}

/// Returns the facts of this program's part in a shared load.
inline rank_part part_of(const repeat_data& d, const load_shard& shard, long long start_ns) {
    rank_part r;
    r.index = static_cast<int>(shard.index);
    r.count = static_cast<int>(shard.count);
    r.host = printable(name_of_the_machine(), 256);
    r.start_ns = start_ns;
    r.cpu_utilization = d.cpu_utilization;
    r.memory_bytes = max_memory_so_far();
    r.synchronised = clock_is_synchronised();
    std::vector<double> late;
    for (const record& x : d.records) {
        if (!is_measured(x)) continue;
        ++r.requests;
        r.failed += has_failed(x);
        if (x.dispatched_ns > 0) late.push_back(static_cast<double>(x.late_ns) * 1e-9);
    }
    std::sort(late.begin(), late.end());
    if (!late.empty()) r.lateness_p99 = nearest_rank(late, 0.99);
    return r;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
