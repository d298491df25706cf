// a capacity held against a live baseline's
// First the baseline alone is led to where its objectives break, then both are probed in turns
// below that. From the evidence alone, as all of core/capacity.
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/numbers.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/samples.hpp"
#include "core/judging/terms.hpp"
#include "core/judging/validity.hpp"
#include "core/described/described.hpp"
#include "core/described/verdict_text.hpp"
#include "core/capacity/compare.hpp"
#include "core/capacity/found.hpp"
#include "core/capacity/probes.hpp"
#include "core/capacity/search.hpp"

#include <cmath>  // abs, isfinite
#include <optional>
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The probes that led to the baseline's capacity.
inline std::vector<probe> baseline_lead(const evidence& e, const terms& t) {
    std::vector<probe> lead;
    for (const repeat_data& d : e.baseline)
        if (d.part == probe_of::bracket || d.part == probe_of::refine)
            lead.push_back(probe_of_repeat(e, t, d));
    return lead;
}

/// Why there can be no comparison any more, nothing where there can be one.
inline cause fault_of_lead(const evidence& e) {
    for (const repeat_data& d : e.baseline) {
        if (d.interrupted) return {because::interrupted};
        if (cause gone = with_text(because::server_gone, d.target_gone))
            return of_server(std::move(gone), true);
    }
    const std::size_t n = e.baseline.size();
    const bool dead = n > 0 && is_all_failed(e.baseline[n - 1]) && n < 2;
    return dead ? of_server({because::first_probe_failed}, true) : cause{};
}

/// A probe of both at one load.
struct compared_pair {
    std::size_t candidate = 0, baseline = 0;  // their places in the evidence
};
inline std::vector<compared_pair> compared_pairs(const evidence& e) {
    std::vector<compared_pair> pairs;
    for (std::size_t i = 0; i < e.candidate.size(); ++i)
        for (std::size_t k = 0; k < e.baseline.size(); ++k)
            if (e.candidate[i].part == probe_of::compared &&
                e.baseline[k].index == e.candidate[i].index)
                pairs.push_back({i, k});
    return pairs;
}
/// One arm of a pair. A delay of the client is no part of its server's margin where a timing
/// bound says so; whether that decides is seen by both bounds.
inline arm_probe arm_probe_of(const evidence& e, const terms& t, const repeat_data& d,
                              timing_bound how) {
    const probe p = probe_of_repeat(e, t, d);
    return {d.arm, d.load, worst_margin(t.objectives_held, d, how), p.over, p.invalid};
}
inline std::vector<arm_probe> compared_probes(const evidence& e, const terms& t, timing_bound how) {
    std::vector<arm_probe> probes;
    for (const compared_pair& p : compared_pairs(e)) {
        probes.push_back(arm_probe_of(e, t, e.baseline[p.baseline], opposite(how)));
        probes.push_back(arm_probe_of(e, t, e.candidate[p.candidate], how));
    }
    return probes;
}

inline std::optional<compare_terms> compare_terms_of(const evidence& e, const terms& t,
                                                     const slo& s) {
    const std::optional<double> capacity = state_of(baseline_lead(e, t)).capacity;
    if (!capacity) return {};
    compare_terms c;
    c.capacity = *capacity;
    c.factor = s.factor;
    c.whole = s.what.metric == metric_id::capacity_in_users;
    return c;
}

/// The pair whose margins the client may have moved the most, where that may have decided.
inline std::optional<client_bias> bias_of_ratio(const evidence& e, const terms& t,
                                                const slo& s) {
    const auto c = compare_terms_of(e, t, s);
    if (!c) return {};
    const auto outcome = [&](timing_bound how) {
        return compared(*c, compared_probes(e, t, how)).outcome;
    };
    const verdict v = outcome(timing_bound::measured);
    if (v == verdict::inconclusive) return {};
    const timing_bound other =
        v == verdict::pass ? timing_bound::pessimistic : timing_bound::optimistic;
    if (outcome(other) == v) return {};
    client_bias bias{{because::client_in_probes, {}, whose::client}, 0};
    double most = -1;
    for (const compared_pair& p : compared_pairs(e)) {
        const repeat_data& d = e.candidate[p.candidate];
        if (!d.disturbed.empty()) continue;
        double width = 0;
        for (const repeat_data* x : {&d, &e.baseline[p.baseline]})
            width += std::abs(worst_margin(t.objectives_held, *x, timing_bound::pessimistic) -
                              worst_margin(t.objectives_held, *x, timing_bound::optimistic));
        if (!(width > most)) continue;
        most = width;
        bias.repeat = p.candidate;
    }
    return bias;
}

