// standard output
#pragma once

#include <iostream>  // cout
#include <string>

#include <sys/ioctl.h>  // the width of a terminal
#include <unistd.h>  // STDOUT_FILENO

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Columns of the terminal, 80 where they are not known.
inline std::size_t console_width() {
    winsize size{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
}

inline void say(const std::string& s) { std::cout << s << std::flush; }

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
