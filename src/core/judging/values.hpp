// values: times, speeds and rates
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/metric/words.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/pooled.hpp"
#include "core/measured/reading.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/pairs.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/scale.hpp"
#include "core/judging/terms.hpp"

#include <algorithm>  // max, min, sort
#include <cmath>  // pow, floor, log10, ceil, exp, isfinite
#include <string>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A limit that a verdict would find met in most runs.
inline std::string limit_to_write(const slo& s, double value) {
    const std::string side = s.at_most ? "<= " : ">= ";
    if (facts_of(s.what.metric).is_whole && s.factor == 0)
        return side + limit_text(s.what.metric, s.at_most ? std::ceil(value) : std::floor(value));
    // Two digits, three from 10 to 20, rounded to the easy side.
    const double power = std::pow(10, std::floor(std::log10(value)));
    const double step = power / (value < 2 * power ? 100 : 10);
    const auto rounded = [&](double unit) {
        return (s.at_most ? std::ceil(value / unit) : std::floor(value / unit)) * unit;
    };
    return side + (s.factor > 0 ? printed("%.2f * baseline", rounded(0.01))
                                : limit_text(s.what.metric, rounded(step)));
}

/// What the last look decided, as the reader's numbers and inputs.
inline void tell_look(slo_verdict& v, const look& l, const judging_rule& rule, double repeats,
                      const stored_side& other = {}) {
    const double sign = v.what.at_most ? 1 : -1;
    const auto back = [&](double distance) { return at_distance(v.what, distance, v.limit); };
    const double reach = l.pass_t * l.se;
    v.estimate = {back(l.mean), back(l.mean - sign * reach), back(l.mean + sign * reach)};
    v.detectable = v.limit == 0 ? 0 : share_of_limit(v.what, std::log1p(l.detectable));
    v.advice = text();
    const double most = std::max<double>(rule.most, repeats);
    const double more = l.df + most - repeats;
    const double shares = 1 / most + (other.repeats > 0 ? 1 / other.repeats : 0);
    const double sd = l.spread == spread_of::measured ? std::max(l.sd, l.prior_sd) : l.sd;
    const double last_se = std::sqrt(sd * sd * shares + other.day_sd * other.day_sd);
    const double t = student_t_quantile(normal_cdf(l.pass_z), more);
    const double to_write = back(l.mean + (t + 1.645) * last_se);
    const bool is_known = more > 2;  // two repeats alone say little of what five would
    if (is_known && -l.mean < (t + four_in_five) * last_se && l.mean < 0 && to_write > 0)
        v.advice =
            printed("headroom of %.1f %% under noise of %.1f %% will often be inconclusive; ",
                    -share_of_limit(v.what, l.mean) * 100, l.sd * 100) +
            limit_to_write(v.what, to_write) +
            " would seldom be";
    v.arithmetic = str(v.arithmetic) + printed(
        "; mean %.6g, sd %.6g (%s), df %.0f, standard error %.6g; bounds: pass %.6g + %.4f x se = "
        "%.6g < 0, fail %.6g - %.4f x se = %.6g > 0 (t quantiles of the normal scores %.4f and "
        "%.4f, Pocock's for %d looks at %.4g and %.4g)",
        l.mean, l.sd, to_string(l.spread), l.df, l.se, l.mean, l.pass_t,
        l.pass_bound, l.mean, l.fail_t, l.fail_bound, l.pass_z, l.fail_z, rule.looks,
        rule.pass_level, rule.fail_level);
    for (const auto& [name, value] :
         {std::pair<const char*, double>{"mean", l.mean}, {"sd", l.sd}, {"df", l.df},
          {"standard_error", l.se}, {"pass_t", l.pass_t}, {"fail_t", l.fail_t},
          {"pass_bound", l.pass_bound}, {"fail_bound", l.fail_bound}})
        v.inputs.push_back({name, {value}});
}

