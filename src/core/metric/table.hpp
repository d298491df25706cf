// the table of metrics, and their values as text
// All properties of a metric except how its value is computed (core/measured).
#pragma once

#include "api/metrics.hpp"
#include "api/own_metrics.hpp"
#include "api/slo.hpp"
#include "api/units.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // find, min
#include <array>
#include <cmath>  // isfinite, isinf, isnan
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <iterator>  // size
#include <string>
#include <string_view>
#include <type_traits>  // is_same_v

namespace llmbench {
inline namespace v1 {
namespace detail {

enum class metric_unit : unsigned char {
    time,
    tokens_per_s,
    requests_per_s,
    users,
    fraction,
    energy,
    money,
    none,
    by_type  // of the metric's type
};
/// The units of a dimension, with their SI factor and literal. Limits are printed in the first.
struct written_unit {
    metric_unit of;
    std::string_view name;
    double si;
    const char* literal;
};
inline constexpr written_unit written_units[] = {
    {metric_unit::time, "ms", 1e3, "_ms"}, {metric_unit::time, "s", 1, "_s"},
    {metric_unit::time, "min", 1 / 60.0, "_min"}, {metric_unit::time, "us", 1e6, "_us"},
    {metric_unit::tokens_per_s, "tok/s", 1, "_tps"}, {metric_unit::tokens_per_s, "tps", 1, "_tps"},
    {metric_unit::requests_per_s, "req/s", 1, "_rps"},
    {metric_unit::requests_per_s, "rps", 1, "_rps"},
    {metric_unit::users, "users", 1, "_users"}, {metric_unit::fraction, "%", 100, "_pct"},
    {metric_unit::fraction, "pct", 100, "_pct"}, {metric_unit::energy, "J", 1, "_J"},
    {metric_unit::money, "USD", 1, "_usd"}, {metric_unit::money, "usd", 1, "_usd"}};
/// nullptr for plain numbers.
constexpr const written_unit* first_unit_of(metric_unit unit) {
    for (const written_unit& u : written_units)
        if (u.of == unit) return &u;
    return nullptr;
}

/// What has a value of a metric: a completed request, a session played to its end, the steady
/// window or the misses of a repeat, the server's start or recovery, its metrics page, a search,
/// the thirds of a repeat, the prompts of a repeat, a ratio of two statistics, or the work of a
/// server from one idle page to another.
enum class metric_of : unsigned char {
    request, session, window, requests, start, recovery, server, loads, thirds, prompts, ratio,
    work
};
/// What a completed request needs to have a value of a metric, or to count in it.
enum class value_needs : unsigned char {
    nothing, prompt_tokens, second_token, second_event, second_read, answer, reported_tokens,
    cached_tokens, own_value
};

struct metric_facts {
    const char* name;
    metric_id id{};  // by its place in the table
    metric_unit unit = metric_unit::by_type;
    bound_side side = bound_side::at_most;  // the side from which a limit makes sense
    metric_of of = metric_of::request;
    bool is_of_gaps = false;  // pooled over all requests; of one, its longest gap
    value_needs needs = value_needs::nothing;
    bool is_of_decoding = false;  // depends on the times of tokens after the first
    bool counts_output = false;  // counts output tokens by usage, or divides by them
    bool needs_stream = false;  // needs a first token apart from the last
    bool is_of_prefill = false;  // improves where a prefix cache has part of the prompt
    bool needs_event_times = false;  // of every content event, not only of the first and last
    bool is_affected_by_lateness =
        false;  // counted from the planned send, a time of the client
    // A metric that can be zero is compared on log(x + offset), in SI units. 0: no offset.
    double offset = 0;
    bool is_whole = false;  // an integer count
};

/// Sets unit and side of the metrics of one type, up to a row that has them.
template <class M>
constexpr void set_type(auto& rows) {
    using unit = unit_of<M>;
    for (auto i = static_cast<std::size_t>(metric_traits<M>::first);
         i < rows.size() && rows[i].unit == metric_unit::by_type; ++i) {
        rows[i].unit = std::is_same_v<unit, time_span>      ? metric_unit::time
                       : std::is_same_v<unit, token_rate>   ? metric_unit::tokens_per_s
                       : std::is_same_v<unit, request_rate> ? metric_unit::requests_per_s
                       : std::is_same_v<unit, energy>       ? metric_unit::energy
                       : std::is_same_v<unit, money>        ? metric_unit::money
                       : std::is_same_v<unit, plain_number> ? metric_unit::none
                                                            : metric_unit::fraction;
        rows[i].side = metric_traits<M>::side;
    }
}
/// The types from the last one to the first, so that each ends where the next one begins. The rows
/// stand in the order of metric_id.
template <class... Types>
constexpr auto with_types(auto rows) {
    (set_type<Types>(rows), ...);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].id = static_cast<metric_id>(i);
    return rows;
}

inline constexpr auto metric_table = with_types<
    prompt_metric, cost_metric, energy_metric, draft_metric, server_fraction, server_count,
    cache_gauge, running_gauge, queue_gauge, server_time, run_time_metric, answer_metric,
    fraction_metric, request_throughput_t, token_throughput, event_metric, speed_metric,
    session_metric, latency_metric>(std::to_array<metric_facts>({
    {.name = "ttft", .needs_stream = true, .is_of_prefill = true, .is_affected_by_lateness = true},
    {.name = "tpot", .needs = value_needs::second_token, .is_of_decoding = true,
     .counts_output = true, .needs_stream = true},
    {.name = "itl", .is_of_gaps = true, .needs = value_needs::second_event, .is_of_decoding = true,
     .needs_stream = true, .needs_event_times = true},
    {.name = "e2e", .is_affected_by_lateness = true},
    {.name = "normalized_latency", .counts_output = true, .is_affected_by_lateness = true},
    {.name = "ttft_per_prompt_token", .needs = value_needs::prompt_tokens, .needs_stream = true,
     .is_of_prefill = true, .is_affected_by_lateness = true},
    {.name = "ttft_from_send", .needs_stream = true, .is_of_prefill = true},
    {.name = "first_turn_ttft", .needs_stream = true, .is_of_prefill = true,
     .is_affected_by_lateness = true},
    {.name = "later_turn_ttft", .needs_stream = true, .is_of_prefill = true,
     .is_affected_by_lateness = true},
    {.name = "time_to_first_answer", .needs = value_needs::answer, .needs_stream = true,
     .is_of_prefill = true, .is_affected_by_lateness = true},
    {.name = "second_token_gap", .needs = value_needs::second_read, .is_of_decoding = true,
     .needs_stream = true},
    {.name = "session_time", .of = metric_of::session, .is_affected_by_lateness = true},
    {.name = "prefill_speed", .needs = value_needs::prompt_tokens, .needs_stream = true,
     .is_of_prefill = true, .is_affected_by_lateness = true},
    {.name = "decode_speed", .needs = value_needs::second_token, .is_of_decoding = true,
     .counts_output = true, .needs_stream = true},
    {.name = "tokens_per_event", .needs = value_needs::reported_tokens, .is_of_decoding = true,
     .counts_output = true, .needs_stream = true},
    {.name = "output_throughput", .of = metric_of::window, .counts_output = true,
     .needs_event_times = true, .is_affected_by_lateness = true},
    {.name = "total_throughput", .of = metric_of::window, .needs = value_needs::prompt_tokens,
     .counts_output = true, .needs_event_times = true, .is_affected_by_lateness = true},
    {.name = "prefill_throughput", .of = metric_of::window, .needs = value_needs::prompt_tokens,
     .needs_stream = true, .is_of_prefill = true, .is_affected_by_lateness = true},
    {.name = "decode_throughput", .of = metric_of::window, .is_of_decoding = true,
     .counts_output = true, .needs_stream = true, .needs_event_times = true,
     .is_affected_by_lateness = true},
    {.name = "input_throughput", .of = metric_of::window, .needs = value_needs::prompt_tokens,
     .is_of_prefill = true, .is_affected_by_lateness = true},
    {.name = "request_throughput", .of = metric_of::window, .is_affected_by_lateness = true},
    {.name = "error_rate", .of = metric_of::requests},
    {.name = "accuracy", .of = metric_of::requests},
    {.name = "same_answers", .of = metric_of::requests},
    {.name = "startup_time", .of = metric_of::start},
    {.name = "first_answer_time", .of = metric_of::start},
    {.name = "recovery_time", .of = metric_of::recovery, .offset = 1},
    {.name = "goodput", .unit = metric_unit::fraction, .side = bound_side::at_least,
     .of = metric_of::requests},
    {.name = "drift", .unit = metric_unit::fraction, .side = bound_side::either,
     .of = metric_of::thirds},
    {.name = "ratio", .unit = metric_unit::none, .side = bound_side::either,
     .of = metric_of::ratio},
    {.name = "server_metric", .unit = metric_unit::none, .side = bound_side::either,
     .of = metric_of::server},
    {.name = "work", .unit = metric_unit::none, .side = bound_side::either,
     .of = metric_of::work, .is_whole = true},
    {.name = "queue_time", .of = metric_of::server, .offset = 0.001},
    {.name = "server_prefill_time", .of = metric_of::server, .offset = 0.001},
    {.name = "server_decode_time", .of = metric_of::server, .offset = 0.001},
    {.name = "queued_requests", .of = metric_of::server, .offset = 1, .is_whole = true},
    {.name = "running_requests", .of = metric_of::server, .offset = 1, .is_whole = true},
    {.name = "kv_cache_usage", .of = metric_of::server, .offset = 0.01},
    {.name = "preemptions", .of = metric_of::server, .offset = 1, .is_whole = true},
    {.name = "prefix_cache_hits", .of = metric_of::server, .offset = 0.01},
    {.name = "acceptance_length", .of = metric_of::server},
    {.name = "energy_per_token", .of = metric_of::server, .needs_event_times = true},
    {.name = "cost_per_million_tokens", .of = metric_of::window, .counts_output = true,
     .needs_event_times = true, .is_affected_by_lateness = true},
    {.name = "cached_share", .of = metric_of::prompts, .needs = value_needs::cached_tokens,
     .offset = 0.01},
    {.name = "capacity", .unit = metric_unit::requests_per_s, .side = bound_side::at_least,
     .of = metric_of::loads},
    {.name = "capacity", .unit = metric_unit::users, .side = bound_side::at_least,
     .of = metric_of::loads}
}));

// ---- user-defined metrics: their ids follow the built-in ones in order of creation

constexpr std::size_t max_metrics = static_cast<std::size_t>(no_own_metric) + 1;
struct own_metric_row {
    std::string name;
    double (*value)(const request_view&);
    metric_facts facts{};
    std::uint64_t reads = 0;  // built-in metrics, by their numbers
    std::string problem{};  // why it is invalid, "" where it is valid
    const own_metric_row* replaced = nullptr;  // which other threads may still read
};
/// Verdicts need logarithms and finite sums.
inline constexpr double max_value_of_user = 1e15;
inline bool is_value_of_user(double v) { return v >= 0 && v <= max_value_of_user; }

/// The user-defined metrics of the program. Any thread may make them before gates run. They are
/// never freed. A metric that is made twice has one row. A row that learns of more reads is
/// replaced, since other threads may read it.
class own_metric_rows {
public:
    const own_metric_row* at(std::size_t i) const {
        return i < std::size(rows_) ? __atomic_load_n(&rows_[i], __ATOMIC_ACQUIRE) : nullptr;
    }
    /// Returns the index of the row, 0 if there is no room.
    std::size_t add(const own_metric_row& row) {
        auto* const made = new own_metric_row(row);
        made->facts.name = made->name.c_str();
        for (std::size_t i = 0; i < std::size(rows_); ++i) {
            const own_metric_row* there = nullptr;
            if (__atomic_compare_exchange_n(&rows_[i], &there, made, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE))
                return i;
            if (there->name != row.name || there->value != row.value) continue;
            delete made;
            return i;
        }
        delete made;
        return std::size(rows_);
    }
    template <class Change>
    void change(const own_metric_row& row, Change&& add_to) {
        for (const own_metric_row*& there : rows_) {
            const own_metric_row* old = __atomic_load_n(&there, __ATOMIC_ACQUIRE);
            while (old && old->name == row.name && old->value == row.value) {
                auto* const made = new own_metric_row(*old);
                made->facts.name = made->name.c_str();
                made->replaced = old;
                add_to(*made);
                if (__atomic_compare_exchange_n(&there, &old, made, false, __ATOMIC_ACQ_REL,
                                                __ATOMIC_ACQUIRE))
                    return;
                delete made;
            }
        }
    }

private:
    const own_metric_row* rows_[max_own_metrics]{};
};
inline own_metric_rows own_metrics;

constexpr bool is_own(metric_id m) { return m >= first_own_metric; }
inline metric_id own_id(std::size_t place) {
    return static_cast<metric_id>(std::size(metric_table) + place);
}
inline const own_metric_row& own_row(metric_id m) {
    static const own_metric_row& none = *new own_metric_row{  // outlives every static object
        .name = "metric", .value = nullptr,
        .facts = {.name = "metric", .unit = metric_unit::time},
        .problem = printed("a metric of your own is not made yet, as it is in another file: say "
                           "`inline const` in a header; or there are more than %d",
                           max_own_metrics)};
    const own_metric_row* r = own_metrics.at(static_cast<std::size_t>(m) - std::size(metric_table));
    return r ? *r : none;
}

constexpr const metric_facts& facts_of(metric_id m) {
    return is_own(m) ? own_row(m).facts : metric_table[static_cast<std::size_t>(m)];
}
/// The built-in metrics, then the user-defined ones.
inline vector<metric_id> all_metrics() {
    vector<metric_id> all;
    for (const metric_facts& f : metric_table) all.push_back(f.id);
    for (std::size_t i = 0; own_metrics.at(i); ++i) all.push_back(own_id(i));
    return all;
}
/// Returns why a metric cannot be judged, "" where it can. Files know metrics by their names.
inline std::string metric_problem(metric_id m) {
    if (!is_own(m) || !own_row(m).problem.empty()) return is_own(m) ? own_row(m).problem : "";
    for (const metric_id other : all_metrics())
        if (other != m && own_row(m).name == facts_of(other).name)
            return is_own(other) ? "two metrics have this name; one in a header is `inline const`"
                                 : "a metric of llmbench has this name";
    return {};
}

static_assert(std::size(metric_table) == static_cast<std::size_t>(first_own_metric) &&
                  all_of(metric_table, [](const metric_facts& f) {
                      return f.unit != metric_unit::by_type;
                  }),
              "one row for each metric, in the order of metric_id");

constexpr const char* metric_name(metric_id m) { return facts_of(m).name; }
constexpr bool is_request_fraction(metric_id m) { return facts_of(m).of == metric_of::requests; }
constexpr bool is_throughput(metric_id m) { return facts_of(m).of == metric_of::window; }
/// A cost is a throughput at a price.
constexpr bool is_cost(metric_id m) { return m == metric_id::cost_per_million_tokens; }
constexpr bool is_of_prompts(metric_id m) { return facts_of(m).of == metric_of::prompts; }
constexpr bool is_of_start(metric_id m) { return facts_of(m).of == metric_of::start; }
constexpr bool is_of_recovery(metric_id m) { return facts_of(m).of == metric_of::recovery; }
/// Metrics of how requests were served, without their failures and without the server's start.
constexpr bool is_of_service(metric_id m) {
    return m != metric_id::error_rate && !is_of_start(m) && !is_of_recovery(m);
}
constexpr bool is_of_server(metric_id m) { return facts_of(m).of == metric_of::server; }
constexpr bool is_capacity(metric_id m) { return facts_of(m).of == metric_of::loads; }
/// A count of work, which llmbench_work.hpp plans and judges.
constexpr bool is_of_work(metric_id m) { return facts_of(m).of == metric_of::work; }
/// A drift compares a statistic within a run.
constexpr bool is_drift(metric_id m) { return facts_of(m).of == metric_of::thirds; }
/// A ratio has two statistics of a repeat.
constexpr bool is_ratio(metric_id m) { return facts_of(m).of == metric_of::ratio; }
/// Metrics of answers to questions that are the same in each repeat.
constexpr bool is_of_answers(metric_id m) {
    return m == metric_id::accuracy || m == metric_id::same_answers;
}
/// Both variants answer the same questions, so that their difficulty cancels.
constexpr bool may_be_relative(metric_id m) {
    return !is_request_fraction(m) || m == metric_id::accuracy;
}
/// Judged by the spread between repeats. Counts and drifts have their own methods.
constexpr bool is_judged_by_spread(metric_id m) {
    return !is_request_fraction(m) && !is_of_start(m) && !is_drift(m);
}
/// Returns the statistic whose drift is measured, or the statistic itself.
inline statistic_data drifting(const statistic_data& s) {
    statistic_data inner = s;
    if (is_drift(s.metric)) inner.metric = s.of;
    return inner;
}
constexpr bool is_of_requests(metric_id m) { return facts_of(m).of == metric_of::request; }
constexpr bool is_of_sessions(metric_id m) { return facts_of(m).of == metric_of::session; }
/// Metrics of a request of which more is better.
constexpr bool is_speed(metric_id m) {
    return is_of_requests(m) && facts_of(m).side == bound_side::at_least;
}
/// ttft of the first turn or of later turns.
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

/// The requests of a selection, written as slo::text() does: `"sql" && turns(2)`.
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
/// Whether a statistic covers all requests of its metric.
inline bool is_of_all(const statistic_data& w) {
    return selection_text(w.which) == selection_text(own_turns(w.metric));
}
/// What is held against a limit: the value, its ratio to the baseline's, or its difference from
/// that.
enum class limit_kind : unsigned char { absolute, ratio, difference };
inline limit_kind kind_of(const slo& s) {
    return s.factor == 0 ? limit_kind::absolute
           : s.offset != 0 ? limit_kind::difference
                           : limit_kind::ratio;
}
inline bool is_absolute(const slo& s) { return kind_of(s) == limit_kind::absolute; }
inline bool is_difference(const slo& s) { return kind_of(s) == limit_kind::difference; }
inline bool is_of_all_errors(const slo& s) {
    return s.statistic.metric == metric_id::error_rate && is_absolute(s) && !s.is_advisory &&
           is_all(s.statistic.which);
}
/// The limit in the unit of the judged value: of a ratio its factor.
inline double limit_of(const slo& s) {
    switch (kind_of(s)) {
    case limit_kind::absolute: break;
    case limit_kind::ratio: return s.factor;
    case limit_kind::difference: return s.offset;
    }
    return s.bound;
}
/// Whether an objective is meaningless without a baseline.
inline bool needs_baseline(const slo& s) {
    return !is_absolute(s) || s.statistic.metric == metric_id::same_answers;
}

/// Whether the steps of a predicate leave one condition: each `&&` and `||` has two sides.
/// Those of `predicate{}` do not.
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

/// Whether `says` holds for the metric of a statistic or for one that its predicate compares.
template <class Says>
bool concerns_a_metric(const statistic_data& s, Says&& says) {
    for (const predicate_step& step : s.where)
        if (step.op == predicate_step::op_kind::compare && says(step.metric)) return true;
    for (const statistic_data& part : s.parts)
        if (concerns_a_metric(part, says)) return true;
    return says(is_drift(s.metric) ? s.of : s.metric);
}
/// Whether gaps are pooled over the requests.
constexpr bool pools_gaps(metric_id m) { return facts_of(m).is_of_gaps && !is_own(m); }
/// Whether the function of a row reads a metric of ours.
inline bool is_read(const own_metric_row& row, metric_id m) {
    return (row.reads >> static_cast<int>(m) & 1) != 0;
}
/// Whether a metric is `other` or is computed from it.
inline bool is_or_reads(metric_id m, metric_id other) {
    return m == other || (is_own(m) && !is_own(other) && is_read(own_row(m), other));
}
inline bool concerns(const statistic_data& s, bool metric_facts::*fact) {
    return concerns_a_metric(s, [&](metric_id m) { return facts_of(m).*fact; });
}

/// In the first unit of the dimension.
inline std::string unit_text(metric_unit unit, double v, int digits) {
    if (const written_unit* u = first_unit_of(unit))
        return digits_text(v * u->si, digits) + " " + std::string(u->name);
    return digits_text(v, digits);
}
inline std::string value_text(metric_id m, double v) {
    const metric_unit unit = facts_of(m).unit;
    if (std::isnan(v)) return "none";
    if (std::isinf(v)) return "infinite";
    if (is_of_work(m)) return printed("%.15g", v);
    if (unit == metric_unit::time) return time_text(v);
    if (unit == metric_unit::energy && v < 1) return digits_text(v * 1e3, 3) + " mJ";
    const bool is_rate = unit == metric_unit::tokens_per_s || unit == metric_unit::requests_per_s;
    const bool is_amount = unit == metric_unit::energy || unit == metric_unit::money;
    return unit_text(unit, v, is_rate || is_amount ? 3 : 4);
}

/// "[11.4, 12.6] req/s".
inline std::string load_interval_text(metric_id m, double low, double high) {
    const std::string from = value_text(m, low), to = value_text(m, high);
    const std::size_t unit = std::min(to.find(' '), to.size());
    return "[" + from.substr(0, from.find(' ')) + ", " + to.substr(0, unit) + "]" + to.substr(unit);
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
/// The limit of an objective as its author wrote it: "300 ms", "3 * p50(ttft)", "1.1 * baseline",
/// "baseline - 1 %".
inline std::string limit_text(const slo& s) {
    const metric_id m = s.statistic.metric;
    if (is_of_work(m)) return str(s.statistic.gauge).substr(s.statistic.name.size() + 4);
    switch (kind_of(s)) {
    case limit_kind::absolute: break;
    case limit_kind::ratio: return printed("%g * baseline", s.factor);
    case limit_kind::difference:
        return (s.factor == 1 ? "" : printed("%g * ", s.factor)) + "baseline " +
               (s.offset > 0 ? "+ " : "- ") + limit_text(m, s.offset > 0 ? s.offset : -s.offset);
    }
    if (s.statistic.parts.size() == 2)
        return printed("%g * ", s.bound) + str(s.statistic.parts[1].name);
    return limit_text(m, s.bound);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
