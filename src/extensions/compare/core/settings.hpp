// several settings: comparison of their measurements
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/pooled.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/judging/baseline_errors.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/samples.hpp"
#include "core/judging/scale.hpp"
#include "core/judging/judging_parameters.hpp"
#include "core/judging/validity.hpp"
#include "core/described/sentences.hpp"
#include "extensions/compare/core/setting_ratios.hpp"

#include <algorithm>  // any_of, count_if, max
#include <cmath>  // exp, isfinite, isnan
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One setting of a comparison. It does not own the measurements and judging parameters.
struct measured_setting {
    std::string name{};
    const measurements& seen;
    const judging_parameters& judged_by;
    const analysis& found;
    std::string lost{};  // why its server could not be measured
};

/// A setting in the report of a comparison.
struct reported_setting {
    std::string name{};
    std::string excluded{};            // why it is not compared
    std::vector<verdict> verdicts{};   // of the objectives
};

/// Several settings of a server on one trace.
struct settings_comparison {
    std::vector<reported_setting> settings{};
    std::vector<slo> objectives{};
    std::size_t rounds = 0, planned_rounds = 0;
    std::string stopped{};  // why there are fewer rounds than planned
    std::vector<compared_statistic> statistics{};
    std::size_t asked = 0;  // number of statistics of objectives, which are first
};

/// The statistics compared: those of objectives, then the usual ones.
inline std::vector<statistic_data> compared_statistics(const std::vector<slo>& slos, bool streams,
                                                       std::size_t& asked) {
    std::vector<statistic_data> all;
    const auto add = [&](const statistic_data& s) {
        for (const statistic_data& known : all)
            if (str(known.name) == str(s.name)) return;
        all.push_back(s);
    };
    for (const slo& s : slos) add(s.what);
    asked = all.size();
    for (const metric_id id : {metric_id::ttft, metric_id::tpot, metric_id::itl, metric_id::e2e}) {
        if (!streams && facts_of(id).needs_stream) continue;
        add(make_statistic(statistic_kind::mean, id, 0));
        for (const double q : {0.5, 0.99}) add(make_statistic(statistic_kind::percentile, id, q));
    }
    for (const metric_id id : {metric_id::output_throughput, metric_id::request_throughput})
        add(make_statistic(statistic_kind::value, id, 0));
    return all;
}

/// Returns why a setting is not compared, "" if it is. A server that rejects requests is fast, and
/// the values of an overloaded one grow with the length of the run.
inline std::string exclusion_of(const measured_setting& s) {
    if (!s.lost.empty()) return s.lost;
    if (s.seen.candidate.empty())
        return s.seen.stopped.empty() ? "nothing was measured" : s.seen.stopped;
    if (s.found.on.invalid) return described(s.found.on.invalid);
    const slo limit = error_limit(s.judged_by.slos);
    if (const double errors = pooled_value(limit.what, s.seen.candidate); errors > limit.bound)
        return printed("%.3g %% of its requests failed (%s), where %.3g %% may", errors * 100,
                       failure_example(s.seen.candidate).c_str(), limit.bound * 100);
    return described(s.found.on.saturated);
}

/// A limit for a statistic without an objective, which it cannot miss.
inline slo statistic_alone(const statistic_data& what, double typical) {
    slo s;
    s.what = what;
    s.at_most = facts_of(what.metric).side != bound_side::at_least;
    s.bound = typical;
    return s;
}

