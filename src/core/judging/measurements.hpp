// the inputs of verdicts: the measurements of a gate, its objectives and rule
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>  // max
#include <cmath>  // sqrt
#include <map>
#include <memory>  // shared_ptr
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A repeat, or one variant of a pair, that was measured again because the client had affected it.
struct set_aside_repeat {
    run_variant variant = run_variant::candidate;
    int index = 0;
    std::string why{};
};

/// Metrics that the files do not support, and why: left out, or defined otherwise. An empty list
/// means all metrics.
struct unsupported_metrics {
    std::string why{};
    vector<metric_id> of{};
};

/// How pairs with a live baseline are measured.
struct pairing {
    bool is_at_once = false;  // both variants were loaded at the same time, and
    bool by_slices = false;   // are compared by slices of it
};
/// The conditions of the load that its validity depends on.
struct load_conditions : pairing {
    // Squared coefficient of variation of the gaps between planned sends: infinite where the load
    // grows or bursts by design, NaN where it has no rate.
    double arrival_cv2 = not_a_number;
    bool other_workload = false;  // the variants have different workloads
    bool other_requests = false;  // one server, asked in two ways
    double decided_after = 1;  // the part of the load after which all was decided
    bool short_outputs_expected = false;  // outputs of one token were requested
    bool spins = false;                   // the client was asked to busy-wait
    bool counts_work = false;  // its objectives are on work, whose judge knows other clients
    double max_skew_s = infinity;        // between the starts of ranks
    std::string stopped{};                // why there are fewer repeats than planned
    vector<set_aside_repeat> set_aside{};
    vector<unsupported_metrics> unsupported{};  // by the files read
    vector<std::string> notes{};      // on the files, a sentence each
    // The gate started the servers again for each pair, or one server is both variants.
    bool pairs_are_fresh = false;
    std::shared_ptr<known_results> known{};  // of the repeats, while they are analysed
};

/// All that was measured on a gate's servers, without verdicts and objectives.
struct measurements : load_conditions {
    repeat_list candidate{};
    repeat_list baseline{};   // if there is one: pair i is (candidate i, baseline i)
    bool has_live_baseline() const { return !baseline.empty(); }
    repeat_list& variant(run_variant a) {
        return a == run_variant::baseline ? baseline : candidate;
    }
    const repeat_list& variant(run_variant a) const {
        return a == run_variant::baseline ? baseline : candidate;
    }
};

/// The measurements for one analysis, which computes once what it needs of a repeat.
inline measurements with_known_results(measurements e) {
    if (e.known) return e;
    e.known = new_shared<known_results>();
    e.known->keep({&e.candidate, &e.baseline});
    return e;
}
/// What `make()` returns, computed once for each repeat and name in an analysis.
template <class Make>
auto known_in(const load_conditions& under, const repeat_data& d, const std::string& name,
              Make&& make) {
    return under.known ? under.known->get(d, name, make) : known_results().get(d, name, make);
}

/// Why a metric, or one in a predicate, is unsupported; "" where it is supported.
inline std::string unsupported_reason(const load_conditions& under, const statistic_data& what) {
    for (const unsupported_metrics& u : under.unsupported) {
        const bool concerned = concerns_a_metric(what, [&](metric_id m) {
            return any_of(u.of, [&](metric_id lacks) { return is_or_reads(m, lacks); });
        });
        if (u.of.empty() || concerned) return u.why;
    }
    return {};
}
inline bool is_unsupported(const load_conditions& under, metric_id m) {
    statistic_data what;
    what.metric = m;
    return !unsupported_reason(under, what).empty();
}

/// Measurements and others in turns with them, as the variants of one gate.
inline measurements as_pairs(measurements of, const measurements& to) {
    of.baseline = {};
    for (const repeat_data& d : to.candidate) {
        of.baseline.push_back(d);
        of.baseline.change_last([](repeat_data& as) {
            as.variant = run_variant::baseline;
            for (record& r : as.records) r.variant = run_variant::baseline;
        });
    }
    of.pairs_are_fresh = of.pairs_are_fresh && to.pairs_are_fresh;
    of.known.reset();
    return of;
}

/// Whose server a variant is measured on.
inline whose server_of(const measurements& e, const repeat_list* variant) {
    return variant == &e.baseline ? whose::baseline_server : whose::server;
}
using variant_list = vector<const repeat_list*>;
inline variant_list variants_of(const measurements& e) { return {&e.candidate, &e.baseline}; }
/// The variants that an objective needs. An absolute one needs the candidate alone, whatever
/// happened to the baseline.
inline variant_list variants_of(const measurements& e, const slo& s) {
    return needs_baseline(s) ? variants_of(e) : variant_list{&e.candidate};
}
/// Returns the first cause among the repeats that an objective needs, and whose server's it is.
template <class CauseOf>
cause first_of_repeats(const measurements& e, const slo& s, const CauseOf& cause_of) {
    for (const repeat_list* variant : variants_of(e, s))
        for (const repeat_data& d : *variant)
            if (cause why = cause_of(d)) {
                why.of = server_of(e, variant);
                return why;
            }
    return {};
}
/// The repeats of several variants as one list.
inline repeat_list repeats_of(const variant_list& variants) {
    repeat_list all;
    for (const repeat_list* variant : variants)
        for (std::size_t i = 0; i < variant->size(); ++i) all.push_back(variant->shared(i));
    return all;
}
inline repeat_list repeats_of(const measurements& e) { return repeats_of(variants_of(e)); }

