// llmbench_capacity 1.0.0-rc.1: the highest load that meets objectives. Include it after llmbench.hpp.
// Put together from src/ by ci/assemble.py: edit there, not here.
//
// Part one: declarations
//   [A] loads that are searched, and objectives on a capacity
// Part three: loads searched, judged and shown
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
#error "llmbench_capacity.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_CAPACITY_HPP
#define LLMBENCH_CAPACITY_HPP
static_assert(__builtin_strcmp(LLMBENCH_RELEASE_, "llmbench_1.0.0rc.1") == 0,
              "llmbench_capacity.hpp is of 1.0.0-rc.1, but llmbench.hpp is " LLMBENCH_RELEASE_
              ": take both from one release");

// ===== [A] loads that are searched, and objectives on a capacity =================================

namespace llmbench {
inline namespace v1 {

/// A load that is searched, up to this: `poisson(up_to(64_rps))`, `closed_loop(up_to(256))`.
struct searched_rate {
    request_rate most{};
};
struct searched_users {
    long long most = 0;
};
constexpr searched_rate up_to(request_rate most) { return {most}; }
constexpr searched_users up_to(user_count most) { return {static_cast<long long>(most.users)}; }
template <detail::integer I>
constexpr searched_users up_to(I users) { return {static_cast<long long>(users)}; }

class capacity_result;
namespace detail {
/// Defined in this extension's implementation. If it is missing, the linker shows the name.
extern const bool include_llmbench_capacity_hpp_where_LLMBENCH_MAIN_is;

struct search_access {
    template <class A>
    static A searched(A at_most) {
        at_most.data_.is_searched = include_llmbench_capacity_hpp_where_LLMBENCH_MAIN_is;
        return at_most;
    }
    static capacity_result capacity_in(const result& r);
};
}  // namespace detail

inline open_loop constant(searched_rate rate) {
    return detail::search_access::searched(constant(rate.most));
}
inline open_loop poisson(searched_rate rate) {
    return detail::search_access::searched(poisson(rate.most));
}
inline open_loop gamma(searched_rate rate, double burstiness) {
    return detail::search_access::searched(gamma(rate.most, burstiness));
}
inline closed_loop_users closed_loop(searched_users users) {
    return detail::search_access::searched(closed_loop_users(users.most));
}

/// A limit on a capacity: a rate, or a number of users.
struct capacity_limit {
    double bound = 0;
    bool in_users = false;
    source_line at{};
    capacity_limit(request_rate r, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE())
        : bound(r.per_second), at{file, line} {}
    capacity_limit(user_count n, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : bound(n.users), in_users(true), at{file, line} {}
};
using capacity_metric = include_llmbench_capacity_hpp;
/// For a scenario with `up_to(...)`: `capacity >= 12_rps`, `capacity >= 64_users`.
inline slo operator>=(capacity_metric, const capacity_limit& l) {
    const auto id = l.in_users ? detail::metric_id::capacity_in_users
                               : detail::metric_id::capacity_in_rate;
    const double bound = detail::include_llmbench_capacity_hpp_where_LLMBENCH_MAIN_is ? l.bound : 0;
    return {detail::make_statistic(detail::statistic_kind::value, id, 0), false, bound, 0, false,
            l.at};
}
slo operator>=(capacity_metric, relative_limit) = delete;  // >= the load that find_capacity() finds
template <class T>
void operator==(capacity_metric, const T&) = delete;

/// The result of find_capacity. Loads are requests/s, or users of a closed loop. Tables, `measured`
/// and `estimate` are of the highest load that the server was shown to carry.
class capacity_result : public result {
public:
    capacity_result() = default;
    /// Returns the highest load shown to meet all objectives; 0: none. In at most 2.5 % of the
    /// searches the load does not meet them, with the same arrivals and prompts.
    double low() const { return low_; }
    /// Returns the lowest load shown to miss an objective; infinite: none. In at most 2.5 % of the
    /// searches the load meets all.
    double high() const { return high_; }
    /// Returns the limiting objective: "p95(ttft)", "error_rate" or "the server's throughput".
    const types::text& limiting_objective() const { return limiting_objective_; }
    int probes() const { return probes_; }  ///< number of loads that were measured
    /// Returns "capacity in [30, 34] users, limited by p95(ttft), 13 probes".
    const types::text& line() const { return line_; }
    /// Returns the same with every probe: its load, its margin to a miss and its outcome.
    const types::text& explain() const { return explained_; }
    template <class Stream>
        requires requires(Stream& o) { o.rdbuf(); }
    friend Stream& operator<<(Stream& o, const capacity_result& c) {
        o << c.line_.c_str();
        return o;
    }
#ifndef LLMBENCH_NO_DOCTEST
    friend doctest::String toString(const capacity_result& c) { return c.line_.c_str(); }
#endif

private:
    friend struct detail::search_access;
    double low_ = 0, high_ = 0;
    int probes_ = 0;
    types::text limiting_objective_{}, line_{}, explained_{};
};

/// Searches the highest load that meets the scenario's objectives, with arrivals `up_to(...)`. Each
/// end of the interval is wrong in at most 2.5 % of the searches, from at most 16 probes.
/// Objectives on the capacity get verdicts, and nothing fails; otherwise as run().
capacity_result find_capacity(const scenario& s, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE());

}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_CAPACITY_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_CAPACITY_IMPLEMENTED)
#define LLMBENCH_CAPACITY_IMPLEMENTED

#include <algorithm>  // clamp, max, find_if, lower_bound, min, count_if, find
#include <cmath>  // ceil, expm1, floor, isfinite, isnan, llround, log, log10, pow, sqrt, fabs, ...
#include <cstddef>  // size_t, ptrdiff_t
#include <map>
#include <memory>  // shared_ptr
#include <optional>
#include <set>
#include <string>
#include <utility>  // move

// ===== [E] margins of a probe, and the luck of its trace =========================================

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The log ratio of a statistic to its limit, for fractions the difference of logits. It is
/// positive on the side of a miss.
inline double margin_of(const slo& s, const repeat_data& d, double value) {
    const double sign = s.at_most ? 1 : -1;
    if (std::isnan(value)) return infinity;
    if (!is_request_fraction(s.statistic.metric)) return sign * std::log(value / s.bound);
    const double n = static_cast<double>(std::max<std::size_t>(d.records.size(), 1));
    const auto logit = [&](double fraction) {
        const double inside = std::clamp(fraction, 0.5 / n, 1 - 0.5 / n);
        return std::log(inside / (1 - inside));
    };
    return sign * (logit(value) - logit(s.bound));
}
inline double margin_of(const slo& s, const repeat_data& d) {
    return margin_of(s, d, evaluate(s.statistic, d));
}
/// The margin of the objective nearest to a miss, or furthest beyond it.
inline double worst_margin(const vector<slo>& slos, const repeat_data& d) {
    double worst = -infinity;
    for (const slo& s : slos)
        if (!s.is_advisory) worst = std::max(worst, margin_of(s, d));
    return worst;
}

inline double rounded_to_two_digits(double n) {  // upwards
    const double digit = std::max(1.0, std::pow(10, std::floor(std::log10(n)) - 1));
    return std::ceil(n / digit) * digit;
}

// ---- the luck of a trace: all probes replay one, so that more of them do not average it

inline constexpr std::size_t parts_of_a_trace = 10;
// How far beyond these a part is says nothing of the others: an empty server is fast.
inline constexpr double least_margin_of_a_part = -1, most_margin_of_a_part = 1.5;
inline double margin_in_range(double margin) {
    return std::clamp(margin, least_margin_of_a_part, most_margin_of_a_part);
}

/// The mean margin of each of these parts, over the repeats; empty if one has no value.
inline vector<double> margins_of_parts(const slo& s, const repeat_list& all) {
    vector<double> parts(parts_of_a_trace, 0.0);
    for (const repeat_data& d : all)
        for (std::size_t i = 0; i < parts_of_a_trace; ++i) {
            const auto edge = [&](std::size_t at) {
                const double into = static_cast<double>(at) / parts_of_a_trace;
                return d.window.from_ns() + std::llround(into * d.window.length_ns());
            };
            const auto when = time_interval::between(edge(i), edge(i + 1));
            const double value = column_of(s.statistic, d, timing_bound::measured, &when).value;
            if (std::isnan(value)) return {};
            parts[i] += margin_in_range(margin_of(s, d, value)) / static_cast<double>(all.size());
        }
    return parts;
}
/// How many times as long a probe has to be to show this margin, whatever the trace: parts of the
/// time differ as traces do. At most 1 if it is shown. Neighbours are alike, so that a pass needs
/// more; a fail does not, since overload makes later parts worse.
inline double times_as_long(const slo& s, const repeat_list& all, const judging_rule& rule,
                            bool fails) {
    vector<double> parts = margins_of_parts(s, all);
    if (parts.empty()) return 1;
    double margin = 0;
    for (const repeat_data& d : all)
        margin += margin_in_range(margin_of(s, d)) / as_number(all.size());
    for (double& p : parts) p /= parts_of_a_trace;
    error_at_once luck = error_by_neighbours(parts);
    if (fails) luck = {std::sqrt(sample_variance(parts) * parts_of_a_trace), parts_of_a_trace - 1};
    const double level = fails ? rule.fail_level : rule.pass_level;
    const double needed = student_t_quantile(1 - level, luck.df) * luck.se / margin;
    return needed * needed;
}

// ---- the luck of a trace, where a search finds the capacity of it

/// The work of a request in tokens of its prompt: an output token keeps a server about as busy as
/// ten of these.
inline double work_of(double prompt_tokens, double output_tokens) {
    return prompt_tokens + 10 * output_tokens;
}
/// By how much the capacity of another trace may differ (95 %), as arrivals and work do by chance.
/// `cv2`: the squared coefficients of variation of both.
inline double luck_of_traces(double arrival_cv2, double work_cv2, double arrivals) {
    return std::expm1(normal_quantile(0.975) * std::sqrt((arrival_cv2 + work_cv2) / arrivals));
}
/// The same by the requests of this probe; 0 of users, whose arrivals follow the server.
inline double luck_of_trace(const repeat_data& d, double arrival_cv2) {
    if (!std::isfinite(arrival_cv2)) return 0;
    vector<double> each;
    for (const record& r : d.records)
        if (is_pooled(r)) each.push_back(work_of(r.prompt_tokens, r.output_tokens));
    const double mean = mean_of(each);
    if (each.size() < 2 || !(mean > 0)) return 0;
    return luck_of_traces(arrival_cv2, sample_variance(each) / (mean * mean), as_number(each.size()));
}

// ===== [E] the search for a capacity =============================================================
// Loads are doubled or halved until one clearly holds and one clearly misses, then the gaps beside
// these two are halved on the logarithmic scale: a grid of loads 9 % apart. All probes at a load
// are judged together, after each from the third to the fifth. The next load depends only on
// earlier probes, so a stored search can be repeated.

/// One run of the scenario at one load.
struct probe {
    probe_of part = probe_of::search;
    double load = 0;     // requests/s or users
    double margin = 0;   // the worst log(statistic/limit); below 0 all objectives hold
    bool over = false;   // the load exceeded the server: a miss without a size
    bool invalid = false;  // the client did not keep up, so it shows nothing
    carried shown = carried::open;  // with all earlier probes at this load
    bool too_short = false;  // more of them show no more, only longer ones
};

/// The limits of a search.
struct search_parameters {
    double start = 1;      // the first load
    double least = 1e-3, most = 1e6;  // up_to(most)
    bool whole = false;    // users
    int max_probes = 16;
};

/// The state of a search.
struct search_state : capacity_ends {
    // With both ends:
    double estimate = not_a_number;    // the middle of them
    double elasticity = not_a_number;  // d margin / d log load between them
};

/// Whether the client affected two probes in a row. Then the search stops.
inline bool client_gave_up(const vector<probe>& probes) {
    const std::size_t n = probes.size();
    return n > 1 && probes[n - 1].invalid && probes[n - 2].invalid;
}
inline constexpr const char* client_gave_up_text = "the client could not keep up twice in a row";

// ---- the probes at each load

// Margins without a size: the statistic at 4.5 times its limit, or far below it.
inline constexpr double max_margin = 1.5, min_margin = -3;
// Nearer to its limit a statistic has to be measured too often to decide.
inline constexpr double clear_margin = 0.06;

/// All valid probes at one load.
struct probed_load {
    double load = 0, margin = 0;  // the mean margin
    int probes = 0;
    carried shown = carried::open;
    bool too_short = false;
    /// The result so far, or the one that more probes are likely to show.
    carried looks() const {
        if (shown != carried::open) return shown;
        if (too_short || probes >= last_analysis || std::fabs(margin) < clear_margin)
            return carried::open;
        return margin < 0 ? carried::holds : carried::misses;
    }
};
/// Returns the loads in rising order.
inline vector<probed_load> loads_of(const vector<probe>& probes) {
    vector<probed_load> loads;
    for (const probe& p : probes) {
        if (p.invalid) continue;
        auto at = std::lower_bound(loads.begin(), loads.end(), p.load,
                                   [](const probed_load& l, double load) { return l.load < load; });
        if (at == loads.end() || at->load != p.load) at = loads.insert(at, {p.load});
        const double margin = std::clamp(p.over ? infinity : p.margin, min_margin, max_margin);
        at->margin += (margin - at->margin) / ++at->probes;
        if (at->shown == carried::open) at->shown = p.shown;
        at->too_short = p.too_short;
    }
    return loads;
}
inline search_state state_of(const vector<probe>& probes) {
    search_state s;
    double at_low = 0, at_high = 0;
    for (const probed_load& l : loads_of(probes)) {
        if (l.shown == carried::holds) {
            s.low = l.load;
            at_low = l.margin;
        }
        if (l.shown == carried::misses && s.high == infinity) {
            s.high = l.load;
            at_high = l.margin;
        }
    }
    if (s.has_both()) {
        s.estimate = std::sqrt(s.low * s.high);
        s.elasticity = (at_high - at_low) / std::log(s.high / s.low);
    }
    return s;
}

// ---- the next load

// A load far beyond the capacity takes long to drain and may change the server.
inline constexpr double step_out = 2;
inline constexpr double narrow_gap = 1.1;  // the ratio of neighbours on the grid
// Two probes hardly know their spread, which is large at a knee.
inline constexpr int least_of_an_end = 3, spare_probes = 2;

/// Whether there is a load of the grid between these two.
inline bool is_wide(const search_parameters& t, double low, double high) {
    return high > narrow_gap * low && (!t.whole || high - low > 1);
}
inline double in_range(const search_parameters& t, double load) {
    if (t.whole) load = std::round(load);
    return std::clamp(load, t.whole ? std::max(1.0, t.least) : t.least, t.most);
}

/// Returns the next load, nothing if the search ends.
inline std::optional<double> next_load(const search_parameters& t, const vector<probe>& probes) {
    if (probes.empty()) return in_range(t, t.start);
    const int left = t.max_probes - static_cast<int>(probes.size());
    if (left <= 0 || client_gave_up(probes)) return std::nullopt;
    if (probes.back().invalid) return probes.back().load;

    // The ends: the lowest load that looks missed, and the highest below it that looks held.
    const vector<probed_load> loads = loads_of(probes);
    std::size_t high = 0;
    while (high < loads.size() && loads[high].looks() != carried::misses) ++high;
    std::size_t held = high;  // the low end is the load before it
    while (held > 0 && loads[held - 1].looks() != carried::holds) --held;
    const bool has_low = held > 0, has_high = high < loads.size();
    const double down = in_range(t, loads.front().load / step_out);
    const double up = in_range(t, loads.back().load * step_out);
    if (!has_low && down < loads.front().load) return down;
    if (!has_high && up > loads.back().load) return up;

    const probed_load low_end = has_low ? loads[held - 1] : probed_load{};
    const probed_load high_end = has_high ? loads[high] : probed_load{};
    const auto needed = [](const probed_load& end) {
        const bool is_open = end.probes > 0 && end.shown == carried::open;
        return is_open ? std::max(1, least_of_an_end - end.probes) : 0;
    };
    const int for_low = needed(low_end), for_high = needed(high_end);
    if (left > for_low + for_high + spare_probes)
        for (const std::size_t i : {held, high})
            if (i > 0 && i < loads.size() && is_wide(t, loads[i - 1].load, loads[i].load))
                return in_range(t, std::sqrt(loads[i - 1].load * loads[i].load));
    if (for_low == 0 && for_high == 0) return std::nullopt;
    // In turn, so that a server's drift does not look like a load. If probes suffice for one end
    // only, it is the one that needs fewer.
    bool low_first = low_end.probes <= high_end.probes;
    if (for_low + for_high > left) low_first = for_low <= for_high;
    if (for_high == 0 || (for_low > 0 && low_first)) return low_end.load;
    return high_end.load;
}

// ---- a server that changes

inline constexpr double false_trend = 0.01;  // of searches on a constant server
// A noisy machine's speed varies by this much between probes, which few probes cannot tell from a
// trend.
inline constexpr double noisy_wander = 0.03;
inline constexpr double wander_df = 4, steepest = 20;

/// Growth of the margins at equal loads from the first to the last probe, if it is shown. Then no
/// load in between was carried before and after, so there is no single capacity.
inline std::optional<double> trend_of(const vector<probe>& probes, const search_state& s) {
    const auto has_size = [](const probe& p) {
        return !p.invalid && !p.over && std::isfinite(p.margin);
    };
    double when2 = 0, both = 0, margin2 = 0, df = -1;
    for (std::size_t i = 0; i < probes.size(); ++i) {
        if (!has_size(probes[i])) continue;
        double n = 0, when = 0, margin = 0;  // of all at this load
        for (std::size_t k = 0; k < probes.size(); ++k) {
            if (probes[k].load != probes[i].load || !has_size(probes[k])) continue;
            ++n;
            when += static_cast<double>(k);
            margin += probes[k].margin;
        }
        const double x = static_cast<double>(i) - when / n, y = probes[i].margin - margin / n;
        when2 += x * x;
        both += x * y;
        margin2 += y * y;
        df += 1 - 1 / n;
    }
    if (df < 0.5) return std::nullopt;
    double slope = s.elasticity;
    const vector<probed_load> loads = loads_of(probes);
    const probed_load &least = loads.front(), &most = loads.back();
    if (std::isnan(slope)) slope = (most.margin - least.margin) / std::log(most.load / least.load);
    if (!(slope < steepest)) slope = steepest;  // also of one load
    const double by = both / when2, moved = noisy_wander * slope;
    const double believed = wander_df * (prior_sd * prior_sd + moved * moved);
    const double remaining = std::max(margin2 - by * both, 0.0), all_df = wander_df + df;
    const double se = std::sqrt((believed + remaining) / all_df / when2);
    if (std::fabs(by) < student_t_quantile(1 - false_trend / 2, all_df) * se) return std::nullopt;
    return by * static_cast<double>(probes.size() - 1);
}

// ===== [E] the capacity that probes show =========================================================
// From the measurements alone, so that a stored search can be judged again.

// ---- one probe

inline bool is_all_failed(const repeat_data& d) {
    return !any_of(d.records, is_pooled);
}
/// Whether the load exceeded the server, or all requests failed.
inline bool is_over(const repeat_data& d, double arrival_cv2) {
    return is_all_failed(d) ||
           (!std::isnan(arrival_cv2) && over_saturated_repeat(d, arrival_cv2));
}

// ---- one load

/// The error levels of either end: 2.5 % for a load that misses and is shown to hold, and 2.5 % for
/// the reverse.
inline judging_options options_of_an_end() {
    judging_options o;
    o.false_pass = o.false_fail = fraction(0.025);
    return o;
}
/// The rule for a load. It holds if each objective holds, and misses if one misses, including the
/// guard on errors.
inline judging_rule rule_of_a_load(judging_options o, const vector<slo>& objectives_held,
                                   int most = last_analysis) {
    double blocking = 1;  // the guard
    for (const slo& s : objectives_held) blocking += !s.is_advisory;
    o.false_fail = fraction(o.false_fail.value / blocking);
    o.holm = false;
    judging_rule r = rule_of(o, first_analysis, std::max(most, last_analysis));
    r.trusts_prior = true;  // a search measures many loads at least twice
    return r;
}

/// At a load; the requests of a probe that would show more if it is open by luck alone.
struct load_result {
    carried is = carried::open;
    double requests = 0;
};
/// The result of all measurements at one load.
inline load_result result_at(const measurements& e, const judging_parameters& t,
                             int least = first_analysis) {
    if (e.candidate.size() < static_cast<std::size_t>(least)) return {};
    const analysis f = analyse(e, t);
    const bool all_failed = all_of(e.candidate, is_all_failed);
    if (all_failed || f.on.saturated) return {carried::misses};
    bool holds = true;
    double longer = 1;
    for (const decision& v : f.verdicts) {
        if (v.objective.is_advisory) continue;
        holds = holds && v.outcome == verdict::pass;
        if (v.outcome != verdict::pass && v.outcome != verdict::fail) continue;
        const bool fails = v.outcome == verdict::fail;
        // The ends that a search finds are of its trace.
        const double times = least >= least_of_an_end
                                 ? 1
                                 : times_as_long(v.objective, e.candidate, t.rule, fails);
        if (fails && times <= 1) return {carried::misses};
        longer = std::max(longer, times);
    }
    if (longer > 1) return {carried::open, longer * as_number(e.candidate[0].records.size())};
    return {holds ? carried::holds : carried::open};
}
inline carried carried_at(const measurements& e, const judging_parameters& t,
                          int least = first_analysis) {
    return result_at(e, t, least).is;
}

// ---- all probes

/// Whether the client may have misled a search at this probe. Whether its errors matter for the
/// result of a load is checked once that is shown.
inline bool is_misled(const judging_parameters& t, const repeat_data& d) {
    constexpr double another_load = 0.20;  // this fraction was sent late
    return d.part == probe_of::search &&
           (client_lost_much(d) || late_fraction_of(d, late_after_s(t)) > another_load);
}
/// The probe of a repeat, before it is judged.
inline probe probe_of_repeat(const measurements& e, const judging_parameters& t,
                             const repeat_data& d) {
    probe p;
    p.part = d.part;
    p.load = d.load;
    p.margin = worst_margin(t.objectives_held, d);
    p.over = is_over(d, e.arrival_cv2);
    p.invalid = !d.disturbed.empty() || !self_check_of(e, repeat_list::of(d)).ok || is_misled(t, d);
    return p;
}

/// The judging parameters at one load.
inline judging_parameters parameters_of_a_load(judging_parameters t) {
    t.slos = std::move(t.objectives_held);
    t.objectives_held.clear();
    t.day_sd = t.stored.day_sd;
    return t;
}
/// The same measurements with some of the candidate's repeats alone.
inline measurements with_repeats(const load_conditions& under, repeat_list candidate) {
    measurements some;
    static_cast<load_conditions&>(some) = under;
    some.candidate = std::move(candidate);
    return some;
}
/// The valid ones at one load.
inline measurements measurements_at(const measurements& e, const judging_parameters& t,
                                    double load) {
    return with_repeats(e, e.candidate.those([&](const repeat_data& d) {
        return d.load == load && !probe_of_repeat(e, t, d).invalid;
    }));
}

/// The result of all probes.
struct found_capacity {
    vector<probe> probes{};  // in order
    search_state state{};
    std::string limiting_objective{};  // "" if none
    std::optional<double> trend{};     // of margins, if the server changed
    double luck = 0;                   // of the trace of a search
    bool is_search() const { return !probes.empty() && probes[0].part == probe_of::search; }
};

inline vector<probe> probes_of(const measurements& e, const judging_parameters& t) {
    const judging_parameters judged_by = parameters_of_a_load(t);
    std::map<double, repeat_list> at;
    vector<probe> probes;
    for (std::size_t i = 0; i < e.candidate.size(); ++i) {
        probe p = probe_of_repeat(e, t, e.candidate[i]);
        if (!p.invalid) {
            at[p.load].push_back(e.candidate.shared(i));
            const int least = p.part == probe_of::search ? least_of_an_end : first_analysis;
            const load_result here = result_at(with_repeats(e, at[p.load]), judged_by, least);
            p.shown = here.is;
            p.too_short = here.requests > 0;
        }
        probes.push_back(p);
    }
    return probes;
}

/// The objective nearest to a miss at this load, or furthest beyond it.
inline std::string limiting_objective_at(const measurements& e, const judging_parameters& t,
                                         double load) {
    const repeat_list here =
        e.candidate.those([&](const repeat_data& d) { return d.load == load; });
    const auto sum_of = [&](const auto& value) {
        double sum = 0;
        for (const repeat_data& d : here) sum += value(d);
        return sum;
    };
    const auto n = static_cast<double>(here.size());
    if (2 * sum_of([&](const repeat_data& d) { return is_over(d, e.arrival_cv2) ? 1 : 0; }) > n)
        return "the server's throughput";
    std::string name;
    double worst = -infinity;
    for (const slo& s : t.objectives_held) {
        if (s.is_advisory) continue;
        const double margins = sum_of([&](const repeat_data& d) { return margin_of(s, d); });
        if (margins <= worst) continue;
        worst = margins;
        name = str(s.statistic.name);
    }
    const slo errors = error_limit(t.objectives_held);
    const double failed =
        sum_of([&](const repeat_data& d) { return evaluate(errors.statistic, d); });
    return worst <= 0 && n > 0 && failed / n > errors.bound ? str(errors.statistic.name) : name;
}

inline found_capacity capacity_of(const measurements& e, const judging_parameters& t) {
    found_capacity f;
    f.probes = probes_of(e, t);
    f.state = state_of(f.probes);
    if (f.is_search()) f.trend = trend_of(f.probes, f.state);
    if (f.trend) {  // an end that was shown once no longer counts
        f.state.low = 0;
        f.state.high = infinity;
    }
    if (f.state.high < infinity) f.limiting_objective = limiting_objective_at(e, t, f.state.high);
    else if (f.state.low > 0) f.limiting_objective = limiting_objective_at(e, t, f.state.low);
    if (f.is_search()) f.luck = luck_of_trace(e.candidate.back(), e.arrival_cv2);
    return f;
}

/// Whether the numbers at a load decide.
inline bool is_decided(const measurements& e, const judging_parameters& t) {
    bool open = false;
    for (const slo& s : t.slos) {
        if (s.is_advisory) continue;
        const verdict v = decision_by_numbers(columns_of(e, s), t, s).outcome;
        if (v == verdict::fail) return true;
        open = open || v == verdict::inconclusive;
    }
    return !open;
}
/// Why the client affects the result of a load, and the index of the repeat. An open load has more
/// probes anyway.
inline std::optional<client_error> client_error_at(const measurements& e,
                                                   const judging_parameters& t, double load) {
    const measurements at = measurements_at(e, t, load);
    if (at.candidate.size() < static_cast<std::size_t>(first_analysis)) return {};
    const judging_parameters judged_by = parameters_of_a_load(t);
    if (!is_decided(at, judged_by)) return {};
    std::optional<client_error> error = analyse(at, judged_by).by_client;
    if (!error) return {};
    const repeat_data* const affected = &at.candidate[error->repeat];
    while (&e.candidate[error->repeat] != affected) ++error->repeat;
    return error;
}

/// The measurements of tables and pooled numbers: those at the highest load shown to be carried, or
/// else at the first measured one.
inline measurements measurements_of_tables(const measurements& e, const judging_parameters& t) {
    if (e.candidate.empty()) return e;
    const double low = state_of(probes_of(e, t)).low;
    const double load = low > 0 ? low : e.candidate.front().load;
    return with_repeats(e, e.candidate.those([&](const repeat_data& d) { return d.load == load; }));
}

// ---- verdicts

/// Why a load is decided or open.
inline std::string text_at(const measurements& seen, const judging_parameters& t) {
    const analysis f = analyse(seen, parameters_of_a_load(t));
    if (f.on.saturated) return described(f.on.saturated);
    const decision* nearest = nullptr;
    for (const verdict v : {verdict::fail, verdict::invalid, verdict::inconclusive, verdict::pass})
        for (const decision& x : f.verdicts) {
            if (x.objective.is_advisory || x.outcome != v || (nearest && nearest->outcome != v))
                continue;
            const bool nearer = nearest && !(headroom(x) >= headroom(*nearest));
            if (!nearest || nearer) nearest = &x;
        }
    if (!nearest) return {};
    const std::string room = room_text(*nearest), why = described(nearest->why, *nearest);
    return str(nearest->objective.text()) + " " + to_string(nearest->outcome) + ": " +
           measured_text(*nearest) +
           (room.empty() ? "" : ", " + room) + (why.empty() ? "" : "; " + why);
}

/// "capacity in [11.4, 12.6] req/s, limited by p90(ttft), 13 probes".
inline std::string capacity_line(metric_id unit, const found_capacity& f) {
    return capacity_text(unit, f.state, f.limiting_objective) +
           printed(", %zu probes", f.probes.size());
}
/// "12 req/s (bracket): -8.1 % of the limit, shown to be carried".
inline std::string probe_text(metric_id unit, const probe& p) {
    const std::string shows = p.shown == carried::holds    ? ", shown to be carried"
                              : p.shown == carried::misses ? ", shown to be too much"
                                                           : "";
    const std::string margin =
        p.over ? "it outgrew the server"
               : printed("%+.1f %% of the limit", 100 * std::expm1(p.margin));
    return value_text(unit, p.load) + ": " + (p.invalid ? "the client could not keep up" : margin) +
           shows;
}
/// How well objectives that hardly depend on the load can locate the capacity, "" if they depend on
/// it enough.
inline std::string flatness_text(const found_capacity& f) {
    if (!(f.state.elasticity < 1)) return {};
    const double sd = prior_sd / std::max(f.state.elasticity, 0.01);
    return printed("1 %% more load moves %s by %.2g %%: it hardly depends on the load, and cannot "
                   "locate a capacity better than to +-%.0f %%",
                   f.limiting_objective.empty() ? "the objectives" : f.limiting_objective.c_str(),
                   f.state.elasticity, 100 * 2 * sd / std::sqrt(3.0));
}
inline std::string capacity_explained(metric_id unit, const found_capacity& f) {
    std::string t = capacity_line(unit, f);
    for (std::size_t i = 0; i < f.probes.size(); ++i)
        t += printed("\n  %zu. ", i + 1) + probe_text(unit, f.probes[i]);
    if (f.luck > 0)
        t += printed("\n  of this trace: another one of its length may carry %.2g %% more or less, "
                     "for more .requests less", 100 * f.luck);
    const std::string flat = flatness_text(f);
    return t + (flat.empty() ? "" : "\n  " + flat);
}
/// Why measurements at a load are invalid, "" if valid: unusable answers or a buffered stream.
/// Overload is not one of these.
inline std::string invalid_at_a_load(const measurements& e, const judging_parameters& t) {
    const judging_parameters judged_by = parameters_of_a_load(t);
    std::set<double> seen;
    for (const repeat_data& d : e.candidate) {
        if (!seen.insert(d.load).second) continue;
        const measurements at = measurements_at(e, t, d.load);
        if (at.candidate.size() < static_cast<std::size_t>(first_analysis)) continue;
        const analysis f = analyse(at, judged_by);
        if (f.on.saturated || f.on.invalid || f.by_client) continue;
        for (const decision& v : f.verdicts)
            if (v.outcome == verdict::invalid && !v.objective.is_advisory)
                return str(v.objective.text()) + ": " + described(v.why, v);
    }
    return {};
}
/// "the server became slower while it was searched: ...", "" if it did not change.
inline std::string trend_text(const found_capacity& f) {
    if (!f.trend) return {};
    const bool slower = *f.trend > 0;
    return printed("the server became %s while it was searched: at equal loads what its "
                   "objectives limit %s by %.0f %% from the first probe to the last, so it has no "
                   "one capacity",
                   slower ? "slower" : "faster", slower ? "worsened" : "improved",
                   100 * std::fabs(std::expm1(*f.trend)));
}
/// Why a search is invalid, "" if valid.
inline std::string fault_of_search(const measurements& e, const judging_parameters& t,
                                   const found_capacity& f) {
    for (const std::string& why : {described(fault_of_gate(e)), invalid_at_a_load(e, t)})
        if (!why.empty()) return why;
    if (f.trend) return trend_text(f);
    if (!f.state.monotone()) return "not monotone: a load is shown to be carried above one that is "
                                    "shown to be too much";
    return client_gave_up(f.probes) ? client_gave_up_text : "";
}

inline std::string too_short_text(const measurements& at, double requests) {
    return printed("not shown: the work varies, and %zu requests may be a light or a heavy draw of "
                   "it; probes of about %.0f requests would show it",
                   at.candidate[0].records.size(), rounded_to_two_digits(requests));
}
inline decision capacity_verdict(const measurements& e, const judging_parameters& t,
                                 const validity_checks& g, const found_capacity& f, const slo& s) {
    decision v = undecided(s);
    v.limit = s.bound;
    const double asked = s.bound;
    v.estimate = {f.is_search() ? f.state.estimate : not_a_number, f.state.low, f.state.high};
    v.counted_in = verdict_unit::probe;
    v.decided_by = verdict_method::loads;
    for (const probe& p : f.probes) {
        v.margins.push_back({p.load, p.margin});
        v.repeats += p.load == asked && !p.invalid;
    }
    const measurements at = measurements_at(e, t, asked);
    for (const repeat_data& d : at.candidate)
        v.requests += std::count_if(d.records.begin(), d.records.end(), selects(selection{}, d));
    const cause stopped = with_text(because::stopped, e.stopped);
    if (f.probes.empty() && stopped) return decided(v, verdict::inconclusive, stopped);
    if (g.invalid) return decided(v, verdict::invalid, g.invalid);
    if (!f.state.monotone())
        return decided(v, verdict::invalid,
                       cause_with<because::not_monotone>({{"low", f.state.low},
                                                          {"high", f.state.high}}));
    if (f.state.low >= asked) v.outcome = verdict::pass;
    else if (f.state.high <= asked) v.outcome = verdict::fail;
    else if (cause why = with_text(because::reported, fault_of_search(e, t, f)))
        return decided(v, verdict::invalid, std::move(why));
    v.why = {cause_with<because::carries>({{"low", f.state.low}, {"high", f.state.high}})};
    v.at_the_load = at.candidate.empty() ? "" : text_at(at, t);
    if (v.outcome == verdict::inconclusive && !at.candidate.empty())
        if (const double more = result_at(at, parameters_of_a_load(t)).requests; more > 0)
            v.why.push_back(with_text(because::reported, too_short_text(at, more)));
    if (v.outcome == verdict::inconclusive && stopped) v.why.push_back(stopped);
    if (cause here = with_text(because::reported, v.at_the_load)) v.why.push_back(std::move(here));
    return v;
}

// ---- the whole search

/// The client's conduct over all probes. A probe that overloaded the client shows nothing, and
/// matters only if no other probe shows anything.
inline own_check check_of_search(const measurements& e, const judging_parameters& t, own_check c) {
    c.asked_rate = c.achieved_rate = 0;  // differs by load
    bool any = false;
    cause last;
    for (const repeat_data& d : repeats_of(e)) {
        any = any || !probe_of_repeat(e, t, d).invalid;
        if (cause why = self_check_of(e, repeat_list::of(d)).why) last = std::move(why);
    }
    c.why = any ? cause{} : std::move(last);
    c.ok = !c.why;
    return c;
}

/// A search judges only capacities, unless all of it was at one load.
inline decision verdict_at_one_load(const measurements& e, const judging_parameters& t,
                                    const slo& s) {
    for (const repeat_data& d : e.candidate)
        if (d.load != e.candidate.front().load)
            return decided(undecided(s), verdict::invalid, {because::several_loads});
    return decision_on_another(e, parameters_of_a_load(t), s);
}
inline analysis analysis_of_search(const measurements& e, const judging_parameters& t) {
    analysis f;
    f.on = validity_checks_of(e);
    f.on.saturated = {};  // part of the search
    f.on.self_check = check_of_search(e, t, f.on.self_check);
    const found_capacity found = capacity_of(e, t);
    for (const slo& s : t.slos)
        f.verdicts.push_back(is_of_capacity(s) ? capacity_verdict(e, t, f.on, found, s)
                                               : verdict_at_one_load(e, t, s));
    return f;
}

// ===== [E] capacity searches as scenarios ========================================================

// ---- what is refused

/// Refuses capacity objectives without a search.
inline void refuse_without_search(const scenario& s, const arrival_data& a, scenario_use use) {
    const std::string given = "arrivals is " + arrival_text(a) + ", one load: ";
    const char* cure = is_counted_in_users(a) ? "closed_loop(up_to(256)), for one"
                                              : "poisson(up_to(64_rps)), for one";
    if (use == scenario_use::find_capacity)
        refuse({given, "find_capacity searches a load of up_to(...): ", cure});
    for (const slo& x : s.slos)
        if (is_of_capacity(x))
            refuse({"the SLO ", str(x.text()), " is refused: ", given,
                    "a capacity is that of a load of up_to(...): ", cure});
}

inline double max_load(const arrival_data& a) {
    return is_counted_in_users(a) ? static_cast<double>(a.users) : a.rate;
}

/// Refuses scenarios that cannot be searched.
inline void check_search(const scenario& s, scenario_use use) {
    const arrival_data& a = s.arrivals.data();
    const std::string given = "arrivals is " + arrival_text(a) + ": ";
    if (use == scenario_use::measure)
        refuse({given, "run() measures one load, use find_capacity() or a gate()"});
    if (a.max_in_flight != 0)
        refuse({given, "with so many in flight at most, a load above that never reaches the "
                       "server: leave max_in_flight out"});
    int capacities = 0;
    bool has_other = false;
    for (const slo& x : s.slos) {
        const std::string why = "the SLO " + str(x.text()) + " is refused: ";
        if (!is_of_capacity(x)) {
            has_other = has_other || !x.is_advisory;
            if (!is_absolute(x))
                refuse({why, "what a load must hold has limits of its own"});
            if (is_throughput(x.statistic.metric))
                refuse(
                    {why,
                     is_cost(x.statistic.metric) ? "a cost per token falls" : "a throughput rises",
                     " with the load, and cannot be what the load must hold"});
            if (is_of_server(x.statistic.metric))
                refuse({why, "what a load must hold is what its users see; server metrics are "
                             "judged at one load"});
            if (is_of_start(x.statistic.metric))
                refuse({why, "a start has nothing to do with the load"});
            continue;
        }
        ++capacities;
        if (!(x.bound <= max_load(a))) refuse({why, given, "more than that is not tried"});
    }
    if (!has_other)
        refuse({given, "the objectives must say what a load has to keep, as in {p90(ttft) <= "
                       "500_ms, capacity >= 12_rps}"});
    if (capacities == 0 && use != scenario_use::find_capacity)
        refuse({given, "a gate needs an objective that decides it, capacity >= 12_rps for one; "
                       "find_capacity() only measures"});
    if (use != scenario_use::gate && s.repeats != 0)
        refuse({given, printed("repeats is %lld: a search takes as many probes as it needs",
                               static_cast<long long>(s.repeats))});
    if (s.baseline.is_live() || s.baseline.is_stored() || s.baseline.is_of_extension())
        refuse({given, "the scenario has a baseline, and a capacity is held against none"});
}

// ---- from a plan to a search

/// The metric with the unit of the load.
inline metric_id load_metric(const planned_traffic& p) {
    return is_counted_in_users(p.arrivals) ? metric_id::capacity_in_users
                                           : metric_id::capacity_in_rate;
}

inline constexpr int max_probes_of_a_search = 16;
inline constexpr long long requests_of_a_probe = 100;
inline constexpr double seconds_of_a_probe = 20, lead_of_a_probe = 5;

/// The loads of objectives, without duplicates.
inline vector<double> asked_loads(const vector<slo>& slos) {
    vector<double> asked;
    for (const slo& s : slos)
        if (std::find(asked.begin(), asked.end(), s.bound) == asked.end()) asked.push_back(s.bound);
    return asked;
}

/// Loads of counting objectives are decided first. A probe has as many requests as its objectives
/// need.
inline measured_load judged_search(const scenario& s, const repeat_counts& repeats,
                                 scenario_use use) {
    measured_load all;
    all.requests = s.requests == 0 && s.duration.seconds() == 0
                       ? requests_of_a_probe
                       : static_cast<long long>(s.requests);
    for (const bool advisory : {false, true})
        for (const slo& x : s.slos) {
            if (x.is_advisory != advisory) continue;
            (is_of_capacity(x) ? all.slos : all.search.objectives_held).push_back(x);
            if (!is_of_capacity(x))
                all.requests = std::max(all.requests, least_values_of(x.statistic));
        }
    all.search.asked = asked_loads(all.slos);
    all.search.to_the_interval = use == scenario_use::find_capacity;
    if (all.search.to_the_interval) {
        all.measure_all(max_probes_of_a_search);
        all.rule = rule_of_a_load(options_of_an_end(), all.search.objectives_held);
    } else {
        all.first_repeats = repeats.first_repeats;
        all.max_repeats = repeats.max_repeats;
        all.rule = rule_of_a_load(s.judging, all.search.objectives_held, all.max_repeats);
    }
    return all;
}

/// In a search, the other objectives say what a load must meet.
inline void divide_by_loads(const std::string& gate, const measurements& e, judging_parameters& t) {
    const repeat_list& probes = e.candidate;
    const auto is_a_probe = [](const repeat_data& d) { return d.load > 0; };
    const bool searched = any_of(probes, is_a_probe);
    const bool has_capacity = any_of(t.slos, is_of_capacity);
    if (!searched && has_capacity)
        refuse({"slos: \"", gate, "\" was measured at one load, which shows no capacity"});
    if (!searched) return;
    const bool one_load = all_of(probes, [&](const repeat_data& d) {
        return d.load == probes.front().load;
    });
    if (!has_capacity && !one_load)
        refuse({"slos: \"", gate, "\" was measured at several loads: ask for its capacity, "
                                    "beside what a load must keep"});
    if (!has_capacity) return;
    vector<slo> capacities;
    for (const slo& s : t.slos)
        (is_of_capacity(s) ? capacities : t.objectives_held).push_back(s);
    t.slos = std::move(capacities);
    if (t.objectives_held.empty())
        refuse({"slos: they must say what a load has to hold"});
}

// ---- the next load

inline search_parameters search_parameters_of(const arrival_data& a, const planned_judging& j) {
    search_parameters t;
    t.whole = is_counted_in_users(a);
    t.most = max_load(a);
    t.least = t.whole ? 1 : t.most / 1000;
    // Starts low, since overload takes long to drain.
    t.start = j.search.asked.empty() ? std::max(t.least, t.most / 16) : j.search.asked[0];
    t.max_probes = j.max_repeats;
    return t;
}
/// Returns the load of the next probe, nothing if the search ends. For objectives it is each of
/// their loads until that is decided.
inline std::optional<double> next_load(const plan& p, const vector<probe>& probes) {
    const planned_judging& j = *p.judged;
    if (j.search.to_the_interval)
        return next_load(search_parameters_of(p.sent->arrivals, j), probes);
    if (client_gave_up(probes)) return std::nullopt;
    const vector<probed_load> tried = loads_of(probes);
    for (const double load : j.search.asked) {
        const auto at = std::find_if(tried.begin(), tried.end(),
                                     [&](const probed_load& l) { return l.load == load; });
        if (at == tried.end() || (at->shown == carried::open && !at->too_short &&
                                  at->probes < j.max_repeats))
            return load;
    }
    return std::nullopt;
}

/// The most probes of a search.
inline int max_probes(const planned_judging& j) {
    if (j.search.to_the_interval) return j.max_repeats;
    return j.max_repeats * static_cast<int>(std::max<std::size_t>(1, j.search.asked.size()));
}

// ---- the work of a trace

/// The work of requests as planned.
struct planned_work {
    double mean = 0, cv2 = 0;  // of a conversation; 0: no lengths are known
    double turns = 1;
};
inline planned_work usual_work(const planned_traffic& p) {
    constexpr double enough = 20000;
    vector<double> each;
    double turns = 0;
    for (std::size_t c = 0; turns < enough; ++c) {
        const std::size_t n = turns_of(p, c);
        double work = 0;
        for (std::size_t turn = 0; turn < n; ++turn) {
            const trace_item item = item_of(p, c * p.stride + turn);
            work += work_of(item.prompt_tokens, item.output_tokens);
        }
        each.push_back(work);
        turns += std::max(1.0, as_number(n));
    }
    planned_work w;
    w.mean = mean_of(each);
    if (each.size() < 2 || !(w.mean > 0)) return {};
    w.cv2 = sample_variance(each) / (w.mean * w.mean);
    w.turns = turns / as_number(each.size());
    return w;
}

/// The work of a probe is a matter of luck by no more than this: all probes replay one trace, so
/// that more of them do not average it.
inline constexpr double luck_of_a_probe = 0.03;
inline long long requests_for_work(const planned_traffic& p) {
    const planned_work w = usual_work(p);
    const double exact = w.cv2 / (luck_of_a_probe * luck_of_a_probe) * w.turns;
    return static_cast<long long>(rounded_to_two_digits(exact));
}

// ---- the plan of one probe

inline double mean_seconds(const time_distribution& d) {
    using shape = time_distribution::shape;
    return d.kind == shape::fixed     ? d.a
           : d.kind == shape::uniform ? (d.a + d.b) / 2
                                      : d.a * std::exp(d.b * d.b / 2);
}
inline double between_requests_s(const planned_traffic& p, double load, double answer_s) {
    return (is_counted_in_users(p.arrivals) ? answer_s + mean_seconds(p.arrivals.think) : 1) / load;
}
/// Seconds of a probe's measured part.
inline double probe_seconds(const planned_traffic& p, double load, double answer_s) {
    return std::max({p.duration_s > 0 ? p.duration_s : seconds_of_a_probe,
                     least_load_s(answer_s),
                     static_cast<double>(p.requests) * between_requests_s(p, load, answer_s)});
}
/// The load of a probe. Its warm-up has the same load, for the time asked for and until the server
/// is full.
inline planned_traffic traffic_at(planned_traffic t, double load, double answer_s) {
    const double seconds = probe_seconds(t, load, answer_s);
    const double warmup_s =
        static_cast<double>(t.warmup_requests) * between_requests_s(t, load, answer_s);
    t.hash.clear();
    t.described = {};
    t.arrivals.is_searched = false;
    t.warmup_requests = 0;
    const double filling_s = std::max(std::min(lead_of_a_probe, seconds / 4), answer_s);
    t.warmup_s = std::max({t.warmup_s, warmup_s, t.arrivals.users_ramp_s + filling_s});
    t.requests = 0;
    t.duration_s = seconds;
    if (is_counted_in_users(t.arrivals)) t.arrivals.users = std::llround(load);
    else t.arrivals.rate = load;
    if (!is_counted_in_users(t.arrivals) && t.stride == 1) {
        t.requests = static_cast<long long>(rounded_up(load * seconds));
        t.duration_s = 0;
    }
    return t;
}
/// The scenario at one load.
inline plan at_load(const plan& p, double load, double answer_s) {
    plan at = with_traffic(p, [&](planned_traffic& t) { t = traffic_at(t, load, answer_s); });
    return with_judging(std::move(at), [](planned_judging& j) {
        j.slos = std::move(j.search.objectives_held);
        j.search = {};
    });
}

// ---- as text

/// The least length of one probe.
inline std::string extent_of_a_probe(const planned_traffic& p) {
    return printed("probes of %g s and %lld requests at least, longer where answers are slow",
                   p.duration_s > 0 ? p.duration_s : seconds_of_a_probe, p.requests);
}
inline std::string probe_name(const plan& p, std::size_t before) {
    return printed("probe %zu of at most %d", before + 1, max_probes(*p.judged));
}
inline std::string planned_probes_text(const planned_traffic& sent, const planned_judging& j) {
    if (j.search.to_the_interval) return printed("at most %d probes", j.max_repeats);
    std::string loads;
    for (const double load : j.search.asked)
        loads += (loads.empty() ? "" : " and at ") + value_text(load_metric(sent), load);
    return printed("%d to %d probes at ", j.first_repeats, j.max_repeats) + loads;
}

/// What a plan says of its probes.
inline void plan_probes(const scenario& s, planned_traffic& sent, planned_judging& j) {
    if (!sent.searches()) return;
    const bool is_given = s.requests != 0 || s.duration.seconds() != 0;
    if (!j.search.to_the_interval && !is_given)
        sent.requests = std::max(sent.requests, requests_for_work(sent));
    j.search.first_load = search_parameters_of(sent.arrivals, j).start;
    sent.described.extent = extent_of_a_probe(sent);
    sent.described.repeats = planned_probes_text(sent, j);
}

// ===== [E] the result of a search for reports ====================================================

/// One probe as reports show it.
struct load_point {
    probe what{};
    long long requests = 0;        // measured ones
    vector<double> values{};  // of the objectives that the load must hold
    std::string disturbed{};  // why the probe shows nothing
};
/// The result of a search.
struct load_curve final : search_figures {
    metric_id unit = metric_id::capacity_in_rate;
    vector<slo> objectives_held{};
    vector<load_point> points{};
    search_state state{};
    std::string limiting_objective{};

