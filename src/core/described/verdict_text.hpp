// verdicts in words
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/metric/value_text.hpp"
#include "core/judging/decision.hpp"
#include "core/described/sentences.hpp"

#include <algorithm>  // unique
#include <cmath>  // isfinite, isnan, fabs
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What a verdict rests on beside what was measured: "typical repeat"; where requests are counted
/// those of the first repeats, if more came after the decision; "" where it is the same.
inline std::string basis_name(const verdict_numbers& v) {
    if (std::isnan(v.estimate.value)) return {};
    const std::string unit = name_of(v.counted_in);
    if (!is_counted(v)) return "typical " + unit;
    if (v.estimate.value == v.measured) return {};
    return v.repeats == 1 ? "first " + unit : printed("first %d %ss", v.repeats, unit.c_str());
}
inline bool has_interval(const verdict_numbers& v) {
    const estimate_t& e = v.estimate;
    return !std::isnan(e.low) && !std::isnan(e.high) && e.low != e.high;
}

/// The guard on errors also passes where that is only what was observed: it need not be shown.
inline bool is_only_observed(const verdict_numbers& v) {
    return v.outcome == verdict::pass && v.what.what.metric == metric_id::error_rate &&
           v.estimate.high > v.limit;
}
/// What a verdict is called: no pass where nothing is shown.
inline const char* verdict_text(const verdict_numbers& v) {
    return is_only_observed(v) ? "observed" : to_string(v.outcome);
}
/// The verdict in whose colour it is shown.
inline verdict verdict_like(const verdict_numbers& v) {
    return is_only_observed(v) ? verdict::skipped : v.outcome;
}

/// A verdict's line in its parts: which objective, what was found, and what that rests on.
struct verdict_parts {
    std::string name{}, found{}, room{}, joint{}, basis{};
};
inline std::string found_text(const verdict_numbers& v) {
    const metric_id metric = v.what.what.metric;
    const auto shown = [&](double x) {
        const bool ratio = v.what.factor > 0 && std::isfinite(x);
        return ratio ? printed("%.3f x baseline", x) : value_text(metric, x);
    };
    std::string t = "measured " + shown(v.measured);
    const std::string basis = basis_name(v);
    if (!basis.empty() && shown(v.estimate.value) != shown(v.measured))
        t += ", " + basis + " " + shown(v.estimate.value);
    if (has_interval(v)) t += " [" + shown(v.estimate.low) + ", " + shown(v.estimate.high) + "]";
    return t;
}
/// `width`: to what the SLO's text is padded, so that the lines of a gate align.
inline verdict_parts parts_of(const slo_verdict& v, std::size_t width) {
    std::string word = verdict_text(v);
    for (char& c : word) c = static_cast<char>(c - 'a' + 'A');
    verdict_parts p;
    p.name = printed("%-12s  %-*s", word.c_str(), static_cast<int>(width), v.what.text().c_str());
    const std::string unit = str(v.unit), reason = str(v.reason);
    const std::string counted =
        printed("%d %s%s", v.repeats, unit.c_str(), v.repeats == 1 ? "" : "s");
    if (is_capacity(v.what.what.metric)) {  // its numbers are loads, and its reason tells them
        if (v.repeats > 0)
            p.found = counted + (v.counted_in == verdict_unit::pair ? "" : " at the limit") +
                      printed(" x %lld requests", v.requests / v.repeats);
        p.joint = p.found.empty() || reason.empty() ? "" : "; ";
        p.basis = reason;
        return p;
    }
    p.found = found_text(v);
    if (const double room = headroom(v);
        !std::isnan(room) && !is_request_fraction(v.what.what.metric))
        p.room = printed(", %.1f %% %s the limit", std::fabs(room) * 100,
                         room >= 0 ? "inside" : "outside");
    const bool stages = v.counted_in == verdict_unit::stage;
    if (v.repeats > 0)
        p.basis = counted + (stages ? printed(" of fresh traffic, %lld requests", v.requests)
                                    : printed(" x %lld requests", v.requests / v.repeats));
    const auto add = [&](const std::string& more) {
        p.basis += (p.basis.empty() ? "" : ", ") + more;
    };
    if (!v.method.empty()) add(str(v.method));
    if (v.detectable > 0)
        add((is_counted(v) ? "shows misses from " : "shows a miss from ") +
            (v.detectable > 10 ? "over 1000" : digits_text(v.detectable * 100, 2)) + " %");
    p.joint = p.basis.empty() ? reason.empty() ? "" : "; " : ", ";
    if (!reason.empty()) p.basis += (p.basis.empty() ? "" : "; ") + reason;
    return p;
}
inline std::string verdict_line(const slo_verdict& v, std::size_t width = 0) {
    const verdict_parts p = parts_of(v, width);
    return p.name + (p.found.empty() && p.basis.empty() ? "" : "  ") + p.found + p.room +
           p.joint + p.basis;
}

/// The same on lines that fit a console.
inline std::string verdict_lines(const slo_verdict& v, std::size_t width = 0) {
    return wrapped(verdict_line(v, width), console_columns, 6);
}
/// In a few words, where its line stands elsewhere: "FAIL, measured 39.2 ms".
inline std::string verdict_in_short(const slo_verdict& v) {
    const verdict_parts p = parts_of(v, 0);
    const std::string word = p.name.substr(0, p.name.find(' '));
    const bool is_measured = !p.found.empty() && !std::isnan(v.measured);
    const std::string what = is_measured ? p.found + p.room : str(v.reason);
    return word + (what.empty() ? "" : (is_measured ? ", " : ": ") + what);
}

/// A verdict's line without the spaces that align it.
inline std::string flat_line(const slo_verdict& v) {
    std::string line = verdict_line(v);
    line.erase(std::unique(line.begin(), line.end(),
                           [](char a, char b) { return a == ' ' && b == ' '; }),
               line.end());
    return line;
}

/// "measured 39.2 ms, typical repeat 39.1 ms".
inline std::string measured_text(const verdict_numbers& v) {
    const std::string basis = basis_name(v);
    return "measured " + verdict_value_text(v, v.measured) +
           (basis.empty() ? "" : ", " + basis + " " + verdict_value_text(v, v.estimate.value));
}

inline std::string verdict_limit_text(const verdict_numbers& v) {
    return v.what.factor > 0 ? digits_text(v.limit, 6) + " x"
                             : limit_text(v.what.what.metric, v.limit);
}
/// "56.6 % outside the limit", "" where that says nothing.
inline std::string room_text(const verdict_numbers& v) {
    const double room = headroom(v);
    if (std::isnan(room) || is_request_fraction(v.what.what.metric)) return {};
    return digits_text(std::fabs(room) * 100, 3) + " % " + (room >= 0 ? "inside" : "outside") +
           " the limit";
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
