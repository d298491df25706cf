// standard output
#pragma once

#include "core/reports/console.hpp"
#include "effects/system/settings.hpp"

#include <iostream>  // cout
#include <string>

#include <sys/ioctl.h>  // the width of a terminal
#include <unistd.h>  // isatty, STDOUT_FILENO

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What standard output can show, by the usual variables (no-color.org, bixense.com/clicolors).
inline console_style style_of_console() {
    return style_of({::isatty(STDOUT_FILENO) == 1, environment("NO_COLOR"),
                     environment("CLICOLOR_FORCE"), environment("TERM"), environment("LC_ALL"),
                     environment("LC_CTYPE"), environment("LANG")});
}
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
