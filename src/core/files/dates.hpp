// dates of recordings
#pragma once

#include "core/base/text.hpp"

#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr double latest_stamp_s = 1e11;  // the year 5000
/// Seconds from UTC of "Z", "UTC", "+02:00", "-0530" or "", else NaN.
inline double seconds_of_zone(std::string_view s) {
    s = trimmed(s);
    if (s.empty() || s == "Z" || s == "z" || s == "UTC" || s == "GMT") return 0;
    std::string digits(s.substr(1));
    if (digits.size() == 5 && digits[2] == ':') digits.erase(2, 1);
    const int n = parsed_number<int>(digits).value_or(-1);
    if ((s[0] != '+' && s[0] != '-') || n < 0 || (digits.size() != 2 && digits.size() != 4))
        return not_a_number;
    const int minutes = digits.size() == 2 ? 60 * n : 60 * (n / 100) + n % 100;
    return s[0] == '-' ? -60 * minutes : 60 * minutes;
}
/// Seconds of "2023-11-16 18:15:46.6805900", else NaN. A zone may follow; without one it is UTC.
inline double seconds_of_date(std::string_view s) {
    int f[5] = {};
    const char separators[] = "--  ::";
    for (int i = 0; i < 5; ++i) {
        f[i] = leading_number<int>(s).value_or(-1);
        const char after = separators[i < 2 ? i : i + 1];
        if (f[i] < 0 || s.empty() || (s[0] != after && !(i == 2 && s[0] == 'T')))
            return not_a_number;
        s.remove_prefix(1);
    }
    const auto second = leading_number<double>(s);
    if (!second || f[1] < 1 || f[1] > 12 || f[2] < 1 || f[2] > 31 || f[3] > 23 || f[4] > 59 ||
        *second >= 61)
        return not_a_number;
    // Since 1998-11-01: the times of recent traces keep more digits than since 1970.
    const auto days = static_cast<double>(days_of_date(f[0], f[1], f[2]) - 10531);
    return days * 86400 + f[3] * 3600 + f[4] * 60 + *second - seconds_of_zone(s);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
