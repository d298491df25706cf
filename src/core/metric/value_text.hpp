// values of metrics as text
#pragma once

#include "api/metrics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"

#include <algorithm>  // min
#include <cmath>  // isinf, isnan
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// In the first unit of the dimension.
inline std::string unit_text(metric_unit unit, double v, int digits) {
    if (const written_unit* u = first_unit_of(unit))
        return digits_text(v * u->si, digits) + " " + std::string(u->name);
    return digits_text(v, digits);
}
inline std::string value_text(metric_id m, double v) {
    const metric_unit unit = facts_of(m).unit;
    if (std::isnan(v)) return "none";
    if (is_capacity(m) && std::isinf(v)) return "infinite";
    if (unit == metric_unit::time) return time_text(v);
    if (unit == metric_unit::energy && v < 1) return digits_text(v * 1e3, 3) + " mJ";
    const bool is_rate =
        unit == metric_unit::tokens_per_s || unit == metric_unit::requests_per_s;
    const bool is_amount = unit == metric_unit::energy || unit == metric_unit::money;
    return unit_text(unit, v, is_rate || is_amount ? 3 : 4);
}

/// "[11.4, 12.6] req/s".
inline std::string load_interval_text(metric_id m, double low, double high) {
    const std::string from = value_text(m, low), to = value_text(m, high);
    const std::size_t unit = std::min(to.find(' '), to.size());
    return "[" + from.substr(0, from.find(' ')) + ", " + to.substr(0, unit) + "]" +
           to.substr(unit);
}

/// Names what a request lacks that has too little for a metric.
inline const char* needs_text(value_needs n) {
    return name_at({"value", "prompt_tokens in their usage", "tokens after their first event",
                    "second content event", "second content event in a read of its own",
                    "content but reasoning", "output tokens in their usage",
                    "cached_tokens in their usage", "value of the function"}, n);
}

/// A limit as its author wrote it: up to six digits, no trailing zeros.
inline std::string limit_text(metric_id m, double v) {
    const metric_unit unit = facts_of(m).unit;
    if (unit == metric_unit::time && !(v < 1)) return digits_text(v, 6) + " s";
    return unit_text(unit, v, 6);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
