// the capacity that probes show
// From the measurements alone, so that a stored search can be judged again.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/client.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/numbers.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/load.hpp"
#include "core/judging/checks.hpp"
#include "core/described/described.hpp"
#include "core/described/verdict_text.hpp"
#include "extensions/capacity/core/margins.hpp"
#include "extensions/capacity/core/search.hpp"

#include <algorithm>  // count_if, max
#include <cmath>  // expm1, fabs, isnan, sqrt
#include <cstddef>  // ptrdiff_t
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

// ---- one probe

inline bool is_all_failed(const repeat_data& d) {
    return !any_of(d.records, is_pooled);
}
/// Whether the load exceeded the server, or all requests failed.
inline bool is_over(const repeat_data& d, double arrival_cv2) {
    return is_all_failed(d) ||
           (!std::isnan(arrival_cv2) && over_saturated_repeat(d, arrival_cv2));
}

// ---- one load

/// The error levels of either end: 2.5 % for a load that misses and is shown to hold, and 2.5 % for
/// the reverse.
inline judging_options options_of_an_end() {
    judging_options o;
    o.false_pass = o.false_fail = fraction(0.025);
    return o;
}
/// The rule for a load. It holds if each objective holds, and misses if one misses, including the
/// guard on errors.
inline judging_rule rule_of_a_load(judging_options o, const vector<slo>& objectives_held,
                                   int most = last_analysis) {
    double blocking = 1;  // the guard
    for (const slo& s : objectives_held) blocking += !s.is_advisory;
    o.false_fail = fraction(o.false_fail.value / blocking);
    o.holm = false;
    judging_rule r = rule_of(o, first_analysis, std::max(most, last_analysis));
    r.trusts_prior = true;  // a search measures many loads at least twice
    return r;
}

/// At a load; the requests of a probe that would show more if it is open by luck alone.
struct load_result {
    carried is = carried::open;
    double requests = 0;
};
/// The result of all measurements at one load.
inline load_result result_at(const measurements& e, const judging_parameters& t,
                             int least = first_analysis) {
    if (e.candidate.size() < static_cast<std::size_t>(least)) return {};
    const analysis f = analyse(e, t);
    const bool all_failed = all_of(e.candidate, is_all_failed);
    if (all_failed || f.on.saturated) return {carried::misses};
    bool holds = true;
    double longer = 1;
    for (const decision& v : f.verdicts) {
        if (v.objective.is_advisory) continue;
        holds = holds && v.outcome == verdict::pass;
        if (v.outcome != verdict::pass && v.outcome != verdict::fail) continue;
        const bool fails = v.outcome == verdict::fail;
        // The ends that a search finds are of its trace.
        const double times = least >= least_of_an_end
                                 ? 1
                                 : times_as_long(v.objective, e.candidate, t.rule, fails);
        if (fails && times <= 1) return {carried::misses};
        longer = std::max(longer, times);
    }
    if (longer > 1) return {carried::open, longer * as_number(e.candidate[0].records.size())};
    return {holds ? carried::holds : carried::open};
}
inline carried carried_at(const measurements& e, const judging_parameters& t,
                          int least = first_analysis) {
    return result_at(e, t, least).is;
}

// ---- all probes

/// Whether the client may have misled a search at this probe. Whether its errors matter for the
/// result of a load is checked once that is shown.
inline bool is_misled(const judging_parameters& t, const repeat_data& d) {
    constexpr double another_load = 0.20;  // this fraction was sent late
    return d.part == probe_of::search &&
           (client_lost_much(d) || late_fraction_of(d, late_after_s(t)) > another_load);
}
/// The probe of a repeat, before it is judged.
inline probe probe_of_repeat(const measurements& e, const judging_parameters& t,
                             const repeat_data& d) {
    probe p;
    p.part = d.part;
    p.load = d.load;
    p.margin = worst_margin(t.objectives_held, d);
    p.over = is_over(d, e.arrival_cv2);
    p.invalid = !d.disturbed.empty() || !self_check_of(e, repeat_list::of(d)).ok || is_misled(t, d);
    return p;
}

/// The judging parameters at one load.
inline judging_parameters parameters_of_a_load(judging_parameters t) {
    t.slos = std::move(t.objectives_held);
    t.objectives_held.clear();
    t.day_sd = t.stored.day_sd;
    return t;
}
/// The same measurements with some of the candidate's repeats alone.
inline measurements with_repeats(const load_conditions& under, repeat_list candidate) {
    measurements some;
    static_cast<load_conditions&>(some) = under;
    some.candidate = std::move(candidate);
    return some;
}
/// The valid ones at one load.
inline measurements measurements_at(const measurements& e, const judging_parameters& t,
                                    double load) {
    return with_repeats(e, e.candidate.those([&](const repeat_data& d) {
        return d.load == load && !probe_of_repeat(e, t, d).invalid;
    }));
}

