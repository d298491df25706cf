// the plan of a load: what is sent, and when
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/side_task.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"
#include "core/base/vector.hpp"
#include "core/base/random.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/traffic/recorded.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/shard.hpp"
#include "core/traffic/sources.hpp"
#include "core/traffic/traffic_source.hpp"

#include <algorithm>  // max, min, sort
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <memory>  // shared_ptr, unique_ptr
#include <string>
#include <type_traits>  // conditional_t, is_const_v
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The load of an earlier run as its file describes it. It cannot be sent again.
struct described_load {
    bool is_there = false;
    long long requests = 0;  // measured ones of a repeat, 0 if unknown
    bool has_turns = false;  // requests are turns, `first_turns` of them first ones
    long long first_turns = 0;
    int deepest = 0;  // of sessions, at most
    std::string extent{}, options{}, limits{};
    std::string plan{}, repeats{};  // "": told by the rest, as an extent that is not of a file
};

inline constexpr std::size_t max_parts = 64;

/// The requests of a whole workload, or of one part of a mix.
struct plan_part {
    std::string label{};
    std::size_t weight = 1;  // relative to those of all parts
    std::string workload_text{};
    std::string sent_as_given{};  // "prompts" or "images" that are the same in every repeat and run
    traffic_source source = new_shared<const synthetic_prompts>();
    std::size_t stride = 1;  // positions that a conversation takes; its turns are the first
    time_distribution think{};  // before a later turn
    /// Read for this workload; copies of a plan share it.
    std::shared_ptr<const workload_files> files = new_shared<const workload_files>();
    bool forces_length = false;
    request_spec common{};  // the same for all its requests
};
class live_target;
class task_at_work;
struct load_state;
struct plan;
/// A task that runs beside the load.
struct planned_task {
    std::string name{};
    double every_s = 0, first_s = 0;  // 0: all steps once; after the start of the measured part
    bool may_fail = false;
    double excuses_s = 0;
    vector<task_step> steps{};
    std::string text{};  // what is done, and when
    /// Begins task `number` of a plan. All arguments must outlive it.
    std::unique_ptr<task_at_work> (*begun)(const plan& p, std::size_t number, live_target& target,
                                           const load_state& load, int gate) = nullptr;
};
/// The traffic of one variant. A mix sends its parts; the members beside them then hold for all
/// parts: the longest stride, whether answers are streamed.
struct planned_workloads : plan_part {
    vector<plan_part> parts{};
    vector<std::string> labels{};  // of the parts
    vector<planned_task> beside{};
    vector<task_step> prepare{};  // steps before each repeat
    bool has_other_prompts = false;  // different from the candidate's
};

/// When requests are sent, how many, and by what client: the same for both variants.
struct planned_load {
    arrival_data arrivals{};
    long long warmup_requests = 0;
    double warmup_s = 0;
    bool warmup_until_stable = false;  // for at most warmup_s
    long long requests = 0;
    double duration_s = 0;
    std::uint64_t seed = 1;
    std::string scores{};   // the API, if it generates nothing; "" if answers have tokens
    llmbench::limits limits{};
    bool plays_out = false;  // the sessions in progress when the last one has begun
    client_options client{};
    bool compares_answers = false;  // with the other variant's, to the same prompts
    bool counts_work = false;  // of the same bytes each time, from one idle page to another
    bool searches() const { return arrivals.is_searched; }
    bool is_open_loop() const { return arrivals.kind != arrival_kind::closed_loop; }
};
/// The traffic of one repeat, of all shards together.
struct planned_traffic : planned_workloads, planned_load {
    maybe<planned_workloads> otherwise{};  // of a baseline that is the target under other options
    std::string hash{};  // its trace_hash, kept because long prompts take a while
    bool is_read = false;  // from another tool's files: nothing is sent, the seed is unknown
    described_load described{};  // in place of the data to send it
};

/// Returns the traffic of a plan that has none yet, made once.
inline std::shared_ptr<const planned_traffic> no_traffic() {
    // Outlives statics, as reports at exit make plans, too.
    static const auto& none = *new auto(new_shared<const planned_traffic>());
    return none;
}
/// What is sent in a load: the traffic, which copies share, and this program's part of it.
struct load_plan {
    std::shared_ptr<const planned_traffic> sent = no_traffic();
    load_shard shard{};
    std::uint64_t nonce = 0;  // different in each execution, so that no cache has its words
    bool searches() const { return sent->searches(); }
    /// For functions that need only the traffic.
    operator const planned_traffic&() const { return *sent; }
};

