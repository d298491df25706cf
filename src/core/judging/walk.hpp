// the one walk over the repeats that decides
// A method takes repeats, and returns evidence of those so far. It knows no analysis, and the walk
// no method: what all verdicts are held to stands here.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/metric/table.hpp"
#include "core/measured/columns.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/comparison.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // min
#include <cmath>  // fabs
#include <cstddef>  // size_t
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// What becomes of a repeat: it counts, or not, or is a fault that makes all invalid.
struct taken_repeat {
    bool counts = true;
    cause fault{};
};
/// What the repeats so far show. Their numbers are in the decision.
struct evidence {
    verdict outcome = verdict::inconclusive;  // by the bounds alone
    double n = 0;                             // values, or trials
    fewest_repeats takes{};
    bool is_of_days = false;  // no further from a stored value than days may be
    bool passes_at_the_end = false;  // not before the last repeat
    bool is_final = false;  // more repeats cannot change it
    vector<cause> words{};
    cause fault{};
};

/// A way to decide an objective.
class method {
public:
    method(const objective_columns& of, const judging_parameters& by, const slo& what)
        : t(by), s(what), c(comparison_of(of, by, what)) {}
    virtual ~method() = default;
    method(const method&) = delete;
    method& operator=(const method&) = delete;

    virtual std::size_t repeats() const { return c.repeats(); }
    /// Why the repeats decide nothing, whatever they show. Then it sets the verdict.
    virtual cause lacking(decision& d) const {
        if (!c.is_missing) return {};
        d.outcome = verdict::invalid;
        return {because::stored_lacks};
    }
    virtual taken_repeat take(std::size_t i) = 0;
    /// Sets the numbers in `d`, also its repeats where not all of those so far count. `takes`: the
    /// usual repeats that a verdict takes.
    virtual evidence shown(decision& d, const fewest_repeats& takes) = 0;
    /// Why nothing is shown, where nothing counts.
    virtual cause nothing() const { return {because::nothing_measured}; }
    /// Sets what the last analysis leaves, and its words.
    virtual void end(decision& d, sought which) const = 0;

    const objective_columns& of() const { return *c.of_columns; }
    const judging_parameters& t;
    const slo& s;
    comparison c;
};

/// Why failures invalidate a percentile, of a variant or a part of a ratio.
inline cause failures_in_tail(const judging_parameters& t, const slo& s,
                              const variant_columns& variant, std::size_t repeats) {
    const statistic_data& what = s.statistic;
    if (what.kind != statistic_kind::percentile || pools_gaps(what.metric) ||
        is_of_server(what.metric) || is_drift(what.metric))
        return {};
    const miss_counts failed = counted_misses(variant, s, repeats, allowed_misses(s));
    const double upper = failed.upper(count_levels_of(s, t.rule).pass);
    if (failed.k == 0 || upper <= failed.allowed) return {};
    return cause_with<because::failed_in_tail>(
        {{"failed", failed.k}, {"of", failed.n}, {"most", upper}, {"allowed", failed.allowed}},
        whose::nobody, str(what.name));
}
/// Why failures are not shown to be fewer than the tail of a percentile, or of what it is compared
/// with.
inline cause failures_over_values(const slo& s, const objective_columns& of,
                                  const judging_parameters& t, std::size_t repeats) {
    if (cause why = failures_in_tail(t, s, of.mine, repeats)) return why;
    if (cause why = failures_in_tail(t, s, of.other, repeats)) {
        why.of = whose::baseline;
        return why;
    }
    for (std::size_t i = 0; i < s.statistic.parts.size(); ++i) {
        slo own = s;
        own.statistic = s.statistic.parts[i];
        if (cause why = failures_in_tail(t, own, i == 0 ? of.of : of.to, repeats)) return why;
    }
    return {};
}

/// The verdict on evidence: what it shows, unless it comes too early, or days or failures may be
/// all there is.
inline void decide(decision& d, evidence x, const objective_columns& of,
                   const judging_parameters& t) {
    d.outcome = x.outcome;
    d.why = std::move(x.words);
    d.is_at_its_end = x.is_final;
    const bool is_early_pass = x.outcome == verdict::pass && d.repeats < x.takes.pass;
    const bool is_early_fail = x.outcome == verdict::fail && d.repeats < x.takes.fail;
    if (is_early_fail && d.repeats >= x.takes.pass)
        d = decided(std::move(d), verdict::inconclusive, {because::too_few_to_fail});
    else if (is_early_pass || is_early_fail || (x.outcome == verdict::fail && x.is_of_days))
        d.outcome = verdict::inconclusive;
    if (d.outcome != verdict::pass) return;
    cause why = failures_over_values(d.objective, of, t, static_cast<std::size_t>(d.repeats));
    if (why) d = decided(std::move(d), verdict::inconclusive, std::move(why));
}
/// What an open verdict lacks: pairs that are fewer than a gate has by itself, or a client that can
/// tell such a difference.
inline decision explained(decision d, const objective_columns& of, const judging_rule& rule) {
    if (d.outcome == verdict::inconclusive && d.paired && of.how == repeats_are::in_turns &&
        rule.most < first_pair_analysis)
        d.why.insert(d.why.begin(),
                     cause_with<because::few_pairs>(
                         {{"pairs", d.repeats}, {"needed", first_pair_analysis}}));
    const bool is_below_client = is_difference(d.objective) && d.outcome != verdict::fail &&
                                 std::fabs(d.objective.offset) < of.client_error;
    if (!is_below_client) return d;
    return decided(std::move(d), verdict::inconclusive,
                   cause_with<because::below_client>({{"least", of.client_error}}));
}

/// Takes one repeat after another, and analyses those so far until one analysis decides. Only the
/// last one may be of fewer than a verdict takes.
inline decision walked(method&& by, sought which = sought::first) {
    const judging_rule& rule = by.t.rule;
    decision d = undecided(by.s);
    d.limit = limit_of(by.s);
    if (cause why = by.lacking(d)) {
        const verdict outcome = d.outcome;
        return decided(std::move(d), outcome, std::move(why));
    }
    set_measured(d, by.c);
    d.paired = by.c.is_paired();
    d.client_part = by.of().client_error;
    const fewest_repeats takes = fewest_repeats_of(by.s, by.of().how, rule.most);
    const std::size_t repeats = by.repeats();
    double n = 0;
    int analyses = 0, counted = 0;
    for (std::size_t i = 0; i < repeats; ++i) {
        taken_repeat one = by.take(i);
        counted += one.counts;
        d.repeats = counted;
        d.requests = measured_requests(by.of(), static_cast<std::size_t>(d.repeats),
                                       by.s.statistic.metric);
        if (one.fault) return decided(std::move(d), verdict::invalid, std::move(one.fault));
        const bool is_early = counted < takes.pass || !rule.has_analysis_after(analyses);
        if (!one.counts || (i + 1 < repeats && is_early)) continue;
        ++analyses;
        evidence x = by.shown(d, takes);
        if (x.fault) return decided(std::move(d), verdict::invalid, std::move(x.fault));
        n = x.n;
        const bool passes = !x.passes_at_the_end;
        decide(d, std::move(x), by.of(), by.t);
        const bool is_decided =
            d.outcome == verdict::fail || (d.outcome == verdict::pass && passes);
        if (is_decided && which != sought::last) break;
    }
    if (!(n > 0)) {
        d.repeats = 0;
        return decided(std::move(d), verdict::invalid, by.nothing());
    }
    by.end(d, which);
    return is_counted(d) ? d : explained(std::move(d), by.of(), rule);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
