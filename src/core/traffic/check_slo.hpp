// which SLOs a plan can have
#pragma once

#include "api/metrics.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/rule.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"

#include <algorithm>  // min
#include <cmath>  // isfinite, ceil, log
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline void check_slo(const slo& s, const plan& p) {
    const statistic_data& w = s.what;
    const std::string given = "the SLO " + str(s.text()) + " is refused: ";
    for (const predicate_step& step : w.where)
        require(step.op != predicate_step::op_kind::compare || !facts_of(step.metric).is_unmeasured,
                given + "queue_time is not measured by this version");
    require(!facts_of(w.metric).is_unmeasured,
            given + "server-side metrics are not read by this version");
    require(p.common.stream || !concerns(w, &metric_facts::needs_stream),
            given + "options.stream is false, and an answer that comes in one piece has no "
                    "first token apart from its last: use e2e");
    require(w.kind != statistic_kind::percentile || (w.q > 0 && w.q < 1),
            given + "a percentile lies strictly between 0 and 1");
    if (s.factor != 0 || s.bound == 0) {
        require(s.factor > 0 && std::isfinite(s.factor), given + "the limit must be above zero");
        require(p.has_baseline || p.has_stored_baseline, given + "the scenario has no baseline");
        require(!is_share(w.metric),
                given + "a share is judged against a limit of its own, not against the baseline's");
        require(!is_of_start(w.metric),
                given + "startup times of two servers are not compared by this version");
    } else {
        require(s.bound > 0 && std::isfinite(s.bound), given + "the limit must be above zero");
        require(!is_share(w.metric) || s.bound < 1, given + "the limit must be under 100 %");
    }
    require(!is_throughput(w.metric) || saturates(p.arrivals),
            given + "below saturation a throughput only measures the arrival rate of " +
                arrival_text(p.arrivals) + ", use closed_loop(n) or all_at_once()");
    for (const predicate_step& step : w.where)
        require(!is_of_turns(step.metric) || p.stride > 1,
                given + metric_name(step.metric) + " needs a workload of conversations");
    require(!is_of_turns(w.metric) || p.stride > 1,
            given + metric_name(w.metric) + " needs a workload of conversations");
    const long long all = expected_requests(p);
    const turn_kind turns = facts_of(w.metric).turns;
    const long long n = turns == turn_kind::first   ? expected_first_turns(p)
                        : turns == turn_kind::later ? all - expected_first_turns(p)
                                                    : all;
    const bool is_percentile = w.kind == statistic_kind::percentile;
    const double tail = is_speed(w.metric) ? w.q : 1 - w.q;
    if (p.rule.traffic == fresh && !is_of_start(w.metric) && !is_share(w.metric)) {
        const std::string why = given + "traffic is fresh: ";
        require(s.factor == 0, why + "a baseline is compared on replayed traffic");
        require(!is_throughput(w.metric) && !facts_of(w.metric).is_of_gaps &&
                    (is_percentile || w.kind == statistic_kind::mean),
                why + str(w.name) + " is judged on replayed traffic only");
        // A pass must be possible at 95 %, and at the last look at its own level.
        const double all_stages = p.most_repeats == last_stage ? 4 : p.most_repeats;
        const double last_level = 1 - normal_cdf(p.rule.pass_z);
        const auto needed = static_cast<long long>(std::ceil(
            is_percentile ? std::min(std::log(0.05), std::log(last_level) / all_stages) /
                                    std::log(1 - tail) - 1e-9
                          : 40));
        require(n == 0 || n >= needed,
                why + printed("%s needs at least %lld measured requests, and the scenario has %lld",
                              w.name.c_str(), needed, n));
    } else if (is_percentile && !facts_of(w.metric).is_of_gaps && n > 0) {
        const auto needed = static_cast<long long>(std::ceil(3 / tail - 1e-9));
        require(n >= needed, given + printed("%s needs at least %lld measured requests a repeat so "
                                             "that three lie beyond it, and "
                                             "the scenario has %lld",
                                             w.name.c_str(), needed, n));
    }
    const bool mean_like = w.kind == statistic_kind::mean;
    if (mean_like)
        for (const slo& other : p.slos)
            require(
                other.what.metric != metric_id::error_rate || other.is_advisory ||
                    other.bound <= 0.05,
                given +
                    "a mean over completed requests says little beside an error limit over 5 %");
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