    std::string console() const override {
        std::string out;
        for (std::size_t i = 0; i < points.size(); ++i)
            fill(out, "    {number}. {probe}\n", {{"number", printed("%2zu", i + 1)},
                                                {"probe", probe_text(unit, points[i].what)}});
        return out;
    }
    std::string page(const gate_report& g) const override;
    void fields(field_visitor& v) override;
};
inline load_curve load_curve_of(const plan& p, const measurements& e, const judging_parameters& t) {
    load_curve c;
    const found_capacity found = capacity_of(e, t);
    c.unit = load_metric(p);
    c.objectives_held = t.objectives_held;
    c.ends = c.state = found.state;
    c.limiting_objective = found.limiting_objective;
    c.line = capacity_line(c.unit, found);
    c.flat = flatness_text(found);
    c.fault = fault_of_search(e, t, found);
    for (const repeat_data& d : e.candidate) {
        load_point at{found.probes[c.points.size()],
                      std::count_if(d.records.begin(), d.records.end(), is_measured),
                      {},
                      d.disturbed};
        for (const slo& s : t.objectives_held) at.values.push_back(evaluate(s.statistic, d));
        c.points.push_back(at);
    }
    const measurements of_tables = measurements_of_tables(e, t);
    if (!of_tables.candidate.empty())
        c.tables_at = "at " + value_text(c.unit, of_tables.candidate.front().load);
    return c;
}


inline void fields_of(field_visitor& v, load_point& p) {
    v.number({"load"}, p.what.load, rate_range);
    v.choice({"part"}, p.what.part, probe_of::asked);
    v.number({"margin", "the worst ln(statistic/limit), of fractions the difference of logits; "
                        "above 0 is a miss"}, p.what.margin, any_number);
    v.flag({"over_saturated"}, p.what.over);
    v.flag({"invalid", "the client had too great a part in it"}, p.what.invalid);
    v.choice({"shows", "with those before it at the same load"}, p.what.shown, carried::misses);
    v.whole({"requests"}, p.requests);
    v.numbers({"values", "of `objectives_held`"}, p.values, any_number);
}
/// The result of a search, and its probes.
inline void fields_of(field_visitor& v, load_curve& c) {
    std::string unit = c.unit == metric_id::capacity_in_users ? "users" : "requests/s";
    v.text({"unit", "requests/s or users"}, unit);
    v.number({"low", "the highest load that was shown to hold all objectives, 0: none"},
             c.state.low, rate_range);
    v.number({"high", "the lowest load that was shown to miss one, null: none"}, c.state.high,
             {0, max_rate, infinity});
    v.number({"estimate", "the middle of both ends, null: an end is missing"}, c.state.estimate,
             any_number);
    v.number({"elasticity", "by how many percent 1 % more load moves what bounds it, null: an "
                            "end is missing"},
             c.state.elasticity, any_number);
    v.text({"limiting_objective"}, c.limiting_objective);
    v.text({"line"}, c.line);
    v.text({"fault", "why the search says nothing"}, c.fault);
    vector<std::string> objectives_held;
    for (const slo& s : c.objectives_held) objectives_held.push_back(str(s.text()));
    v.texts({"objectives_held", "the objectives that a load must hold"}, objectives_held);
    v.list({"probes"}, c.points, [&](load_point& p) { fields_of(v, p); });
}
inline void load_curve::fields(field_visitor& v) { fields_of(v, *this); }

// ===== [E] the report page: the result of a search ===============================================

inline const char* style_of(carried shown) {
    return shown == carried::holds ? "pass" : shown == carried::misses ? "fail" : "open";
}
/// Draws one objective over the load. A probe without a value stands at the end of the axis.
inline std::string objective_figure(const load_curve& c, std::size_t which) {
    const slo& s = c.objectives_held[which];
    const metric_id id = s.statistic.metric;
    const bool in_users = c.unit == metric_id::capacity_in_users;
    plot p({in_users ? "none" : "req/s", "log"},
           {plot_unit_of(facts_of(id).unit), is_request_fraction(id) ? "whole" : "log"});
    if (c.state.has_both()) p.add("stretch", {}, {c.state.low, c.state.high});
    p.add("across", {limit_text(id, s.bound)}, {s.bound});
    for (const load_point& at : c.points) {
        const double v = at.values[which];
        p.dot(style_of(at.what.shown), {at.what.load, std::isfinite(v) ? v
                                                      : s.at_most      ? infinity
                                                                       : 0});
    }
    return p.figure(str(s.text()), in_users ? "over users" : "over requests/s");
}
inline std::string search_html(const load_curve& c, const std::string& gate) {
    if (c.points.empty()) return {};
    std::string figures;
    for (std::size_t i = 0; i < c.objectives_held.size(); ++i) figures += objective_figure(c, i);
    report_table t{{"probe", "shows", "load", "requests"}, 2};
    for (const slo& s : c.objectives_held) t.head.push_back(str(s.statistic.name));
    for (const load_point& p : c.points) {
        t.add({t.rows.size() + 1,
               !p.disturbed.empty()            ? p.disturbed.c_str()
               : p.what.invalid                ? "the client could not keep up"
               : p.what.shown != carried::open ? to_string(p.what.shown)
               : p.what.over                   ? "it outgrew the server"
                                               : "",
               {c.unit, p.what.load}, p.requests});
        for (std::size_t k = 0; k < c.objectives_held.size(); ++k)
            t.append({{c.objectives_held[k].statistic.metric, p.values[k]}});
    }
    return filled(
        "<h3>Capacity</h3>\n[<p>{line:x}.</p>\n][<p class=\"note\">{flat:x}.</p>\n][<p "
        "class=\"note\">{fault:x}.</p>\n]<div class=\"charts\">\n<p class=\"note\">Each dot is a "
        "probe: green where all at its load show that it is carried, red where they show that it "
        "is too much, hollow where they show nothing. The dashed line is the limit, the grey "
        "stretch the capacity.</p>\n<div class=\"plots\">\n{figures}</div>\n</div>\n{table}",
        {{"line", c.line}, {"flat", c.flat}, {"fault", c.fault}, {"figures", figures},
         {"table", page_table("Probes of " + gate, t)}});
}
inline std::string load_curve::page(const gate_report& g) const {
    return search_html(*this, g.what.name);
}

// ===== [E] searches as the header asks for them ==================================================

inline measured_load searched_load_of(const scenario& s, const arrival_data& a, scenario_use use) {
    if (a.is_searched) check_search(s, use);
    else refuse_without_search(s, a, use);
    return judged_search(s, planned_repeats(s, use), use);
}
inline void add_load_curve(const plan& p, const measurements& e, const judging_parameters& t,
                           std::shared_ptr<search_figures>& into) {
    into = new_shared<load_curve>(load_curve_of(p, e, t));
}
inline constinit const extension loads_searched{.name = "capacity",
                                                .add_to_plan = plan_probes,
                                                .searched = searched_load_of,
                                                .at_load = at_load,
                                                .analyse_search = analysis_of_search,
                                                .at_load_of_tables = measurements_of_tables,
                                                .divide = divide_by_loads,
                                                .add_search = add_load_curve};
extern constinit const bool include_llmbench_capacity_hpp_where_LLMBENCH_MAIN_is = true;
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_searches() { add(loads_searched); }

// ===== [E] loads searched on their servers =======================================================

/// The search of one gate.
class probing {
public:
    explicit probing(gate_run& by) : by_(by) {}

