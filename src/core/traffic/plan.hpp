// the plan of a gate
#pragma once

#include "api/profile.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/side_task.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/measured/recovery.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/rule.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/schedule.hpp"
#include "core/traffic/shard.hpp"
#include "core/traffic/traffic_source.hpp"

#include <algorithm>  // max, min
#include <cstdint>  // uint64_t
#include <memory>  // shared_ptr, make_shared
#include <string>
#include <type_traits>  // conditional_t, is_const_v
#include <utility>  // move
#include <variant>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What a scenario wants of its server.
enum class scenario_use : unsigned char { measure, gate, find_capacity };

/// What a load that is searched is searched for.
struct searched_load {
    // what it must hold; the plan's objectives are of the capacity
    std::vector<slo> objectives_held{};
    std::vector<double> asked{};  // loads that those name, the ones that count first
    bool to_the_interval = false; // else until these are decided
};

/// What a file of an earlier run says of its load in words; nothing of it can be sent again.
struct described_load {
    bool is_there = false;
    long long requests = 0;  // measured ones that a repeat was to have, 0 where nobody knew
    bool has_turns = false;  // they are turns of conversations, so many of them first ones
    long long first_turns = 0;
    int deepest = 0;  // of sessions, at most
    std::string extent{}, options{}, limits{};
};

inline constexpr std::size_t most_parts = 64;

/// What requests are of: the whole workload, or one part of a mix.
struct plan_part {
    std::string label{};
    std::size_t weight = 1;  // over what all have in common
    arrival_data arrivals{};  // where all parts have their own
    std::string workload_text{};
    std::string sent_as_given{};  // "prompts" or "images": what is the same in every repeat and run
    traffic_source source{};
    std::size_t stride = 1;  // places that a conversation takes, its turns the first of them
    time_distribution think{};  // before a later turn
    /// What was read for it; the copies of a plan share it.
    std::shared_ptr<const workload_files> files = std::make_shared<const workload_files>();
    bool forces_length = false;
    request_spec common{};  // what all its requests share
};
/// Something that is done to the server beside the load.
struct planned_task {
    std::string name{};
    double every_s = 0, first_s = 0;  // 0: all steps once; after the measured part began
    bool may_fail = false;
    double excuses_s = 0;
    std::vector<task_step> steps{};
};
/// What one arm sends. Of a mix the parts are what is sent, and what stands beside them holds for
/// all: the longest stride, whether answers are streamed.
struct planned_workloads : plan_part {
    std::vector<plan_part> parts{};
    bool own_arrivals = false;  // each part has them: then conversation c is of part c mod parts
    std::vector<std::string> labels{};  // of the parts
    std::vector<planned_task> beside{};
    bool has_other_prompts = false;  // than the candidate's
};

/// What one repeat sends, and when: the whole of it, whoever sends which part.
struct planned_traffic : planned_workloads {
    // Where parts have their own, the rate of the open ones and the users of the others; an open
    // loop if any is.
    arrival_data arrivals{};
    long long warmup_requests = 0;
    double warmup_s = 0;
    bool warmup_until_stable = false;  // warmup_s is the most of it
    long long requests = 0;
    double duration_s = 0;
    std::uint64_t seed = 1;
    std::string hash{};  // trace_hash of it, once it is known: long prompts take a while
    bool is_read = false;  // from files of another tool: nothing is sent, no seed is known
    described_load described{};  // in place of all that is needed to send it
    std::string scores{};   // the API, where it generates nothing; "" where answers have tokens
    maybe<planned_workloads> otherwise{};  // the baseline's, where it is the target asked otherwise
    llmbench::limits limits{};
    maybe<recovery_terms> recovery{};  // where an objective is on it
    bool plays_out = false;  // the sessions that are under way when the last one has begun
    client_options client{};
    bool compares_answers = false;  // with the other arm's, to the same prompts
    bool searches() const { return arrivals.is_searched; }
    bool is_open_loop() const { return arrivals.kind != arrival_kind::closed_loop; }
};

/// How much is measured, and what that is held against.
struct planned_judging {
    int first_repeats = first_analysis;  // before this many nothing is decided
    int most_repeats = last_analysis;  // repeats, or pairs where there is a baseline
    bool repeats_are_asked = false;  // by the gate: then what is only advised is waited for, too
    int most_if_noisy = 0;           // where their own spread leaves it open, 0: no more
    bool has_baseline = false;       // a live one, measured in pairs
    bool has_stored_baseline = false;
    stored_result stored{};
    bool has_history = false;  // nights of main are its baseline
    history_baseline history{};
    judging_rule rule{};
    std::vector<slo> slos{};
    searched_load search{};
    maybe<profile> on_fail{};
    double usd_per_hour = 0;  // of its server, 0: nobody says
};

