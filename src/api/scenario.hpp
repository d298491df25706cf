// the scenario
#pragma once

#include "api/side_task.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"
#include "api/workload.hpp"

namespace llmbench {
inline namespace v1 {

/// Time limits of one request, which fails beyond them, and of the wait for the last ones.
struct limits {
    time_span connect = time_span::from_seconds(5);  ///< each: above 0, at most a day
    time_span first_event = time_span::from_seconds(60);
    time_span between_events = time_span::from_seconds(30);
    time_span total = time_span::from_seconds(300);
    types::maybe<time_span> drain{};  ///< default: 60 s; with a limit on session_time 10 min
};

/// Error levels of a verdict, each for one SLO over all its interim analyses.
struct judging_options {
    fraction false_pass{0.05};  ///< at the limit, 0.01 % to 20 %
    fraction false_fail{0.01};  ///< at the limit, 0.01 % to 20 %
    bool holm = false;       ///< false_fail for all blocking SLOs together (Holm 1979)
};

/// The measuring client.
struct client_options {
    types::whole threads = 0;   ///< 0: one, or more for thousands of streams on many cores
    bool spin = false;          ///< spin through the last stretch before each send
    types::list<types::text> from{};  ///< local IP addresses, in turn for new connections (each has
                                      ///< its own range of ports); none: the system's choice
};

/// The length of a warm-up: a time or a number of requests.
class warmup_amount {
public:
    constexpr warmup_amount() = default;
    constexpr warmup_amount(time_span t) : seconds_(t.seconds()), requests_(0) {}
    template <detail::duration_like D>
    constexpr warmup_amount(const D& d) : warmup_amount(time_span(d)) {}
    template <detail::integer I>
    constexpr warmup_amount(I requests) : requests_(static_cast<long long>(requests)) {}
    constexpr double seconds() const { return seconds_; }
    constexpr long long requests() const { return requests_; }
    constexpr bool until_stable() const { return until_stable_; }
    /// See until_stable().
    static constexpr warmup_amount ended_when_stable(time_span most) {
        warmup_amount w(most);
        w.until_stable_ = true;
        return w;
    }

private:
    double seconds_ = 0;
    long long requests_ = 20;
    bool until_stable_ = false;
};
/// A warm-up at the measured load that ends as soon as ttft and throughput are stable, after `most`
/// at the latest. Reports say how it went.
constexpr warmup_amount until_stable(time_span most) {
    return warmup_amount::ended_when_stable(most);
}
template <detail::duration_like D>
constexpr warmup_amount until_stable(const D& most) {
    return until_stable(time_span(most));
}

/// When a gate ends before its last repeat.
enum class stop_when : unsigned char {
    all_decided,   ///< once every objective is decided
    at_first_miss  ///< also once one blocking objective is shown to be missed
};
inline constexpr stop_when at_first_miss = stop_when::at_first_miss;

/// How a live baseline is loaded: after or before the candidate, or at the same time. At once both
/// get the whole load, each request has a twin with the same planned time and lengths, and the
/// noise that both share cancels. Two servers on one GPU take each other's time: use compare().
enum class pairing : unsigned char { in_turns, at_once };
using enum pairing;

/// One measurement, described. Designated initialisers must keep this order.
struct scenario {
    types::text name{};             ///< default: the test case's
    any_target target{};            ///< default: LLMBENCH_URL
    any_baseline baseline{};        ///< of an A/B gate
    pairing pairs = in_turns;       ///< at_once: of a live baseline, for 40 s at least
    any_workload workload{};        ///< default: synthetic{}
    arrival_pattern arrivals{};     ///< default: closed_loop(1)
    warmup_amount warmup{};         ///< before the measured part; default 20 requests
    types::whole requests = 0;      ///< measured requests of each repeat; 1 to 100000000
    time_span duration{};  ///< of the measured part; with `requests`, the first reached ends it
    /// 0: two to five, as many as needed, or eight where noise leaves a verdict open; with a live
    /// baseline four to eight pairs, or twelve; at once one pair. n: at most n, and advisory SLOs
    /// are waited for, too; run() without SLOs measures n, or three.
    types::whole repeats = 0;
    /// at_first_miss: objectives that are open then stay inconclusive. Default: LLMBENCH_STOP, else
    /// all_decided.
    stop_when stop = stop_when::all_decided;
    slo_list slos{};
    types::whole seed = 0;          ///< 0: LLMBENCH_SEED, else 1
    llmbench::limits limits{};
    request_options options{};
    client_options client{};
    judging_options judging{};
    any_profile on_fail{};  ///< of a gate that failed; default: none
    types::list<side_task> beside{};  ///< side tasks under the load
    /// Sent to each server before each repeat, outside the measurement: after
    /// `{post("/reset_prefix_cache")}` no repeat finds prompts of the one before. `{n}` is the
    /// number of the repeat. A post without a 2xx answer within limits.total makes the gate
    /// invalid.
    types::list<task_step> prepare{};
    types::maybe<hourly_cost> cost{};  ///< of its server and of the baseline's; default: none
};

}  // inline namespace v1
}  // namespace llmbench
