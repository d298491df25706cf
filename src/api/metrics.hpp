// metrics
// `p99(ttft) <= 300_ms` is a value: it prints itself, can be stored and shared, and knows the line
// it was written on. Metrics are enumerators of one type per dimension, so that nonsense does not
// compile; being enumerators they never shadow a user's own variable of the same name.
#pragma once

#include "api/text.hpp"
#include "api/units.hpp"

namespace llmbench {
inline namespace v0 {

struct source_line {
    const char* file = "";
    int line = 0;
};

/// Times of one request.
enum class latency_metric : unsigned char {
    ttft,                   ///< time to first token: first content event - scheduled send
    tpot,                   ///< time per output token: (last - first content event) / (n - k)
    itl,                    ///< inter-token latency: every gap between content events, pooled
    e2e,                    ///< end to end: terminal event - scheduled send
    normalized_latency,     ///< e2e / output tokens
    ttft_per_prompt_token,  ///< ttft / prompt tokens
    ttft_from_send,         ///< first content event - actual send (what most tools call TTFT)
    queue_time,             ///< server-side waiting time (not measured by this version)
    first_turn_ttft,        ///< ttft of the first turns of conversations
    later_turn_ttft         ///< ttft of all their other turns
};
/// Speeds of one request, tokens/s as its user sees them.
enum class speed_metric : unsigned char {
    prefill_speed,  ///< prompt tokens / ttft
    decode_speed    ///< 1 / tpot
};
/// Tokens/s of the whole server inside the steady window. Prefill and decode are the two phases of
/// a request (Patel et al., Splitwise, ISCA 2024): the one reads the prompt and ends with the first
/// token, the other generates the rest. They share the window, so each is what the server did of it
/// beside the other; a workload of long prompts and one-token answers shows prefill alone.
enum class token_throughput : unsigned char {
    output_throughput,   ///< generated tokens
    total_throughput,    ///< prompt and generated tokens
    prefill_throughput,  ///< prompt tokens, as usage tells them, of requests at their first token
    decode_throughput    ///< generated tokens after the first event's
};
enum class request_throughput_t : unsigned char { request_throughput };  ///< completed requests/s
enum class share_metric : unsigned char { error_rate };  ///< failed share of requests
enum class run_time_metric : unsigned char { startup_time };             ///< spawn to ready
/// The most load that keeps the scenario's other objectives; requests/s, or users of a closed loop.
enum class capacity_metric : unsigned char { capacity };
enum class baseline_t : unsigned char { baseline };                      ///< the other arm's value
using enum latency_metric;
using enum speed_metric;
using enum token_throughput;
using enum request_throughput_t;
using enum share_metric;
using enum run_time_metric;
using enum capacity_metric;
using enum baseline_t;

namespace detail {
/// All of them, in the order of the types above.
enum class metric_id : unsigned char {
    ttft, tpot, itl, e2e, normalized_latency, ttft_per_prompt_token, ttft_from_send, queue_time,
    first_turn_ttft, later_turn_ttft,
    prefill_speed, decode_speed, output_throughput, total_throughput, prefill_throughput,
    decode_throughput, request_throughput, error_rate, startup_time, goodput, server_metric,
    capacity_in_rate, capacity_in_users
};
enum class statistic_kind : unsigned char { percentile, mean, max, min, value };
enum class bound_side : unsigned char { at_most, at_least, either };

/// A limit's unit and side by the type of its metric, whose enumerators metric_id has from `First`.
template <class M>
struct metric_traits {};
template <class U, bool PerRequest, bound_side Side, metric_id First>
struct metric_traits_of {
    using unit = U;
    static constexpr bool per_request = PerRequest;
    static constexpr bound_side side = Side;
    static constexpr metric_id first = First;
};
template <>
struct metric_traits<latency_metric>
    : metric_traits_of<time_span, true, bound_side::at_most, metric_id::ttft> {};
template <>
struct metric_traits<speed_metric>
    : metric_traits_of<token_rate, true, bound_side::at_least, metric_id::prefill_speed> {};
template <>
struct metric_traits<token_throughput>
    : metric_traits_of<token_rate, false, bound_side::at_least, metric_id::output_throughput> {};
template <>
struct metric_traits<request_throughput_t>
    : metric_traits_of<request_rate, false, bound_side::at_least, metric_id::request_throughput> {};
template <>
struct metric_traits<share_metric>
    : metric_traits_of<share, false, bound_side::at_most, metric_id::error_rate> {};
template <>
struct metric_traits<run_time_metric>
    : metric_traits_of<time_span, false, bound_side::at_most, metric_id::startup_time> {};

template <class M>
constexpr metric_id id_of(M m) {
    return static_cast<metric_id>(static_cast<int>(metric_traits<M>::first) + static_cast<int>(m));
}

template <class M>
concept request_metric = requires { requires metric_traits<M>::per_request; };
template <class M>
concept run_metric = requires { requires !metric_traits<M>::per_request; };
template <class M>
concept time_metric = request_metric<M> && metric_traits<M>::side == bound_side::at_most;
template <class M>
concept rate_metric = request_metric<M> && metric_traits<M>::side == bound_side::at_least;
template <class M>
using unit_of = typename metric_traits<M>::unit;

// SI values of every unit: seconds, per second, fractions, plain numbers.
constexpr double si(time_span t) { return t.seconds(); }
constexpr double si(request_rate r) { return r.per_second; }
constexpr double si(token_rate r) { return r.per_second; }
constexpr double si(share s) { return s.fraction; }
constexpr double si(plain_number n) { return n.value; }
constexpr double si(user_count n) { return n.users; }

template <class U, class T>
concept gives = requires(const T& t, void (&f)(U)) { f(t); };

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
