// several settings: turns, ratios, significant differences
// Each setting is measured once a round. Two are compared by their ratios within rounds, which
// cancel effects on the whole round.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/described/causes.hpp"
#include "core/dialects/request_body.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/samples.hpp"
#include "core/judging/checks.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/metric/table.hpp"

#include <algorithm>  // count_if, max, min, reverse
#include <cmath>  // exp, log, sqrt, isfinite, isnan
#include <cstddef>  // size_t
#include <optional>
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr int usual_rounds = 4, fewest_rounds = 2, max_rounds = 12;
inline constexpr std::size_t fewest_settings = 2, max_settings = 8;
/// The maximum rate at which a statistic shows a significant difference between equal settings.
inline constexpr double false_difference = 0.05;

/// The order of settings in a round. Every other round is reversed, so that an even drift of the
/// machine affects all alike; after both the order begins at another setting.
inline vector<std::size_t> turns_of_round(std::size_t settings, int round) {
    vector<std::size_t> order;
    for (std::size_t i = 0; i < settings; ++i)
        order.push_back((i + static_cast<std::size_t>(round / 2)) % settings);
    if (round % 2 == 1) std::reverse(order.begin(), order.end());
    return order;
}

/// A statistic of one setting by round, SI units.
struct values_in_rounds {
    vector<double> measured{};
    vector<double> pessimistic{}, optimistic{};  // bounds, for errors of the client
    std::string fault{};                        // why it is not compared
    bool is_fresh = false;                      // its server is started again for each round
};

/// The ratio of the second setting to the first in the typical round.
struct setting_ratio {
    std::size_t first = 0, second = 0;
    double ratio = not_a_number, low = not_a_number, high = not_a_number;
    vector<double> logs{};  // of the ratio, by round
    interim_analysis at{};       // mean, sd, df and standard error of those
    bool may_be_the_clients = false;  // the interval excludes 1, perhaps because of the client
    bool significant() const { return !may_be_the_clients && (low > 1 || high < 1); }
};

struct setting_value {
    double typical = not_a_number, low = not_a_number, high = not_a_number;
    std::string fault{};  // why it is not compared
};

struct compared_statistic {
    statistic_data what{};
    double prior_sd = 0;      // prior, of a log ratio, by all settings together
    double own_prior_sd = 0;  // of a pair that is shown to spread less
    double spread = 0;    // of a log ratio, by all settings together; 0: not known
    vector<setting_value> settings{};
    vector<setting_ratio> pairs{};  // of settings without a fault, by first and second
    bool less_is_better() const { return facts_of(what.metric).side != bound_side::at_least; }
    /// Of two settings in any order, null if not compared.
    const setting_ratio* pair(std::size_t a, std::size_t b) const {
        for (const setting_ratio& r : pairs)
            if ((r.first == a && r.second == b) || (r.first == b && r.second == a)) return &r;
        return nullptr;
    }
    /// The ratio of `a` to `b` with its interval, if compared.
    std::optional<estimate_t> ratio(std::size_t a, std::size_t b) const {
        const setting_ratio* r = pair(a, b);
        if (!r) return std::nullopt;
        if (r->second == a) return estimate_t{r->ratio, r->low, r->high};
        return estimate_t{1 / r->ratio, 1 / r->high, 1 / r->low};
    }
    /// Whether `a` is shown to be better than `b`.
    bool is_better(std::size_t a, std::size_t b) const {
        const setting_ratio* r = pair(a, b);
        return r && r->significant() && ((r->ratio < 1) == less_is_better()) == (r->second == a);
    }
    std::size_t compared() const {
        return static_cast<std::size_t>(std::count_if(
            settings.begin(), settings.end(),
            [](const setting_value& v) { return v.fault.empty(); }));
    }
    /// The setting shown to be better than all others compared.
    std::optional<std::size_t> best() const {
        for (std::size_t a = 0; a < settings.size(); ++a) {
            std::size_t beaten = 0;
            for (std::size_t b = 0; b < settings.size(); ++b) beaten += is_better(a, b);
            if (beaten > 0 && beaten + 1 == compared()) return a;
        }
        return std::nullopt;
    }
};