/// Which gate it is, and where it stands.
struct gate_identity {
    std::string name{};
    std::string test_case{};  // "" outside of one
    std::string file{};
    int line = 0;
};

/// A scenario that was found sound, with every default filled in. Its copies share what they send
/// and how they are judged.
struct plan : gate_identity {
    std::shared_ptr<const planned_traffic> sent = std::make_shared<const planned_traffic>();
    std::shared_ptr<const planned_judging> judged = std::make_shared<const planned_judging>();
    load_shard shard{};             // of what is sent, what this program sends
    double most_skew_s = infinity;  // by which the programs that share it may begin apart
    std::uint64_t nonce = 0;  // of this execution: its words are none that a cache has seen
    bool searches() const { return sent->searches(); }
    /// Where only what is sent matters.
    operator const planned_traffic&() const { return *sent; }
};

/// The plan with what it sends as `change` leaves it.
template <class F>
plan with_traffic(plan p, F&& change) {
    planned_traffic t = *p.sent;
    change(t);
    p.sent = std::make_shared<const planned_traffic>(std::move(t));
    return p;
}
/// The plan, judged as `change` leaves it.
template <class F>
plan with_judging(plan p, F&& change) {
    planned_judging j = *p.judged;
    change(j);
    p.judged = std::make_shared<const planned_judging>(std::move(j));
    return p;
}

/// How long the last answers are waited for.
inline double drain_s(const planned_traffic& p) {
    if (p.limits.drain) return (*p.limits.drain).seconds();
    return p.plays_out ? 600 : 60;
}

