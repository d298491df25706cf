// checks that make measurements invalid
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/rates.hpp"
#include "core/judging/client.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/cross_check.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/load.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/numbers.hpp"
#include "core/judging/server.hpp"
#include "core/judging/values.hpp"

#include <algorithm>  // any_of, max, min
#include <cmath>  // isfinite
#include <cstddef>  // size_t
#include <limits>
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Whether times or speeds also pass at a limit that is closer by the most that coalesced tokens
/// can hide in any repeat. The spread is that of the measured values: tokens that coalesce in one
/// repeat only are not the server's noise.
inline bool passes_by_more_than(const objective_columns& c, const objective_columns& buffered,
                                const judging_parameters& t, slo s) {
    const metric_id m = s.statistic.metric;
    if (!is_judged_by_spread(m) || is_drift(m) || is_difference(s)) return false;
    const comparison as_is = comparison_of(c, t, s), worst = comparison_of(buffered, t, s);
    double most = 1;
    for (std::size_t i = 0; i < as_is.repeats(); ++i) {
        const double a = as_is.of_repeat(i), b = worst.of_repeat(i);
        const double hidden = s.at_most ? b / a : a / b;
        if (!std::isfinite(hidden)) return false;
        most = std::max(most, hidden);
    }
    double& limit = s.factor > 0 ? s.factor : s.bound;
    limit = s.at_most ? limit / most : limit * most;
    return decision_by_numbers(c, t, s).outcome == verdict::pass;
}

/// Whether a verdict on a mostly unbuffered stream holds: on a shared machine a few answers
/// coalesce. A pass, or an open verdict, must hold if coalesced tokens took all the time before
/// them. A missed time per token holds, as that time only adds to it. Gaps that were merged may
/// have been longer than any measured one.
inline bool stands_though_buffered(const measurements& e, const judging_parameters& t,
                                   const answer_counts& variant, const verdict_numbers& v) {
    const statistic_data& what = v.objective.statistic;
    if (variant.most_in_a_burst() * 2 > variant.streamed() ||
        variant.read_together * 2 > variant.events)
        return false;
    const bool of_gaps = concerns(what, &metric_facts::is_of_gaps);
    bool listed = true;
    for (const repeat_data& d : repeats_of(e)) listed = listed && !d.gaps_counted;
    const bool of_rate = concerns_a_metric(what, [](metric_id m) { return is_throughput(m); });
    if (of_rate || (of_gaps && !listed)) return false;
    if (v.outcome == verdict::fail && of_gaps) return false;
    const objective_columns other =
        columns_of(e, v.objective, v.outcome == verdict::fail ? timing_bound::baseline_buffered
                                                              : timing_bound::buffered);
    return decision_by_numbers(other, t, v.objective).outcome == v.outcome ||
           (v.outcome == verdict::pass &&
            passes_by_more_than(columns_of(e, v.objective), other, t, v.objective));
}

/// Why side tasks changed the load, nothing where they ran as planned.
inline cause fault_of_tasks(const repeat_data& d) {
    for (const side_task_seen& t : d.side_tasks) {
        if (t.steps.empty()) return {because::task_idle, {d.index + 1.0}, whose::nobody, t.name};
        for (const side_step& s : t.steps)
            if (!s.failed.empty() && !t.may_fail)
                return {because::task_failed, {d.index + 1.0}, whose::nobody,
                        "\"" + t.name + "\", " + s.what + " " + s.failed};
    }
    return {};
}

