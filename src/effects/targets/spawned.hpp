// started programs, which end with us, and their output
#pragma once

#include "core/base/vector.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/files.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/threads.hpp"
#include "effects/net/sockets.hpp"

#include <algorithm>  // min, none_of
#include <array>
#include <cerrno>  // EINTR, errno
#include <cstddef>  // size_t
#include <filesystem>  // error_code
#include <mutex>  // lock_guard
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <thread>
#include <utility>  // exchange, move

#include <fcntl.h>  // fcntl, O_NONBLOCK, O_RDWR
#include <poll.h>
#include <signal.h>  // sigaction, SIGCHLD, SIGKILL
#include <spawn.h>  // posix_spawn
#include <sys/socket.h>  // send
#include <sys/types.h>  // pid_t, ssize_t
#include <sys/wait.h>  // waitpid
#include <unistd.h>  // read, unlink

namespace llmbench {
inline namespace v1 {
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
#ifdef F_SETPIPE_SZ
    // The most without privileges. A program that logs must not wait for us while we are stopped.
    if (made) ::fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
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
    vector<std::string> words{};
    vector<std::string> environment{};  // "NAME=value" each
    int in = -1, out = -1;                   // -1: /dev/null
    bool inherits = true;                    // our open descriptors without close-on-exec
};

/// Descriptors from our parent that started programs would inherit.
inline vector<int> inherited_descriptors() {
    vector<int> all;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/fd", none)) {
        const int fd = parsed_number<int>(entry.path().filename().string()).value_or(-1);
        const int flags = fd > 2 ? ::fcntl(fd, F_GETFD) : -1;
        if (flags >= 0 && !(flags & FD_CLOEXEC)) all.push_back(fd);
    }
    return all;
}

/// A program whose parent ignored SIGCHLD does so, too, and then the system keeps no child's end.
inline void keep_ends_of_children() {
    struct sigaction now{};
    if (::sigaction(SIGCHLD, nullptr, &now) != 0) return;
    const bool keeps = now.sa_handler != SIG_IGN && (now.sa_flags & SA_NOCLDWAIT) == 0;
    if (keeps) return;
    if (now.sa_handler == SIG_IGN) now.sa_handler = SIG_DFL;
    now.sa_flags &= ~SA_NOCLDWAIT;
    ::sigaction(SIGCHLD, &now, nullptr);
}

