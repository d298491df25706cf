// decisions in sentences
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/causes.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/client.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/cross_check.hpp"
#include "core/described/causes.hpp"
#include "core/described/limits.hpp"

#include <cmath>  // isfinite, isnan
#include <initializer_list>
#include <string>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

inline const char* to_string(spread_of s) {
    return name_at({"moderated", "noisy", "as measured", "quiet", "assumed", "of counts"}, s);
}

/// What the repeats' values are held against: "paired ".
inline std::string against_text(const decision& d) {
    if (d.past) return "against " + d.past->against(d) + ", ";
    if (d.paired) return "paired ";
    return is_absolute(d.objective) ? "" : "against a stored run, ";
}
/// Which noise and levels the method took is in the inputs.
inline std::string method_text(const decision& d) {
    const char* const name = name_at(
        {"", "Clopper-Pearson on counts", "counted misses", "moderated t", "t of noisy repeats",
         "t", "t of slices", "its objectives, load by load", "predictive t", "t of slices at once",
         "number against number"},
        d.decided_by);
    return d.distances.empty() ? name : against_text(d) + name;
}

/// Every number that a verdict rests on, by its name in result.json.
struct arithmetic {
    list<named_values> inputs{};
    void add(const std::string& name, const vector<double>& values) {
        inputs.push_back({name, list<double>(values)});
    }
    void add_each(std::initializer_list<std::pair<const char*, double>> values) {
        for (const auto& [name, value] : values) add(name, {value});
    }
    void add_values(const decision& d) {
        add(values_name(kind_of(d.objective)), d.values);
        add("limit", {d.limit});
        if (is_difference(d.objective)) add("scale", {d.scale});
    }
    void add_distances(const decision& d) {
        add(is_on_the_log(d.objective) ? "log_distances" : "distances", d.distances);
    }
    void add_analysis(const interim_analysis& l, const judging_rule& rule) {
        add_each({{"mean", l.mean}, {"sd", l.sd}, {"df", l.df}, {"standard_error", l.se},
                  {"pass_level", rule.pass_level}, {"fail_level", rule.fail_level},
                  {"pass_z", l.pass_z}, {"fail_z", l.fail_z}, {"pass_t", l.pass_t},
                  {"fail_t", l.fail_t}, {"pass_bound", l.pass_bound},
                  {"fail_bound", l.fail_bound}});
        if (l.pass_margin > 0)
            add_each({{"pass_margin", l.pass_margin}, {"fail_margin", l.fail_margin}});
    }
    void add_fractions(const fraction_pair& p) {
        add_each({{"fraction", p.mine}, {"fraction_of_baseline", p.other},
                  {"independent", p.trials}, {"independent_of_baseline", p.other_trials}});
        if (p.is_paired)
            add_each({{"only_candidate_right", p.only_mine},
                      {"only_baseline_right", p.only_other}});
    }
    void add_counts(const analysis_of_misses& l) {
        const miss_counts& c = l.seen;
        if (!std::isnan(c.flip_variance))
            add_each({{"flip_variance", c.flip_variance}, {"questions_flipping", c.flipping},
                      {"questions_flipping_at_most", c.max_flipping},
                      {"design_effect_of_runs", c.run_effect}});
        add_each({{"misses", c.k}, {"trials", c.n}, {"design_effect", c.effect},
                  {"allowed", c.allowed}, {"pass_level", l.at.pass}, {"fail_level", l.at.fail},
                  {"upper_bound", l.upper()}, {"lower_bound", l.lower()}});
        if (std::isfinite(l.at.product))
            add_each({{"product_of_fractions", c.product}, {"product_that_fails", l.at.product}});
    }
    void add_noise(const decision& d) {
        add_each({{"prior_sd", d.last.prior_sd}, {"prior_df", d.last.prior_df}});
        if (!std::isnan(d.calibrated_sd)) add("calibrated_sd", {d.calibrated_sd});
        if (!std::isnan(d.last.history_sd)) add("history_sd", {d.last.history_sd});
    }
    void add_stored(const decision& d) {
        if (!(d.stored.repeats > 0)) return;
        add("stored_values", d.stored_values);
        add("day_to_day_sd", {d.stored.day_sd});
    }
    void add_repeats(const decision& d) {
        add_values(d);
        add_distances(d);
        add_noise(d);
        if (d.fractions) add_fractions(*d.fractions);
        add_stored(d);
        add_analysis(d.last, d.rule);
    }
    void add_past(const decision& d) { d.past->explain(*this, d); }
};
inline arithmetic arithmetic_of(const decision& d) {
    arithmetic a;
    switch (d.decided_by) {
    case verdict_method::none: return a;
    case verdict_method::counts: break;
    case verdict_method::counted_misses: a.add_values(d); break;
    case verdict_method::moderated_t:
    case verdict_method::noisy_t:
    case verdict_method::t:
        a.add_repeats(d);
        break;
    case verdict_method::predictive_t: a.add_past(d); break;
    case verdict_method::slices:
        a.add("slice_logs", d.values);
        a.add_each({{"limit", d.limit}, {"dependence", d.dependence}});
        a.add_analysis(d.last, d.rule);
        break;
    case verdict_method::slices_at_once:
        a.add("slice_parts", d.values);
        a.add("limit", {d.limit});
        a.add_analysis(d.last, d.rule);
        break;
    case verdict_method::equal_counts: a.add_values(d); break;
    case verdict_method::loads:
        for (const margin_at& m : d.margins) a.add(printed("load %.6g", m.load), {m.margin});
        break;
    }
    if (d.counted) a.add_counts(*d.counted);
    if (d.client_part > 0) a.add("client_part", {d.client_part});
    return a;
}

