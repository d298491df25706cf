// several settings: turns, ratios, significant differences
// Each setting is measured once a round. Two are compared by their ratios within rounds, which
// cancel effects on the whole round.
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/judging/pairs.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/scale.hpp"

#include <algorithm>  // count_if, max, min, reverse
#include <cmath>  // exp, log, sqrt
#include <cstddef>  // size_t
#include <optional>
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr int usual_rounds = 4, fewest_rounds = 2, max_rounds = 12;
inline constexpr std::size_t fewest_settings = 2, max_settings = 8;
/// The maximum rate at which a statistic shows a significant difference between equal settings.
inline constexpr double false_difference = 0.05;

/// The order of settings in a round. Every other round is reversed, so that an even drift of the
/// machine affects all alike; after both the order begins at another setting.
inline std::vector<std::size_t> turns_of_round(std::size_t settings, int round) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < settings; ++i)
        order.push_back((i + static_cast<std::size_t>(round / 2)) % settings);
    if (round % 2 == 1) std::reverse(order.begin(), order.end());
    return order;
}

/// A statistic of one setting by round, SI units.
struct values_in_rounds {
    std::vector<double> measured{};
    std::vector<double> pessimistic{}, optimistic{};  // bounds, for errors of the client
    std::string fault{};                        // why it is not compared
};

/// The ratio of the second setting to the first in the typical round.
struct setting_ratio {
    std::size_t first = 0, second = 0;
    double ratio = not_a_number, low = not_a_number, high = not_a_number;
    std::vector<double> logs{};  // of the ratio, by round
    interim_analysis at{};       // mean, sd, df and standard error of those
    bool may_be_the_clients = false;  // the interval excludes 1, perhaps because of the client
    bool significant() const { return !may_be_the_clients && (low > 1 || high < 1); }
};

/// The value of a statistic for one setting.
struct setting_value {
    double typical = not_a_number, low = not_a_number, high = not_a_number;
    std::string fault{};  // why it is not compared
};

/// All settings by one statistic.
struct compared_statistic {
    statistic_data what{};
    double believed_sd = 0;  // prior, of a log ratio
    std::vector<setting_value> settings{};
    std::vector<setting_ratio> pairs{};  // of settings without a fault, by first and second
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
    r.pass_z = r.fail_z = normal_quantile(1 - level / 2);
    return r;
}
/// Every pair has an equal part of the level (Bonferroni), also with settings left out: leaving
/// some out must not make the others easier to distinguish.
inline judging_rule rule_of_a_pair(std::size_t settings) {
    return rule_of_interval(2 * false_difference / static_cast<double>(settings * (settings - 1)));
}

/// The logarithms of a metric's values, as in verdicts.
inline std::vector<double> logs_of(metric_id m, const std::vector<double>& values) {
    std::vector<double> logs;
    for (const double v : values) logs.push_back(std::log(with_offset(m, v)));
    return logs;
}
inline std::vector<double> log_ratios(metric_id m, const std::vector<double>& first,
                                      const std::vector<double>& second) {
    std::vector<double> logs;
    for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i)
        logs.push_back(std::log(with_offset(m, second[i])) - std::log(with_offset(m, first[i])));
    return logs;
}

/// Whether a difference remains if the client's delays caused it: subtracted from the worse
/// setting, added to the better one. Without such values none remains.
inline bool withstands_the_client(const compared_statistic& c, const values_in_rounds& better,
                                  const values_in_rounds& worse, const judging_rule& rule) {
    if (better.pessimistic.empty() && worse.optimistic.empty()) return true;
    const std::vector<double> logs =
        log_ratios(c.what.metric, better.pessimistic.empty() ? better.measured : better.pessimistic,
                   worse.optimistic.empty() ? worse.measured : worse.optimistic);
    const interim_analysis l = analysis_of_pairs(logs, c.believed_sd, rule);
    const double sign = c.less_is_better() ? 1 : -1;
    return sign * l.mean - l.pass_t * l.se > 0;  // false for NaN
}

inline setting_ratio ratio_of(const compared_statistic& c,
                              const std::vector<values_in_rounds>& values, std::size_t first,
                              std::size_t second, const judging_rule& rule) {
    setting_ratio r;
    r.first = first;
    r.second = second;
    r.logs = log_ratios(c.what.metric, values[first].measured, values[second].measured);
    r.at = analysis_of_pairs(r.logs, c.believed_sd, rule);
    const double reach = r.at.pass_t * r.at.se;
    r.ratio = std::exp(r.at.mean);
    r.low = std::exp(r.at.mean - reach);
    r.high = std::exp(r.at.mean + reach);
    if (!r.significant()) return r;
    const bool second_is_better = (r.ratio < 1) == c.less_is_better();
    r.may_be_the_clients = !withstands_the_client(
        c, values[second_is_better ? second : first], values[second_is_better ? first : second],
        rule);
    return r;
}

/// The typical round with its own 95 % interval. Whether settings differ is decided by the interval
/// of their ratio, which is free of effects on whole rounds.
inline setting_value value_of(metric_id m, values_in_rounds&& v, double s0) {
    setting_value out;
    out.fault = std::move(v.fault);
    const interim_analysis l =
        analysis_of_pairs(logs_of(m, v.measured), s0, rule_of_interval(0.05));
    const double reach = l.pass_t * l.se, offset = facts_of(m).offset;
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

/// `s0`: prior standard deviation of one setting's logarithm.
inline compared_statistic compared(const statistic_data& what,
                                   std::vector<values_in_rounds> values, double s0) {
    compared_statistic c;
    c.what = what;
    c.believed_sd = s0 * std::sqrt(2.0);
    for (values_in_rounds& v : values)
        if (v.fault.empty() && v.measured.size() < static_cast<std::size_t>(fewest_rounds))
            v.fault = printed("it was measured in %zu round%s, it takes %d", v.measured.size(),
                              v.measured.size() == 1 ? "" : "s", fewest_rounds);
    const judging_rule rule = rule_of_a_pair(values.size());
    for (std::size_t a = 0; a < values.size(); ++a)
        for (std::size_t b = a + 1; b < values.size(); ++b)
            if (values[a].fault.empty() && values[b].fault.empty())
                c.pairs.push_back(ratio_of(c, values, a, b, rule));
    for (values_in_rounds& v : values)
        c.settings.push_back(value_of(what.metric, std::move(v), s0));
    return c;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