/// The rule of an interval that is wrong on either side in `level` of all cases, at its only
/// analysis.
inline judging_rule rule_of_interval(double level) {
    judging_rule r;
    r.analyses = 1;
    r.pass_level = r.fail_level = level / 2;
    r.pass_z = r.fail_z = r.alone_z = normal_quantile(1 - level / 2);
    return r;
}
/// Every pair has an equal part of the level (Bonferroni), also with settings left out: leaving
/// some out must not make the others easier to distinguish.
inline judging_rule rule_of_a_pair(std::size_t settings) {
    return rule_of_interval(2 * false_difference / static_cast<double>(settings * (settings - 1)));
}

/// The logarithms of a metric's values, as in verdicts.
inline vector<double> logs_of(metric_id m, const vector<double>& values) {
    vector<double> logs;
    for (const double v : values) logs.push_back(std::log(with_offset(m, v)));
    return logs;
}
inline vector<double> log_ratios(metric_id m, const vector<double>& first,
                                 const vector<double>& second) {
    vector<double> logs;
    for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i)
        logs.push_back(std::log(with_offset(m, second[i])) - std::log(with_offset(m, first[i])));
    return logs;
}

/// Whether a difference remains if the client's delays caused it: subtracted from the worse
/// setting, added to the better one. Without such values none remains.
inline bool withstands_the_client(const compared_statistic& c, const values_in_rounds& better,
                                  const values_in_rounds& worse, double prior,
                                  const judging_rule& rule) {
    if (better.pessimistic.empty() && worse.optimistic.empty()) return true;
    const vector<double> logs =
        log_ratios(c.what.metric, better.pessimistic.empty() ? better.measured : better.pessimistic,
                   worse.optimistic.empty() ? worse.measured : worse.optimistic);
    const interim_analysis l = analysis_of_pairs(logs, prior, rule);
    const double sign = c.less_is_better() ? 1 : -1;
    return sign * l.mean - half_width(l) > 0;  // false for NaN
}

inline setting_ratio ratio_of(const compared_statistic& c,
                              const vector<values_in_rounds>& values, std::size_t first,
                              std::size_t second, judging_rule rule) {
    setting_ratio r;
    r.first = first;
    r.second = second;
    r.logs = log_ratios(c.what.metric, values[first].measured, values[second].measured);
    // Rounds that agree on a machine that shifts agree by luck: not even one pair in 20 spreads less.
    const own_spread own = own_spread_of(r.logs);
    const bool is_typical =  // up to rounding
        own.squares + 1e-12 >= c.spread * c.spread * chi_square_quantile(-1.6449, own.df);
    rule.pairs_are_fresh = is_typical && values[first].is_fresh && values[second].is_fresh;
    // One noisy setting hides no difference between quiet ones: one pair in 100 is so by luck.
    const bool is_quiet = own.squares < c.spread * c.spread * chi_square_1(own.df);
    const double prior = is_quiet ? c.own_prior_sd : c.prior_sd;
    r.at = analysis_of_pairs(r.logs, prior, rule);
    const double reach = half_width(r.at);
    r.ratio = std::exp(r.at.mean);
    r.low = std::exp(r.at.mean - reach);
    r.high = std::exp(r.at.mean + reach);
    if (!r.significant()) return r;
    const bool second_is_better = (r.ratio < 1) == c.less_is_better();
    r.may_be_the_clients = !withstands_the_client(
        c, values[second_is_better ? second : first], values[second_is_better ? first : second],
        prior, rule);
    return r;
}

/// The typical round with its own 95 % interval. Whether settings differ is decided by the interval
/// of their ratio, which is free of effects on whole rounds.
inline setting_value value_of(metric_id m, values_in_rounds&& v, double s0) {
    setting_value out;
    out.fault = std::move(v.fault);
    judging_rule rule = rule_of_interval(0.05);
    rule.pairs_are_fresh = v.is_fresh;
    const interim_analysis l = analysis_of_pairs(logs_of(m, v.measured), s0, rule);
    const double reach = half_width(l), offset = facts_of(m).offset;
    const auto back = [&](double log) {  // rounding must not make 0 negative
        return offset > 0 ? std::max(std::exp(log) - offset, 0.0) : std::exp(log);
    };
    out.typical = back(l.mean);
    if (out.fault.empty()) {
        out.low = back(l.mean - reach);
        out.high = back(l.mean + reach);
    }
    return out;
}

