// objectives that are advisory until a date
#pragma once

#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/wire/http_date.hpp"

#include <cstddef>  // size_t
#include <optional>
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr long long told_days_before = 7;

/// Returns the day from which it blocks, if it has one. Throws std::invalid_argument for a bad
/// date.
inline std::optional<long long> day_of_end(const slo& s) {
    if (s.advisory_until.empty()) return {};
    const std::string date = str(s.advisory_until);
    const std::optional<long long> day = days_of_date(date);
    if (!day)
        refuse({"the SLO ", str(s.text()), " is refused: until(\"", printable(date, 40),
                "\") names no day, which is one of UTC, such as until(\"2026-12-31\")"});
    return day;
}
/// Returns the objective as it counts on a day, in days since 1970-01-01.
inline slo on_day(slo s, long long today) {
    if (const auto end = day_of_end(s)) s.is_advisory = today < *end;
    return s;
}
/// Returns the note of reports on that day, "" unless its end is near.
inline std::string end_text(slo s, long long today) {
    const std::optional<long long> end = day_of_end(s);
    if (!end || today < *end - told_days_before) return {};
    s.is_advisory = false;
    const std::string of = str(s.text()), date = str(s.advisory_until);
    if (today >= *end) return of + " was advisory until " + date + ": it blocks again";
    return of + " is advisory until " + date + ": it blocks again in " +
           plural(static_cast<std::size_t>(*end - today), "day");
}
inline slo_list on_day(const slo_list& slos, long long today) {
    slo_list all;
    for (const slo& s : slos) all.push_back(on_day(s, today));
    return all;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
