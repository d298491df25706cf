// which gates can have objectives on work
#pragma once

#include "api/scenario.hpp"
#include "api/side_task.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/plan.hpp"
#include "extensions/work/core/objective.hpp"

#include <cmath>  // floor, isnan
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

inline bool is_expected(const slo& s) {
    return is_of_work(s.statistic.metric) && terms_of(s).from == work_limit::source::model;
}
/// Whether a count depends on what the server's prefix cache has before the load.
inline bool depends_on_cache(const std::string& count) {
    return is_of_prompts(count) || count == "engine_steps" || count == "preemptions";
}

/// Whether each repeat finds a server without the prompts of the one before.
inline bool is_reset(const scenario& s) {
    const auto* const p = s.target.what().get<process>();
    return any_of(s.prepare, [](const task_step& step) { return !step.by; }) ||
           (p && (p->restart_between_repeats || s.repeats == 1));
}
/// prime() is of use after the reset alone, in a gate whose prompts are the same each time.
inline void check_primed(const scenario& s, bool counts_work) {
    for (const task_step& step : s.prepare) {
        if (!step.by) continue;
        if (!counts_work)
            refuse({"prepare has prime(), and no objective is on work: a warm-up serves others"});
        if (&step != &*s.prepare.begin() + (s.prepare.size() - 1))
            refuse({"prepare has a step after prime(), which is the last: a reset would empty the "
                    "cache again"});
    }
}
/// Work is counted of one load of a known number of requests, from a server that is reset.
inline void check_load(const slo& first, const scenario& s) {
    const std::string given = "the SLO " + str(first.text()) + " is refused: ";
    for (const slo& x : s.slos)
        if (!is_of_work(x.statistic.metric) && x.statistic.metric != metric_id::error_rate)
            refuse({given, "it counts the work of a load whose prompts are the same each time, and ",
                    str(x.text()), " needs new ones: give each a gate of its own"});
    if (s.duration.seconds() > 0)
        refuse({given, "duration is set, which sends another number of requests each time: give "
                       "requests alone"});
    if (s.pairs == at_once)
        refuse({given, "pairs is at_once: work is counted of one server after the other"});
    if (s.baseline.is_of_extension())
        refuse({given, "the baseline is a history, and work is held against a number, a live "
                       "baseline or a stored run"});
    if (s.warmup.until_stable() || s.warmup.seconds() > 0)
        refuse({given, "warmup is a time, in which another number of requests is sent each time: "
                       "give it a number of requests"});
}
inline void check_reset(const slo& x, const scenario& s) {
    if (!depends_on_cache(terms_of(x).what) || is_reset(s)) return;
    refuse({"the SLO ", str(x.text()), " is refused: nothing resets the server before a repeat, "
            "which would find the prompts of the one before: give .prepare = "
            "{post(\"/reset_prefix_cache\")} (vLLM, with VLLM_SERVER_DEV_MODE=1) or "
            "{post(\"/flush_cache\")} (SGLang), or a process with .restart_between_repeats"});
}

/// A count is a whole number.
inline void check_number(const work_terms& t, const std::string& given) {
    const bool is_exact = t.side == work_side::equal;
    if (is_exact && t.factor != 1)
        refuse({given, "a part of a count is seldom a whole number: write <= or >="});
    if (t.from == work_limit::source::number &&
        !(t.number >= 0 && t.number < 0x1p53 && std::floor(t.number) == t.number))
        refuse({given, "a count is a whole number from 0 on"});
    if (!(t.factor > 0)) refuse({given, "the factor must be above zero"});
}
/// Whether the server has all requests before its first step, so that no time decides which run
/// together.
inline bool is_held(const planned_traffic& sent) {
    return !sent.arrivals.held.empty() && sent.stride == 1;
}
inline constexpr const char* how_to_hold =
    "hold a burst, all_at_once().held(post(\"/pause?mode=keep\"), post(\"/resume\")) (vLLM)";
