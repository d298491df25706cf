// headlines of gates
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/judging/outcome.hpp"
#include "core/reports/gate_report.hpp"

#include <algorithm>  // any_of
#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The outcome of a gate, with several kinds of pass; exit codes have only the outcome. The most
/// urgent is first.
enum class headline : unsigned char {
    failed, refused, invalid, inconclusive, skipped, calibrated, rehearsed, measured, passed
};
inline constexpr headline headlines[] = {
    headline::failed,     headline::refused,   headline::invalid,  headline::inconclusive,
    headline::skipped,    headline::calibrated, headline::rehearsed, headline::measured,
    headline::passed};

inline const char* to_string(headline h) {
    switch (h) {
    case headline::failed: return "failed";
    case headline::refused: return "refused";
    case headline::invalid: return "invalid";
    case headline::inconclusive: return "inconclusive";
    case headline::skipped: return "skipped";
    case headline::calibrated: return "calibrated";
    case headline::rehearsed: return "rehearsed";
    case headline::measured: return "measured";
    case headline::passed: break;
    }
    return "passed";
}
/// Returns the verdict whose colour a headline has.
inline verdict verdict_like(headline h) {
    switch (h) {
    case headline::failed: return verdict::fail;
    case headline::inconclusive: return verdict::inconclusive;
    case headline::passed: return verdict::pass;
    case headline::refused:
    case headline::invalid: return verdict::invalid;
    case headline::skipped:
    case headline::calibrated:
    case headline::rehearsed:
    case headline::measured: break;
    }
    return verdict::skipped;
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
    switch (g.outcome) {
    case gate_outcome::failed: return headline::failed;
    case gate_outcome::refused: return headline::refused;
    case gate_outcome::unfinished:
    case gate_outcome::invalid: return headline::invalid;
    case gate_outcome::skipped:
    case gate_outcome::passed: break;
    }
    if (!g.calibration.empty()) return headline::calibrated;
    if (!g.rehearsal.model.empty()) return headline::rehearsed;
    if (undecided_objectives(g) > 0) return headline::inconclusive;
    if (g.outcome == gate_outcome::skipped) return headline::skipped;
    const bool shows_any =
        std::any_of(g.verdicts.begin(), g.verdicts.end(), is_own_objective);
    return shows_any ? headline::passed : headline::measured;
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

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
