// tokens of requests, in the prefix cache and per second
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/metric/table.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/timing_bounds.hpp"

#include <algorithm>  // max, sort

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Means over the completed requests; for prompts, over those that report them.
struct request_tokens {
    double prompt = not_a_number, output = not_a_number;
};
inline request_tokens request_tokens_of(const repeat_list& variant, const selection& which = {}) {
    double prompts = 0, prompt = 0, outputs = 0, output = 0;
    for (const repeat_data& d : variant) {
        const selects selected(which, d);
        for (const record& r : d.records) {
            if (!selected.completed(r)) continue;
            prompts += r.prompt_tokens > 0;
            prompt += r.prompt_tokens;
            ++outputs;
            output += r.output_tokens;
        }
    }
    return {prompts > 0 ? prompt / prompts : not_a_number,
            outputs > 0 ? output / outputs : not_a_number};
}

/// Prompt tokens, and cached ones, of requests for which the server reports them.
struct prefix_hits {
    double cached = 0, prompt = 0;
    /// More than all of them is impossible.
    bool is_over_all() const { return cached > prompt; }
    /// 0 where the server reports none.
    double fraction() const { return prompt > 0 && !is_over_all() ? cached / prompt : 0; }
    double share() const { return prompt > 0 && !is_over_all() ? cached / prompt : not_a_number; }
};
inline bool tells_cached_tokens(const record& r) {
    return r.cached_tokens >= 0 && r.prompt_tokens > 0;
}
inline prefix_hits prefix_hits_of(const repeat_data& d, const selection& which,
                                  const time_interval* when = nullptr) {
    const selects selected(which, d, when);
    prefix_hits sum;
    for (const record& r : d.records) {
        if (!selected(r) || !tells_cached_tokens(r)) continue;
        sum.cached += r.cached_tokens;
        sum.prompt += r.prompt_tokens;
    }
    return sum;
}
inline prefix_hits prefix_hits_of(const repeat_list& variant, const selection& which = {}) {
    prefix_hits sum;
    for (const repeat_data& d : variant) {
        const prefix_hits one = prefix_hits_of(d, which);
        sum.cached += one.cached;
        sum.prompt += one.prompt;
    }
    return sum;
}

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
    vector<double> parts;  // summed in order of size, as that of the records varies
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

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
