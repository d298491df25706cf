// decisions on objectives and their causes
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/statistics.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // max
#include <cmath>  // floor, isfinite, pow
#include <cstddef>  // size_t
#include <memory>  // shared_ptr, unique_ptr
#include <optional>
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Which analysis gives a verdict by the numbers: the first one that decides, as that of the guard,
/// which passes unproven, or the last one.
enum class sought : unsigned char { first, guards_first, last };

class method;
struct arithmetic;
struct decision;
struct gate_report;
struct judging_parameters;
struct objective_columns;

/// How an extension judges objectives relative to its baseline. It is constant meanwhile.
class past_judge {
public:
    virtual ~past_judge() = default;
    /// The method `predictive_t` for one objective, to which all must outlive it. `estimate`,
    /// `against` and `explain` add the estimate, the baseline ("27 runs") and the arithmetic.
    virtual std::unique_ptr<method> method_for(const objective_columns& c,
                                               const judging_parameters& t, const slo& s,
                                               sought which) const = 0;
    virtual void estimate(decision& d) const = 0;
    virtual std::string against(const decision& d) const = 0;
    virtual void explain(arithmetic& a, const decision& d) const = 0;
    /// The baseline's logarithm and the spread between days; of a difference, both in parts of
    /// `scale`. Nothing: unknown.
    struct level {
        double log = 0, day_sd = 0, scale = 0;
    };
    virtual std::optional<level> level_of(const slo& s) const = 0;
    /// The analysis of repeats by the noise of earlier runs. Nothing: unknown.
    virtual std::optional<interim_analysis> analysis_of(const slo& s,
                                                        const vector<double>& distances,
                                                        const judging_rule& rule) const = 0;
    /// For reports.
    virtual vector<std::string> lines(const gate_report& g) const = 0;
    /// The fields of result.json, enough to judge again.
    virtual void fields(field_visitor& v) = 0;
};

/// The calibration of one limit.
struct calibrated {
    slo objective{};
    double estimate = not_a_number, sd = not_a_number;  // sd of the log statistic between repeats
    double headroom_sd = not_a_number;                  // distance to the limit in units of sd
    double to_write = not_a_number;  // a limit that is seldom inconclusive
};

inline constexpr double most_longer = 100;  // no longer run is advised
/// How much longer a run would mostly decide, and which limit this run would decide.
inline cause longer_or_limit(double longer, double limit) {
    const bool is_advised = longer < most_longer;
    return cause_with<because::limit_that_passes>(
        {{"better", limit}, {"longer", is_advised ? std::max(longer, 1.1) : 0}});
}
inline double as_number(std::size_t n) { return static_cast<double>(n); }

// ---- misses

/// k misses in n trials, and their dependence.
struct miss_counts {
    double k = 0, n = 0, effect = 1, allowed = 0;
    double flip_variance = not_a_number;  // of the answers to the same questions in a run
    double flipping = 0, max_flipping = 0;  // questions whose answers vary, upper bound
    double run_effect = 0, runs = 0;         // from the variance between runs
    double slices = 0;  // of the only load, from whose variance the effect is
    double product = 0, factors = 1;  // of the repeats' fractions over the allowed one
    miss_counts with_misses(double other) const {
        miss_counts c = *this;
        c.k = other;
        return c;
    }
    /// Few runs, or slices, estimate their variance badly, hence Student's t instead of the normal.
    double effect_at(double alpha) const {
        const double z = normal_quantile(1 - alpha);
        const auto squared = [](double x) { return x * x; };
        const double by_runs =
            run_effect == 0 ? 0
                            : run_effect * squared(student_t_quantile(1 - alpha, runs - 1) / z);
        const double by_slices =
            slices < 2 || effect <= 1
                ? effect
                : effect * squared(student_t_quantile(1 - alpha, slices - 1) / z);
        return std::max(by_slices, by_runs);
    }
    double upper(double alpha) const {
        const double e = effect_at(alpha);
        return clopper_pearson_upper(k / e, n / e, alpha);
    }
    double lower(double alpha) const {
        const double e = effect_at(alpha);
        return clopper_pearson_lower(k / e, n / e, alpha);
    }
    /// Returns the most misses that pass, -1 if not even none does.
    double most_that_pass(double alpha) const {
        return last_below(-1, n,
                          [&](double of) { return with_misses(of).upper(alpha) <= allowed; });
    }
    double fewest_that_fail(double alpha) const {
        return 1 + last_below(0, n + 1, [&](double of) {
            return !(with_misses(of).lower(alpha) > allowed);
        });
    }
    /// The last whole number from `low` on for which `holds`, by bisection below `high`.
    template <class Holds>
    static double last_below(double low, double high, Holds&& holds) {
        while (high - low > 1) {
            const double mid = std::floor((low + high) / 2);
            (holds(mid) ? low : high) = mid;
        }
        return low;
    }
};