/// The result of all probes.
struct found_capacity {
    vector<probe> probes{};  // in order
    search_state state{};
    std::string limiting_objective{};  // "" if none
    std::optional<double> trend{};     // of margins, if the server changed
    double luck = 0;                   // of the trace of a search
    bool is_search() const { return !probes.empty() && probes[0].part == probe_of::search; }
};

inline vector<probe> probes_of(const measurements& e, const judging_parameters& t) {
    const judging_parameters judged_by = parameters_of_a_load(t);
    std::map<double, repeat_list> at;
    vector<probe> probes;
    for (std::size_t i = 0; i < e.candidate.size(); ++i) {
        probe p = probe_of_repeat(e, t, e.candidate[i]);
        if (!p.invalid) {
            at[p.load].push_back(e.candidate.shared(i));
            const int least = p.part == probe_of::search ? least_of_an_end : first_analysis;
            const load_result here = result_at(with_repeats(e, at[p.load]), judged_by, least);
            p.shown = here.is;
            p.too_short = here.requests > 0;
        }
        probes.push_back(p);
    }
    return probes;
}

/// The objective nearest to a miss at this load, or furthest beyond it.
inline std::string limiting_objective_at(const measurements& e, const judging_parameters& t,
                                         double load) {
    const repeat_list here =
        e.candidate.those([&](const repeat_data& d) { return d.load == load; });
    const auto sum_of = [&](const auto& value) {
        double sum = 0;
        for (const repeat_data& d : here) sum += value(d);
        return sum;
    };
    const auto n = static_cast<double>(here.size());
    if (2 * sum_of([&](const repeat_data& d) { return is_over(d, e.arrival_cv2) ? 1 : 0; }) > n)
        return "the server's throughput";
    std::string name;
    double worst = -infinity;
    for (const slo& s : t.objectives_held) {
        if (s.is_advisory) continue;
        const double margins = sum_of([&](const repeat_data& d) { return margin_of(s, d); });
        if (margins <= worst) continue;
        worst = margins;
        name = str(s.statistic.name);
    }
    const slo errors = error_limit(t.objectives_held);
    const double failed =
        sum_of([&](const repeat_data& d) { return evaluate(errors.statistic, d); });
    return worst <= 0 && n > 0 && failed / n > errors.bound ? str(errors.statistic.name) : name;
}

inline found_capacity capacity_of(const measurements& e, const judging_parameters& t) {
    found_capacity f;
    f.probes = probes_of(e, t);
    f.state = state_of(f.probes);
    if (f.is_search()) f.trend = trend_of(f.probes, f.state);
    if (f.trend) {  // an end that was shown once no longer counts
        f.state.low = 0;
        f.state.high = infinity;
    }
    if (f.state.high < infinity) f.limiting_objective = limiting_objective_at(e, t, f.state.high);
    else if (f.state.low > 0) f.limiting_objective = limiting_objective_at(e, t, f.state.low);
    if (f.is_search()) f.luck = luck_of_trace(e.candidate.back(), e.arrival_cv2);
    return f;
}

/// Whether the numbers at a load decide.
inline bool is_decided(const measurements& e, const judging_parameters& t) {
    bool open = false;
    for (const slo& s : t.slos) {
        if (s.is_advisory) continue;
        const verdict v = decision_by_numbers(columns_of(e, s), t, s).outcome;
        if (v == verdict::fail) return true;
        open = open || v == verdict::inconclusive;
    }
    return !open;
}
/// Why the client affects the result of a load, and the index of the repeat. An open load has more
/// probes anyway.
inline std::optional<client_error> client_error_at(const measurements& e,
                                                   const judging_parameters& t, double load) {
    const measurements at = measurements_at(e, t, load);
    if (at.candidate.size() < static_cast<std::size_t>(first_analysis)) return {};
    const judging_parameters judged_by = parameters_of_a_load(t);
    if (!is_decided(at, judged_by)) return {};
    std::optional<client_error> error = analyse(at, judged_by).by_client;
    if (!error) return {};
    const repeat_data* const affected = &at.candidate[error->repeat];
    while (&e.candidate[error->repeat] != affected) ++error->repeat;
    return error;
}

