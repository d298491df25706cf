// several settings of a server, and one load after the other
#pragma once

#include "api/doctest.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"

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
