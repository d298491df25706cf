// llmbench_compare 1.0.0-rc.1: compare() and curve(). Include it after llmbench.hpp.
// Put together from src/ by ci/assemble.py: edit there, not here.
//
// Part one: declarations
//   [A] several settings of a server, and one load after the other
// Part three: turns of settings, loads one after the other, and what reports tell of them
//
// SPDX-License-Identifier: MIT
//
// Copyright (c) 2026 the llmbench authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
// associated documentation files (the "Software"), to deal in the Software without restriction,
// including without limitation the rights to use, copy, modify, merge, publish, distribute,
// sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all copies or
// substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
// NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
// NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
// DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

#ifndef LLMBENCH_HPP
#error "llmbench_compare.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_COMPARE_HPP
#define LLMBENCH_COMPARE_HPP
static_assert(__builtin_strcmp(LLMBENCH_RELEASE_, "llmbench_1.0.0rc.1") == 0,
              "llmbench_compare.hpp is of 1.0.0-rc.1, but llmbench.hpp is " LLMBENCH_RELEASE_
              ": take both from one release");

// ===== [A] several settings of a server, and one load after the other ============================

namespace llmbench {
inline namespace v1 {

/// One of several ways to run a server, for compare().
struct setting {
    types::text name{};   ///< up to 60 characters, unique
    any_target target{};  ///< default: LLMBENCH_URL
};
/// A load of a curve: `8_rps`, `64_users`.
struct offered_load {
    double value = 0;
    bool in_users = false;
    offered_load() = default;
    offered_load(request_rate r) : value(r.per_second) {}
    offered_load(user_count n) : value(n.users), in_users(true) {}
};

namespace detail {
text best_setting(const box& data, const statistic_data& what);
estimate_t ratio_of_settings(const box& data, const text& of, const text& to,
                             const statistic_data& what);
struct difference_of_settings : estimate_t {
    double least = 0;
    text words{};
};
difference_of_settings difference_between(const box& data, const text& of, const text& to,
                                          const statistic_data& what);
result settings_as_pairs(const box& data, const text& of, const text& to);
struct comparison_access;
struct curve_access;
}  // namespace detail

/// The difference of two settings, with its interval; SI units. `difference <= 1_ms` and
/// `difference >= 1_ms` say whether the data show it. A limit below what the client can tell is
/// never shown.
template <class U>
struct setting_difference : estimate_t {
    double least = 0;  ///< what the client can tell
    types::text words{};
    template <class T>
        requires detail::gives<U, T>
    friend bool operator<=(const setting_difference& d, const T& limit) {
        return d.is_told(detail::si(U(limit))) && d.high <= detail::si(U(limit));
    }
    template <class T>
        requires detail::gives<U, T>
    friend bool operator>=(const setting_difference& d, const T& limit) {
        return d.is_told(detail::si(U(limit))) && d.low >= detail::si(U(limit));
    }
    template <class Stream>
        requires requires(Stream& o) { o.rdbuf(); }
    friend Stream& operator<<(Stream& o, const setting_difference& d) {
        o << d.words.c_str();
        return o;
    }
#ifndef LLMBENCH_NO_DOCTEST
    friend doctest::String toString(const setting_difference& d) { return d.words.c_str(); }
#endif

private:
    bool is_told(double limit) const { return (limit < 0 ? -limit : limit) >= least; }
};

/// The result of compare(): several settings of a server on one trace.
class comparison_result {
public:
    comparison_result() = default;
    /// Returns their names, in order.
    const types::list<types::text>& settings() const& { return names_; }
    types::list<types::text> settings() && { return names_; }
    /// Returns one setting as a run of its own: CHECK_SLO(c["budget 512"], p99(itl) <= 60_ms).
    /// Throws std::invalid_argument for an unknown name, or index (from 0).
    const result& operator[](const types::text& name) const;
    const result& at(types::whole place) const;
    /// Returns the setting shown to be better than all others, "" if none is. It is a wrong one in
    /// at most 5 % of the comparisons.
    template <class U, detail::bound_side S>
    types::text best(const statistic<U, S>& s) const {
        return detail::best_setting(data_, s.data);
    }
    template <detail::run_metric M>
    types::text best(M m) const {
        return detail::best_setting(data_, detail::make(detail::statistic_kind::value, m).data);
    }
    /// Returns the ratio of one setting to another, with simultaneous 95 % intervals over all
    /// pairs: two differ significantly if the interval excludes 1. NaN if they cannot be compared.
    /// Throws std::invalid_argument for an unknown setting.
    template <class U, detail::bound_side S>
    estimate_t ratio(const types::text& of, const types::text& to,
                     const statistic<U, S>& s) const {
        return detail::ratio_of_settings(data_, of, to, s.data);
    }
    template <detail::run_metric M>
    estimate_t ratio(const types::text& of, const types::text& to, M m) const {
        return detail::ratio_of_settings(
            data_, of, to, detail::make(detail::statistic_kind::value, m).data);
    }
    /// Returns one setting less another in the metric's unit, with such intervals. Zero is a value.
    /// `CHECK(c.difference("head", "base", mean(ttft)) <= 1_ms)`.
    template <class U, detail::bound_side S>
    setting_difference<U> difference(const types::text& of, const types::text& to,
                                     const statistic<U, S>& s) const {
        const auto d = detail::difference_between(data_, of, to, s.data);
        return {d, d.least, d.words};
    }
    template <detail::run_metric M>
    auto difference(const types::text& of, const types::text& to, M m) const {
        return difference(of, to, detail::make(detail::statistic_kind::value, m));
    }
    /// Returns one setting with the other as its baseline, the rounds as pairs, for a verdict:
    /// `CHECK_SLO(c.difference("head", "base"), mean(ttft) <= baseline + 1_ms)`.
    result difference(const types::text& of, const types::text& to) const {
        return detail::settings_as_pairs(data_, of, to);
    }
    /// Returns "3 settings in turns, 4 rounds: p99(itl): budget 256 is best; ...".
    const types::text& line() const { return line_; }
    /// Returns the same for all statistics, with the arithmetic of every ratio.
    const types::text& explain() const { return explained_; }
    template <class Stream>
        requires requires(Stream& o) { o.rdbuf(); }
    friend Stream& operator<<(Stream& o, const comparison_result& c) {
        o << c.line_.c_str();
        return o;
    }
#ifndef LLMBENCH_NO_DOCTEST
    friend doctest::String toString(const comparison_result& c) { return c.line_.c_str(); }
#endif

private:
    friend struct detail::comparison_access;
    types::list<types::text> names_{};
    types::list<result> results_{};
    detail::box data_{};
    types::text line_{}, explained_{};
};

/// The result of curve(): a server at several loads, in requests/s or users.
class curve_result {
public:
    curve_result() = default;
    types::whole size() const { return results_.size(); }
    const types::list<double>& loads() const& { return loads_; }
    types::list<double> loads() && { return loads_; }
    /// Returns one load as a run of its own: CHECK_SLO(c[8_rps], p90(ttft) <= 300_ms). Throws
    /// std::invalid_argument for an unknown load, or index (from 0).
    const result& operator[](offered_load load) const;
    const result& at(types::whole place) const;
    /// Returns the highest load up to which all loads were shown to meet all objectives; 0: none.
    /// It is above the capacity as often as one verdict passes wrongly, 5 % by default.
    double low() const { return low_; }
    /// Returns the lowest load from which all loads were shown to miss an objective; infinite:
    /// none. It is below the capacity as often as one verdict fails wrongly, 1 % an objective by
    /// default.
    double high() const { return high_; }
    /// Returns "capacity in [8, 12] req/s, limited by p90(ttft), 5 loads".
    const types::text& line() const { return line_; }
    template <class Stream>
        requires requires(Stream& o) { o.rdbuf(); }
    friend Stream& operator<<(Stream& o, const curve_result& c) {
        o << c.line_.c_str();
        return o;
    }
#ifndef LLMBENCH_NO_DOCTEST
    friend doctest::String toString(const curve_result& c) { return c.line_.c_str(); }
#endif

private:
    friend struct detail::curve_access;
    types::list<double> loads_{};
    types::list<result> results_{};
    double low_ = 0, high_ = __builtin_inf();
    types::text line_{};
};

// Linkers show these names if they are missing.
namespace include_llmbench_compare_hpp_where_LLMBENCH_MAIN_is {
comparison_result compared(const scenario& s, const types::list<setting>& settings,
                           const char* file, int line);
curve_result loads_of(const scenario& s, const types::list<offered_load>& loads, const char* file,
                      int line);
}  // namespace include_llmbench_compare_hpp_where_LLMBENCH_MAIN_is

/// Measures two to eight settings of a server on one trace, in turns: each once a round, in four
/// rounds or `.repeats` (2 to 12). A process runs only in its own turns. Every setting is judged by
/// the scenario's objectives, and all are compared with each other; nothing fails, as in run(). A
/// setting that cannot be started is invalid, and the others continue. The scenario has no target
/// and no baseline. Throws as run() does.
inline comparison_result compare(const scenario& s, const types::list<setting>& settings,
                                 const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE()) {
    return include_llmbench_compare_hpp_where_LLMBENCH_MAIN_is::compared(s, settings, file, line);
}

/// Measures two to sixteen loads of a server, the lightest first, each as its own gate: rates on
/// one stretched trace (Poisson by default), or users of a closed loop. `.arrivals` gives the kind
/// only. Nothing fails, as in run(). Each load is judged by the objectives; the capacity is between
/// loads that meet them and loads that miss one. With a live baseline there are two curves. Throws
/// as run() does.
///     curve({.workload = synthetic{}, .requests = 200, .slos = {p90(ttft) <= 500_ms}},
///           {2_rps, 4_rps, 8_rps, 16_rps});
inline curve_result curve(const scenario& s, const types::list<offered_load>& loads,
                          const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return include_llmbench_compare_hpp_where_LLMBENCH_MAIN_is::loads_of(s, loads, file, line);
}

}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_COMPARE_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_COMPARE_IMPLEMENTED)
#define LLMBENCH_COMPARE_IMPLEMENTED

