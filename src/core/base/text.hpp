// text helpers
#pragma once

#include "api/text.hpp"
#include "api/version.hpp"
#include "core/base/vector.hpp"

#include <algorithm>  // equal, count_if, min
#include <charconv>  // from_chars
#include <cmath>  // fabs, isfinite, isnan, isinf
#include <cstdarg>  // printed()
#include <cstdio>  // vsnprintf
#include <cstdlib>  // strtod_l
#include <initializer_list>
#include <limits>  // infinity
#include <optional>
#include <stdexcept>  // exception, invalid_argument, runtime_error
#include <string>
#include <string_view>
#include <system_error>  // errc
#include <type_traits>  // is_same_v

#include <locale.h>  // newlocale, uselocale

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr double largest_number = std::numeric_limits<double>::max();
inline constexpr const char* definitions_version = "metrics/1";

inline std::string str(const text& t) { return {t.c_str(), t.size()}; }

/// The C locale, whatever setlocale() was called with.
inline locale_t c_locale() {
    static const locale_t c = ::newlocale(LC_ALL_MASK, "C", nullptr);
    return c;
}
/// Numbers and system errors of this thread are in the C locale while it lives.
class in_c_locale {
public:
    in_c_locale() : before_(::uselocale(c_locale())) {}
    ~in_c_locale() { ::uselocale(before_); }
    in_c_locale(const in_c_locale&) = delete;
    in_c_locale& operator=(const in_c_locale&) = delete;

private:
    locale_t before_;
};

[[gnu::format(printf, 1, 2)]] inline std::string printed(const char* format, ...) {
    const in_c_locale with_points;
    std::va_list args;
    va_start(args, format);
    std::va_list again;
    va_copy(again, args);
    const int n = std::vsnprintf(nullptr, 0, format, args);
    va_end(args);
    std::string out(n > 0 ? static_cast<std::size_t>(n) : 0, '\0');
    if (n > 0) std::vsnprintf(out.data(), out.size() + 1, format, again);
    va_end(again);
    return out;
}

/// The version: "1.0.0", or "1.0.0-rc.1" before a release.
inline std::string version_text() {
    const std::string pre = LLMBENCH_VERSION_PRE;
    return printed("%d.%d.%d", LLMBENCH_VERSION_MAJOR, LLMBENCH_VERSION_MINOR,
                   LLMBENCH_VERSION_PATCH) +
           (pre.empty() ? "" : "-" + pre);
}

/// Returns the bytes of the UTF-8 character at s[i], 0 if invalid.
inline std::size_t utf8_length(std::string_view s, std::size_t i) {
    const auto c = static_cast<unsigned char>(s[i]);
    if (c < 0x80) return 1;
    const std::size_t length = c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3
                             : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    if (length == 0 || i + length > s.size()) return 0;
    for (std::size_t k = 1; k < length; ++k)
        if ((static_cast<unsigned char>(s[i + k]) & 0xC0) != 0x80) return 0;
    const auto next = static_cast<unsigned char>(s[i + 1]);
    const bool overlong = (c == 0xE0 && next < 0xA0) || (c == 0xF0 && next < 0x90);
    const bool outside = (c == 0xED && next > 0x9F) || (c == 0xF4 && next > 0x8F);
    return overlong || outside ? 0 : length;
}

