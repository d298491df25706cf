// the verdicts of a gate, and its calibration
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/metrics.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/client.hpp"
#include "core/judging/load.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/numbers.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/samples.hpp"
#include "core/judging/validity.hpp"
#include "core/judging/values.hpp"

#include <algorithm>  // any_of, count, count_if, find_if, max, min, none_of, sort
#include <cmath>  // exp, isfinite, log, sqrt
#include <optional>
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// How a prefix cache affects a pass, nothing where it is negligible.
inline cause part_of_cache(const measurements& e, const validity_checks& g, const slo& s) {
    if (!concerns(s.statistic, &metric_facts::is_of_prefill)) return {};
    const bool compares = s.factor > 0 && g.baseline_cache.prompt > 0, all = is_of_all(s.statistic);
    const double mine = (all ? g.cache : prefix_hits_of(e.candidate, s.statistic.which)).fraction();
    const double other =
        !compares
            ? 0
            : (all ? g.baseline_cache : prefix_hits_of(e.baseline, s.statistic.which)).fraction();
    if (std::max(mine, other) < 0.01) return {};
    return compares ? cause{because::cached_in_both, {mine, other}}
                    : cause{because::cached, {mine}};
}

inline bool states_error_rate(const vector<slo>& slos) {
    return std::any_of(slos.begin(), slos.end(), is_of_all_errors);
}
/// Returns the gate's own limit on errors, else the guard.
inline slo error_limit(const vector<slo>& slos) {
    const auto stated = std::find_if(slos.begin(), slos.end(), is_of_all_errors);
    return stated == slos.end() ? error_guard() : *stated;
}

/// The answers that were wrong: cut off, unreadable or never received.
inline cause wrong_answers(const measurements& e, const statistic_data& what, std::size_t repeats) {
    double wrong = 0, cut = 0, unreadable = 0, failed = 0;
    for (std::size_t i = 0; i < std::min(repeats, e.candidate.size()); ++i)
        for_each_counted(what, e.candidate[i], nullptr, [&](const record& r) {
            if (*r.right) return;
            ++wrong;
            if (r.status != request_status::ok) ++failed;
            else if (stream_event::is_at_length(r.finish_reason.c_str())) ++cut;
            else if (r.graded.empty()) ++unreadable;
        });
    return {because::wrong_answers, {wrong, cut, unreadable, failed}};
}

/// How many answers differ from the baseline's, where, and how often the server's own differ.
inline cause answers_differ(const measurements& e, const statistic_data& what,
                            std::size_t repeats) {
    double differ = 0, all = 0, failed = 0;
    answer_differences d;
    for (std::size_t i = 0; i < std::min(repeats, e.candidate.size()); ++i) {
        d.add(e.candidate[i].differences);
        for_each_counted(what, e.candidate[i], nullptr, [&](const record& r) {
            ++all;
            differ += !*r.same;
            failed += has_failed(r);
        });
    }
    std::sort(d.places.begin(), d.places.end());
    const double with_place = as_number(d.places.size());
    return {because::answers_differ,
            {differ, all, failed, own_agreement(e.candidate, repeats, what), with_place,
             d.places.empty() ? not_a_number : nearest_rank(d.places, 0.5),
             d.tokens > 0 ? 1000 * with_place / d.tokens : not_a_number,
             static_cast<double>(d.without_place)}};
}

