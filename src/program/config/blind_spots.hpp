// what a gate cannot see, by its scenario alone
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/workload.hpp"
#include "core/base/vector.hpp"
#include "core/metric/table.hpp"

#include <initializer_list>
#include <string>

namespace llmbench_program {

using namespace llmbench;
using namespace llmbench::detail;

struct blind_spot {
    const char* id;  // for machines: part of what `explain --json` promises
    std::string text;
};

/// Whether a blocking objective, or a part of a goodput, is on one of these metrics.
inline bool judges(const scenario& s, std::initializer_list<metric_id> any) {
    const auto is_one = [&](metric_id m) {
        return detail::any_of(any, [&](metric_id x) { return x == m; });
    };
    const auto is_on_one = [&](const auto& part) { return is_one(part.metric); };
    return detail::any_of(s.slos, [&](const slo& x) {
        const statistic_data& on = x.statistic;
        return !x.is_advisory &&
               (is_on_one(on) || (on.metric == metric_id::drift && is_one(on.of)) ||
                detail::any_of(on.parts, is_on_one) || detail::any_of(on.where, is_on_one));
    });
}
/// Whether a blocking objective is on the slowest requests, five in a hundred or fewer.
inline bool judges_a_tail(const scenario& s) {
    for (const slo& x : s.slos) {
        if (x.is_advisory) continue;
        const statistic_kind k = x.statistic.kind;
        const bool is_far =
            k == statistic_kind::percentile && (x.statistic.q >= 0.95 || x.statistic.q <= 0.05);
        const bool is_share = x.statistic.metric == metric_id::goodput && x.bound >= 0.95;
        if (is_far || is_share || k == statistic_kind::max || k == statistic_kind::min) return true;
    }
    return false;
}

inline vector<blind_spot> blind_spots(const scenario& s) {
    using enum metric_id;
    vector<blind_spot> all;
    if (detail::all_of(s.slos, [](const slo& x) { return x.is_advisory; }))
        all.push_back({"advisory", "anything, as a red build: each objective is advisory"});
    const bool judges_whole_answers = judges(s, {e2e, normalized_latency, session_time});
    if (!judges_whole_answers &&
        !judges(s, {ttft, ttft_from_send, first_turn_ttft, later_turn_ttft, time_to_first_answer,
                    ttft_per_prompt_token, prefill_speed, first_answer_time}))
        all.push_back({"first_token",
                       "slow first tokens: no objective is on ttft, e2e or a "
                       "goodput of them"});
    if (!judges_whole_answers &&
        !judges(s, {tpot, itl, decode_speed, output_throughput, total_throughput, decode_throughput,
                    request_throughput, cost_per_million_tokens}))
        all.push_back({"decoding",
                       "slow decoding: no objective is on tpot, itl, e2e or a "
                       "throughput"});
    if (!judges_a_tail(s))
        all.push_back({"tail", "the slowest answers: no objective is on p95 or beyond"});
    if (!judges(s, {accuracy, same_answers}))
        all.push_back({"answers",
                       "wrong answers: their speed and errors are judged, not what they "
                       "say"});
    const arrival_data& d = s.arrivals.data();
    if (d.kind == arrival_kind::closed_loop && !d.is_searched)
        all.push_back({"queue",
                       "a queue that grows: users wait for their answers, so a slower "
                       "server gets less load"});
    if (!d.is_searched)
        all.push_back({"capacity", "how much more the server carries: it gets this load alone"});
    const auto* const made_up = s.workload.what().get<synthetic>();
    if (made_up && made_up->shared_prefix.kind == length_distribution::shape::fixed &&
        !(made_up->shared_prefix.a > 0))
        all.push_back({"prefix_cache",
                       "a prefix cache that no longer hits: no two prompts begin "
                       "alike"});
    if (!s.baseline.is_live() && !s.baseline.is_stored() && !s.baseline.is_of_extension())
        all.push_back({"regression",
                       "a regression that stays inside the limits: nothing is "
                       "compared with another build"});
    return all;
}

}  // namespace llmbench_program