/// One arm at the loads that are compared.
inline evidence compared_arm(const evidence& e, run_arm arm) {
    evidence alone;
    static_cast<load_conditions&>(alone) = e;
    alone.candidate = e.arm(arm).those([](const repeat_data& d) {
        return d.part == probe_of::compared && d.disturbed.empty();
    });
    return alone;
}
/// Why an arm's probes are nothing to be compared, "" where they are.
inline std::string fault_of_probes(const evidence& alone, const terms& t) {
    const terms judged_by = terms_of_a_load(t);
    const grounds g = grounds_of(alone);
    if (g.invalid) return described(g.invalid);
    for (const slo& s : judged_by.slos) {
        if (s.is_advisory) continue;
        cause why = fault_of_verdict(alone, judged_by, g, decide_evidence(alone, judged_by, s));
        if (!why) why = sample_fault(alone, judged_by.rule, s);
        if (why) return str(s.text()) + ": " + described(why, s);
    }
    return {};
}

inline decision relative_verdict(const evidence& e, const terms& t, const grounds& g,
                                 const slo& s) {
    decision v = undecided(s);
    v.limit = s.factor;
    v.counted_in = verdict_unit::pair;
    v.decided_by = verdict_method::margins;
    const std::vector<compared_pair> pairs = compared_pairs(e);
    v.repeats = static_cast<int>(pairs.size());
    v.requests = measured_requests(e, e.candidate.size());
    const cause stopped = with_text(because::stopped, e.stopped);
    if (pairs.empty() && stopped) return decided(v, verdict::inconclusive, stopped);
    if (cause lost = pairs.empty() ? fault_of_lead(e) : g.invalid)
        return decided(v, verdict::invalid, std::move(lost));
    const std::vector<arm_probe> probes = compared_probes(e, t, timing_bound::measured);
    if (probes.empty() ? client_gave_up(baseline_lead(e, t)) : client_gave_up(pairs_of(probes)))
        return decided(v, verdict::invalid, {because::gave_up});
    const auto c = compare_terms_of(e, t, s);
    if (!c) return decided(v, verdict::inconclusive, {because::no_edge});
    if (probes.empty()) return decided(v, verdict::inconclusive, {because::nothing_compared});
    for (const arm_probe& p : probes) v.margins.push_back({p.arm, p.load, p.margin});
    for (const run_arm arm : {run_arm::baseline, run_arm::candidate}) {
        const evidence alone = compared_arm(e, arm);
        const std::string who = std::string(to_string(arm)) + ": ";
        if (const std::string why = fault_of_probes(alone, t); !why.empty())
            return decided(v, verdict::invalid, with_text(because::reported, who + why));
        const decision errors =
            judge_evidence(alone, terms_of_a_load(t), error_limit(t.objectives_held),
                                               false, true);
        if (errors.outcome == verdict::pass) continue;
        const bool is_own = arm == run_arm::candidate;
        const verdict o = is_own ? errors.outcome
                                 : errors.outcome == verdict::fail ? verdict::invalid
                                                                   : verdict::inconclusive;
        return decided(v, o, with_text(because::reported, who + flat_line(described(errors))));
    }
    if (const auto bias = bias_of_ratio(e, t, s))
        return decided(v, verdict::invalid, bias->why);
    const capacity_ratio r = compared(*c, probes);
    v.outcome = r.outcome;
    v.estimate = {r.ratio, r.low, r.high};
    const bool known = std::isfinite(r.ratio) && std::isfinite(r.high);
    v.why = {known ? cause{because::candidate_carries, {c->capacity, r.ratio, r.low, r.high}}
                   : cause{because::baseline_breaks, {c->capacity}}};
    if (cause why = with_text(because::reported, r.reason)) v.why.push_back(std::move(why));
    if (v.outcome == verdict::inconclusive && stopped) v.why.push_back(stopped);
    v.at_the_load = described(v.why, v);
    return v;
}

// ---- of one load, of several, of a baseline's

/// What an analysis of the evidence finds, of a gate of one load or of several.
inline findings assess_loads(const evidence& e, const terms& t) {
    if (t.objectives_held.empty()) return assess(e, t);
    findings f;
    f.on = grounds_of(e);
    f.on.saturated = {};  // where it was, is part of what was searched
    f.on.self_check.asked_rate = f.on.self_check.achieved_rate = 0;  // of several loads
    const found_capacity found = e.has_live_baseline() ? found_capacity{} : capacity_of(e, t);
    for (const slo& s : t.slos)
        f.verdicts.push_back(e.has_live_baseline() ? relative_verdict(e, t, f.on, s)
                                                   : capacity_verdict(e, t, f.on, found, s));
    return f;
}

/// The verdict on one more SLO, as if the gate had stated it too. Of a search only capacities can
/// be judged, unless all of it was at one load.
inline decision judged_also_of_loads(const evidence& e, const terms& t, const slo& s) {
    if (t.objectives_held.empty()) return judged_also(e, t, s);
    if (is_capacity(s.what.metric) && s.factor > 0 && e.has_live_baseline())
        return relative_verdict(e, t, grounds_of(e), s);
    if (is_capacity(s.what.metric))
        return capacity_verdict(e, t, grounds_of(e), capacity_of(e, t), s);
    for (const repeat_data& d : e.candidate)
        if (d.load != e.candidate.front().load)
            return decided(undecided(s), verdict::invalid, {because::several_loads});
    return judged_also(e, terms_of_a_load(t), s);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