/// Adds to a verdict that does not pass the server's state, or details of the answers.
inline decision with_reasons(decision v, const measurements& e, const vector<cause>& state) {
    if (v.objective.statistic.metric == metric_id::same_answers && v.repeats > 0)
        v.why.push_back(
            answers_differ(e, v.objective.statistic, static_cast<std::size_t>(v.repeats)));
    if (v.objective.statistic.metric == metric_id::accuracy && v.repeats > 0)
        v.why.push_back(
            wrong_answers(e, v.objective.statistic, static_cast<std::size_t>(v.repeats)));
    const bool is_open = v.outcome == verdict::fail || v.outcome == verdict::inconclusive;
    if (is_open && is_of_service(v.objective.statistic.metric) && v.repeats > 0)
        v.why.insert(v.why.end(), state.begin(), state.end());
    return v;
}
/// Adds to an open verdict the limit that would decide it, where that is near, or the number of
/// requests that would decide a fraction of them.
inline decision with_a_way_out(decision v, bool is_guard) {
    const slo& s = v.objective;
    const bool is_open = v.why.empty();
    if (is_open) v.why = {{because::too_close}};
    if (is_request_fraction(s.statistic.metric)) {
        if (!is_guard && !v.advice) v.advice = requests_that_decide(v);
        return v;
    }
    if (!is_open) return v;
    const double would_pass = s.at_most ? v.estimate.high : v.estimate.low;
    if (is_difference(s)) {  // on the side of the limit
        if (!v.advice && std::isfinite(would_pass) && would_pass * v.limit > 0)
            v.advice = {because::limit_that_passes, {would_pass}};
        return v;
    }
    const double off = would_pass / std::max(v.limit, v.estimate.value);
    const bool is_near = std::isfinite(would_pass) && off < 3 && off > 1.0 / 3;
    if (!is_guard && !v.advice && is_near && would_pass > 0)
        v.advice = {because::limit_that_passes, {would_pass * (s.at_most ? 1.02 : 0.98)}};
    return v;
}

/// Why an objective on a label is invalid, nothing where one request succeeded. A model that the
/// server lacks fails all of them without being slow.
inline cause fault_of_label(const measurements& e, const slo& s) {
    for (const statistic_data& part : s.statistic.parts) {
        slo own = s;
        own.statistic = part;
        if (cause why = fault_of_label(e, own)) return why;
    }
    if (s.statistic.which.label.empty()) return {};
    const selection own = label(s.statistic.which.label);
    for (const auto* variant : variants_of(e, s)) {
        std::size_t requests = 0, completed = 0;
        for (const repeat_data& d : *variant) {
            const selects selected(own, d);
            for (const record& r : d.records) {
                requests += selected(r);
                completed += selected.completed(r);
            }
        }
        if (requests > 0 && completed == 0)
            return of_server({because::label_failed, {as_number(requests)}, whose::nobody,
                              selection_text(own)},
                             variant == &e.baseline);
    }
    return {};
}

/// The number of repeats without a disturbance to recover from.
inline cause without_a_disturbance(const decision& v) {
    if (!is_of_recovery(v.objective.statistic.metric)) return {};
    const auto undisturbed = std::count(v.values.begin(), v.values.end(), 0.0);
    if (undisturbed == 0) return {};
    return {because::undisturbed,
            {static_cast<double>(undisturbed), as_number(v.values.size())}};
}

/// Whether a load that exceeds the server, or is too short to show whether it does, affects a
/// metric. What answers say and prompts share does not depend on the length of a load.
inline bool is_affected_by_load(metric_id m, const cause& over) {
    return over && is_of_service(m) &&
           !(over.what == because::probe_too_short && (is_of_answers(m) || is_of_prompts(m)));
}
/// Whether a longer load at the same rate can only make a value worse.
inline bool only_worsens(metric_id m) {
    const metric_facts& f = facts_of(m);
    return is_of_requests(m) || is_of_sessions(m) || m == metric_id::goodput ||
           (is_of_server(m) && f.side == bound_side::at_most && !f.needs_event_times);
}
/// A verdict under such a load: a miss stays unless a longer load could be better.
inline decision with_the_load(decision v, const measurements& e, const cause& over) {
    const bool is_short = over.what == because::probe_too_short;
    const bool stays = !is_short || (only_worsens(v.objective.statistic.metric) &&
                                     (v.objective.factor == 0 ||
                                      !over_saturation_of(e, {&e.baseline}, e.arrival_cv2)));
    const bool fails = v.outcome == verdict::fail && stays;
    v = decided(std::move(v), fails ? verdict::fail : verdict::invalid, over);
    if (is_short)
        v.advice = {because::longer_load, {over.numbers[2], over.numbers[3], over.numbers[4]}};
    return v;
}

