// the Date header of an answer
#pragma once

#include "core/base/text.hpp"

#include <cstddef>  // size_t
#include <optional>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v0 {
namespace detail {

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

inline constexpr std::string_view month_names = "JanFebMarAprMayJunJulAugSepOctNovDec";

/// Unix seconds of a Date header, "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, 5.6.7).
inline std::optional<double> seconds_of_http_date(std::string_view s) {
    if (s.size() != 29 || s.substr(25) != " GMT" || s.substr(3, 2) != ", ") return {};
    const auto number = [&](std::size_t at, std::size_t n) {
        return parsed_number<int>(s.substr(at, n)).value_or(-1);
    };
    const std::size_t month = month_names.find(s.substr(8, 3));
    const int day = number(5, 2), year = number(12, 4);
    const int hour = number(17, 2), minute = number(20, 2), second = number(23, 2);
    const bool is_date = month != std::string_view::npos && month % 3 == 0 && day >= 1 &&
                         day <= 31 && year >= 1970 && hour >= 0 && hour <= 23 && minute >= 0 &&
                         minute <= 59 && second >= 0 && second <= 60;
    if (!is_date) return {};
    return 86400.0 * static_cast<double>(days_of_date(year, static_cast<int>(month) / 3 + 1, day)) +
           3600 * hour + 60 * minute + second;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