/// The part of a difference that may be the client's: its late sends, and without the kernel's
/// stamps its late reads, of both variants.
inline double client_error_in(const measurements& e, const statistic_data& what) {
    if (facts_of(what.metric).unit != metric_unit::time || is_of_server(what.metric)) return 0;
    const bool is_of_sends = concerns(what, &metric_facts::is_affected_by_lateness);
    double error = 0;
    for (const repeat_list* variant : {&e.candidate, &e.baseline}) {
        double late = 0, sends = 0, read = 0;
        for (const repeat_data& d : *variant) {
            const measured_sends measured(d);
            for (const record& r : d.records) {
                if (!measured.has(r)) continue;
                late += static_cast<double>(std::max(r.late_ns, 0ll)) * 1e-9;
                ++sends;
            }
            if (!is_mostly_stamped(d.stamped_reads, d.reads))
                read = std::max(read, d.stamp_lag_p99);
        }
        error += read + (is_of_sends && sends > 0 ? late / sends : 0);
    }
    return e.baseline.empty() ? 2 * error : error;  // of an earlier run it is as much
}

/// Statistics of an earlier run by name, one value per repeat, and the counts of fractions.
struct stored_baseline {
    std::string file{};
    double day_sd = 0;
    std::map<std::string, vector<double>> values{};
};
/// What a run keeps of a fraction in a repeat: its counts, and how much more misses vary than
/// independent ones.
struct kept_counts {
    double misses = 0, requests = 0, effect = 1;
};
/// A field of these, whose name in files has the statistic, too: "misses(error_rate)".
struct count_field {
    const char* name;
    double kept_counts::*count;
    std::string of(const statistic_data& s) const { return name + ("(" + str(s.name) + ")"); }
};
inline constexpr count_field count_fields[] = {{"misses", &kept_counts::misses},
                                               {"requests", &kept_counts::requests},
                                               {"design_effect", &kept_counts::effect}};
/// Those of each repeat of an earlier run; none where one lacks them.
inline vector<kept_counts> counts_kept(const std::map<std::string, vector<double>>& values,
                                       const statistic_data& of) {
    const auto value = values.find(str(of.name));
    vector<kept_counts> all(value == values.end() ? 0 : value->second.size());
    for (const count_field& f : count_fields) {
        const auto at = values.find(f.of(of));
        if (at == values.end() || at->second.size() != all.size()) return {};
        for (std::size_t i = 0; i < all.size(); ++i) all[i].*f.count = at->second[i];
    }
    const auto is_sound = [](const kept_counts& c) {
        return c.misses >= 0 && c.misses <= c.requests && c.requests > 0 && c.effect >= 1;
    };
    return all_of(all, is_sound) ? all : vector<kept_counts>();
}

/// The name under which a calibration is stored: the ratio to a baseline has its own noise.
inline std::string noise_name(const slo& s) {
    return str(s.statistic.name) + (!is_absolute(s) ? " / baseline" : "");
}
/// What a calibration found of the noise between repeats.
struct known_noise {
    std::map<std::string, double> noise{};  // sd of the log statistic, by name
    std::string noise_file{};               // its file
    std::size_t noise_repeats = 0;          // 0: not known
    /// Null where it has not the statistic.
    const double* noise_of(const slo& s) const {
        const auto at = noise.find(noise_name(s));
        return at == noise.end() ? nullptr : &at->second;
    }
};

/// The objectives of a gate and their error levels. The same measurements can be judged again with
/// others.
struct judging_parameters : known_noise {
    vector<slo> slos{};
    // for a searched load, whose `slos` are capacities
    vector<slo> objectives_held{};
    judging_rule rule{};
    stored_baseline stored{};
    std::shared_ptr<const past_judge> past{};  // null: no extension
    double day_sd = 0;  // between days, for a stored baseline
};

/// The prior noise of a statistic. A calibration makes it larger, never smaller.
inline double prior_sd_of(const judging_parameters& t, const slo& s, bool are_pairs) {
    if (is_of_start(s.statistic.metric) || is_of_recovery(s.statistic.metric))
        return prior_startup_sd;
    // Of the same questions most are always right or always wrong.
    if (s.statistic.metric == metric_id::accuracy)
        return are_pairs ? prior_accuracy_sd : prior_accuracy_sd / std::sqrt(2.0);
    // A log ratio has the noise of both its runs or statistics.
    const bool is_of_two = is_ratio(s.statistic.metric) || (!is_absolute(s) && are_pairs);
    const double uncalibrated = is_of_two ? prior_sd * std::sqrt(2.0) : prior_sd;
    const double* const known = t.noise_of(s);
    return known ? std::max(*known, uncalibrated) : uncalibrated;
}
/// The rule for a statistic. The prior of a start is trusted, since a gate often has just one. That
/// of a few calibrated repeats is not: analysis_by_calibration trusts ten, where a run fits them.
inline judging_rule rule_for(const judging_parameters& t, const slo& s, bool pairs_are_fresh) {
    judging_rule r = t.rule;
    r.trusts_prior = r.trusts_prior || is_of_start(s.statistic.metric);
    r.pairs_are_fresh = pairs_are_fresh;
    return r;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