/// The standard deviation of one setting's logarithm beside its own mean and that of each round, of
/// all settings together. A machine that shifts for some turns is seen in this one, though the rounds
/// of a pair agree by luck. Two settings have no others: 0.
inline double spread_of_all(metric_id m, const vector<values_in_rounds>& values) {
    vector<vector<double>> logs;
    std::size_t rounds = max_rounds;
    for (const values_in_rounds& v : values) {
        if (!v.fault.empty()) continue;
        logs.push_back(logs_of(m, v.measured));
        rounds = std::min(rounds, v.measured.size());
    }
    if (logs.size() < 3) return 0;
    vector<double> of_rounds(rounds, 0.0);
    for (vector<double>& of : logs) {
        of.resize(rounds);
        const double own = mean_of(of);
        for (std::size_t r = 0; r < rounds; ++r) {
            of[r] -= own;
            of_rounds[r] += of[r] / as_number(logs.size());
        }
    }
    double squares = 0;
    for (const vector<double>& of : logs)
        for (std::size_t r = 0; r < rounds; ++r)
            squares += (of[r] - of_rounds[r]) * (of[r] - of_rounds[r]);
    return std::sqrt(squares / as_number((logs.size() - 1) * (rounds - 1)));
}

/// `s0`: prior standard deviation of one setting's logarithm.
inline compared_statistic compared(const statistic_data& what,
                                   vector<values_in_rounds> values, double s0) {
    compared_statistic c;
    c.what = what;
    for (values_in_rounds& v : values)
        if (v.fault.empty() && v.measured.size() < static_cast<std::size_t>(fewest_rounds))
            v.fault = printed("it was measured in %zu round%s, it takes %d", v.measured.size(),
                              v.measured.size() == 1 ? "" : "s", fewest_rounds);
    c.spread = spread_of_all(what.metric, values) * std::sqrt(2.0);
    c.own_prior_sd = s0 * std::sqrt(2.0);
    c.prior_sd = std::max(c.own_prior_sd, c.spread);
    const judging_rule rule = rule_of_a_pair(values.size());
    for (std::size_t a = 0; a < values.size(); ++a)
        for (std::size_t b = a + 1; b < values.size(); ++b)
            if (values[a].fault.empty() && values[b].fault.empty())
                c.pairs.push_back(ratio_of(c, values, a, b, rule));
    for (values_in_rounds& v : values)
        c.settings.push_back(value_of(what.metric, std::move(v), s0));
    return c;
}

/// One setting of a comparison. It does not own the measurements and judging parameters.
struct measured_setting {
    std::string name{};
    const measurements& seen;
    const judging_parameters& judged_by;
    const analysis& found;
    std::string lost{};  // why its server could not be measured
};

struct reported_setting {
    std::string name{};
    std::string excluded{};            // why it is not compared
    vector<verdict> verdicts{};   // of the objectives
};

struct settings_comparison {
    vector<reported_setting> settings{};
    vector<slo> objectives{};
    std::size_t rounds = 0, planned_rounds = 0;
    std::string stopped{};  // why there are fewer rounds than planned
    vector<compared_statistic> statistics{};
    std::size_t asked = 0;  // number of statistics of objectives, which are first
};

