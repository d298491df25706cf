// the verdicts of a gate
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/metrics.hpp"
#include "core/judging/baseline_errors.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/client_bias.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/numbers.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/samples.hpp"
#include "core/judging/terms.hpp"
#include "core/judging/validity.hpp"
#include "core/judging/values.hpp"

#include <algorithm>  // any_of, count_if, find_if, max, min, none_of, sort
#include <cmath>  // isfinite
#include <optional>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What a prefix cache did for what passes, nothing where it did nothing to speak of.
inline cause part_of_cache(const evidence& e, const grounds& g, const slo& s) {
    if (!concerns(s.what, &metric_facts::is_of_prefill)) return {};
    const bool compares = s.factor > 0 && g.baseline_cache.prompt > 0, all = is_of_all(s.what);
    const double mine = (all ? g.cache : prefix_hits_of(e.candidate, s.what.which)).fraction();
    const double other =
        !compares ? 0
                  : (all ? g.baseline_cache : prefix_hits_of(e.baseline, s.what.which)).fraction();
    if (std::max(mine, other) < 0.01) return {};
    return compares ? cause{because::cached_in_both, {mine, other}}
                    : cause{because::cached, {mine}};
}

inline slo error_guard() {
    slo s;
    s.what = make_statistic(statistic_kind::value, metric_id::error_rate, 0);
    s.bound = 0.01;
    return s;
}
inline bool states_error_rate(const std::vector<slo>& slos) {
    return std::any_of(slos.begin(), slos.end(), is_of_all_errors);
}
/// What errors are held against: what the gate states, or else the guard.
inline slo error_limit(const std::vector<slo>& slos) {
    const auto stated = std::find_if(slos.begin(), slos.end(), is_of_all_errors);
    return stated == slos.end() ? error_guard() : *stated;
}

/// What was wrong with the answers that were: some were cut off, unreadable, or never came.
inline cause wrong_answers(const evidence& e, const statistic_data& what, std::size_t repeats) {
    double wrong = 0, cut = 0, unreadable = 0, failed = 0;
    for (std::size_t i = 0; i < std::min(repeats, e.candidate.size()); ++i) {
        const selects selected(what, e.candidate[i]);
        for (const record& r : e.candidate[i].records) {
            if (!selected(r) || !counts_in(what.metric, r) || *r.right) continue;
            ++wrong;
            if (r.status != request_status::ok) ++failed;
            else if (stream_event::is_at_length(r.finish_reason.c_str())) ++cut;
            else if (r.graded.empty()) ++unreadable;
        }
    }
    return {because::wrong_answers, {wrong, cut, unreadable, failed}};
}

/// How many answers are not the baseline's, since where, and how often the server repeats its own.
inline cause answers_differ(const evidence& e, const statistic_data& what, std::size_t repeats) {
    double differ = 0, all = 0, failed = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(repeats, e.candidate.size()); ++i) {
        const selects selected(what, e.candidate[i]);
        for (const record& r : e.candidate[i].records) {
            if (!selected(r) || !counts_in(what.metric, r)) continue;
            ++all;
            differ += !*r.same;
            failed += has_failed(r);
        }
    }
    answer_differences d = all_differences(e.candidate, repeats);
    std::sort(d.places.begin(), d.places.end());
    const double with_place = as_number(d.places.size());
    return {because::answers_differ,
            {differ, all, failed, own_agreement(e.candidate, repeats, what), with_place,
             d.places.empty() ? not_a_number : nearest_rank(d.places, 0.5),
             d.tokens > 0 ? 1000 * with_place / d.tokens : not_a_number,
             static_cast<double>(d.without_place)}};
}

/// What does not pass, with what the server's own state says to that; of answers, what they lack.
inline decision explained(decision v, const evidence& e, const std::vector<cause>& state) {
    if (v.what.what.metric == metric_id::same_answers && v.repeats > 0)
        v.why.push_back(answers_differ(e, v.what.what, static_cast<std::size_t>(v.repeats)));
    if (v.what.what.metric == metric_id::accuracy && v.repeats > 0)
        v.why.push_back(wrong_answers(e, v.what.what, static_cast<std::size_t>(v.repeats)));
    const bool is_open = v.outcome == verdict::fail || v.outcome == verdict::inconclusive;
    if (is_open && is_of_service(v.what.what.metric) && v.repeats > 0)
        v.why.insert(v.why.end(), state.begin(), state.end());
    return v;
}
/// What is undecided, with a limit that would be decided where that is near.
inline decision with_a_way_out(decision v, bool is_guard) {
    const slo& s = v.what;
    if (v.why.empty()) v.why = {{because::too_close}};
    else if (!is_request_fraction(s.what.metric)) return v;
    const double would_pass = s.at_most ? v.estimate.high : v.estimate.low;
    const double off = would_pass / std::max(v.limit, v.estimate.value);
    const bool is_near = std::isfinite(would_pass) && off < 3 && off > 1.0 / 3;
    if (!is_guard && !v.advice && is_near && would_pass > 0)
        v.advice = {because::limit_that_passes, {would_pass * (s.at_most ? 1.02 : 0.98)}};
    return v;
}

