// the table of metrics
// All that sets one metric apart, but for how its value is computed (core/measured): whoever asks
// whether one is a fraction or needs a stream looks it up here.
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "api/units.hpp"
#include "core/base/text.hpp"

#include <cstddef>  // size_t
#include <iterator>  // size
#include <string>
#include <string_view>
#include <type_traits>  // is_same_v

namespace llmbench {
inline namespace v0 {
namespace detail {

enum class metric_unit : unsigned char {
    time,
    tokens_per_s,
    requests_per_s,
    users,
    fraction,
    energy,
    money,
    none
};
/// The units of a dimension, each with what it is in SI and its literal in a gate file. Limits are
/// printed in the first.
struct written_unit {
    metric_unit of;
    std::string_view name;
    double si;
    const char* literal;
};
inline constexpr written_unit written_units[] = {
    {metric_unit::time, "ms", 1e3, "_ms"}, {metric_unit::time, "s", 1, "_s"},
    {metric_unit::time, "min", 1 / 60.0, "_min"},
    {metric_unit::tokens_per_s, "tok/s", 1, "_tps"}, {metric_unit::tokens_per_s, "tps", 1, "_tps"},
    {metric_unit::requests_per_s, "req/s", 1, "_rps"},
    {metric_unit::requests_per_s, "rps", 1, "_rps"},
    {metric_unit::users, "users", 1, "_users"}, {metric_unit::fraction, "%", 100, "_pct"},
    {metric_unit::fraction, "pct", 100, "_pct"}, {metric_unit::energy, "J", 1, "_J"},
    {metric_unit::money, "USD", 1, "_usd"}, {metric_unit::money, "usd", 1, "_usd"}};
/// nullptr of plain numbers.
constexpr const written_unit* first_unit_of(metric_unit unit) {
    for (const written_unit& u : written_units)
        if (u.of == unit) return &u;
    return nullptr;
}

/// What has a value: each completed request, each session that was played whole, each repeat by its
/// steady window or by how many of its requests missed, the start of a server, the server itself,
/// its repeats at several loads, a repeat by the thirds of its window, a repeat by the prompts of
/// its requests.
enum class metric_of : unsigned char {
    request, session, window, requests, start, recovery, server, loads, thirds, prompts, ratio
};
/// What a completed request must have brought to have a value of a metric, or to count in one.
enum class value_needs : unsigned char {
    nothing, prompt_tokens, second_token, second_event, second_read, answer, reported_tokens,
    cached_tokens
};

struct metric_facts {
    metric_id id;
    const char* name;
    metric_unit unit = metric_unit::time;
    bound_side side = bound_side::at_most;  // the one from which a limit makes sense
    metric_of of = metric_of::request;
    bool is_of_gaps = false;           // pooled over a repeat's requests; of one, its longest gap
    value_needs needs = value_needs::nothing;
    bool is_of_decoding = false;       // of when tokens came, from the first to the last
    bool counts_output = false;        // or divides by them: output tokens, by usage
    bool needs_stream = false;         // a first token apart from the last
    bool is_of_prefill = false;        // faster where a prefix cache has some of the prompt
    bool needs_event_times = false;    // of every content event, not of the first and last alone
    bool is_hurt_by_lateness = false;  // the client's: counted from when a request was to be sent
    // Of what can be zero: compared on log(x + offset), SI; below it ratios mean nothing. 0: none.
    double offset = 0;
    bool is_whole = false;  // a count of something, which has no half
};

inline constexpr metric_facts metric_table[] = {
    {.id = metric_id::ttft, .name = "ttft", .needs_stream = true, .is_of_prefill = true,
     .is_hurt_by_lateness = true},
    {.id = metric_id::tpot, .name = "tpot", .needs = value_needs::second_token,
     .is_of_decoding = true, .counts_output = true, .needs_stream = true},
    {.id = metric_id::itl, .name = "itl", .is_of_gaps = true, .needs = value_needs::second_event,
     .is_of_decoding = true, .needs_stream = true, .needs_event_times = true},
    {.id = metric_id::e2e, .name = "e2e", .is_hurt_by_lateness = true},
    {.id = metric_id::normalized_latency, .name = "normalized_latency",
     .counts_output = true, .is_hurt_by_lateness = true},
    {.id = metric_id::ttft_per_prompt_token, .name = "ttft_per_prompt_token",
     .needs = value_needs::prompt_tokens, .needs_stream = true, .is_of_prefill = true,
     .is_hurt_by_lateness = true},
    {.id = metric_id::ttft_from_send, .name = "ttft_from_send", .needs_stream = true,
     .is_of_prefill = true},
    {.id = metric_id::first_turn_ttft, .name = "first_turn_ttft",
     .needs_stream = true, .is_of_prefill = true, .is_hurt_by_lateness = true},
    {.id = metric_id::later_turn_ttft, .name = "later_turn_ttft",
     .needs_stream = true, .is_of_prefill = true, .is_hurt_by_lateness = true},
    {.id = metric_id::time_to_first_answer, .name = "time_to_first_answer",
     .needs = value_needs::answer, .needs_stream = true, .is_of_prefill = true,
     .is_hurt_by_lateness = true},
    {.id = metric_id::second_token_gap, .name = "second_token_gap",
     .needs = value_needs::second_read, .is_of_decoding = true, .needs_stream = true},
    {.id = metric_id::session_time, .name = "session_time", .of = metric_of::session,
     .is_hurt_by_lateness = true},
    {.id = metric_id::prefill_speed, .name = "prefill_speed", .unit = metric_unit::tokens_per_s,
     .side = bound_side::at_least, .needs = value_needs::prompt_tokens, .needs_stream = true,
     .is_of_prefill = true, .is_hurt_by_lateness = true},
    {.id = metric_id::decode_speed, .name = "decode_speed", .unit = metric_unit::tokens_per_s,
     .side = bound_side::at_least, .needs = value_needs::second_token, .is_of_decoding = true,
     .counts_output = true, .needs_stream = true},
    {.id = metric_id::tokens_per_event, .name = "tokens_per_event", .unit = metric_unit::none,
     .side = bound_side::at_least, .needs = value_needs::reported_tokens, .is_of_decoding = true,
     .counts_output = true, .needs_stream = true},
    {.id = metric_id::output_throughput, .name = "output_throughput",
     .unit = metric_unit::tokens_per_s, .side = bound_side::at_least, .of = metric_of::window,
     .counts_output = true, .needs_event_times = true, .is_hurt_by_lateness = true},
    {.id = metric_id::total_throughput, .name = "total_throughput",
     .unit = metric_unit::tokens_per_s, .side = bound_side::at_least, .of = metric_of::window,
     .needs = value_needs::prompt_tokens, .counts_output = true, .needs_event_times = true,
     .is_hurt_by_lateness = true},
    {.id = metric_id::prefill_throughput, .name = "prefill_throughput",
     .unit = metric_unit::tokens_per_s, .side = bound_side::at_least, .of = metric_of::window,
     .needs = value_needs::prompt_tokens, .needs_stream = true, .is_of_prefill = true,
     .is_hurt_by_lateness = true},
    {.id = metric_id::decode_throughput, .name = "decode_throughput",
     .unit = metric_unit::tokens_per_s, .side = bound_side::at_least, .of = metric_of::window,
     .is_of_decoding = true, .counts_output = true, .needs_stream = true,
     .needs_event_times = true, .is_hurt_by_lateness = true},
    {.id = metric_id::input_throughput, .name = "input_throughput",
     .unit = metric_unit::tokens_per_s, .side = bound_side::at_least, .of = metric_of::window,
     .needs = value_needs::prompt_tokens, .is_of_prefill = true, .is_hurt_by_lateness = true},
    {.id = metric_id::request_throughput, .name = "request_throughput",
     .unit = metric_unit::requests_per_s, .side = bound_side::at_least, .of = metric_of::window,
     .is_hurt_by_lateness = true},
    {.id = metric_id::error_rate, .name = "error_rate", .unit = metric_unit::fraction,
     .of = metric_of::requests},
    {.id = metric_id::accuracy, .name = "accuracy", .unit = metric_unit::fraction,
     .side = bound_side::at_least, .of = metric_of::requests},
    {.id = metric_id::same_answers, .name = "same_answers", .unit = metric_unit::fraction,
     .side = bound_side::at_least, .of = metric_of::requests},
    {.id = metric_id::startup_time, .name = "startup_time", .of = metric_of::start},
    {.id = metric_id::first_answer_time, .name = "first_answer_time", .of = metric_of::start},
    {.id = metric_id::recovery_time, .name = "recovery_time", .of = metric_of::recovery,
     .offset = 1},
    {.id = metric_id::goodput, .name = "goodput", .unit = metric_unit::fraction,
     .side = bound_side::at_least, .of = metric_of::requests},
    {.id = metric_id::drift, .name = "drift", .unit = metric_unit::fraction,
     .side = bound_side::either, .of = metric_of::thirds},
    {.id = metric_id::ratio, .name = "ratio", .unit = metric_unit::none,
     .side = bound_side::either, .of = metric_of::ratio},
    {.id = metric_id::server_metric, .name = "server_metric", .unit = metric_unit::none,
     .side = bound_side::either, .of = metric_of::server},
    {.id = metric_id::queue_time, .name = "queue_time", .of = metric_of::server, .offset = 0.001},
    {.id = metric_id::server_prefill_time, .name = "server_prefill_time",
     .of = metric_of::server, .offset = 0.001},
    {.id = metric_id::server_decode_time, .name = "server_decode_time", .of = metric_of::server,
     .offset = 0.001},
    {.id = metric_id::queued_requests, .name = "queued_requests", .unit = metric_unit::none,
     .of = metric_of::server, .offset = 1, .is_whole = true},
    {.id = metric_id::running_requests, .name = "running_requests", .unit = metric_unit::none,
     .side = bound_side::either, .of = metric_of::server, .offset = 1, .is_whole = true},
    {.id = metric_id::kv_cache_usage, .name = "kv_cache_usage", .unit = metric_unit::fraction,
     .of = metric_of::server, .offset = 0.01},
    {.id = metric_id::preemptions, .name = "preemptions", .unit = metric_unit::none,
     .of = metric_of::server, .offset = 1, .is_whole = true},
    {.id = metric_id::prefix_cache_hits, .name = "prefix_cache_hits", .unit = metric_unit::fraction,
     .side = bound_side::at_least, .of = metric_of::server, .offset = 0.01},
    {.id = metric_id::acceptance_length, .name = "acceptance_length", .unit = metric_unit::none,
     .side = bound_side::at_least, .of = metric_of::server},
    {.id = metric_id::energy_per_token, .name = "energy_per_token", .unit = metric_unit::energy,
     .of = metric_of::server, .needs_event_times = true},
    {.id = metric_id::cost_per_million_tokens, .name = "cost_per_million_tokens",
     .unit = metric_unit::money, .of = metric_of::window, .counts_output = true,
     .needs_event_times = true, .is_hurt_by_lateness = true},
    {.id = metric_id::cached_share, .name = "cached_share", .unit = metric_unit::fraction,
     .side = bound_side::at_least, .of = metric_of::prompts, .needs = value_needs::cached_tokens,
     .offset = 0.01},
    {.id = metric_id::capacity_in_rate, .name = "capacity", .unit = metric_unit::requests_per_s,
     .side = bound_side::at_least, .of = metric_of::loads},
    {.id = metric_id::capacity_in_users, .name = "capacity", .unit = metric_unit::users,
     .side = bound_side::at_least, .of = metric_of::loads},
};

constexpr const metric_facts& facts_of(metric_id m) {
    return metric_table[static_cast<std::size_t>(m)];
}

constexpr bool has_a_row_for_each_metric() {
    for (std::size_t i = 0; i < std::size(metric_table); ++i)
        if (metric_table[i].id != static_cast<metric_id>(i)) return false;
    return metric_table[std::size(metric_table) - 1].id == metric_id::capacity_in_users;
}
static_assert(has_a_row_for_each_metric(), "one row for each metric, in the order of metric_id");

/// Whether the table and the types with which a limit is written agree on all metrics of a kind,
/// which end before `end`.
template <class M>
constexpr bool is_as_typed(metric_id end) {
    using traits = metric_traits<M>;
    using unit = typename traits::unit;
    const metric_unit written = std::is_same_v<unit, time_span>      ? metric_unit::time
                                : std::is_same_v<unit, token_rate>   ? metric_unit::tokens_per_s
                                : std::is_same_v<unit, request_rate> ? metric_unit::requests_per_s
                                : std::is_same_v<unit, energy>       ? metric_unit::energy
                                : std::is_same_v<unit, money>        ? metric_unit::money
                                : std::is_same_v<unit, plain_number> ? metric_unit::none
                                                                     : metric_unit::fraction;
    for (int i = 0; id_of(static_cast<M>(i)) != end; ++i) {
        const metric_facts& f = facts_of(id_of(static_cast<M>(i)));
        const bool of_request = f.of == metric_of::request;
        if (f.unit != written || f.side != traits::side || of_request != request_metric<M>)
            return false;
    }
    return true;
}
static_assert(is_as_typed<latency_metric>(metric_id::session_time) &&
              is_as_typed<session_metric>(metric_id::prefill_speed) &&
              is_as_typed<speed_metric>(metric_id::tokens_per_event) &&
              is_as_typed<event_metric>(metric_id::output_throughput) &&
              is_as_typed<token_throughput>(metric_id::request_throughput) &&
              is_as_typed<request_throughput_t>(metric_id::error_rate) &&
              is_as_typed<fraction_metric>(metric_id::accuracy) &&
              is_as_typed<answer_metric>(metric_id::startup_time) &&
              is_as_typed<run_time_metric>(metric_id::goodput) &&
              is_as_typed<server_time>(metric_id::queued_requests) &&
              is_as_typed<queue_gauge>(metric_id::running_requests) &&
              is_as_typed<running_gauge>(metric_id::kv_cache_usage) &&
              is_as_typed<cache_gauge>(metric_id::preemptions) &&
              is_as_typed<server_count>(metric_id::prefix_cache_hits) &&
              is_as_typed<server_fraction>(metric_id::acceptance_length) &&
              is_as_typed<draft_metric>(metric_id::energy_per_token) &&
              is_as_typed<energy_metric>(metric_id::cost_per_million_tokens) &&
              is_as_typed<cost_metric>(metric_id::cached_share) &&
              is_as_typed<prompt_metric>(metric_id::capacity_in_rate));

constexpr const char* metric_name(metric_id m) { return facts_of(m).name; }
constexpr bool is_request_fraction(metric_id m) { return facts_of(m).of == metric_of::requests; }
constexpr bool is_throughput(metric_id m) { return facts_of(m).of == metric_of::window; }
/// A throughput too, at a price.
constexpr bool is_cost(metric_id m) { return m == metric_id::cost_per_million_tokens; }
constexpr bool is_of_prompts(metric_id m) { return facts_of(m).of == metric_of::prompts; }
constexpr bool is_of_start(metric_id m) { return facts_of(m).of == metric_of::start; }
constexpr bool is_of_recovery(metric_id m) { return facts_of(m).of == metric_of::recovery; }
/// How the load was served, and not whether it was, or when the server was there.
constexpr bool is_of_service(metric_id m) {
    return m != metric_id::error_rate && !is_of_start(m) && !is_of_recovery(m);
}
/// Server metrics.
constexpr bool is_of_server(metric_id m) { return facts_of(m).of == metric_of::server; }
constexpr bool is_capacity(metric_id m) { return facts_of(m).of == metric_of::loads; }
/// Of a statistic within a run.
constexpr bool is_drift(metric_id m) { return facts_of(m).of == metric_of::thirds; }
/// Of two statistics of a repeat.
constexpr bool is_ratio(metric_id m) { return facts_of(m).of == metric_of::ratio; }
/// Of what was answered: questions, which are the same in each repeat.
constexpr bool is_of_answers(metric_id m) {
    return m == metric_id::accuracy || m == metric_id::same_answers;
}
/// Of the same questions in both arms, so that their difficulty cancels.
constexpr bool may_be_relative(metric_id m) {
    return !is_request_fraction(m) || m == metric_id::accuracy;
}
/// Judged by what repeats spread by: not by counts, and not within one of them.
constexpr bool is_judged_by_spread(metric_id m) {
    return !is_request_fraction(m) && !is_of_start(m) && !is_drift(m);
}
/// The statistic that drifts; any other one is itself.
inline statistic_data drifting(const statistic_data& s) {
    statistic_data inner = s;
    if (is_drift(s.metric)) inner.metric = s.of;
    return inner;
}
/// Of each request, and then of a repeat as a percentile, a mean or an extreme.
constexpr bool is_of_requests(metric_id m) { return facts_of(m).of == metric_of::request; }
constexpr bool is_of_sessions(metric_id m) { return facts_of(m).of == metric_of::session; }
/// Of each request, and more is better.
constexpr bool is_speed(metric_id m) {
    return is_of_requests(m) && facts_of(m).side == bound_side::at_least;
}
/// The names of ttft of some turns.
constexpr bool is_of_turns(metric_id m) {
    return m == metric_id::first_turn_ttft || m == metric_id::later_turn_ttft;
}
constexpr bool is_in_turns_of(metric_id m, int turn) {
    return !is_of_turns(m) || (m == metric_id::first_turn_ttft) == (turn == 0);
}
inline selection own_turns(metric_id m) {
    return m == metric_id::first_turn_ttft   ? turns(1, 1)
           : m == metric_id::later_turn_ttft ? turns(2)
                                             : selection{};
}

/// Which requests a selection has, as slo::text() has it: `"sql" && turns(2)`.
inline std::string selection_text(const selection& s) {
    std::string t;
    const auto add = [&](const std::string& term) { t += (t.empty() ? "" : " && ") + term; };
    if (!s.label.empty()) add("\"" + str(s.label) + "\"");
    if (s.first_turn != 1 || s.last_turn != 0)
        add(s.last_turn == 0 ? printed("turns(%d)", s.first_turn)
                             : printed("turns(%d, %d)", s.first_turn, s.last_turn));
    if (s.depth != -1) add(printed("depth(%d)", s.depth));
    if (!s.during.empty()) add("during(\"" + str(s.during) + "\")");
    return t;
}
inline bool is_all(const selection& s) { return selection_text(s).empty(); }
/// Whether a statistic is of all requests that its metric is of.
inline bool is_of_all(const statistic_data& w) {
    return selection_text(w.which) == selection_text(own_turns(w.metric));
}
inline bool is_of_all_errors(const slo& s) {
    return s.what.metric == metric_id::error_rate && !s.is_advisory && is_all(s.what.which);
}
/// Whether an objective says nothing without a baseline.
inline bool needs_baseline(const slo& s) {
    return s.factor > 0 || s.what.metric == metric_id::same_answers;
}

/// Whether a program of comparisons leaves one condition: every `&&` and `||` finds its two sides.
/// That of `predicate{}` does not.
inline bool is_condition(const list<predicate_step>& steps) {
    int conditions = 0;
    for (const predicate_step& s : steps)
        if (s.op == predicate_step::op_kind::compare) ++conditions;
        else if (--conditions < 1) return false;
    return conditions == 1;
}
inline constexpr const char* no_condition_text =
    "a predicate is empty: goodput, && and || need conditions, as in "
    "goodput(ttft <= 300_ms && tpot <= 30_ms)";

/// Whether something is said of a statistic's metric, or of one that its predicate compares.
template <class Says>
bool concerns_a_metric(const statistic_data& s, Says&& says) {
    for (const predicate_step& step : s.where)
        if (step.op == predicate_step::op_kind::compare && says(step.metric)) return true;
    for (const statistic_data& part : s.parts)
        if (concerns_a_metric(part, says)) return true;
    return says(is_drift(s.metric) ? s.of : s.metric);
}
inline bool concerns(const statistic_data& s, bool metric_facts::*fact) {
    return concerns_a_metric(s, [&](metric_id m) { return facts_of(m).*fact; });
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
