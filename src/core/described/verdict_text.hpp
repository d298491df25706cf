// verdicts in words
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/judging/decision.hpp"
#include "core/described/causes.hpp"
#include "core/described/limits.hpp"

#include <algorithm>  // unique
#include <cmath>  // isfinite, isnan, fabs
#include <initializer_list>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Returns the name of the value that is judged, "" if it is the measured one: "typical repeat", or
/// of counted requests "first 3 repeats" if more came after the decision.
inline std::string basis_name(const verdict_numbers& v) {
    if (std::isnan(v.estimate.value)) return {};
    const std::string unit = name_of(v.counted_in);
    if (!is_counted(v)) return "typical " + unit;
    if (v.estimate.value == v.measured) return {};
    const bool is_one = v.repeats == 1;
    return filled("first [{repeats} ]{unit}{is_one?|s}",
                  {{"repeats", is_one ? 0 : v.repeats}, {"unit", unit}, {"is_one", is_one}});
}
inline bool has_interval(const verdict_numbers& v) {
    const estimate_t& e = v.estimate;
    return !std::isnan(e.low) && !std::isnan(e.high) && e.low != e.high;
}

/// The guard on errors also passes if it is only observed: nobody has to show it.
inline bool is_only_observed(const verdict_numbers& v) {
    return v.outcome == verdict::pass && v.objective.statistic.metric == metric_id::error_rate &&
           v.estimate.high > v.limit;
}
/// Returns "observed" for a pass that nothing shows.
inline const char* verdict_text(const verdict_numbers& v) {
    return is_only_observed(v) ? "observed" : to_string(v.outcome);
}
/// Returns the verdict whose colour this one has: what is only observed is not green, and a miss
/// that blocks nothing is not red.
inline verdict verdict_like(const verdict_numbers& v) {
    const bool is_noted = v.objective.is_advisory && v.outcome != verdict::pass;
    return is_only_observed(v) || is_noted ? verdict::skipped : v.outcome;
}

/// Begins the reason of a rehearsed objective.
inline constexpr const char* rehearsal_word = "a rehearsal";
/// Whether its numbers are of a model: nothing was measured.
inline bool is_of_model(const slo_verdict& v) {
    return v.outcome == verdict::skipped && str(v.reason).starts_with(rehearsal_word);
}

