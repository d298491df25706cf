// what is decided on an objective, and why
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/statistics.hpp"
#include "core/history/learned.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // max
#include <cmath>  // floor, isfinite
#include <cstddef>  // size_t
#include <optional>
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What decides a verdict, or keeps it from being one. core/described has a sentence for each,
/// which says what its numbers are.
enum class because : unsigned char {
    nothing,
    reported,   // a text that somebody else wrote
    stopped, unsupported, server_gone, interrupted, no_requests, none_succeeded, no_baseline,
    task_failed, task_idle,  // beside the load
    // the numbers
    too_close, too_few_to_fail, all_together, cut_off, cached, cached_in_both,
    failed, failed_over, failed_in_burst, failed_within, failed_or_beyond, failed_in_tail,
    wrong_answers, answers_differ,
    no_size, no_finite_value, pairs_spread, repeats_spread, thirds,
    // values that are missing
    nothing_measured, no_value, no_value_in, not_played_out, stored_lacks,
    start_unknown, too_few_values,
    no_finite_part, small_sample, small_for_drift, window_ends,
    // nights of main
    no_nights, few_nights, nights_lack, one_repeat, main_moved, trouble_nights, given_spread,
    unknown_card,
    // the client
    client_without, client_is_busy, client_off_rate, read_together, sent_late, client_part,
    client_in_probes,
    // the server's answers
    over_saturated, over_saturated_by_sessions, no_such_turns, none_selected, label_failed,
    gaps_of_all, lacks_values, other_tokens, context_full, stops_early, stops_by_itself,
    too_long, filtered, several_choices, known_prompts, usage_over_content, usage_may_hide,
    usage_over_prompt, in_one_piece, in_a_lump, comes_in_lumps, baseline_fails,
    baseline_may_fail,
    // the server's page
    metrics_reported, restarted_before, restarted_in, served_others, others_requests, others_tokens,
    queue_stood, cache_full, cache_preempts, preempted, clocks_lower,
    // loads
    carries, not_monotone, baseline_unknown, no_edge, nothing_compared, gave_up, baseline_breaks,
    candidate_carries, several_loads, first_probe_failed, probe_too_short,
    // what would be decided more often
    headroom_in_noise, limit_that_passes,
};
/// Whose fault it is.
enum class whose : unsigned char { nobody, client, plan, server, baseline_server, baseline };

struct cause {
    because what = because::nothing;
    std::vector<double> numbers{};
    whose of = whose::nobody;
    std::string text{};   // others': an error, a name
    explicit operator bool() const { return what != because::nothing; }
};
inline cause of_server(cause c, bool is_baseline) {
    c.of = is_baseline ? whose::baseline_server : whose::server;
    return c;
}
inline cause with_text(because what, std::string text) {
    if (text.empty()) return {};
    return {what, {}, whose::nobody, std::move(text)};
}
inline double as_number(std::size_t n) { return static_cast<double>(n); }

// ---- misses

/// What k misses in n trials show, dependence divided out.
struct miss_counts {
    double k = 0, n = 0, effect = 1, allowed = 0;
    double flip_variance = not_a_number;  // W: of the answers to the same questions, in a run
    double flipping = 0, most_flipping = 0;  // questions not always alike, and what they may be
    double run_effect = 0, runs = 0;         // of what whole runs moved by
    double product = 0;  // of the repeats' fractions over the allowed one, 0: no evidence
    miss_counts with_misses(double other) const {
        miss_counts c = *this;
        c.k = other;
        return c;
    }
    /// Runs are few, and what they moved by is known as badly: Student's t in the normal's place.
    double effect_at(double alpha) const {
        if (run_effect == 0) return effect;
        const double t = student_t_quantile(1 - alpha, runs - 1) / normal_quantile(1 - alpha);
        return std::max(effect, run_effect * t * t);
    }
    double upper(double alpha) const {
        const double e = effect_at(alpha);
        return clopper_pearson_upper(k / e, n / e, alpha);
    }
    double lower(double alpha) const {
        const double e = effect_at(alpha);
        return clopper_pearson_lower(k / e, n / e, alpha);
    }
    /// The most misses that pass, -1 where not even none does; the fewest that fail.
    double most_that_pass(double alpha) const {
        double low = -1, high = n;
        while (high - low > 1) {
            const double mid = std::floor((low + high) / 2);
            (with_misses(mid).upper(alpha) <= allowed ? low : high) = mid;
        }
        return low;
    }
    double fewest_that_fail(double alpha) const {
        double low = 0, high = n + 1;
        while (high - low > 1) {
            const double mid = std::floor((low + high) / 2);
            (with_misses(mid).lower(alpha) > allowed ? high : low) = mid;
        }
        return high;
    }
};

