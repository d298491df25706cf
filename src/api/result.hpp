// results
#pragma once

#include "api/doctest.hpp"
#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"

namespace llmbench {
inline namespace v1 {

/// How a request ended: `ok`, where it failed, or `left` by the client after options.cancel_after.
enum class request_status : unsigned char {
    ok, connect, tls, timeout, http, protocol, server, truncated, empty, cancelled, unsent, left
};
enum class token_origin : unsigned char {
    usage,    ///< reported by the server
    events,   ///< each event counts as a token
    no_usage  ///< as `events`, though the API has usage and nobody set events_are_tokens
};
/// `after`: planned after the end of a load that was decided early.
enum class run_phase : unsigned char { warmup, measure, after };
enum class run_variant : unsigned char { candidate, baseline };  ///< the variants of a gate
/// A verdict is `inconclusive` if the repeats leave it open, and `invalid` if the measurements
/// cannot carry it; `skipped` objectives were not measured.
enum class verdict : unsigned char { pass, fail, inconclusive, invalid, skipped };
/// These return the names in files and reports.
const char* to_string(request_status s);
const char* to_string(token_origin o);
const char* to_string(run_phase p);
const char* to_string(run_variant a);
const char* to_string(verdict v);

/// One request, as in records.jsonl. Times are steady-clock nanoseconds; 0: none.
struct record {
    types::text id{};
    run_variant variant = run_variant::candidate;
    run_phase phase = run_phase::measure;
    int repeat = 0;
    long long scheduled_ns = 0, dispatched_ns = 0, connected_ns = 0, sent_ns = 0;
    long long first_token_ns = 0, last_token_ns = 0, end_ns = 0;
    long long second_token_ns = 0;  ///< of the second content event
    long long first_answer_ns = 0;  ///< of the first one that is no reasoning
    long long late_ns = 0;  ///< lateness of the client; 0 if the request was never dispatched
    int prompt_tokens = 0, output_tokens = 0;
    token_origin token_source = token_origin::events;
    int events = 0, first_event_tokens = 0;
    request_status status = request_status::unsent;
    int http_status = 0;
    types::text finish_reason{}, error{};
    int cached_tokens = -1;  ///< of the prompt, from the server's prefix cache; -1: not reported
    int reasoning_tokens = -1;      ///< of the output tokens; -1: not reported
    int hidden_tokens = 0;  ///< output tokens that were not streamed; -1: number unknown
    int tokens_at_once = 0;  ///< output tokens that came as a lump, faster than they were generated
    long long conversation = 0;     ///< its number in the trace
    int turn = 0;                   ///< of the conversation, 0 is the first
    int depth = 0;                  ///< in its session, 0 is the main line
    unsigned char part = 0;         ///< of the workload: index of its label
    // Checks of the answer use these; 0: not observed.
    int reads = 0;                  ///< socket reads that brought content events
    int first_read_events = 0;      ///< content events of the first such read
    int unknown_gaps = 0;           ///< gaps between events that a late client read together
    long long first_early_ns = 0;   ///< the first token may be earlier by up to this
    /// After the last token with text, until the finish: tokens without text came meanwhile.
    long long textless_ns = 0;
    /// Of generated text; a fragment of a tool call counts as 256, a token without text as 1.
    int text_bytes = 0;
    /// Upper bound for the text that was sent; negative: the server adds a history that it keeps.
    int most_prompt_tokens = 0;
    int most_output_tokens = 0;     ///< asked for
    int asked_prompt_tokens = 0;    ///< of a made-up prompt, without earlier turns; 0: it is none
    int shared_tokens = -1;  ///< of the prompt, that the workload repeats at most; -1: unknown
    int choices = 0;                ///< answers in this stream
    /// The number of what was asked, in the workload: the same each time; -1: none, or not graded.
    long long question = -1;
    types::maybe<bool> right{};  ///< whether the answer is right; none: no question
    types::text graded{};  ///< the answer that was graded, up to 80 bytes; empty: none found
    unsigned long long answer_hash = 0;  ///< of all generated text; 0: not compared
    types::maybe<bool> same{};  ///< equal to the baseline's answer in its pair; none: not asked
    bool exempt = false;  ///< failed while a side task disturbed the server; counts as no failure
    types::text model{};  ///< that the answer names; "": the one asked for, or none
    /// Of the first 128 bytes of text; 0: shorter, or the prompt is not made up for this answer.
    unsigned long long opening_hash = 0;
    bool length_forced = false;  ///< to most_output_tokens
    bool from_cache = false;  ///< a gateway's cache gave the answer, by its headers
    int resends = 0;  ///< times sent again after a kept connection was closed without an answer
    long long idle_ns = 0;  ///< idle time of the connection that was lost; 0: none was lost
};

/// The estimate that a verdict rests on: the geometric mean of the repeats' statistics, with its
/// interval. A fraction is taken over all counted requests. SI units (seconds, per second,
/// fraction); NaN: nothing was measured; infinite: failures reach the statistic.
struct estimate_t {
    double value = 0, low = 0, high = 0;
};

/// One input or intermediate value of a verdict, as it was used.
struct named_values {
    types::text name{};
    types::list<double> values{};
};

/// How a verdict was reached; result.json uses these names.
enum class verdict_method : unsigned char {
    none,
    counts,         ///< bounds on the fraction of misses
    counted_misses, ///< the same if failures reach the statistic
    moderated_t,    ///< the repeats' spread, moderated by a prior
    noisy_t,        ///< the same with the prior of a noisy machine
    t,              ///< the repeats' own spread
    slices, loads,
    predictive_t,   ///< the spread of the baseline runs of a history
    slices_at_once,  ///< slices of the time in which both variants were loaded
    equal_counts     ///< counts of work, which are the same in each repeat
};
/// The unit in which a verdict counts its sample.
enum class verdict_unit : unsigned char { none, repeat, pair, probe };
const char* to_string(verdict_method m);
const char* to_string(verdict_unit u);

/// The numbers of a verdict.
struct verdict_numbers {
    slo objective{};
    verdict outcome = verdict::skipped;
    /// The statistic over the requests of all repeats, as in tables; for a relative SLO the ratio.
    /// A pass is always within the limit here, and a fail never.
    double measured = 0;
    estimate_t estimate{};  ///< of the typical repeat
    double limit = 0;       ///< SI; for a relative SLO the ratio
    /// The smallest miss that this sample shows with 80 % power: a relative regression, or a
    /// fraction of misses if those are counted.
    double detectable = 0;
    int repeats = 0;         ///< or pairs
    long long requests = 0;  ///< measured ones of all repeats
    verdict_method decided_by = verdict_method::none;
    verdict_unit counted_in = verdict_unit::none;
    /// Of a ratio, SI: the measured value and the value it is divided by; 0: no ratio.
    double numerator = 0, denominator = 0;
};
/// One cause in a verdict's reason: a stable name, as in result.json, and numbers.
struct verdict_cause {
    types::text name{};  ///< "too_close", "sent_late"
    types::text whose{};  ///< fault: "client", "plan", "server", "baseline_server", "baseline"
    types::list<double> numbers{};
};
/// A verdict with its texts.
struct slo_verdict : verdict_numbers {
    types::text unit{};     ///< "repeat", "pair" or "probe"
    types::text method{};   ///< how it was decided, in words
    types::text reason{};   ///< why the verdict is no plain pass; "" for one
    types::text advice{};  ///< if the limit is tight: one that is decided more often
    /// Returns one line for a person.
    types::text line() const;
    types::text against_limit{};  ///< "mean(ttft) is 39 ms, the limit is 25 ms"; "" without a value
    types::text distance{};       ///< of what is judged: "56 % over the limit"
    /// Returns the full arithmetic: enough to repeat it by hand from records.jsonl.
    types::text explain() const;
    types::list<named_values> inputs{};
    types::list<verdict_cause> causes{};  ///< of the reason, in order
};

/// Checks of the client on its own numbers.
struct self_check_t {
    bool ok = true;
    types::text reason{};
    double lateness_p50 = 0, lateness_p99 = 0,
           lateness_max = 0;               ///< seconds after the planned send
    double late_fraction = 0;              ///< of sends, those more than 10 ms late
    double asked_rate = 0, achieved_rate = 0;  ///< requests/s; 0: the load has no rate
    double stamped_fraction = 0;           ///< of reads, those with the kernel's arrival time
    long long unknown_gaps = 0;            ///< gaps between events that a late client read together
    double coalesced_fraction = 0;  ///< of content events, those read together with an earlier one
    double cpu_utilization = 0;            ///< of one core, the busiest client thread of any repeat
    double loop_lag_p99 = 0, loop_lag_max = 0;    ///< seconds that a client thread was late
    double stamp_lag_p99 = 0, stamp_lag_max = 0;  ///< seconds from "readable" to the arrival stamp
    long long connections_opened = 0;
    double lost_fraction = 0;  ///< of a repeat's time: without CPU, if stamps are the client's own
};

namespace detail {
estimate_t estimate(const box& data, const statistic_data& what);
double measured(const box& data, const statistic_data& what);
struct result_access;
}  // namespace detail

/// The measurements and verdicts of a run.
class result {
public:
    /// Returns every request of every repeat and variant, warm-up included (see `phase`). Any
    /// thread may call it. A temporary result returns a copy, so that `for (const record& r :
    /// run(s).requests())` is safe.
    const types::list<record>& requests() const&;
    types::list<record> requests() && {
        const result& held = *this;
        return held.requests();
    }
    /// Returns the value in tables and files: the largest value, a percentile or a mean over the
    /// requests of all repeats. `r.measured(max(ttft))` is the value of one request.
    template <class U, detail::bound_side S>
    double measured(const statistic<U, S>& s) const { return detail::measured(data_, s.data); }
    template <detail::run_metric M>
    double measured(M m) const {
        return detail::measured(data_, detail::make(detail::statistic_kind::value, m).data);
    }
    /// Returns the estimate for a verdict: the typical repeat with its interval, which is narrower
    /// than the data. For `max(ttft)` it is the usual maximum of a repeat.
    template <class U, detail::bound_side S>
    estimate_t estimate(const statistic<U, S>& s) const { return detail::estimate(data_, s.data); }
    template <detail::run_metric M>
    estimate_t estimate(M m) const {
        return detail::estimate(data_, detail::make(detail::statistic_kind::value, m).data);
    }
    /// Returns one verdict per SLO of the scenario, in order; the error guard is last.
    const types::list<slo_verdict>& verdicts() const& { return verdicts_; }
    types::list<slo_verdict> verdicts() && { return verdicts_; }
    /// Returns the client's checks of its own numbers.
    const self_check_t& self_check() const& { return self_check_; }
    self_check_t self_check() && { return self_check_; }
    const types::text& name() const { return name_; }  ///< of the gate

protected:
    friend struct detail::result_access;
    types::text name_{};
    types::list<slo_verdict> verdicts_{};
    self_check_t self_check_{};
    detail::box data_{};
};

/// One objective of a result that was read back. SI units; NaN: the file has no value.
struct past_slo {
    types::text slo{}, metric{};  ///< "p99(ttft) <= 300 ms", "ttft"
    types::text of{};  ///< its requests: "\"sql\" && turns(2)"; "": all
    verdict outcome = verdict::skipped;
    bool advisory = false;
    bool at_most = true;   ///< the limit is an upper one
    bool relative = false; ///< estimate and limit are ratios to a baseline
    bool difference = false; ///< or differences from it, in the metric's unit
    double measured = 0;   ///< NaN: the file is of a version that did not write it
    estimate_t estimate{};
    double limit = 0;
    types::text reason{};
};
/// One gate of a result that was read back.
struct past_gate {
    types::text name{}, outcome{};  ///< passed, failed, refused, invalid or skipped
    types::text model{}, arrivals{};
    types::list<past_slo> slos{};
};
/// A result.json of an earlier run.
struct past_result {
    types::text started_at{}, commit{}, cpu{};
    types::list<past_gate> gates{};
};

}  // inline namespace v1
}  // namespace llmbench
