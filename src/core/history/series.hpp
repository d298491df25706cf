// from the lines of a history to its nights
#pragma once

#include "core/base/text.hpp"
#include "core/history/line.hpp"
#include "core/history/night.hpp"

#include <algorithm>  // any_of, find_if, min, none_of
#include <cstddef>  // size_t
#include <map>
#include <string>
#include <string_view>
#include <vector>  // erase_if

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A date's night is its last valid run, whatever that one measured.
inline bool is_valid_run(const history_run& r) {
    return r.outcome == "passed" || r.outcome == "failed" || r.outcome == "inconclusive";
}

/// Of one gate in one cohort, each date once, oldest first.
inline std::vector<const history_run*> nights_of(const history_lines& all, const std::string& gate,
                                                 const std::string& cohort) {
    std::vector<const history_run*> nights;
    for (const history_run& r : all.runs) {
        if (r.gate != gate || r.cohort != cohort || !is_valid_run(r)) continue;
        const bool is_same_date =
            !nights.empty() && nights.back()->at.compare(0, 10, r.at, 0, 10) == 0;
        if (is_same_date) nights.back() = &r;
        else nights.push_back(&r);
    }
    return nights;
}

/// How many nights each cohort of a gate has.
inline std::map<std::string, std::size_t> nights_by_cohort(const history_lines& all,
                                                           const std::string& gate) {
    std::map<std::string, std::size_t> found;
    for (const history_run& r : all.runs)
        if (r.gate == gate) found[r.cohort] = 0;
    for (auto& [cohort, nights] : found) nights = nights_of(all, gate, cohort).size();
    return found;
}

/// A mark names a run, or the date of a night.
inline bool is_about(const history_mark& m, const history_run& r) {
    return m.at == r.id || m.at == r.at || (m.at.size() == 10 && r.at.compare(0, 10, m.at) == 0);
}

/// Of the nights of a gate in a cohort those that have the statistic, and the marks that are about
/// them.
inline history_series series_of(const history_lines& all,
                                const std::vector<const history_run*>& nights,
                                const std::string& statistic) {
    history_series s;
    s.statistic = statistic;
    if (nights.empty()) return s;
    const history_run& any = *nights.front();
    for (const history_note& n : all.notes)
        if (n.gate == any.gate && (n.cohort.empty() || n.cohort == any.cohort))
            s.marks.push_back(n.mark);
    for (const history_run* r : nights) {
        const auto named = [&](const named_repeats& v) { return v.name == statistic; };
        const auto at = std::find_if(r->values.begin(), r->values.end(), named);
        if (at == r->values.end()) continue;
        const auto leaves_out = [&](const history_mark& m) {
            return m.kind == history_mark_kind::leave_out && is_about(m, *r);
        };
        s.nights.push_back({r->id, r->at, r->commit, at->repeats, r->watched,
                            std::any_of(s.marks.begin(), s.marks.end(), leaves_out)});
    }
    return s;
}

/// What was there at a date (all of that day), a time, or the last run of a commit, of which seven
/// digits are enough; "" is now. Throws std::invalid_argument where it is none of these.
inline history_lines as_of(history_lines all, const std::string& when) {
    if (when.empty()) return all;
    const char* const name = "LLMBENCH_HISTORY_AT is \"";
    std::string until;
    if (is_utc_time(when)) until = when;
    else if (is_utc_date(when)) until = when + "T23:59:60Z";
    else {
        if (when.size() < 7 || when.find_first_not_of("0123456789abcdef") != std::string::npos)
            refuse({name, printable(when, 60), "\": it must be a date such as 2026-11-23, a time "
                    "such as 2026-11-23T02:15:04Z, or a commit by 7 of its digits or more"});
        for (const history_run& r : all.runs) {
            const std::size_t n = std::min(r.commit.size(), when.size());
            if (n >= 7 && r.commit.compare(0, n, when, 0, n) == 0) until = r.at;
        }
        if (until.empty())
            refuse({name, printable(when, 60), "\": the history has no run of that commit"});
    }
    std::erase_if(all.runs, [&](const history_run& r) { return r.at > until; });
    const auto is_later = [&](const history_note& n) {
        const auto has_id = [&](const history_run& r) { return r.id == n.mark.at; };
        const bool is_dated = is_utc_date(n.mark.at) || is_utc_time(n.mark.at);
        return is_dated ? n.mark.at > until
                        : std::none_of(all.runs.begin(), all.runs.end(), has_id);
    };
    std::erase_if(all.notes, is_later);
    return all;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