/// Starts the process. All memory is prepared before: between fork and exec a threaded program may
/// do next to nothing, and copying a large one takes time during a load. Throws std::runtime_error.
inline pid_t started(const script_to_start& s) {
    keep_ends_of_children();
    vector<char*> words, environment;
    const auto add = [](vector<char*>& to, const std::string& word) {
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
    if (problem != 0) throw std::runtime_error("cannot start a process: " + error_text(problem));
    return pid;
}

/// Our environment with these variables added or replaced.
inline vector<std::string> environment_with(vector<std::string> more) {
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
        if (send_groups()) return;
        begin();
        send_groups();
    }
    /// The group has ended, or needs no guard.
    void leave(pid_t group) {
        const std::lock_guard lock(mutex_);
        erase_if(groups_, [&](pid_t g) { return g == group; });
        send_groups();
    }
    /// The guard's process; -1: not started.
    pid_t pid() const { return pid_; }

private:
    bool send_groups() {
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
    vector<pid_t> groups_{};
    descriptor line_{};
    pid_t pid_ = -1;
};

/// A program's output in the report directory, written as it comes and without secrets, because the
/// directory may be uploaded. It passes through us, so that endless output fills no disk.
class server_log : not_copied {
public:
    static constexpr std::size_t max_bytes = 64u << 20;  // of a file

    server_log(std::string path, vector<std::string> secrets)
        : path_(std::move(path)), secrets_(std::move(secrets)) {
        auto [output, its] = new_pipe();
        auto [ours, waked] = socket_pair();
        if (output.get() < 0 || ours.get() < 0)
            throw std::runtime_error("the log " + path_ + " cannot be written: " +
                                     error_text(errno));
        if (const int problem = file_.open(path_))
            throw std::runtime_error("the log " + path_ + " cannot be written: " +
                                     error_text(problem));
        ::fcntl(output.get(), F_SETFL, O_NONBLOCK);
        output_ = std::move(output);
        its_ = std::move(its);
        wake_ = std::move(ours);
        waked_ = std::move(waked);
        reading_ = contained_thread([this] { read_on(); }, [](const char*) {});
    }
    ~server_log() { close(); }

    /// The program's end, until it is given away.
    int end() const { return its_.get(); }
    void is_given_away() { its_ = descriptor(); }
    void unlink() const { ::unlink(path_.c_str()); }
    /// Masks these, too, from now on.
    void mask(const vector<std::string>& more) {
        const std::lock_guard lock(mutex_);
        for (const std::string& s : more) add_form(secrets_, s);
    }
    /// The last output, for error messages.
    std::string tail(std::size_t bytes = 2000) {
        const std::lock_guard lock(mutex_);
        take();
        const std::string all = last_ + without_secrets(held_, secrets_);
        return all.size() > bytes ? "..." + all.substr(all.size() - bytes) : all;
    }
    /// Whether some process may still write.
    bool is_held() {
        const std::lock_guard lock(mutex_);
        take();
        return !ended_;
    }
    /// Stops reading; returns "", or why the file is incomplete.
    std::string close() {
        if (!reading_.joinable()) return {};
        its_ = descriptor();
        wake_ = descriptor();
        reading_.join();
        const std::lock_guard lock(mutex_);
        take();
        output_ = descriptor();
        ended_ = true;
        put(std::exchange(held_, {}));
        const std::size_t at_end = std::min(last_.size(), left_out_);
        if (left_out_ > at_end)
            write(printed("\n[llmbench: %zu bytes are left out here]\n", left_out_ - at_end));
        write(std::string_view(last_).substr(last_.size() - at_end));
        if (const int problem = file_.close(); problem_ == 0) problem_ = problem;
        return problem_ == 0 ? "" : "the log " + path_ + " is not whole: " + error_text(problem_);
    }

private:
    static constexpr std::size_t kept_bytes = 1u << 16, taken_at_once = 1u << 18;

    void read_on() {
        for (;;) {
            pollfd on[2] = {{output_.get(), POLLIN, 0}, {waked_.get(), POLLIN, 0}};
            if (::poll(on, 2, -1) < 0 && errno != EINTR) return;
            if (on[1].revents) return;
            bool is_full = false;
            {
                const std::lock_guard lock(mutex_);
                is_full = take();
                if (ended_) return;
            }
            // Limits the CPU time spent on a flood.
            if (is_full) sleep_s(0.005);
        }
    }
    /// Reads available output; returns true if there may be more.
    bool take() {
        std::array<char, 1u << 16> some;
        for (std::size_t taken = 0; !ended_ && taken < taken_at_once;) {
            const ssize_t n = ::read(output_.get(), some.data(), some.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return false;
            if (n == 0) ended_ = true;
            taken += static_cast<std::size_t>(n);
            std::string words = without_secrets(
                held_.append(some.data(), static_cast<std::size_t>(n)), secrets_);
            // A possible beginning of a secret waits for the rest.
            const std::size_t whole = words.size() - begun_secret(words, secrets_);
            held_ = words.substr(whole);
            words.resize(whole);
            put(words);
        }
        return !ended_;
    }
    void put(const std::string& words) {
        last_ += words;
        if (last_.size() > 2 * kept_bytes) last_.erase(0, last_.size() - kept_bytes);
        const std::size_t room = max_bytes - std::min(max_bytes, written_);
        const std::size_t fits = std::min(room, words.size());
        written_ += fits;
        left_out_ += words.size() - fits;
        write(std::string_view(words).substr(0, fits));
    }
    /// A full disk must not block the program.
    void write(std::string_view words) {
        if (problem_ == 0) problem_ = file_.append(words);
    }

    const std::string path_;
    vector<std::string> secrets_;
    new_file file_{};
    descriptor output_{}, its_{}, wake_{}, waked_{};
    std::mutex mutex_{};
    std::string held_{}, last_{};
    std::size_t written_ = 0, left_out_ = 0;
    int problem_ = 0;  // an errno
    bool ended_ = false;
    std::thread reading_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
