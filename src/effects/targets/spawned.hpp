// started programs, which end with us
#pragma once

#include "core/base/text.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/settings.hpp"
#include "effects/net/sockets.hpp"

#include <algorithm>  // none_of
#include <filesystem>  // error_code
#include <mutex>  // lock_guard
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

#include <fcntl.h>  // O_RDWR, fcntl
#include <signal.h>  // SIGKILL
#include <spawn.h>  // posix_spawn
#include <sys/socket.h>  // send
#include <sys/types.h>  // pid_t, ssize_t
#include <sys/wait.h>  // waitpid

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A pipe from a program to us; no ends, with errno, on failure.
struct pipe_ends {
    descriptor ours{}, its{};
};
inline pipe_ends new_pipe() {
    int ends[2] = {-1, -1};
#ifdef __linux__
    const bool made = ::pipe2(ends, O_CLOEXEC) == 0;
#else
    const bool made = ::pipe(ends) == 0;
    for (const int end : ends)
        if (made) ::fcntl(end, F_SETFD, FD_CLOEXEC);
#endif
    return made ? pipe_ends{descriptor(ends[0]), descriptor(ends[1])} : pipe_ends{};
}

/// Writes a line to a socket_pair(); no signal if nobody reads it.
inline void say_line(const descriptor& to) {
    [[maybe_unused]] const ssize_t sent = ::send(to.get(), "\n", 1, no_signal);
}

/// A script for /bin/sh in its own process group, with arguments "$1" and so on.
struct script_to_start {
    const char* script;
    std::vector<std::string> words{};
    std::vector<std::string> environment{};  // "NAME=value" each
    int in = -1, out = -1;                   // -1: /dev/null
    bool inherits = true;                    // our open descriptors without close-on-exec
};

/// Descriptors from our parent that started programs would inherit.
inline std::vector<int> inherited_descriptors() {
    std::vector<int> all;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/fd", none)) {
        const int fd = parsed_number<int>(entry.path().filename().string()).value_or(-1);
        const int flags = fd > 2 ? ::fcntl(fd, F_GETFD) : -1;
        if (flags >= 0 && !(flags & FD_CLOEXEC)) all.push_back(fd);
    }
    return all;
}

/// Starts the process. All memory is prepared before: between fork and exec a threaded program may
/// do next to nothing, and copying a large one takes time during a load. Throws std::runtime_error.
inline pid_t started(const script_to_start& s) {
    std::vector<char*> words, environment;
    const auto add = [](std::vector<char*>& to, const std::string& word) {
        to.push_back(const_cast<char*>(word.c_str()));  // not modified by exec
    };
    const std::string begin[] = {"sh", "-c", s.script, "sh"};
    for (const std::string& word : begin) add(words, word);
    for (const std::string& word : s.words) add(words, word);
    for (const std::string& variable : s.environment) add(environment, variable);
    words.push_back(nullptr);
    environment.push_back(nullptr);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    for (int fd = 0; fd < 3; ++fd) {
        const int from = fd == 0 ? s.in : s.out;
        if (from < 0) ::posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
        else ::posix_spawn_file_actions_adddup2(&files, from, fd);
    }
    if (!s.inherits)
        for (const int fd : inherited_descriptors())
            ::posix_spawn_file_actions_addclose(&files, fd);
    posix_spawnattr_t how;
    ::posix_spawnattr_init(&how);
    ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&how, 0);
    pid_t pid = -1;
    const int problem =
        ::posix_spawn(&pid, "/bin/sh", &files, &how, words.data(), environment.data());
    ::posix_spawnattr_destroy(&how);
    ::posix_spawn_file_actions_destroy(&files);
    if (problem != 0)
        throw std::runtime_error("cannot start a process: " + error_text(problem));
    return pid;
}

/// Our environment with these variables added or replaced.
inline std::vector<std::string> environment_with(std::vector<std::string> more) {
    for (std::string& own : whole_environment()) {
        const std::string_view name = std::string_view(own).substr(0, own.find('=') + 1);
        const auto is_it = [&](const std::string& m) { return m.starts_with(name); };
        if (std::none_of(more.begin(), more.end(), is_it)) more.push_back(std::move(own));
    }
    return more;
}

/// Ends process groups when this program is gone, even by SIGKILL: a process that reads the groups
/// until its line closes. The line is a pair of sockets, so that a write after the guard's end is
/// an error and not a signal.
class group_guard {
public:
    static group_guard& of_this_program() {
        static group_guard* const guard = new group_guard;  // outlives every static object
        return *guard;
    }
    /// Throws std::runtime_error if the guard cannot be started.
    void watch(pid_t group) {
        const std::lock_guard lock(mutex_);
        groups_.push_back(group);
        if (tell()) return;
        begin();
        tell();
    }
    /// The group has ended, or needs no guard.
    void leave(pid_t group) {
        const std::lock_guard lock(mutex_);
        std::erase(groups_, group);
        tell();
    }
    /// The guard's process; -1: not started.
    pid_t pid() const { return pid_; }

private:
    bool tell() {
        std::string all;
        for (const pid_t group : groups_) all += std::to_string(group) + " ";
        all += "\n";
        return line_.get() >= 0 && ::send(line_.get(), all.data(), all.size(),
                                          no_signal | MSG_DONTWAIT) ==
                                       static_cast<ssize_t>(all.size());
    }
    void begin() {
        if (pid_ > 0) ::waitpid(pid_, nullptr, WNOHANG);
        auto [ours, its] = socket_pair();
        if (ours.get() < 0)
            throw std::runtime_error("cannot start a process: " + error_text(errno));
        // Ctrl-C does not reach it, and it keeps no descriptor open that others wait for.
        pid_ = started({.script = "trap '' INT TERM HUP; groups_=\n"
                                  "while read -r all_; do groups_=$all_; done\n"
                                  "for group_ in $groups_; do kill -KILL \"-$group_\"; done",
                        .in = its.get(),
                        .inherits = false});
        line_ = std::move(ours);
    }

    std::mutex mutex_{};
    std::vector<pid_t> groups_{};
    descriptor line_{};
    pid_t pid_ = -1;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