/// The error levels of one analysis of counts. Where two tests can fail, each has half the level.
struct count_levels {
    double pass = 0, fail = 0, product = infinity;
};

/// An analysis of misses: counts, levels, and of a relative percentile the ratio of the limit to
/// its baseline value.
struct analysis_of_misses {
    miss_counts seen{};
    count_levels at{};
    double scale = 1;
    double upper() const { return seen.upper(at.pass); }
    double lower() const { return seen.lower(at.fail); }
    /// Allowed fractions below this fail, by all misses or by repeats.
    double fails_below() const {
        const double by_repeats = std::pow(seen.product / at.product, 1 / seen.factors);
        return std::max(lower(), seen.allowed * by_repeats);  // NaN where no miss is allowed
    }
    /// If none is allowed, no number of trials proves it: no miss passes, one miss fails.
    verdict outcome() const {
        if (upper() <= seen.allowed || (seen.allowed == 0 && seen.k == 0)) return verdict::pass;
        const bool fails = lower() > seen.allowed || seen.product >= at.product;
        return fails ? verdict::fail : verdict::inconclusive;
    }
};

/// The fractions of two variants, and the independent trials behind each. Of paired answers: the
/// fractions of questions that only one of them got right.
struct fraction_pair {
    double mine = 0, other = 0, trials = 0, other_trials = 0;
    bool is_paired = false;
    double only_mine = 0, only_other = 0;
};

// ---- a decision

/// A probed load and its margin.
struct margin_at {
    double load = 0, margin = 0;
};

/// A verdict as numbers and causes, from which core/described makes sentences.
struct decision : verdict_numbers {
    vector<cause> why{};
    cause advice{};
    bool paired = false;             // with a live baseline, not a stored one
    vector<double> values{};    // of repeats, pairs or slices
    vector<double> distances{}; // of these values from the limit
    double scale = 1;           // of a difference: the unit of its distances
    double client_part = 0;     // of a difference, in its unit: what the client may have added
    interim_analysis last{};
    std::optional<analysis_of_misses> counted{};
    std::optional<fraction_pair> fractions{};  // of a difference of fractions in pairs
    judging_rule rule{};
    stored_side stored{};
    std::shared_ptr<const past_judge> past{};  // the judge that decided it
    bool is_at_its_end = false;        // more repeats cannot change it
    vector<double> stored_values{};
    double calibrated_sd = not_a_number;
    double dependence = not_a_number;  // of neighbouring slices
    vector<margin_at> margins{};
    std::string at_the_load{};       // why that load is decided
};

inline decision undecided(const slo& s) {
    decision d;
    d.objective = s;
    d.outcome = verdict::inconclusive;
    d.measured = not_a_number;
    d.estimate = {not_a_number, not_a_number, not_a_number};
    return d;
}
/// Replaces all reasons and advice by one reason.
inline decision decided(decision d, verdict outcome, cause why) {
    d.outcome = outcome;
    d.why.clear();
    if (why) d.why.push_back(std::move(why));
    d.advice = {};
    return d;
}

/// Whether a verdict is on pooled requests, not on a statistic of each repeat.
inline bool is_counted(const verdict_numbers& v) {
    return v.decided_by == verdict_method::counts ||
           v.decided_by == verdict_method::counted_misses;
}

/// How far inside the limit a value is, as a fraction of it; negative outside.
inline double room_of(const verdict_numbers& v, double value) {
    if (!std::isfinite(value) || v.limit == 0) return not_a_number;
    if (v.limit < 0 && is_difference(v.objective))
        return (v.objective.at_most ? 1 : -1) * (value / v.limit - 1);
    return (v.objective.at_most ? 1 : -1) * (1 - value / v.limit);
}
inline double headroom(const verdict_numbers& v) { return room_of(v, v.estimate.value); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
