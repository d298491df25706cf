// names, kinds and values of metrics
#pragma once

#include "api/metrics.hpp"
#include "core/base/text.hpp"

#include <cmath>  // isnan
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A value of a metric with its unit.
inline std::string value_text(metric_id m, double v) {
    if (std::isnan(v)) return "none";
    switch (m) {
    case metric_id::prefill_speed: case metric_id::decode_speed:
    case metric_id::output_throughput: case metric_id::total_throughput:
    case metric_id::prefill_throughput: case metric_id::decode_throughput:
        return v < 999.5 ? printed("%.3g tok/s", v) : printed("%.0f tok/s", v);
    case metric_id::request_throughput:
        return v < 999.5 ? printed("%.3g req/s", v) : printed("%.0f req/s", v);
    case metric_id::error_rate: case metric_id::goodput: return printed("%.4g %%", v * 100);
    case metric_id::server_metric: return printed("%.4g", v);
    default: return time_text(v);
    }
}

inline const char* metric_name(metric_id m) {
    switch (m) {
    case metric_id::ttft: return "ttft";
    case metric_id::tpot: return "tpot";
    case metric_id::itl: return "itl";
    case metric_id::e2e: return "e2e";
    case metric_id::normalized_latency: return "normalized_latency";
    case metric_id::ttft_per_prompt_token: return "ttft_per_prompt_token";
    case metric_id::ttft_from_send: return "ttft_from_send";
    case metric_id::queue_time: return "queue_time";
    case metric_id::first_turn_ttft: return "first_turn_ttft";
    case metric_id::later_turn_ttft: return "later_turn_ttft";
    case metric_id::prefill_speed: return "prefill_speed";
    case metric_id::decode_speed: return "decode_speed";
    case metric_id::output_throughput: return "output_throughput";
    case metric_id::total_throughput: return "total_throughput";
    case metric_id::prefill_throughput: return "prefill_throughput";
    case metric_id::decode_throughput: return "decode_throughput";
    case metric_id::request_throughput: return "request_throughput";
    case metric_id::error_rate: return "error_rate";
    case metric_id::startup_time: return "startup_time";
    case metric_id::goodput: return "goodput";
    case metric_id::server_metric: return "server_metric";
    }
    return "";
}

/// A limit as its author wrote it, more or less: up to six digits, no trailing zeros.
inline std::string limit_text(metric_id m, double v) {
    switch (m) {
    case metric_id::prefill_speed: case metric_id::decode_speed:
    case metric_id::output_throughput: case metric_id::total_throughput:
    case metric_id::prefill_throughput:
    case metric_id::decode_throughput: return printed("%.6g tok/s", v);
    case metric_id::request_throughput: return printed("%.6g req/s", v);
    case metric_id::error_rate: case metric_id::goodput: return printed("%.6g %%", v * 100);
    case metric_id::server_metric: return printed("%.6g", v);
    default: return v < 1 ? printed("%.6g ms", v * 1e3) : printed("%.6g s", v);
    }
}

inline bool is_share(metric_id m) { return m == metric_id::error_rate || m == metric_id::goodput; }
inline bool is_speed(metric_id m) {
    return m == metric_id::prefill_speed || m == metric_id::decode_speed;
}
/// Of some turns of a conversation only: the others are no part of it, failed or not.
inline bool is_of_turns(metric_id m) {
    return m == metric_id::first_turn_ttft || m == metric_id::later_turn_ttft;
}
inline bool is_throughput(metric_id m) {
    return m == metric_id::output_throughput || m == metric_id::total_throughput ||
           m == metric_id::prefill_throughput || m == metric_id::decode_throughput ||
           m == metric_id::request_throughput;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
