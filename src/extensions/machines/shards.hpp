// a load sent by several programs without communication
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/target.hpp"
#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/random.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/judging/rule.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/shard.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/load/load_target.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "extensions/machines/core/clock.hpp"

#include <algorithm>  // max, min, sort
#include <cmath>  // llround
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <fstream>
#include <functional>
#include <string>

#include <sys/resource.h>  // getrusage
#ifdef __linux__
#include <sys/timex.h>  // adjtimex
#endif
#include <unistd.h>  // gethostname

namespace llmbench {
inline namespace v1 {
namespace detail {

/// This program's share of the load, and the start of its first repeat in Unix time.
struct shard_settings {
    load_shard shard{};
    double start_at_s = 0;
};
/// LLMBENCH_SHARD, the whole load if not set.
inline load_shard shard_of(const std::string& s) {
    if (s.empty()) return {};
    const std::size_t slash = std::min(s.find('/'), s.size());
    const auto index = parsed_number<std::size_t>(s.substr(0, slash));
    const auto count = parsed_number<std::size_t>(s.substr(std::min(slash + 1, s.size())));
    if (!(index && count && *count > 0 && *count <= max_shards && *index < *count))
        refuse({"LLMBENCH_SHARD is \"", printable(s, 40),
                "\": it must be such as 2/8, the third of eight: 0/8 to 7/8, of 10000 at most"});
    return {*index, *count};
}
/// LLMBENCH_START_AT, 0 if not set.
inline double start_at_of(const std::string& s) {
    if (s.empty()) return 0;
    const double at = parsed_number<double>(s).value_or(0);
    if (!(at >= 1e9 && at < 1e10))
        refuse({"LLMBENCH_START_AT is \"", printable(s, 40),
                "\": it must be a time in seconds since 1970, such as $(($(date +%s) + 60))"});
    return at;
}
inline shard_settings shard_settings_of(const variable_lookup& look_up) {
    const shard_settings s{shard_of(look_up("LLMBENCH_SHARD")),
                           start_at_of(look_up("LLMBENCH_START_AT"))};
    if (s.shard.is_whole() != (s.start_at_s == 0))
        refuse({"LLMBENCH_SHARD and LLMBENCH_START_AT belong together: all shards of a load begin "
                "at one time, and only ", s.shard.is_whole() ? "the second" : "the first",
                " is set"});
    return s;
}

/// Refuses loads that cannot be shared in any way.
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
/// With servers of their own they would be separate loads.
inline void check_shared_target(const scenario& s) {
    if (s.target.is_switched())
        refuse({"target is switched(...), and the load is shared by several programs, each of which "
                "would put servers to sleep: let one program send the load"});
    for (const box* what : {&s.target.what(), &s.baseline.live().what()}) {
        if (what->get<process>())
            refuse({"target is a process, and the load is shared by several programs: start the "
                    "server once, and name its endpoint"});
        if (what->get<extension_value>())
            refuse({"target is simulated(), and the load is shared by several programs: start the "
                    "simulated server once (serve_simulated), and name its endpoint"});
    }
}

/// Refuses loads for which shards would have to communicate.
inline void check_shard(const plan& p, const load_shard& shard, const settings& asked) {
    const std::string of = printed("LLMBENCH_SHARD is %zu/%zu: ", shard.index, shard.count);
    if (p.searches())
        refuse({of, "a search needs a verdict between its probes, which shards do not have: use "
                    "MPI, or ask for one load"});
    if (p.judged->has_stored_baseline || (p.judged->has_baseline && !p.judged->is_at_once))
        refuse({of, "a baseline needs programs that communicate, unless pairs is at_once: use MPI, "
                    "or run the gate in one"});
    if (p.judged->past.by)
        refuse({of, "a history is of runs of one program: use MPI, or run the gate in one"});
    if (asked.calibrate != 0 || asked.write_baseline)
        refuse({of, "LLMBENCH_CALIBRATE and LLMBENCH_WRITE_BASELINE are of a whole load"});
    if (!p.sent->is_open_loop() && !(p.sent->duration_s > 0))
        refuse({of, "arrivals is a closed loop without a duration, so that no shard knows when the "
                    "next repeat begins: set .duration"});
    check_shard(*p.sent, shard);
}

/// The default number of repeats of shards: there is one analysis at the end, and a fail takes
/// three.
inline constexpr int repeats_of_shards = 3;

/// Shards start by their machines' clocks, which NTP keeps within some ten milliseconds.
inline constexpr double max_skew_of_shards_s = 0.05;

/// The starts of all repeats of this program's shards: all know the first start and the longest
/// duration of a repeat, so none has to ask. Times are Unix seconds.
class shard_clock {
public:
    static shard_clock& of_this_program() {
        static shard_clock clock;
        return clock;
    }
    /// The same words in all shards, and in no other run.
    static std::uint64_t nonce(double start_at_s, std::uint64_t seed, std::size_t gate) {
        const auto at = static_cast<std::uint64_t>(std::llround(start_at_s * 1e6));
        return mixed(at ^ mixed(seed + 7919 * (gate + 1)));
    }
    void begin_gate(double start_at_s, int servers) {
        if (next_s_ == 0) next_s_ = start_at_s;
        else next_s_ += between_gates_s * servers;
    }
    /// The start of the next repeat, which lasts until begin_next().
    double start_s() const { return next_s_; }
    /// The measured part of a batch begins when its warm-up must be over.
    static double measured_after_s(const planned_traffic& p) {
        return drain_s(p) + 1;
    }
    /// When all shards have all answers to a repeat that begins now. Twins may be sent 1 s apart.
    double end_s(const plan& of) const {
        const planned_traffic& p = of;
        const bool as_batch = p.arrivals.kind == arrival_kind::all_at_once;
        const double sends_s = as_batch && p.warmup_requests > 0 ? measured_after_s(p) :
                               expected_seconds(p) + (p.is_open_loop() ? 0 : first_answers_s);
        return next_s_ + sends_s + drain_s(p) + (of.judged->is_at_once ? 2 : 1);
    }
    void begin_next(const plan& p) { next_s_ = end_s(p) + between_repeats_s; }

private:
    static constexpr double between_gates_s = 15;  // to find the server, and its words
    static constexpr double between_repeats_s = 4;
    static constexpr double first_answers_s = 10;  // of users whose warm-up is a number
    double next_s_ = 0;
};

/// Waits for a time of the machine's clock, or a signal.
inline void wait_for_unix_time(double at_s) {
    for (double left = at_s - unix_s(); left > 0 && !stop_asked.load(); left = at_s - unix_s())
        sleep_s(std::min(left, 0.05));
}
inline long long steady_ns_at(double unix_time_s) {
    return now_ns() + std::llround((unix_time_s - unix_s()) * 1e9);
}

/// Peak memory of this process, in bytes.
inline double max_memory_so_far() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
#ifdef __APPLE__
    return static_cast<double>(used.ru_maxrss);
#else
    return 1024.0 * static_cast<double>(used.ru_maxrss);
#endif
}
inline std::string name_of_the_machine() {
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    return name;
}
/// An id of this machine's start, "" if there is none.
inline std::string name_of_the_boot() {
    std::string id;
#ifdef __linux__
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
#endif
    return id;
}
/// Whether the system reports a synchronised clock.
inline bool clock_is_synchronised() {
#ifdef __linux__
    timex reported{};
    return ::adjtimex(&reported) != TIME_ERROR;
#else
    return true;  // unknown
#endif
}

inline rank_part part_of(const repeat_data& d, const load_shard& shard, long long start_ns) {
    rank_part r;
    r.index = static_cast<int>(shard.index);
    r.count = static_cast<int>(shard.count);
    r.host = printable(name_of_the_machine(), 256);
    r.start_ns = start_ns;
    r.cpu_utilization = d.cpu_utilization;
    r.memory_bytes = max_memory_so_far();
    r.synchronised = clock_is_synchronised();
    vector<double> late;
    for (const record& x : d.records) {
        if (!is_measured(x)) continue;
        ++r.requests;
        r.failed += has_failed(x);
        if (x.dispatched_ns > 0) late.push_back(static_cast<double>(x.late_ns) * 1e-9);
    }
    std::sort(late.begin(), late.end());
    if (!late.empty()) r.lateness_p99 = nearest_rank(late, 0.99);
    return r;
}

/// Reads the server's clock, if it reports one, because all shards see the same one.
inline void note_server_clock(const load_target& to, clock_ahead& lead) {
    const double asked_s = unix_s();
    const http_answer a = blocking_get(to, first_path(to), to.fields, 1);
    if (a.date_s) note_date(lead, asked_s, unix_s(), *a.date_s);
}

/// A shard's part of each variant, which begins with all others. The first shard reads the servers'
/// metrics before any of them sends and after all have their answers.
inline void send_of_shard(variant_repeats& variants, const std::function<void()>& load) {
    constexpr double to_connect_s = 2;
    const plan& p = variants[0].what;
    const load_target& clock_of = variants[0].target.load();
    shard_clock& clock = shard_clock::of_this_program();
    double begins_s = clock.start_s();
    const double ends_s = clock.end_s(p);
    clock.begin_next(p);
    clock_ahead lead;
    wait_for_unix_time(begins_s - to_connect_s - 1);
    if (unix_s() < begins_s - to_connect_s) note_server_clock(clock_of, lead);
    wait_for_unix_time(begins_s - to_connect_s);
    long long planned_ns = 0, began_ns = now_ns();
    variants[0].asked.start = [&] {  // both begin together
        planned_ns = steady_ns_at(begins_s);
        begins_s += shard_clock::measured_after_s(p);
        return began_ns = std::max(planned_ns, now_ns() + 10000000);
    };
    load();
    for (variant_repeat& v : variants) v.seen.ranks = {part_of(v.seen, p.shard, began_ns)};
    wait_for_unix_time(ends_s);
    if (!stop_asked.load()) note_server_clock(clock_of, lead);
    variants[0].seen.ranks[0].lead = lead;
    for (variant_repeat& v : variants)
        v.seen.ranks[0].off_s = static_cast<double>(began_ns - planned_ns) * 1e-9;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
