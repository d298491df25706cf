// verdicts in words
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/metric/words.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // unique
#include <cmath>  // isfinite, isnan, fabs
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// How far inside the limit the estimate is, relative; negative outside.
inline double headroom(const slo_verdict& v) {
    if (!std::isfinite(v.estimate.value) || v.limit == 0) return not_a_number;
    return (v.what.at_most ? 1 : -1) * (1 - v.estimate.value / v.limit);
}

/// What a verdict rests on beside what was measured: "typical repeat"; where requests are counted
/// those of the first repeats, if more came after the decision; "" where it is the same.
inline std::string basis_name(const slo_verdict& v) {
    if (std::isnan(v.estimate.value)) return {};
    const std::string unit = v.unit.empty() ? "repeat" : str(v.unit);
    if (!is_counted(v)) return "typical " + unit;
    if (v.estimate.value == v.measured) return {};
    return v.repeats == 1 ? "first " + unit : printed("first %d %ss", v.repeats, unit.c_str());
}
inline bool has_interval(const slo_verdict& v) {
    const estimate_t& e = v.estimate;
    return !std::isnan(e.low) && !std::isnan(e.high) && e.low != e.high;
}

/// `width`: to what the SLO's text is padded, so that the lines of a gate align.
inline std::string verdict_line(const slo_verdict& v, std::size_t width = 0) {
    const metric_id metric = v.what.what.metric;
    const auto shown = [&](double x) {
        const bool ratio = v.what.factor > 0 && std::isfinite(x);
        return ratio ? printed("%.3f x baseline", x) : value_text(metric, x);
    };
    std::string name = to_string(v.outcome);
    for (char& c : name) c = static_cast<char>(c - 'a' + 'A');
    std::string line =
        printed("%-12s  %-*s", name.c_str(), static_cast<int>(width), v.what.text().c_str());
    if (is_capacity(metric)) {  // its numbers are loads, and its reason tells them
        const char* of = str(v.unit) == "pair" ? "" : " at the limit";
        if (v.repeats > 0)
            line += printed("  %d %s%s%s x %lld requests", v.repeats, v.unit.c_str(),
                            v.repeats == 1 ? "" : "s", of, v.requests / v.repeats);
        return line + (v.reason.empty() ? "" : (v.repeats > 0 ? "; " : "  ") + str(v.reason));
    }
    line += "  measured " + shown(v.measured);
    if (const std::string basis = basis_name(v); !basis.empty())
        line += ", " + basis + " " + shown(v.estimate.value);
    if (has_interval(v))
        line += " [" + shown(v.estimate.low) + ", " + shown(v.estimate.high) + "]";
    const double room = headroom(v);
    if (!std::isnan(room) && !is_share(metric))
        line += printed(", %.1f %% %s the limit", std::fabs(room) * 100,
                        room >= 0 ? "inside" : "outside");
    const bool stages = str(v.unit) == "stage";
    if (v.repeats > 0)
        line += printed(", %d %s%s %s %lld requests", v.repeats, v.unit.c_str(),
                        v.repeats == 1 ? "" : "s", stages ? "of fresh traffic," : "x",
                        stages ? v.requests : v.requests / v.repeats);
    if (!v.method.empty()) line += ", " + str(v.method);
    if (v.detectable > 0 && is_counted(v))
        line += printed(", shows misses from %.2g %%", v.detectable * 100);
    else if (v.detectable > 0)
        line += printed(", shows a miss from %.2g %%", v.detectable * 100);
    if (!v.reason.empty()) line += "; " + str(v.reason);
    return line;
}

/// A verdict's line without the spaces that align it.
inline std::string flat_line(const slo_verdict& v) {
    std::string line = verdict_line(v);
    line.erase(std::unique(line.begin(), line.end(),
                           [](char a, char b) { return a == ' ' && b == ' '; }),
               line.end());
    return line;
}

/// Whether a pass is only what was observed: of the guard on errors, which need not be shown.
inline bool is_only_observed(const slo_verdict& v) {
    return v.outcome == verdict::pass && v.what.what.metric == metric_id::error_rate &&
           v.estimate.high > v.limit;
}

/// A value in an objective's unit: as a ratio where it is held against a baseline.
inline std::string verdict_value_text(const slo_verdict& v, double x) {
    return v.what.factor > 0 && std::isfinite(x) ? printed("%.3f x", x)
                                                 : value_text(v.what.what.metric, x);
}

/// "measured 39.2 ms, typical repeat 39.1 ms".
inline std::string measured_text(const slo_verdict& v) {
    const std::string basis = basis_name(v);
    return "measured " + verdict_value_text(v, v.measured) +
           (basis.empty() ? "" : ", " + basis + " " + verdict_value_text(v, v.estimate.value));
}

inline std::string verdict_limit_text(const slo_verdict& v) {
    return v.what.factor > 0 ? printed("%.6g x", v.limit) : limit_text(v.what.what.metric, v.limit);
}
/// "56.6 % outside the limit", "" where that says nothing.
inline std::string room_text(const slo_verdict& v) {
    const double room = headroom(v);
    if (std::isnan(room) || is_share(v.what.what.metric)) return {};
    return printed("%.3g %% %s the limit", std::fabs(room) * 100, room >= 0 ? "inside" : "outside");
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