/// The replacement of a character that controls a terminal: control characters, line ends and
/// changes of direction. "" for others.
inline std::string shown_instead(std::string_view character) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
    if (character == "\n") return "\\n";
    if (character == "\t") return "\\t";
    if (character == "\r") return "\\r";
    if (character.size() == 1 && (byte(0) < 0x20 || byte(0) == 0x7F))
        return printed("\\x%02x", static_cast<unsigned>(byte(0)));
    if (character.size() == 2 && byte(0) == 0xC2 && byte(1) < 0xA0)  // C1
        return printed("\\u%04x", static_cast<unsigned>(byte(1)));
    if (character.size() != 3 || byte(0) != 0xE2 || byte(1) > 0x81) return {};
    const unsigned code = 0x2000u | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    const bool turns = (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
    return turns ? printed("\\u%04x", code) : std::string();
}
/// Of ASCII, whatever the locale is.
constexpr bool is_letter_or_digit(char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}
/// Whether the '#' at s[i] starts a runner command, which may be anywhere in a line: "##[error]"
/// (GitHub, Azure), "##vso[" (Azure), "##teamcity[".
inline bool begins_command(std::string_view s, std::size_t i) {
    if (s[i] != '#' || i == 0 || s[i - 1] != '#') return false;
    std::size_t end = i + 1;
    while (end < s.size() && ((s[end] | 0x20) >= 'a' && (s[end] | 0x20) <= 'z')) ++end;
    return end < s.size() && s[end] == '[';
}
/// Makes text from outside harmless to terminals and CI runners, on one line. All such text passes
/// through here before any report. Invalid UTF-8 becomes U+FFFD, as do U+FFFE and U+FFFF, which XML
/// forbids. Applying it twice changes nothing.
inline std::string printable(std::string_view s, std::size_t at_most = 300) {
    std::string out;
    std::size_t i = 0;
    while (i < s.size() && out.size() < at_most) {
        if (s[i] >= ' ' && s[i] < '\x7F' && s[i] != '#') { out += s[i++]; continue; }
        std::size_t length = utf8_length(s, i);
        const bool no_character = length == 3 && s.substr(i, 2) == "\xEF\xBF" &&
                                  static_cast<unsigned char>(s[i + 2]) > 0xBD;
        if (no_character) length = 0;
        if (length == 0) { out += "\xEF\xBF\xBD"; ++i; continue; }
        const std::string instead =
            begins_command(s, i) ? "\\x23" : shown_instead(s.substr(i, length));
        out += instead.empty() ? s.substr(i, length) : std::string_view(instead);
        i += length;
    }
    if (i < s.size()) out += "...";
    return out;
}
/// Takes the part before the next of these characters off a text, and that character; all of it
/// without one.
constexpr std::string_view taken_part(std::string_view& s, std::string_view ends) {
    const std::string_view part = s.substr(0, s.find_first_of(ends));
    s.remove_prefix(std::min(part.size() + 1, s.size()));
    return part;
}
/// Lines from outside, such as the end of a log, each behind a bar: runners take a line that begins
/// with "::" for a command.
inline std::string barred_lines(std::string_view s) {
    std::string out;
    while (!s.empty()) {
        std::string_view line = taken_part(s, "\n");
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        out += "\n    | " + printable(line, 4 * line.size() + 4);
    }
    return out;
}

/// For XML and HTML. XML 1.0 has no control characters, not even escaped.
inline std::string xml_escaped(std::string_view s) {
    std::string out;
    for (const char c : printable(s, s.size() * 4 + 4)) {
        if (c == '&') out += "&amp;";
        else if (c == '<') out += "&lt;";
        else if (c == '>') out += "&gt;";
        else if (c == '"') out += "&quot;";
        else if (c == '\'') out += "&#39;";
        else out += c;
    }
    return out;
}

inline bool same_ignoring_case(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                              [&](char x, char y) { return lower(x) == lower(y); });
}

inline std::string_view trimmed(std::string_view s) {
    while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
    while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
    return s;
}

/// std::from_chars, which libc++ lacks for floating point before version 20.
inline std::from_chars_result double_from_chars(const char* first, const char* last, double& v) {
#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 200000
    const std::string number(first, last);  // strtod needs a final zero
    // Excludes blanks, plus and hexadecimal, which strtod accepts.
    const std::size_t digits = number.compare(0, 1, "-") == 0;
    const bool begins = digits < number.size() &&
                        std::string_view("0123456789.iInN").find(number[digits]) != number.npos;
    if (!begins) return {first, std::errc::invalid_argument};
    if (same_ignoring_case(std::string_view(number).substr(digits, 2), "0x")) {
        v = digits ? -0.0 : 0.0;
        return {first + digits + 1, std::errc{}};
    }
    char* end = nullptr;
    const double parsed = ::strtod_l(number.c_str(), &end, c_locale());
    const auto length = end - number.c_str();
    if (length == 0) return {first, std::errc::invalid_argument};
    const bool is_too_large = std::isinf(parsed) && (number[digits] | ' ') != 'i';
    if (!is_too_large) v = parsed;
    return {first + length, is_too_large ? std::errc::result_out_of_range : std::errc{}};
#else
    return std::from_chars(first, last, v);
#endif
}

