// numbers as written by people and models
#pragma once

#include "core/base/text.hpp"

#include <algorithm>  // max, min
#include <cstddef>  // size_t
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
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
inline std::size_t past_digits(std::string_view s, std::size_t i) {
    while (is_digit(s, i)) ++i;
    return i;
}

/// A number in a text, or text that only looks like one: "1,5", "3/4", "2:30", "1.2.3", "1e6".
struct number_in_text {
    std::size_t begin = 0, end = 0;
    std::string is{};  // "-1234.5", the same for the same number; empty: only looks like one
};

/// Moves `begin` to the sign of the number, before or after a `$`. A difference has no sign.
inline bool takes_minus(std::string_view s, std::size_t& begin) {
    const std::size_t at = begin - (begin > 0 && s[begin - 1] == '$');
    for (const std::string_view minus : {"-", "\xE2\x88\x92"}) {
        if (!s.substr(0, at).ends_with(minus)) continue;
        const std::size_t sign = at - minus.size();
        if (sign > 0 && (is_digit(s, sign - 1) || is_letter(s, sign - 1) ||
                         holds_byte(")]}%-_", s[sign - 1])))
            return false;
        begin = sign;
        return true;
    }
    return false;
}
/// Reads the number whose first digit, or point, is here.
inline number_in_text number_at(std::string_view s, std::size_t i) {
    number_in_text t{.begin = i, .end = past_digits(s, i)};
    std::string whole(s.substr(i, t.end - i)), decimals;
    if (t.end - i <= 3)  // thousands
        while (s.substr(t.end, 1) == "," && past_digits(s, t.end + 1) == t.end + 4) {
            whole += s.substr(t.end + 1, 3);
            t.end += 4;
        }
    if (s.substr(t.end, 1) == "." && is_digit(s, t.end + 1)) {
        const std::size_t from = t.end + 1;
        t.end = past_digits(s, from);
        decimals = s.substr(from, t.end - from);
    }
    const bool is_negative = takes_minus(s, t.begin);
    const auto goes_on = [&] {
        if (t.end >= s.size() || !holds_byte(",./:^eE", s[t.end])) return false;
        const bool is_power = holds_byte("^eE", s[t.end]);
        const std::size_t next = s.find_first_not_of(is_power ? "-+{" : "", t.end + 1);
        return is_digit(s, next);
    };
    if (goes_on()) {
        while (goes_on()) t.end = past_digits(s, s.find_first_of("0123456789", t.end));
        return t;
    }
    whole.erase(0, whole.find_first_not_of('0'));
    decimals.erase(decimals.find_last_not_of('0') + 1);
    const bool is_zero = whole.empty() && decimals.empty();
    t.is = (is_negative && !is_zero ? "-" : "") + (whole.empty() ? "0" : whole) +
           (decimals.empty() ? "" : "." + decimals);
    return t;
}
/// The numbers of a text, in order. Digits after a letter, ^ or _ are a name or an exponent:
/// "CO2", "cm^2", "x_{1}".
template <class Each>
void each_number(std::string_view s, Each&& each) {
    for (std::size_t i = 0; i < s.size();) {
        if (!is_digit(s, i) && !(s[i] == '.' && is_digit(s, i + 1))) { ++i; continue; }
        const std::size_t before = i - (i > 0 && s[i - 1] == '{');
        const bool is_of_a_name = before > 0 && (holds_byte("^_", s[before - 1]) ||
                                                 (before == i && is_letter(s, i - 1)));
        const number_in_text t = number_at(s, i);
        if (!is_of_a_name) each(t);
        i = std::max(t.end, i + 1);
    }
}
/// The number that is the whole text, "" if it is none.
inline std::string whole_number(std::string_view text) {
    const std::string_view s = without_space(text);
    std::string found;
    each_number(s, [&](const number_in_text& t) {
        const bool begins = t.begin == 0 || (t.begin == 1 && holds_byte("$+", s[0]));
        const bool ends = t.end == s.size() || (t.end + 1 == s.size() && s.back() == '.');
        if (begins && ends) found = t.is;
    });
    return found;
}
/// The number right after the last "####", else the last one.
inline number_in_text number_in_answer(std::string_view s) {
    number_in_text last;
    const std::size_t mark = s.rfind("####");
    const std::size_t stated =
        mark == std::string_view::npos ? mark : s.find_first_not_of("# *_$-+\t", mark);
    bool is_stated = false;
    each_number(s, [&](const number_in_text& t) {
        if (is_stated) return;
        last = t;
        is_stated = stated < t.end && t.begin <= stated;
    });
    return last;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
