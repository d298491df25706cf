// limits, values and distances in words
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/judging/decision.hpp"

#include <cmath>  // ceil, fabs, floor, isfinite, isinf, isnan, log10, pow
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The name that the values of the repeats have among a verdict's inputs.
inline const char* values_name(limit_kind k) {
    return name_at({"values", "ratios", "differences"}, k);
}

/// A value in the unit of the judged one: "305 ms", "1.050 x", "+2 ms".
inline std::string value_text(const slo& s, double x) {
    const std::string value = value_text(s.statistic.metric, x);
    switch (kind_of(s)) {
    case limit_kind::absolute: break;
    case limit_kind::ratio: return std::isfinite(x) ? printed("%.3f x", x) : value;
    case limit_kind::difference: return (x > 0 ? "+" : std::isinf(x) ? "-" : "") + value;
    }
    return value;
}
inline std::string verdict_value_text(const verdict_numbers& v, double x) {
    return value_text(v.objective, x);
}
/// As `verdict_value_text`; a ratio also names the baseline.
inline std::string full_value_text(const verdict_numbers& v, double x) {
    const bool is_ratio = kind_of(v.objective) == limit_kind::ratio && std::isfinite(x);
    return filled("{value}{is_ratio? baseline}",
                  {{"value", verdict_value_text(v, x)}, {"is_ratio", is_ratio}});
}
/// The metric of the value that is compared: of `p90(ttft) <= 3 * p50(ttft)` the first one.
inline metric_id compared_metric(const slo& s) {
    return s.statistic.parts.empty() ? s.statistic.metric : s.statistic.parts[0].metric;
}
/// Whether both values of a comparison are known. Those of a difference may be zero.
inline bool has_both_values(const verdict_numbers& v) {
    const bool is_known =
        v.denominator > 0 ||
        (is_difference(v.objective) && v.denominator == 0 && !std::isnan(v.measured));
    return is_known && std::isfinite(v.numerator);
}
/// Returns both values of a comparison, "28.7 ms against 25 ms"; "" if it is none.
inline std::string ratio_of_text(const verdict_numbers& v) {
    const metric_id m = compared_metric(v.objective);
    if (!has_both_values(v)) return {};
    return filled("{numerator} against {denominator}",
                  {{"numerator", {m, v.numerator}}, {"denominator", {m, v.denominator}}});
}
/// Returns how far a value is from the limit, "56.6 % over", of a difference in its unit; "" if
/// that means nothing.
inline std::string distance_text(const verdict_numbers& v, double value) {
    const double room = room_of(v, value);
    const metric_id m = v.objective.statistic.metric;
    if (std::isnan(room) || is_request_fraction(m)) return {};
    const char* side = room >= 0 ? "inside" : v.objective.at_most ? "over" : "under";
    const std::string distance = is_difference(v.objective)
                                     ? value_text(m, std::fabs(room * v.limit))
                                     : digits_text(std::fabs(room) * 100, 3) + " %";
    return filled("{distance} {side}", {{"distance", distance}, {"side", side}});
}
inline std::string room_text(const verdict_numbers& v) {
    return filled("[{distance} the limit]", {{"distance", distance_text(v, v.estimate.value)}});
}

/// "5.1 ms more", "1 % less".
inline std::string more_text(metric_id m, double x) {
    return filled("{size} {is_more?more|less}",
                  {{"size", {m, std::fabs(x)}}, {"is_more", x > 0}});
}
/// "mean(tpot) is 28.7 ms, the limit is 27.5 ms, 1.1 times the baseline's 25 ms"; "" without a
/// value.
inline std::string against_limit(const verdict_numbers& v) {
    const slo& s = v.objective;
    const metric_id m = compared_metric(s);
    const bool has_parts = !s.statistic.parts.empty(), has_both = has_both_values(v);
    const text& name = has_parts ? s.statistic.parts[0].name : s.statistic.name;
    if (std::isnan(has_both ? v.numerator : v.measured) || name.empty()) return {};
    if (!has_both)
        return filled("{name} is {measured}, the limit is {limit}",
                      {{"name", name}, {"measured", full_value_text(v, v.measured)},
                       {"limit", limit_text(s)}});
    if (kind_of(s) == limit_kind::difference)
        return filled("{name} is {value}, {off}[ {times} times] the baseline's {baseline}, the "
                      "limit is {limit}",
                      {{"name", name}, {"value", {m, v.numerator}},
                       {"off", v.measured == 0 ? "as" : more_text(m, v.measured) + " than"},
                       {"times", s.factor == 1 ? "" : digits_text(s.factor, 6)},
                       {"baseline", {m, v.denominator}}, {"limit", more_text(m, s.offset)}});
    return filled("{name} is {value}, the limit is {limit}, {times} times the {is_baseline?"
                  "baseline's }{other}[ of {whose}]",
                  {{"name", name}, {"value", {m, v.numerator}},
                   {"limit", {m, v.limit * v.denominator}}, {"times", digits_text(v.limit, 6)},
                   {"is_baseline", !has_parts}, {"other", {m, v.denominator}},
                   {"whose", has_parts ? str(s.statistic.parts[1].name) : ""}});
}

/// Returns a limit that the objective would meet in most runs.
inline std::string limit_to_write(const slo& s, double value) {
    const std::string side = s.at_most ? "<= " : ">= ";
    if (kind_of(s) == limit_kind::difference) {
        const double power = std::pow(10, std::floor(std::log10(std::fabs(value))) - 1);
        slo close = s;
        close.offset = (s.at_most ? std::ceil(value / power) : std::floor(value / power)) * power;
        return side + limit_text(close);
    }
    if (facts_of(s.statistic.metric).is_whole && is_absolute(s))
        return side +
               limit_text(s.statistic.metric, s.at_most ? std::ceil(value) : std::floor(value));
    // Two digits, three from 10 to 20, rounded to the side that is easier to meet.
    const double power = std::pow(10, std::floor(std::log10(value)));
    const double step = power / (value < 2 * power ? 100 : 10);
    const auto rounded = [&](double unit) {
        return (s.at_most ? std::ceil(value / unit) : std::floor(value / unit)) * unit;
    };
    return side + (is_absolute(s) ? limit_text(s.statistic.metric, rounded(step))
                                  : printed("%.2f * baseline", rounded(0.01)));
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