/// The measurements of tables and pooled numbers: those at the highest load shown to be carried, or
/// else at the first measured one.
inline measurements measurements_of_tables(const measurements& e, const judging_parameters& t) {
    if (e.candidate.empty()) return e;
    const double low = state_of(probes_of(e, t)).low;
    const double load = low > 0 ? low : e.candidate.front().load;
    return with_repeats(e, e.candidate.those([&](const repeat_data& d) { return d.load == load; }));
}

// ---- verdicts

/// Why a load is decided or open.
inline std::string text_at(const measurements& seen, const judging_parameters& t) {
    const analysis f = analyse(seen, parameters_of_a_load(t));
    if (f.on.saturated) return described(f.on.saturated);
    const decision* nearest = nullptr;
    for (const verdict v : {verdict::fail, verdict::invalid, verdict::inconclusive, verdict::pass})
        for (const decision& x : f.verdicts) {
            if (x.objective.is_advisory || x.outcome != v || (nearest && nearest->outcome != v))
                continue;
            const bool nearer = nearest && !(headroom(x) >= headroom(*nearest));
            if (!nearest || nearer) nearest = &x;
        }
    if (!nearest) return {};
    const std::string room = room_text(*nearest), why = described(nearest->why, *nearest);
    return str(nearest->objective.text()) + " " + to_string(nearest->outcome) + ": " +
           measured_text(*nearest) +
           (room.empty() ? "" : ", " + room) + (why.empty() ? "" : "; " + why);
}

/// "capacity in [11.4, 12.6] req/s, limited by p90(ttft), 13 probes".
inline std::string capacity_line(metric_id unit, const found_capacity& f) {
    return capacity_text(unit, f.state, f.limiting_objective) +
           printed(", %zu probes", f.probes.size());
}
/// "12 req/s (bracket): -8.1 % of the limit, shown to be carried".
inline std::string probe_text(metric_id unit, const probe& p) {
    const std::string shows = p.shown == carried::holds    ? ", shown to be carried"
                              : p.shown == carried::misses ? ", shown to be too much"
                                                           : "";
    const std::string margin =
        p.over ? "it outgrew the server"
               : printed("%+.1f %% of the limit", 100 * std::expm1(p.margin));
    return value_text(unit, p.load) + ": " + (p.invalid ? "the client could not keep up" : margin) +
           shows;
}
/// How well objectives that hardly depend on the load can locate the capacity, "" if they depend on
/// it enough.
inline std::string flatness_text(const found_capacity& f) {
    if (!(f.state.elasticity < 1)) return {};
    const double sd = prior_sd / std::max(f.state.elasticity, 0.01);
    return printed("1 %% more load moves %s by %.2g %%: it hardly depends on the load, and cannot "
                   "locate a capacity better than to +-%.0f %%",
                   f.limiting_objective.empty() ? "the objectives" : f.limiting_objective.c_str(),
                   f.state.elasticity, 100 * 2 * sd / std::sqrt(3.0));
}
inline std::string capacity_explained(metric_id unit, const found_capacity& f) {
    std::string t = capacity_line(unit, f);
    for (std::size_t i = 0; i < f.probes.size(); ++i)
        t += printed("\n  %zu. ", i + 1) + probe_text(unit, f.probes[i]);
    if (f.luck > 0)
        t += printed("\n  of this trace: another one of its length may carry %.2g %% more or less, "
                     "for more .requests less", 100 * f.luck);
    const std::string flat = flatness_text(f);
    return t + (flat.empty() ? "" : "\n  " + flat);
}
/// Why measurements at a load are invalid, "" if valid: unusable answers or a buffered stream.
/// Overload is not one of these.
inline std::string invalid_at_a_load(const measurements& e, const judging_parameters& t) {
    const judging_parameters judged_by = parameters_of_a_load(t);
    std::set<double> seen;
    for (const repeat_data& d : e.candidate) {
        if (!seen.insert(d.load).second) continue;
        const measurements at = measurements_at(e, t, d.load);
        if (at.candidate.size() < static_cast<std::size_t>(first_analysis)) continue;
        const analysis f = analyse(at, judged_by);
        if (f.on.saturated || f.on.invalid || f.by_client) continue;
        for (const decision& v : f.verdicts)
            if (v.outcome == verdict::invalid && !v.objective.is_advisory)
                return str(v.objective.text()) + ": " + described(v.why, v);
    }
    return {};
}
/// "the server became slower while it was searched: ...", "" if it did not change.
inline std::string trend_text(const found_capacity& f) {
    if (!f.trend) return {};
    const bool slower = *f.trend > 0;
    return printed("the server became %s while it was searched: at equal loads what its "
                   "objectives limit %s by %.0f %% from the first probe to the last, so it has no "
                   "one capacity",
                   slower ? "slower" : "faster", slower ? "worsened" : "improved",
                   100 * std::fabs(std::expm1(*f.trend)));
}
/// Why a search is invalid, "" if valid.
inline std::string fault_of_search(const measurements& e, const judging_parameters& t,
                                   const found_capacity& f) {
    for (const std::string& why : {described(fault_of_gate(e)), invalid_at_a_load(e, t)})
        if (!why.empty()) return why;
    if (f.trend) return trend_text(f);
    if (!f.state.monotone()) return "not monotone: a load is shown to be carried above one that is "
                                    "shown to be too much";
    return client_gave_up(f.probes) ? client_gave_up_text : "";
}

