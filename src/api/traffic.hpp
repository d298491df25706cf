// lengths and arrivals
#pragma once

#include "api/side_task.hpp"
#include "api/text.hpp"
#include "api/units.hpp"

#include <initializer_list>  // .slos = {...}

namespace llmbench {
inline namespace v1 {

/// A distribution of lengths in tokens. Draws are rounded to whole tokens, at least 1.
struct length_distribution {
    enum class shape : unsigned char { fixed, uniform, normal, lognormal, empirical, trace };
    shape kind = shape::fixed;
    double a = 0;
    double b = 0;
    types::text file{};
    length_distribution() = default;
    length_distribution(shape k, double x, double y) : kind(k), a(x), b(y) {}
    template <detail::integer I>
    length_distribution(I n) : a(static_cast<double>(n)) {}
    length_distribution(token_count n) : a(n.tokens) {}
};
/// Always n tokens.
template <detail::integer I>
length_distribution fixed(I n) { return length_distribution(n); }
inline length_distribution fixed(token_count n) { return length_distribution(n); }
/// Whole numbers from `low` to `high`, both included.
inline length_distribution uniform(double low, double high) {
    return {length_distribution::shape::uniform, low, high};
}
/// `mean_tokens` and the standard deviation `sd`, both in tokens.
inline length_distribution normal(double mean_tokens, double sd) {
    return {length_distribution::shape::normal, mean_tokens, sd};
}
/// `median` tokens, `sigma` the standard deviation of the logarithm.
inline length_distribution lognormal(double median, double sigma) {
    return {length_distribution::shape::lognormal, median, sigma};
}
/// A time, or times that are drawn for each pause: `2_s`, `uniform(1_s, 5_s)`, `lognormal(2_s, 1)`.
struct time_distribution {
    using shape = length_distribution::shape;
    shape kind = shape::fixed;
    double a = 0, b = 0;  ///< seconds; of lognormal b is the sigma
    time_distribution() = default;
    time_distribution(shape k, double x, double y) : kind(k), a(x), b(y) {}
    time_distribution(time_span t) : a(t.seconds()) {}
    template <detail::duration_like D>
    time_distribution(const D& d) : time_distribution(time_span(d)) {}
};
inline time_distribution fixed(time_span t) { return t; }
/// Any time from `low` to `high`.
inline time_distribution uniform(time_span low, time_span high) {
    return {time_distribution::shape::uniform, low.seconds(), high.seconds()};
}
/// `median`, and `sigma` the standard deviation of the logarithm. At most a day.
inline time_distribution lognormal(time_span median, double sigma) {
    return {time_distribution::shape::lognormal, median.seconds(), sigma};
}
/// Lengths drawn from a file with one number a line.
inline length_distribution empirical(const types::text& file) {
    length_distribution d(length_distribution::shape::empirical, 0, 0);
    d.file = file;
    return d;
}

/// The lengths of the trace that `replay` plays, times `scale`, at most `most` tokens. `replay`
/// without a workload uses them unchanged.
inline length_distribution from_trace(double scale = 1, double most = 1e7) {
    return {length_distribution::shape::trace, scale, most};
}

namespace detail {
template <class T>
constexpr bool is_none_of_ours = false;
}  // namespace detail
/// A load that is searched: llmbench_capacity.hpp has the rates and users that it takes.
template <class T>
constexpr T up_to(T most) {
    static_assert(detail::is_none_of_ours<T>,
                  "up_to takes a rate or a number of users, and is of llmbench_capacity.hpp");
    return most;
}

/// One stage of `steps({...})`: Poisson arrivals at `rate` for `lasts`.
struct load_step {
    request_rate rate{};
    time_span lasts{};
};

namespace detail {
enum class arrival_kind : unsigned char {
    constant, poisson, gamma, ramp, steps, replay, all_at_once, closed_loop
};
struct arrival_data {
    arrival_kind kind = arrival_kind::closed_loop;
    double rate = 0;        // requests/s; of ramp: at its start
    double rate_to = 0;     // of ramp: at its end
    double over_s = 0;      // of ramp: how long it takes
    double burstiness = 1;  // of gamma: the shape of the gaps
    list<load_step> stages{};
    text file{};            // of replay
    double speed = 1;       // of replay: 2 plays it in half the time
    double unit_s = 0;      // of replay: seconds of one unit of its time stamps; 0: not given
    long long max_in_flight = 0;  // 0: no cap
    long long users = 1;
    time_distribution think{};
    double users_ramp_s = 0;
    list<task_step> held{};    // none, or what holds a burst at the server and what releases it
    bool is_searched = false;  // its rate or its users are searched
    text described{};          // the whole pattern in words, if read back from a file
};
class has_arrivals {
public:
    const arrival_data& data() const { return data_; }

protected:
    friend struct search_access;
    has_arrivals() = default;
    explicit has_arrivals(const arrival_data& d) : data_(d) {}
    arrival_data data_{};
};
}  // namespace detail

/// Requests are sent when they are due, whether or not earlier ones were answered.
class open_loop : public detail::has_arrivals {
public:
    explicit open_loop(const detail::arrival_data& d) : has_arrivals(d) {}
    /// At most n requests in flight; the wait of the others counts in ttft and e2e.
    template <detail::integer I>
    open_loop max_in_flight(I n) const {
        open_loop copy = *this;
        copy.data_.max_in_flight = static_cast<long long>(n);
        return copy;
    }
};

/// A recorded trace, played again.
class trace_replay : public detail::has_arrivals {
public:
    explicit trace_replay(const types::text& file) {
        data_.kind = detail::arrival_kind::replay;
        data_.file = file;
    }
    /// Plays the trace that many times as fast: 2 in half its time; 0.000001 to 1000000.
    trace_replay speed(double times) const {
        trace_replay copy = *this;
        copy.data_.speed = times;
        return copy;
    }
    /// The unit of the file's time stamps. Default: 1_ms for Mooncake, 1_s for others. Dates have
    /// none.
    trace_replay unit(time_span t) const {
        trace_replay copy = *this;
        copy.data_.unit_s = t.seconds() == 0 ? -1 : t.seconds();
        return copy;
    }
    /// As of `open_loop`.
    template <detail::integer I>
    trace_replay max_in_flight(I n) const {
        trace_replay copy = *this;
        copy.data_.max_in_flight = static_cast<long long>(n);
        return copy;
    }
};

/// Users who each send again after an answer.
class closed_loop_users : public detail::has_arrivals {
public:
    explicit closed_loop_users(long long users) { data_.users = users; }
    /// Pause of a user between an answer and the next request.
    closed_loop_users think(const time_distribution& t) const {
        closed_loop_users copy = *this;
        copy.data_.think = t;
        return copy;
    }
    /// Users start one after the other, evenly spread over t.
    closed_loop_users ramp(time_span t) const {
        closed_loop_users copy = *this;
        copy.data_.users_ramp_s = t.seconds();
        return copy;
    }
};

/// The way requests are sent. Default: one user in a closed loop.
class arrival_pattern : public detail::has_arrivals {
public:
    arrival_pattern() = default;
    arrival_pattern(const detail::has_arrivals& a) : has_arrivals(a.data()) {}
};

/// Everything at the start.
class burst : public open_loop {
public:
    explicit burst(const detail::arrival_data& d) : open_loop(d) {}
    /// The server gets `hold` before the first request and `release` once all are sent, so that all
    /// wait before its first step: `held(post("/pause?mode=keep"), post("/resume"))` of vLLM. Work
    /// is exact then, and times mean nothing. A post without a 2xx answer within 30 s, or
    /// limits.total, makes the gate invalid; `release` is sent in any case.
    arrival_pattern held(const task_step& hold, const task_step& release) const {
        burst copy = *this;
        copy.data_.held = {hold, release};
        return copy;
    }
};

/// Evenly spaced requests; rates of open loops are above 0, at most 1000000_rps.
open_loop constant(request_rate rate);
/// Exponential gaps, scaled so that n requests take exactly n / rate.
open_loop poisson(request_rate rate);
/// Gamma-distributed gaps of shape `burstiness`, 0.01 to 1000: 1 is Poisson, less is burstier, more
/// is steadier.
open_loop gamma(request_rate rate, double burstiness);
/// Poisson arrivals whose rate moves linearly over the given time, then stays.
open_loop ramp(request_rate from, request_rate to, time_span over);
/// Poisson arrivals in stages.
open_loop steps(std::initializer_list<load_step> stages);
/// The arrival times of a published trace, and its lengths if no workload is named. The first
/// line tells the format: Azure LLM inference (CSV: TIMESTAMP, ContextTokens, GeneratedTokens),
/// BurstGPT (CSV: Timestamp, Request tokens, Response tokens), Mooncake (JSONL: timestamp in ms,
/// input_length, output_length, hash_ids, which say what prompts have in common). It ends with
/// `.requests`, `.duration` or the trace, whichever comes first.
inline trace_replay replay(const types::text& trace_file) { return trace_replay(trace_file); }
/// Everything is sent at the start: the offline, saturating case.
burst all_at_once();
/// A fixed number of users, 1 to 100000.
template <detail::integer I>
closed_loop_users closed_loop(I users) { return closed_loop_users(static_cast<long long>(users)); }
closed_loop_users closed_loop(user_count) = delete;  // the number alone: closed_loop(64)

}  // inline namespace v1
}  // namespace llmbench