/// The statistics compared: those of objectives, then the usual ones.
inline vector<statistic_data> compared_statistics(const vector<slo>& slos, const request_spec& sent,
                                                  std::size_t& asked) {
    vector<statistic_data> all;
    const auto add = [&](const statistic_data& s) {
        for (const statistic_data& known : all)
            if (str(known.name) == str(s.name)) return;
        all.push_back(s);
    };
    for (const slo& s : slos) add(s.statistic);
    asked = all.size();
    for (const metric_id id : {metric_id::ttft, metric_id::tpot, metric_id::itl, metric_id::e2e}) {
        if (!sent.stream && facts_of(id).needs_stream) continue;
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
    if (const double errors = pooled_value(limit.statistic, s.seen.candidate); errors > limit.bound)
        return printed("%.3g %% of its requests failed (%s), where %.3g %% may", errors * 100,
                       failure_example(s.seen.candidate).c_str(), limit.bound * 100);
    return described(s.found.on.saturated);
}

/// A limit for a statistic without an objective, which it cannot miss.
inline slo statistic_alone(const statistic_data& what, double typical) {
    slo s;
    s.statistic = what;
    s.at_most = facts_of(what.metric).side != bound_side::at_least;
    s.bound = typical;
    return s;
}

/// Returns why a statistic of a setting is too weak to compare, "" if it is not.
inline std::string fault_of_statistic(const measured_setting& m, const statistic_data& what,
                                      const vector<double>& values) {
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
    cause why = sample_fault(columns_of(m.seen, alone), undecided(alone));
    if (!why) why = fault_of_verdict(m.seen, m.judged_by, m.found.on, undecided(alone));
    return described(why, alone);
}

/// Whether the client may have affected a repeat.
inline bool client_had_part(const repeat_data& d, double late_after) {
    return late_fraction_of(d, late_after) > most_late_fraction ||
           any_of(d.records,
                  [](const record& r) { return is_measured(r) && r.first_early_ns > 0; });
}
inline values_in_rounds values_of_setting(const measured_setting& m,
                                          const reported_setting& reported,
                                          const statistic_data& what) {
    const repeat_list& variant = m.seen.candidate;
    values_in_rounds v{.is_fresh = m.seen.pairs_are_fresh};
    if (variant.empty() || !m.lost.empty()) return v.fault = reported.excluded, v;
    if (!may_be_relative(what.metric)) {
        v.measured = {pooled_value(what, variant)};
        v.fault = "a fraction";
        return v;
    }
    v.measured = columns_of(what, variant).values();
    v.fault =
        reported.excluded.empty() ? fault_of_statistic(m, what, v.measured) : reported.excluded;
    const double late_after = late_after_s(m.judged_by);
    const bool had_part = any_of(variant, [&](const repeat_data& d) {
        return client_had_part(d, late_after);
    });
    if (!v.fault.empty() || !had_part) return v;
    v.pessimistic = columns_of(what, variant, timing_bound::pessimistic).values();
    v.optimistic = columns_of(what, variant, timing_bound::optimistic).values();
    return v;
}

inline compared_statistic compared_by(const statistic_data& what,
                                      const vector<measured_setting>& all,
                                      const vector<reported_setting>& reported) {
    vector<values_in_rounds> values;
    double s0 = prior_sd;
    for (std::size_t i = 0; i < all.size(); ++i) {
        values.push_back(values_of_setting(all[i], reported[i], what));
        s0 = std::max(s0, prior_sd_of(all[i].judged_by, statistic_alone(what, 1), false));
    }
    return compared(what, std::move(values), s0);
}

/// The difference of two settings in the metric's unit, and what the client can tell of it.
struct measured_difference {
    estimate_t estimate{not_a_number, not_a_number, not_a_number};
    double least = 0;
};
/// `pairs`: of `settings` settings, which have the level of all intervals together.
inline measured_difference difference_in(const measurements& pairs, judging_parameters t,
                                         const statistic_data& what, std::size_t settings) {
    slo s = statistic_alone(what, 0);
    s.factor = 1;
    s.offset = s.at_most ? 1e-9 : -1e-9;  // the interval of a difference has no limit in it
    const int revision = t.rule.revision;
    t.rule = rule_of_a_pair(settings);
    t.rule.revision = revision;
    t.rule.is_single_analysis = true;
    const decision d = decision_on_another(pairs, std::move(t), s);
    if (d.outcome == verdict::invalid) return {};
    return {d.estimate, client_error_in(pairs, what)};
}

inline vector<reported_setting> settings_as_reported(const vector<measured_setting>& all,
                                                     const vector<slo>& objectives) {
    vector<reported_setting> reported;
    for (const measured_setting& m : all) {
        reported.push_back({m.name, exclusion_of(m), {}});
        for (std::size_t i = 0; i < objectives.size() && i < m.found.verdicts.size(); ++i)
            reported.back().verdicts.push_back(m.found.verdicts[i].outcome);
    }
    return reported;
}
/// Compares all settings by every statistic.
inline settings_comparison comparison_of_settings(const vector<measured_setting>& all,
                                                  const vector<slo>& objectives,
                                                  const request_spec& sent,
                                                  std::size_t planned_rounds) {
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
    for (const statistic_data& what : compared_statistics(objectives, sent, c.asked)) {
        compared_statistic s = compared_by(what, all, c.settings);
        // Statistics without an objective are left out if they compare nothing.
        if (c.statistics.size() < c.asked || !s.pairs.empty() || left < 2)
            c.statistics.push_back(std::move(s));
    }
    return c;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