/// Of a load or of a gate.
template <class Plan, class F>
Plan with_traffic(Plan p, F&& change) {
    planned_traffic t = *p.sent;
    change(t);
    p.sent = new_shared<const planned_traffic>(std::move(t));
    return p;
}

/// Returns the seconds to wait for the last answers.
inline double drain_s(const planned_traffic& p) {
    if (p.limits.drain) return (*p.limits.drain).seconds();
    return p.plays_out ? 600 : 60;
}

inline trace_position place_of(const planned_traffic& p, std::size_t index) {
    return {index / p.stride, index % p.stride, index - index % p.stride};
}
inline trace_parameters parameters_of(const planned_traffic& p, const plan_part& part) {
    return {p.seed, *part.files};
}
template <class Parts, class F>
void for_each_part(Parts& p, F&& f) {
    if (p.parts.empty()) f(static_cast<std::conditional_t<std::is_const_v<Parts>, const plan_part,
                                                          plan_part>&>(p));
    for (auto& part : p.parts) f(part);
}
template <class IsSo>
bool any_part(const planned_workloads& p, IsSo&& is_so) {
    return p.parts.empty() ? is_so(static_cast<const plan_part&>(p)) : any_of(p.parts, is_so);
}
/// The part of a conversation, and its index in that part. Blocks of as many conversations as the
/// weights add up to have an order drawn from the seed.
struct part_place {
    const plan_part& part;
    std::size_t which = 0, conversation = 0;
};
inline part_place part_of(const planned_traffic& p, std::size_t conversation) {
    if (p.parts.empty()) return {p, 0, conversation};
    std::size_t all = 0, which = 0;
    for (const plan_part& part : p.parts) all += part.weight;
    const std::size_t block = conversation / all;
    std::size_t rank = shuffled(mixed(p.seed ^ streams::parts) + block, conversation % all, all);
    for (; rank >= p.parts[which].weight; ++which) rank -= p.parts[which].weight;
    return {p.parts[which], which, block * p.parts[which].weight + rank};
}
/// The position of a request in the trace of its own part.
struct own_place : part_place {
    trace_position at{};
};
inline own_place own_place_of(const planned_traffic& p, std::size_t index) {
    const trace_position place = place_of(p, index);
    const part_place of = part_of(p, place.conversation);
    return {of, {of.conversation, place.turn, of.conversation * of.part.stride}};
}
inline const wanted_answer* wanted_of(const planned_traffic& p, const plan_part& part,
                                      std::size_t conversation) {
    return part.source->wanted(conversation, parameters_of(p, part));
}
inline const wanted_answer* wanted_at(const planned_traffic& p, std::size_t index) {
    const own_place of = own_place_of(p, index);
    return wanted_of(p, of.part, of.at.conversation);
}
/// Whether a part sends the same prompts, without answers, in every repeat and both variants.
inline bool repeats_prompts(const plan_part& part) {
    return part.source->facts().repeats_prompts && part.stride == 1;
}
/// The use of an answer: it is graded, or compared with the other variant's.
struct answer_use {
    const wanted_answer* wanted = nullptr;
    bool is_compared = false, is_greedy = false;
    long long question = -1;  // its number, different in each part of a mix
    bool is_read() const { return wanted || is_compared; }
};
inline answer_use answer_use_at(const planned_traffic& p, std::size_t index) {
    const own_place of = own_place_of(p, index);
    answer_use use{wanted_of(p, of.part, of.at.conversation),
                   p.compares_answers && repeats_prompts(of.part),
                   of.part.common.temperature == 0};
    if (!use.is_read()) return use;
    const std::size_t parts = std::max<std::size_t>(1, p.parts.size());
    const std::size_t number =
        of.part.source->question(of.at.conversation, parameters_of(p, of.part));
    use.question = static_cast<long long>(number * parts + of.which);
    return use;
}
inline bool asks_questions(const planned_traffic& p) {
    return any_part(p, [&](const plan_part& part) { return wanted_of(p, part, 0) != nullptr; });
}
inline bool has_turns(const planned_traffic& p) { return p.stride > 1 || p.described.has_turns; }
inline std::size_t turns_of(const planned_traffic& p, std::size_t conversation) {
    const part_place of = part_of(p, conversation);
    return of.part.source->turns(of.conversation, parameters_of(p, of.part));
}
/// Returns the steps that a request waits for, and those that wait for it.
inline graph_step step_of(const planned_traffic& p, std::size_t index) {
    const own_place of = own_place_of(p, index);
    graph_step s = of.part.source->step(of.at, parameters_of(p, of.part));
    if (s.turn > 0 && !of.part.source->facts().plays_sessions)
        s.wait_s = drawn_seconds(of.part.think, p.seed, streams::thinking + of.at.index());
    if (!p.parts.empty()) s.label = static_cast<unsigned char>(of.which);
    return s;
}
inline bool plays_sessions(const plan_part& p) { return p.source->facts().plays_sessions; }
inline bool has_graphs(const planned_traffic& p) {
    return any_part(p, [](const plan_part& part) { return part.source->facts().is_graph; });
}
/// The number of conversations that warm up, and that are measured (0: no limit). The last one may
/// be cut to keep the number of requests, unless sessions are played out.
struct conversation_counts {
    std::size_t warmup = 0, measured = 0, last_turns = 1;
};
inline conversation_counts counted_conversations(const planned_traffic& p) {
    const auto warmup = static_cast<std::size_t>(p.warmup_requests);
    const auto requests = static_cast<std::size_t>(p.requests);
    if (p.stride == 1) return {warmup, requests, 1};
    conversation_counts c;
    for (std::size_t turns = 0; turns < warmup; ++c.warmup) turns += turns_of(p, c.warmup);
    for (std::size_t turns = 0; turns < requests; ++c.measured) {
        const std::size_t more = turns_of(p, c.warmup + c.measured);
        c.last_turns = p.plays_out ? more : std::min(more, requests - turns);
        turns += more;
    }
    return c;
}