#include <algorithm>  // count_if, max, min, reverse, find, find_if, sort
#include <cmath>  // exp, log, sqrt, isfinite, isnan, floor
#include <cstddef>  // size_t
#include <exception>
#include <list>
#include <memory>  // shared_ptr
#include <optional>
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // move, exchange, pair

// ===== [E] several settings: turns, ratios, significant differences ==============================
// Each setting is measured once a round. Two are compared by their ratios within rounds, which
// cancel effects on the whole round.

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

// ===== [E] checks of scenarios for a curve and for several settings ==============================

inline constexpr std::size_t fewest_loads = 2, max_loads = 16;

/// Throws std::invalid_argument with a sentence for the first fault.
inline void check_curve(const scenario& s, const list<offered_load>& loads) {
    if (!(loads.size() >= fewest_loads && loads.size() <= max_loads))
        refuse({"curve() has ", plural(loads.size(), "load"),
                printed(": it takes %zu to %zu", fewest_loads, max_loads)});
    for (std::size_t i = 0; i < loads.size(); ++i) {
        const double load = loads[i].value;
        if (!(load > 0 && load <= 1e6))
            refuse({printed("curve() has a load of %.9g: it must be above 0 and at most 1000000",
                            load)});
        if (loads[i].in_users != loads[0].in_users)
            refuse({"curve() has rates and numbers of users: all its loads are one or the other"});
        if (i > 0 && !(load > loads[i - 1].value))
            refuse({printed("curve() has a load of %.9g after one of %.9g: they rise", load,
                            loads[i - 1].value)});
        if (loads[i].in_users && load != std::floor(load))
            refuse({printed("curve() has a load of %.9g users: users are whole", load)});
    }
    const arrival_data& a = s.arrivals.data();
    const std::string given = "arrivals is " + arrival_text(a) + ": ";
    if (a.is_searched)
        refuse({given,
                "curve() measures the loads that it is given, find_capacity() searches one"});
    const bool in_users = is_counted_in_users(a);
    const bool is_default = a.users == 1 && a.users_ramp_s == 0 && a.think.a + a.think.b == 0;
    if (loads[0].in_users ? !in_users : in_users && !is_default)
        refuse({given, loads[0].in_users ? "its loads are rates, as in {8_rps, 16_rps}"
                                         : "its loads are numbers of users, as in {8_users, "
                                           "16_users}"});
    if (a.kind == arrival_kind::ramp || a.kind == arrival_kind::steps ||
        a.kind == arrival_kind::replay || a.kind == arrival_kind::all_at_once)
        refuse({given, "a curve is of one steady load after the other: poisson, constant, gamma or "
                       "closed_loop"});
    if (s.baseline.is_stored() || s.baseline.is_of_extension())
        refuse({"baseline is given: curve() holds each load against a second server, and not "
                "against an earlier run, which had one load"});
}

/// The arrivals of a scenario at a load, which replaces the scenario's own.
inline arrival_pattern arrivals_at(arrival_data a, const offered_load& load) {
    if (load.in_users)
        return closed_loop(static_cast<long long>(load.value))
            .think(a.think)
            .ramp(time_span::from_seconds(a.users_ramp_s));
    if (is_counted_in_users(a)) a.kind = arrival_kind::poisson;
    a.rate = load.value;
    return open_loop(a);
}

inline void check_names(const list<setting>& settings) {
    if (!(settings.size() >= fewest_settings && settings.size() <= max_settings))
        refuse({printed("compare() has %zu setting%s: it takes %zu to %zu", settings.size(),
                        settings.size() == 1 ? "" : "s", fewest_settings, max_settings)});
    for (std::size_t i = 0; i < settings.size(); ++i) {
        const std::string name = str(settings[i].name);
        if (trimmed(name).empty())
            refuse({printed("setting %zu has no name: reports tell it by one, as in {\"budget "
                            "512\", process{...}}", i + 1)});
        if (columns_of(name) > 60)
            refuse({"setting \"", printable(name, 80), "\" has a name of over 60 characters"});
        for (std::size_t k = 0; k < i; ++k)
            if (name == str(settings[k].name))
                refuse({printed("settings %zu and %zu are both named \"", k + 1, i + 1),
                        printable(name), "\": give each a name of its own"});
    }
}

/// Throws std::invalid_argument with a sentence for the first fault.
inline void check_comparison(const scenario& s, const list<setting>& settings) {
    check_names(settings);
    const auto is_switched = [](const setting& x) { return x.target.is_switched(); };
    if (any_of(settings, is_switched) && !all_of(settings, is_switched))
        refuse({"some settings are switched(...) and others are not, which would be awake beside "
                "them: switch all, or none"});
    if (!s.target.what().empty())
        refuse({"target is given: compare() takes one with each setting, and none beside them"});
    if (s.baseline.is_live() || s.baseline.is_stored() || s.baseline.is_of_extension())
        refuse({"baseline is given: compare() holds its settings against each other, a gate is "
                "held against a baseline"});
    const arrival_data& a = s.arrivals.data();
    if (a.is_searched)
        refuse({"arrivals is ", arrival_text(a),
                ": compare() measures one load, find_capacity() searches one"});
    for (const slo& x : s.slos)
        if (!is_absolute(x))
            refuse({"the SLO ", str(x.text()),
                    " is refused: compare() has no baseline, and shows the ratios of its settings "
                    "by itself"});
    const long long rounds = s.repeats;
    if (rounds != 0 && !(rounds >= fewest_rounds && rounds <= max_rounds))
        refuse({printed("repeats is %lld: compare() takes %d to %d rounds, or is 0 for %d", rounds,
                        fewest_rounds, max_rounds, usual_rounds)});
}

/// The scenario of each setting: one repeat a round.
inline scenario scenario_of_a_setting(scenario s) {
    if (s.repeats == 0) s.repeats = usual_rounds;
    return s;
}

// ===== [E] curves over the load ==================================================================

/// One load, measured as a gate of its own, and the result of its verdicts.
struct judged_load {
    double load = 0;
    std::string gate{};
    carried shows = carried::open;
    std::string missed{};  // the first objective that failed
};

/// A point of the curve: a variant at a load.
struct curve_row {
    const judged_load& at;
    std::size_t gate = 0;  // index in the report
    const gate_report& of;
    const variant_figures& variant;
    bool is_baseline = false;
    double value(metric_id run_metric) const { return variant.run_value(run_metric); }
    metric_row row(metric_id m) const { return variant.row(m); }
    /// Tokens/s, as one user sees them.
    double speed() const { return 1 / row(metric_id::tpot).mean; }
};
/// Adds the rows of both variants, the candidate's first.
inline void add_rows(vector<curve_row>& rows, const judged_load& at, std::size_t gate,
                     const gate_report& of) {
    rows.push_back({at, gate, of, of.figures.candidate});
    if (!of.figures.baseline.empty()) rows.push_back({at, gate, of, of.figures.baseline, true});
}

/// The columns of a curve's tables. There is no ttft without streaming, and no output tokens if the
/// API generates nothing.
struct curve_columns {
    metric_id first = metric_id::ttft, tokens = metric_id::output_throughput;
    bool has_tokens = true, has_cost = false;
};
inline curve_columns columns_of_rows(const vector<curve_row>& rows) {
    curve_columns c;
    for (const curve_row& r : rows) {
        const planned_traffic& sent = *r.of.what.sent;
        if (!sent.scores.empty()) c.tokens = metric_id::input_throughput;
        if (!sent.scores.empty() || !sent.common.stream) {
            c.first = metric_id::e2e;
            c.has_tokens = false;
        }
        c.has_cost = c.has_cost || !std::isnan(r.value(metric_id::cost_per_million_tokens));
    }
    return c;
}
/// Returns the result of a load, or how its gate ended if it has none.
inline std::string shown_at(const curve_row& r) {
    return r.is_baseline                   ? "baseline"
           : r.at.shows != carried::open ? to_string(r.at.shows)
                                         : headline_text(r.of);
}