inline trace_place place_of(const planned_traffic& p, std::size_t index) {
    return {index / p.stride, index % p.stride, index - index % p.stride};
}
inline trace_terms terms_of(const planned_traffic& p, const plan_part& part) {
    return {p.seed, *part.files};
}
/// `f` with all that is sent.
template <class Parts, class F>
void for_each_part(Parts& p, F&& f) {
    if (p.parts.empty()) f(static_cast<std::conditional_t<std::is_const_v<Parts>, const plan_part,
                                                          plan_part>&>(p));
    for (auto& part : p.parts) f(part);
}
/// Whose part a conversation is, and which of that part's it is: of each block of as many as the
/// weights add up to, in an order of the seed's.
struct part_place {
    const plan_part& part;
    std::size_t which = 0, conversation = 0;
};
inline part_place part_of(const planned_traffic& p, std::size_t conversation) {
    if (p.parts.empty()) return {p, 0, conversation};
    if (const std::size_t n = p.parts.size(); p.own_arrivals)
        return {p.parts[conversation % n], conversation % n, conversation / n};
    std::size_t all = 0, which = 0;
    for (const plan_part& part : p.parts) all += part.weight;
    const std::size_t block = conversation / all;
    std::size_t rank = shuffled(mixed(p.seed ^ streams::parts) + block, conversation % all, all);
    for (; rank >= p.parts[which].weight; ++which) rank -= p.parts[which].weight;
    return {p.parts[which], which, block * p.parts[which].weight + rank};
}
/// A request's place in the trace of its own part.
struct own_place : part_place {
    trace_place at{};
};
inline own_place own_place_of(const planned_traffic& p, std::size_t index) {
    const trace_place place = place_of(p, index);
    const part_place of = part_of(p, place.conversation);
    return {of, {of.conversation, place.turn, of.conversation * of.part.stride}};
}
/// What is right where a question is asked, nullptr elsewhere.
inline const wanted_answer* wanted_of(const plan_part& part, std::size_t conversation) {
    const auto* asked = std::get_if<recorded_dialogues>(&part.source);
    return asked ? asked->at(conversation, *part.files).wanted.get() : nullptr;
}
inline const wanted_answer* wanted_at(const planned_traffic& p, std::size_t index) {
    const own_place of = own_place_of(p, index);
    return wanted_of(of.part, of.at.conversation);
}
/// Whether a part sends the same prompts in every repeat and in both arms, none of which holds an
/// answer.
inline bool repeats_prompts(const plan_part& part) {
    const auto* recorded = std::get_if<recorded_dialogues>(&part.source);
    const bool is_as_given = std::holds_alternative<given_prompts>(part.source) ||
                             (recorded && !recorded->salted);
    return is_as_given && part.stride == 1;
}
/// What becomes of the answer to a request: it is graded, or held against the other arm's.
struct answer_use {
    const wanted_answer* wanted = nullptr;
    bool is_compared = false, is_greedy = false;
    bool is_read() const { return wanted || is_compared; }
};
inline answer_use answer_use_at(const planned_traffic& p, std::size_t index) {
    const own_place of = own_place_of(p, index);
    return {wanted_of(of.part, of.at.conversation), p.compares_answers && repeats_prompts(of.part),
            of.part.common.temperature == 0};
}
/// Whether questions are asked, perhaps among other things.
inline bool asks_questions(const planned_traffic& p) {
    bool any = false;
    for_each_part(p, [&](const plan_part& part) { any = any || wanted_of(part, 0); });
    return any;
}
/// Whether requests are turns of conversations.
inline bool has_turns(const planned_traffic& p) { return p.stride > 1 || p.described.has_turns; }
/// Turns of one conversation of the trace.
inline std::size_t turns_of(const planned_traffic& p, std::size_t conversation) {
    const part_place of = part_of(p, conversation);
    const trace_terms terms = terms_of(p, of.part);
    return std::visit([&](const auto& source) { return source.turns(of.conversation, terms); },
                      of.part.source);
}
/// What a request waits for, and who for it.
inline graph_step step_of(const planned_traffic& p, std::size_t index) {
    const own_place of = own_place_of(p, index);
    const trace_terms terms = terms_of(p, of.part);
    graph_step s = std::visit(
        [&](const auto& source) {
            if constexpr (requires { source.step(of.at, terms); })
                return source.step(of.at, terms);
            else
                return step_of_line(of.at.turn, source.turns(of.at.conversation, terms));
        },
        of.part.source);
    if (s.turn > 0 && !std::holds_alternative<recorded_sessions>(of.part.source))
        s.wait_s = drawn_seconds(of.part.think, p.seed, streams::thinking + of.at.index());
    if (!p.parts.empty()) s.label = static_cast<unsigned char>(of.which);
    return s;
}
inline bool has_helpers(const plan_part& p) {
    const auto* made = std::get_if<made_up_conversations>(&p.source);
    return made && made->helped > 0;
}
inline bool plays_sessions(const plan_part& p) {
    return std::holds_alternative<recorded_sessions>(p.source);
}
/// How many conversations hold the requests that are to warm up, and those to be measured (0: no
/// limit). The last one may be cut, so that the number is kept, unless sessions are played out.
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

/// Users of a closed loop, beside an open one too.
inline std::size_t users_of(const planned_traffic& p) {
    return p.own_arrivals || !p.is_open_loop() ? static_cast<std::size_t>(p.arrivals.users) : 0;
}
/// How those of one part begin, how many they are, and which of them this one is.
struct user_place {
    const arrival_data& arrivals;
    std::size_t which = 0, rank = 0;
    double begins_s() const {
        return arrivals.users_ramp_s * static_cast<double>(rank) /
               static_cast<double>(arrivals.users);
    }
};
inline user_place user_of(const planned_traffic& p, std::size_t user) {
    if (!p.own_arrivals) return {p.arrivals, 0, user};
    for (std::size_t which = 0;; ++which) {
        const arrival_data& a = p.parts[which].arrivals;
        const auto users = a.kind == arrival_kind::closed_loop ? static_cast<std::size_t>(a.users)
                                                               : 0;
        if (user < users) return {a, which, user};
        user -= users;
    }
}

/// Seconds before the measured part of a closed loop, whatever else warms up: a load that does not
/// have all of its users yet is another one.
inline double lead_seconds(const planned_traffic& p) {
    return std::max(p.warmup_s, p.arrivals.users_ramp_s);
}