/// At which levels counts are bounded, at one look. What can fail in two ways has half of the level
/// of false fails for each.
struct count_levels {
    double pass = 0, fail = 0, product = infinity;
};

/// An analysis of misses: how many there are, compared with which levels, and of a percentile
/// that is held against a baseline the limit's ratio to the value that it stands for.
struct analysis_of_misses {
    miss_counts seen{};
    count_levels at{};
    double scale = 1;
    double upper() const { return seen.upper(at.pass); }
    double lower() const { return seen.lower(at.fail); }
    /// Where none is allowed no number of trials shows that there are none: it passes as observed,
    /// and one miss fails it.
    verdict outcome() const {
        if (upper() <= seen.allowed || (seen.allowed == 0 && seen.k == 0)) return verdict::pass;
        const bool fails = lower() > seen.allowed || seen.product >= at.product;
        return fails ? verdict::fail : verdict::inconclusive;
    }
};

// ---- a decision

/// A load that was probed, and the margin found there.
struct margin_at {
    run_arm arm = run_arm::candidate;
    double load = 0, margin = 0;
};

/// A verdict as numbers, and what they are made of: enough to say it in sentences (core/described),
/// and none of those.
struct decision : verdict_numbers {
    std::vector<cause> why{};
    cause advice{};
    bool paired = false;             // with a live baseline, and not with a stored one
    std::vector<double> values{};    // of repeats, pairs, batches or slices
    std::vector<double> distances{}; // of these from the limit
    interim_analysis last{};
    std::optional<analysis_of_misses> counted{};
    judging_rule rule{};
    stored_side stored{};
    std::optional<learned_history> nights{};  // that it was held against
    double history_sd = not_a_number;  // of repeats, as believed by their nights
    bool is_at_its_end = false;        // more repeats would decide nothing more
    std::vector<double> stored_values{};
    double calibrated_sd = not_a_number, run_sd = not_a_number;
    double dependence = not_a_number;  // of slices that are neighbours
    std::string calibrated_in{};     // which file
    std::vector<margin_at> margins{};
    std::string at_the_load{};       // what decides there
};

/// What judging an objective begins with: nothing is known and nothing decided.
inline decision undecided(const slo& s) {
    decision d;
    d.what = s;
    d.outcome = verdict::inconclusive;
    d.measured = not_a_number;
    d.estimate = {not_a_number, not_a_number, not_a_number};
    return d;
}
/// For no other reason than this, and with no advice.
inline decision decided(decision d, verdict outcome, cause why) {
    d.outcome = outcome;
    d.why.clear();
    if (why) d.why.push_back(std::move(why));
    d.advice = {};
    return d;
}

/// Whether a verdict is on all requests of its repeats, and not on a statistic of each.
inline bool is_counted(const verdict_numbers& v) {
    return v.decided_by == verdict_method::counts ||
           v.decided_by == verdict_method::counted_misses;
}
/// A miss that the numbers show, and that is none yet.
inline bool waits_for_a_third(const decision& d) {
    return d.outcome == verdict::inconclusive && d.why.size() == 1 &&
           d.why[0].what == because::too_few_to_fail;
}

/// How far inside the limit the estimate is, relative; negative outside.
inline double headroom(const verdict_numbers& v) {
    if (!std::isfinite(v.estimate.value) || v.limit == 0) return not_a_number;
    return (v.what.at_most ? 1 : -1) * (1 - v.estimate.value / v.limit);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
