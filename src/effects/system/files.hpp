// files
#pragma once

#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/known_secrets.hpp"

#include <cerrno>  // errno, EINTR
#include <cstddef>  // size_t
#include <cstdio>  // rename
#include <filesystem>  // error_code
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <utility>  // exchange

#include <fcntl.h>  // open
#include <poll.h>
#include <sys/stat.h>  // fstat
#include <sys/types.h>  // ssize_t
#include <unistd.h>  // unlink, write, close

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A file that is read: a regular one, or a pipe. A pipe that nobody writes to ends the wait.
class input_file : not_copied {
public:
    static constexpr int longest_wait_ms = 10000;

    explicit input_file(const std::string& path)
        : fd_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)), path_(path) {
        struct ::stat is {};
        if (fd_ < 0 || ::fstat(fd_, &is) != 0) problem_ = error_text(errno);
        else if (!S_ISREG(is.st_mode) && !S_ISFIFO(is.st_mode))
            problem_ = S_ISDIR(is.st_mode) ? "it is a folder" : "it is a device";
        is_pipe_ = S_ISFIFO(is.st_mode);
    }
    ~input_file() { if (fd_ >= 0) ::close(fd_); }
    /// Returns why it cannot be read, "" if it can.
    const std::string& problem() const { return problem_; }
    /// Returns the number of bytes read; fewer than `n` at the end.
    std::size_t read(char* room, std::size_t n) {
        std::size_t all = 0;
        while (all < n) {
            pollfd on{fd_, POLLIN, 0};
            if (is_pipe_ && ::poll(&on, 1, longest_wait_ms) == 0)
                refuse({printable(path_, 200),
                        " is a pipe, and nothing was written to it for 10 s"});
            const ssize_t taken = ::read(fd_, room + all, n - all);
            if (taken < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (taken <= 0) break;
            all += static_cast<std::size_t>(taken);
        }
        return all;
    }

private:
    int fd_;
    std::string path_, problem_{};
    bool is_pipe_ = false;
};

inline std::string file_content(const std::string& path, const std::string& what) {
    input_file in(path);
    if (!in.problem().empty()) refuse({what, ": ", path, " cannot be read: ", in.problem()});
    std::string all, some(1 << 16, '\0');
    while (const std::size_t n = in.read(some.data(), some.size())) all.append(some, 0, n);
    if (const std::string why = why_no_text(all); !why.empty())
        refuse({what, ": ", path, ": ", why});
    return all;
}

/// A new file. A file or symbolic link of that name is unlinked, so that nothing is written through
/// a link: a report directory may come with a checkout.
class new_file : not_copied {
public:
    ~new_file() { close(); }

    /// Returns 0, or an errno.
    int open(const std::filesystem::path& path) {
        close();
        std::size_t none = 0;
        if (const int problem = used_disk(none)) return problem;
        ::unlink(path.c_str());
        fd_ = ::open(path.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0666);
        return fd_ < 0 ? errno : 0;
    }
    bool is_open() const { return fd_ >= 0; }
    int fd() const { return fd_; }
    /// Returns 0, or an errno if not all is written.
    int append(std::string_view bytes) {
        while (!bytes.empty()) {
            std::size_t taken = bytes.size();
            if (const int problem = used_disk(taken)) return problem;
            const ssize_t n = ::write(fd_, bytes.data(), taken);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return errno;
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
        return 0;
    }
    int close() { return fd_ >= 0 && ::close(std::exchange(fd_, -1)) != 0 ? errno : 0; }

private:
    static int used_disk(std::size_t& bytes) {
        return current_environment ? current_environment->use_disk(bytes) : 0;
    }
    int fd_ = -1;
};

/// Files that appear complete, at publish() and not before. Where one cannot have its name, the
/// others have theirs, which say nothing that depends on the missing one.
class drafted_files : not_copied {
public:
    ~drafted_files() {
        for (const std::filesystem::path& path : paths_) ::unlink(draft_of(path).c_str());
    }
    /// No file has a secret that this program was told.
    void add(const std::filesystem::path& path, std::string_view content) {
        std::error_code none;
        if (std::filesystem::is_other(path, none))  // a device: publish() would replace it
            throw std::runtime_error("cannot write " + path.string() + ": it is no regular file");
        paths_.push_back(path);
        new_file out;
        int problem = out.open(draft_of(path));
        if (problem == 0)
            problem = out.append(known_secrets::of_this_program().masked(content));
        if (const int at_end = out.close(); problem == 0) problem = at_end;
        check(problem, path);
    }
    void publish() {
        int problem = 0;
        std::filesystem::path missing;
        for (const std::filesystem::path& path : paths_) {
            if (::rename(draft_of(path).c_str(), path.c_str()) == 0 || problem != 0) continue;
            problem = errno;
            missing = path;
        }
        check(problem, missing);
        paths_.clear();
    }

private:
    static std::string draft_of(const std::filesystem::path& path) {
        return path.string() + ".tmp";
    }
    static void check(int problem, const std::filesystem::path& path) {
        if (problem == 0) return;
        throw std::runtime_error("cannot write " + path.string() + ": " + error_text(problem));
    }
    vector<std::filesystem::path> paths_{};
};
inline void write_file(const std::filesystem::path& path, std::string_view content) {
    drafted_files one;
    one.add(path, content);
    one.publish();
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
