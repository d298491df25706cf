// fractions of requests, by their misses
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/walk.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The failed requests of the repeat with the most, if it alone shows more than the limit allows: a
/// burst, or a server that fails intermittently.
struct worst_repeat {
    std::size_t number = 0;  // from 1; 0: none
    double k = 0, n = 0;
};
inline worst_repeat repeat_over_limit(const vector<vector<bool>>& misses, double allowed,
                                      double alpha) {
    worst_repeat worst;
    for (std::size_t i = 0; i < misses.size(); ++i) {
        fraction_counts one;
        one.add(misses[i]);
        const auto [k, n] = one;
        const bool over = n > 0 && clopper_pearson_lower(k, n, alpha) > allowed;
        if (over && k * worst.n >= worst.k * n) worst = {i + 1, k, n};
    }
    return worst;
}

/// Adds the reasons of an error rate. The implicit guard passes unproven if the observed rate is at
/// or under its limit, and no repeat has a burst. A gate that writes this limit, or a looser one,
/// is held to no more from the second repeat on, at once from the first load on.
inline void judge_errors(decision& d, sought which, const vector<vector<bool>>& misses,
                         const judging_rule& rule, int fewest) {
    if (d.outcome == verdict::pass) return;
    const miss_counts& c = d.counted->seen;
    const bool may_be_observed =
        which == sought::guards_first ||
        (is_as_loose_as_guard(d.objective) && d.repeats >= std::min(first_analysis, fewest) &&
         c.k <= error_guard().bound * c.n);
    if (d.outcome == verdict::fail) {
        d.why = {cause_with<because::failed>(
            {{"failed", c.k}, {"of", c.n}, {"is_open", false}})};
    } else if (c.k > c.allowed * c.n * (1 + 1e-12)) {
        d.why = {cause_with<because::failed_over>(
            {{"failed", c.k}, {"of", c.n}, {"is_one_burst", c.k / c.effect < 1.5}})};
    } else if (may_be_observed) {
        const worst_repeat worst = repeat_over_limit(misses, error_guard().bound, rule.pass_level);
        if (worst.number > 0) {
            d.why = {cause_with<because::failed_in_burst>({{"failed", c.k},
                                                           {"of", c.n},
                                                           {"burst", worst.k},
                                                           {"burst_of", worst.n},
                                                           {"repeat", worst.number}})};
            return;
        }
        d.outcome = verdict::pass;
        if (c.upper(d.counted->at.pass) > c.allowed)
            d.why = {cause_with<because::failed>(
                {{"failed", c.k}, {"of", c.n}, {"is_open", true}})};
    }
}

/// Fractions by one-sided Clopper-Pearson bounds of pooled misses, and by repeats. Errors need all
/// repeats: a pass of the first ones says nothing of failures in later ones.
class by_counts final : public method {
public:
    using method::method;
    taken_repeat take(std::size_t) override { return {}; }
    evidence shown(decision& d, const fewest_repeats& takes) override {
        const auto repeats = static_cast<std::size_t>(d.repeats);
        const miss_counts seen = counted_misses(of().mine, s, repeats, allowed_misses(s));
        if (seen.n == 0) return {};
        d.counted = analysis_of_misses{seen, count_levels_of(s, t.rule)};
        return {.outcome = d.counted->outcome(), .n = seen.n, .takes = takes,
                .passes_at_the_end = is_of_errors()};
    }
    cause nothing() const override { return {because::no_value}; }
    void end(decision& d, sought which) const override {
        d.decided_by = verdict_method::counts;
        if (!is_of_errors()) return;
        judge_errors(d, which, misses_in(of().mine, static_cast<std::size_t>(d.repeats)), t.rule,
                     fewest_repeats_of(s, of().how, t.rule.most).pass);
    }

private:
    bool is_of_errors() const { return s.statistic.metric == metric_id::error_rate; }
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
