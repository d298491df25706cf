// from a scenario to its plan
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/rule.hpp"
#include "core/measured/slices.hpp"
#include "core/traffic/recorded.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/shard.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/load_search.hpp"
#include "core/planning/check_slo.hpp"
#include "core/planning/load_faults.hpp"
#include "core/planning/preparation.hpp"
#include "core/planning/workloads.hpp"

#include <algorithm>  // max, sort
#include <cstdint>  // uint32_t, uint64_t
#include <string>
#include <utility>  // move, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

inline void check_stable(const scenario& s, const arrival_data& a) {
    const double warmup_s = s.warmup.seconds();
    if (!s.warmup.until_stable()) return;
    if (!(warmup_s > 0))
        refuse({"warmup is until_stable(0 s): it names the most time that it may take"});
    if (s.arrivals.data().is_searched)
        refuse({"warmup is until_stable, and a search leads up to each of its loads by itself"});
    if (!(warmup_s > a.users_ramp_s))
        refuse({printed("warmup is until_stable(%g s) and arrivals is ", warmup_s), arrival_text(a),
                ": nothing is stable before all users are there, give it more time than the ramp"});
}
inline void check_batch(const scenario& s) {
    if (!(s.requests > 0 && s.duration.seconds() == 0))
        refuse({"arrivals is all_at_once: it needs requests, and no duration"});
    if (s.warmup.seconds() != 0)
        refuse({"arrivals is all_at_once: its warm-up is a number of requests"});
}
/// `by_time`: the seconds that the load lasts, 0 if it has no such end.
inline void check_has_end(const scenario& s, const arrival_data& a, double by_time) {
    if (s.requests <= 0 && !(by_time > 0) && !a.is_searched)
        refuse({"neither requests nor duration is set: the scenario would never end"});
    if (a.kind == arrival_kind::all_at_once) check_batch(s);
}
inline void check_extent(const scenario& s, const arrival_data& a, const recorded_trace& trace) {
    const long long requests = s.requests;
    const double warmup_s = s.warmup.seconds(), duration_s = s.duration.seconds();
    check_stable(s, a);
    check_numbers({{"warmup", static_cast<double>(s.warmup.requests()), 0, 1e6, " requests"},
                   {"warmup", warmup_s, 0, 86400, " s"},
                   {"requests", static_cast<double>(requests), 0, 1e8, "",
                    "runs from 1 to 100000000"},
                   {"duration", duration_s, 0, 86400, " s"}});
    const double by_time = duration_s > 0 ? duration_s : own_length(a, trace);
    check_has_end(s, a, by_time);
    if (a.kind == arrival_kind::closed_loop) return;
    if (by_time > 0) {
        const double n = arrivals_within(a, trace, by_time);
        const std::string sends = printed("in %.9g s ", by_time) + arrival_text(a) +
                                  printed(" sends about %.0f requests: ", n);
        if (!(n >= 0.5)) refuse({sends, "that is none, let it run longer"});
        if (!(n <= 1e8) && requests <= 0) refuse({sends, "at most 100000000 can be planned"});
    }
    if (warmup_s > 0 && is_batch(a, trace))
        refuse({printed("warmup is %g s, and ", warmup_s), arrival_text(a),
                " starts all within half a second, which is no rate to warm up at: give a number "
                "of requests"});
    if (!(warmup_s * starting_rate(a) <= 1e6))
        refuse({printed("warmup is %g s: at %.9g requests/s that is over 1000000 requests",
                        warmup_s, starting_rate(a))});
}

inline void check_counts(const scenario& s) {
    const limits& l = s.limits;
    const double drain_s = l.drain ? (*l.drain).seconds() : 1;
    check_numbers({{"repeats", static_cast<double>(s.repeats), 0, 100, "",
                    "runs from 2 to 100, or is 0 for as many as it takes"},
                   {"seed", static_cast<double>(s.seed), 0, infinity},
                   {"client.threads", static_cast<double>(s.client.threads), 0, 64, "",
                    "runs from 1 to 64, or is 0 for the default"},
                   {"judging.false_pass", s.judging.false_pass.value * 100, 0.01, 20, " %"},
                   {"judging.false_fail", s.judging.false_fail.value * 100, 0.01, 20, " %"},
                   {"limits.connect", l.connect.seconds(), above_zero, 86400, " s"},
                   {"limits.first_event", l.first_event.seconds(), above_zero, 86400, " s"},
                   {"limits.between_events", l.between_events.seconds(), above_zero, 86400, " s"},
                   {"limits.total", l.total.seconds(), above_zero, 86400, " s"},
                   {"limits.drain", drain_s, above_zero, 86400, " s"}});
}