/// Of a part with arrivals of its own: what it sends before the measured part, which begins for all
/// parts at one time. Nothing that users send has a schedule.
inline std::size_t warmup_of_part(const planned_traffic& p, const plan_part& part) {
    return static_cast<std::size_t>(lead_seconds(p) * starting_rate(part.arrivals) + 1e-9);
}
inline schedule schedule_of_parts(const planned_traffic& p) {
    std::vector<schedule> each(p.parts.size());
    for (std::size_t i = 0; i < each.size(); ++i) {
        const plan_part& part = p.parts[i];
        const arrival_data& a = part.arrivals;
        const std::size_t warmup = warmup_of_part(p, part);
        const std::uint64_t seed = mixed(p.seed ^ (streams::parts + i));
        if (a.kind == arrival_kind::replay)
            each[i] = replay_schedule(a, part.files->trace, warmup, 0, 0, p.duration_s, seed);
        else if (a.kind != arrival_kind::closed_loop)
            each[i] = open_loop_schedule(a, static_cast<long long>(warmup), 0, 0, p.duration_s,
                                         seed);
    }
    return merged(each, lead_seconds(p), p.duration_s);
}
/// When an open loop sends; of conversations, their first turns.
inline schedule schedule_of(const planned_traffic& p) {
    if (p.own_arrivals) return schedule_of_parts(p);
    const conversation_counts c = counted_conversations(p);
    if (p.arrivals.kind == arrival_kind::replay)
        return replay_schedule(p.arrivals, p.files->trace, c.warmup, p.warmup_s, c.measured,
                               p.duration_s, p.seed);
    return open_loop_schedule(p.arrivals, static_cast<long long>(c.warmup), p.warmup_s,
                              static_cast<long long>(c.measured), p.duration_s, p.seed);
}
/// Places of the trace that the sends of an open loop begin, the end of the last one.
inline std::size_t end_of_trace(const planned_traffic& p, std::size_t starts) {
    const conversation_counts c = counted_conversations(p);
    const bool whole = c.measured == 0 || starts < c.warmup + c.measured;
    return starts == 0 ? 0 : (starts - 1) * p.stride + (whole ? p.stride : c.last_turns);
}

/// Requests on the places of the trace before this one.
inline long long requests_before(const planned_traffic& p, std::size_t last) {
    if (p.stride == 1) return static_cast<long long>(last);
    std::size_t n = 0;
    for (std::size_t c = 0; c * p.stride < last; ++c)
        n += std::min(turns_of(p, c), last - c * p.stride);
    return static_cast<long long>(n);
}

/// Seconds that one repeat will take at least, as far as the plan can tell; 0 where it cannot.
inline double expected_seconds(const planned_traffic& p) {
    if (!p.is_open_loop()) return p.duration_s > 0 ? lead_seconds(p) + p.duration_s : 0;
    if (p.arrivals.kind == arrival_kind::all_at_once) return 0;
    return schedule_of(p).measured_to;
}

/// The plan of one arm: the baseline's workload may be another.
inline plan plan_of_arm(const plan& p, run_arm arm) {
    if (arm != run_arm::baseline || !p.sent->otherwise) return p;
    return with_traffic(p, [](planned_traffic& t) {
        static_cast<planned_workloads&>(t) = planned_workloads(*t.otherwise);
    });
}

/// The traffic of one stage where it is fresh: other requests, in the last stage twice as many.
inline planned_traffic stage_of(planned_traffic t, int stage) {
    t.hash.clear();
    if (stage > 0) t.seed = mixed(t.seed ^ mixed(static_cast<std::uint64_t>(stage)));
    // Other conversations of a dataset, of which the stages need four times a repeat's.
    for_each_part(t, [&](plan_part& part) {
        const auto nth = static_cast<std::size_t>(stage);
        if (auto* d = std::get_if<recorded_dialogues>(&part.source))
            d->begin = part.files->dialogues.size() / 4 * nth;
        if (auto* x = std::get_if<recorded_sessions>(&part.source))
            x->begin = x->order->size() / 4 * nth;
    });
    if (stage + 1 != last_stage) return t;
    t.requests *= 2;
    t.duration_s *= 2;
    // The mixture of rates stays what it was.
    const auto lengthen = [](arrival_data& a) {
        a.over_s *= 2;
        list<load_step> longer;
        for (const load_step& s : a.stages)
            longer.push_back({s.rate, time_span::from_seconds(2 * s.lasts.seconds())});
        a.stages = longer;
    };
    lengthen(t.arrivals);
    for (plan_part& part : t.parts) lengthen(part.arrivals);
    return t;
}
/// The plan of one repeat: a stage of its own where traffic is fresh, else the same as before.
inline plan plan_of_repeat(const plan& p, int repeat) {
    if (p.judged->rule.traffic != fresh) return p;
    return with_traffic(p, [&](planned_traffic& t) { t = stage_of(t, repeat); });
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
