// the capacity of a candidate beside that of a baseline
// Both are probed in turns at loads a factor apart, up to the baseline's capacity. A server with
// that factor of the capacity has at each load the margin that the baseline has one load further
// up, whatever the curve looks like: a pass needs neither a slope nor the root of either.
#pragma once

#include "api/result.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/judging/rule.hpp"
#include "core/capacity/search.hpp"

#include <algorithm>  // max, min, reverse
#include <cmath>  // exp, isfinite, log, pow, sqrt
#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One run of one arm at one load.
struct arm_probe {
    run_arm arm = run_arm::candidate;
    double load = 0;    // requests/s or users
    double margin = 0;  // the worst log(statistic/limit): below 0 it holds the objectives
    bool over = false;     // the load outgrew the server: a miss without a size
    bool invalid = false;  // the client did not keep up: it says nothing
};

/// What is compared, and how far one goes for it.
struct compare_terms {
    double capacity = 1;   // of the baseline, as a search without evidence put it
    double factor = 0.95;  // of the baseline's capacity that the candidate must have
    bool whole = false;    // users
    double believed_sd = prior_sd;  // of a margin, from probe to probe
    int most_rounds = 3;            // probes of each arm at each load
};

/// The next load to try with both arms and which of them goes first, or why there is none.
struct pair_step {
    double load = 0;
    run_arm first = run_arm::baseline;
    std::string done{};
};

/// What a comparison shows.
struct capacity_ratio {
    verdict outcome = verdict::inconclusive;
    double ratio = not_a_number;  // candidate / baseline
    double low = 0, high = infinity;  // each one-sided at 5 %
    double elasticity = not_a_number;  // d margin / d log load, of both arms
    std::string reason{};
};

// The curve is steepest at the capacity itself, and only there do the margins of a slower server
// equal the baseline's at another load: below it all its requests are slower too.
inline constexpr std::size_t compared_loads = 3;
inline constexpr int first_compared = 2;  // rounds before the first look

/// From low to high. Users are rounded so that no step is larger than the factor.
inline std::vector<double> loads_of(const compare_terms& t) {
    std::vector<double> loads;
    double load = t.capacity;
    if (t.whole) load = std::max(1.0, rounded_down(load));
    for (std::size_t i = 0; i < compared_loads; ++i) {
        loads.push_back(load);
        load *= t.factor;
        if (t.whole) load = rounded_up(load);
    }
    std::reverse(loads.begin(), loads.end());
    return loads;
}

/// Two probes in a row, one of each arm at the same load.
struct probe_pair {
    arm_probe baseline{}, candidate{};
    bool is_valid() const { return !baseline.invalid && !candidate.invalid; }
};
inline std::vector<probe_pair> pairs_of(const std::vector<arm_probe>& probes) {
    std::vector<probe_pair> out;
    for (std::size_t i = 0; i + 1 < probes.size(); i += 2) {
        const bool swapped = probes[i].arm == run_arm::candidate;
        out.push_back({probes[i + (swapped ? 1 : 0)], probes[i + (swapped ? 0 : 1)]});
    }
    return out;
}
/// As of a search, of pairs.
inline bool client_gave_up(const std::vector<probe_pair>& pairs) {
    const std::size_t n = pairs.size();
    return n > 1 && !pairs[n - 1].is_valid() && !pairs[n - 2].is_valid();
}
/// Rounds of all loads in order, each load once in each.
inline std::vector<std::vector<probe_pair>> rounds_of(const compare_terms& t,
                                                      const std::vector<arm_probe>& probes) {
    const std::size_t size = loads_of(t).size();
    std::vector<std::vector<probe_pair>> out;
    for (const probe_pair& p : pairs_of(probes)) {
        if (!p.is_valid()) continue;
        if (out.empty() || out.back().size() == size) out.emplace_back();
        out.back().push_back(p);
    }
    // Every other round went down.
    for (std::size_t i = 1; i < out.size(); i += 2)
        if (out[i].size() == size) std::reverse(out[i].begin(), out[i].end());
    if (!out.empty() && out.back().size() < size) out.pop_back();
    return out;
}

/// What stands for the margin of a load that the server outgrew: 4.5 times the limit.
inline double sized_margin(const arm_probe& p) {
    return !p.over && std::isfinite(p.margin) ? p.margin : std::max(1.5, std::min(p.margin, 3.0));
}

/// Differences that are at most 0 in the mean where the candidate has the factor of the baseline's
/// capacity, and where it has all of it.
struct margin_differences {
    std::vector<double> by_factor{}, at_equal_loads{};
    std::vector<double> slopes{};  // of both arms from the lowest load to the highest, by round
};
inline margin_differences differences_of(const std::vector<std::vector<probe_pair>>& rounds) {
    margin_differences d;
    for (const std::vector<probe_pair>& r : rounds) {
        for (std::size_t i = 0; i < r.size(); ++i) {
            const double candidate = sized_margin(r[i].candidate);
            d.at_equal_loads.push_back(candidate - sized_margin(r[i].baseline));
            if (i + 1 < r.size())
                d.by_factor.push_back(candidate - sized_margin(r[i + 1].baseline));
        }
        const double rise = (sized_margin(r.back().candidate) + sized_margin(r.back().baseline) -
                             sized_margin(r.front().candidate) - sized_margin(r.front().baseline)) /
                            2;
        const double span = std::log(r.back().baseline.load / r.front().baseline.load);
        if (span > 0) d.slopes.push_back(rise / span);
    }
    return d;
}