/// Removes the number at the start of a text: 5 of "5min". Nothing without a number in range. Like
/// std::from_chars it takes no blanks and no plus, but also no "inf" and "nan".
template <class Number>
std::optional<Number> leading_number(std::string_view& s, int base = 10) {
    Number value{};
    const char* const last = s.data() + s.size();
    std::from_chars_result found{};
    if constexpr (std::is_same_v<Number, double>) found = double_from_chars(s.data(), last, value);
    else found = std::from_chars(s.data(), last, value, base);
    if (found.ec != std::errc{}) return std::nullopt;
    if constexpr (std::is_same_v<Number, double>)
        if (!std::isfinite(value)) return std::nullopt;
    s.remove_prefix(static_cast<std::size_t>(found.ptr - s.data()));
    return value;
}
/// The number of a whole text.
template <class Number>
std::optional<Number> parsed_number(std::string_view s, int base = 10) {
    const auto value = leading_number<Number>(s, base);
    return s.empty() ? value : std::nullopt;
}

/// Days from 1970-01-01 by the civil calendar, with years from March.
inline long long days_of_date(long long year, int month, int day) {
    const long long y = year - (month <= 2);
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day - 719469;
}

/// The days of "2026-12-31", nothing for an invalid date.
inline std::optional<long long> days_of_date(std::string_view s) {
    if (s.size() != 10 || s[4] != '-' || s[7] != '-') return {};
    const auto number = [&](std::size_t at, std::size_t n) {
        const bool is_number = s.substr(at, n).find_first_not_of("0123456789") == s.npos;
        return is_number ? parsed_number<int>(s.substr(at, n)).value_or(0) : 0;
    };
    const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
    if (year < 1970 || month < 1 || month > 12 || day < 1) return {};
    const long long days = days_of_date(year, month, day);
    const bool is_last = month == 12;
    if (days >= days_of_date(year + is_last, is_last ? 1 : month + 1, 1)) return {};
    return days;
}

/// The text of an exception, never empty.
inline const char* reason_in(const std::exception& e) {
    return *e.what() ? e.what() : "an exception that says nothing";
}

/// Replaces each placeholder, such as {port}, in a command or URL.
inline std::string filled_in(std::string s, std::string_view placeholder,
                             const std::string& value) {
    for (std::size_t at = 0; (at = s.find(placeholder, at)) != std::string::npos;
         at += value.size())
        s.replace(at, placeholder.size(), value);
    return s;
}

/// This many significant digits, all before the point, without an exponent: "184", "0.0042". Huge
/// numbers have one: "2e+30".
inline std::string digits_text(double v, int digits) {
    if (!std::isfinite(v) || v == 0) return printed("%g", v);
    const std::string scientific = printed("%.*e", digits - 1, v);
    std::string_view exponent = std::string_view(scientific).substr(scientific.find('e') + 1);
    if (exponent.front() == '+') exponent.remove_prefix(1);
    const int power = parsed_number<int>(exponent).value_or(0), decimals = digits - 1 - power;
    if (power >= 15 || power <= -15) return printed("%.*g", digits, v);
    if (decimals <= 0) return printed("%.0f", v);
    std::string out = printed("%.*f", decimals, v);
    out.erase(out.find_last_not_of('0') + 1);
    if (out.back() == '.') out.pop_back();
    return out;
}
/// "3 readings", "1 reading".
inline std::string plural(std::size_t n, const char* one) {
    return printed("%zu %s%s", n, one, n == 1 ? "" : "s");
}
/// Three significant digits with the unit that fits: "87.3 ms", "1.24 s".
inline std::string time_text(double seconds) {
    const double a = std::fabs(seconds);
    if (std::isnan(seconds)) return "none";
    if (std::isinf(seconds)) return "infinite";
    if (a == 0) return "0 ms";
    if (a < 0.000999) return digits_text(seconds * 1e6, 3) + " us";
    if (a < 0.9995) return printed("%.3g ms", seconds * 1e3);
    return digits_text(seconds, 3) + " s";
}