/// One value of each row over another.
struct drawn_line {
    std::string name{};
    vector<double> x{}, y{};
};
/// A curve over its load, where ends may be of a capacity, or one value over another with the load
/// beside each dot.
enum class drawn_over : unsigned char { load, value };
inline std::string curve_figure(const std::string& caption, const std::string& against,
                                const capacity_ends& ends, const vector<curve_row>& rows,
                                const char* x_unit, const char* y_unit,
                                const vector<drawn_line>& lines, drawn_over what) {
    const bool over_load = what == drawn_over::load;
    plot p({x_unit, over_load ? "zero" : "wide"}, {y_unit, "zero"});
    if (over_load && ends.low > 0 && ends.monotone()) p.add("stretch", {}, {ends.low, ends.high});
    for (const bool is_baseline : {true, false})
        for (const drawn_line& l : lines) {
            vector<curve_point> points;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                if (rows[i].is_baseline != is_baseline) continue;
                points.push_back({l.x[i], l.y[i]});
                p.dot(is_baseline                              ? "b"
                      : rows[i].at.shows == carried::holds  ? "pass"
                      : rows[i].at.shows == carried::misses ? "fail"
                                                            : "c",
                      points.back());
            }
            p.line(is_baseline ? "b" : "c", l.name, points);
            if (over_load && !points.empty())
                p.add("label", {l.name}, {points.back().x, points.back().y, 1});
        }
    for (const bool of_ends : {true, false})  // the ends' labels have precedence
        for (std::size_t i = 0; i < rows.size() && !over_load; ++i) {
            const double load = rows[i].at.load;
            const bool is_low = load == ends.low, is_high = load == ends.high;
            if (rows[i].is_baseline || of_ends != (is_low || is_high)) continue;
            p.add("label", {filled("{load}{is_carried? carried}{is_too_much? too much}",
                                   {{"load", load}, {"is_carried", is_low},
                                    {"is_too_much", is_high && !is_low}})},
                  {lines[0].x[i], lines[0].y[i]});
        }
    return p.figure(caption, "against " + against);
}
inline headline look_at(const curve_row& r) {
    return r.at.shows == carried::holds    ? headline::passed
           : r.at.shows == carried::misses ? headline::failed
                                           : headline_of(r.of);
}
/// The rows as a table. The page's links and badges are in it, too.
inline report_table curve_table(metric_id unit, const vector<curve_row>& rows) {
    const curve_columns c = columns_of_rows(rows);
    const std::string first = metric_name(c.first);
    report_table t{{"load", "", metric_name(c.tokens), "requests", first + " p50", first + " p90"},
                   2};
    if (c.has_tokens) t.head.insert(t.head.end(), {"tpot mean", "a user"});
    if (c.has_cost) t.head.push_back("a million tokens");
    for (const curve_row& r : rows) {
        const metric_row values = r.row(c.first);
        const auto of_run = [&](metric_id m) { return filling(m, r.value(m)); };
        t.add({{unit, r.at.load}});
        t.last().gate = r.gate + 1;
        t.append({shown_at(r)});
        if (r.is_baseline) t.last().look = "arm b";
        else t.last().badge = look_of(look_at(r));
        t.append({of_run(c.tokens), of_run(metric_id::request_throughput), {c.first, values.p50},
                  {c.first, values.p90}});
        if (c.has_tokens)
            t.append({{metric_id::tpot, r.row(metric_id::tpot).mean},
                      {metric_id::decode_speed, r.speed()}});
        if (c.has_cost) t.append({of_run(metric_id::cost_per_million_tokens)});
    }
    return t;
}
inline std::string curve_html(const std::string& title, const std::string& said, metric_id unit,
                              const capacity_ends& ends, const vector<curve_row>& rows) {
    const curve_columns columns = columns_of_rows(rows);
    vector<double> loads, tokens, p50, p90, tpot;
    bool both = false;
    for (const curve_row& r : rows) {
        both = both || r.is_baseline;
        loads.push_back(r.at.load);
        tokens.push_back(r.value(columns.tokens));
        p50.push_back(r.row(columns.first).p50);
        p90.push_back(r.row(columns.first).p90);
        tpot.push_back(r.row(metric_id::tpot).mean);
    }
    const bool in_users = unit == metric_id::capacity_in_users;
    const std::string first = metric_name(columns.first);
    const std::string rate = columns.tokens == metric_id::output_throughput ? "Output tokens/s"
                                                                            : "Input tokens/s";
    const auto over = [&](const std::string& what, const char* y, const vector<drawn_line>& lines) {
        return curve_figure(what, in_users ? "users" : "requests/s", ends, rows,
                            in_users ? "none" : "req/s", y, lines, drawn_over::load);
    };
    const auto rate_against = [&](const std::string& what, const vector<double>& x) {
        return curve_figure(rate, what, ends, rows, "seconds", "tok/s", {{"", x, tokens}},
                            drawn_over::value);
    };
    return filled("<section><h2>{title:x}</h2>\n{said}<div class=\"plots\">\n"
                  "{tpot_at}{first_at}{first_over}{tpot_over}{rate_over}</div>\n[<p "
                  "class=\"note\">{key}</p>\n]{table}</section>\n",
                  {{"title", title}, {"said", said},
                   {"tpot_at", columns.has_tokens ? rate_against("tpot mean", tpot) : ""},
                   {"first_at", rate_against(first + " p90", p90)},
                   {"first_over",
                    over(first, "seconds", {{"p90", loads, p90}, {"p50", loads, p50}})},
                   {"tpot_over",
                    columns.has_tokens ? over("tpot", "seconds", {{"mean", loads, tpot}}) : ""},
                   {"rate_over", over(rate, "tok/s", {{"", loads, tokens}})},
                   {"key", both ? variants_key : ""},
                   {"table", page_table("By load", curve_table(unit, rows))}});
}

// ===== [E] texts on several settings =============================================================

/// A comparison in reports, beside the gates of its settings.
struct comparison_report {
    std::string name{}, file{};
    int line = 0;
    settings_comparison found{};
};

inline std::string names_of(const settings_comparison& c, const vector<std::size_t>& which) {
    vector<std::string> names;
    for (const std::size_t i : which) names.push_back(c.settings[i].name);
    return enumerated(names);
}

/// Pairs without a difference: "a and b do not differ significantly". If no pair of three or more
/// settings differs, the settings are listed once.
inline std::string alike_text(const settings_comparison& c, const compared_statistic& s) {
    vector<std::size_t> members;
    vector<std::string> pairs;
    for (const setting_ratio& r : s.pairs) {
        if (r.significant()) continue;
        pairs.push_back(names_of(c, {r.first, r.second}));
        for (const std::size_t i : {r.first, r.second})
            if (std::find(members.begin(), members.end(), i) == members.end()) members.push_back(i);
    }
    if (pairs.empty()) return {};
    std::sort(members.begin(), members.end());
    if (members.size() > 2 && pairs.size() == c.settings.size() * (c.settings.size() - 1) / 2)
        return "no two settings differ significantly";
    if (members.size() * (members.size() - 1) / 2 == pairs.size())
        return names_of(c, members) + " do not differ significantly";
    std::string out;
    for (const std::string& p : pairs) fill(out, "{is_first?no significant difference between |, }"
                                            "{pair}", {{"is_first", out.empty()}, {"pair", p}});
    return out;
}
/// Settings by the text on them, in order of first use.
using said_of_settings = vector<std::pair<std::string, vector<std::size_t>>>;
inline void say_of(said_of_settings& all, const std::string& words, std::size_t setting) {
    const auto is_same = [&](const auto& said) { return said.first == words; };
    found_or_added(all, is_same, {words, {}}).second.push_back(setting);
}
/// "a is x; b and c are y".
inline std::string said_text(const settings_comparison& c, const said_of_settings& all) {
    std::string out;
    for (const auto& [words, which] : all)
        fill(out, "{;}{names} {is_one?is|are} {words}",
             {{"names", names_of(c, which)}, {"is_one", which.size() == 1}, {"words", words}});
    return out;
}

/// If none is best: "a and b are better than c".
inline std::string better_text(const settings_comparison& c, const compared_statistic& s) {
    said_of_settings said;
    for (std::size_t a = 0; a < s.settings.size(); ++a) {
        vector<std::size_t> beaten;
        for (std::size_t b = 0; b < s.settings.size(); ++b)
            if (s.is_better(a, b)) beaten.push_back(b);
        if (!beaten.empty()) say_of(said, "better than " + names_of(c, beaten), a);
    }
    return said_text(c, said);
}
/// "a is best, then b, then c", if each differs significantly from all others.
inline std::string order_text(const settings_comparison& c, const compared_statistic& s) {
    vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < s.settings.size(); ++i)
        if (s.settings[i].fault.empty())
            order.emplace_back((s.less_is_better() ? 1 : -1) * s.settings[i].typical, i);
    std::sort(order.begin(), order.end());
    std::string out;
    for (const auto& [value, i] : order)
        fill(out, out.empty() ? "{name} is best" : ", then {name}", {{"name", c.settings[i].name}});
    return out;
}

/// Settings that only this statistic leaves out, and why.
inline std::string left_out_text(const settings_comparison& c, const compared_statistic& s) {
    said_of_settings said;
    for (std::size_t i = 0; i < s.settings.size(); ++i)
        if (const std::string& why = s.settings[i].fault; !why.empty() &&
                                                          c.settings[i].excluded.empty())
            say_of(said, "not compared: " + why, i);
    return said_text(c, said);
}

/// The result of a statistic, without its name: "a is best; b and c do not differ significantly".
inline std::string shown_text(const settings_comparison& c, const compared_statistic& s) {
    if (!may_be_relative(s.what.metric)) return "a fraction is shown and not compared";
    const std::string alike = alike_text(c, s), left_out = left_out_text(c, s);
    std::string best, by_client;
    if (s.pairs.empty()) best = left_out.empty() ? "nothing to compare" : "";
    else if (alike.empty()) best = order_text(c, s);
    else best = s.best() ? c.settings[*s.best()].name + " is best" : better_text(c, s);
    for (const setting_ratio& r : s.pairs)
        if (r.may_be_the_clients)
            fill(by_client,
                 "{is_first?the client was stalled and may have made the difference between |, }"
                 "{pair}",
                 {{"is_first", by_client.empty()}, {"pair", names_of(c, {r.first, r.second})}});
    return joined_texts({best, alike, by_client, left_out}, "; ");
}
inline std::string sentence_of(const settings_comparison& c, const compared_statistic& s) {
    return filled("{name}: {shown}", {{"name", printable(str(s.what.name))}, {"shown", shown_text(c, s)}});
}

/// Results of the statistics before `end`, one sentence for equal ones.
inline vector<std::string> sentences_of(const settings_comparison& c, std::size_t end) {
    vector<std::pair<std::string, std::string>> shown;  // result, statistics
    for (std::size_t i = 0; i < end; ++i) {
        const std::string words = shown_text(c, c.statistics[i]);
        const auto is_same = [&](const auto& s) { return s.first == words; };
        fill(found_or_added(shown, is_same, {words, ""}).second, "{,}{name}",
             {{"name", c.statistics[i].what.name}});
    }
    vector<std::string> sentences;
    for (const auto& [words, names] : shown) sentences.push_back(filled(
        "{names}: {words}", {{"names", names}, {"words", words}}));
    return sentences;
}

