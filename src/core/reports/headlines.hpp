// headlines of gates, and rehearsals
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/judging/outcome.hpp"
#include "core/reports/gate_report.hpp"

#include <algorithm>  // any_of
#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The outcome of a gate, with several kinds of pass; exit codes have only the outcome. The most
/// urgent is first.
enum class headline : unsigned char {
    failed, refused, invalid, inconclusive, skipped, calibrated, rehearsed, measured, passed
};
inline const char* to_string(headline h) {
    return name_at({"failed", "refused", "invalid", "inconclusive", "skipped", "calibrated",
                    "rehearsed", "measured", "passed"}, h);
}
/// Returns the verdict whose colour a headline has.
inline verdict verdict_like(headline h) {
    if (h == headline::failed) return verdict::fail;
    if (h == headline::inconclusive) return verdict::inconclusive;
    if (h == headline::passed) return verdict::pass;
    const bool has_no_data = h == headline::refused || h == headline::invalid;
    return has_no_data ? verdict::invalid : verdict::skipped;
}

/// Whether a user wrote it and it can fail the gate. Nobody writes the guard on errors.
inline bool is_own_objective(const slo_verdict& v) {
    const bool is_guard = v.what.what.metric == metric_id::error_rate && v.what.at.line == 0;
    return !v.what.is_advisory && !is_guard;
}
inline std::size_t undecided_objectives(const gate_report& g) {
    std::size_t n = 0;
    for (const slo_verdict& v : g.verdicts)
        n += v.outcome == verdict::inconclusive && !v.what.is_advisory;
    return n;
}

inline headline headline_of(const gate_report& g) {
    if (g.outcome == gate_outcome::failed) return headline::failed;
    if (g.outcome == gate_outcome::refused) return headline::refused;
    if (g.outcome == gate_outcome::invalid || g.outcome == gate_outcome::unfinished)
        return headline::invalid;
    if (!g.calibration.empty()) return headline::calibrated;
    if (!g.rehearsal.model.empty()) return headline::rehearsed;
    if (undecided_objectives(g) > 0) return headline::inconclusive;
    if (g.outcome == gate_outcome::skipped) return headline::skipped;
    const bool shows_any =
        std::any_of(g.verdicts.begin(), g.verdicts.end(), is_own_objective);
    return shows_any ? headline::passed : headline::measured;
}
inline std::size_t count_of(const std::vector<gate_report>& gates, headline h) {
    std::size_t n = 0;
    for (const gate_report& g : gates) n += headline_of(g) == h;
    return n;
}
inline std::vector<const gate_report*> most_urgent_first(const std::vector<gate_report>& gates) {
    std::vector<const gate_report*> sorted;
    for (int h = 0; h <= static_cast<int>(headline::passed); ++h)
        for (const gate_report& g : gates)
            if (headline_of(g) == static_cast<headline>(h)) sorted.push_back(&g);
    return sorted;
}
/// "inconclusive, 1 of 4 objectives"
inline std::string headline_text(const gate_report& g) {
    const headline h = headline_of(g);
    if (h != headline::inconclusive) return to_string(h);
    const std::size_t open = undecided_objectives(g);
    std::size_t all = 0;
    for (const slo_verdict& v : g.verdicts)
        all += is_own_objective(v) ||
               (v.outcome == verdict::inconclusive && !v.what.is_advisory);
    return printed("inconclusive, %zu of %s", open, plural(all, "objective").c_str());
}

/// Returns the note on a rehearsed gate.
inline std::string rehearsal_text(const gate_report& g) {
    return "a REHEARSAL on " + g.rehearsal.model + ", in virtual time: nothing was sent, and "
           "nothing is shown of any server; on one it takes " + time_text(g.took_s) +
           ", and what it takes to start";
}
/// Returns the same for a whole program, "" if it rehearsed nothing.
inline std::string rehearsal_of_all(const std::vector<gate_report>& gates) {
    std::size_t n = 0;
    double took_s = 0;
    for (const gate_report& g : gates) {
        if (g.rehearsal.model.empty()) continue;
        ++n;
        if (g.refusal.empty()) took_s += g.took_s;
    }
    return n == 0 ? std::string()
                  : "REHEARSAL of " + plural(n, "gate") + " on a model: nothing was sent, and "
                        "nothing is shown of any server; on servers it takes " +
                        time_text(took_s) + ", and what they take to start";
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
