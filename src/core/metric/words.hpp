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
    case metric_unit::tokens_per_s: return printed(v < 999.5 ? "%.3g tok/s" : "%.0f tok/s", v);
    case metric_unit::requests_per_s: return printed(v < 999.5 ? "%.3g req/s" : "%.0f req/s", v);
    case metric_unit::users: return printed(v < 999.5 ? "%.4g users" : "%.0f users", v);
    case metric_unit::share: return printed("%.4g %%", v * 100);
    case metric_unit::energy: return v < 1 ? printed("%.3g mJ", v * 1e3) : printed("%.3g J", v);
    case metric_unit::none: return printed("%.4g", v);
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
    case metric_unit::tokens_per_s: return printed("%.6g tok/s", v);
    case metric_unit::requests_per_s: return printed("%.6g req/s", v);
    case metric_unit::users: return printed("%.6g users", v);
    case metric_unit::share: return printed("%.6g %%", v * 100);
    case metric_unit::energy: return printed("%.6g J", v);
    case metric_unit::none: return printed("%.6g", v);
    }
    return v < 1 ? printed("%.6g ms", v * 1e3) : printed("%.6g s", v);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
