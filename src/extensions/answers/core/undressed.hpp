// models' text in plain characters
#pragma once

#include "core/base/text.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Returns the text without surrounding space.
inline std::string_view without_space(std::string_view s) {
    constexpr std::string_view space = " \t\r\n\v\f";
    s.remove_prefix(std::min(s.find_first_not_of(space), s.size()));
    return s.substr(0, s.find_last_not_of(space) + 1);
}

inline bool holds_byte(std::string_view s, char c) { return s.find(c) != std::string_view::npos; }
inline bool is_digit(std::string_view s, std::size_t i) {
    return i < s.size() && s[i] >= '0' && s[i] <= '9';
}
inline bool is_letter(std::string_view s, std::size_t i) {
    return i < s.size() && (s[i] | 0x20) >= 'a' && (s[i] | 0x20) <= 'z';
}

/// Returns the text in plain form: signs, spaces, digits and fractions of Unicode and LaTeX in
/// ASCII, every currency as $, a power with ^, no bold, no code.
inline std::string undressed(std::string_view s) {
    struct dressed { std::string_view is, plain; };
    static constexpr dressed known[] = {
        {"**", ""}, {"__", ""}, {"`", ""}, {"~", " "}, {"{,}", ","},
        {"^\\circ", ""}, {"^{\\circ}", ""}, {"\\$", "$"}, {"\\%", "%"},
        {"\\,", " "}, {"\\;", " "}, {"\\:", " "}, {"\\ ", " "},
        {"\\!", ""}, {"\\(", " "}, {"\\)", " "}, {"\\[", " "}, {"\\]", " "}, {"\\left", ""},
        {"\\right", ""}, {"\\displaystyle", ""}, {"\\quad", " "}, {"\\times", "*"}, {"\\cdot", "*"},
        {"\\div", "/"}, {"\\approx", "="}, {"\\dfrac", "\\frac"}, {"\\tfrac", "\\frac"},
        {"\\fbox{", "\\boxed{"}, {"\\text{", "{"}, {"\\textbf{", "{"}, {"\\textit{", "{"},
        {"\\mathrm{", "{"}, {"\\mathbf{", "{"}, {"\\mbox{", "{"},
        {"\xE2\x88\x92", "-"}, {"\xE2\x80\x90", "-"}, {"\xE2\x80\x91", "-"}, {"\xE2\x80\x92", "-"},
        {"\xE2\x80\x93", "-"}, {"\xE2\x80\x94", " "},  // minus, hyphens, dashes
        {"\xC2\xA0", " "}, {"\xE2\x80\xAF", " "}, {"\xE2\x81\x9F", " "}, {"\xE3\x80\x80", " "},
        {"\xE2\x80\x8B", ""}, {"\xEF\xBB\xBF", ""},    // no-break, wide and zero-width spaces
        {"\xE2\x80\x98", "'"}, {"\xE2\x80\x99", "'"},  // quotes
        {"\xE2\x80\x9C", "\""}, {"\xE2\x80\x9D", "\""},
        {"\xC3\x97", "*"}, {"\xC2\xB7", "*"}, {"\xE2\x8B\x85", "*"}, {"\xC3\xB7", "/"},
        {"\xE2\x81\x84", "/"}, {"\xE2\x89\x88", "="}, {"\xC2\xB0", ""},
        {"\xE2\x88\x9A", "\\sqrt"}, {"\xCF\x80", "\\pi"}, {"\xE3\x80\x82", "."},
        {"\xE2\x82\xAC", "$"}, {"\xC2\xA3", "$"}, {"\xC2\xA5", "$"}, {"\xE2\x82\xB9", "$"},
        {"\xC2\xBC", " 1/4"}, {"\xC2\xBD", " 1/2"}, {"\xC2\xBE", " 3/4"},
        {"\xE2\x85\x93", " 1/3"}, {"\xE2\x85\x94", " 2/3"}};
    // Superscript digits are in two places of Unicode.
    const auto raised = [&](std::size_t i) -> char {
        const std::string_view two = s.substr(i, 2), three = s.substr(i, 3);
        if (two == "\xC2\xB9") return '1';
        if (two == "\xC2\xB2") return '2';
        if (two == "\xC2\xB3") return '3';
        if (three.size() < 3 || three.substr(0, 2) != "\xE2\x81") return '\0';
        const int at = static_cast<unsigned char>(three[2]) - 0xB0;
        return at >= 0 && at <= 9 ? static_cast<char>('0' + at) : at == 0xB ? '-' : '\0';
    };
    std::string out;
    for (std::size_t i = 0; i < s.size();) {
        const bool is_plain = is_letter(s, i) || is_digit(s, i) || s[i] == ' ' || s[i] == '\n';
        if (is_plain) { out += s[i++]; continue; }
        if (s.substr(i, 2) == "**" && i > 0 && is_digit(s, i - 1) &&
            is_digit(s, i + 2 + (s.substr(i + 2, 1) == "-"))) {
            out += '^';  // Python's power
            i += 2;
            continue;
        }
        if (raised(i)) {
            for (out += '^'; i < s.size() && raised(i); i += s[i] == '\xC2' ? 2 : 3)
                out += raised(i);
            continue;
        }
        // Full-width forms and typographic spaces.
        const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(s[k]); };
        if (i + 2 < s.size() && byte(i) == 0xEF && (byte(i + 1) == 0xBC || byte(i + 1) == 0xBD)) {
            const int code = (byte(i + 1) - 0xBC) * 0x40 + byte(i + 2) - 0x80 + 0x20;
            if (code > 0x20 && code < 0x7F) { out += static_cast<char>(code); i += 3; continue; }
        }
        if (s.substr(i, 2) == "\xE2\x80" && i + 2 < s.size() && byte(i + 2) <= 0x8A) {
            out += ' ';
            i += 3;
            continue;
        }
        const dressed* found = nullptr;
        for (const dressed& d : known)
            if (!found && s.substr(i, d.is.size()) == d.is) found = &d;
        if (found) out += found->plain;
        else out += s[i];
        i += found ? found->is.size() : 1;
    }
    return out;
}

/// Positions that announce an answer. `each` is called from the last one back, with the position
/// after the words and the words, until it returns true.
template <class Marks, class Each>
void each_mark(std::string_view s, const Marks& marks, Each&& each) {
    for (std::size_t i = s.size(); i-- > 0;)
        for (const std::string_view mark : marks)
            if (same_ignoring_case(s.substr(i, mark.size()), mark) &&
                each(i + mark.size(), mark))
                return;
}
inline constexpr std::string_view box_mark = "\\boxed{";
/// Returns the text in an open brace.
inline std::string_view in_braces(std::string_view s) {
    int depth = 1;
    for (std::size_t i = 0; i < s.size(); ++i)
        if ((depth += (s[i] == '{') - (s[i] == '}')) == 0) return s.substr(0, i);
    return s;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
