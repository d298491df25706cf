// from the lines of a history to its series
#pragma once

#include "core/base/text.hpp"
#include "extensions/history/core/line.hpp"
#include "extensions/history/core/night.hpp"

#include <algorithm>  // any_of, find_if, min, none_of
#include <cstddef>  // size_t
#include <map>
#include <string>
#include <string_view>
#include <vector>  // erase_if

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A date's run is its last valid one, whatever it measured.
inline bool is_valid_run(const history_run& r) {
    return r.outcome == "passed" || r.outcome == "failed" || r.outcome == "inconclusive";
}

/// The runs of one gate in one series, one a date, oldest first.
inline std::vector<const history_run*> nights_of(const history_lines& all, const std::string& gate,
                                                 const std::string& run_series) {
    std::vector<const history_run*> nights;
    for (const history_run& r : all.runs) {
        if (r.gate != gate || r.run_series != run_series || !is_valid_run(r)) continue;
        const bool is_same_date =
            !nights.empty() && nights.back()->at.compare(0, 10, r.at, 0, 10) == 0;
        if (is_same_date) nights.back() = &r;
        else nights.push_back(&r);
    }
    return nights;
}

/// The number of runs of each series of a gate.
inline std::map<std::string, std::size_t> nights_by_cohort(const history_lines& all,
                                                           const std::string& gate) {
    std::map<std::string, std::size_t> found;
    for (const history_run& r : all.runs)
        if (r.gate == gate) found[r.run_series] = 0;
    for (auto& [run_series, nights] : found) nights = nights_of(all, gate, run_series).size();
    return found;
}

/// An annotation names a run, or its date.
inline bool is_about(const annotation& m, const history_run& r) {
    return m.at == r.id || m.at == r.at || (m.at.size() == 10 && r.at.compare(0, 10, m.at) == 0);
}

/// The runs of a gate in a series that have the statistic, and their annotations.
inline history_series series_of(const history_lines& all,
                                const std::vector<const history_run*>& nights,
                                const std::string& statistic) {
    history_series s;
    s.statistic = statistic;
    if (nights.empty()) return s;
    const history_run& any = *nights.front();
    for (const history_note& n : all.notes)
        if (n.gate == any.gate && (n.run_series.empty() || n.run_series == any.run_series))
            s.marks.push_back(n.mark);
    for (const history_run* r : nights) {
        const auto named = [&](const named_repeats& v) { return v.name == statistic; };
        const auto at = std::find_if(r->values.begin(), r->values.end(), named);
        if (at == r->values.end()) continue;
        const auto leaves_out = [&](const annotation& m) {
            return m.kind == annotation_kind::leave_out && is_about(m, *r);
        };
        s.nights.push_back({r->id, r->at, r->commit, at->repeats, r->watched,
                            std::any_of(s.marks.begin(), s.marks.end(), leaves_out)});
    }
    return s;
}

/// The history at a date (all of that day), a time, or the last run of a commit (seven digits are
/// enough); "": now. Throws std::invalid_argument for other text.
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