/// What the repeats of a gate are held against where an objective speaks of a baseline.
struct comparison {
    metric_id of_metric = metric_id::ttft;
    bool relative = false, paired = false;  // to a live baseline in pairs, else to a stored one
    double base_log = 0;
    stored_side stored{};
    std::string missing{};  // why there is nothing to compare with
    arm_values mine{}, other{};  // the statistic of the candidate, and of a live baseline
    /// What is held against the limit, of a value of the candidate and one of the baseline.
    double of(double value, double base) const {
        if (!relative) return value;
        value = started(of_metric, value);
        base = started(of_metric, base);
        if (!paired) return value / std::exp(base_log);
        return std::isfinite(base) && base > 0 ? value / base : not_a_number;
    }
    double of_repeat(std::size_t i) const {
        return of(mine.each[i], paired ? other.each[i] : not_a_number);
    }
    double of_all() const { return of(mine.together, other.together); }
};
inline comparison comparison_of(const evidence& e, const terms& t, const slo& s) {
    comparison c;
    c.of_metric = s.what.metric;
    c.relative = s.factor > 0;
    c.paired = c.relative && e.has_live_baseline();
    c.mine = values_of(s.what, e.candidate, t.read);
    if (c.paired) c.other = values_of(s.what, e.baseline, opposite(t.read));
    if (!c.relative) c.stored.day_sd = t.day_sd;
    if (!c.relative || c.paired) return c;
    const auto at = t.stored.values.find(str(s.what.name));
    std::vector<double> logs;
    if (at != t.stored.values.end())
        for (const double x : at->second) logs.push_back(std::log(started(s.what.metric, x)));
    if (logs.empty() || !std::isfinite(mean_of(logs))) {
        c.missing = "the stored baseline has no value of " + str(s.what.name);
        return c;
    }
    c.base_log = mean_of(logs);
    c.stored = {static_cast<double>(logs.size()), sample_variance(logs), t.stored.day_sd};
    return c;
}

/// The repeats looked at so far. A miss without a size has no logarithm; it is counted instead.
struct looked_at {
    std::vector<double> values{}, distances{};
    std::size_t unbounded = 0;
    void add(double value, const slo& s, double limit) {
        values.push_back(value);
        const bool has_no_log = started(s.what.metric, value) == 0 && is_on_the_log(s);
        const bool miss = s.at_most ? value == infinity : has_no_log || value == -infinity;
        unbounded += miss;
        if (!miss) distances.push_back(distance_of(s, value, limit));
    }
};

/// What of a percentile's verdict speaks of failures: the share of requests beyond the limit, where
/// failed ones are, held against the share that the percentile allows. The limit as a value, and
/// what shows a miss where that limit is itself an estimate.
struct limit_of_values {
    double bound = 0, allowed = 0;
    bool may_pass = true;  // counts of this sample do not show what is compared with another
};
inline limit_of_values limit_of_values_of(const evidence& e, const terms& t, const slo& s,
                                          const comparison& c, std::size_t repeats) {
    limit_of_values l{s.bound, allowed_misses(s), !c.relative};
    if (!c.relative) return l;
    if (!c.paired) {  // what two days differ by is no regression
        const double days = 1 + 2 * c.stored.day_sd;
        const double factor = s.at_most ? std::max(s.factor, days) : std::min(s.factor, 1 / days);
        l.bound = factor * std::exp(c.base_log);
        return l;
    }
    std::vector<double> pooled;
    for (std::size_t i = 0; i < repeats; ++i) {
        const std::vector<double> more =
            values_in_order(s.what.metric, e.baseline[i], opposite(t.read));
        pooled.insert(pooled.end(), more.begin(), more.end());
    }
    if (pooled.empty()) return {not_a_number, l.allowed, false};
    std::sort(pooled.begin(), pooled.end());
    l.bound = s.factor * nearest_rank(pooled, s.what.q);
    // As much of the baseline itself may lie beyond its own estimate.
    const auto n = static_cast<double>(pooled.size());
    l.allowed = clopper_pearson_upper(n * l.allowed, n, count_levels_of(s, t.rule).fail);
    return l;
}

/// A percentile that failures reach in some repeats, judged on the pooled count of the requests
/// beyond its limit: by the rule of shares.
inline verdict decide_by_counts(slo_verdict& v, const evidence& e, const terms& t,
                                const comparison& c) {
    const auto repeats = static_cast<std::size_t>(v.repeats);
    const limit_of_values l = limit_of_values_of(e, t, v.what, c, repeats);
    const bool is_known = std::isfinite(l.bound) && l.bound > 0;
    slo s = v.what;
    s.bound = l.bound;
    std::vector<std::vector<bool>> misses;
    for (std::size_t i = 0; is_known && i < repeats; ++i)
        misses.push_back(misses_of(s, e.candidate[i], t.read));
    const miss_counts counts = counted_misses(e, t, s, misses, l.allowed);
    if (counts.n == 0) return verdict::inconclusive;
    const verdict outcome = tell_counts(v, e, counts, count_levels_of(s, t.rule));
    const double scale = v.limit / l.bound;
    v.estimate = {v.estimate.value * scale, v.estimate.low * scale, v.estimate.high * scale};
    v.reason = printed("%.0f of %.0f requests failed or lie beyond the limit, %.3g %% may",
                       counts.k, counts.n, counts.allowed * 100);
    return outcome == verdict::pass && !l.may_pass ? verdict::inconclusive : outcome;
}
/// The same for gaps between events, of which one request has many: by the repeats alone.
inline verdict decide_by_gaps(slo_verdict& v, const evidence& e, const terms& t,
                              const comparison& c) {
    const auto repeats = static_cast<std::size_t>(v.repeats);
    if (c.relative) return verdict::inconclusive;
    std::vector<double> shares;
    for (std::size_t i = 0; i < repeats; ++i)
        shares.push_back(share_beyond(
            sorted_values_of(v.what.what.metric, e.candidate[i], t.read), v.what.bound));
    const double product = product_of_shares(shares, allowed_misses(v.what));
    return product >= count_levels_of(v.what, t.rule).product ? verdict::fail
                                                              : verdict::inconclusive;
}

