// the machine and the commit
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/machine_facts.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/environment.hpp"

#include <algorithm>  // min
#include <filesystem>  // error_code
#include <fstream>  // ifstream, getline
#include <string>
#include <string_view>
#include <thread>

#ifdef __APPLE__
#include <cstdlib>  // getprogname
#include <sys/sysctl.h>  // the name of the processor
#endif
#include <sys/utsname.h>  // the name of the system

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The tested commit, from GitHub, GitLab, Jenkins or Buildkite, else from the git directory above.
/// "" if there is none.
inline std::string commit_now() {
    for (const char* name : {"GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT"})
        if (const std::string sha = environment(name); !sha.empty()) return printable(sha, 64);
    const auto line_of = [](const std::filesystem::path& file, std::string_view ending) {
        std::ifstream in(file);
        std::string line;
        while (std::getline(in, line))
            if (line.size() >= ending.size() &&
                std::string_view(line).substr(line.size() - ending.size()) == ending)
                return line;
        return std::string();
    };
    std::error_code none;
    std::filesystem::path at = std::filesystem::current_path(none);
    while (!none && !std::filesystem::exists(at / ".git", none) && at.has_relative_path())
        at = at.parent_path();
    std::filesystem::path git = at / ".git", refs = git;
    if (const std::string link = line_of(git, ""); link.rfind("gitdir: ", 0) == 0) {
        git = at / link.substr(8);  // a worktree: branches are in the main one
        refs = git / line_of(git / "commondir", "");
    }
    const std::string head = line_of(git / "HEAD", "");
    if (head.rfind("ref: ", 0) != 0) return printable(head, 64);
    const std::string sha = line_of(refs / head.substr(5), "");
    const std::string packed = line_of(refs / "packed-refs", " " + head.substr(5));
    return printable(sha.empty() ? packed.substr(0, packed.find(' ')) : sha, 64);
}

inline std::string name_of_the_processor() {
#ifdef __APPLE__
    char name[128] = {};
    std::size_t size = sizeof name - 1;
    ::sysctlbyname("machdep.cpu.brand_string", name, &size, nullptr, 0);
    return name;
#else
    std::ifstream cpu("/proc/cpuinfo");
    for (std::string line; std::getline(cpu, line);)
        if (line.rfind("model name", 0) == 0 && line.find(':') != std::string::npos)
            return std::string(trimmed(std::string_view(line).substr(line.find(':') + 1)));
    return {};
#endif
}
/// The name by which this program was called, and on Linux its arguments.
inline vector<std::string> words_of_the_call() {
#ifdef __APPLE__
    return {::getprogname()};
#else
    vector<std::string> words;
    std::ifstream call("/proc/self/cmdline");
    for (std::string word; std::getline(call, word, '\0');) words.push_back(word);
    return words;
#endif
}

/// Returns the first line of a file, or all lines; "" if it cannot be read.
inline std::string line_of_file(const std::string& file, char end = '\n') {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line, end);
    return line;
}
/// Returns the process that listens on a TCP port, with the cores it may use. A pid of 0: none, or
/// one that this user may not look at.
inline local_server server_on_port(int port) {
    namespace fs = std::filesystem;
    std::string socket;
    for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"})
        if (socket.empty()) socket = listening_socket(line_of_file(table, '\0'), port);
    if (socket.empty()) return {};
    std::error_code none;
    for (const fs::directory_entry& process : fs::directory_iterator("/proc", none)) {
        const auto pid = parsed_number<long long>(process.path().filename().string());
        if (!pid) continue;
        std::error_code unread;
        for (const fs::directory_entry& file :
             fs::directory_iterator(process.path() / "fd", unread)) {
            std::error_code gone;
            if (fs::read_symlink(file.path(), gone) != "socket:[" + socket + "]") continue;
            const std::string status = (process.path() / "status").string();
            return {*pid, allowed_cores(line_of_file(status, '\0'))};
        }
    }
    return {};
}
/// Returns the least quota of this program's control groups, in cores; 0 if none has one.
inline double quota_of_this_program() {
    double least = 0;
    for (const std::string& group : control_groups(line_of_file("/proc/self/cgroup", '\0'))) {
        const double quota = quota_of(line_of_file("/sys/fs/cgroup" + group + "/cpu.max"));
        if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
    }
    return least;
}
inline std::string governors(int cores) {
    std::string all;
    for (int i = 0; i < cores; ++i)
        add_word(all, printable(line_of_file(printed("/sys/devices/system/cpu/cpu%d/cpufreq/"
                                                     "scaling_governor", i)), 30));
    return all;
}
/// The name of this host, or the user's for it.
inline std::string name_of_this_machine() {
    const std::string own = environment("LLMBENCH_MACHINE");
    utsname u{};
    const bool has_host = own.empty() && uname(&u) == 0;
    return printable(has_host ? std::string_view(u.nodename) : trimmed(own), 100);
}
inline machine_facts machine_now(int cores) {
    const std::string smt = line_of_file("/sys/devices/system/cpu/smt/active");
    return {.name = name_of_this_machine(),
            .quota = quota_of_this_program(),
            .governor = governors(cores),
            .smt = smt == "1" ? "on" : smt == "0" ? "off" : "",
            .huge_pages = chosen_of(line_of_file("/sys/kernel/mm/transparent_hugepage/enabled"))};
}

inline environment_facts environment_now() {
    environment_facts f;
    utsname u{};
    if (uname(&u) == 0) f.os = std::string(u.sysname) + " " + u.release;
    f.cpu = name_of_the_processor();
    f.cores = static_cast<int>(std::thread::hardware_concurrency());
    f.machine = machine_now(f.cores);
    f.compiler = __VERSION__;
    f.started_at = utc_text(unix_s());
    f.commit = commit_now();
    if (const auto words = words_of_the_call(); !words.empty()) f.program = words[0];
    return f;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