/// Why nothing can be said of what is of a label, nothing where one of its requests succeeded: a
/// model that the server does not have fails all of them, and says nothing of its speed.
inline cause fault_of_label(const evidence& e, const slo& s) {
    for (const statistic_data& part : s.what.parts) {
        slo own = s;
        own.what = part;
        if (cause why = fault_of_label(e, own)) return why;
    }
    if (s.what.which.label.empty()) return {};
    const selection own = label(s.what.which.label);
    for (const auto* arm : arms_of(e, s)) {
        std::size_t requests = 0, completed = 0;
        for (const repeat_data& d : *arm) {
            const selects selected(own, d);
            for (const record& r : d.records) {
                requests += selected(r);
                completed += selected.completed(r);
            }
        }
        if (requests > 0 && completed == 0)
            return of_server({because::label_failed, {as_number(requests)}, whose::nobody,
                              selection_text(own)},
                             arm == &e.baseline);
    }
    return {};
}

/// The verdict of one SLO on all requests as they are reported.
inline decision judged_as_reported(const evidence& e, const terms& t, const grounds& g,
                                   const slo& s, bool is_guard) {
    if (e.candidate.empty() && !e.stopped.empty())
        return decided(undecided(s), verdict::inconclusive, with_text(because::stopped, e.stopped));
    const arms_grounds& on = g.of(s);
    if (cause why = with_text(because::unsupported, unsupported_reason(e, s.what));
        !on.invalid && why)
        return decided(undecided(s), verdict::invalid, std::move(why));
    if (cause why = fault_of_label(e, s); !on.invalid && why)
        return decided(undecided(s), verdict::invalid, std::move(why));
    decision v = judge_evidence(e, t, s, false, is_guard);
    if (on.invalid) return decided(std::move(v), verdict::invalid, on.invalid);
    if (cause why = fault_of_verdict(e, t, g, v))
        return decided(std::move(v), verdict::invalid, std::move(why));
    // What has no value at all says so itself.
    if (cause small = sample_fault(e, t.rule, s); small && v.outcome != verdict::invalid)
        return decided(std::move(v), verdict::invalid, std::move(small));
    if (cause ends = window_fault(e, v))
        return decided(std::move(v), verdict::invalid, std::move(ends));
    if (cause over = over_saturation_for(e, on, s.what); over && is_of_service(s.what.metric)) {
        const verdict outcome = v.outcome == verdict::fail ? verdict::fail : verdict::invalid;
        return decided(std::move(v), outcome, std::move(over));
    }
    if (needs_baseline(s) && e.has_live_baseline())
        if (cause why = errors_of_baseline(e, t, error_limit(t.slos)))
            return decided(std::move(v), why.what == because::baseline_fails
                                             ? verdict::invalid
                                             : verdict::inconclusive, why);
    if (v.outcome == verdict::inconclusive && !e.stopped.empty()) {
        v.advice = {};
        v.why.insert(v.why.begin(), with_text(because::stopped, e.stopped));
        return v;
    }
    if (v.outcome == verdict::inconclusive) return with_a_way_out(std::move(v), is_guard);
    if (cause cached = part_of_cache(e, g, s); v.outcome == verdict::pass && cached)
        v.why.push_back(std::move(cached));
    return v;
}

/// The evidence without the requests that had not ended when their run did.
inline evidence without_cut_off(evidence e) {
    for (std::size_t i = 0; i < e.candidate.size(); ++i)
        e.candidate.change(i, [](repeat_data& d) {
            for (record& r : d.records)
                if (r.status == request_status::cancelled) r.phase = run_phase::warmup;
        });
    e.has_cut_off = false;
    return e;
}
/// The same with what it gives grounds for; made once for all objectives.
struct evidence_that_ended {
    evidence seen{};
    grounds on{};
};
using maybe_ended = std::optional<evidence_that_ended>;
/// None where all requests had ended, or nothing is judged.
inline maybe_ended ended_part_of(const evidence& e, const grounds& g) {
    if (!e.has_cut_off || g.own.invalid) return {};
    evidence rest = without_cut_off(e);
    grounds on = grounds_of(rest);
    return evidence_that_ended{std::move(rest), std::move(on)};
}
/// The verdict of one SLO. How a request would have ended that was cut off with its run is not
/// known: what it decides is decided by nobody. The guard speaks of those that are.
inline decision judged(const evidence& e, const terms& t, const grounds& g,
                          const maybe_ended& ended, const slo& s, bool is_guard = false) {
    const decision v = judged_as_reported(e, t, g, s, is_guard);
    if (!ended || g.of(s).invalid) return v;
    const decision other = judged_as_reported(ended->seen, t, ended->on, s, is_guard);
    if (is_guard || v.outcome == other.outcome) return is_guard ? other : v;
    return decided(v, verdict::invalid,
                   {because::cut_off, {static_cast<double>(v.outcome),
                                       static_cast<double>(other.outcome)}});
}