/// "3 settings in turns, 4 rounds", "3 settings in turns, 2 of 4 rounds".
inline std::string rounds_text(const settings_comparison& c) {
    return filled(
        "{settings} settings in turns, [{rounds} of ]{planned} rounds",
                  {{"settings", c.settings.size()},
                   {"rounds", c.rounds < c.planned_rounds ? c.rounds : 0},
                   {"planned", c.planned_rounds}});
}
/// Notes on the table, one sentence each.
inline vector<std::string> notes_on(const settings_comparison& c) {
    vector<std::string> notes;
    for (const reported_setting& s : c.settings)
        if (!s.excluded.empty())
            notes.push_back(filled("{name} is not compared: {excluded}",
                                   {{"name", s.name}, {"excluded", s.excluded}}));
    if (!c.stopped.empty()) notes.push_back(c.stopped);
    return notes;
}
/// The error rate of the table.
inline std::string intervals_text(const settings_comparison& c) {
    const std::size_t pairs = c.settings.size() * (c.settings.size() - 1) / 2;
    return filled("ratios to {first}, of the typical round; "
                  "{is_one?an interval holds|the intervals of all }[{pairs} pairs of a row hold "
                  "together] in 95 % of all cases{is_one?| (Bonferroni)}",
                  {{"first", c.settings[0].name}, {"is_one", pairs == 1},
                   {"pairs", pairs == 1 ? 0 : pairs}});
}

/// The results of the objectives' statistics on one line, or of all statistics if there are none.
inline std::string comparison_line(const settings_comparison& c) {
    std::string shown;
    for (const std::string& s : sentences_of(c, c.asked > 0 ? c.asked : c.statistics.size()))
        fill(shown, "{;}{note}", {{"note", s}});
    std::string line = filled("{rounds}[: {shown}]",
                              {{"rounds", rounds_text(c)}, {"shown", shown}});
    for (const std::string& note : notes_on(c)) fill(line, "; {note}", {{"note", note}});
    return line;
}

/// "1.04 [0.99, 1.09]".
inline std::string ratio_text(const estimate_t& r) {
    return printed(r.low < 0.1 ? "%.3g [%.3g, %.3g]" : "%.2f [%.2f, %.2f]", r.value, r.low, r.high);
}
inline std::string listed(const vector<double>& values) {
    std::string out;
    for (const double v : values) fill(out, "{,}{value:.6g}", {{"value", v}});
    return out;
}
/// The line with the arithmetic of every ratio.
inline std::string comparison_explained(const settings_comparison& c) {
    std::string out = filled("{comparison_line}\n{intervals}",
                             {{"comparison_line", comparison_line(c)},
                              {"intervals", intervals_text(c)}});
    for (const compared_statistic& s : c.statistics) {
        fill(out, "\n{sentence}", {{"sentence", sentence_of(c, s)}});
        for (std::size_t i = 0; i < s.settings.size(); ++i)
            fill(out, "\n  {name}: {typical}",
                 {{"name", c.settings[i].name},
                  {"typical", {s.what.metric, s.settings[i].typical}}});
        for (const setting_ratio& r : s.pairs)
            fill(out,
                 "\n  {second} / {first}: {ratio}; ln ratios {logs}; mean {mean:.6g}, sd {sd:.6g} "
                 "({spread}), df {df:.0f}, standard error {se:.6g}, t {t:.4f}",
                 {{"second", c.settings[r.second].name}, {"first", c.settings[r.first].name},
                  {"ratio", ratio_text(*s.ratio(r.second, r.first))}, {"logs", listed(r.logs)},
                  {"mean", r.at.mean}, {"sd", r.at.sd}, {"spread", to_string(r.at.spread)},
                  {"df", r.at.df}, {"se", r.at.se}, {"t", r.at.pass_t}});
    }
    return out;
}

/// The table of the settings from `from` on and before `end`, beside the first one.
inline report_table settings_table(const settings_comparison& c, std::size_t from = 1,
                                   std::size_t end = std::string::npos) {
    vector<std::size_t> which{0};
    for (std::size_t i = from; i < std::min(end, c.settings.size()); ++i) which.push_back(i);
    report_table t{{""}};
    for (const std::size_t i : which) t.head.push_back(c.settings[i].name);
    for (std::size_t k = 0; k < c.objectives.size(); ++k) {
        t.add({c.objectives[k].text()});
        for (const std::size_t i : which) {
            const bool is_judged = k < c.settings[i].verdicts.size();
            const char* word = is_judged ? to_string(c.settings[i].verdicts[k]) : nullptr;
            t.append({word ? word : ""});
            t.last().badge = word;
        }
    }
    for (const compared_statistic& s : c.statistics) {
        t.add({s.what.name});
        for (const std::size_t i : which) {
            t.append({{s.what.metric, s.settings[i].typical}});
            const auto r = i > 0 ? s.ratio(i, 0) : std::nullopt;
            if (!r) continue;
            t.last().ratio = ratio_text(*r);
            t.last().is_marked = s.pair(i, 0)->significant();
        }
    }
    return t;
}

inline std::string comparison_text(const comparison_report& r) {
    constexpr std::size_t beside = 3;  // side by side; more are wider than a terminal
    const settings_comparison& c = r.found;
    std::string out = filled("\n{name}: {rounds}\n",
                             {{"name", r.name}, {"rounds", rounds_text(c)}});
    for (std::size_t from = 1; from < c.settings.size(); from += beside)
        fill(out, "\n{console}",
             {{"console", console_table(settings_table(c, from, from + beside), 0)}});
    fill(out, "  * significant; {intervals}\n\n", {{"intervals", intervals_text(c)}});
    for (const std::string& s : sentences_of(c, c.statistics.size())) fill(out, "  {line}\n",
        {{"line", s}});
    for (const std::string& note : notes_on(c)) fill(out, "  {line}\n", {{"line", note}});
    return out;
}

// ===== [E] comparisons and curves in the files of the program ====================================

inline void fields_of(field_visitor& v, setting_ratio& r, settings_comparison& c) {
    std::string of = c.settings[r.second].name, to = c.settings[r.first].name;
    v.text({"of"}, of);
    v.text({"to"}, to);
    v.number({"ratio"}, r.ratio);
    v.interval({"interval"}, r.low, r.high);
    bool is_significant = r.significant();
    v.flag({"significant",
            "the interval excludes 1, and the client's delays cannot have done that"},
           is_significant);
    v.flag({"may_be_the_clients"}, r.may_be_the_clients);
    v.numbers({"log_ratios", "one a round"}, r.logs, any_number);
    v.number({"sd"}, r.at.sd);
    v.choice({"spread", "where the sd comes from"}, r.at.spread, spread_of::quiet);
    v.number({"df"}, r.at.df);
    v.number({"standard_error"}, r.at.se);
    v.number({"t", "half of the interval's logarithm in standard errors"}, r.at.pass_t);
}

inline void fields_of(field_visitor& v, compared_statistic& s, settings_comparison& c) {
    const auto best = s.best();
    std::string metric = metric_name(s.what.metric), shows = shown_text(c, s);
    std::string best_name = best ? c.settings[*best].name : "";
    bool less_is_better = s.less_is_better();
    v.text({"statistic"}, s.what.name);
    v.text({"metric"}, metric);
    v.flag({"less_is_better"}, less_is_better);
    v.text({"best",
            "the setting that differs significantly from every other on the good side, \"\": none"},
           best_name);
    v.text({"shows", "the same for all settings in words"}, shows);
    std::size_t i = 0;
    v.list({"settings"}, s.settings, [&](setting_value& one) {
        std::string name = c.settings[i++].name;
        v.text({"name"}, name);
        v.number({"estimate", "geometric mean of the rounds; of a fraction that of all requests"},
                 one.typical, any_number);
        v.interval({"interval", "of 95 % by itself"}, one.low, one.high);
        v.text({"fault", "why this statistic of it is compared with no other"}, one.fault);
    });
    v.list({"ratios", "of each two settings that can be compared"}, s.pairs,
           [&](setting_ratio& r) { fields_of(v, r, c); });
}

/// Each setting is also one of the gates.
inline void fields_of(field_visitor& v, comparison_report& r) {
    settings_comparison& c = r.found;
    v.text({"name"}, r.name);
    v.text({"file"}, r.file);
    v.whole({"line"}, r.line);
    v.whole({"rounds", "that were measured on all settings that are compared"}, c.rounds);
    v.whole({"rounds_planned"}, c.planned_rounds);
    v.text({"stopped", "why there are fewer"}, c.stopped);
    double level = false_difference;
    v.number({"false_difference", "the error level of all intervals of a statistic together"},
             level);
    v.list({"settings"}, c.settings, [&](reported_setting& s) {
        std::string gate = r.name + " / " + s.name;
        v.text({"name"}, s.name);
        v.text({"gate", "the name of its gate"}, gate);
        v.text({"excluded", "why it is compared on nothing"}, s.excluded);
    });
    v.list({"statistics"}, c.statistics, [&](compared_statistic& s) { fields_of(v, s, c); });
}

inline std::string comparison_md(const comparison_report& r) {
    const settings_comparison& c = r.found;
    std::string out = filled("### {name:m}: {rounds}\n\n{table}\nBold: significantly different "
                             "from {first:m}; {intervals:m}.\n\n",
                             {{"name", r.name}, {"rounds", rounds_text(c)},
                              {"table", markdown_table(settings_table(c))},
                              {"first", c.settings[0].name}, {"intervals", intervals_text(c)}});
    for (const std::string& s : sentences_of(c, c.statistics.size())) fill(out, "- {line:m}\n",
        {{"line", s}});
    for (const std::string& note : notes_on(c)) fill(out, "\n{note:c}\n", {{"note", note}});
    return out + "\n";
}