    /// Probes loads until the capacity is known, or probes run out.
    void search() {
        const plan& p = by_.planned();
        for (;;) {
            if (by_.count() > 0 && fault_of_gate(by_.seen())) return;
            const std::optional<double> load = next_load(p, probes_of(by_.seen(), by_.judged_by()));
            if (!load) return;
            const double answer_s = probes_.emplace(*load, answer_s_).first->second;
            const slot probe{.position = repeat_positions::of_probe,
                             .name = probe_name(p, by_.seen().candidate.size()) + " at " +
                                     value_text(load_metric(p), *load),
                             .load = *load,
                             .answer_s = answer_s,
                             .part = p.judged->search.to_the_interval ? probe_of::search
                                                                      : probe_of::asked};
            if (by_.ends_late(ns_of(expected_seconds(at_load(p, *load, answer_s)))) ||
                !by_.measure({probe})) {
                by_.note_end_of_time();
                return;
            }
            if (was_too_short(by_.seen().candidate.back())) continue;
            if (const auto error = client_error_at(by_.seen(), by_.judged_by(), *load))
                leave_out(*error);
        }
    }

private:
    /// The probe stays in the list, but counts as no result.
    void leave_out(const client_error& error) {
        by_.leave_out(error.repeat, described(error.why));
        by_.say(printed("  probe %zu shows nothing: ", error.repeat + 1) + described(error.why) +
                "\n");
    }
    /// If answers take so long that a probe measured only the start of its load, the first probe is
    /// set aside and later ones are longer. A later probe stays, however slow: a selection must not
    /// depend on the result.
    bool was_too_short(const repeat_data& d) {
        const double now = usual_answer_s(d), was = answer_s_;
        if (is_over(d, by_.seen().arrival_cv2) || now <= was) return false;
        answer_s_ = now;
        const double measured_s = probe_seconds(by_.planned(), d.load, was);
        const auto at_this_load = [&](const repeat_data& x) { return x.load == d.load; };
        const repeat_list& all = by_.seen().candidate;
        const bool is_first = all.those(at_this_load).size() == 1;
        const double needed_s = probe_seconds(by_.planned(), d.load, now);
        if (!is_first || !is_too_short(measured_s, needed_s)) return false;
        probes_.erase(d.load);
        return by_.repeats_again(
            client_error{cause_with<because::probe_too_short>({{"answer", now},
                                                               {"load", measured_s},
                                                               {"needed", needed_s},
                                                               {"starts", not_a_number},
                                                               {"of_sessions", not_a_number}}),
                         all.size() - 1});
    }

