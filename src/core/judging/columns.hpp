// the columns of an objective
// A verdict is on columns alone: the same decision on the columns of another reading says whether
// the client or a proxy may be its cause.
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/metric/table.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/drift.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/slices.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <memory>  // shared_ptr

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A column, computed once while the measurements are analysed.
inline shared_column column_in(const load_conditions& under, const statistic_data& what,
                               const repeat_data& d, timing_bound how) {
    if (!under.known) return new_shared<const column>(column_of(what, d, how));
    return under.known->get(d, "column" + key_of(what, how), [&] {
        std::shared_ptr<const request_values> values;
        // Percentiles and extremes of a metric share its values.
        statistic_data all = what;
        all.q = 0;
        if (all.kind != statistic_kind::mean) all.kind = statistic_kind::value;
        if (is_of_requests(what.metric) || is_of_sessions(what.metric))
            values = under.known->get(d, "values" + key_of(all, how),
                                      [&] { return request_values_of(what, d, how); });
        return column_of(what, d, how, nullptr, std::move(values));
    });
}
inline variant_columns columns_in(const load_conditions& under, const statistic_data& what,
                                  const repeat_list& variant,
                                  timing_bound how = timing_bound::measured) {
    return columns_of(what, variant, how, [&](const statistic_data& of, const repeat_data& d,
                                              timing_bound as) {
        return column_in(under, of, d, as);
    });
}

/// What all repeats show of one objective, read in one way.
struct objective_columns {
    variant_columns mine{};   // of the candidate
    variant_columns other{};  // of a live baseline that it is compared with, read the opposite way
    variant_columns of{}, to{};       // the parts of a ratio
    vector<vector<double>> slices{};  // of a drift, in each repeat
    vector<values_at_once> at_once{};  // of a comparison by slices, in each repeat
    repeats_are how = repeats_are::alone;
    bool pairs_are_fresh = false;
    double client_error = 0;          // of a difference, in its unit
    std::size_t repeats() const { return mine.each.size(); }
    bool are_pairs() const { return how != repeats_are::alone; }  // with a live baseline
};
inline vector<values_at_once> loads_at_once(const measurements& e, const slo& s,
                                            timing_bound how) {
    vector<values_at_once> all;
    for (std::size_t i = 0; i < std::min(e.candidate.size(), e.baseline.size()); ++i)
        all.push_back(slices_at_once_of(s.statistic, e.candidate[i], e.baseline[i], how));
    return all;
}
/// The slices of a drift, as many in each repeat.
inline vector<vector<double>> slices_of_repeats(const measurements& e, const statistic_data& what,
                                                std::size_t requests, timing_bound how) {
    const std::size_t k = 3 * slices_of_third(what, as_number(requests));
    vector<vector<double>> all;
    for (const repeat_data& d : e.candidate) {
        vector<double>& values = all.emplace_back();
        for (std::size_t i = 0; i < k; ++i) values.push_back(value_of_part(what, d, i, k, how));
    }
    return all;
}
/// `how`: of the candidate.
inline objective_columns columns_of(const measurements& e, const slo& s,
                                    timing_bound how = timing_bound::measured) {
    const statistic_data& what = s.statistic;
    objective_columns c;
    if (e.has_live_baseline())
        c.how = e.by_slices ? repeats_are::at_once : repeats_are::in_turns;
    c.pairs_are_fresh = e.pairs_are_fresh;
    // A delay counts once: in the interval, or in the times of the requests.
    const bool has_delays = how == timing_bound::pessimistic || how == timing_bound::optimistic;
    if (is_difference(s) && !has_delays) c.client_error = client_error_in(e, what);
    c.mine = columns_in(e, what, e.candidate, how);
    if (!is_absolute(s)) c.other = columns_in(e, what, e.baseline, opposite(how));
    if (is_ratio(what.metric)) {
        c.of = columns_in(e, what.parts[0], e.candidate, how);
        c.to = columns_in(e, what.parts[1], e.candidate, opposite(how));
    }
    if (e.by_slices && !is_absolute(s)) c.at_once = loads_at_once(e, s, how);
    if (is_drift(what.metric) && !e.candidate.empty())
        c.slices = slices_of_repeats(e, what, c.mine.each[0]->requests, how);
    return c;
}

/// The measured requests, or sessions, of the first repeats.
inline long long measured_requests(const objective_columns& c, std::size_t repeats, metric_id m) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < std::min(repeats, c.repeats()); ++i)
        n += c.mine.each[i]->trials(m);
    return static_cast<long long>(n);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
