// text in Markdown
#pragma once

#include "core/base/text.hpp"

#include <algorithm>  // max
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline std::string markdown_escaped(const std::string& s) {
    std::string out;
    for (const char c : printable(s, s.size() * 4 + 4)) {
        if (std::string_view("\\|<>`*_[]~").find(c) != std::string_view::npos) out += '\\';
        out += c == '&' ? "&amp;" : std::string(1, c);
    }
    return out;
}

/// Returns text, perhaps a server's, as code: in a code span it is no mention, link, image, HTML or
/// issue. A bar would end a table's cell even there.
inline std::string markdown_code(const std::string& s) {
    std::string words;
    std::size_t longest = 0, run = 0;
    for (const char c : printable(s, s.size() * 4 + 4)) {
        longest = std::max(longest, run = c == '`' ? run + 1 : 0);
        words += c == '|' ? "\u2502" : std::string(1, c);
    }
    if (trimmed(words).empty()) return {};
    const std::string fence(longest + 1, '`');
    const bool needs_room = words.front() == '`' || words.back() == '`' ||
                            (words.front() == ' ' && words.back() == ' ');
    const char* room = needs_room ? " " : "";
    return fence + room + words + room + fence;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