/// Repeats in which failures reach the statistic, so that it has no size.
inline void decide_by_misses(slo_verdict& v, const looked_at& seen, const evidence& e,
                             const terms& t, const comparison& c, std::size_t fails_from) {
    const std::size_t n = seen.values.size();
    v.estimate = {not_a_number, not_a_number, not_a_number};
    v.reason = is_of_server(v.what.what.metric)
                   ? printed("in %zu of %zu repeats the server told no finite value",
                             seen.unbounded, n)
                   : printed("%zu of %zu repeats have so many failures that the statistic is %s",
                             seen.unbounded, n, v.what.at_most ? "infinite" : "zero");
    const bool is_percentile = v.what.what.kind == statistic_kind::percentile;
    const bool half = seen.unbounded >= 2 && 2 * seen.unbounded >= n;
    v.outcome = is_percentile && facts_of(v.what.what.metric).is_of_gaps
                    ? decide_by_gaps(v, e, t, c)
                : is_percentile ? decide_by_counts(v, e, t, c)
                : half          ? verdict::fail
                                : verdict::inconclusive;
    if (v.outcome != verdict::fail || n >= fails_from) return;
    v.outcome = verdict::inconclusive;
    v.reason = too_few_to_fail;
}

/// A percentile is as small as its repeats say only if failures are fewer than it leaves beyond it,
/// which their count must show where there are any.
inline void doubt_by_failures(slo_verdict& v, const evidence& e, const terms& t) {
    const slo& s = v.what;
    if (s.what.kind != statistic_kind::percentile || facts_of(s.what.metric).is_of_gaps) return;
    std::vector<std::vector<bool>> misses;
    for (std::size_t i = 0; i < static_cast<std::size_t>(v.repeats); ++i) {
        misses.emplace_back();
        for (const record& r : e.candidate[i].records)
            if (is_part_of(s.what.metric, r))
                misses.back().push_back(r.status != request_status::ok);
    }
    const miss_counts failed = counted_misses(e, t, s, misses);
    const double upper = failed.upper(count_levels_of(s, t.rule).pass);
    if (failed.k == 0 || upper <= failed.allowed) return;
    v.outcome = verdict::inconclusive;
    v.reason = failed_text(failed.k, failed.n) +
               printed(", up to %.2g %% may, and %s leaves %.3g %% beyond it", upper * 100,
                       s.what.name.c_str(), failed.allowed * 100);
}

/// One look at the values: what it decides by itself, and what it is too early for.
inline look decide_by_values(slo_verdict& v, const looked_at& seen, const comparison& c, double s0,
                             const judging_rule& rule, std::size_t first, std::size_t fails_from) {
    const look l = c.paired ? look_at_pairs(seen.distances, s0, rule)
                            : look_at_repeats(seen.distances, s0, rule, c.stored);
    if (seen.values.size() >= first) v.outcome = l.outcome;
    v.reason = text();
    if (v.outcome == verdict::fail && seen.values.size() < fails_from) {
        v.outcome = verdict::inconclusive;
        v.reason = too_few_to_fail;
    }
    // What two days differ by is no regression.
    const double sign = v.what.at_most ? 1 : -1;
    if (v.outcome == verdict::fail && c.stored.repeats > 0 &&
        std::fabs(std::exp(sign * l.mean) * v.limit - 1) < 2 * c.stored.day_sd)
        v.outcome = verdict::inconclusive;
    return l;
}

