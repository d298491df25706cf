// tokens and requests per second
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/metric/table.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // max, sort
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// USD per million tokens.
inline double cost_of_tokens(double usd_per_hour, double tokens_per_s) {
    return usd_per_hour > 0 ? usd_per_hour / 3600 / tokens_per_s * 1e6 : not_a_number;
}
/// Tokens or requests per second in a time interval. An event counts its request's streamed tokens
/// divided by its events. Failed requests count nothing. Warm-up requests count where their tokens
/// arrive inside. For decoding, only tokens and events after the first count. Prompt tokens arrive
/// with the first token, or with the end for input throughput, and NaN if none is reported.
/// Optimistically, the client's late sends delayed no user.
inline double rate_in(metric_id m, const repeat_data& d, const time_interval& when,
                      timing_bound how = timing_bound::measured, const selection& which = {}) {
    if (when.is_empty()) return not_a_number;
    if (is_cost(m))
        return cost_of_tokens(d.usd_per_hour,
                              rate_in(metric_id::output_throughput, d, when, how, which));
    const long long from = when.from_ns(), to = when.to_ns();
    const double punctual = how == timing_bound::optimistic ? 1 - d.late_part : 1;
    const double seconds = static_cast<double>(to - from) * 1e-9 * punctual;
    const auto inside = [&](long long t) { return when.holds(t); };
    const bool of_input = m == metric_id::input_throughput;
    const selects selected(which, d);
    bool prompts_reported = m != metric_id::prefill_throughput && !of_input;
    std::vector<double> parts;  // summed in order of size, as that of the records varies
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        const record& r = d.records[i];
        // A cancelled request has tokens but no whole answer.
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
        if (r.last_token_ns < from || r.first_token_ns >= to)
            continue;  // saves time, as a long run has many slices
        const double weight =
            decodes ? std::max(paced_tokens(r), 0) / (r.events - 1.0)
                    : static_cast<double>(streamed_tokens(r)) / r.events;
        const bool listed = d.gap_offsets[i] != not_listed;
        long long offset_ns = 0;
        long long arrived = !decodes && inside(r.first_token_ns);
        if (!listed && !spans(r, from) && !spans(r, to))  // all or none
            arrived = inside(r.first_token_ns) ? r.events - decodes : 0;
        else  // unlisted events are evenly spread
            for (std::size_t k = 0, n = gap_count(r); k < n; ++k) {
                if (listed) offset_ns += d.gaps[d.gap_offsets[i] + k] * 1000ll;
                else offset_ns = (r.last_token_ns - r.first_token_ns) /
                                 static_cast<long long>(n) * static_cast<long long>(k + 1);
                arrived += inside(r.first_token_ns + offset_ns);
            }
        parts.push_back(weight * static_cast<double>(arrived));
    }
    if (!prompts_reported && !parts.empty()) return not_a_number;
    std::sort(parts.begin(), parts.end());
    double sum = 0;
    for (const double part : parts) sum += part;
    return sum / seconds;
}
/// The rate inside the steady window.
inline double window_rate(metric_id m, const repeat_data& d,
                          timing_bound how = timing_bound::measured, const selection& which = {}) {
    return rate_in(m, d, d.window, how, which);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