inline std::size_t users_of(const planned_traffic& p) {
    return p.is_open_loop() ? 0 : static_cast<std::size_t>(p.arrivals.users);
}
inline double user_begins_s(const planned_traffic& p, std::size_t user) {
    return p.arrivals.users_ramp_s * static_cast<double>(user) /
           static_cast<double>(p.arrivals.users);
}

/// Returns the seconds before the measured part of a closed loop: all users have to be there first,
/// whatever else warms up.
inline double lead_seconds(const planned_traffic& p) {
    return std::max(p.warmup_s, p.arrivals.users_ramp_s);
}

/// Returns the send times of an open loop; of conversations, those of their first turns.
inline schedule schedule_of(const planned_traffic& p) {
    const conversation_counts c = counted_conversations(p);
    if (p.arrivals.kind == arrival_kind::replay)
        return replay_schedule(p.arrivals, p.files->trace, c.warmup, p.warmup_s, c.measured,
                               p.duration_s, p.seed);
    return open_loop_schedule(p.arrivals, static_cast<long long>(c.warmup), p.warmup_s,
                              static_cast<long long>(c.measured), p.duration_s, p.seed);
}
/// Has one of each two twins, as drawn, sent up to a mean gap later, a second at most. A server
/// that both share would answer twins of one time one after the other, a gateway's always last.
inline void part_twins(vector<double>& at, std::uint64_t seed, run_variant variant) {
    generator random(seed, streams::twins);
    const double most = at.empty() ? 0 : std::min(1.0, at.back() / static_cast<double>(at.size()));
    for (double& s : at) {
        const bool is_later = (random.uniform() < 0.5) == (variant == run_variant::candidate);
        const double by_s = most * random.uniform();
        if (is_later) s += by_s;
    }
    std::sort(at.begin(), at.end());
}
/// Returns the end of the last position of an open loop with so many starts.
inline std::size_t end_of_trace(const planned_traffic& p, std::size_t starts) {
    const conversation_counts c = counted_conversations(p);
    const bool whole = c.measured == 0 || starts < c.warmup + c.measured;
    return starts == 0 ? 0 : (starts - 1) * p.stride + (whole ? p.stride : c.last_turns);
}

inline long long requests_before(const planned_traffic& p, std::size_t last) {
    if (p.stride == 1) return static_cast<long long>(last);
    std::size_t n = 0;
    for (std::size_t c = 0; c * p.stride < last; ++c)
        n += std::min(turns_of(p, c), last - c * p.stride);
    return static_cast<long long>(n);
}

/// Returns the least seconds of one repeat that the plan can tell, else 0.
inline double expected_seconds(const planned_traffic& p) {
    if (!p.is_open_loop()) return p.duration_s > 0 ? lead_seconds(p) + p.duration_s : 0;
    if (p.arrivals.kind == arrival_kind::all_at_once) return 0;
    return schedule_of(p).measured_to;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
