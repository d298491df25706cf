// results
#pragma once

#include "api/doctest.hpp"
#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"

namespace llmbench {
inline namespace v0 {

enum class request_status : unsigned char {
    ok, connect, tls, timeout, http, protocol, server, truncated, empty, cancelled, unsent, left
};
enum class token_origin : unsigned char { usage, events };
enum class run_phase : unsigned char { warmup, measure };
enum class run_arm : unsigned char { candidate, baseline };
enum class verdict : unsigned char { pass, fail, inconclusive, invalid, skipped };
const char* to_string(request_status s);
const char* to_string(token_origin o);
const char* to_string(run_phase p);
const char* to_string(run_arm a);
const char* to_string(verdict v);

/// One request, as in records.jsonl. Times are steady-clock nanoseconds, 0 where there is none.
struct record {
    types::text id{};
    run_arm arm = run_arm::candidate;
    run_phase phase = run_phase::measure;
    int repeat = 0;
    long long scheduled_ns = 0, dispatched_ns = 0, connected_ns = 0, sent_ns = 0;
    long long first_token_ns = 0, last_token_ns = 0, end_ns = 0;
    long long second_token_ns = 0;  ///< of the second content event
    long long first_answer_ns = 0;  ///< of the first one that is no reasoning
    long long late_ns = 0;  ///< the client's own lateness; 0 too for what was never dispatched
    int prompt_tokens = 0, output_tokens = 0;
    token_origin token_source = token_origin::events;
    int events = 0, first_event_tokens = 0;
    request_status status = request_status::unsent;
    int http_status = 0;
    types::text finish_reason{}, error{};
    int cached_tokens = -1;         ///< of the prompt, from the server's prefix cache; -1: not said
    int reasoning_tokens = -1;      ///< of the output tokens; -1: not said
    int hidden_tokens = 0;  ///< of the output tokens, never streamed; -1: how many is unknown
    long long conversation = 0;     ///< its number in the trace
    int turn = 0;                   ///< of the conversation, 0 is the first
    int depth = 0;                  ///< in its session, 0 is the main line
    unsigned char part = 0;         ///< of the workload: its place among the labels
    // Whether the answer can be what it says is judged by these; 0 where that was not seen.
    int reads = 0;                  ///< of the socket, that brought content events
    int first_read_events = 0;      ///< content events that the first of them brought
    int text_bytes = 0;             ///< of generated text; 256 for a fragment of a tool call
    int most_prompt_tokens = 0;     ///< that what was sent can be
    int choices = 0;                ///< answers that share the stream
    types::maybe<bool> right{};  ///< the answer to a question; none where there was no question
    types::text graded{};  ///< what was read in it, up to 80 bytes; empty: nothing could be
    unsigned long long answer_hash = 0;  ///< of all that was generated; 0: it was not compared
    types::maybe<bool> same{};  ///< as the baseline's answer in its pair; none: that was not asked
    bool excused = false;  ///< it failed while a side task hurt, which is no failure of its own
    int resends = 0;  ///< times it was sent again: its kept connection was closed without an answer
};

/// What a verdict rests on: the statistic of the typical repeat, which is the geometric mean of
/// what the repeats show, and the interval that goes with it. A fraction has that of all requests
/// counted. SI units (seconds, per second, fraction); NaN where nothing was measured, infinite
/// where failures reach it.
struct estimate_t {
    double value = 0, low = 0, high = 0;
};

/// One input or intermediate value of a verdict, exactly as it was used.
struct named_values {
    types::text name{};
    types::list<double> values{};
};

/// How a verdict was reached. result.json spells these as they stand here.
enum class verdict_method : unsigned char {
    none,
    counts,         ///< bounds on the fraction of misses
    counted_misses, ///< the same where failures reach the statistic
    moderated_t,    ///< the repeats' spread, moderated by what is believed of it
    noisy_t,        ///< the same with what is believed of a noisy machine
    t,              ///< the repeats' own spread
    batch_means, slices, loads, margins,
    predictive_t    ///< the spread of the nights of a history
};
/// What a verdict counts its evidence in.
enum class verdict_unit : unsigned char { none, repeat, pair, stage, probe };
const char* to_string(verdict_method m);
const char* to_string(verdict_unit u);

/// A verdict as it was decided.
struct verdict_numbers {
    slo what{};
    verdict outcome = verdict::skipped;
    /// The data: the statistic of the requests of all repeats together, as tables show it; of a
    /// relative SLO the ratio. No pass is over the limit here, and no fail within it.
    double measured = 0;
    estimate_t estimate{};  ///< of the typical repeat
    double limit = 0;       ///< SI; of a relative SLO the ratio
    /// What this sample would have shown four times in five: a relative regression, or the fraction
    /// of misses where those are counted.
    double detectable = 0;
    int repeats = 0;         ///< or pairs, or stages of fresh traffic
    long long requests = 0;  ///< measured ones, all repeats
    verdict_method decided_by = verdict_method::none;
    verdict_unit counted_in = verdict_unit::none;
};
/// One cause of a verdict's reason: names that result.json has and that do not change, and numbers.
struct verdict_cause {
    types::text name{};  ///< "too_close", "sent_late"
    types::text whose{}; ///< fault it is: "client", "plan", "server", "baseline_server", "baseline"
    types::list<double> numbers{};
};
/// The same in sentences.
struct slo_verdict : verdict_numbers {
    types::text unit{};     ///< "repeat", "pair" or "stage"
    types::text method{};
    types::text reason{};
    types::text advice{};  ///< a limit that would be decided more often, where this one is tight
    /// One line for a person.
    types::text line() const;
    /// The arithmetic in full: enough to do it again by hand from records.jsonl.
    types::text explain() const;
    types::text arithmetic{};
    types::list<named_values> inputs{};
    types::list<verdict_cause> causes{};  ///< of the reason, in its order
};

/// TLS handshakes of one kind, over all repeats. Their time is part of the connection's.
struct handshakes_t {
    long long count = 0;
    double mean = 0, max = 0;  ///< seconds
};

/// What the client can say against its own numbers.
struct self_check_t {
    bool ok = true;
    types::text reason{};
    double lateness_p50 = 0, lateness_p99 = 0,
           lateness_max = 0;               ///< seconds after the planned send
    double late_fraction = 0;              ///< of sends, later than 10 ms
    double asked_rate = 0, achieved_rate = 0;  ///< requests/s; 0 where the load asks for none
    double coalesced_fraction = 0;         ///< of content events, read together with an earlier one
    double cpu_utilization = 0;            ///< of one core, the busiest client thread of any repeat
    double loop_lag_p99 = 0, loop_lag_max = 0;    ///< seconds a client thread came late to its work
    double stamp_lag_p99 = 0, stamp_lag_max = 0;  ///< seconds from "readable" to the arrival stamp
    long long connections_opened = 0;
    handshakes_t handshakes_full{};     ///< of https:// alone
    handshakes_t handshakes_resumed{};  ///< with a session of an earlier connection of the repeat
    long long stalls = 0;    ///< client stalls: times that a thread did not run for over 1 ms
    double stall_max = 0;    ///< seconds, the longest of them
};

namespace detail {
estimate_t estimate(const box& data, const statistic_data& what);
double measured(const box& data, const statistic_data& what);
struct result_access;
}  // namespace detail

/// What a run measured.
class result {
public:
    /// Every request of every repeat and arm, warm-up included (`phase` says which); any thread may
    /// ask. Of a result that nobody holds it is a copy, so that
    /// `for (const record& r : run(s).requests())` is safe.
    const types::list<record>& requests() const&;
    types::list<record> requests() && {
        const result& held = *this;
        return held.requests();
    }
    /// The data, as tables and files show them: the largest value, a percentile of the requests of
    /// all repeats together, a mean over all of them. `r.measured(max(ttft))` is one request's.
    template <class U, detail::bound_side S>
    double measured(const statistic<U, S>& s) const { return detail::measured(data_, s.data); }
    template <detail::run_metric M>
    double measured(M m) const {
        return detail::measured(data_, detail::make(detail::statistic_kind::value, m).data);
    }
    /// What a verdict would rest on: the typical repeat with its interval, which is narrower than
    /// the data are. Of `max(ttft)` it is what the slowest request of a repeat usually takes.
    template <class U, detail::bound_side S>
    estimate_t estimate(const statistic<U, S>& s) const { return detail::estimate(data_, s.data); }
    template <detail::run_metric M>
    estimate_t estimate(M m) const {
        return detail::estimate(data_, detail::make(detail::statistic_kind::value, m).data);
    }
    /// One per SLO of the scenario, in order; the guard on errors is last.
    const types::list<slo_verdict>& verdicts() const& { return verdicts_; }
    types::list<slo_verdict> verdicts() && { return verdicts_; }
    const self_check_t& self_check() const& { return self_check_; }
    self_check_t self_check() && { return self_check_; }
    const types::text& name() const { return name_; }

protected:
    friend struct detail::result_access;
    types::text name_{};
    types::list<slo_verdict> verdicts_{};
    self_check_t self_check_{};
    detail::box data_{};
};

/// How much load a server carries: what find_capacity found. Loads are requests/s, or users of a
/// closed loop. Tables, `measured` and `estimate` are of the highest load that was shown to be
/// carried.
class capacity_result : public result {
public:
    capacity_result() = default;
    /// The highest load that was shown to hold all objectives; 0 where none was. A load that does
    /// not hold them comes out here in 2.5 % of the searches at most.
    double low() const { return low_; }
    /// The lowest load that was shown to miss one, infinite where none was. A load that holds them
    /// all comes out here in 2.5 % of the searches at most.
    double high() const { return high_; }
    /// The objective that limits it: "p95(ttft)", "error_rate" or "the server's throughput".
    const types::text& limiting_objective() const { return limiting_objective_; }
    [[deprecated("say limiting_objective()")]] const types::text& binding() const {
        return limiting_objective_;
    }
    int probes() const { return probes_; }
    /// "capacity in [30, 34] users, limited by p95(ttft), 13 probes".
    const types::text& line() const { return line_; }
    /// The same with every probe: its load, its margin to a miss and what it shows.
    const types::text& explain() const { return explained_; }
    template <class Stream>
        requires requires(Stream& o) { o.rdbuf(); }
    friend Stream& operator<<(Stream& o, const capacity_result& c) {
        o << c.line_.c_str();
        return o;
    }
#ifndef LLMBENCH_NO_DOCTEST
    friend doctest::String toString(const capacity_result& c) { return c.line_.c_str(); }
#endif

private:
    friend struct detail::result_access;
    double low_ = 0, high_ = 0;
    int probes_ = 0;
    types::text limiting_objective_{}, line_{}, explained_{};
};

namespace detail {
text best_setting(const box& data, const statistic_data& what);
estimate_t ratio_of_settings(const box& data, const text& of, const text& to,
                             const statistic_data& what);
struct comparison_access;
}  // namespace detail

/// Several settings of a server on one trace: what compare() measured.
class comparison_result {
public:
    comparison_result() = default;
    /// Their names, in order.
    const types::list<types::text>& settings() const& { return names_; }
    types::list<types::text> settings() && { return names_; }
    /// One setting as a run of its own: CHECK_SLO(c["budget 512"], p99(itl) <= 60_ms). Throws
    /// std::invalid_argument where none has this name, or this place (counted from 0).
    const result& operator[](const types::text& name) const;
    const result& at(types::whole place) const;
    /// The setting that is shown to be better than every other one, "" where none is. In 5 % of the
    /// comparisons at most it is one that is not.
    template <class U, detail::bound_side S>
    types::text best(const statistic<U, S>& s) const {
        return detail::best_setting(data_, s.data);
    }
    template <detail::run_metric M>
    types::text best(M m) const {
        return detail::best_setting(data_, detail::make(detail::statistic_kind::value, m).data);
    }
    /// The ratio of one setting to another with its interval, which holds together with those of
    /// all other pairs in 95 % of the comparisons: two differ significantly where it excludes 1.
    /// NaN where they cannot be compared. Throws std::invalid_argument where there is no such
    /// setting.
    template <class U, detail::bound_side S>
    estimate_t ratio(const types::text& of, const types::text& to,
                     const statistic<U, S>& s) const {
        return detail::ratio_of_settings(data_, of, to, s.data);
    }
    template <detail::run_metric M>
    estimate_t ratio(const types::text& of, const types::text& to, M m) const {
        return detail::ratio_of_settings(
            data_, of, to, detail::make(detail::statistic_kind::value, m).data);
    }
    /// "3 settings in turns, 4 rounds: p99(itl): budget 256 is best; ...".
    const types::text& line() const { return line_; }
    /// The same for all statistics, with the arithmetic of every ratio.
    const types::text& explain() const { return explained_; }
    template <class Stream>
        requires requires(Stream& o) { o.rdbuf(); }
    friend Stream& operator<<(Stream& o, const comparison_result& c) {
        o << c.line_.c_str();
        return o;
    }
#ifndef LLMBENCH_NO_DOCTEST
    friend doctest::String toString(const comparison_result& c) { return c.line_.c_str(); }
#endif

private:
    friend struct detail::comparison_access;
    types::list<types::text> names_{};
    types::list<result> results_{};
    detail::box data_{};
    types::text line_{}, explained_{};
};

/// A server at one load after the other: what curve() measured. Loads are requests/s, or users.
class curve_result {
public:
    curve_result() = default;
    types::whole size() const { return results_.size(); }
    const types::list<double>& loads() const& { return loads_; }
    types::list<double> loads() && { return loads_; }
    /// One load as a run of its own: CHECK_SLO(c[8_rps], p90(ttft) <= 300_ms). Throws
    /// std::invalid_argument where there is no such load, or place (counted from 0).
    const result& operator[](offered_load load) const;
    const result& at(types::whole place) const;
    /// The highest load up to which every one was shown to hold all objectives, 0 where none was:
    /// above the capacity as often as one verdict passes wrongly, 5 % by default.
    double low() const { return low_; }
    /// The lowest load from which on every one was shown to miss an objective, infinite where none
    /// was: below the capacity as often as one verdict fails wrongly, 1 % an objective by default.
    double high() const { return high_; }
    /// "capacity in [8, 12] req/s, limited by p90(ttft), 5 loads".
    const types::text& line() const { return line_; }
    template <class Stream>
        requires requires(Stream& o) { o.rdbuf(); }
    friend Stream& operator<<(Stream& o, const curve_result& c) {
        o << c.line_.c_str();
        return o;
    }
#ifndef LLMBENCH_NO_DOCTEST
    friend doctest::String toString(const curve_result& c) { return c.line_.c_str(); }
#endif

private:
    friend struct detail::result_access;
    types::list<double> loads_{};
    types::list<result> results_{};
    double low_ = 0, high_ = __builtin_inf();
    types::text line_{};
};

/// One objective of a result that was read back. SI units, NaN where the file has no value.
struct past_slo {
    types::text slo{}, metric{};  ///< "p99(ttft) <= 300 ms", "ttft"
    types::text of{};  ///< the requests that it is of: "\"sql\" && turns(2)"; "": all
    verdict outcome = verdict::skipped;
    bool advisory = false;
    bool at_most = true;   ///< which side of the limit is the good one
    bool relative = false; ///< to a baseline: estimate and limit are ratios
    double measured = 0;   ///< NaN in files of versions that did not write it
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
/// A result.json that an earlier run left.
struct past_result {
    types::text started_at{}, commit{}, cpu{};
    types::list<past_gate> gates{};
};

}  // inline namespace v0
}  // namespace llmbench
