// standard input, output and errors
#pragma once

#include "effects/system/known_secrets.hpp"

#include <iostream>  // cout, ios_base
#include <string>

#include <fcntl.h>  // fcntl, open
#include <sys/ioctl.h>  // the width of a terminal
#include <unistd.h>  // STDOUT_FILENO

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Columns of the terminal, 80 if unknown.
inline std::size_t console_width() {
    winsize size{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
}

/// A program may be started with one of the three closed. A file opened later would then get its
/// number, and console output would go into that file.
inline bool are_standard_streams_there() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
        if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != fd) return false;
    return true;
}
inline constinit bool standard_streams_are_there = false;
/// Runs before static objects of other files, which may be gates and may lack <iostream>.
[[gnu::constructor(101)]] static void make_standard_streams_ready() {
    static const std::ios_base::Init streams;
    standard_streams_are_there = are_standard_streams_there();
}

inline void say(const std::string& s) {
    std::cout << known_secrets::of_this_program().masked(s) << std::flush;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
