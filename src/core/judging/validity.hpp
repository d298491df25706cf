// what checks look at, and what they find
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/rates.hpp"
#include "core/measured/recovery.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/client.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/cross_check.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/numbers.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/server.hpp"
#include "core/judging/values.hpp"

#include <algorithm>  // count, find, find_if, max, min
#include <cmath>  // isfinite
#include <cstddef>  // size_t
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>  // exchange, move

namespace llmbench {
inline namespace v1 {
namespace detail {

// ---- of a gate, a variant or a repeat

struct check;

struct gate_in_check {
    const measurements& e;
    const variant_list& variants;
    const unfinished_requests unfinished{e};
    const repeat_list* variant = nullptr;
    const repeat_data* repeat = nullptr;
};

inline cause unsupported_files(const gate_in_check& g) {
    for (const unsupported_metrics& u : g.e.unsupported)
        if (u.of.empty()) return with_text(because::unsupported, u.why);
    return {};
}
inline cause start_skew(const gate_in_check& g) {
    for (const repeat_data& d : repeats_of(g.variants))
        if (cause why = with_text(because::reported, skew_fault(d.ranks, g.e.max_skew_s)))
            return why;
    return {};
}
inline cause was_interrupted(const gate_in_check& g) {
    for (const repeat_data& d : repeats_of(g.e))
        if (d.interrupted) return {because::interrupted};
    return {};
}
/// A side task may have ended a server, after the last answer that it gave.
inline cause server_went(const gate_in_check& g) {
    const repeat_data& d = *g.repeat;
    if (d.target_gone.empty()) return {};
    long long last_ns = 0;
    for (const record& r : d.records)
        if (r.status == request_status::ok) last_ns = std::max(last_ns, r.end_ns);
    const bool excused = is_excused(d, last_ns, std::numeric_limits<long long>::max());
    return excused ? cause{} : with_text(because::server_gone, d.target_gone);
}
/// Why side tasks changed the load, nothing where they ran as planned.
inline cause fault_of_tasks(const gate_in_check& g) {
    const repeat_data& d = *g.repeat;
    for (const side_task_seen& t : d.side_tasks) {
        if (t.steps.empty())
            return cause_with<because::task_idle>({{"repeat", d.index + 1}}, whose::nobody, t.name);
        for (const side_step& s : t.steps)
            if (!s.failed.empty() && !t.may_fail)
                return cause_with<because::task_failed>(
                    {{"repeat", d.index + 1}}, whose::nobody,
                    "\"" + t.name + "\", " + s.what + " " + s.failed);
    }
    return {};
}
inline cause no_success(const gate_in_check& g) {
    std::size_t measured = 0;
    const record* example = nullptr;
    for (const repeat_data& d : *g.variant)
        for (const record& r : d.records) {
            if (!is_measured(r)) continue;
            ++measured;
            if (r.status == request_status::ok) return {};
            if (!example) example = &r;
        }
    if (g.variant == &g.e.baseline && g.variant->empty()) return {};
    if (measured == 0) return {because::no_requests};
    return cause_with<because::none_succeeded>(
        {{"requests", measured}}, server_of(g.e, g.variant),
        std::string(to_string(example->status)) + ": " + str(example->error));
}

/// What is checked once for all objectives that need the same variants.
struct variant_checks {
    own_check self_check{};
    const check* by = nullptr;  // finds `invalid`
    cause invalid{};            // why all is invalid
    cause saturated{};          // why the load, or a part of it, exceeded the server
};
/// Checks for all objectives of a gate, computed once.
struct validity_checks : variant_checks {
    variant_checks own{};  // of the candidate alone
    answer_counts candidate{}, baseline{};
    prefix_hits cache{}, baseline_cache{};
    vector<cause> state{};  // the server's page on its speed
    const variant_checks& of(const slo& s) const { return needs_baseline(s) ? *this : own; }
};

// ---- of an objective

struct objective_in_check {
    const measurements& e;
    const judging_parameters& t;
    const validity_checks& g;
    slo s;
    sought which = sought::first;
    objective_columns columns{};
    decision v = undecided(s);               // by the checks so far
    bool has_numbers = false;                // in v
    std::optional<client_error> by_client{};  // to measure again
    // Of the answers of one variant behind the statistic, or behind a part of it.
    const statistic_data* part = nullptr;
    const answer_counts* answers = nullptr;
    cause in_the_worst{};  // that it holds there, where tokens came together


    void decide_by_numbers() {
        if (std::exchange(has_numbers, true)) return;
        columns = columns_of(e, s);
        v = is_of_work(s.statistic.metric)
                ? the_work().judge_work(e, columns, t, s)
                : estimated(decision_by_numbers(columns, t, s, which), columns);
    }
    bool is_guard() const { return which == sought::guards_first; }
    const variant_checks& on() const { return g.of(s); }
    bool is_in(verdict outcome) const { return v.outcome == outcome; }
    bool is_of(bool (*kind)(metric_id)) const { return kind(s.statistic.metric); }
    /// The verdict by the numbers of another reading.
    verdict as(timing_bound how) const {
        return decision_by_numbers(columns_of(e, s, how), t, s).outcome;
    }
    cause stopped() const { return with_text(because::stopped, e.stopped); }
};

/// Whether times or speeds also pass at a limit that is closer by the most that coalesced tokens
/// can hide in any repeat. The spread is that of the measured values: tokens that coalesce in one
/// repeat only are not the server's noise.
inline bool passes_by_more_than(const objective_in_check& o, const objective_columns& buffered) {
    slo s = o.s;
    const metric_id m = s.statistic.metric;
    if (!is_judged_by_spread(m) || is_drift(m) || is_difference(s)) return false;
    const comparison as_is = comparison_of(o.columns, o.t, s),
                     worst = comparison_of(buffered, o.t, s);
    double most = 1;
    for (std::size_t i = 0; i < as_is.repeats(); ++i) {
        const double a = as_is.of_repeat(i), b = worst.of_repeat(i);
        const double hidden = s.at_most ? b / a : a / b;
        if (!std::isfinite(hidden)) return false;
        most = std::max(most, hidden);
    }
    double& limit = !is_absolute(s) ? s.factor : s.bound;
    limit = s.at_most ? limit / most : limit * most;
    return decision_by_numbers(o.columns, o.t, s).outcome == verdict::pass;
}
/// Whether a verdict is the same by another reading.
inline bool holds_as(const objective_in_check& o, timing_bound how) {
    const objective_columns other = columns_of(o.e, o.s, how);
    return decision_by_numbers(other, o.t, o.s).outcome == o.v.outcome ||
           (o.is_in(verdict::pass) && passes_by_more_than(o, other));
}
/// Whether a verdict on a mostly unbuffered stream holds: on a shared machine a few answers
/// coalesce. A pass, or an open verdict, must hold if coalesced tokens took the time before them
/// by the pace of the others. A missed time per token holds, as that time only adds to it.
inline bool stands_by_the_others(const objective_in_check& o) {
    const answer_counts& c = *o.answers;
    if (c.most_in_a_burst() * 2 > c.streamed() || c.read_together * 2 > c.events) return false;
    return holds_as(o, o.is_in(verdict::fail) ? timing_bound::baseline_buffered
                                              : timing_bound::buffered);
}
/// Whether a verdict holds whatever was buffered or read late: the end of an answer over its tokens
/// bounds its time per token. The worst case is the verdict where it passes by itself, as what was
/// measured may be nothing at all.
inline bool stands_in_the_worst_case(objective_in_check& o) {
    const bool fails = o.is_in(verdict::fail);
    const objective_columns other =
        columns_of(o.e, o.s, fails ? timing_bound::briefest : timing_bound::since_send);
    decision v = estimated(decision_by_numbers(other, o.t, o.s, o.which), other);
    const bool is_counted = v.outcome == verdict::pass;
    const bool holds = fails ? v.outcome == verdict::fail
                             : is_counted || (o.is_in(verdict::pass) &&
                                              passes_by_more_than(o, other));
    if (!holds) return false;
    if (is_counted) o.columns = other;
    if (is_counted) o.v = std::move(v);
    o.in_the_worst = cause_with<because::holds_anyway>({{"answers", o.answers->most_in_a_burst()},
                                                        {"of", o.answers->streamed()},
                                                        {"is_pass", !fails},
                                                        {"is_counted", is_counted}});
    return true;
}
/// Gaps that were merged may have been longer than any measured one.
inline bool stands_though_buffered(objective_in_check& o) {
    const statistic_data& what = o.s.statistic;
    const bool of_gaps = concerns(what, &metric_facts::is_of_gaps);
    bool listed = true;
    for (const repeat_data& d : repeats_of(o.e)) listed = listed && !d.gaps_counted;
    const bool of_rate = concerns_a_metric(what, [](metric_id m) { return is_throughput(m); });
    if (of_rate || (of_gaps && (!listed || o.is_in(verdict::fail)))) return false;
    return stands_by_the_others(o) || stands_in_the_worst_case(o);
}
/// Whether the verdict may change without the client's delays. A pass must hold with the delays
/// counted against the server, a miss without them. An open one must not be a miss with them.
inline bool may_be_the_clients(const objective_in_check& o) {
    const bool is_missed = o.is_in(verdict::fail);
    const verdict bound = o.as(is_missed ? timing_bound::optimistic : timing_bound::pessimistic);
    return o.is_in(verdict::inconclusive) ? bound == verdict::fail : !o.is_in(bound);
}

/// Why an objective on a label is invalid, nothing where one request succeeded. A model that the
/// server lacks fails all of them without being slow.
inline cause label_without_success(const objective_in_check& o, const statistic_data& what) {
    for (const statistic_data& part : what.parts)
        if (cause why = label_without_success(o, part)) return why;
    if (what.which.label.empty()) return {};
    const selection own = label(what.which.label);
    for (const auto* variant : variants_of(o.e, o.s)) {
        std::size_t requests = 0, completed = 0;
        for (const repeat_data& d : *variant) {
            const selects selected(own, d);
            for (const record& r : d.records) {
                requests += selected(r);
                completed += selected.completed(r);
            }
        }
        if (requests > 0 && completed == 0)
            return cause_with<because::label_failed>(
                {{"requests", requests}}, server_of(o.e, variant), selection_text(own));
    }
    return {};
}
inline cause not_played_out(objective_in_check& o) {
    if (!o.is_of(is_of_sessions) || o.e.candidate.empty() || o.e.candidate[0].plays_out) return {};
    return {because::not_played_out, whose::plan};
}
inline cause read_together(objective_in_check& o) {
    const double part = o.on().self_check.unread_fraction;
    const bool of_gaps =
        o.is_of(is_of_service) && concerns(o.s.statistic, &metric_facts::is_of_gaps);
    if (!of_gaps || part <= 0.05) return {};
    return cause_with<because::read_together>({{"events", part}}, whose::client);
}
/// Why the client is unfit to measure what its lateness affects; a busy one, anything.
inline cause client_conduct(objective_in_check& o) {
    if (!o.is_of(is_of_service)) return {};
    const own_check& c = o.on().self_check;
    const bool matters = concerns(o.s.statistic, &metric_facts::is_affected_by_lateness) ||
                         client_was_saturated(o.e, c.cpu_utilization);
    return matters ? c.why : cause{};
}
/// Gaps kept as histograms have no selection, and no slices of time.
inline cause gaps_of_all(objective_in_check& o) {
    const bool are_slices = o.e.by_slices && !is_absolute(o.s);
    const auto is_of_some = [&](const statistic_data& s) {
        return pools_gaps(s.metric) && (are_slices || !is_all(s.which));
    };
    const auto& parts = o.s.statistic.parts;
    if (!is_of_some(o.s.statistic) && !any_of(parts, is_of_some)) return {};
    const auto are_counted = [](const repeat_data& d) { return d.gaps_counted; };
    const bool lacks = any_of(repeats_of(variants_of(o.e, o.s)), are_counted);
    return lacks ? cause{because::gaps_of_all} : cause{};
}

/// Why a limit on errors is not left open: ten times as many as it, or as the usual one, are no
/// green, though one burst may be all there is.
inline cause failed_too_often(objective_in_check& o) {
    const bool is_last = o.v.repeats >= o.t.rule.most || o.t.rule.is_single_analysis ||
                         !o.e.stopped.empty();
    if (o.s.statistic.metric != metric_id::error_rate || is_difference(o.s) || !o.v.counted ||
        !o.is_in(verdict::inconclusive) || !is_last)
        return {};
    const miss_counts& c = o.v.counted->seen;
    if (c.k < 10 * std::max(o.s.bound, error_guard().bound) * c.n) return {};
    return cause_with<because::failed_too_often>({{"failed", c.k}, {"of", c.n}}, whose::server);
}

// ---- of the answers of a variant

inline cause none_selected(objective_in_check& o) {
    if (o.answers->requests > 0 || is_of_all(*o.part)) return {};
    return with_text(because::none_selected, selection_text(o.part->which));
}
/// More cached tokens than prompts have, or more prompt tokens than what was sent can be.
inline cause usage_over_prompt(objective_in_check& o) {
    const cache_counts& c = o.answers->cache;
    if (is_of_prompts(o.part->metric) && c.cached > c.prompt) return more_cached_than_prompt(c);
    const bool counts = concerns_a_metric(
        *o.part, [](metric_id m) { return facts_of(m).needs == value_needs::prompt_tokens; });
    constexpr auto found = too_much<because::usage_over_prompt, &answer_counts::over_prompt>;
    return counts ? found(*o.answers) : cause{};
}
/// The first cause among the metrics of a statistic.
template <class Of>
cause of_a_metric(const statistic_data& what, Of&& cause_of) {
    cause why;
    concerns_a_metric(what, [&](metric_id m) { return static_cast<bool>(why = cause_of(m)); });
    return why;
}
inline cause lacks_values(objective_in_check& o) {
    return of_a_metric(*o.part, [&](metric_id m) {
        return missing_values(*o.answers, m, o.e);
    });
}
/// What users' functions have no value of; it counts as the worst one.
inline cause own_values_missing(objective_in_check& o) {
    return of_a_metric(*o.part, [&](metric_id m) {
        return is_own(m) && o.answers->of(m).missing > 0 ? values_missing(*o.answers, m) : cause{};
    });
}

// ---- of an objective, after its answers

/// A load that exceeds the server, or is too short to show whether it does. What answers say and
/// prompts share does not depend on the length of a load.
inline cause over_saturated(objective_in_check& o) {
    const cause& over = o.on().saturated;
    const bool is_short = over.what == because::probe_too_short;
    const bool matters = o.is_of(is_of_service) &&
                         !(is_short && (o.is_of(is_of_answers) || o.is_of(is_of_prompts)));
    return matters ? over : cause{};
}
/// Returns the gate's own limit on errors, else the guard.
inline slo error_limit(const vector<slo>& slos) {
    const auto stated = std::find_if(slos.begin(), slos.end(), is_of_all_errors);
    return stated == slos.end() ? error_guard() : *stated;
}
/// Whether a fail holds where this fraction of the baseline's requests failed, perhaps the slow
/// ones. Percentiles, throughputs and fractions count them against it already, except percentiles
/// of gaps, where a request without an answer is one of thousands. Its mean is taken with each of
/// them ten times as slow as the others, a mean speed with each at a standstill.
inline bool fails_by_more_than_shed(const objective_in_check& o, double failed) {
    slo s = o.s;
    if (!o.is_in(verdict::fail)) return false;
    if (s.statistic.kind != statistic_kind::mean) return !pools_gaps(s.statistic.metric);
    const double times = s.at_most ? 1 + 9 * failed : 1 - failed;
    if (is_difference(s)) s.offset += (times - 1) * s.factor * o.columns.other.together;
    else s.factor *= times;
    return decision_by_numbers(o.columns, o.t, s).outcome == verdict::fail;
}
/// Why errors of a live baseline rule out a comparison, or do so yet.
inline cause baseline_errors(const objective_in_check& o, because what) {
    if (!needs_baseline(o.s) || !o.e.has_live_baseline()) return {};
    cause why = errors_of_baseline(o.e, o.t, error_limit(o.t.slos));
    if (why.what != what) return {};
    const bool holds = what == because::baseline_may_fail &&
                       fails_by_more_than_shed(o, why.numbers[0] / why.numbers[1]);
    return holds ? cause{} : why;
}
/// The number of repeats without a disturbance to recover from. More of them change nothing.
inline cause undisturbed(objective_in_check& o) {
    if (!o.is_of(is_of_recovery) || o.is_in(verdict::fail)) return {};
    const auto n = std::count(o.v.values.begin(), o.v.values.end(), 0.0);
    if (n == 0) return {};
    o.v.is_at_its_end = true;
    return cause_with<because::undisturbed>({{"undisturbed", n}, {"repeats", o.v.values.size()}});
}
inline cause too_close(objective_in_check& o) {
    return o.is_in(verdict::inconclusive) ? cause{because::too_close} : cause{};
}
/// Adds to an open verdict the limit that would decide it, where that is near, or the number of
/// requests that would decide a fraction of them.
inline void advise(objective_in_check& o) {
    decision& v = o.v;
    if (o.is_guard() || v.advice) return;
    if (is_request_fraction(o.s.statistic.metric)) {
        v.advice = requests_that_decide(v);
        return;
    }
    if (v.why[0].what != because::too_close) return;
    const double would_pass = o.s.at_most ? v.estimate.high : v.estimate.low;
    if (is_difference(o.s)) {  // on the side of the limit
        if (std::isfinite(would_pass) && would_pass * v.limit > 0)
            v.advice = cause_with<because::limit_that_passes>(
                {{"better", would_pass}, {"longer", 0}});
        return;
    }
    const double off = would_pass / std::max(v.limit, v.estimate.value);
    const bool is_near = std::isfinite(would_pass) && off < 3 && off > 1.0 / 3;
    if (is_near && would_pass > 0)
        v.advice = cause_with<because::limit_that_passes>(
            {{"better", would_pass * (o.s.at_most ? 1.02 : 0.98)}, {"longer", 0}});
}
/// How a prefix cache affects a pass, nothing where it is negligible.
inline cause part_of_cache(objective_in_check& o) {
    const statistic_data& what = o.s.statistic;
    if (!o.is_in(verdict::pass) || !concerns(what, &metric_facts::is_of_prefill)) return {};
    const bool compares = !is_absolute(o.s) && o.g.baseline_cache.prompt > 0, all = is_of_all(what);
    const auto part_of = [&](const prefix_hits& of_all, const repeat_list& variant) {
        return (all ? of_all : prefix_hits_of(variant, what.which)).fraction();
    };
    const double mine = part_of(o.g.cache, o.e.candidate),
                 other = compares ? part_of(o.g.baseline_cache, o.e.baseline) : 0;
    if (std::max(mine, other) < 0.01) return {};
    return cause_with<because::cached>(
        {{"cached", mine}, {"compares", compares}, {"baseline", other}});
}

// ---- after the checks of the requests as reported

/// Whether a client's delay can be part of a metric, and of a verdict: without a comparison, as in
/// the first run of a history, nothing can be affected.
inline bool may_be_late(const objective_in_check& o) {
    const metric_id m = o.s.statistic.metric;
    const bool is_undecided =
        o.is_in(verdict::inconclusive) && o.v.decided_by == verdict_method::none;
    return is_of_times(m) && !is_undecided && !o.is_in(verdict::invalid) &&
           !o.is_in(verdict::skipped);
}
inline bool is_invalid_by(const objective_in_check& o, std::initializer_list<because> causes) {
    return o.is_in(verdict::invalid) && !o.v.why.empty() &&
           std::find(causes.begin(), causes.end(), o.v.why[0].what) != causes.end();
}
/// Notes the repeat to measure again.
inline cause noted(objective_in_check& o, std::optional<client_error> error) {
    o.by_client = std::move(error);
    return o.by_client ? o.by_client->why : cause{};
}
/// The outcome of a request that was cut off with its run is unknown. With these as the worst ones
/// a pass stands; a limit on errors, which leaves them out, with a few.
inline cause cut_off(objective_in_check& o) {
    const bool is_of_errors = o.s.statistic.metric == metric_id::error_rate;
    if (o.is_in(verdict::invalid) || o.is_in(verdict::skipped)) return {};
    std::size_t cut = 0, measured = 0;
    std::string why;
    for (const repeat_data& d : repeats_of(variants_of(o.e, o.s)))
        for (const record& r : d.records) {
            measured += is_measured(r);
            if (is_cut_off(d, r) && cut++ == 0) why = str(r.error);
        }
    const bool stands = is_of_errors ? !is_too_much(cut, measured)
                                     : cut == 0 || o.is_in(verdict::pass) ||
                                           o.is_in(o.as(timing_bound::missing_best));
    if (stands) return {};
    return cause_with<because::cut_off>({{"requests", cut}}, whose::client, why);
}
/// A late client's verdict, which is invalid already.
inline cause read_late(objective_in_check& o) {
    if (!is_invalid_by(o, {because::read_together, because::starts_read_together})) return {};
    return noted(o, greatest_part(
        variants_of(o.e, o.s), 0,
        [](const repeat_data& d) { return static_cast<double>(d.unknown_gaps); },
        [&](const repeat_data&, double) { return o.v.why[0]; }));
}
/// Time that the client lost where the kernel has no stamps; it may have merged events then.
inline cause lost_time(objective_in_check& o) {
    const bool merged = is_invalid_by(
        o, {because::in_a_burst, because::in_large_events, because::comes_in_bursts});
    if (!merged && !may_be_late(o)) return {};
    return noted(o, error_of_lost_time(variants_of(o.e, o.s)));
}
inline cause late_client(objective_in_check& o) {
    if (!may_be_late(o)) return {};
    const variant_list variants = variants_of(o.e, o.s);
    auto error = error_of_load(variants, late_after_s(o.t));
    return noted(o, error ? error : error_of_first_tokens(variants));
}
/// The same, of a verdict that passes without the delays. It stays open: delays only hide that the
/// server is fast.
inline cause open_and_late(objective_in_check& o) {
    if (!o.is_in(verdict::inconclusive)) return {};
    cause why = late_client(o);
    if (why && o.as(timing_bound::optimistic) == verdict::pass) return why;
    o.by_client.reset();
    return {};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