/// An analysis of differences that come from some loads in turns, whose means may differ: they
/// spread by what each load's own do. As of pairs, what is believed may widen what they leave open
/// and never narrows it.
inline interim_analysis analysis_of_loads(const std::vector<double>& differences, std::size_t loads,
                                          double s0, const judging_rule& rule) {
    const auto n = static_cast<double>(differences.size()), own_df = n - static_cast<double>(loads);
    double squares = 0;
    for (std::size_t k = 0; k < loads; ++k) {
        std::vector<double> here;
        for (std::size_t i = k; i < differences.size(); i += loads) here.push_back(differences[i]);
        squares += sample_variance(here) * static_cast<double>(here.size() - 1);
    }
    interim_analysis believed = moderated_analysis(mean_of(differences), squares, own_df, s0);
    believed.se = believed.sd / std::sqrt(n);
    decide(believed, rule);
    if (own_df <= 0) return believed;
    return unless_wider(believed, squares / own_df, own_df, n, s0, rule);
}

/// As many analyses as there are rounds after the first ones.
inline judging_rule rule_of_a_comparison(const compare_terms& t) {
    judging_rule r;
    r.analyses = std::max(1, t.most_rounds - first_compared + 1);
    r.pass_z = pocock_constant(r.analyses, r.pass_level);
    r.fail_z = pocock_constant(r.analyses, r.fail_level);
    return r;
}

/// The ratio where the lines of both arms are a distance apart, and how sure that is: by the delta
/// method, for the slope is measured too.
inline void set_ratio(capacity_ratio& r, const margin_differences& d, const compare_terms& t) {
    const double s0 = t.believed_sd * std::sqrt(2.0), tail = student_t_quantile(0.95, prior_df);
    const interim_analysis apart =
        analysis_of_loads(d.at_equal_loads, compared_loads, s0, judging_rule{});
    const double n = static_cast<double>(d.slopes.size());
    const double span = -std::log(t.factor) * static_cast<double>(compared_loads - 1);
    r.elasticity = mean_of(d.slopes);
    // Of the slope of a round: two arms, each with the noise of two probes.
    const double slope_sd = std::max(std::sqrt(sample_variance(d.slopes)), t.believed_sd / span);
    const double slope_error = slope_sd / std::sqrt(n);
    if (!(r.elasticity > tail * slope_error)) {
        r.reason = printed("the objectives hardly depend on the load: their margin moves by %.2g "
                           "%% where that moves by 1 %%",
                           r.elasticity);
        return;
    }
    const double log_ratio = -apart.mean / r.elasticity;
    const double error = std::sqrt(apart.se * apart.se + std::pow(log_ratio * slope_error, 2)) /
                         r.elasticity;
    r.ratio = std::exp(log_ratio);
    r.low = std::exp(log_ratio - tail * error);
    r.high = std::exp(log_ratio + tail * error);
}

/// What complete rounds show. A pass: the ratio is above the factor, at 5 %. A fail: it is below 1
/// at 1 %, and more likely below the factor than above.
inline capacity_ratio compared(const compare_terms& t, const std::vector<arm_probe>& probes) {
    capacity_ratio out;
    const std::vector<std::vector<probe_pair>> rounds = rounds_of(t, probes);
    std::size_t n = 0, candidate_over = 0, baseline_over = 0;
    for (const std::vector<probe_pair>& r : rounds)
        for (const probe_pair& p : r) {
            ++n;
            candidate_over += p.candidate.over;
            baseline_over += p.baseline.over;
        }
    if (n == 0) {
        out.reason = "no load was tried with both";
        return out;
    }
    if (baseline_over > 0) {
        out.reason = "the baseline was over-saturated below the capacity that was found";
        return out;
    }
    if (candidate_over == n) {
        out.outcome = verdict::fail;
        out.ratio = 0;
        out.high = loads_of(t).front() / t.capacity;
        out.low = 0;
        out.reason = printed("over-saturated at %.3g of the baseline's capacity and above, where "
                             "the baseline is not",
                             out.high);
        return out;
    }
    const margin_differences d = differences_of(rounds);
    set_ratio(out, d, t);
    if (static_cast<int>(rounds.size()) < first_compared) return out;
    const judging_rule rule = rule_of_a_comparison(t);
    const double s0 = t.believed_sd * std::sqrt(2.0);
    const interim_analysis by_factor = analysis_of_loads(d.by_factor, compared_loads - 1, s0, rule);
    const interim_analysis equal = analysis_of_loads(d.at_equal_loads, compared_loads, s0, rule);
    const bool holds = by_factor.outcome == verdict::pass && candidate_over == 0;
    if (holds) out.outcome = verdict::pass;
    else if (equal.outcome == verdict::fail && by_factor.mean > 0) out.outcome = verdict::fail;
    else if (out.reason.empty()) out.reason = "too close to call";
    if (out.outcome != verdict::inconclusive) out.reason.clear();
    return out;
}

/// Which load comes next: up, then down, so that a drift cancels; the arms take turns in going
/// first, A B B A.
inline pair_step next_pair(const compare_terms& t, const std::vector<arm_probe>& probes) {
    const std::vector<double> loads = loads_of(t);
    const std::vector<probe_pair> pairs = pairs_of(probes);
    std::size_t valid = 0;
    for (const probe_pair& p : pairs) valid += p.is_valid();
    if (client_gave_up(pairs)) return {0, {}, client_gave_up_text};
    const std::size_t round = valid / loads.size(), at = valid % loads.size();
    if (at == 0 && round > 0 && pairs.back().is_valid()) {
        if (static_cast<int>(round) >= t.most_rounds) return {0, {}, "all loads were compared"};
        const capacity_ratio r = compared(t, probes);
        if (r.outcome != verdict::inconclusive) return {0, {}, "the comparison is decided"};
    }
    pair_step next;
    next.load = loads[round % 2 == 0 ? at : loads.size() - 1 - at];
    next.first = valid % 2 == 0 ? run_arm::baseline : run_arm::candidate;
    return next;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