/// The verdict on one SLO over all requests as reported.
inline decision with_validity_checks(const measurements& e, const judging_parameters& t,
                                     const validity_checks& g, const slo& s, bool is_guard) {
    if (e.candidate.empty() && !e.stopped.empty())
        return decided(undecided(s), verdict::inconclusive, with_text(because::stopped, e.stopped));
    const variant_checks& on = g.of(s);
    if (cause why = with_text(because::unsupported, unsupported_reason(e, s.statistic));
        !on.invalid && why)
        return decided(undecided(s), verdict::invalid, std::move(why));
    if (cause why = fault_of_label(e, s); !on.invalid && why)
        return decided(undecided(s), verdict::invalid, std::move(why));
    const objective_columns c = columns_of(e, s);
    decision v = estimated(decision_by_numbers(c, t, s, false, is_guard), c);
    if (on.invalid) return decided(std::move(v), verdict::invalid, on.invalid);
    if (cause why = fault_of_verdict(e, t, g, v))
        return decided(std::move(v), verdict::invalid, std::move(why));
    // A statistic without any value has its own reason.
    if (cause small = sample_fault(c, s); small && v.outcome != verdict::invalid)
        return decided(std::move(v), verdict::invalid, std::move(small));
    if (cause ends = window_fault(c, v))
        return decided(std::move(v), verdict::invalid, std::move(ends));
    if (is_affected_by_load(s.statistic.metric, on.saturated))
        return with_the_load(std::move(v), e, on.saturated);
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
    if (cause none = without_a_disturbance(v); none && v.outcome != verdict::fail) {
        v = decided(std::move(v), verdict::inconclusive, std::move(none));
        v.is_at_its_end = true;
        return v;
    }
    if (v.outcome == verdict::inconclusive) return with_a_way_out(std::move(v), is_guard);
    if (cause cached = part_of_cache(e, g, s); v.outcome == verdict::pass && cached)
        v.why.push_back(std::move(cached));
    return v;
}

/// Requests that were unfinished at the end of their run: of files, or of sessions when
/// limits.drain passed. They include steps that were not sent yet.
inline bool is_cut_off(const measurements& e, const repeat_facts& d, const record& r) {
    if (!is_measured(r)) return false;
    const bool is_of_session = d.plays_out && !d.interrupted;
    return (r.status == request_status::cancelled && (e.has_cut_off || is_of_session)) ||
           (r.status == request_status::unsent && is_of_session);
}
struct cut_off_requests {
    std::size_t of_sessions = 0;
    std::string why{};
};
inline cut_off_requests cut_off_sessions(const measurements& e) {
    cut_off_requests all;
    for (const repeat_data& d : repeats_of(e))
        for (const record& r : d.records)
            if (d.plays_out && is_cut_off(e, d, r) && all.of_sessions++ == 0)
                all.why = str(r.error);
    return all;
}
/// Returns the measurements without cut-off requests.
inline measurements without_cut_off(measurements e) {
    for (repeat_list* variant : {&e.candidate, &e.baseline})
        for (std::size_t i = 0; i < variant->size(); ++i)
            variant->change(i, [&](repeat_data& d) {
                for (record& r : d.records)
                    if (is_cut_off(e, d, r)) r.phase = run_phase::warmup;
            });
    e.has_cut_off = false;
    e.known.reset();
    return with_known_results(std::move(e));
}
/// These measurements and their validity checks, computed once for all objectives.
struct ended_measurements {
    measurements seen{};
    validity_checks on{};
    cut_off_requests left_out{};
};
using maybe_ended = std::optional<ended_measurements>;
/// Nothing where all requests had ended, or the gate is invalid.
inline maybe_ended ended_part_of(const measurements& e, const validity_checks& g) {
    cut_off_requests sessions = cut_off_sessions(e);
    if ((!e.has_cut_off && sessions.of_sessions == 0) || g.own.invalid) return {};
    measurements rest = without_cut_off(e);
    validity_checks on = validity_checks_of(rest);
    return ended_measurements{std::move(rest), std::move(on), std::move(sessions)};
}
/// The verdict on one SLO. The outcome of a request that was cut off is unknown, so a verdict that
/// depends on it is open. The guard covers only ended requests, and so does every limit on errors
/// if the client stopped sessions by its own limit.
inline decision with_cut_off(const measurements& e, const judging_parameters& t,
                             const validity_checks& g, const maybe_ended& ended, const slo& s,
                             bool is_guard = false) {
    const decision v = with_validity_checks(e, t, g, s, is_guard);
    if (!ended || g.of(s).invalid) return v;
    const decision other = with_validity_checks(ended->seen, t, ended->on, s, is_guard);
    const cut_off_requests& left = ended->left_out;
    if (is_guard || (left.of_sessions > 0 && s.statistic.metric == metric_id::error_rate))
        return other;
    if (v.outcome == other.outcome) return v;
    const double with = static_cast<double>(v.outcome);
    const double without = static_cast<double>(other.outcome);
    if (left.of_sessions == 0)
        return decided(v, verdict::invalid, {because::cut_off, {with, without}});
    return decided(v, verdict::invalid,
                   {because::sessions_cut_off, {as_number(left.of_sessions), with, without},
                    whose::client, left.why});
}

