// objectives that a repeat can no longer meet
// A gate that ends at its first miss need not send the rest of a repeat that misses by far: two
// repeats at twice a limit show the miss (curtailed sampling, as in acceptance tests of lots). A
// repeat that ends early counts as if all else that it planned were good, so it is never worse than
// a whole one.
#pragma once

#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/table.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/columns.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/samples.hpp"

#include <algorithm>  // count_if
#include <cmath>  // ceil, log, sqrt
#include <cstddef>  // size_t

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Whether a value is at twice the limit or beyond.
inline bool is_blatant(const slo& s, double value) {
    return is_blatant_distance(s, distance_of(s, value, limit_of(s)));
}
/// The fraction of misses with which two repeats fail, whatever happens within a repeat.
inline double share_that_ends(const slo& s, const judging_rule& rule) {
    return std::sqrt(count_levels_of(s, rule).product) * allowed_misses(s);
}
/// Whether an objective may end a repeat: a percentile of a time or speed that a request has alone,
/// or a fraction of them, over all requests.
inline bool may_end(const slo& s) {
    const statistic_data& what = s.statistic;
    const auto is_alone = [](metric_id m) {
        return is_own(m) || pools_gaps(m) || is_of_turns(m) || is_of_answers(m);
    };
    const bool is_kind = what.kind == statistic_kind::percentile
                             ? is_of_requests(what.metric)
                             : is_request_fraction(what.metric) && allowed_misses(s) > 0;
    return is_kind && !s.is_advisory && s.factor <= 0 && !is_difference(s) &&
           is_all(what.which) && !concerns_a_metric(what, is_alone);
}
/// The objectives that may end the next repeat of a gate: the first one, or a second one if the
/// first is as bad. Later repeats are whole, and decide by their spread.
inline vector<slo> slos_that_may_end(const measurements& e, const judging_parameters& t) {
    vector<slo> all;
    if (e.has_live_baseline() || t.rule.revision < 2 || e.candidate.size() >= first_analysis)
        return all;
    const auto add = [&](const slo& s) {
        if (!may_end(s)) return;
        const objective_columns before = columns_of(e, s);
        if (before.repeats() < e.candidate.size()) return;
        for (const shared_column& c : before.mine.each)
            if (is_request_fraction(s.statistic.metric)
                    ? c->counts.misses < share_that_ends(s, t.rule) * c->counts.all
                    : !is_blatant(s, c->value))
                return;
        all.push_back(s);
    };
    for (const slo& s : t.slos) add(s);
    if (!any_of(t.slos, is_of_all_errors)) add(error_guard());
    return all;
}

/// Counts the requests of a repeat that miss such objectives.
class misses_so_far {
public:
    misses_so_far() = default;
    misses_so_far(const vector<slo>& may_end, const judging_rule& rule) {
        for (const slo& s : may_end) all_.push_back({s, share_that_ends(s, rule)});
        one_.records.resize(1);
    }
    bool is_on() const { return !all_.empty() && planned_ > 0; }
    /// `requests`: that are to be measured; 0: not known.
    void begin(std::size_t requests) { planned_ = requests; }
    /// A measured request has ended. Returns the end of its repeat once the first objective cannot
    /// be met any more; one without a name: it goes on.
    early_end add(const record& r) {
        one_.records[0] = r;
        for (counted& c : all_) {
            c.failed += has_failed(r);
            c.missed += is_missed(c.objective);
            const std::size_t needed = needed_for(c);
            const bool is_fraction = is_request_fraction(c.objective.statistic.metric);
            // More failures leave a percentile without a size.
            if (needed == 0 || c.missed < needed || (!is_fraction && c.failed >= needed)) continue;
            const slo& s = c.objective;
            const double part = c.share_that_ends;
            const double least = !is_fraction ? at_distance(s, std::log(2), limit_of(s))
                                 : s.at_most  ? part
                                              : 1 - part;
            return {str(s.statistic.name), planned_, least};
        }
        return {};
    }

private:
    struct counted {
        slo objective{};
        double share_that_ends = 0;  // of a fraction
        std::size_t missed = 0, failed = 0;
    };
    /// 0: as many as are planned do not suffice, or too few are planned.
    std::size_t needed_for(const counted& c) const {
        const statistic_data& what = c.objective.statistic;
        if (planned_ < static_cast<std::size_t>(least_values_of(what))) return 0;
        const auto n = static_cast<double>(planned_);
        if (is_request_fraction(what.metric))
            return c.share_that_ends > 1
                       ? 0
                       : static_cast<std::size_t>(std::ceil(c.share_that_ends * n));
        const std::size_t rank = nearest_rank_of(planned_, what.q);
        return c.objective.at_most ? planned_ - rank : rank + 1;
    }
    bool is_missed(const slo& s) const {
        const record& r = one_.records[0];
        const metric_id m = s.statistic.metric;
        if (has_left(r)) return false;
        if (is_request_fraction(m)) return is_miss(s.statistic, one_, 0);
        if (has_failed(r)) return true;
        const double value = request_value(m, one_, 0);
        return value >= 0 && is_blatant(s, value);
    }

    vector<counted> all_{};
    std::size_t planned_ = 0;
    repeat_data one_{};
};

/// How repeats ended early by the objective of a verdict.
inline cause ended_early(const measurements& e, const verdict_numbers& v) {
    const slo& s = v.objective;
    double repeats = 0;
    const repeat_data* last = nullptr;
    for (const repeat_data& d : e.candidate)
        if (d.ended_early.by == str(s.statistic.name)) {
            ++repeats;
            last = &d;
        }
    if (!last) return {};
    const early_end& end = last->ended_early;
    const auto sent = std::count_if(last->records.begin(), last->records.end(), is_measured);
    return cause_with<because::ended_early>({{"repeats", repeats},
                                             {"sent", sent},
                                             {"planned", end.planned},
                                             {"least", end.least},
                                             {"at_most", s.at_most},
                                             {"is_open", v.outcome == verdict::inconclusive}});
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
