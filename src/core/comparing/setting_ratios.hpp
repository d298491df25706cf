// settings beside each other: turns, ratios, what differs significantly
// Settings of a server are measured in rounds, each of them once a round. Two of them are compared
// on the ratios within the rounds, so that what a round does to all of them is no part of it.
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

inline constexpr int usual_rounds = 4, fewest_rounds = 2, most_rounds = 12;
inline constexpr std::size_t fewest_settings = 2, most_settings = 8;
/// How often any two settings that are alike differ significantly by a statistic, at most.
inline constexpr double false_difference = 0.05;

/// Which settings have their turns in a round, in this order. Every other round goes backward, so
/// that an even drift of the machine hits all of them alike; after both another one begins.
inline std::vector<std::size_t> turns_of_round(std::size_t settings, int round) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < settings; ++i)
        order.push_back((i + static_cast<std::size_t>(round / 2)) % settings);
    if (round % 2 == 1) std::reverse(order.begin(), order.end());
    return order;
}

/// A statistic of one setting, round by round, SI units.
struct values_in_rounds {
    std::vector<double> measured{};
    std::vector<double> pessimistic{}, optimistic{};  // bounds, where the client had a part
    std::string fault{};                        // why it is compared with no other setting
};

/// Two settings by the ratio of the second to the first, of the typical round.
struct setting_ratio {
    std::size_t first = 0, second = 0;
    double ratio = not_a_number, low = not_a_number, high = not_a_number;
    std::vector<double> logs{};  // of the ratio in each round
    interim_analysis at{};       // mean, sd, df and standard error of those
    bool may_be_the_clients = false;  // the interval excludes 1, and the client may have done that
    bool significant() const { return !may_be_the_clients && (low > 1 || high < 1); }
};

/// What one setting shows of a statistic.
struct setting_value {
    double typical = not_a_number, low = not_a_number, high = not_a_number;
    std::string fault{};  // why it is compared with no other setting
};

/// All settings by one statistic.
struct compared_statistic {
    statistic_data what{};
    double believed_sd = 0;  // of a log ratio
    std::vector<setting_value> settings{};
    std::vector<setting_ratio> pairs{};  // of those without a fault, by first and second
    bool less_is_better() const { return facts_of(what.metric).side != bound_side::at_least; }
    /// Of two settings in any order, null where they were not compared.
    const setting_ratio* pair(std::size_t a, std::size_t b) const {
        for (const setting_ratio& r : pairs)
            if ((r.first == a && r.second == b) || (r.first == b && r.second == a)) return &r;
        return nullptr;
    }
    /// The ratio of `a` to `b` with its interval, nothing where they were not compared.
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
    /// The one that is shown to be better than every other that was compared.
    std::optional<std::size_t> best() const {
        for (std::size_t a = 0; a < settings.size(); ++a) {
            std::size_t beaten = 0;
            for (std::size_t b = 0; b < settings.size(); ++b) beaten += is_better(a, b);
            if (beaten > 0 && beaten + 1 == compared()) return a;
        }
        return std::nullopt;
    }
};

/// Of an interval that is wrong on either side in `level` of all cases, at its only look.
inline judging_rule rule_of_interval(double level) {
    judging_rule r;
    r.analyses = 1;
    r.pass_level = r.fail_level = level / 2;
    r.pass_z = r.fail_z = normal_quantile(1 - level / 2);
    return r;
}
/// Every pair of settings has its part of the level (Bonferroni), those that fall out too: which
/// ones do must not make the others easier to distinguish.
inline judging_rule rule_of_a_pair(std::size_t settings) {
    return rule_of_interval(2 * false_difference / static_cast<double>(settings * (settings - 1)));
}

/// Of values of a metric, as verdicts take them.
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

/// Whether a difference remains where the client's delays are taken to have made it: out of the
/// worse setting, and into the better one. Nothing remains of what has no value then.
inline bool withstands_the_client(const compared_statistic& c, const values_in_rounds& better,
                                  const values_in_rounds& worse, const judging_rule& rule) {
    if (better.pessimistic.empty() && worse.optimistic.empty()) return true;
    const std::vector<double> logs =
        log_ratios(c.what.metric, better.pessimistic.empty() ? better.measured : better.pessimistic,
                   worse.optimistic.empty() ? worse.measured : worse.optimistic);
    const interim_analysis l = analysis_of_pairs(logs, c.believed_sd, rule);
    const double sign = c.less_is_better() ? 1 : -1;
    return sign * l.mean - l.pass_t * l.se > 0;  // false where it is NaN
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

/// The typical round with an interval of 95 % by itself. Whether two settings differ is not seen by
/// their intervals but by that of their ratio, which what a round does to both is no part of.
inline setting_value value_of(metric_id m, values_in_rounds&& v, double s0) {
    setting_value out;
    out.fault = std::move(v.fault);
    const interim_analysis l =
        analysis_of_pairs(logs_of(m, v.measured), s0, rule_of_interval(0.05));
    const double reach = l.pass_t * l.se, offset = facts_of(m).offset;
    const auto back = [&](double log) {  // no rounding makes less than nothing of nothing
        return offset > 0 ? std::max(std::exp(log) - offset, 0.0) : std::exp(log);
    };
    out.typical = back(l.mean);
    if (out.fault.empty()) {
        out.low = back(l.mean - reach);
        out.high = back(l.mean + reach);
    }
    return out;
}

/// `s0`: what is believed of the noise of one setting's logarithm.
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
