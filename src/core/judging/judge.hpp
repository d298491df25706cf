// the verdicts of a gate
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/metrics.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/checks.hpp"

#include <algorithm>  // count_if, max
#include <optional>
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The verdict on one SLO without the checks of the client.
inline decision decision_without_client(const measurements& e, const judging_parameters& t,
                                        const validity_checks& g, const slo& s,
                                        sought which = sought::first) {
    return verdict_before(first_of_every_verdict + 1, {e, t, g, s, which});
}
/// Judges the limit on errors, the gate's own or the guard, on all requests. If it does not fail on
/// those, it is judged on each label at the level divided by their number (Holm's first step);
/// later steps would only add a second label.
inline decision guard_decision(const measurements& e, const judging_parameters& t,
                               const validity_checks& g) {
    constexpr auto guards = sought::guards_first;
    const slo limit = error_limit(t.slos);
    decision of_all = decision_without_client(e, t, g, limit, guards);
    const bool has_labels = !e.candidate.empty() && !e.candidate.front().labels.empty();
    if (!has_labels || of_all.outcome == verdict::fail || of_all.outcome == verdict::invalid)
        return of_all;
    const vector<std::string>& labels = e.candidate.front().labels;
    // Computed late, since most labels are within the limit.
    std::optional<judging_parameters> each;
    for (const std::string& name : labels) {
        slo own = limit;
        own.statistic = of_some(own.statistic, label(name));
        const bool is_stated = any_of(t.slos, [&](const slo& s) {
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
        decision v = decision_without_client(e, *each, g, own, guards);
        if (v.outcome == verdict::fail || v.outcome == verdict::invalid) return v;
    }
    return of_all;
}

/// The decision on one SLO. `error`: receives the first client error that makes a counting one
/// invalid, or leaves it open.
inline decision decision_on(const measurements& e, const judging_parameters& t,
                            const validity_checks& g, const slo& s,
                            std::optional<client_error>* error = nullptr) {
    objective_in_check o{e, t, g, s};
    make_checks(0, end_of_checks(s), o);
    if (error && !*error && !s.is_advisory) *error = std::move(o.by_client);
    return std::move(o.v);
}

/// The analysis of a gate, computed once. Reports only read it.
struct analysis {
    validity_checks on{};
    vector<decision> verdicts{};
    std::optional<client_error> by_client{};  // makes a counting verdict invalid or open
};
/// The parameters of the look that decided, with the analyses that were made again after repeats
/// had been set aside. Probes that a search sets aside are in no analysis.
inline judging_parameters with_made_again(const measurements& e, judging_parameters t) {
    t.rule = t.rule.at_part(e.decided_after);
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
            f.verdicts.push_back(decision_on(e, at_level, f.on, s, &f.by_client));
        const auto failed =
            std::count_if(f.verdicts.begin(), f.verdicts.end(), [](const decision& d) {
                return !d.objective.is_advisory && d.outcome == verdict::fail;
            });
        if (!t.rule.holm || blocking - failed >= left) break;
        left = blocking - failed;
    }
    decision guard = guard_decision(e, at_level, f.on);
    if (!any_of(t.slos, is_of_all_errors) || !is_of_all_errors(guard.objective))
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
    return decision_on(e, with_made_again(e, std::move(t)), validity_checks_of(e), s);
}

/// Which verdicts a gate waits for, beside the inconclusive ones of what blocks.
struct awaited {
    bool advisory = false;  // those of advisory objectives
    bool invalid = false;  // invalid ones: the rest of a load may bring what they lack
};
/// Unless more repeats cannot change the decision.
inline bool is_waited_for(const decision& d, awaited which) {
    const bool is_shown = d.outcome == verdict::pass || d.outcome == verdict::fail;
    const bool is_open = d.outcome == verdict::inconclusive && !d.is_at_its_end;
    return (which.invalid ? !is_shown : is_open) && (which.advisory || !d.objective.is_advisory);
}
inline bool all_decided(const vector<decision>& verdicts, awaited which) {
    return !any_of(verdicts, [&](const decision& d) { return is_waited_for(d, which); });
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