/// Whether a side task may have ended a server, after the last answer that it gave.
inline bool went_excused(const repeat_data& d) {
    long long last_ns = 0;
    for (const record& r : d.records)
        if (r.status == request_status::ok) last_ns = std::max(last_ns, r.end_ns);
    return is_excused(d, last_ns, std::numeric_limits<long long>::max());
}
/// Why a variant shows nothing.
inline cause fault_of_variant(const measurements& e, const repeat_list& variant) {
    const bool is_baseline = &variant == &e.baseline;
    std::size_t measured = 0, succeeded = 0;
    const record* example = nullptr;
    const unfinished_requests unfinished(e);
    for (const repeat_data& d : variant) {
        if (cause why = with_text(because::server_gone, d.target_gone); why && !went_excused(d))
            return of_server(std::move(why), is_baseline);
        if (cause why = fault_of_tasks(d)) return of_server(std::move(why), is_baseline);
        if (cause why = cross_check_fault(e, d, unfinished))
            return of_server(std::move(why), is_baseline);
        for (const record& r : d.records) {
            if (!is_measured(r)) continue;
            ++measured;
            succeeded += r.status == request_status::ok;
            if (!example && r.status != request_status::ok) example = &r;
        }
    }
    if (succeeded > 0 || (is_baseline && variant.empty())) return {};
    if (measured == 0) return {because::no_requests};
    return of_server({because::none_succeeded, {as_number(measured)}, whose::nobody,
                      std::string(to_string(example->status)) + ": " + str(example->error)},
                     is_baseline);
}
/// Why the whole gate is invalid.
inline cause fault_of_gate(const measurements& e, const variant_list& variants) {
    if (e.candidate.empty() && !e.stopped.empty()) return {};
    for (const unsupported_metrics& u : e.unsupported)
        if (u.of.empty()) return {because::unsupported, {}, whose::nobody, u.why};
    if (cause lack = missing_on_client(variants)) return lack;
    cause lost;
    for (const repeat_data& d : repeats_of(variants))
        if (!lost) lost = with_text(because::reported, skew_fault(d.ranks, e.max_skew_s));
    for (const repeat_data& d : repeats_of(e))
        if (!lost && d.interrupted) lost = {because::interrupted};
    for (const repeat_list* variant : variants)
        if (!lost) lost = fault_of_variant(e, *variant);
    return lost;
}
inline cause fault_of_gate(const measurements& e) { return fault_of_gate(e, variants_of(e)); }

/// Checks of the variants that an objective needs.
struct variant_checks {
    own_check self_check{};
    cause invalid{};    // why all is invalid
    cause saturated{};  // why the load, or a part of it, exceeded the server
};
inline variant_checks variant_checks_of(const measurements& e, const variant_list& variants) {
    return {self_check_of(e, repeats_of(variants)), fault_of_gate(e, variants),
            over_saturation_of(e, variants, e.arrival_cv2)};
}
/// Checks for all objectives of a gate, computed once.
struct validity_checks : variant_checks {
    variant_checks own{};  // of the candidate alone
    answer_counts candidate{}, baseline{};
    prefix_hits cache{}, baseline_cache{};
    vector<cause> state{};  // the server's page on its speed
    const variant_checks& of(const slo& s) const { return needs_baseline(s) ? *this : own; }
};
inline validity_checks validity_checks_of(const measurements& e) {
    const variant_checks all = variant_checks_of(e, variants_of(e));
    return {all, e.baseline.empty() ? all : variant_checks_of(e, {&e.candidate}),
            answer_counts_of(e.candidate), answer_counts_of(e.baseline),
            prefix_hits_of(e.candidate), prefix_hits_of(e.baseline), server_state_of(e)};
}

/// Gaps kept as histograms have no selection.
inline bool counts_gaps_of_all(const repeat_list& variant, const statistic_data& what) {
    if (!pools_gaps(what.metric) || is_all(what.which)) return false;
    return std::any_of(variant.begin(), variant.end(),
                       [](const repeat_data& d) { return d.gaps_counted; });
}

/// Why token rates are not compared: the variants' workloads differ.
inline cause tokens_that_differ(const measurements& e, const slo& s) {
    const metric_id m = s.statistic.metric;
    const bool of_tokens = is_throughput(m) && m != metric_id::request_throughput;
    if (!e.other_workload || s.factor <= 0 || !of_tokens) return {};
    const request_tokens mine = request_tokens_of(e.candidate, s.statistic.which),
                         other = request_tokens_of(e.baseline, s.statistic.which);
    const auto differ = [](double a, double b) { return std::max(a, b) > 1.05 * std::min(a, b); };
    const bool of_prompts = m == metric_id::prefill_throughput ||
                            m == metric_id::input_throughput || m == metric_id::total_throughput;
    if (of_prompts && differ(mine.prompt, other.prompt))
        return {because::other_tokens, {mine.prompt, 1, other.prompt}};
    const bool of_outputs = !of_prompts || m == metric_id::total_throughput;
    if (of_outputs && differ(mine.output, other.output))
        return {because::other_tokens, {mine.output, 0, other.output}};
    return {};
}

