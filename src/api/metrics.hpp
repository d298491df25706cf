// metrics
// `p99(ttft) <= 300_ms` is a value: it prints itself, can be stored and shared, and knows the line
// it was written on. Metrics are enumerators of one type per dimension, so that nonsense does not
// compile; being enumerators they never shadow a user's own variable of the same name.
#pragma once

#include "api/text.hpp"
#include "api/units.hpp"

namespace llmbench {
inline namespace v1 {

/// A line of the gates' source, as reports name it.
struct source_line {
    const char* file = "";
    int line = 0;
};

/// Times of one request.
enum class latency_metric : unsigned char {
    ttft,                   ///< time to first token: first content event - scheduled send
    tpot,                   ///< time per output token: (last - first content event) / (n - k)
    itl,  ///< inter-token latency: gaps between content events, pooled; in a goodput the longest
    e2e,                    ///< end to end: terminal event - scheduled send
    normalized_latency,     ///< e2e / output tokens
    ttft_per_prompt_token,  ///< ttft / prompt tokens
    ttft_from_send,         ///< first content event - actual send (what most tools call TTFT)
    first_turn_ttft,        ///< ttft of the first turns of conversations
    later_turn_ttft,        ///< ttft of all their other turns
    time_to_first_answer,   ///< first content event that is no reasoning - scheduled send
    second_token_gap        ///< second content event - first one: prefill hands over to decode
};
/// Times of one session or conversation. `session_time` is the time in which a step is due or under
/// way, without waits for tools and thinking; infinite if a step failed.
enum class session_metric : unsigned char { session_time };
/// Speeds of one request, tokens/s as its user sees them.
enum class speed_metric : unsigned char {
    prefill_speed,  ///< prompt tokens / ttft
    decode_speed    ///< 1 / tpot
};
/// Output tokens (from usage) per content event of one request: above 1 if a step of the server
/// brings several, as in speculative decoding.
enum class event_metric : unsigned char { tokens_per_event };
/// Tokens/s of the whole server inside the steady window. Prefill reads the prompt and ends with
/// the first token; decode generates the rest (Patel et al., Splitwise, ISCA 2024). Both share the
/// window; only a workload of long prompts and one-token answers shows prefill alone.
enum class token_throughput : unsigned char {
    output_throughput,   ///< generated tokens
    total_throughput,    ///< prompt and generated tokens
    prefill_throughput,  ///< prompt tokens, by usage, of requests at their first token
    decode_throughput,   ///< generated tokens after the first event's
    input_throughput     ///< prompt tokens, by usage, of requests at their end
};
enum class request_throughput_t : unsigned char { request_throughput };  ///< completed requests/s
enum class fraction_metric : unsigned char { error_rate };  ///< fraction of requests
/// Fractions of answers. A failed request counts as neither right nor the same.
enum class answer_metric : unsigned char {
    accuracy,     ///< of the questions asked, those answered rightly
    same_answers  ///< equal to a live baseline's to the same prompt, byte for byte
};
enum class run_time_metric : unsigned char {
    startup_time,       ///< of a process: spawn to ready
    first_answer_time,  ///< of a cold server: spawn, or else the request, to its first answer
    recovery_time  ///< from a side task until a load as large as before is answered in time again
};
// Server metrics, read once a second from the server's Prometheus page.
// Means over requests finished in the steady window, by the server's clock: no network time.
enum class server_time : unsigned char {
    queue_time,           ///< from arrival until the server takes the request up
    server_prefill_time,  ///< from there to the first token
    server_decode_time    ///< from the first token to the last
};
enum class queue_gauge : unsigned char { queued_requests };     ///< waiting, as read
enum class running_gauge : unsigned char { running_requests };  ///< being worked on, as read
enum class cache_gauge : unsigned char { kv_cache_usage };      ///< fraction of the KV cache in use
/// Number of times that the server stopped a request to make room for others.
enum class server_count : unsigned char { preemptions };
/// Fraction of the looked-up prompt tokens that are in the server's prefix cache.
enum class server_fraction : unsigned char { prefix_cache_hits };
/// Tokens per step of speculative decoding: 1 + accepted tokens / drafts.
enum class draft_metric : unsigned char { acceptance_length };
/// Joules of the accelerators in the window, idle power included, per output token of our requests.
enum class energy_metric : unsigned char { energy_per_token };
/// US dollars per million output tokens: `.cost` over the output_throughput of the steady window.
/// Prompt tokens are not counted.
enum class cost_metric : unsigned char { cost_per_million_tokens };
/// Fraction of the prompt tokens that the server reports as cached.
enum class prompt_metric : unsigned char { cached_share };
/// The highest load that holds the other objectives; requests/s, or users of a closed loop.
enum class include_llmbench_capacity_hpp : unsigned char { capacity };
enum class baseline_t : unsigned char { baseline };  ///< the value of the baseline
using enum latency_metric;
using enum session_metric;
using enum speed_metric;
using enum event_metric;
using enum token_throughput;
using enum request_throughput_t;
using enum fraction_metric;
using enum answer_metric;
using enum run_time_metric;
using enum server_time;
using enum queue_gauge;
using enum running_gauge;
using enum cache_gauge;
using enum server_count;
using enum server_fraction;
using enum draft_metric;
using enum energy_metric;
using enum cost_metric;
using enum prompt_metric;
using enum include_llmbench_capacity_hpp;
using enum baseline_t;

namespace detail {
/// All metrics, in the order of the types above.
enum class metric_id : unsigned char {
    ttft, tpot, itl, e2e, normalized_latency, ttft_per_prompt_token, ttft_from_send,
    first_turn_ttft, later_turn_ttft, time_to_first_answer, second_token_gap, session_time,
    prefill_speed, decode_speed, tokens_per_event, output_throughput, total_throughput,
    prefill_throughput, decode_throughput, input_throughput, request_throughput, error_rate,
    accuracy, same_answers, startup_time, first_answer_time, recovery_time, goodput, drift, ratio,
    server_metric, work, queue_time, server_prefill_time, server_decode_time, queued_requests,
    running_requests, kv_cache_usage, preemptions, prefix_cache_hits, acceptance_length,
    energy_per_token, cost_per_million_tokens, cached_share, capacity_in_rate, capacity_in_users
};
enum class statistic_kind : unsigned char { percentile, mean, max, min, value };
enum class bound_side : unsigned char { at_most, at_least, either };

/// The statistics that a metric allows: of many requests or sessions; one value of the run; the
/// mean of a server's times, because its buckets give no percentile; readings of a gauge.
enum class metric_shape : unsigned char {
    of_requests, of_sessions, of_run, of_server_times, of_gauges
};
/// Unit and side of a limit by the metric's type; `First` is its first enumerator in metric_id.
template <class U, metric_shape Shape, bound_side Side, metric_id First>
struct metric_of_type {
    using unit = U;
    static constexpr metric_shape shape = Shape;
    static constexpr bound_side side = Side;
    static constexpr metric_id first = First;
};
template <class U, bound_side Side, metric_id First>
using of_requests = metric_of_type<U, metric_shape::of_requests, Side, First>;
template <class U, bound_side Side, metric_id First>
using of_run = metric_of_type<U, metric_shape::of_run, Side, First>;
template <class U, bound_side Side, metric_id First>
using of_gauges = metric_of_type<U, metric_shape::of_gauges, Side, First>;
of_requests<time_span, bound_side::at_most, metric_id::ttft> row_of(latency_metric);
metric_of_type<time_span, metric_shape::of_sessions, bound_side::at_most, metric_id::session_time>
    row_of(session_metric);
of_requests<token_rate, bound_side::at_least, metric_id::prefill_speed> row_of(speed_metric);
of_requests<plain_number, bound_side::at_least, metric_id::tokens_per_event> row_of(event_metric);
of_run<token_rate, bound_side::at_least, metric_id::output_throughput> row_of(token_throughput);
of_run<request_rate, bound_side::at_least, metric_id::request_throughput>
    row_of(request_throughput_t);
of_run<fraction, bound_side::at_most, metric_id::error_rate> row_of(fraction_metric);
of_run<fraction, bound_side::at_least, metric_id::accuracy> row_of(answer_metric);
of_run<time_span, bound_side::at_most, metric_id::startup_time> row_of(run_time_metric);
metric_of_type<time_span, metric_shape::of_server_times, bound_side::at_most, metric_id::queue_time>
    row_of(server_time);
of_gauges<plain_number, bound_side::at_most, metric_id::queued_requests> row_of(queue_gauge);
of_gauges<plain_number, bound_side::either, metric_id::running_requests> row_of(running_gauge);
of_gauges<fraction, bound_side::at_most, metric_id::kv_cache_usage> row_of(cache_gauge);
of_run<plain_number, bound_side::at_most, metric_id::preemptions> row_of(server_count);
of_run<fraction, bound_side::at_least, metric_id::prefix_cache_hits> row_of(server_fraction);
of_run<plain_number, bound_side::at_least, metric_id::acceptance_length> row_of(draft_metric);
of_run<energy, bound_side::at_most, metric_id::energy_per_token> row_of(energy_metric);
of_run<money, bound_side::at_most, metric_id::cost_per_million_tokens> row_of(cost_metric);
of_run<fraction, bound_side::at_least, metric_id::cached_share> row_of(prompt_metric);
template <class M>
using metric_traits = decltype(row_of(*static_cast<const M*>(nullptr)));

template <class M>
struct include_llmbench_answers_hpp;  // which defines it
template <class M>
constexpr metric_id id_of(M m) {
    if constexpr (__is_same(M, answer_metric)) m = include_llmbench_answers_hpp<M>::known(m);
    return static_cast<metric_id>(static_cast<int>(metric_traits<M>::first) + static_cast<int>(m));
}

template <class M>
concept any_metric = requires { metric_traits<M>::shape; };
template <class M>
concept request_metric = any_metric<M> && metric_traits<M>::shape == metric_shape::of_requests;
template <class M>
concept session_metric_type = any_metric<M> && metric_traits<M>::shape == metric_shape::of_sessions;
template <class M>
concept run_metric = any_metric<M> && metric_traits<M>::shape == metric_shape::of_run;
template <class M>
concept gauge_metric = any_metric<M> && metric_traits<M>::shape == metric_shape::of_gauges;
template <class M>
concept has_mean = any_metric<M> && !run_metric<M>;
template <class M>
concept has_percentiles = request_metric<M> || session_metric_type<M> || gauge_metric<M>;
template <class M>
concept time_metric = request_metric<M> && metric_traits<M>::side == bound_side::at_most;
template <class M>
concept has_upper = time_metric<M> || session_metric_type<M> || gauge_metric<M>;
template <class M>
concept rate_metric = request_metric<M> && metric_traits<M>::side == bound_side::at_least;
template <class M>
using unit_of = typename metric_traits<M>::unit;

// SI values of every unit: seconds, per second, fractions, plain numbers.
constexpr double si(time_span t) { return t.seconds(); }
constexpr double si(request_rate r) { return r.per_second; }
constexpr double si(token_rate r) { return r.per_second; }
constexpr double si(fraction s) { return s.value; }
constexpr double si(plain_number n) { return n.value; }
constexpr double si(energy e) { return e.joules; }
constexpr double si(money m) { return m.usd; }
constexpr double si(user_count n) { return n.users; }

template <class U, class T>
concept gives = requires(const T& t, void (&f)(U)) { f(t); };

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