inline void check_baseline(const scenario& s) {
    const otherwise& asked = s.baseline.asked();
    if (asked.same && (asked.options || !asked.model.empty() || asked.alone ||
                       !asked.workload.what().empty()))
        refuse({"baseline is otherwise{.same = true}, and names something else as well: an A/A run "
                "has nothing but .same"});
    const bool is_stored = s.baseline.is_stored();
    const double day_sd = s.baseline.stored().day_to_day.value;
    if (is_stored && s.baseline.stored().file.empty())
        refuse({"baseline is stored(\"\"): it must name a file"});
    if (!(day_sd > 0 && day_sd <= 0.5))
        refuse({printed("baseline: the day-to-day standard deviation is %g %%: two days' runs of a "
                        "server do differ, and it runs from above 0 to 50 %%", day_sd * 100)});
}

inline bool has_values(const slo_list& slos) {
    return any_of(slos, [](const slo& x) { return is_judged_by_spread(x.statistic.metric); });
}
/// Whether processes start anew for each pair. Then pairs are of whole repeats, since two processes
/// of one build differ by luck.
inline bool restarts(const any_target& t) {
    const process* const p = t.what().get<process>();
    return p && p->restart_between_repeats;
}
/// Whether a server is sent requests by another protocol than HTTP, which streams every answer.
inline bool has_transport(const any_target& t) {
    const endpoint* const e = t.what().get<endpoint>();
    const process* const p = t.what().get<process>();
    return (e && e->transport) || (p && p->transport);
}
inline bool goes_by_slices(const scenario& s) {
    return s.pairs == at_once && !(restarts(s.target) || restarts(s.baseline.live()));
}
inline repeat_counts planned_repeats(const scenario& s, scenario_use use) {
    const bool is_paired = s.baseline.is_live();
    const bool judges = use == scenario_use::gate || s.slos.size() > 0;
    const long long asked = s.repeats;
    repeat_counts n{is_paired ? first_pair_analysis : first_analysis,
                    is_paired ? last_pair_analysis : last_analysis};
    if (goes_by_slices(s)) n = {1, 1};
    if (any_of(s.slos, [](const slo& x) { return is_of_work(x.statistic.metric); }))
        n.first_repeats = 1;
    // One long run shows a drift; more runs are only for cases that it leaves open.
    const auto drifts = [](const slo& x) { return is_drift(x.statistic.metric); };
    if (s.slos.size() > 0 && !is_paired && all_of(s.slos, drifts)) n.first_repeats = 1;
    if (asked != 0 && judges && !(asked >= n.first_repeats))
        refuse({printed("repeats is %lld: a verdict needs at least %d", asked, n.first_repeats)});
    const bool compares = is_paired && !all_of(s.slos, is_absolute);
    if (asked > 0) n.max_repeats = static_cast<int>(asked);
    else if (!judges) n.max_repeats = 3;
    else if (compares && !goes_by_slices(s)) n.max_if_noisy = last_noisy_pair_analysis;
    else if (!is_paired && has_values(s.slos)) n.max_if_noisy = last_noisy_analysis;
    if (!judges) n.measure_all(n.max_repeats);  // whatever the guard on errors finds
    return n;
}

/// Returns the seconds of tools and thinking on the longest path of a session.
inline double planned_waits(const planned_traffic& p, std::size_t conversation) {
    vector<double> ends;
    double longest = 0;
    for (std::size_t i = 0; i < turns_of(p, conversation); ++i) {
        const graph_step s = step_of(p, conversation * p.stride + i);
        double ready = 0;
        for (const std::uint32_t a : s.after) ready = std::max(ready, ends[a]);
        ends.push_back(std::min(std::max(ready + s.wait_s, s.at_s), ready + s.max_wait_s));
        longest = std::max(longest, ends.back());
    }
    return longest;
}
/// An open loop begins with young sessions only. A run limited by time therefore has to warm up for
/// as long as nine in ten of its sessions wait.
inline void check_young_sessions(const planned_traffic& p) {
    const bool as_batch = p.arrivals.kind == arrival_kind::all_at_once;
    if (!has_graphs(p) || !p.is_open_loop() || as_batch || p.searches() || p.requests > 0) return;
    vector<double> waits;
    for (std::size_t c = 0; c < 200; ++c) waits.push_back(planned_waits(p, c));
    std::sort(waits.begin(), waits.end());
    const double needed = nearest_rank(waits, 0.9);
    if (p.warmup_s < needed)
        refuse({printed("warmup is %s, and nine in ten sessions take up to %.3g s of waits alone: "
                        "an open loop begins with young ones, warm up for as long at least, or "
                        "give requests in the place of a duration",
                        p.warmup_requests > 0 ? "a number of requests"
                                              : printed("%.9g s", p.warmup_s).c_str(), needed)});
}

