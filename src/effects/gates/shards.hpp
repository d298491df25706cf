// a load that several programs send without a word to each other
#pragma once

#include "api/target.hpp"
#include "api/scenario.hpp"
#include "api/traffic.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/shard.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"

#include <algorithm>  // max, min
#include <cmath>  // llround
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What no share of a load can be, whoever shares it.
inline void check_shard(const planned_traffic& p, const load_shard& shard) {
    const auto count = static_cast<long long>(shard.count);
    const std::string shared = printed("the load is shared by %lld programs, and ", count);
    const arrival_data& a = p.arrivals;
    if (!p.beside.empty())
        refuse({shared, "beside has side tasks, which each of them would do: let one program send "
                "the load"});
    if (users_of(p) > 0 && !a.is_searched && a.users < count)
        refuse({shared, printed("arrivals has %lld users: each program needs one", a.users)});
    if (p.warmup_until_stable)
        refuse({shared, "warmup is until_stable: each program would end it at another time"});
    if (a.max_in_flight != 0 && a.max_in_flight < count)
        refuse({shared, printed("max_in_flight is %lld: each program needs one", a.max_in_flight)});
}
/// A server of their own would make them loads of their own.
inline void check_shared_target(const scenario& s) {
    for (const box* what : {&s.target.what(), &s.baseline.live().what()}) {
        if (what->get<process>())
            refuse({"target is a process, and the load is shared by several programs: start the "
                    "server once, and name its endpoint"});
        if (what->get<simulated_server>())
            refuse({"target is simulated(), and the load is shared by several programs: start the "
                    "simulated server once (serve_simulated), and name its endpoint"});
    }
}

/// What shards cannot do, as they hear nothing of each other before the end.
inline void check_shard(const plan& p, const scenario& s, const settings& asked) {
    const std::string of = printed("LLMBENCH_SHARD is %zu/%zu: ", asked.shard.index,
                                   asked.shard.count);
    if (p.searches())
        refuse({of, "a search needs a verdict between its probes, which shards do not have: use "
                    "MPI, or ask for one load"});
    if (p.judged->has_baseline || p.judged->has_stored_baseline)
        refuse({of, "a baseline is measured in turns with the candidate, which shards cannot agree "
                    "on: use MPI, or run the gate in one program"});
    if (p.judged->has_history)
        refuse({of, "a history is of runs of one program: use MPI, or run the gate in one"});
    if (p.judged->rule.traffic != replayed)
        refuse({of, "traffic is fresh: shards replay one trace, or use MPI"});
    if (asked.calibrate != 0 || asked.write_baseline)
        refuse({of, "LLMBENCH_CALIBRATE and LLMBENCH_WRITE_BASELINE are of a whole load"});
    if (!p.sent->is_open_loop() && !(p.sent->duration_s > 0))
        refuse({of, "arrivals is a closed loop without a duration, so that no shard knows when the "
                    "next repeat begins: set .duration"});
    check_shard(p, asked.shard);
    check_shared_target(s);
}

/// Repeats that shards measure where the scenario names none: there is one look at the end, which
/// red takes three for.
inline constexpr int repeats_of_shards = 3;

/// Their starts go by the clocks of their machines, of which NTP keeps some ten milliseconds.
inline constexpr double most_skew_of_shards_s = 0.05;

/// When the shards of this program's gates begin their repeats: all know the first one, and how
/// long each lasts at most, so none has to ask. Times are Unix seconds.
class shard_clock {
public:
    static shard_clock& of_this_program() {
        static shard_clock clock;
        return clock;
    }
    /// The words of all shards are the same, and those of no other run.
    static std::uint64_t nonce(const settings& asked, std::size_t gate) {
        const auto at = static_cast<std::uint64_t>(std::llround(asked.start_at_s * 1e6));
        return mixed(at ^ mixed(asked.seed + 7919 * (gate + 1)));
    }
    void begin_gate(double start_at_s) {
        if (next_s_ == 0) next_s_ = start_at_s;
        else next_s_ += between_gates_s;
    }
    /// The start of the next repeat, which takes its time up to begin_next().
    double start_s() const { return next_s_; }
    /// The measured part of a batch begins when its warm-up must be over.
    static double measured_after_s(const planned_traffic& p) {
        return drain_s(p) + 1;
    }
    /// When all shards have heard all answers to a repeat that begins now.
    double end_s(const planned_traffic& p) const {
        const bool at_once = p.arrivals.kind == arrival_kind::all_at_once;
        const double sends_s = at_once && p.warmup_requests > 0 ? measured_after_s(p) :
                               expected_seconds(p) + (p.is_open_loop() ? 0 : first_answers_s);
        return next_s_ + sends_s + drain_s(p) + 1;
    }
    void begin_next(const planned_traffic& p) { next_s_ = end_s(p) + between_repeats_s; }

private:
    static constexpr double between_gates_s = 15;  // to find the server, and its words
    static constexpr double between_repeats_s = 4;
    static constexpr double first_answers_s = 10;  // of users whose warm-up is a number
    double next_s_ = 0;
};

/// Waits for a time of the machine's clock, or for a signal.
inline void wait_for_unix_time(double at_s) {
    for (double left = at_s - unix_s(); left > 0 && !stop_asked.load(); left = at_s - unix_s())
        sleep_s(std::min(left, 0.05));
}
/// That time on the clock that a load goes by.
inline long long steady_ns_at(double unix_time_s) {
    return now_ns() + std::llround((unix_time_s - unix_s()) * 1e9);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
