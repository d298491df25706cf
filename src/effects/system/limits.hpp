// what the system lets one process have
#pragma once

#include <algorithm>  // min
#include <string>

#include <sys/resource.h>  // how many files may be open, how much memory was used
#include <unistd.h>  // gethostname, sysconf
#ifdef __linux__
#include <sys/timex.h>  // adjtimex
#endif
#ifdef __APPLE__
#include <sys/sysctl.h>  // its range of ports
#include <sys/syslimits.h>  // OPEN_MAX
#else
#include <fstream>  // ifstream
#endif

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Raises the limit on open files towards this many. The limit as it is then, 0 where nobody knows.
inline rlim_t raised_open_files(rlim_t wanted) {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
    rlim_t most = files.rlim_max;
#ifdef __APPLE__
    most = std::min<rlim_t>(most, OPEN_MAX);  // more is refused, whatever the hard limit says
#endif
    const rlim_t so_far = files.rlim_cur;
    files.rlim_cur = std::min(wanted, most);
    const bool raised = files.rlim_cur > so_far && ::setrlimit(RLIMIT_NOFILE, &files) == 0;
    return raised ? files.rlim_cur : so_far;
}

/// The memory of this machine, in bytes; 0 where it cannot be told.
inline double memory_of_the_machine() {
    const long pages = ::sysconf(_SC_PHYS_PAGES), each = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && each > 0 ? static_cast<double>(pages) * static_cast<double>(each) : 0;
}
/// The most memory that this process has had, in bytes.
inline double most_memory_so_far() {
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
/// What tells this start of this machine from all others, "" where nobody does.
inline std::string name_of_the_boot() {
    std::string id;
#ifdef __linux__
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
#endif
    return id;
}
/// Whether the system believes that its clock goes by others'.
inline bool clock_is_synchronised() {
#ifdef __linux__
    timex reported{};
    return ::adjtimex(&reported) != TIME_ERROR;
#else
    return true;  // nobody can be asked
#endif
}

/// Port numbers from `low` to `high`, none where that is less.
struct port_range {
    long long low = 0, high = -1;
    long long size() const { return high < low ? 0 : high - low + 1; }
};
/// Those of which each connection to a server takes one on this side; none where nobody knows.
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
}  // inline namespace v0
}  // namespace llmbench
