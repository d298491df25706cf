// dates of HTTP
#pragma once

#include "core/base/text.hpp"

#include <string_view>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Seconds since 1970 of "Sun, 06 Nov 1994 08:49:37 GMT", NaN for anything else.
inline double seconds_of_http_date(std::string_view s) {
    constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (s.size() != 29 || s.substr(3, 2) != ", " || s.substr(25) != " GMT") return not_a_number;
    const auto part = [&](std::size_t at, std::size_t length) {
        return parsed_number<int>(s.substr(at, length)).value_or(-1);
    };
    const std::size_t named = months.find(s.substr(8, 3));
    const int day = part(5, 2), hour = part(17, 2), minute = part(20, 2), second = part(23, 2);
    if (named == std::string_view::npos || named % 3 != 0 || day < 1 || day > 31 || hour < 0 ||
        hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 || part(12, 4) < 1970)
        return not_a_number;
    // Days by the civil calendar, with years that begin in March.
    const int month = static_cast<int>(named / 3 + 10) % 12, year = part(12, 4) - (month > 9);
    const double days = 365.0 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 +
                        day - 719469;
    return days * 86400 + hour * 3600 + minute * 60 + second;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
