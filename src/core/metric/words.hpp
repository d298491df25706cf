// values of metrics in words
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

/// A value of a metric with its unit.
inline std::string value_text(metric_id m, double v) {
    if (std::isnan(v)) return "none";
    if (is_capacity(m) && std::isinf(v)) return "infinite";
    switch (facts_of(m).unit) {
    case metric_unit::time: break;
    case metric_unit::tokens_per_s: return digits_text(v, 3) + " tok/s";
    case metric_unit::requests_per_s: return digits_text(v, 3) + " req/s";
    case metric_unit::users: return digits_text(v, 4) + " users";
    case metric_unit::share: return digits_text(v * 100, 4) + " %";
    case metric_unit::energy:
        return v < 1 ? digits_text(v * 1e3, 3) + " mJ" : digits_text(v, 3) + " J";
    case metric_unit::none: return digits_text(v, 4);
    }
    return time_text(v);
}

/// "[11.4, 12.6] req/s".
inline std::string load_interval_text(metric_id m, double low, double high) {
    const std::string from = value_text(m, low), to = value_text(m, high);
    const std::size_t unit = std::min(to.find(' '), to.size());
    return "[" + from.substr(0, from.find(' ')) + ", " + to.substr(0, unit) + "]" +
           to.substr(unit);
}

/// What requests lack that brought less than a metric needs.
inline const char* needs_text(value_needs n) {
    switch (n) {
    case value_needs::nothing: break;
    case value_needs::prompt_tokens: return "prompt_tokens in their usage";
    case value_needs::second_token: return "tokens after their first event";
    case value_needs::second_event: return "second content event";
    case value_needs::second_read: return "second content event in a read of its own";
    case value_needs::answer: return "content but reasoning";
    case value_needs::told_tokens: return "output tokens in their usage";
    }
    return "value";
}

/// A limit as its author wrote it, more or less: up to six digits, no trailing zeros.
inline std::string limit_text(metric_id m, double v) {
    switch (facts_of(m).unit) {
    case metric_unit::time: break;
    case metric_unit::tokens_per_s: return digits_text(v, 6) + " tok/s";
    case metric_unit::requests_per_s: return digits_text(v, 6) + " req/s";
    case metric_unit::users: return digits_text(v, 6) + " users";
    case metric_unit::share: return digits_text(v * 100, 6) + " %";
    case metric_unit::energy: return digits_text(v, 6) + " J";
    case metric_unit::none: return digits_text(v, 6);
    }
    return v < 1 ? digits_text(v * 1e3, 6) + " ms" : digits_text(v, 6) + " s";
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