inline constexpr double least_load_at_once_s =
    least_slice_s * static_cast<double>(least_slices_at_once);
/// The planned seconds of a load, 0 where only the run can tell.
inline double seconds_at_once(const planned_traffic& p) {
    if (p.duration_s > 0 || !p.is_open_loop()) return p.duration_s;
    const schedule sends = schedule_of(p);
    return sends.measured_to - sends.measured_from;
}
/// Throws std::invalid_argument if both variants cannot be loaded at the same time.
inline void check_at_once(const scenario& s, const planned_traffic& p) {
    if (s.pairs != at_once) return;
    const std::string given = "pairs is at_once";
    if (!s.baseline.is_live())
        refuse({given, ", and there is no baseline that could be loaded at the same time: it is a "
                       "second server, or otherwise{...}"});
    if (p.searches())
        refuse({given, ", and arrivals is a search: a load that both carry is given"});
    if (p.warmup_until_stable)
        refuse({given, ", and warmup is until_stable, when each server would begin on its own: "
                       "give it a time"});
    if (p.arrivals.kind == arrival_kind::all_at_once)
        refuse({given, ", and arrivals is all_at_once: a batch has no slices of time"});
    if (p.otherwise && (*p.otherwise).has_other_prompts)
        refuse({given, ", and the baseline has another workload: a request and its twin have the "
                       "same prompt"});
    const bool is_one = s.baseline.is_same_server() || p.otherwise;
    if (is_one && !p.sent_as_given.empty())
        refuse({given, ", baseline is the same server, and ", p.sent_as_given,
                " are sent as given: each would warm the cache for its twin"});
    if (!goes_by_slices(s)) return;
    const double seconds = seconds_at_once(p), least = least_load_at_once_s;
    if (seconds > 0 && seconds < 0.95 * least)
        refuse({printed("%s for %.3g s: its verdicts rest on %zu slices of %g s at least, give it "
                        "%g s", given.c_str(), seconds, least_slices_at_once, least_slice_s,
                        least),
                p.duration_s > 0 ? ""
                                 : printed(", which is %.0f requests",
                                           std::ceil(static_cast<double>(p.requests) * least /
                                                     seconds))});
}
/// Whether a part of a load may decide an objective. Misses come in bursts, and half a load that
/// has none says little of the other half; a limit no closer than the guard's asks no more than
/// that does.
inline bool may_be_decided_early(const slo& s) {
    const metric_id m = s.statistic.metric;
    return !is_drift(m) && (!is_request_fraction(m) || is_as_loose_as_guard(s));
}
/// Whether a load at once may end as soon as all is decided: not where it is asked for whole, or is
/// too short for a look, or where its end is part of what is asked. Of a part of a load nothing is
/// judged before its end, which alone shows what all parts measured.
inline bool may_end_early(const scenario& s, const planned_traffic& p, const load_shard& part) {
    return part.is_whole() && s.pairs == at_once && goes_by_slices(s) && s.repeats == 0 &&
           p.beside.empty() && !p.plays_out && !p.compares_answers && !asks_questions(p) &&
           all_of(s.slos, may_be_decided_early) &&
           seconds_at_once(p) >= 2 * least_load_at_once_s;
}

/// Of a search or of one load.
inline measured_load planned_load_of(const scenario& s, const arrival_data& a,
                                     const plan_use& how) {
    if (a.is_searched || how.use == scenario_use::find_capacity ||
        any_of(s.slos, is_of_capacity))
        return the_search().searched(s, a, how.use);
    const repeat_counts repeats = planned_repeats(s, how.use);
    measured_load load{{repeats,
                        rule_of(s.judging, repeats.first_repeats, repeats.max_repeats,
                                repeats.max_if_noisy > 0, goes_by_slices(s) ? 1 : 5),
                        {s.slos.begin(), s.slos.end()}},
                       s.requests};
    if (how.all_repeats)
        load.measure_all(*how.all_repeats > 0 ? std::max(*how.all_repeats, load.first_repeats)
                                              : load.max_repeats);
    return load;
}
/// What the gate says of its baseline, which check_baseline() has found sound.
inline planned_baseline planned_baseline_of(const scenario& s) {
    const any_baseline& b = s.baseline;
    return {{s.pairs == at_once, goes_by_slices(s)},
            b.is_live(), b.is_stored(), b.stored(), b.of_extension()};
}
/// What all variants have in common.
inline planned_load planned_sends(const scenario& s, const arrival_data& arrivals,
                                  const api_traits& api, std::uint64_t default_seed) {
    const auto asks_for = [&](auto&& is_so) {
        return any_of(s.slos, [&](const slo& x) { return is_so(x.statistic.metric); });
    };
    const long long seed = s.seed;
    planned_load sends{.arrivals = arrivals,
                       .warmup_requests = s.warmup.requests(),
                       .warmup_s = s.warmup.seconds(),
                       .warmup_until_stable = s.warmup.until_stable(),
                       .duration_s = s.duration.seconds(),
                       .seed = seed > 0 ? static_cast<std::uint64_t>(seed) : default_seed,
                       .scores = api.generates ? "" : api.name,
                       .limits = s.limits,
                       .client = s.client};
    sends.plays_out = asks_for(is_of_sessions);
    sends.compares_answers = asks_for([](metric_id m) { return m == metric_id::same_answers; });
    if (sends.compares_answers) the_answers();
    return sends;
}
inline void check_streams(const scenario& s, const planned_traffic& sent, const api_traits& api) {
    if (api.generates && !sent.common.stream &&
        (has_transport(s.target) || has_transport(s.baseline.live())))
        refuse({"options.stream is false, and a WebSocket streams every answer: leave out one of "
                "the two"});
}
inline void check_objectives(const plan& p) {
    const slo_context context(p);
    for (const auto* objectives : {&p.judged->slos, &p.judged->search.objectives_held})
        for (const slo& x : *objectives) check_slo(x, context);
}