/// "a", "a and b", "a, b and c".
inline std::string enumerated(const vector<std::string>& words) {
    std::string out;
    for (std::size_t i = 0; i < words.size(); ++i)
        out += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
    return out;
}
/// Joins texts. Never inlined, as each chain of + would be compiled anew.
[[gnu::noinline]] inline std::string joined(std::initializer_list<std::string_view> parts) {
    std::string all;
    for (const std::string_view part : parts) all += part;
    return all;
}
/// Whether any element is so. The standard's function is four times as much code.
template <class List, class IsSo>
constexpr bool any_of(const List& all, IsSo&& is_so) {
    for (const auto& x : all)
        if (is_so(x)) return true;
    return false;
}
template <class List, class IsSo>
constexpr bool all_of(const List& all, IsSo&& is_so) {
    return !any_of(all, [&](const auto& x) { return !is_so(x); });
}
inline bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    return any_of(words, [&](std::string_view w) { return w == word; });
}
/// The name of an enumerator, for enumerations from 0.
template <class Enum>
constexpr const char* name_at(std::initializer_list<const char*> names, Enum e) {
    return names.begin()[static_cast<std::size_t>(e)];
}
/// Errors name the field, its value and what is allowed.
[[noreturn, gnu::noinline]] inline void refuse(std::initializer_list<std::string_view> sentence) {
    throw std::invalid_argument(joined(sentence));
}
/// A number of a scenario, and the numbers that are allowed.
struct number_of_field {
    const char* field = "";
    double value = 0, least = 0, most = 0;
    const char* unit = "";     // with its blank
    const char* allowed = "";  // default: in words of these numbers
};
inline constexpr double above_zero = std::numeric_limits<double>::denorm_min();
inline std::string allowed_text(const number_of_field& n) {
    if (*n.allowed) return n.allowed;
    const std::string most = printed("%.15g%s", n.most, n.unit);
    if (n.least == above_zero) return "must be above 0 and at most " + most;
    if (n.most < infinity) return printed("runs from %.15g to ", n.least) + most;
    return n.least == 0 ? "cannot be negative" : printed("must be at least %.15g", n.least);
}
/// Refuses the first number that is not allowed.
[[gnu::noinline]] inline void check_numbers(std::initializer_list<number_of_field> all,
                                            std::string_view given = "") {
    for (const number_of_field& n : all)
        if (!(n.value >= n.least && n.value <= n.most))
            refuse({given, n.field, printed(" is %.15g%s: it ", n.value, n.unit), allowed_text(n)});
}
/// Calls a user's function. Its exceptions become errors about `whose`.
template <class Call>
auto call_of_user(std::initializer_list<std::string_view> whose, const Call& call) {
    std::string why = " throws";
    try {
        return call();
    } catch (const std::exception& e) {
        why += std::string(": ") + printable(reason_in(e), 200);
    } catch (...) {
    }
    throw std::runtime_error(joined(whose) + why);
}

