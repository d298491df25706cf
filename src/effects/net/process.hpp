// server processes
#pragma once

#include "api/target.hpp"
#include "core/base/text.hpp"
#include "effects/system/files.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/sockets.hpp"

#include <cerrno>  // errno, EINTR
#include <chrono>
#include <cstring>  // strerror
#include <optional>
#include <stdexcept>  // runtime_error
#include <string>
#include <thread>  // this_thread
#include <utility>  // exchange, move
#include <vector>

#include <fcntl.h>  // open
#include <signal.h>  // SIGINT, SIGTERM, SIGHUP, SIGKILL
#include <sys/prctl.h>  // a server that ends with us
#include <sys/syscall.h>  // close_range
#include <sys/types.h>  // pid_t, ssize_t
#include <sys/wait.h>  // how a server ended
#include <unistd.h>  // pipe2, fork, close, write

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Kills a process group when this program is gone, even by SIGKILL: a process that does nothing
/// but wait for the end of a pipe.
class group_guard {
public:
    void watch(pid_t group) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return;
        pid_ = ::fork();
        if (pid_ == 0) wait_and_kill(ends[0], group);
        ::close(ends[0]);
        pipe_ = descriptor(ends[1]);
    }
    /// The group is gone.
    void dismiss() {
        if (pid_ <= 0) return;
        [[maybe_unused]] const ssize_t n = ::write(pipe_.get(), "x", 1);
        pipe_ = descriptor();
        ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    }

private:
    /// Only what a child of several threads may call.
    [[noreturn]] static void wait_and_kill(int pipe, pid_t group) {
        ::setpgid(0, 0);  // out of reach of the terminal's Ctrl-C
        for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::signal(s, SIG_IGN);
        ::dup2(pipe, 0);
        // The other end of this pipe and of others, and whatever somebody waits to see closed.
#ifdef SYS_close_range
        const bool closed = ::syscall(SYS_close_range, 1u, ~0u, 0u) == 0;
#else
        const bool closed = false;
#endif
        for (int fd = 1; !closed && fd < 65536; ++fd) ::close(fd);
        char byte = 0;
        ssize_t n = 0;
        while ((n = ::read(0, &byte, 1)) < 0 && errno == EINTR) {}
        if (n == 0) ::kill(-group, SIGKILL);
        ::_exit(0);
    }
    descriptor pipe_{};
    pid_t pid_ = -1;
};

/// A server command in a process group of its own. Ended with SIGTERM, after 5 s with SIGKILL.
class server_process {
public:
    server_process(const process& p, int port, std::string log) : log_(std::move(log)) {
        std::string command = str(p.command);
        for (std::size_t at; (at = command.find("{port}")) != std::string::npos;)
            command.replace(at, 6, std::to_string(port));
        std::vector<std::string> env;
        for (const name_value& nv : p.env) env.push_back(str(nv.name) + "=" + str(nv.value));
        const std::string directory = str(p.working_directory);
        const pid_t parent = ::getpid();
        pid_ = ::fork();
        if (pid_ < 0)
            throw std::runtime_error(std::string("cannot start a process: ") +
                                     std::strerror(errno));
        if (pid_ == 0) child(command, env, directory, parent);
        ::setpgid(pid_, pid_);
        guard_.watch(pid_);
        add_group_to_end(pid_);
    }
    ~server_process() { stop(); }
    server_process(const server_process&) = delete;
    server_process& operator=(const server_process&) = delete;

    /// "" while it runs, else how it ended.
    std::string how_it_ended() {
        if (!has_ended()) return {};
        return WIFSIGNALED(*status_) ? printed("was ended by signal %d", WTERMSIG(*status_))
                                     : printed("exited with status %d", WEXITSTATUS(*status_));
    }
    void stop() {
        if (pid_ <= 0) return;
        ::kill(-pid_, SIGTERM);
        for (int i = 0; i < 250 && (!has_ended() || ::kill(-pid_, 0) == 0); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ::kill(-pid_, SIGKILL);
        if (!status_) ::waitpid(pid_, nullptr, 0);
        remove_group_to_end(pid_);
        guard_.dismiss();
        pid_ = -1;
    }
    std::string log_tail() const { return tail_of(log_); }

private:
    bool has_ended() {
        int status = 0;
        if (!status_ && pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
        return status_.has_value();
    }
    static constexpr int not_run = 127;  // the status by which shells tell it
    [[noreturn]] void child(const std::string& command, std::vector<std::string>& env,
                            const std::string& directory, pid_t parent) {
        ::setpgid(0, 0);
        // A crash of ours must not leave the server behind, not even one right now: the guard of
        // the whole group is yet to come.
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(not_run);
        const int out = ::open(log_.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
        const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (out >= 0) { ::dup2(out, 1); ::dup2(out, 2); }
        if (in >= 0) ::dup2(in, 0);
        for (std::string& e : env) ::putenv(e.data());
        if (!directory.empty() && ::chdir(directory.c_str()) != 0) {
            ::dprintf(2, "cannot enter %s: %s\n", directory.c_str(), std::strerror(errno));
            ::_exit(not_run);
        }
        const bool simple = command.find_first_of(";&|<>()\n") == std::string::npos;
        const std::string line = simple ? "exec " + command : command;
        ::execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
        ::_exit(not_run);
    }
    std::string log_;
    std::optional<int> status_{};  // as waitpid() tells it, once it has ended
    group_guard guard_{};
    pid_t pid_ = -1;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
