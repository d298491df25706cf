// numbers as Go reads them
// Prometheus accepts on a page what strconv.ParseFloat accepts.
#pragma once

#include "core/base/text.hpp"

#include <algorithm>  // min, max
#include <charconv>  // from_chars_result
#include <cmath>  // ldexp, isinf
#include <cstddef>  // size_t
#include <cstdint>  // int64_t, uint64_t
#include <optional>
#include <string_view>
#include <system_error>  // errc

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The number after "0x" with a binary exponent, such as 1.8p1. Digits beyond a double leave a
/// sticky bit for correct rounding.
inline std::optional<double> hex_float(std::string_view s) {
    std::uint64_t digits = 0;
    int exponent = 0;
    bool any = false, behind_point = false;
    for (; !s.empty() && (s.front() | 0x20) != 'p'; s.remove_prefix(1)) {
        if (s.front() == '.' && !behind_point) {
            behind_point = true;
            continue;
        }
        const auto digit = parsed_number<unsigned>(s.substr(0, 1), 16);
        if (!digit) return std::nullopt;
        any = true;
        if (digits >> 60 == 0) {
            digits = digits << 4 | *digit;
            exponent -= behind_point ? 4 : 0;
        } else {
            digits |= *digit != 0;
            exponent += behind_point ? 0 : 4;
        }
    }
    if (!any || s.empty()) return std::nullopt;
    s.remove_prefix(1);
    if (!s.empty() && s.front() == '+' && s.substr(1, 1) != "-") s.remove_prefix(1);
    const auto power = parsed_number<int>(s);
    if (!power) return std::nullopt;
    const int limited = std::min(std::max(*power, -1000000), 1000000);  // so that the sum is an int
    const double value = std::ldexp(static_cast<double>(digits), exponent + limited);
    return std::isinf(value) ? std::nullopt : std::optional(value);
}

/// Whether a decimal number outside of double's range is too small, not too large.
inline bool is_tiny(std::string_view s) {
    const std::size_t e = std::min(s.find_first_of("eE"), s.size());
    const std::string_view mantissa = s.substr(0, e);
    const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
    const std::size_t first = mantissa.find_first_of("123456789");
    if (first == std::string_view::npos) return true;
    std::string_view power = e < s.size() ? s.substr(e + 1) : "0";
    const bool is_below = power.substr(0, 1) == "-";
    if (is_below || power.substr(0, 1) == "+") power.remove_prefix(1);
    const auto places = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
    const std::int64_t size = parsed_number<std::int64_t>(power).value_or(INT64_MAX / 2);
    return (is_below ? -size : size) + places < 0;
}

/// A value of a page: decimal or hexadecimal, infinite and NaN in any case. As in Go, a number that
/// is too large is invalid, and one that is too small is 0.
inline std::optional<double> go_float(std::string_view s) {
    const bool minus = s.substr(0, 1) == "-", is_signed = minus || s.substr(0, 1) == "+";
    if (!is_signed && same_ignoring_case(s, "nan")) return not_a_number;
    if (is_signed) s.remove_prefix(1);
    const auto with_sign = [&](double v) { return minus ? -v : v; };
    if (same_ignoring_case(s, "inf") || same_ignoring_case(s, "infinity"))
        return with_sign(infinity);
    if (same_ignoring_case(s.substr(0, 2), "0x")) {
        const auto value = hex_float(s.substr(2));
        return value ? std::optional(with_sign(*value)) : std::nullopt;
    }
    if (s.empty() || std::string_view("0123456789.").find(s.front()) == std::string_view::npos)
        return std::nullopt;
    double value = 0;
    const char* const last = s.data() + s.size();
    const std::from_chars_result found = double_from_chars(s.data(), last, value);
    if (found.ptr != last || found.ec == std::errc::invalid_argument) return std::nullopt;
    if (found.ec == std::errc{}) return with_sign(value);
    return is_tiny(s) ? std::optional(with_sign(0)) : std::nullopt;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