/// Draws one statistic of all settings, "" without a value.
inline std::string settings_figure(const settings_comparison& c, const compared_statistic& s) {
    plot p({"named", "names"}, {plot_unit_of(facts_of(s.what.metric).unit), "wide"});
    const auto best = s.best();
    for (std::size_t i = 0; i < s.settings.size(); ++i) {
        const setting_value& v = s.settings[i];
        const double x = static_cast<double>(i + 1);
        p.add("name", {c.settings[i].name}, {x});
        p.add("upright", {"span"}, {x, v.low, x, v.high});
        p.dot(best == i ? "pass" : v.fault.empty() ? "c" : "open", {x, v.typical});
    }
    return p.figure(str(s.what.name), filled("[{best} is best]",
                                             {{"best", best ? c.settings[*best].name : ""}}));
}

inline std::string comparisons_html(const vector<comparison_report>& all) {
    std::string h;
    for (const comparison_report& r : all) {
        const settings_comparison& c = r.found;
        fill(h, "<section><h2>{name:x}</h2>\n<p class=\"why\">{rounds}</p>\n",
             {{"name", r.name}, {"rounds", rounds_text(c)}});
        for (const std::string& note : notes_on(c)) fill(h, "<p class=\"note\">{note:x}.</p>\n",
            {{"note", note}});
        fill(h, "{table}<p class=\"note\">Bold: significantly different from {first:x}; "
             "{intervals:x}.</p>\n<ul>\n",
             {{"table", page_table("Settings of " + r.name, settings_table(c))},
              {"first", c.settings[0].name}, {"intervals", intervals_text(c)}});
        for (const std::string& s : sentences_of(c, c.statistics.size()))
            fill(h, "<li>{line:x}</li>\n", {{"line", s}});
        std::string figures;
        for (const compared_statistic& s : c.statistics) figures += settings_figure(c, s);
        fill(h, "</ul>\n<div class=\"charts\">\n<p class=\"note\">A dot is the typical round of a "
             "setting in its own interval of 95 %; green where it is shown to be best, hollow "
             "where it is not compared. Two settings can differ significantly although these "
             "intervals overlap, by their ratios within the rounds.</p>\n<div "
             "class=\"plots\">\n{figures}</div>\n</div>\n</section>\n", {{"figures", figures}});
    }
    return h;
}

/// A curve in reports, beside the gates of its loads, which rise.
struct curve_report {
    std::string name{}, file{};
    int line = 0;
    metric_id unit = metric_id::capacity_in_rate;
    vector<judged_load> loads{};
};

/// Whether a load was shown to meet all objectives, or to miss one.
inline judged_load judged_load_of(double load, const std::string& gate,
                                  const list<slo_verdict>& verdicts) {
    judged_load p{load, gate, carried::open, ""};
    bool has_own = false, holds = true;
    for (const slo_verdict& v : verdicts) {
        if (v.objective.is_advisory) continue;
        if (v.outcome == verdict::fail && p.missed.empty())
            p.missed = str(v.objective.statistic.name);
        has_own = has_own || is_own_objective(v);
        holds = holds && v.outcome == verdict::pass;
    }
    if (!p.missed.empty()) p.shows = carried::misses;
    else if (has_own && holds) p.shows = carried::holds;
    return p;
}
/// The interval of the capacity. All loads up to its low end were shown to meet the objectives, all
/// from its high end to miss one. An end is wrong only if the verdict next to the capacity is (a
/// fixed sequence of tests; Maurer, Hothorn, Lehmacher 1995), as often as a single verdict.
inline capacity_ends ends_of(const curve_report& c) {
    capacity_ends s;
    for (const judged_load& p : c.loads) {
        if (p.shows != carried::holds) break;
        s.low = p.load;
    }
    for (std::size_t i = c.loads.size(); i-- > 0 && c.loads[i].shows == carried::misses;)
        s.high = c.loads[i].load;
    return s;
}
/// The objective that limits the capacity, "" if none is shown to.
inline std::string limit_of(const curve_report& c) {
    const double high = ends_of(c).high;
    for (const judged_load& p : c.loads)
        if (p.load == high) return p.missed;
    return {};
}
/// Returns "capacity in [8, 12] req/s, limited by p90(ttft), 5 loads".
inline std::string curve_line(const curve_report& c) {
    return filled("{capacity}, {loads} load{loads:s}",
                  {{"capacity", capacity_text(c.unit, ends_of(c), limit_of(c))},
                   {"loads", c.loads.size()}});
}

/// Rows of loads that have a gate.
inline vector<curve_row> rows_of(const curve_report& c, const vector<gate_report>& gates) {
    vector<curve_row> rows;
    for (const judged_load& p : c.loads)
        for (std::size_t i = 0; i < gates.size(); ++i)
            if (gates[i].what.name == p.gate) add_rows(rows, p, i, gates[i]);
    return rows;
}

inline std::string curve_text(const curve_report& c, const vector<gate_report>& gates) {
    return filled(
        "\n{name}: {curve_line}\n\n{console}",
                  {{"name", c.name}, {"curve_line", curve_line(c)},
                   {"console", console_table(curve_table(c.unit, rows_of(c, gates)), 0)}});
}
inline std::string curve_md(const curve_report& c, const vector<gate_report>& gates) {
    return filled("### {name:m}: {curve_line:m}\n\n{markdown}\n",
                  {{"name", c.name}, {"curve_line", curve_line(c)},
                   {"markdown", markdown_table(curve_table(c.unit, rows_of(c, gates)))}});
}

/// curves.csv: a line for each variant and load, SI units, empty without a value.
inline std::string curves_csv(const vector<curve_report>& curves,
                              const vector<gate_report>& gates) {
    constexpr metric_id of_run[] = {metric_id::output_throughput, metric_id::input_throughput,
                                    metric_id::request_throughput, metric_id::error_rate,
                                    metric_id::cost_per_million_tokens};
    constexpr metric_id of_requests[] = {metric_id::ttft, metric_id::tpot, metric_id::e2e};
    std::string out = "curve,load,unit,arm,outcome,shows";
    for (const metric_id m : of_run) fill(out, ",{metric}", {{"metric", metric_name(m)}});
    for (const metric_id m : of_requests)
        for (const char* of : {"mean", "p50", "p90", "p99"})
            fill(out, ",{statistic}({metric})", {{"statistic", of}, {"metric", metric_name(m)}});
    out += ",tokens_per_s_of_a_user\n";
    const auto quoted = [](const std::string& s) {
        std::string q = "\"";
        for (const char x : printable(s, s.size() * 4 + 4))
            q += x == '"' ? "\"\"" : std::string(1, x);
        return q + "\"";
    };
    const auto number = [](double v) {
        return std::isfinite(v) ? "," + printed("%.9g", v) : std::string(",");
    };
    for (const curve_report& c : curves)
        for (const curve_row& r : rows_of(c, gates)) {
            fill(out, "{curve}{load},{is_of_users?users|requests/s}"
                 ",{is_baseline?baseline|candidate},{outcome},{shows}",
                 {{"curve", quoted(c.name)}, {"load", number(r.at.load)},
                  {"is_of_users", c.unit == metric_id::capacity_in_users},
                  {"is_baseline", r.is_baseline}, {"outcome", to_string(headline_of(r.of))},
                  {"shows", r.at.shows == carried::open ? "" : to_string(r.at.shows)}});
            for (const metric_id m : of_run) out += number(r.value(m));
            for (const metric_id m : of_requests) {
                const metric_row row = r.row(m);
                for (const double v : {row.mean, row.p50, row.p90, row.p99}) out += number(v);
            }
            out += number(r.speed()) + "\n";
        }
    return out;
}

/// In result.json. Each load is also one of the gates.
inline void fields_of(field_visitor& v, curve_report& c) {
    capacity_ends ends = ends_of(c);
    std::string unit = c.unit == metric_id::capacity_in_users ? "users" : "requests/s";
    std::string limiting = limit_of(c), said = curve_line(c);
    v.text({"name"}, c.name);
    v.text({"file"}, c.file);
    v.whole({"line"}, c.line);
    v.text({"unit", "of its loads: requests/s or users"}, unit);
    v.number({"low", "the highest load up to which all were shown to hold the objectives, 0: none"},
             ends.low, rate_range);
    v.number({"high", "the lowest load from which on all were shown to miss one, null: none"},
             ends.high, {0, max_rate, infinity});
    v.text({"limiting_objective"}, limiting);
    v.text({"shows", "the same in words"}, said);
    v.list({"loads"}, c.loads, [&](judged_load& p) {
        v.number({"load"}, p.load, rate_range);
        v.text({"gate", "the name of its gate"}, p.gate);
        v.choice({"shows", "by its own verdicts"}, p.shows, carried::misses);
    });
}

class comparisons_and_curves : public program_section {
public:
    explicit comparisons_and_curves(vector<comparison_report> some = {},
                                    vector<curve_report> more = {})
        : comparisons(std::move(some)), curves(std::move(more)) {}
    /// Changed only through the session.
    static comparisons_and_curves& of_this_program() {
        static comparisons_and_curves* const all = new comparisons_and_curves;  // outlives statics
        return *all;
    }
    vector<comparison_report> comparisons;
    vector<curve_report> curves;