/// The verdict's numbers, once the last look was taken.
inline void tell_values(slo_verdict& v, const evidence& e, const terms& t, const looked_at& seen,
                        const comparison& c, const look& l) {
    const slo& s = v.what;
    const std::string values =
        std::string(c.relative ? "ratios " : "values ") + listed(seen.values);
    const list<named_values> counted = v.inputs;  // where failures reach the statistic
    v.inputs = {{c.relative ? "ratios" : "values", list<double>(seen.values)},
                {"limit", {v.limit}}};
    if (seen.unbounded > 0) {
        v.arithmetic = values + (v.arithmetic.empty() ? "" : "; " + str(v.arithmetic));
        for (const named_values& n : counted) v.inputs.push_back(n);
        const double worst = s.at_most ? infinity : 0;
        if (std::isnan(v.estimate.value)) v.estimate = {worst, worst, worst};
        v.method = method_misses;
        return;
    }
    v.arithmetic = values;
    const bool rests_on_belief = l.spread != spread_of::measured;
    v.method = std::string(c.paired     ? "paired "
                           : c.relative ? "against a stored run, "
                                        : "") +
               (l.spread == spread_of::moderated ? "moderated t"
                : l.spread == spread_of::noisy   ? "t of noisy repeats"
                                                 : "t") +
               (rests_on_belief ? calibration_words(e, t, s) : "");
    v.arithmetic =
        str(v.arithmetic) + (is_on_the_log(s) ? "; ln distances from the limit "
                                              : "; distances in parts of the limit ") +
        listed(seen.distances);
    v.inputs.push_back({is_on_the_log(s) ? "log_distances" : "distances",
                        list<double>(seen.distances)});
    v.inputs.push_back({"prior_sd", {l.prior_sd}});
    v.inputs.push_back({"prior_df", {l.prior_df}});
    if (const auto at = t.noise.find(noise_name(s)); at != t.noise.end())
        v.inputs.push_back({"calibrated_sd", {at->second}});
    if (c.stored.repeats > 0) {
        v.inputs.push_back({"stored_values", list<double>(t.stored.values.at(str(s.what.name)))});
        v.inputs.push_back({"day_to_day_sd", {c.stored.day_sd}});
    }
    tell_look(v, l, t.rule, static_cast<double>(seen.distances.size()), c.stored);
    const double spread = std::sqrt(sample_variance(seen.distances)), s0 = prior_sd_of(e, t, s);
    const own_spread own = own_spread_of(seen.distances, c.stored);
    const bool is_noisy =
        moderated_look(l.mean, own.squares, own.df, s0).spread == spread_of::noisy;
    if (c.paired && spread > s0)
        v.reason = printed("the pairs spread by %.2g %%, more than the %.2g %% believed of them",
                           spread * 100, s0 * 100);
    else if (is_noisy)
        v.reason = printed("the repeats spread by %.0f %%, far more than a quiet machine's %.0f %%",
                           spread * 100, noisy_sd * 100) +
                   (v.reason.empty() ? "" : "; " + str(v.reason));
}

/// Times, speeds and rates are judged on the logarithm of the statistic of each repeat, on the log
/// ratio of each pair, or on the logs of the repeats against those of a stored run.
inline slo_verdict judge_values(const evidence& e, const terms& t, const slo& s,
                                bool to_the_end = false) {
    slo_verdict v = undecided(s);
    v.limit = s.factor > 0 ? s.factor : s.bound;
    const auto invalid = [&](const std::string& why) {
        v.outcome = verdict::invalid;
        v.reason = why;
        return v;
    };
    const comparison c = comparison_of(e, t, s);
    if (!c.missing.empty()) return invalid(c.missing);
    v.measured = c.of_all();
    const bool startup = is_of_start(s.what.metric);
    const double s0 = prior_sd_of(e, t, s);
    const judging_rule rule = rule_for(e, t, s);
    const auto first = static_cast<std::size_t>(
        startup ? 1 : e.has_live_baseline() ? first_pair_look : first_look);
    const auto fails_from =
        static_cast<std::size_t>(startup ? 1 : std::min(first_fail, t.rule.most));

    looked_at seen;
    int looks = 0;
    look last;
    const std::size_t count =
        c.paired ? std::min(e.candidate.size(), e.baseline.size()) : e.candidate.size();
    for (std::size_t i = 0; i < count; ++i) {
        const double value = c.of_repeat(i);
        if (startup && std::isnan(value)) continue;
        if (std::isnan(value))
            return invalid(printed("repeat %zu has no %s of %s", i + 1,
                                   c.relative ? "ratio" : "value", s.what.name.c_str()));
        seen.add(value, s, v.limit);
        v.repeats = static_cast<int>(seen.values.size());
        // No more looks than the constants allow for, however many repeats there are.
        const bool at_the_end = i + 1 == count;
        if (!at_the_end && (seen.values.size() < first || looks + 1 >= t.rule.looks)) continue;
        ++looks;
        if (seen.unbounded > 0) decide_by_misses(v, seen, e, t, c, fails_from);
        else last = decide_by_values(v, seen, c, s0, rule, first, fails_from);
        if (v.outcome == verdict::pass) doubt_by_failures(v, e, t);
        if (v.outcome != verdict::inconclusive && !to_the_end) break;
    }
    v.requests = measured_requests(e, static_cast<std::size_t>(v.repeats));
    if (seen.values.empty())
        return invalid(startup ? "startup_time is only known of a process that the gate starts"
                               : "nothing was measured");
    tell_values(v, e, t, seen, c, last);
    return v;
}

