// tokens and requests per second
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/metric/table.hpp"
#include "core/measured/client_stalls.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // max, sort
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// USD for a million of them.
inline double cost_of_tokens(double usd_per_hour, double tokens_per_s) {
    return usd_per_hour > 0 ? usd_per_hour / 3600 / tokens_per_s * 1e6 : not_a_number;
}
/// Tokens or requests per second in some time. An event weighs its request's streamed tokens over
/// its events; failed requests bring nothing; warm-up requests count when their tokens
/// arrive inside. Of decoding, an event after the first one weighs those tokens over those events.
/// Prompt tokens arrive with the first token, those of the input throughput with the end; where no
/// request tells them there is no value.
/// At worst, nothing counts that may have come before the window; at best, all that may have come
/// before its end, in as much of it as the client surely ran.
inline double rate_in(metric_id m, const repeat_data& d, const time_interval& when,
                      timing_bound how = timing_bound::measured, const selection& which = {}) {
    if (when.is_empty()) return not_a_number;
    if (is_cost(m))
        return cost_of_tokens(d.usd_per_hour,
                              rate_in(metric_id::output_throughput, d, when, how, which));
    const long long from = when.from_ns(), to = when.to_ns();
    const long long lost = how == timing_bound::optimistic ? lost_in(d.stalls, when) : 0;
    if (lost >= to - from) return infinity;
    const double seconds = static_cast<double>(to - from - lost) * 1e-9;
    const auto inside = [&](long long t) {
        const auto delay = [&] { return possible_delay_by_gaps(d.stalls, t); };
        if (how == timing_bound::pessimistic) return t < to && t - delay() >= from;
        if (how == timing_bound::optimistic && t >= to) return t - delay() < to;
        return when.holds(t);
    };
    const bool of_input = m == metric_id::input_throughput;
    const selects selected(which, d);
    bool prompts_reported = m != metric_id::prefill_throughput && !of_input;
    std::vector<double> parts;  // added up in order of size, whatever that of the records is
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        const record& r = d.records[i];
        // Who left had tokens, and no whole answer.
        const bool is_of_answers =
            m == metric_id::request_throughput || m == metric_id::input_throughput;
        if (has_failed(r) || !selected.has(r)) continue;
        if (has_left(r) && (is_of_answers || r.events == 0)) continue;
        if (m == metric_id::request_throughput) {
            parts.push_back(inside(r.end_ns));
            continue;
        }
        const bool decodes = m == metric_id::decode_throughput;
        prompts_reported = prompts_reported || r.prompt_tokens > 0;
        if ((m == metric_id::total_throughput || m == metric_id::prefill_throughput) &&
            inside(r.first_token_ns))
            parts.push_back(r.prompt_tokens);
        if (of_input && inside(r.end_ns)) parts.push_back(r.prompt_tokens);
        if (of_input || m == metric_id::prefill_throughput || (decodes && r.events < 2)) continue;
        if (how == timing_bound::measured && (r.last_token_ns < from || r.first_token_ns >= to))
            continue;  // a long run is asked for in many slices
        const double weight =
            decodes ? std::max(paced_tokens(r), 0) / (r.events - 1.0)
                    : static_cast<double>(streamed_tokens(r)) / r.events;
        long long offset_us = 0;
        long long arrived = !decodes && inside(r.first_token_ns);
        if (d.gap_offsets[i] == not_listed)  // all of them, or none
            arrived = inside(r.first_token_ns) ? r.events - decodes : 0;
        else
            for (std::size_t k = 0; k < gap_count(r); ++k) {
                offset_us += d.gaps[d.gap_offsets[i] + k];
                arrived += inside(r.first_token_ns + offset_us * 1000);
            }
        parts.push_back(weight * static_cast<double>(arrived));
    }
    if (!prompts_reported && !parts.empty()) return not_a_number;
    std::sort(parts.begin(), parts.end());
    double sum = 0;
    for (const double part : parts) sum += part;
    return sum / seconds;
}
/// The same inside the steady window.
inline double window_rate(metric_id m, const repeat_data& d,
                          timing_bound how = timing_bound::measured, const selection& which = {}) {
    return rate_in(m, d, d.window, how, which);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