/// Why a pass fails if the requests without a value of a user's function have the worst one.
inline cause missing_that_decide(const measurements& e, const judging_parameters& t,
                                 const answer_counts& variant, const verdict_numbers& v,
                                 const statistic_data& what) {
    cause why;
    const bool any = concerns_a_metric(what, [&](metric_id m) {
        if (!is_own(m) || variant.of(m).missing == 0) return false;
        why = values_missing(variant, m);
        return true;
    });
    if (!any || v.outcome != verdict::pass) return {};
    const objective_columns worst = columns_of(e, v.objective, timing_bound::missing_worst);
    return decision_by_numbers(worst, t, v.objective).outcome == verdict::pass ? cause{} : why;
}

/// Why the answers behind a statistic do not support a verdict.
inline cause fault_of_answers_to(const measurements& e, const judging_parameters& t,
                                 const validity_checks& g, const verdict_numbers& v,
                                 const statistic_data& what) {
    for (const run_variant a : {run_variant::candidate, run_variant::baseline}) {
        const bool is_baseline = a == run_variant::baseline;
        if (is_baseline && (v.objective.factor <= 0 || !e.has_live_baseline())) continue;
        const bool is_shared = is_of_all(what) && !concerns_a_metric(what, is_own);
        const answer_counts own =
            is_shared ? answer_counts() : answer_counts_of(e.variant(a), what.which, what);
        const answer_counts* const variant = !is_shared    ? &own
                                             : is_baseline ? &g.baseline
                                                           : &g.candidate;
        if (counts_gaps_of_all(e.variant(a), what)) return {because::gaps_of_all};
        cause held = fault_of_stream(*variant, what);
        if (is_baseline && held.of == whose::nobody) held.of = whose::baseline;
        if (held && !stands_though_buffered(e, t, *variant, v)) return held;
        if (cause why = fault_of_answers(*variant, what, e.short_outputs_expected))
            return of_server(std::move(why), is_baseline);
        if (cause why = missing_that_decide(e, t, *variant, v, what))
            return of_server(std::move(why), is_baseline);
    }
    return {};
}

/// Why a verdict is invalid.
inline cause fault_of_verdict(const measurements& e, const judging_parameters& t,
                              const validity_checks& g, const verdict_numbers& v) {
    const slo& s = v.objective;
    const bool compared =
        e.has_live_baseline() || !t.stored.file.empty() || t.past;
    if (needs_baseline(s) && !compared) return {because::no_baseline};
    if (cause why = tokens_that_differ(e, s)) return why;
    if (!is_of_service(s.statistic.metric)) return {};
    if (is_of_sessions(s.statistic.metric) && !e.candidate.empty() && !e.candidate[0].plays_out)
        return {because::not_played_out, {}, whose::plan};
    const own_check& check = g.of(s).self_check;
    if (concerns(s.statistic, &metric_facts::is_of_gaps) && check.unread_fraction > 0.05)
        return {because::read_together, {check.unread_fraction}, whose::client};
    if (concerns(s.statistic, &metric_facts::is_affected_by_lateness) ||
        client_was_saturated(e, check.cpu_utilization))
        if (check.why) return check.why;
    if (is_of_server(s.statistic.metric)) return server_metrics_fault(e, v);
    if (s.statistic.parts.empty()) return fault_of_answers_to(e, t, g, v, s.statistic);
    for (const statistic_data& part : s.statistic.parts)
        if (cause why = fault_of_answers_to(e, t, g, v, part)) return why;
    return {};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