/// Whether a verdict is open because its repeats, or pairs, spread by more than was believed.
inline bool asks_for_more(const evidence& e, const terms& t, const slo_verdict& v) {
    const slo& s = v.what;
    const bool is_open = v.outcome == verdict::inconclusive && t.rule.traffic != fresh &&
                         is_judged_by_spread(s.what.metric);
    if (!is_open || (e.has_live_baseline() && s.factor <= 0)) return false;
    const comparison c = comparison_of(e, t, s);
    const double limit = s.factor > 0 ? s.factor : s.bound, s0 = prior_sd_of(e, t, s);
    looked_at seen;
    for (std::size_t i = 0; i < e.candidate.size(); ++i) seen.add(c.of_repeat(i), s, limit);
    if (seen.unbounded > 0 || seen.distances.size() < 2) return false;
    if (c.paired) return std::sqrt(sample_variance(seen.distances)) > s0;
    return look_at_repeats(seen.distances, s0, rule_for(e, t, s), c.stored).spread ==
           spread_of::measured;
}

/// Means of fresh traffic, by the means of 20 batches in arrival order.
inline slo_verdict judge_fresh_mean(const evidence& e, const terms& t, const slo& s,
                                    bool to_the_end = false) {
    constexpr std::size_t batches = 20;
    slo_verdict v = undecided(s);
    v.limit = s.bound;
    v.method = "batch means t";
    std::vector<double> values;
    for (std::size_t i = 0; i < e.candidate.size(); ++i) {
        for (const double x : values_in_order(s.what.metric, e.candidate[i], t.read))
            if (std::isfinite(x) && x > 0) values.push_back(x);
        if (values.size() < 2 * batches) continue;
        std::vector<double> means;
        for (std::size_t b = 0; b < batches; ++b)
            means.push_back(
                mean_of({values.begin() + static_cast<long>(b * values.size() / batches),
                         values.begin() + static_cast<long>((b + 1) * values.size() / batches)}));
        const double mean = mean_of(values);
        look l;
        l.spread = spread_of::measured;
        l.df = batches - 1;
        l.mean = (s.at_most ? 1 : -1) * std::log(mean / s.bound);
        l.sd = std::sqrt(sample_variance(means)) / mean;  // of the logarithm, to first order
        // The batches of a stage share what differs from run to run: it is believed, not measured.
        const double run_sd = prior_sd_of(e, t, s);
        stored_side runs;
        runs.day_sd = run_sd / std::sqrt(static_cast<double>(i + 1));
        l.se = std::sqrt(l.sd * l.sd / batches + runs.day_sd * runs.day_sd);
        decide(l, t.rule);
        v.outcome = l.outcome;
        v.repeats = static_cast<int>(i + 1);
        v.method = "batch means t" + calibration_words(e, t, s);
        v.inputs = {{"batch_means", list<double>(means)}, {"limit", {v.limit}},
                    {"run_sd", {run_sd}}, {"stages", {static_cast<double>(i + 1)}}};
        v.arithmetic = "means of 20 batches " + listed(means) +
                       printed("; run-to-run sd %.6g over %zu stages", run_sd, i + 1);
        // The batches are what repeats are elsewhere.
        judging_rule as_batches = t.rule;
        as_batches.most = static_cast<int>(batches);
        tell_look(v, l, as_batches, static_cast<double>(batches), runs);
        if (v.outcome != verdict::inconclusive && !to_the_end) break;
    }
    v.requests = measured_requests(e, static_cast<std::size_t>(v.repeats));
    if (v.repeats == 0) {
        v.outcome = verdict::invalid;
        v.reason = "fewer than 40 requests have a value";
    }
    return v;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
