// the style of the console
#pragma once

#include "core/base/text.hpp"

#include <algorithm>  // min
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

struct console_style {
    bool colour = false;   // ANSI escapes
    bool unicode = false;  // UTF-8
    bool verbose = false;  // also the lines that no verdict depends on: LLMBENCH_VERBOSE
};
struct console_facts {
    bool terminal = false;
    std::string no_color{}, clicolor_force{}, term{}, lc_all{}, lc_ctype{}, lang{};
};
inline console_style style_of(const console_facts& c) {
    const std::string& locale = !c.lc_all.empty() ? c.lc_all : !c.lc_ctype.empty() ? c.lc_ctype
                                                                                   : c.lang;
    std::string charset = locale.substr(std::min(locale.find('.'), locale.size()));
    charset = charset.substr(0, charset.find('@'));
    const bool forced = !c.clicolor_force.empty() && c.clicolor_force != "0";
    return {c.no_color.empty() && (forced || (c.terminal && c.term != "dumb")),
            same_ignoring_case(charset, ".utf-8") || same_ignoring_case(charset, ".utf8"),
            false};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