inline std::string too_short_text(const measurements& at, double requests) {
    return printed("not shown: the work varies, and %zu requests may be a light or a heavy draw of "
                   "it; probes of about %.0f requests would show it",
                   at.candidate[0].records.size(), rounded_to_two_digits(requests));
}
inline decision capacity_verdict(const measurements& e, const judging_parameters& t,
                                 const validity_checks& g, const found_capacity& f, const slo& s) {
    decision v = undecided(s);
    v.limit = s.bound;
    const double asked = s.bound;
    v.estimate = {f.is_search() ? f.state.estimate : not_a_number, f.state.low, f.state.high};
    v.counted_in = verdict_unit::probe;
    v.decided_by = verdict_method::loads;
    for (const probe& p : f.probes) {
        v.margins.push_back({p.load, p.margin});
        v.repeats += p.load == asked && !p.invalid;
    }
    const measurements at = measurements_at(e, t, asked);
    for (const repeat_data& d : at.candidate)
        v.requests += std::count_if(d.records.begin(), d.records.end(), selects(selection{}, d));
    const cause stopped = with_text(because::stopped, e.stopped);
    if (f.probes.empty() && stopped) return decided(v, verdict::inconclusive, stopped);
    if (g.invalid) return decided(v, verdict::invalid, g.invalid);
    if (!f.state.monotone())
        return decided(v, verdict::invalid,
                       cause_with<because::not_monotone>({{"low", f.state.low},
                                                          {"high", f.state.high}}));
    if (f.state.low >= asked) v.outcome = verdict::pass;
    else if (f.state.high <= asked) v.outcome = verdict::fail;
    else if (cause why = with_text(because::reported, fault_of_search(e, t, f)))
        return decided(v, verdict::invalid, std::move(why));
    v.why = {cause_with<because::carries>({{"low", f.state.low}, {"high", f.state.high}})};
    v.at_the_load = at.candidate.empty() ? "" : text_at(at, t);
    if (v.outcome == verdict::inconclusive && !at.candidate.empty())
        if (const double more = result_at(at, parameters_of_a_load(t)).requests; more > 0)
            v.why.push_back(with_text(because::reported, too_short_text(at, more)));
    if (v.outcome == verdict::inconclusive && stopped) v.why.push_back(stopped);
    if (cause here = with_text(because::reported, v.at_the_load)) v.why.push_back(std::move(here));
    return v;
}

// ---- the whole search

/// The client's conduct over all probes. A probe that overloaded the client shows nothing, and
/// matters only if no other probe shows anything.
inline own_check check_of_search(const measurements& e, const judging_parameters& t, own_check c) {
    c.asked_rate = c.achieved_rate = 0;  // differs by load
    bool any = false;
    cause last;
    for (const repeat_data& d : repeats_of(e)) {
        any = any || !probe_of_repeat(e, t, d).invalid;
        if (cause why = self_check_of(e, repeat_list::of(d)).why) last = std::move(why);
    }
    c.why = any ? cause{} : std::move(last);
    c.ok = !c.why;
    return c;
}

/// A search judges only capacities, unless all of it was at one load.
inline decision verdict_at_one_load(const measurements& e, const judging_parameters& t,
                                    const slo& s) {
    for (const repeat_data& d : e.candidate)
        if (d.load != e.candidate.front().load)
            return decided(undecided(s), verdict::invalid, {because::several_loads});
    return decision_on_another(e, parameters_of_a_load(t), s);
}
inline analysis analysis_of_search(const measurements& e, const judging_parameters& t) {
    analysis f;
    f.on = validity_checks_of(e);
    f.on.saturated = {};  // part of the search
    f.on.self_check = check_of_search(e, t, f.on.self_check);
    const found_capacity found = capacity_of(e, t);
    for (const slo& s : t.slos)
        f.verdicts.push_back(is_of_capacity(s) ? capacity_verdict(e, t, f.on, found, s)
                                               : verdict_at_one_load(e, t, s));
    return f;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
