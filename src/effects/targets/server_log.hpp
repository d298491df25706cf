// the output of a started program
#pragma once

#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/files.hpp"
#include "effects/system/threads.hpp"
#include "effects/net/sockets.hpp"
#include "effects/targets/spawned.hpp"

#include <algorithm>  // min
#include <array>
#include <cerrno>  // errno, EINTR
#include <cstddef>  // size_t
#include <mutex>  // lock_guard
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <thread>
#include <utility>  // exchange, move
#include <vector>

#include <fcntl.h>  // O_NONBLOCK
#include <poll.h>
#include <sys/types.h>  // ssize_t
#include <unistd.h>  // read, unlink

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The number of bytes at the end of `s` that may begin a secret.
inline std::size_t begun_secret(std::string_view s, const std::vector<std::string>& secrets) {
    std::size_t most = 0;
    for (const std::string& secret : secrets)
        for (std::size_t n = std::min(secret.size() - 1, s.size()); n > most; --n)
            if (s.ends_with(std::string_view(secret).substr(0, n))) most = n;
    return most;
}

/// A program's output in the report directory, written as it comes and without secrets, because the
/// directory may be uploaded. It passes through us, so that endless output fills no disk.
class server_log {
public:
    static constexpr std::size_t max_bytes = 64u << 20;  // of a file

    server_log(std::string path, std::vector<std::string> secrets)
        : path_(std::move(path)), secrets_(std::move(secrets)) {
        auto [said, its] = new_pipe();
        auto [ours, waked] = socket_pair();
        if (said.get() < 0 || ours.get() < 0)
            throw std::runtime_error("the log " + path_ + " cannot be written: " +
                                     error_text(errno));
        if (const int problem = file_.open(path_))
            throw std::runtime_error("the log " + path_ + " cannot be written: " +
                                     error_text(problem));
        ::fcntl(said.get(), F_SETFL, O_NONBLOCK);
        said_ = std::move(said);
        its_ = std::move(its);
        wake_ = std::move(ours);
        waked_ = std::move(waked);
        reading_ = contained_thread([this] { read_on(); }, [](const char*) {});
    }
    ~server_log() { close(); }
    server_log(const server_log&) = delete;
    server_log& operator=(const server_log&) = delete;

    /// The program's end, until it is given away.
    int end() const { return its_.get(); }
    void is_given_away() { its_ = descriptor(); }
    /// Removes the name of the file.
    void unlink() const { ::unlink(path_.c_str()); }
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
        said_ = descriptor();
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
    static constexpr std::size_t kept_bytes = 1u << 16, at_once = 1u << 18;

    void read_on() {
        for (;;) {
            pollfd on[2] = {{said_.get(), POLLIN, 0}, {waked_.get(), POLLIN, 0}};
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
        for (std::size_t taken = 0; !ended_ && taken < at_once;) {
            const ssize_t n = ::read(said_.get(), some.data(), some.size());
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
    const std::vector<std::string> secrets_;
    new_file file_{};
    descriptor said_{}, its_{}, wake_{}, waked_{};
    std::mutex mutex_{};
    std::string held_{}, last_{};
    std::size_t written_ = 0, left_out_ = 0;
    int problem_ = 0;  // an errno
    bool ended_ = false;
    std::thread reading_{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
