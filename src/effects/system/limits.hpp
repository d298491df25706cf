// system limits of a process
#pragma once

#include <algorithm>  // min
#include <atomic>

#include <sys/resource.h>  // how many files may be open, how much memory was used
#include <unistd.h>  // sysconf
#ifdef __APPLE__
#include <sys/sysctl.h>  // its range of ports
#include <sys/syslimits.h>  // OPEN_MAX
#else
#include <fstream>  // ifstream
#endif

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The limit before we raised it, 0: unchanged. Programs that we start get it back.
inline std::atomic<rlim_t> open_files_before{0};
/// Raises the limit on open files towards this many. Returns the new limit, 0 if unknown.
inline rlim_t raised_open_files(rlim_t wanted) {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
    rlim_t most = files.rlim_max;
#ifdef __APPLE__
    most = std::min<rlim_t>(most, OPEN_MAX);  // more is refused, whatever the hard limit
#endif
    const rlim_t so_far = files.rlim_cur;
    files.rlim_cur = std::min(wanted, most);
    const bool raised = files.rlim_cur > so_far && ::setrlimit(RLIMIT_NOFILE, &files) == 0;
    rlim_t never_raised = 0;
    if (raised) open_files_before.compare_exchange_strong(never_raised, so_far);
    return raised ? files.rlim_cur : so_far;
}

/// Memory of this machine in bytes; 0: unknown.
inline double memory_of_the_machine() {
    const long pages = ::sysconf(_SC_PHYS_PAGES), each = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && each > 0 ? static_cast<double>(pages) * static_cast<double>(each) : 0;
}
/// Ports from `low` to `high`; none if high is less.
struct port_range {
    long long low = 0, high = -1;
    long long size() const { return high < low ? 0 : high - low + 1; }
};
/// Ports of outgoing connections, one for each; none if unknown.
inline port_range outgoing_ports() {
    port_range all;
#ifdef __APPLE__
    int first = 0, last = -1;
    std::size_t size = sizeof first;
    if (::sysctlbyname("net.inet.ip.portrange.first", &first, &size, nullptr, 0) != 0 ||
        ::sysctlbyname("net.inet.ip.portrange.last", &last, &size, nullptr, 0) != 0)
        return {};
    all = {first, last};
#else
    std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
    if (!(range >> all.low >> all.high)) return {};
#endif
    return all;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