    gate_run& by_;
    std::map<double, double> probes_{};  // by their loads: the duration of an answer they are for
    double answer_s_ = 0;  // duration of an answer, while the server kept up with a probed load
};

inline void probe_loads(gate_run& g) { probing(g).search(); }
inline constinit const extension loads_probed{.name = "capacity", .probe = probe_loads};
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_probes() { add(loads_probed); }

capacity_result search_access::capacity_in(const result& r) {
    capacity_result c;
    static_cast<result&>(c) = r;
    const auto g = result_access::gate_of(r);
    const found_capacity found = g ? capacity_of(g->seen, g->judged_by) : found_capacity{};
    const metric_id unit = g ? load_metric(g->what) : metric_id::capacity_in_rate;
    c.low_ = found.state.low;
    c.high_ = found.state.high;
    c.limiting_objective_ = found.limiting_objective;
    c.probes_ = static_cast<int>(found.probes.size());
    c.line_ = capacity_line(unit, found);
    c.explained_ = capacity_explained(unit, found);
    return c;
}
}  // namespace detail

capacity_result find_capacity(const scenario& s, const char* file, int line) {
    return detail::search_access::capacity_in(
        detail::executed(detail::gate_execution(s, file, line, "find_capacity")));
}

}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_CAPACITY_IMPLEMENTED
