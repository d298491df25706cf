// the verdicts of a gate
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/saturation.hpp"
#include "core/judging/validity.hpp"
#include "core/judging/values.hpp"

#include <algorithm>  // any_of, count_if, max, none_of
#include <cmath>  // isfinite
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What the numbers alone say of one SLO.
inline slo_verdict judge_evidence(const measurement& m, const slo& s, bool to_the_end = false) {
    const bool is_fresh = m.rule.traffic == fresh && !is_of_start(s.what.metric);
    const bool counts = is_share(s.what.metric) ||
                        (is_fresh && s.what.kind == statistic_kind::percentile);
    const bool mean = is_fresh && s.what.kind == statistic_kind::mean;
    slo_verdict v = counts ? judge_counts(m, s, to_the_end)
                    : mean ? judge_fresh_mean(m, s, to_the_end)
                           : judge_values(m, s, to_the_end);
    v.unit = repeat_word(m.rule, s.factor > 0 && m.has_live_baseline());
    return v;
}

/// The verdict of one SLO. A guard fails where the miss is shown, and else says nothing.
inline slo_verdict judged(const measurement& m, const slo& s, bool guard = false) {
    slo_verdict v;
    if (m.candidate.empty() && !m.stopped.empty()) {
        v.what = s;
        v.outcome = verdict::inconclusive;
        v.estimate = {not_a_number, not_a_number, not_a_number};
        v.reason = m.stopped;
        return v;
    }
    v = judge_evidence(m, s);
    std::string invalid = gate_invalid_reason(m);
    if (invalid.empty()) invalid = slo_invalid_reason(m, s);
    if (!invalid.empty()) {
        v.outcome = verdict::invalid;
        v.reason = invalid;
        v.advice = text();
        return v;
    }
    const bool of_the_server =
        s.what.metric != metric_id::error_rate && !is_of_start(s.what.metric);
    if (const std::string over = over_saturation_reason(m); !over.empty() && of_the_server) {
        if (v.outcome != verdict::fail) v.outcome = verdict::invalid;
        v.reason = over;
        v.advice = text();
        return v;
    }
    if (guard && v.outcome == verdict::inconclusive) {
        v.outcome = verdict::pass;
        v.reason = "not shown to be exceeded";
    }
    if (v.outcome == verdict::inconclusive && !m.stopped.empty()) {
        v.reason = m.stopped + (v.reason.empty() ? "" : "; " + str(v.reason));
        v.advice = text();
    } else if (v.outcome == verdict::inconclusive && v.reason.empty()) {
        v.reason = "too close to call";
        const double would_pass = s.at_most ? v.estimate.high : v.estimate.low;
        if (v.advice.empty() && std::isfinite(would_pass) && would_pass > 0)
            v.advice = limit_to_write(s, would_pass * (s.at_most ? 1.02 : 0.98)) + " would pass";
    }
    return v;
}

inline slo error_guard() {
    slo s;
    s.what = make_statistic(statistic_kind::value, metric_id::error_rate, 0);
    s.bound = 0.01;
    return s;
}
inline bool states_error_rate(const std::vector<slo>& slos) {
    return std::any_of(slos.begin(), slos.end(), [](const slo& s) {
        return s.what.metric == metric_id::error_rate && !s.is_advisory;
    });
}

inline std::vector<slo_verdict> judge_each(const measurement& m) {
    std::vector<slo_verdict> out;
    for (const slo& s : m.slos) out.push_back(judged(m, s));
    if (!states_error_rate(m.slos)) out.push_back(judged(m, error_guard(), true));
    return out;
}

/// One verdict per SLO in order, then the guard on errors unless the gate states its own limit.
inline std::vector<slo_verdict> judge_all(const measurement& m) {
    if (!m.rule.holm) return judge_each(m);
    // Holm (1979): the level is divided by the number of SLOs that are not shown to be missed.
    measurement stricter = m;
    auto left = std::count_if(m.slos.begin(), m.slos.end(),
                              [](const slo& s) { return !s.is_advisory; });
    const auto blocking = left;
    for (;;) {
        stricter.rule.fail_level = m.rule.fail_level / static_cast<double>(std::max(1l, left));
        stricter.rule.fail_z = std::max(
            m.rule.fail_z, pocock_constant(m.rule.looks, stricter.rule.fail_level));
        std::vector<slo_verdict> out = judge_each(stricter);
        long failed = 0;  // the guard is none of them
        for (std::size_t i = 0; i < m.slos.size(); ++i)
            failed += !out[i].what.is_advisory && out[i].outcome == verdict::fail;
        if (blocking - failed >= left) return out;
        left = blocking - failed;
    }
}

inline bool all_decided(const std::vector<slo_verdict>& verdicts) {
    return std::none_of(verdicts.begin(), verdicts.end(),
                        [](const slo_verdict& v) { return v.outcome == verdict::inconclusive; });
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
