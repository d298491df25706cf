// server processes
#pragma once

#include "api/target.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/files.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/sockets.hpp"

#include <algorithm>  // max, min
#include <cerrno>  // errno, EINTR
#include <cstring>  // strerror
#include <optional>
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <utility>  // exchange, move
#include <vector>

#include <fcntl.h>  // open
#include <signal.h>  // SIGINT, SIGTERM, SIGHUP, SIGKILL
#ifdef __linux__
#include <sys/prctl.h>  // a server that ends with us
#include <sys/syscall.h>  // close_range
#endif
#include <sys/socket.h>  // send
#include <sys/stat.h>  // fstat
#include <sys/types.h>  // pid_t, off_t, ssize_t
#include <sys/wait.h>  // how a server ended
#include <unistd.h>  // fork, close, unlink, pread

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Kills a process group when this program is gone, even by SIGKILL: a process that does nothing
/// but wait for the end of a line. That is a pair of sockets: where the process has gone first, a
/// word to it is an error and no signal that ends us.
class group_guard {
public:
    void watch(pid_t group) {
        auto [ours, its] = socket_pair();
        if (ours.get() < 0) return;
        pid_ = ::fork();
        if (pid_ == 0) wait_and_kill(its.get(), group);
        line_ = std::move(ours);
    }
    /// The process that waits; -1: there is none.
    pid_t pid() const { return pid_; }
    /// The group is gone.
    void dismiss() {
        if (pid_ <= 0) return;
        ::send(line_.get(), "x", 1, no_signal);
        line_ = descriptor();
        ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    }

private:
    /// Only what a child of several threads may call.
    [[noreturn]] static void wait_and_kill(int line, pid_t group) {
        ::setpgid(0, 0);  // out of reach of the terminal's Ctrl-C
        for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::signal(s, SIG_IGN);
        ::dup2(line, 0);
        // The other end of this line and of others, and whatever somebody waits to see closed.
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
    descriptor line_{};
    pid_t pid_ = -1;
};

/// What a server says, in the report directory, which may be uploaded. Where it was told what is
/// for nobody else, no name leads to its words while it runs; they appear without that when it has
/// ended.
class server_log {
public:
    server_log(std::string path, std::vector<std::string> secrets)
        : path_(std::move(path)), secrets_(std::move(secrets)) {
        if (const int problem = file_.open(path_))
            throw std::runtime_error("the log " + path_ + " cannot be written: " +
                                     error_text(problem));
        if (!secrets_.empty()) ::unlink(path_.c_str());
    }
    int fd() const { return file_.fd(); }
    /// Its end, for error messages.
    std::string tail(std::size_t bytes = 2000) const {
        struct stat now{};
        ::fstat(file_.fd(), &now);
        const off_t from = std::max<off_t>(now.st_size - static_cast<off_t>(bytes), 0);
        std::string s(bytes, '\0');
        const ssize_t n = ::pread(file_.fd(), s.data(), bytes, from);
        s.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
        return (from > 0 ? "..." : "") + without_secrets(s, secrets_);
    }
    /// The server has ended.
    void appear() {
        new_file out;
        if (secrets_.empty() || out.open(path_) != 0) return;
        std::size_t longest = 1;
        for (const std::string& s : secrets_) longest = std::max(longest, s.size());
        std::string some(1 << 16, '\0'), words;
        ssize_t n = 0;
        for (off_t at = 0; (n = ::pread(file_.fd(), some.data(), some.size(), at)) > 0; at += n) {
            words = without_secrets(words.append(some, 0, static_cast<std::size_t>(n)), secrets_);
            // What may be the beginning of a secret waits for the rest of it.
            const std::size_t whole = words.size() - std::min(longest - 1, words.size());
            out.append(std::string_view(words).substr(0, whole));
            words.erase(0, whole);
        }
        out.append(words);
    }

private:
    std::string path_;
    std::vector<std::string> secrets_;
    new_file file_{};
};

/// The command, with `exec` before it where that changes nothing: one plain command, that is no
/// word of the shell's own and is given no variables. The server is then the process that we know.
inline std::string replacing_its_shell(const std::string& command) {
    const std::size_t begin = command.find_first_not_of(" \t");
    const std::size_t end = std::min(command.find_first_of(" \t", begin), command.size());
    const std::string word = begin < end ? command.substr(begin, end - begin) : std::string();
    const bool is_plain = command.find_first_of(";&|<>()\n") == std::string::npos &&
                          word.find('=') == std::string::npos;
    for (const char* own : {"", "exec", "eval", "command", "builtin", ".", "!", "{", "cd", "time"})
        if (word == own) return command;
    return is_plain ? "exec " + command : command;
}

/// A server command in a process group of its own. Ended with SIGTERM, after 5 s with SIGKILL.
class server_process {
public:
    server_process(const process& p, int port, const std::string& log,
                   const std::vector<std::string>& secrets)
        : log_(log, secrets) {
        const std::string command = filled_in(str(p.command), "{port}", std::to_string(port));
        std::vector<std::string> env;
        for (const name_value& nv : p.env) env.push_back(str(nv.name) + "=" + str(nv.value));
        const std::string directory = str(p.working_directory);
        const pid_t parent = ::getpid();
        pid_ = ::fork();
        if (pid_ < 0)
            throw std::runtime_error(std::string("cannot start a process: ") +
                                     error_text(errno));
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
            sleep_s(0.02);
        ::kill(-pid_, SIGKILL);
        if (!status_) ::waitpid(pid_, nullptr, 0);
        remove_group_to_end(pid_);
        guard_.dismiss();
        pid_ = -1;
        log_.appear();
    }
    std::string log_tail(std::size_t bytes = 2000) const { return log_.tail(bytes); }
    /// Nothing is left of what it was, or what it started.
    bool is_gone() { return has_ended() && ::kill(-pid_, 0) != 0; }

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
#ifdef __linux__
        // A crash of ours must not leave the server behind, not even one right now: the guard of
        // the whole group is yet to come.
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
        if (::getppid() != parent) ::_exit(not_run);
        const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        ::dup2(log_.fd(), 1);
        ::dup2(log_.fd(), 2);
        if (in >= 0) ::dup2(in, 0);
        for (std::string& e : env) ::putenv(e.data());
        if (!directory.empty() && ::chdir(directory.c_str()) != 0) {
            ::dprintf(2, "cannot enter %s: %s\n", directory.c_str(), std::strerror(errno));
            ::_exit(not_run);
        }
        ::execl("/bin/sh", "sh", "-c", replacing_its_shell(command).c_str(),
                static_cast<char*>(nullptr));
        ::_exit(not_run);
    }
    server_log log_;
    std::optional<int> status_{};  // as waitpid() tells it, once it has ended
    group_guard guard_{};
    pid_t pid_ = -1;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