/// Judges the limit on errors, the gate's own or the guard, on all requests. If it does not fail on
/// those, it is judged on each label at the level divided by their number (Holm's first step);
/// later steps would only add a second label.
inline decision guard_decision(const measurements& e, const judging_parameters& t,
                               const validity_checks& g, const maybe_ended& ended) {
    const slo limit = error_limit(t.slos);
    decision of_all = with_cut_off(e, t, g, ended, limit, true);
    const bool has_labels = !e.candidate.empty() && !e.candidate.front().labels.empty();
    if (!has_labels || of_all.outcome == verdict::fail || of_all.outcome == verdict::invalid)
        return of_all;
    const vector<std::string>& labels = e.candidate.front().labels;
    // Computed late, since most labels are within the limit.
    std::optional<judging_parameters> each;
    for (const std::string& name : labels) {
        slo own = limit;
        own.statistic = of_some(own.statistic, label(name));
        const bool is_stated = std::any_of(t.slos.begin(), t.slos.end(), [&](const slo& s) {
            return s.statistic.name == own.statistic.name && !s.is_advisory;
        });
        fraction_counts seen;
        for (const repeat_data& d : e.candidate)
            seen.add(column_in(e, own.statistic, d, timing_bound::measured)->counts);
        if (is_stated || !(seen.misses > own.bound * seen.all)) continue;
        if (!each) {
            each = t;
            each->rule =
                t.rule.failing_at(t.rule.fail_level / static_cast<double>(labels.size()));
        }
        decision v = with_cut_off(e, *each, g, ended, own, true);
        if (v.outcome == verdict::fail || v.outcome == verdict::invalid) return v;
    }
    return of_all;
}

/// The decision on one SLO. `error`: receives the first client error that makes a counting one
/// invalid.
inline decision decision_on(const measurements& e, const judging_parameters& t,
                            const validity_checks& g, const maybe_ended& ended, const slo& s,
                            std::optional<client_error>* error = nullptr) {
    return with_reasons(with_client_error(e, t, with_cut_off(e, t, g, ended, s), error), e,
                        g.state);
}