/// Without directories, which differ between machines.
inline std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Counts characters of valid UTF-8, which are columns in our texts.
inline std::size_t columns_of(std::string_view s) {
    return static_cast<std::size_t>(std::count_if(
        s.begin(), s.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// The width of a console line without two columns of indent.
inline constexpr std::size_t console_columns = 96;
/// Returns the text through the blank after the next comma or semicolon outside of brackets, or
/// all.
inline std::string_view next_clause(std::string_view s) {
    int depth = 0;
    for (std::size_t i = 0; i < s.size(); ++i) {
        depth += s[i] == '(' || s[i] == '[';
        depth -= s[i] == ')' || s[i] == ']';
        const bool ends = i > 0 && s[i] == ' ' && (s[i - 1] == ',' || s[i - 1] == ';');
        if (ends && depth <= 0) return s.substr(0, i + 1);
    }
    return s;
}
/// Returns the index of the blank after the first word; blanks may precede it.
inline std::size_t end_of_word(std::string_view s) {
    return std::min(s.find(' ', std::min(s.find_first_not_of(' '), s.size())), s.size());
}
/// Whether a text begins with a unit of the number before it.
inline bool begins_with_unit(std::string_view s) {
    return is_one_of(s.substr(0, s.find_first_of(" ,;:)]")),
                     {"%", "ns", "us", "ms", "s", "min", "h", "x", "tok/s", "req/s", "requests/s",
                      "users", "MiB", "GiB", "J", "W"});
}
/// Returns the next word with its blanks. A number and its unit are one word.
inline std::string_view next_word(std::string_view s) {
    std::size_t end = end_of_word(s);
    const bool is_number = end > 0 && s[end - 1] >= '0' && s[end - 1] <= '9';
    if (is_number && end < s.size() && begins_with_unit(s.substr(end + 1)))
        end += 1 + end_of_word(s.substr(end + 1));
    return s.substr(0, std::min(s.find_first_not_of(' ', end), s.size()));
}
/// GitHub's runner takes such a line for a command. It skips all white space known to .NET.
inline bool begins_with_colons(std::string_view s) {
    const auto is_wide_space = [&] {  // of three bytes
        const std::string_view c = s.substr(0, 3);
        return c == "\u1680" || c == "\u202F" || c == "\u205F" || c == "\u3000" ||
               (c >= "\u2000" && c <= "\u200A");
    };
    while (!s.empty()) {
        const std::size_t blank = s[0] == ' ' || (s[0] >= '\t' && s[0] <= '\r') ? 1
                                : s.substr(0, 2) == "\u00A0"                   ? 2
                                : is_wide_space()                              ? 3 : 0;
        if (blank == 0) break;
        s.remove_prefix(blank);
    }
    return s.substr(0, 2) == "::";
}
/// Lines of at most `width` columns, broken between clauses, or words in long clauses. Later lines
/// have an `indent`. Text from outside may look like a command, so no line is broken before one.
inline std::string wrapped(std::string_view s, std::size_t width, std::size_t indent) {
    std::string out, line;
    const auto columns = [](std::string_view piece) {
        const std::size_t last = piece.find_last_not_of(' ');
        return columns_of(piece.substr(0, last == std::string_view::npos ? 0 : last + 1));
    };
    const auto end_line = [&] {
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
        line.assign(indent, ' ');
    };
    const auto is_begun = [&] { return line.find_first_not_of(' ') != std::string::npos; };
    const char* const end = s.data() + s.size();
    const auto may_begin_line = [&](std::string_view piece) {
        return !begins_with_colons({piece.data(), static_cast<std::size_t>(end - piece.data())});
    };
    const auto add = [&](std::string_view piece) {
        if (is_begun() && columns_of(line) + columns(piece) > width && may_begin_line(piece))
            end_line();
        line += piece;
    };
    while (!s.empty()) {
        std::string_view clause = next_clause(s);
        s.remove_prefix(clause.size());
        if (indent + columns(clause) <= width) {
            add(clause);
            continue;
        }
        while (!clause.empty()) {
            const std::string_view word = next_word(clause);
            add(word);
            clause.remove_prefix(word.size());
        }
    }
    return out + line;
}

/// Wraps each line of a text for a console.
inline std::string wrapped_lines(std::string_view text) {
    std::string out;
    while (true) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        out += wrapped(text.substr(0, end), console_columns, 6);
        if (end == text.size()) return out;
        out += '\n';
        text.remove_prefix(end + 1);
    }
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
