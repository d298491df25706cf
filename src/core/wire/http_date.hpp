// the time that a server tells with an answer
#pragma once

#include "core/base/text.hpp"

#include <cstddef>  // size_t
#include <optional>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Days from 1970-01-01 by the civil calendar, with years that begin in March.
inline long long days_of_date(long long year, int month, int day) {
    const long long y = year - (month <= 2);
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day - 719469;
}

inline constexpr std::string_view month_names = "JanFebMarAprMayJunJulAugSepOctNovDec";

/// A Date header of these Unix seconds.
inline std::string http_date_of(long long unix_s) {
    const long long days = unix_s / 86400, at = unix_s % 86400;
    int year = 1970, month = 1;
    while (days_of_date(year + 1, 1, 1) <= days) ++year;
    while (month < 12 && days_of_date(year, month + 1, 1) <= days) ++month;
    const long long day = days - days_of_date(year, month, 1) + 1;
    return printed("%.3s, %02lld %.3s %d %02lld:%02lld:%02lld GMT",
                   &"ThuFriSatSunMonTueWed"[3 * (days % 7)], day,
                   &month_names[3 * static_cast<std::size_t>(month - 1)], year, at / 3600,
                   at / 60 % 60, at % 60);
}

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