    void fields(field_visitor& v) override {
        v.list({"comparisons", "several settings of a server, measured in turns on one trace; "
                               "of compare()", if_any},
               comparisons, [&](comparison_report& c) { fields_of(v, c); });
        v.list({"curves", "one load after the other, of curve()", if_any}, curves,
               [&](curve_report& c) { fields_of(v, c); });
    }
    vector<std::string> tables(const vector<gate_report>& gates) const override {
        vector<std::string> all;
        for (const comparison_report& r : comparisons) all.push_back(comparison_md(r));
        for (const curve_report& c : curves) all.push_back(curve_md(c, gates));
        return all;
    }
    std::string html(const vector<gate_report>& gates) const override {
        std::string h = comparisons_html(comparisons);
        for (const curve_report& c : curves)
            h += curve_html(
                c.name,
                filled(
                    "<p class=\"why\">{curve_line:x}.</p>\n<p class=\"note\">Up and to the left "
                       "is better. A dot is a load: green where it was shown to hold all "
                       "objectives, red where it was shown to miss one; the grey stretch is the "
                       "capacity.</p>\n", {{"curve_line", curve_line(c)}}),
                c.unit, ends_of(c), rows_of(c, gates));
        return h;
    }
    vector<std::pair<std::string, std::string>> files(
        const vector<gate_report>& gates) const override {
        if (curves.empty()) return {};
        return {{"curves.csv", curves_csv(curves, gates)}};
    }
};

// ===== [E] several settings of a server, measured in turns =======================================

/// One setting: its server, its part of the plan and its measurements.
struct setting_under_test {
    std::string name{};
    int number = 0;  // of its gate
    live_target server;
    bool is_fresh = false;  // started again for each turn, or a model
    measured_gate all{};
    std::string lost{};  // why it has no more turns
    gate_outcome lost_as = gate_outcome::invalid;
    bool is_missing = false;  // no server was there
    bool is_known = false;    // it was running once
    long long took_ns = 0;    // by its turns, with its server's starts
    bool has_turns() const { return lost.empty(); }
};

class settings_run {
public:
    /// `all`: in the order of the scenario. `key_is_for`: the URL whose host gets LLMBENCH_API_KEY,
    /// "" for that of the first endpoint. The arguments must outlive this.
    settings_run(vector<setting_under_test>& all, const plan& as_a_whole, const run_mode& mode,
                 std::string key_is_for, progress_mode progress)
        : all_(all),
          whole_(as_a_whole),
          mode_(mode),
          rounds_(all.front().all.what.judged->max_repeats),
          positions_(rounds_),
          meter_({.each_s = seconds_of_one(as_a_whole), .loads = {loads(), loads()}}, progress,
                 surroundings_of_program().style()) {
        for (setting_under_test& s : all_) {
            static_cast<load_conditions&>(s.all.seen) = load_conditions_of(s.all.what);
            s.all.seen.pairs_are_fresh = s.is_fresh;
            s.all.judged_by = parameters_asked(s.all.what, mode);
            if (key_is_for.empty()) key_is_for = s.server.url_of_endpoint();
            s.server.takes_key_of(key_is_for);
        }
    }
    /// Until all rounds are measured, the time is spent, or no setting is left. A round that the
    /// client had too great a part in is measured again, on all settings.
    void measure() {
        meter_.say(printed("\n%s\n  ", whole_.name.c_str()) + plan_text(whole_) +
                   printed("; %zu settings in turns, %d rounds", all_.size(), rounds_) +
                   time_of_all() + "\n");
        bool in_time = true;
        for (setting_under_test& s : all_)
            if (in_time && !s.server.ends_after_turn()) in_time = bring_up(s);
        check_servers();
        for (int at = next_position(); at >= 0; at = next_position()) {
            const long long began = now_ns();
            if (!in_time || is_out_of_time() || !measure_round(at)) {
                note_end_of_time();
                break;
            }
            slowest_ns_ = std::max(slowest_ns_, now_ns() - began);
        }
        if (stop_asked.load()) note_interruption();
        for (setting_under_test& s : all_) s.all.found = analyse(s.all.seen, s.all.judged_by);
    }

private:
    /// In all turns of all settings.
    double loads() const { return rounds_ * static_cast<double>(all_.size()); }
    std::string time_of_all() const {
        const double all = seconds_of_one(whole_) * loads();
        return all > 0 ? ", " + span_text(all, all) + of_virtual_time() : std::string();
    }
    /// Returns the next round to measure; -1: none.
    int next_position() {
        if (stop_asked.load() || !is_anything_left()) return -1;
        const int position = positions_.next(measured_rounds());
        if (position < rounds_) return position;
        for (setting_under_test& s : all_) {
            if (!s.has_turns()) continue;
            s.all.found = analyse(s.all.seen, s.all.judged_by);
            if (s.all.found.by_client && set_aside(*s.all.found.by_client))
                return positions_.next(measured_rounds());
        }
        return -1;
    }
    bool is_anything_left() const {
        return any_of(all_, [](const setting_under_test& s) { return s.has_turns(); });
    }
    /// The number of complete rounds, equal for all settings that still have turns.
    int measured_rounds() const {
        for (const setting_under_test& s : all_)
            if (s.has_turns()) return static_cast<int>(s.all.seen.candidate.size());
        return 0;
    }
    /// As for a gate's repeats, but the round is set aside for all settings, because they are
    /// compared by rounds.
    bool set_aside(const client_error& bias) {
        const int position = static_cast<int>(bias.repeat);
        if (position >= measured_rounds() || !positions_.has_another(measured_rounds()) ||
            is_out_of_time())
            return false;
        positions_.set_aside(
            seen_where([](const setting_under_test& s) { return s.has_turns(); }), bias.repeat,
            described(bias.why));
        meter_.say(printed("  round %d is measured again: ", position + 1) + described(bias.why) +
                   "\n");
        return true;
    }
    /// Returns false if the time ended in between: then the round counts for no setting.
    bool measure_round(int position) {
        const int number = positions_.begin();
        bool whole = true;
        for (const std::size_t i : turns_of_round(all_.size(), position))
            if (whole && all_[i].has_turns() && !stop_asked.load()) {
                const long long began = now_ns();
                whole = take_turn(all_[i], position, number);
                all_[i].took_ns += now_ns() - began;
            }
        positions_.end(
            seen_where([&](const setting_under_test& s) { return !whole || s.has_turns(); }),
            whole ? position : repeat_positions::dropped, number);
        return whole;
    }
    template <class F>
    vector<measurements*> seen_where(F&& f) {
        vector<measurements*> seen;
        for (setting_under_test& s : all_)
            if (f(s)) seen.push_back(&s.all.seen);
        return seen;
    }
    /// A process runs only in its turn: two may not fit side by side. Returns false if the time
    /// ended before the turn was over.
    bool take_turn(setting_under_test& s, int position, int number) {
        const slot_host host{.what = s.all.what,
                             .candidate = s.server,
                             .gate = s.number,
                             .meter = &meter_,
                             .show = mode_.answers,
                             .are_models = mode_.model != nullptr};
        const slot turn{.number = number,
                        .name = printed("round %d of %d, ", position + 1, rounds_) + s.name,
                        .deadline_ns = mode_.deadline_ns};
        if (s.server.ends_after_turn() && !bring_up(s)) return false;
        if (!s.has_turns()) return true;
        variant_repeats variants = orders_of(host, turn);
        if (!make_ready(s, turn, variants)) return false;
        if (!s.has_turns()) return true;
        slot_seen seen = run_slot(turn, variants);
        for (std::string& note : seen.notes) s.all.seen.notes.push_back(std::move(note));
        s.all.seen.candidate.push_back(std::move(seen.repeats[0]));
        if (s.server.ends_after_turn()) s.server.end();
        if (!seen.is_whole) return false;
        if (const cause why = fault_of_gate(s.all.seen)) {
            s.lost = described(why);
            s.server.end();
            meter_.say("  " + s.name + " has no more turns: " + s.lost + "\n");
        }
        return true;
    }