/// The guard on errors speaks of all requests. Where it does not fail on those, it speaks of the
/// label that does by itself, if one does: at the level divided by their number, which is Holm's
/// first step; the others would name no more than a second label.
inline decision judged_guard(const evidence& e, const terms& t, const grounds& g,
                             const maybe_ended& ended) {
    decision of_all = judged(e, t, g, ended, error_guard(), true);
    const bool has_labels = !e.candidate.empty() && !e.candidate.front().labels.empty();
    if (!has_labels || of_all.outcome == verdict::fail || of_all.outcome == verdict::invalid)
        return of_all;
    const std::vector<std::string>& labels = e.candidate.front().labels;
    std::optional<terms> each;  // its levels take a while, and most labels are within the limit
    for (const std::string& name : labels) {
        slo own = error_guard();
        own.what = of_some(own.what, label(name));
        const bool is_stated = std::any_of(t.slos.begin(), t.slos.end(), [&](const slo& s) {
            return s.what.name == own.what.name && !s.is_advisory;
        });
        fraction_counts seen;
        for (const repeat_data& d : e.candidate) seen.add(misses_of(own.what, d));
        if (is_stated || !(seen.misses > own.bound * seen.all)) continue;
        if (!each) {
            each = t;
            each->rule =
                t.rule.failing_at(t.rule.fail_level / static_cast<double>(labels.size()));
        }
        decision v = judged(e, *each, g, ended, own, true);
        if (v.outcome == verdict::fail || v.outcome == verdict::invalid) return v;
    }
    return of_all;
}

/// One verdict per SLO in order, then the guard on errors unless the gate states its own limit.
/// `bias`: why the first of them that is none through the client's fault is none.
inline std::vector<decision> judge_each(const evidence& e, const terms& t, const grounds& g,
                                           const maybe_ended& ended,
                                           std::optional<client_bias>& bias) {
    std::vector<decision> out;
    bias.reset();
    for (const slo& s : t.slos)
        out.push_back(explained(settled(e, t, judged(e, t, g, ended, s), &bias), e, g.state));
    if (!states_error_rate(t.slos)) out.push_back(judged_guard(e, t, g, ended));
    return out;
}

/// The same under Holm (1979): the level is divided by the number of SLOs that are not shown to be
/// missed.
inline std::vector<decision> judge_stepwise(const evidence& e, const terms& t, const grounds& g,
                                               const maybe_ended& ended,
                                               std::optional<client_bias>& bias) {
    terms stricter = t;
    auto left = std::count_if(t.slos.begin(), t.slos.end(),
                              [](const slo& s) { return !s.is_advisory; });
    const auto blocking = left;
    for (;;) {
        stricter.rule = t.rule.failing_at(t.rule.fail_level /
                                          static_cast<double>(std::max(1l, left)));
        std::vector<decision> out = judge_each(e, stricter, g, ended, bias);
        long failed = 0;  // the guard is none of them
        for (std::size_t i = 0; i < t.slos.size(); ++i)
            failed += !out[i].what.is_advisory && out[i].outcome == verdict::fail;
        if (blocking - failed >= left) return out;
        left = blocking - failed;
    }
}

/// What an analysis of the evidence finds. Made once each; whoever reports reads it and computes
/// nothing.
struct findings {
    grounds on{};
    std::vector<decision> verdicts{};
    std::optional<client_bias> bias{};    // why one that counts is invalid through the client
};
inline findings assess(const evidence& e, const terms& t) {
    findings f;
    f.on = grounds_of(e);
    const maybe_ended ended = ended_part_of(e, f.on);
    f.verdicts = t.rule.holm ? judge_stepwise(e, t, f.on, ended, f.bias)
                             : judge_each(e, t, f.on, ended, f.bias);
    if (f.bias && f.on.self_check.ok) {
        f.on.self_check.ok = false;
        f.on.self_check.why = f.bias->why;
    }
    return f;
}
/// The verdict on one more SLO, as if the gate had stated it too.
inline decision judged_also(const evidence& e, terms t, const slo& s) {
    t.slos.push_back(s);
    const grounds g = grounds_of(e);
    return explained(settled(e, t, judged(e, t, g, ended_part_of(e, g), s)), e, g.state);
}

/// Whether more repeats are measured for a verdict: one that is only advised costs none, unless the
/// gate asks for a number of them.
inline bool is_waited_for(const verdict_numbers& v, bool repeats_are_asked) {
    return v.outcome == verdict::inconclusive && (!v.what.is_advisory || repeats_are_asked);
}
/// The same, of a verdict whose repeats may be all that count.
inline bool is_waited_for(const decision& d, bool repeats_are_asked) {
    const verdict_numbers& v = d;
    return !d.is_at_its_end && is_waited_for(v, repeats_are_asked);
}
template <class Verdicts>
bool all_decided(const Verdicts& verdicts, bool repeats_are_asked = false) {
    return std::none_of(verdicts.begin(), verdicts.end(), [&](const auto& v) {
        return is_waited_for(v, repeats_are_asked);
    });
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