/// Returns why a statistic of a setting is too weak to compare, "" if it is not.
inline std::string fault_of_statistic(const measured_setting& m, const statistic_data& what,
                                      const std::vector<double>& values) {
    if (!may_be_relative(what.metric)) return "a fraction";
    std::size_t infinite = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::isnan(values[i]))
            return is_of_start(what.metric)
                       ? "startup_time is only known of a process that is started"
                       : printed("round %zu has no value of it", i + 1);
        infinite += !(with_offset(what.metric, values[i]) > 0) || !std::isfinite(values[i]);
    }
    if (infinite > 0 && is_of_server(what.metric))
        return printed("it is not above zero in %zu of %zu rounds", infinite, values.size());
    if (infinite > 0)
        return printed("failed requests reach it in %zu of %zu rounds", infinite, values.size());
    const slo alone = statistic_alone(what, std::exp(mean_of(logs_of(what.metric, values))));
    cause why = sample_fault(m.seen, alone);
    if (!why) why = fault_of_verdict(m.seen, m.judged_by, m.found.on, undecided(alone));
    return described(why, alone);
}

inline values_in_rounds values_of_setting(const measured_setting& m,
                                          const reported_setting& reported,
                                          const statistic_data& what) {
    const repeat_list& variant = m.seen.candidate;
    values_in_rounds v;
    if (variant.empty() || !m.lost.empty()) return v.fault = reported.excluded, v;
    if (!may_be_relative(what.metric)) {
        v.measured = {pooled_value(what, variant)};
        v.fault = "a fraction";
        return v;
    }
    v.measured = values_of(what, variant).each;
    v.fault =
        reported.excluded.empty() ? fault_of_statistic(m, what, v.measured) : reported.excluded;
    const double late_after = late_after_s(m.judged_by);
    const bool had_part = std::any_of(variant.begin(), variant.end(), [&](const repeat_data& d) {
        return client_had_part(d, late_after);
    });
    if (!v.fault.empty() || !had_part) return v;
    v.pessimistic = values_of(what, variant, timing_bound::pessimistic).each;
    v.optimistic = values_of(what, variant, timing_bound::optimistic).each;
    return v;
}

/// Compares all settings by one statistic.
inline compared_statistic compared_by(const statistic_data& what,
                                      const std::vector<measured_setting>& all,
                                      const std::vector<reported_setting>& reported) {
    std::vector<values_in_rounds> values;
    double s0 = prior_sd;
    for (std::size_t i = 0; i < all.size(); ++i) {
        values.push_back(values_of_setting(all[i], reported[i], what));
        s0 = std::max(s0, prior_sd_of(all[i].seen, all[i].judged_by, statistic_alone(what, 1)));
    }
    return compared(what, std::move(values), s0);
}

inline std::vector<reported_setting> settings_as_reported(const std::vector<measured_setting>& all,
                                                          const std::vector<slo>& objectives) {
    std::vector<reported_setting> reported;
    for (const measured_setting& m : all) {
        reported.push_back({m.name, exclusion_of(m), {}});
        for (std::size_t i = 0; i < objectives.size() && i < m.found.verdicts.size(); ++i)
            reported.back().verdicts.push_back(m.found.verdicts[i].outcome);
    }
    return reported;
}
/// Compares all settings by every statistic. `streams`: answers come token by token.
inline settings_comparison comparison_of_settings(const std::vector<measured_setting>& all,
                                                  const std::vector<slo>& objectives,
                                                  bool streams, std::size_t planned_rounds) {
    settings_comparison c;
    c.objectives = objectives;
    c.planned_rounds = planned_rounds;
    c.settings = settings_as_reported(all, objectives);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (c.settings[i].excluded.empty())
            c.rounds = std::max(c.rounds, all[i].seen.candidate.size());
        if (c.stopped.empty()) c.stopped = all[i].seen.stopped;
    }
    const auto left = std::count_if(c.settings.begin(), c.settings.end(),
                                    [](const reported_setting& s) { return s.excluded.empty(); });
    for (const statistic_data& what : compared_statistics(objectives, streams, c.asked)) {
        compared_statistic s = compared_by(what, all, c.settings);
        // Statistics without an objective are left out if they compare nothing.
        if (c.statistics.size() < c.asked || !s.pairs.empty() || left < 2)
            c.statistics.push_back(std::move(s));
    }
    return c;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