    void lose(setting_under_test& s, gate_outcome as, const std::exception& e,
              const char* told = "it did not start again: ") {
        s.lost = reason_in(e);
        s.lost_as = as;
        s.server.end();
        meter_.say("  " + s.name + ": " + s.lost + "\n");
        if (!s.all.seen.candidate.empty())
            s.all.seen.candidate.change_last(
                [&](repeat_data& d) { d.target_gone = told + s.lost; });
    }
    bool make_ready(setting_under_test& s, const slot& turn, const variant_repeats& variants) {
        try {
            return detail::make_ready(turn, variants);
        } catch (const std::runtime_error& e) {
            lose(s, gate_outcome::invalid, e, "");
        }
        return true;
    }
    /// A missing server leaves the comparison. Returns false if the time ended before.
    bool bring_up(setting_under_test& s) {
        try {
            return is_in_time(mode_.deadline_ns, [&] { find(s); });
        } catch (const std::invalid_argument& e) {
            lose(s, gate_outcome::refused, e);
        } catch (const no_server& e) {
            s.is_missing = !s.is_known && !stop_asked.load();
            lose(s, gate_outcome::invalid, e);
        } catch (const std::exception& e) {
            lose(s, gate_outcome::invalid, e);
        }
        return true;
    }
    void find(setting_under_test& s) {
        s.server.bring_up(seconds_left());
        if (std::exchange(s.is_known, true)) return;
        wake(s);
        check_images(s.all.what, *s.server.load().api);
        check_room(s);
        learn_of(s.server, *s.all.what.sent, seconds_left());
        s.server.check_reports_metrics(s.all.what.judged->slos, s.all.what.sent->common);
        s.all.target = s.server.facts();
        for (const std::string& note : notes_on_profiles(s.server, s.number)) {
            meter_.say("  note: " + note + "\n");
            s.all.seen.notes.push_back(note);
        }
        meter_.say("  " + s.name + ": " + target_text(s.all.target) +
                   (makes_up_prompts(s.all.what)
                        ? "; " + fit_text(s.all.target.tokens, shortest_prompt(s.all.what))
                        : "") +
                   "\n");
        for (const std::string& note : s.all.target.notes)
            if (session::of_this_program().is_news(note))
                meter_.say("  note: " + note + "\n");
    }
    void wake(setting_under_test& s) const {
        s.server.wake(s.all.what.sent->common, seconds_left());
    }
    /// Settings are compared on the same sessions, those that fit all.
    static void check_room(const setting_under_test& s) {
        const plan fitted = without_long_sessions(
            s.all.what, [&](const std::string& model) { return s.server.room_of(model); });
        if (trace_hash(fitted) != trace_hash(s.all.what))
            refuse({"its server has no room for all sessions, which are the same of all settings: ",
                    fitted.sent->workload_text, "; give workload.max_context"});
    }
    /// Two settings on one server cannot differ.
    void check_servers() const {
        for (std::size_t a = 0; a < all_.size(); ++a)
            for (std::size_t b = a + 1; b < all_.size(); ++b) {
                if (!all_[a].is_known || !all_[b].is_known) continue;
                if (!all_[a].has_turns() || !all_[b].has_turns()) continue;  // one is lost
                wake(all_[a]);  // which may be asked
                const live_target &one = all_[a].server, &other = all_[b].server;
                if (are_one_server(one.load(), other.load()))
                    refuse({"settings \"", all_[a].name, "\" and \"", all_[b].name,
                            "\" are one server at ", printable(one.facts().url),
                            ": give them URLs, models, paths or headers of their own"});
                if (lead_to_one_process(one.load(), one.pages(), other.load(), other.pages(),
                                        all_[a].all.what.sent->common))
                    refuse({one_process_text("setting \"" + all_[a].name + "\"", one.facts().url,
                                             "setting \"" + all_[b].name + "\"", other.facts().url),
                            " and differ in nothing: forward another port"});
            }
    }

    double seconds_left() const { return seconds_until(mode_.deadline_ns); }
    bool is_out_of_time() const {
        return mode_.deadline_ns > 0 && now_ns() + needed_ns() > mode_.deadline_ns;
    }
    long long needed_ns() const {
        const double each = expected_seconds(whole_) * static_cast<double>(all_.size());
        return std::max(slowest_ns_, ns_of(each));
    }
    /// Undecided verdicts get another reason.
    void note_end_of_time() {
        const std::string why =
            budget_text(mode_.time_budget_s, seconds_left(),
                        static_cast<double>(needed_ns()) * 1e-9, measured_rounds(), rounds_,
                        "round");
        for (setting_under_test& s : all_)
            if (s.has_turns()) s.all.seen.stopped = why;
    }
    /// After an interruption no setting is complete.
    void note_interruption() {
        for (setting_under_test& s : all_) {
            if (!s.all.seen.candidate.empty())
                s.all.seen.candidate.change_last([](repeat_data& d) { d.interrupted = true; });
            else if (s.lost.empty()) s.lost = "the run was interrupted before its first turn";
        }
    }

    vector<setting_under_test>& all_;
    const plan& whole_;
    const run_mode& mode_;
    const int rounds_;
    repeat_positions positions_;
    long long slowest_ns_ = 0;
    progress_meter meter_;
};

// ===== [E] compare() and curve(), from a scenario to the result ==================================

/// Shared by all copies of a result; never changes.
struct comparison_data {
    vector<std::string> names{};
    vector<std::shared_ptr<const result_data>> settings{};
};

/// Throws std::invalid_argument for an unknown setting.
inline std::size_t place_of_setting(const vector<std::string>& names,
                                    const std::string& name) {
    for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == name) return i;
    throw std::invalid_argument("there is no setting \"" + printable(name) + "\" in the result" +
                                (names.empty() ? ", which is empty"
                                               : ": it has " + enumerated(names)));
}

inline compared_statistic compared_by(const statistic_data& what, const comparison_data& h) {
    vector<measured_setting> all;
    std::list<analysis> found;
    for (std::size_t i = 0; i < h.names.size(); ++i) {
        const result_data& g = *h.settings[i];
        found.emplace_back();
        found.back().on = validity_checks_of(g.seen);
        all.push_back({h.names[i], g.seen, g.judged_by, found.back(), g.refusal});
    }
    return compared_by(what, all, settings_as_reported(all, {}));
}

struct comparison_access {
    static comparison_result make(comparison_data&& h, const list<result>& results,
                                  const std::string& line, const std::string& with_reasons) {
        comparison_result r;
        for (const std::string& name : h.names) r.names_.push_back(name);
        r.results_ = results;
        r.data_ = box::make(std::move(h));
        r.line_ = line;
        r.explained_ = with_reasons;
        return r;
    }
};
struct curve_access {
    static void add_load(curve_result& c, double load, const result& r) {
        c.loads_.push_back(load);
        c.results_.push_back(r);
    }
    static void end_curve(curve_result& c, const capacity_ends& ends, const std::string& line) {
        c.low_ = ends.low;
        c.high_ = ends.high;
        c.line_ = line;
    }
};

/// The section of the program's reports, which is added when it is first asked for.
inline comparisons_and_curves& section_of(program_reports& reports) {
    comparisons_and_curves& own = comparisons_and_curves::of_this_program();
    if (std::find(reports.beside.begin(), reports.beside.end(), &own) == reports.beside.end())
        reports.beside.push_back(&own);
    return own;
}

inline curve_result measured_curve(const scenario& s, const list<offered_load>& loads,
                                   const char* file, int line) {
    try {
        check_curve(s, loads);
    } catch (const std::invalid_argument&) {
        curve_result c;
        // Represents all loads, and says why there is no curve.
        const gate_reader refused = [&] {
            check_curve(s, loads);
            return measured_gate();
        };
        curve_access::add_load(c, 0, executed(gate_execution(s, file, line, "curve", refused)));
        return c;
    }
    session& all = session::of_this_program();
    curve_report r{identity_of(s, file, line, "curve").name,
                   file,
                   line,
                   loads[0].in_users ? metric_id::capacity_in_users : metric_id::capacity_in_rate,
                   {}};
    curve_result c;
    const auto ended = [&] {
        if (r.loads.empty()) return;
        curve_access::end_curve(c, ends_of(r), curve_line(r));
        say(all.with_reports([&](program_reports& reports) {
            section_of(reports).curves.push_back(r);
            return curve_text(r, reports.gates);
        }));
    };
    try {
        for (const offered_load& load : loads) {
            scenario at = s;
            at.name = r.name + " / " + value_text(r.unit, load.value);
            at.arrivals = arrivals_at(s.arrivals.data(), load);
            const result one = executed(gate_execution(at, file, line, "curve"));
            r.loads.push_back(judged_load_of(load.value, str(one.name()), one.verdicts()));
            curve_access::add_load(c, load.value, one);
            // An unsound scenario is so at every load.
            if (result_access::gate_of(one)->outcome == gate_outcome::refused) break;
        }
    } catch (...) {
        ended();
        throw;
    }
    ended();
    return c;
}

inline std::unique_ptr<execution_environment> new_environment_for(const list<setting>& settings,
                                            const scenario& of_each) {
    const extension* const by = extension_of(settings[0].target);
    const bool is_one = std::all_of(settings.begin(), settings.end(), [&](const setting& s) {
        return extension_of(s.target) == by;
    });
    return is_one && !has_commands(of_each.beside) ? new_environment_of(settings[0].target)
                                                   : nullptr;
}