/// The parts of a verdict's line: the objective, the measured value, and the value that is judged.
struct verdict_parts {
    std::string name{}, measured{}, typical{}, room{}, interval{}, smallest_miss{}, basis{};
    std::string reason{};
};
/// Joins the texts that are not empty.
inline std::string joined_texts(std::initializer_list<std::string_view> texts,
                                const char* between) {
    std::string out;
    for (const std::string_view t : texts)
        if (!t.empty()) out.append(out.empty() ? "" : between).append(t);
    return out;
}
/// Whether the value that is judged tells no more than the measured one: the same to about three
/// digits, and on the same side of the limit.
inline bool is_judged_as_measured(const verdict_numbers& v) {
    const double value = v.estimate.value, off = std::fabs(value - v.measured);
    const bool is_near = off <= 0.005 * std::fabs(v.measured);  // false for NaN
    return is_near && (value <= v.limit) == (v.measured <= v.limit);
}
/// Whether the measured value is outside the interval, which is of the judged value.
inline bool is_beside_interval(const verdict_numbers& v) {
    return has_interval(v) && (v.measured < v.estimate.low || v.measured > v.estimate.high);
}
/// "typical repeat 39.1 ms", "" if the value that is judged reads as the measured one.
inline std::string basis_text(const verdict_numbers& v, auto* text_of) {
    const std::string value = text_of(v, v.estimate.value);
    const bool reads_alike = value == text_of(v, v.measured) ||
                             (is_judged_as_measured(v) && !is_beside_interval(v));
    return filled("[{name} {value}]",
                  {{"name", reads_alike ? "" : basis_name(v)}, {"value", value}});
}
/// "50.7 to 56.1 ms": the unit once where both ends have the same.
inline std::string interval_text(const verdict_numbers& v) {
    std::string low = full_value_text(v, v.estimate.low);
    const std::string high = full_value_text(v, v.estimate.high);
    const std::size_t unit = low.find(' '), other = high.find(' ');
    const bool is_same = unit != std::string::npos && other != std::string::npos &&
                         low.compare(unit, std::string::npos, high, other) == 0;
    if (is_same) low.erase(unit);
    return filled("{low} to {high}", {{"low", low}, {"high", high}});
}
/// Returns the miss that this run would show in four cases of five, "" if that is not known.
inline std::string smallest_miss_text(const verdict_numbers& v) {
    if (!(v.detectable > 0)) return {};
    if (is_difference(v.objective) && std::isfinite(v.detectable))
        return filled("the smallest miss this run could show: {miss}",
                      {{"miss", {v.objective.statistic.metric, v.detectable}}});
    if (!is_counted(v) && v.detectable > 1) return "this run cannot show a miss of any useful size";
    return filled("the smallest {is_counted?fraction of misses|miss} this run could show: "
                  "{percent} %",
                  {{"is_counted", is_counted(v)}, {"percent", digits_text(v.detectable * 100, 2)}});
}
/// The smallest miss helps where a verdict is open; a whole line has it always.
enum class line_length : unsigned char { short_line, whole_line };
/// What a verdict counts in its repeats.
inline const char* trial_of(const verdict_numbers& v) {
    return is_of_sessions(v.objective.statistic.metric) ? "session" : "request";
}
/// "5 repeats x 200 requests", "" if there are none.
inline std::string counted_in_text(const slo_verdict& v, bool is_of_loads) {
    if (v.repeats <= 0) return {};
    return filled("{repeats} {unit}{is_one?|s}{is_at_limit? at the limit} x {requests} {trial}s",
                  {{"repeats", v.repeats}, {"unit", v.unit}, {"is_one", v.repeats == 1},
                   {"is_at_limit", is_of_loads && v.counted_in != verdict_unit::pair},
                   {"requests", v.requests / v.repeats}, {"trial", trial_of(v)}});
}
/// The objective is padded to `width`, so that the lines of a gate align.
inline verdict_parts parts_of(const slo_verdict& v, std::size_t width,
                              line_length length = line_length::short_line) {
    std::string word = verdict_text(v);
    for (char& c : word) c = static_cast<char>(c - 'a' + 'A');
    verdict_parts p;
    const std::string objective = printable(str(v.objective.text()), 4 * v.objective.text().size());
    p.name = printed("%-12s  %-*s", word.c_str(), static_cast<int>(width), objective.c_str());
    p.reason = str(v.reason);
    const bool is_of_loads = is_capacity(v.objective.statistic.metric);
    p.basis = counted_in_text(v, is_of_loads);
    if (is_of_loads) return p;  // its reason names the loads
    p.measured = filled("{is_of_model?modelled|measured} {value}[ ({ratio})]",
                        {{"is_of_model", is_of_model(v)}, {"value", full_value_text(v, v.measured)},
                         {"ratio", ratio_of_text(v)}});
    p.typical = basis_text(v, full_value_text);
    p.room = str(v.distance);
    if (has_interval(v)) p.interval = filled("interval {interval}",
                                             {{"interval", interval_text(v)}});
    if (length == line_length::whole_line || v.outcome == verdict::inconclusive)
        p.smallest_miss = smallest_miss_text(v);
    p.basis = joined_texts({p.basis, v.method.c_str()}, ", ");
    return p;
}
inline std::string verdict_line(const slo_verdict& v, std::size_t width = 0,
                                line_length length = line_length::whole_line) {
    const verdict_parts p = parts_of(v, width, length);
    const std::string found =
        filled("{found}[ ({shown})]",
               {{"found", joined_texts({p.measured, p.typical, p.room}, ", ")},
                {"shown", joined_texts({p.interval, p.smallest_miss}, "; ")}});
    return filled("{name}[  {rest}]",
                  {{"name", p.name},
                   {"rest", joined_texts({joined_texts({found, p.basis}, ", "), p.reason}, "; ")}});
}

/// The same, wrapped for a console.
inline std::string verdict_lines(const slo_verdict& v, std::size_t width = 0) {
    return wrapped(verdict_line(v, width), console_columns, 6);
}
/// Returns "FAIL, measured 39.2 ms, 57 % over the limit", for a place that has the line already.
inline std::string verdict_in_short(const slo_verdict& v) {
    const verdict_parts p = parts_of(v, 0);
    const std::string word = p.name.substr(0, p.name.find(' '));
    const bool is_measured =
        !p.measured.empty() && !std::isnan(v.measured) && v.outcome != verdict::invalid;
    if (!is_measured) return filled("{word}[: {reason}]", {{"word", word}, {"reason", p.reason}});
    return filled("{word}, {found}[ ({interval})]",
                  {{"word", word}, {"found", joined_texts({p.measured, p.typical, p.room}, ", ")},
                   {"interval", p.interval}});
}

/// Returns a verdict's line without the spaces that align it, for files and annotations.
inline std::string flat_line(const slo_verdict& v) {
    std::string line = verdict_line(v, 0, line_length::short_line);
    line.erase(std::unique(line.begin(), line.end(),
                           [](char a, char b) { return a == ' ' && b == ' '; }),
               line.end());
    return line;
}

/// The numbers of a verdict by name: "mean = -0.22", "values = 0.08 0.081".
inline std::string inputs_text(const slo_verdict& v, const char* between) {
    std::string t;
    for (const named_values& n : v.inputs) {
        t += (t.empty() ? "" : between) + str(n.name) + " =";
        for (const double x : n.values) t += " " + json_number(x);
    }
    return t;
}

/// "measured 39.2 ms, typical repeat 38.1 ms".
inline std::string measured_text(const verdict_numbers& v, const char* how = "measured") {
    return filled("{how} {value}[, {basis}]",
                  {{"how", how}, {"value", verdict_value_text(v, v.measured)},
                   {"basis", basis_text(v, verdict_value_text)}});
}
inline std::string measured_text(const slo_verdict& v) {
    return measured_text(v, is_of_model(v) ? "modelled" : "measured");
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