/// The analysis of a gate, computed once. Reports only read it.
struct analysis {
    validity_checks on{};
    vector<decision> verdicts{};
    std::optional<client_error> by_client{};  // makes a counting verdict invalid
};
/// The parameters with the analyses that were made again after repeats had been set aside. Probes
/// that a search sets aside are in no analysis.
inline judging_parameters with_made_again(const measurements& e, judging_parameters t) {
    if (e.candidate.empty() || e.candidate.front().load != 0) return t;
    const auto again = std::count_if(
        e.set_aside.begin(), e.set_aside.end(),
        [](const set_aside_repeat& r) { return r.variant == run_variant::candidate; });
    t.rule = t.rule.with_made_again(static_cast<int>(again));
    return t;
}
/// One decision per SLO in order, then the guard on errors: of a label that fails, or of all
/// requests unless the gate has its own limit. By Holm (1979) the level is divided by the number of
/// SLOs not shown to be missed.
inline analysis analyse(const measurements& seen, const judging_parameters& asked) {
    const measurements e = with_known_results(seen);
    const judging_parameters t = with_made_again(e, asked);
    analysis f;
    f.on = validity_checks_of(e);
    const maybe_ended ended = ended_part_of(e, f.on);
    const auto blocking = std::count_if(t.slos.begin(), t.slos.end(),
                                        [](const slo& s) { return !s.is_advisory; });
    judging_parameters at_level = t;
    for (auto left = blocking;;) {
        if (t.rule.holm)
            at_level.rule = t.rule.failing_at(t.rule.fail_level /
                                              static_cast<double>(std::max(1l, left)));
        f.verdicts.clear();
        f.by_client.reset();
        for (const slo& s : t.slos)
            f.verdicts.push_back(decision_on(e, at_level, f.on, ended, s, &f.by_client));
        const auto failed =
            std::count_if(f.verdicts.begin(), f.verdicts.end(), [](const decision& d) {
                return !d.objective.is_advisory && d.outcome == verdict::fail;
            });
        if (!t.rule.holm || blocking - failed >= left) break;
        left = blocking - failed;
    }
    decision guard = guard_decision(e, at_level, f.on, ended);
    if (!states_error_rate(t.slos) || !is_of_all_errors(guard.objective))
        f.verdicts.push_back(std::move(guard));
    if (f.by_client && f.on.self_check.ok) {
        f.on.self_check.ok = false;
        f.on.self_check.why = f.by_client->why;
    }
    return f;
}
/// The decision on one more SLO, as if the gate had it, too.
inline decision decision_on_another(const measurements& e, judging_parameters t, const slo& s) {
    t.slos.push_back(s);
    const validity_checks g = validity_checks_of(e);
    return decision_on(e, with_made_again(e, std::move(t)), g, ended_part_of(e, g), s);
}

/// Whether a verdict needs more repeats. Advisory ones add none unless the gate asks for repeats.
inline bool is_waited_for(const verdict_numbers& v, bool repeats_are_asked) {
    return v.outcome == verdict::inconclusive && (!v.objective.is_advisory || repeats_are_asked);
}
/// Likewise, unless more repeats cannot change the decision.
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

/// The calibration of each objective without judging it. Fractions need none, and server metrics
/// may be zero.
inline vector<calibrated> calibration_of(const measurements& e, const judging_parameters& t) {
    vector<calibrated> rows;
    for (const slo& s : t.slos) {
        rows.emplace_back().objective = s;
        if (is_request_fraction(s.statistic.metric) || is_of_server(s.statistic.metric) ||
            is_drift(s.statistic.metric) || is_difference(s))
            continue;
        const objective_columns of = columns_of(e, s);
        const comparison c = comparison_of(of, t, s);
        if (c.is_missing) continue;
        const auto log_of = [&](double v) {
            return std::log(c.relative ? with_offset(s.statistic.metric, v) : v);
        };
        vector<double> logs;
        for (std::size_t i = 0; i < c.repeats(); ++i)
            logs.push_back(log_of(of.mine.each[i]->value) -
                           (c.paired ? log_of(of.other.each[i]->value) : c.base_log));
        if (logs.size() < 2 || !std::isfinite(mean_of(logs))) continue;
        calibrated& row = rows.back();
        const double sign = s.at_most ? 1 : -1, limit = c.relative ? s.factor : s.bound;
        row.estimate = std::exp(mean_of(logs));
        row.sd = std::sqrt(sample_variance(logs));
        row.headroom_sd = -sign * (mean_of(logs) - std::log(limit)) / row.sd;
        const double sd = std::max(row.sd, prior_sd_of(e, t, s)), most = t.rule.most;
        const double quantile = student_t_quantile(normal_cdf(t.rule.pass_z), prior_df + most - 1);
        const bool against_stored = c.relative && !c.paired;
        const double se =
            std::sqrt(sd * sd * (against_stored ? 2 : 1) / most +
                      (against_stored ? c.stored.day_sd * c.stored.day_sd : 0));
        double reach = (quantile + 1.645) * se;
        if (!against_stored && t.rule.most >= first_fail && (!c.paired || e.pairs_are_fresh))
            reach = std::min(reach, reach_of_quiet_repeats(row.sd, logs.size(), t.rule));
        row.to_write = row.estimate * std::exp(sign * reach);
    }
    return rows;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