/// Returns a verdict with its sentences, which are the same in every report.
inline slo_verdict described(const decision& d) {
    slo_verdict v;
    static_cast<verdict_numbers&>(v) = d;
    if (d.counted_in != verdict_unit::none) v.unit = to_string(d.counted_in);
    v.method = method_text(d);
    v.reason = described(d.why, d);
    v.advice = described(d.advice, d);
    v.inputs = arithmetic_of(d).inputs;
    v.against_limit = against_limit(d);
    v.distance = room_text(d);
    for (const cause& c : d.why)
        v.causes.push_back({row_of(c.what).name, to_string(c.of), list<double>(c.numbers)});
    return v;
}
inline vector<slo_verdict> described(const vector<decision>& all) {
    vector<slo_verdict> verdicts;
    for (const decision& d : all) verdicts.push_back(described(d));
    return verdicts;
}
inline self_check_t described(const own_check& c) {
    self_check_t check = c;
    check.reason = described(c.why);
    return check;
}

/// Returns a verdict that has a reason in place of advice.
inline slo_verdict without_advice(slo_verdict v, verdict outcome, const std::string& reason) {
    v.outcome = outcome;
    v.reason = reason;
    v.advice = text();
    v.causes = {{row_of(because::reported).name, {}, {}}};
    return v;
}
/// Returns the verdict on an objective that has no measured value.
inline slo_verdict said_of(const slo& s, verdict outcome, const std::string& reason) {
    return without_advice(described(undecided(s)), outcome, reason);
}

/// A limit to paste, "" if none is known. None is proposed in place of a limit that was missed: it
/// would hide the miss.
inline bool is_missed(const calibrated& c) { return c.headroom_sd < 0; }
inline std::string suggestion_of(const calibrated& c) {
    const bool has_one = !std::isnan(c.to_write) && !is_missed(c);
    return has_one ? limit_to_write(c.objective, c.to_write) : "";
}

/// Returns harmless differences between the metrics page and our counts, "" if there are none.
inline std::string difference_text(const cross_check& c) {
    const bool all_finished = c.finished >= 0.99 * c.sent;
    std::string t;
    if (foreign_requests(c) > 0)
        fill(t, "{;}{requests:.0f} request{requests:s} of somebody else",
             {{"requests", foreign_requests(c)}});
    if (counts_each_again(c))
        fill(t, "{;}it counts each request {times:.0f} times",
             {{"times", c.requests_reported / c.finished}});
    if (reports_too_many(c))
        fill(t, "{;}it tells of {reported:.0f} requests at once, of ours at most {ours:.0f} were "
                "in flight",
             {{"reported", c.at_once_reported}, {"ours", c.at_once}});
    if (reports_too_few(c))
        fill(t, "{;}it tells of {reported:.0f} requests that run or wait, of ours {ours:.0f} were "
                "in flight: the others wait where it does not say",
             {{"reported", c.at_once_reported}, {"ours", c.typically_at_once}});
    if (all_finished && differs(c.tokens_reported, c.tokens))
        fill(t, "{;}it counts {reported:.0f} generated tokens, the usage in its answers "
                "{usage:.0f}",
             {{"reported", c.tokens_reported}, {"usage", c.tokens}});
    if (all_finished && differs(c.prompt_tokens_reported, c.prompt_tokens))
        fill(t, "{;}it counts {reported:.0f} prompt tokens, the usage in its answers {usage:.0f}",
             {{"reported", c.prompt_tokens_reported}, {"usage", c.prompt_tokens}});
    return t;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