/// One comparison, from its scenario to its result and its reports. Each setting is a gate "NAME /
/// SETTING"; until they are known, one gate represents all.
class comparison_execution : public execution {
public:
    comparison_execution(const scenario& s, const list<setting>& settings, const char* file,
                         int line)
        : execution(s, file, line, "compare", scenario_use::measure),
          of_each_(scenario_of_a_setting(s)),
          settings_(settings) {}
    /// Throws if nothing could be measured; ended_by() then makes the result.
    comparison_result run() {
        vector<std::string> secrets;
        for (const setting& s : settings_) add_secrets_of(secrets, s.target);
        known_secrets::of_this_program().add(secrets);
        begin(files_of(scenario_));
        of_each_ = scenario_of_a_setting(scenario_);
        check_comparison(of_each_, settings_);
        if (asked_.calibrate > 0)
            return ended_by(gate_outcome::skipped, "a calibration run compares no settings");
        if (asked_.write_baseline)
            return ended_by(gate_outcome::skipped,
                            "a run that writes baselines compares no settings");
        if (rehearses())
            for (const setting& s : settings_)
                models_.push_back(the_rehearsals().rehearsal_of(
                    asked_, who_.name + " / " + str(s.name), of_each_));
        enter(rehearses() ? new_environment_for(*models_[0])
                          : new_environment_for(settings_, of_each_));
        // No decision before the last round.
        const plan whole = plan_of(of_each_, who_, asked_.seed,
                                   {scenario_use::measure, {}, 0},
                                   api_of(settings_[0].target, asked_.candidate));
        for (const setting& s : settings_)
            if (api_of(s.target, asked_.candidate).generates != whole.sent->scores.empty())
                refuse({"compare: a setting's API generates tokens and another's does not, which "
                        "have nothing in common to be compared on"});
        run_mode mode = mode_of(of_each_.baseline, who_.name, asked_);
        vector<setting_under_test> under_test = parts_of(whole);
        await_start([&](double within_s, const std::string& ready) {
            for (setting_under_test& s : under_test) s.server.await_start(within_s, ready);
        });
        mode.begin(budget_began_ns());
        if (stop_asked.load())
            throw no_server("the run was interrupted before this comparison began");
        settings_run(under_test, whole, mode, asked_.candidate.url, shown_progress()).measure();
        return finished(under_test);
    }
    /// Without measurements: every setting has a result that says why.
    comparison_result ended_by(gate_outcome outcome, const std::string& why) {
        gate_report g = unmeasured(who_, of_each_, outcome, why);
        const result r = result_of(g, {}, number_, asked_);
        say(console_text(g, surroundings_of_program().style()));
        for (std::size_t i = 0; i < numbers_.size(); ++i) {
            gate_report each = g;
            each.what.name += " / " + str(settings_[i].name);
            close(numbers_[i], std::move(each), began_ns_);
        }
        if (numbers_.empty()) close(number_, std::move(g), began_ns_);
        list<result> results;
        comparison_data held;
        for (const setting& s : settings_) {
            results.push_back(r);
            held.names.push_back(str(s.name));
            held.settings.push_back(result_access::gate_of(r));
        }
        const std::string line = to_string(outcome) + (": " + why);
        return comparison_access::make(std::move(held), results, line, line);
    }
private:
    any_target stand_in(std::size_t setting) const {
        return models_.empty() ? any_target() : models_[setting]->stand_in(setting);
    }
    /// Each setting's plan, on the same trace with its own words, and its server.
    vector<setting_under_test> parts_of(const plan& whole) {
        vector<setting_under_test> parts;
        for (const setting& s : settings_) {
            plan p = whole;
            p.name += " / " + str(s.name);
            p.nonce = fresh_nonce(asked_.seed, p.name);
            parts.push_back(
                {.name = str(s.name),
                 .server = live_target(s.target, run_variant::candidate, asked_.candidate,
                                       stand_in(parts.size())),
                 .is_fresh = (s.target.what().get<process>() && !s.target.is_switched()) ||
                             s.target.what().get<extension_value>(),
                 .all = {{.what = std::move(p)}}});
        }
        // The first one takes over the gate that represented all.
        for (std::size_t i = 0; i < parts.size(); ++i) {
            numbers_.push_back(i == 0 ? number_ : all_.open_gate(parts[i].all.what));
            parts[i].number = static_cast<int>(numbers_.back()) + 1;
        }
        return parts;
    }
    gate_report report_on(const setting_under_test& s) const {
        if (s.lost.empty() || !s.all.seen.candidate.empty()) return report_of(s.all, asked_);
        const bool skips = s.is_missing && may_be_skipped();
        return unmeasured(s.all.what, of_each_, skips ? gate_outcome::skipped : s.lost_as, s.lost);
    }
    comparison_result finished(vector<setting_under_test>& parts) {
        const plan p = parts.front().all.what;
        vector<measured_setting> measured;
        for (const setting_under_test& s : parts)
            measured.push_back({s.name, s.all.seen, s.all.judged_by, s.all.found,
                                s.all.seen.candidate.empty() ? s.lost : ""});
        const settings_comparison found = comparison_of_settings(
            measured, p.judged->slos, p.sent->common,
            static_cast<std::size_t>(p.judged->max_repeats));
        const comparison_report report{who_.name, who_.file, who_.line, found};
        comparison_data held;
        list<result> results;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            gate_report g = report_on(parts[i]);
            g.took_s = static_cast<double>(parts[i].took_ns) * 1e-9;
            if (!models_.empty() && g.refusal.empty())
                models_[i]->mark(g, parts[i].all.seen);
            results.push_back(
                result_of(g, std::move(parts[i].all), numbers_[i], asked_));
            held.names.push_back(parts[i].name);
            held.settings.push_back(result_access::gate_of(results.back()));
            if (is_in_test_case_ && g.refusal.empty()) only_note(g, asked_.inconclusive);
            say(console_text(g, surroundings_of_program().style()));
            if (i + 1 == parts.size())
                all_.with_reports([&](program_reports& reports) {
                    section_of(reports).comparisons.push_back(report);
                });
            close(numbers_[i], std::move(g), now_ns() - parts[i].took_ns);
        }
        say(comparison_text(report));
        if (asked_.keeps) say(not_added_text(why_not_added("compare()")));
        if (surroundings_of_program().verbose && all_.records().are_open())
            say(reports_text(report_directory()));
        inform_test_case(held);
        return comparison_access::make(std::move(held), results, comparison_line(found),
                                       comparison_explained(found));
    }
    /// As in run(): a setting that could not be measured fails the test case, a miss does not.
    void inform_test_case(const comparison_data& h) const {
        if (!is_in_test_case_) return;
        for (std::size_t i = 0; i < h.names.size(); ++i) {
            const result_data& g = *h.settings[i];
            if (!g.refusal.empty() && g.outcome != gate_outcome::skipped)
                fail_test_case(h.names[i] + ": " + g.refusal);
        }
    }
    void close(std::size_t number, gate_report&& g, long long began_ns) {
        add_end_notes(g);
        g.took_s = static_cast<double>(now_ns() - began_ns) * 1e-9;
        all_.close_gate(number, std::move(g), false);
    }

    scenario of_each_;
    const list<setting>& settings_;
    vector<std::size_t> numbers_{};  // of the settings' gates
    vector<std::shared_ptr<const rehearsal>> models_{};  // replace the servers
};

/// `of` and `in` say what there is none of.
inline const result& result_at(const list<result>& all, long long place, const char* of,
                               const char* in) {
    if (!(place >= 0 && place < static_cast<long long>(all.size())))
        refuse({printed("there is no %s at %lld in the %s, which has %zu", of, place, in,
                        static_cast<std::size_t>(all.size()))});
    return all[static_cast<size_type>(place)];
}
text best_setting(const box& data, const statistic_data& what) {
    const auto* h = data.get<comparison_data>();
    if (!h) return {};
    const auto best = compared_by(what, *h).best();
    return best ? text(h->names[*best]) : text();
}
estimate_t ratio_of_settings(const box& data, const text& of, const text& to,
                             const statistic_data& what) {
    const auto* h = data.get<comparison_data>();
    const vector<std::string> names = h ? h->names : vector<std::string>{};
    const std::size_t a = place_of_setting(names, str(of)), b = place_of_setting(names, str(to));
    if (a == b) return {1, 1, 1};
    return compared_by(what, *h).ratio(a, b).value_or(
        estimate_t{not_a_number, not_a_number, not_a_number});
}
/// Two settings by name. Throws std::invalid_argument if they are one.
inline std::pair<std::size_t, std::size_t> two_settings(const comparison_data& h, const text& of,
                                                        const text& to) {
    const std::size_t a = place_of_setting(h.names, str(of));
    const std::size_t b = place_of_setting(h.names, str(to));
    if (a == b) refuse({"difference() of setting \"", printable(str(of)), "\" and itself"});
    return {a, b};
}
difference_of_settings difference_between(const box& data, const text& of, const text& to,
                                          const statistic_data& what) {
    const auto* held = data.get<comparison_data>();
    const comparison_data h = held ? *held : comparison_data{};
    const auto [a, b] = two_settings(h, of, to);
    const result_data &mine = *h.settings[a], &other = *h.settings[b];
    measured_difference d;
    if (mine.refusal.empty() && other.refusal.empty())
        d = difference_in(as_pairs(mine.seen, other.seen), mine.judged_by, what, h.names.size());
    const auto shown = [&](double x) {
        return printed("%s", x > 0 ? "+" : "") + value_text(what.metric, x);
    };
    return {d.estimate, d.least,
            printable(str(what.name)) + ": " + shown(d.estimate.value) + " [" +
                shown(d.estimate.low) + ", " + shown(d.estimate.high) + "]"};
}
result settings_as_pairs(const box& data, const text& of, const text& to) {
    const auto* h = data.get<comparison_data>();
    if (!h) return {};
    const auto [a, b] = two_settings(*h, of, to);
    const result_data& other = *h->settings[b];
    auto g = new_shared<result_data>(*h->settings[a]);
    g->seen = as_pairs(g->seen, other.seen);
    g->what = with_judging(g->what, [](planned_judging& j) { j.has_baseline = true; });
    if (g->refusal.empty() && !other.refusal.empty()) {
        g->refusal = h->names[b] + ": " + other.refusal;
        g->outcome = other.outcome;
    }
    return result_access::make(std::move(g), {}, {});
}
}  // namespace detail

const result& comparison_result::operator[](const types::text& name) const {
    const detail::vector<std::string> names(names_.begin(), names_.end());
    return results_[detail::place_of_setting(names, detail::str(name))];
}
const result& comparison_result::at(types::whole place) const {
    return detail::result_at(results_, place, "setting", "result");
}

const result& curve_result::operator[](offered_load load) const {
    detail::vector<std::string> all;
    for (detail::size_type i = 0; i < loads_.size(); ++i) {
        if (loads_[i] == load.value) return results_[i];
        all.push_back(detail::printed("%.9g", loads_[i]));
    }
    detail::refuse({detail::printed("there is no load of %.9g in the curve", load.value),
                    all.empty() ? ", which is empty" : ": it has " + detail::enumerated(all)});
}
const result& curve_result::at(types::whole place) const {
    return detail::result_at(results_, place, "load", "curve");
}

comparison_result include_llmbench_compare_hpp_where_LLMBENCH_MAIN_is::compared(
    const scenario& s, const types::list<setting>& settings, const char* file, int line) {
    return detail::executed(detail::comparison_execution(s, settings, file, line));
}
curve_result include_llmbench_compare_hpp_where_LLMBENCH_MAIN_is::loads_of(
    const scenario& s, const types::list<offered_load>& loads, const char* file, int line) {
    return detail::measured_curve(s, loads, file, line);
}

}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_COMPARE_IMPLEMENTED
