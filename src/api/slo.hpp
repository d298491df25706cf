// SLO expressions
#pragma once

#include "api/doctest.hpp"
#include "api/metrics.hpp"
#include "api/own_metrics.hpp"
#include "api/text.hpp"
#include "api/units.hpp"

namespace llmbench {
inline namespace v1 {

/// Some of the requests. `turns` count from 1 in a conversation; a `label` is that of a part of the
/// workload; `depth` is 0 on the main line of a session; a request is `during` a side task if it
/// overlaps a step of the task between its planned send and its end.
struct selection {
    types::text label{}, during{};      ///< "": any
    int first_turn = 1, last_turn = 0;  ///< 0: the last there is
    int depth = -1;                     ///< -1: any
};
selection label(const types::text& name);
selection during(const types::text& side_task);
/// From `first` to `last`, both included: `turns(2)` are all but the first, `turns(1, 1)` that one.
inline selection turns(int first, int last = 0) { return {{}, {}, first, last, -1}; }
inline selection depth(int n) { return {{}, {}, 1, 0, n}; }
/// The requests that both select: `label("chat") && depth(1)`.
selection operator&&(const selection& a, const selection& b);
struct predicate;

namespace detail {

/// A predicate about one request, as a postfix program: comparisons push, `&&` and `||` combine.
struct predicate_step {
    enum class op_kind : unsigned char { compare, both, either } op = op_kind::compare;
    metric_id metric = metric_id::ttft;
    bool at_most = true;
    double bound = 0;  // SI
};

/// A statistic without its unit type.
struct statistic_data {
    statistic_kind kind = statistic_kind::value;
    metric_id metric = metric_id::ttft;
    double q = 0;  // of percentile, 0 to 1
    list<predicate_step> where{};
    text gauge{};
    text name{};
    metric_id of = metric_id::ttft;  // of a drift: the drifting metric, with the same kind and q
    selection which{};  // of the measured requests
    list<statistic_data> parts{};  // of a ratio: numerator and denominator
};

statistic_data make_statistic(statistic_kind kind, metric_id metric, double q);
statistic_data make_goodput(const list<predicate_step>& where, const text& predicate);
statistic_data make_gauge(statistic_kind kind, const text& gauge, double q);
statistic_data make_drift(const statistic_data& of);
statistic_data make_ratio(const statistic_data& of, const statistic_data& to);
statistic_data of_some(const statistic_data& what, const selection& which);
predicate condition_on(metric_id metric, bound_side side, double bound);
list<predicate_step> combine(const list<predicate_step>& a, const list<predicate_step>& b,
                             predicate_step::op_kind op);
}  // namespace detail

/// A limit as a multiple of the baseline: `1.10 * baseline`.
struct relative_limit {
    double factor = 1;
};
constexpr relative_limit operator*(double f, baseline_t) { return {f}; }
constexpr relative_limit operator*(fraction f, baseline_t) { return {f.value}; }
/// The same and a distance from it, in the metric's unit: `baseline + 1_ms`, `baseline - 10_tps`,
/// `1.05 * baseline + 1_ms`.
template <class T>
struct shifted_limit {
    double factor = 1;
    T by{};
    int sign = 1;
};
template <class T> constexpr shifted_limit<T> operator+(relative_limit r, const T& by) {
    return {r.factor, by, 1};
}
template <class T> constexpr shifted_limit<T> operator-(relative_limit r, const T& by) {
    return {r.factor, by, -1};
}
template <class T> constexpr shifted_limit<T> operator+(baseline_t, const T& by) {
    return {1, by, 1};
}
template <class T> constexpr shifted_limit<T> operator-(baseline_t, const T& by) {
    return {1, by, -1};
}

/// The right side of a comparison. Its constructors run in the user's line, so that their default
/// arguments capture it.
template <class U>
struct limit {
    double bound = 0;   // SI
    double factor = 0;  // over 0: relative to the baseline
    source_line at{};
    double offset = 0;  // SI
    template <class T>
        requires detail::gives<U, T>
    limit(const T& v, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : bound(detail::si(U(v))), at{file, line} {}
    limit(relative_limit r, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : factor(r.factor), at{file, line} {}
    template <class T>
        requires detail::gives<U, T>
    limit(const shifted_limit<T>& r, const char* file = __builtin_FILE(),
          int line = __builtin_LINE())
        : factor(r.factor), at{file, line}, offset(r.sign * detail::si(U(r.by))) {}
    limit(baseline_t, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : factor(1), at{file, line} {}
};

/// A service-level objective: a statistic, a side, a limit.
struct slo {
    detail::statistic_data statistic{};
    bool at_most = true;
    double bound = 0;   ///< SI: seconds, per second, fraction
    double factor = 0;  ///< above 0: the limit is factor * baseline + offset
    bool is_advisory = false;
    source_line at{};
    types::text advisory_until{};
    double offset = 0;  ///< SI; not 0: a difference to the baseline is judged, else a ratio

    /// Returns an SLO that is advisory before that day (UTC), "2026-12-31", and blocking from then
    /// on. The day on which the gate begins counts. Reports announce the day from a week before.
    slo until(const types::text& date) const;
    /// Returns "p99(ttft) <= 300 ms".
    types::text text() const;
    template <class Stream>
        requires requires(Stream& o) { o.rdbuf(); }
    friend Stream& operator<<(Stream& o, const slo& s) { o << s.text().c_str(); return o; }
#ifndef LLMBENCH_NO_DOCTEST
    friend doctest::String toString(const slo& s) { return s.text().c_str(); }
#endif
};
using slo_list = types::list<slo>;
void operator&&(const slo&, const slo&) = delete;  // each is one of the list: .slos = {a, b}
void operator||(const slo&, const slo&) = delete;  // each is one of the list: .slos = {a, b}

/// Makes an SLO advisory: measured, judged and reported, but without effect on the outcome.
/// `advisory(p99(itl) <= 80_ms)`.
slo advisory(const slo& s);

/// A condition on one request, for goodput: `ttft <= 300_ms && tpot <= 30_ms`.
struct predicate {
    types::list<detail::predicate_step> steps{};
    types::text text{};
    template <class Objective>
        requires(__is_same(Objective, slo))
    operator Objective() const {
        static_assert(!sizeof(Objective), "an objective needs a statistic: p90(ttft) <= 300_ms; "
                                          "ttft <= 300_ms alone is a condition of goodput(...)");
        return {};
    }
    friend predicate operator&&(const predicate& a, const predicate& b) {
        return {detail::combine(a.steps, b.steps, detail::predicate_step::op_kind::both),
                a.text + " && " + b.text};
    }
    friend predicate operator||(const predicate& a, const predicate& b) {
        return {detail::combine(a.steps, b.steps, detail::predicate_step::op_kind::either),
                "(" + a.text + " || " + b.text + ")"};
    }
};
template <detail::time_metric M, class T>
    requires detail::gives<detail::unit_of<M>, T>
predicate operator<=(M m, const T& bound) {
    return detail::condition_on(detail::id_of(m), detail::bound_side::at_most,
                                detail::si(detail::unit_of<M>(bound)));
}
template <detail::rate_metric M, class T>
    requires detail::gives<detail::unit_of<M>, T>
predicate operator>=(M m, const T& bound) {
    return detail::condition_on(detail::id_of(m), detail::bound_side::at_least,
                                detail::si(detail::unit_of<M>(bound)));
}

/// A limit as a multiple of another statistic of the same unit: `1.25 * p90(ttft).of("base")`.
struct factor_here {
    double value = 1;
    source_line at{};
    factor_here(double f, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : value(f), at{file, line} {}
};
template <class U>
struct scaled_statistic {
    detail::statistic_data data{};
    double factor = 1;
    source_line at{};
};
namespace detail {
template <class T, class U>
concept is_bound_of = gives<limit<U>, T> || gives<scaled_statistic<U>, T>;
}  // namespace detail

/// One number per run in unit U. A limit may be put on the side that makes sense.
template <class U, detail::bound_side Side>
struct statistic {
    detail::statistic_data data{};
    /// Returns the statistic of some requests: `p90(ttft).of("sql")` by label,
    /// `p90(ttft).of(turns(2))`, `p50(e2e).of(label("chat") && depth(1))`.
    statistic of(const selection& s) const { return {detail::of_some(data, s)}; }
    statistic of(const types::text& label_) const { return of(label(label_)); }
    friend slo operator<=(const statistic& s, const limit<U>& l)
        requires(Side != detail::bound_side::at_least)
    { return {s.data, true, l.bound, l.factor, false, l.at, {}, l.offset}; }
    friend slo operator>=(const statistic& s, const limit<U>& l)
        requires(Side != detail::bound_side::at_most)
    { return {s.data, false, l.bound, l.factor, false, l.at, {}, l.offset}; }
    /// Judged as the ratio of both in each repeat, by the spread of that ratio.
    friend slo operator<=(const statistic& s, const scaled_statistic<U>& l)
        requires(Side != detail::bound_side::at_least)
    { return {detail::make_ratio(s.data, l.data), true, l.factor, 0, false, l.at}; }
    friend slo operator>=(const statistic& s, const scaled_statistic<U>& l)
        requires(Side != detail::bound_side::at_most)
    { return {detail::make_ratio(s.data, l.data), false, l.factor, 0, false, l.at}; }
    template <class T>
    friend void operator==(const statistic&, const T&) = delete;
    template <class T>
    friend void operator<(const statistic&, const T&) = delete;  // an objective has <= or >=
    template <class T>
    friend void operator>(const statistic&, const T&) = delete;  // an objective has <= or >=
    // A deleted function is named alone in a compiler's message.
    template <class T>
        requires(Side == detail::bound_side::at_least || !detail::is_bound_of<T, U>)
    friend void operator<=(const statistic&, const T&) = delete;  // another side, or no such unit
    template <class T>
        requires(Side == detail::bound_side::at_most || !detail::is_bound_of<T, U>)
    friend void operator>=(const statistic&, const T&) = delete;  // another side, or no such unit
};
template <class U, detail::bound_side Side>
scaled_statistic<U> operator*(factor_here f, const statistic<U, Side>& s) {
    return {s.data, f.value, f.at};
}

namespace detail {
template <class M>
using statistic_of = statistic<unit_of<M>, metric_traits<M>::side>;
template <class M> statistic_of<M> make(statistic_kind kind, M m, double q = 0) {
    return {make_statistic(kind, id_of(m), q)};
}
template <class M> statistic_of<M> quantile(M m, double q) {
    return make(statistic_kind::percentile, m, q);
}
}  // namespace detail

/// Percentiles by nearest rank (the inverse of the empirical CDF, not interpolated): always a
/// measured value. Failed requests count as the worst value. Times have upper percentiles, speeds
/// lower ones; a server's gauge has those of its readings, one a second.
template <detail::has_percentiles M> auto p50(M m) { return detail::quantile(m, 0.50); }
template <detail::has_upper M> auto p75(M m) { return detail::quantile(m, 0.75); }
template <detail::has_upper M> auto p90(M m) { return detail::quantile(m, 0.90); }
template <detail::has_upper M> auto p95(M m) { return detail::quantile(m, 0.95); }
template <detail::has_upper M> auto p99(M m) { return detail::quantile(m, 0.99); }
template <detail::has_upper M> auto p999(M m) { return detail::quantile(m, 0.999); }
template <detail::rate_metric M> auto p1(M m) { return detail::quantile(m, 0.01); }
template <detail::rate_metric M> auto p5(M m) { return detail::quantile(m, 0.05); }
template <detail::rate_metric M> auto p10(M m) { return detail::quantile(m, 0.10); }
/// The quantile q, strictly between 0 and 1.
template <detail::has_percentiles M> auto percentile(M m, double q) {
    return detail::quantile(m, q);
}
/// Arithmetic mean over completed requests, or over the readings of a server's gauge.
template <detail::has_mean M> auto mean(M m) {
    return detail::make(detail::statistic_kind::mean, m);
}
/// The largest time, infinite if a request failed; of a gauge, the largest reading.
template <detail::has_upper M> auto max(M m) {
    return detail::make(detail::statistic_kind::max, m);
}
/// The smallest speed, 0 if a request failed.
template <detail::rate_metric M> auto min(M m) {
    return detail::make(detail::statistic_kind::min, m);
}

/// A value of the run for some requests: `of(error_rate, "sql") <= 1_pct`.
template <detail::run_metric M> auto of(M m, const selection& s) {
    return detail::make(detail::statistic_kind::value, m).of(s);
}
template <detail::run_metric M> auto of(M m, const types::text& label_) {
    return of(m, label(label_));
}

/// Share of all measured requests, failed ones included, that satisfy the predicate. `itl` is the
/// longest gap of a request: `goodput(itl <= 200_ms)`.
inline statistic<fraction, detail::bound_side::at_least> goodput(const predicate& p) {
    return {detail::make_goodput(p.steps, p.text)};
}

/// The statistic in the last third of a run over that in the first third: 1 for a stable server.
/// For times and speeds of requests, and for throughputs.
template <class U, detail::bound_side Side>
statistic<fraction, Side> drift(const statistic<U, Side>& s) {
    return {detail::make_drift(s.data)};
}
template <detail::run_metric M> auto drift(M m) {
    return drift(detail::make(detail::statistic_kind::value, m));
}

/// A series of the server's metrics page, by its name and enough labels to be unique:
/// `server_metric("vllm:num_requests_waiting{model_name=\"m\"}")`. Values have the page's unit and
/// are read once a second in the steady window.
struct gauge {
    types::text name{};
};
inline gauge server_metric(const types::text& name) { return {name}; }
namespace detail {
inline statistic<plain_number, bound_side::either> make(statistic_kind kind, const gauge& g,
                                                        double q = 0) {
    return {make_gauge(kind, g.name, q)};
}
}  // namespace detail
inline auto max(const gauge& g) { return detail::make(detail::statistic_kind::max, g); }
inline auto mean(const gauge& g) { return detail::make(detail::statistic_kind::mean, g); }
inline auto percentile(const gauge& g, double q) {
    return detail::make(detail::statistic_kind::percentile, g, q);
}
inline auto p50(const gauge& g) { return percentile(g, 0.50); }
inline auto p90(const gauge& g) { return percentile(g, 0.90); }
inline auto p95(const gauge& g) { return percentile(g, 0.95); }

template <class M, class T>
    requires detail::any_metric<M>
void operator<(M, const T&) = delete;  // an objective or a condition has <= or >=
template <class M, class T>
    requires detail::any_metric<M>
void operator>(M, const T&) = delete;  // an objective or a condition has <= or >=
template <detail::run_metric M>
    requires(detail::metric_traits<M>::side == detail::bound_side::at_most)
slo operator<=(M m, const limit<detail::unit_of<M>>& l) {
    return detail::make(detail::statistic_kind::value, m) <= l;
}
template <detail::run_metric M>
    requires(detail::metric_traits<M>::side == detail::bound_side::at_least)
slo operator>=(M m, const limit<detail::unit_of<M>>& l) {
    return detail::make(detail::statistic_kind::value, m) >= l;
}
template <detail::run_metric M, class T>
    requires(detail::metric_traits<M>::side == detail::bound_side::at_least ||
             !detail::gives<limit<detail::unit_of<M>>, T>)
void operator<=(M, const T&) = delete;  // another side, or no such unit
template <detail::run_metric M, class T>
    requires(detail::metric_traits<M>::side == detail::bound_side::at_most ||
             !detail::gives<limit<detail::unit_of<M>>, T>)
void operator>=(M, const T&) = delete;  // another side, or no such unit
template <class M, class T>
    requires detail::any_metric<M>
void operator==(M, const T&) = delete;  // no time is exact; counts of work need llmbench_work.hpp

}  // inline namespace v1
}  // namespace llmbench