inline void check_traffic(const scenario& s, const planned_traffic& sent, const api_traits& api) {
    check_young_sessions(sent);
    check_streams(s, sent, api);
    check_at_once(s, sent);
}
inline planned_judging planned_judging_of(const scenario& s, measured_load&& load,
                                          const api_traits& api) {
    return {std::move(load), planned_baseline_of(s), s.repeats > 0,
            s.stop == stop_when::at_first_miss, s.on_fail, planned_cost(s, api)};
}
/// Throws std::invalid_argument for the first thing that is unsound. `files` are those of the
/// workload, `api` is the target's. A gate without objectives decides its guard on errors; a run
/// without objectives only measures.
inline plan planned(const scenario& asked, std::uint64_t default_seed, workload_files files = {},
                    const plan_use& how = {}, const api_traits& api = apis[0]) {
    const auto read = new_shared<const workload_files>(std::move(files));
    const scenario s = completed(asked, *read, api);
    const arrival_data arrivals = planned_arrivals(s.arrivals.data(), read->trace);
    check_extent(s, arrivals, read->trace);
    check_counts(s);
    check_baseline(s);
    measured_load load = planned_load_of(s, arrivals, how);
    planned_traffic sent{planned_workloads_of(s, arrivals, read, api, default_seed),
                         planned_sends(s, arrivals, api, default_seed),
                         planned_otherwise(s, arrivals, read, api, default_seed)};
    sent.requests = load.requests;
    check_traffic(s, sent, api);
    if (may_end_early(s, sent, how.part)) load.rule = looking_early(load.rule);
    planned_judging judged = planned_judging_of(s, std::move(load), api);
    each(&extension::add_to_plan, s, sent, judged);
    const plan p{{},
                 {new_shared<const planned_traffic>(std::move(sent))},
                 new_shared<const planned_judging>(std::move(judged))};
    check_objectives(p);
    return p;
}

/// Leaves out sessions with a step that is too long for the models, and returns how many.
template <class Room>
long long leave_out_long(plan_part& part, const Room& room) {
    const auto shorter = part.source->without_long(
        [&](const std::string& asked) { return room(asked.empty() ? part.common.model : asked); },
        part.forces_length);
    if (!shorter) return 0;
    part.source = shorter->source;
    part.workload_text = shorter->text;
    return shorter->left_out;
}

/// Returns the plan without the sessions that are too long for the servers whose /v1/models gives a
/// max_model_len, and checks again that it is sound.
template <class Room>
plan without_long_sessions(const plan& p, const Room& room) {
    long long left_out = 0;
    plan shorter = with_traffic(p, [&](planned_traffic& t) {
        const auto shorten = [&](plan_part& part) { left_out += leave_out_long(part, room); };
        for_each_part(t, shorten);
        if (t.otherwise) {
            planned_workloads other = *t.otherwise;
            for_each_part(other, shorten);
            t.otherwise = std::move(other);
        }
        t.hash.clear();
    });
    if (left_out == 0) return p;
    if (p.sent->arrivals.kind == arrival_kind::replay)
        refuse({printed("arrivals is a replay, and the server has no room for %lld sessions: give "
                        "workload.max_context, by which they are left out with their starts",
                        left_out)});
    shorter = with_traffic(std::move(shorter), [](planned_traffic& t) { t.hash = trace_hash(t); });
    check_young_sessions(*shorter.sent);
    check_objectives(shorter);
    return shorter;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