/// The objective may only ask for what a load determines.
inline void check_steps(const work_terms& t, const planned_traffic& sent,
                        const std::string& given) {
    const bool is_exact = t.side == work_side::equal;
    const bool is_alone = !sent.is_open_loop() && users_of(sent) == 1;
    if (t.what == "engine_steps" && is_exact && !is_alone && !is_held(sent))
        refuse({given, "which requests share a pass depends on time: write <=, send one after the "
                       "other, closed_loop(1), or ", how_to_hold});
    if (t.what == "preemptions" && t.number != 0 && !is_held(sent))
        refuse({given, "how often a server preempts depends on time: only none, == 0, is the same "
                       "each time, or ", how_to_hold});
    if (t.what == "engine_steps" && sent.is_open_loop() && sent.arrivals.rate > 0)
        refuse({given, "at a rate, which requests share a pass depends on time: give it a closed "
                       "loop, or all_at_once()"});
}
/// Whether all answers have the lengths that are asked for.
inline bool forces_all_lengths(const planned_traffic& sent) {
    return !any_part(sent, [](const plan_part& part) { return !part.forces_length; });
}
inline bool is_greedy(const planned_traffic& sent) {
    return !any_part(sent, [](const plan_part& part) { return part.common.temperature != 0; });
}
inline void check_answers(const work_terms& t, const planned_traffic& sent,
                          const std::string& given) {
    const bool is_expected = t.from == work_limit::source::model;
    if (t.what == "generated_tokens" && !forces_all_lengths(sent)) {
        if (is_expected)
            refuse({given, "answers end where the model ends them, so no length is expected: use a "
                           "workload that forces lengths"});
        if (!is_greedy(sent))
            refuse({given, "answers end where the model ends them, by chance with this "
                           "temperature: force their lengths, or set options.temperature to 0"});
    }
    if ((t.what == "drafted_tokens" || t.what == "accepted_tokens") && !is_greedy(sent))
        refuse({given, "drafts are accepted by chance unless options.temperature is 0"});
}
inline void check_objective(const slo& s, const planned_traffic& sent,
                            const planned_judging& judged) {
    const std::string given = "the SLO " + str(s.text()) + " is refused: ";
    const work_terms t = terms_of(s);
    check_number(t, given);
    if (t.from == work_limit::source::baseline && !judged.has_baseline &&
        !judged.has_stored_baseline)
        refuse({given, "the scenario has no baseline"});
    check_steps(t, sent, given);
    check_answers(t, sent, given);
    if (t.from != work_limit::source::model) return;
    if (t.what != "server_requests" && t.what != "generated_tokens" && !is_of_prompts(t.what))
        refuse({given, "what is expected is known of server_requests, prefilled_tokens, "
                       "cached_tokens and generated_tokens: write a number, or baseline"});
    if (is_of_prompts(t.what) && any_part(sent, [&](const plan_part& part) {
            return part.common.model != sent.common.model;
        }))
        refuse({given, "parts of the mix ask for several models, and whether these share a cache "
                       "nobody knows: write a number, or baseline"});
}
/// Without a temperature answers are greedy, so that later turns have the same prompts each time.
inline void make_greedy(planned_workloads& all) {
    for_each_part(all, [](plan_part& part) {
        const bool is_set = part.common.extra_fields.find("\"temperature\"") != std::string::npos;
        if (std::isnan(part.common.temperature) && !is_set) part.common.temperature = 0;
    });
}
/// A gate that counts work has no warm-up and two repeats, unless it asks for others.
inline void add_counts_to_plan(const scenario& s, planned_traffic& sent, planned_judging& judged) {
    const slo* first = nullptr;
    for (const slo& x : judged.slos) {
        if (!is_of_work(x.statistic.metric)) continue;
        if (!first) check_load(x, s);
        first = &x;
        check_reset(x, s);
    }
    check_primed(s, first != nullptr);
    if (!first) return;
    sent.counts_work = true;
    if (s.warmup.requests() == warmup_amount().requests()) sent.warmup_requests = 0;
    judged.first_repeats = judged.max_repeats =
        s.repeats > 0 ? static_cast<int>(static_cast<long long>(s.repeats)) : 2;
    judged.max_if_noisy = 0;
    make_greedy(sent);
    if (sent.otherwise) {
        planned_workloads other = *sent.otherwise;
        make_greedy(other);
        sent.otherwise = std::move(other);
    }
    for (const slo& x : judged.slos)
        if (is_of_work(x.statistic.metric)) check_objective(x, sent, judged);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
