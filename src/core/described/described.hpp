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

/// Returns values as the arithmetic of a verdict lists them.
inline std::string listed(const vector<double>& values) {
    std::string out;
    for (const double v : values) fill(out, "{,}{value:.6g}", {{"value", v}});
    return out;
}
inline const char* to_string(spread_of s) {
    return name_at({"moderated", "noisy", "as measured", "quiet", "assumed", "of counts"}, s);
}

inline std::string method_text(const decision& d) {
    const std::string against =
        d.past              ? filled("against {against}, ", {{"against", d.past->against(d)}})
        : d.paired          ? "paired "
        : is_absolute(d.objective) ? ""
                                   : "against a stored run, ";
    const bool is_calibrated = !std::isnan(d.calibrated_sd) && d.repeats > 0 &&
                               !is_of_start(d.objective.statistic.metric);
    const bool is_floor = d.last.prior_sd > d.calibrated_sd && d.last.prior_df <= prior_df;
    const std::string noise =
        !std::isnan(d.last.history_sd)
            ? filled(" with the history's noise of {sd:.3g%} %", {{"sd", d.last.history_sd}})
            : filled("[{is_calibrated?} with {is_floor?the assumed|the calibrated} noise of "
                     "{sd:.3g%} %][ ({file})]",
                     {{"is_calibrated", is_calibrated}, {"is_floor", is_floor},
                      {"sd", d.last.prior_sd},
                      {"file", is_calibrated && !is_floor ? printable(d.calibrated_in, 200) : ""}});
    switch (d.decided_by) {
    case verdict_method::none: break;
    case verdict_method::predictive_t: return against + "predictive t";
    case verdict_method::counts: return "Clopper-Pearson on counts";
    case verdict_method::counted_misses: return "counted misses";
    case verdict_method::moderated_t:
        if (d.last.spread == spread_of::assumed)
            return filled("{against}t with the noise of any machine, {sd:.0f%} %",
                          {{"against", against}, {"sd", d.last.prior_sd}});
        return against + "moderated t" + noise;
    case verdict_method::noisy_t: return against + "t of noisy repeats" + noise;
    case verdict_method::t:
        if (d.last.spread == spread_of::counted)
            return d.fractions && d.fractions->is_paired
                       ? "paired answers, Tango's score"
                       : (d.paired ? "" : against) + "counts of both, a score";
        if (d.last.spread != spread_of::quiet) return against + "t";
        return against + (d.paired ? "t of quiet pairs" : "t of quiet repeats");
    case verdict_method::slices: return "t of slices";
    case verdict_method::slices_at_once:
        return printed("t of %zu slices at once", d.values.size()) +
               (d.rule.part < 1 && d.rule.looks_early
                    ? printed(", after %g of 4 quarters", 4 * d.rule.part)
                    : "");
    case verdict_method::loads: return "its objectives, load by load";
    }
    return {};
}

/// The values that the arithmetic of a verdict uses, by their names, and the same in one line.
struct arithmetic {
    list<named_values> inputs{};
    std::string line{};
    void add(const std::string& name, const vector<double>& values) {
        inputs.push_back({name, list<double>(values)});
    }
    void add_each(std::initializer_list<std::pair<const char*, double>> values) {
        for (const auto& [name, value] : values) add(name, {value});
    }
    void add_analysis(const interim_analysis& l, const judging_rule& rule) {
        fill(line,
             "; mean {mean:.6g}, sd {sd:.6g} ({spread}), df {df:.0f}, standard error {se:.6g}; "
             "bounds: pass {mean:.6g} + {pass_t:.4f} x se[ + {pass_margin:.6g}] = "
             "{pass_bound:.6g} < 0, fail {mean:.6g} - {fail_t:.4f} x se[ - {fail_margin:.6g}] = "
             "{fail_bound:.6g} > 0 (t quantiles of the normal scores {pass_z:.4f} and "
             "{fail_z:.4f}, {whose} at {pass_level:.4g} and {fail_level:.4g})",
             {{"mean", l.mean}, {"sd", l.sd}, {"spread", to_string(l.spread)}, {"df", l.df},
              {"se", l.se}, {"pass_t", l.pass_t}, {"pass_margin", l.pass_margin},
              {"pass_bound", l.pass_bound}, {"fail_t", l.fail_t}, {"fail_margin", l.fail_margin},
              {"fail_bound", l.fail_bound}, {"pass_z", l.pass_z}, {"fail_z", l.fail_z},
              {"whose", rule.looks_early
                            ? "O'Brien and Fleming's for looks after 2, 3 and 4 quarters"
                            : printed("Pocock's for %d interim analyses",
                                      rule.analyses + rule.made_again)},
              {"pass_level", rule.pass_level},
              {"fail_level", rule.fail_level}});
        add_each({{"mean", l.mean}, {"sd", l.sd}, {"df", l.df}, {"standard_error", l.se},
                  {"pass_t", l.pass_t}, {"fail_t", l.fail_t}, {"pass_bound", l.pass_bound},
                  {"fail_bound", l.fail_bound}});
        if (l.pass_margin > 0)
            add_each({{"pass_margin", l.pass_margin}, {"fail_margin", l.fail_margin}});
    }
    void add_fractions(const fraction_pair& p) {
        fill(line,
             "; fractions {mine:.6g} and {other:.6g} of {trials:.6g} and {others:.6g} independent "
             "{is_paired?questions|requests}[; only the candidate is right in {only}, only the "
             "baseline in {not}]",
             {{"mine", p.mine}, {"other", p.other}, {"trials", p.trials},
              {"others", p.other_trials}, {"is_paired", p.is_paired},
              {"only", p.is_paired ? printed("%.6g", p.only_mine) : std::string()},
              {"not", p.is_paired ? printed("%.6g", p.only_other) : std::string()}});
        add_each({{"fraction", p.mine}, {"fraction_of_baseline", p.other},
                  {"independent", p.trials}, {"independent_of_baseline", p.other_trials}});
        if (p.is_paired)
            add_each({{"only_candidate_right", p.only_mine},
                      {"only_baseline_right", p.only_other}});
    }
    void add_counts(const analysis_of_misses& l) {
        const miss_counts& c = l.seen;
        line += printed("misses %.0f of %.0f, design effect %.3f, so %.6g of %.6g independent "
                        "ones; upper bound %.6g at level %.4g, lower bound %.6g at level %.4g "
                        "(one-sided Clopper-Pearson); allowed fraction of misses %.6g",
                        c.k, c.n, c.effect, c.k / c.effect, c.n / c.effect, l.upper(), l.at.pass,
                        l.lower(), l.at.fail, c.allowed);
        if (c.allowed == 0) line += ": none passes as observed, one fails";
        if (!std::isnan(c.flip_variance)) {
            line += printed("; of the same questions %.0f were not always alike, %.4g at most, "
                            "with a variance of %.6g a run; whole runs moved with an effect of "
                            "%.3f, by Student's t %.3f for a pass and %.3f for a fail, which takes "
                            "the other's place where it is greater",
                            c.flipping, c.max_flipping, c.flip_variance, c.run_effect,
                            c.effect_at(l.at.pass), c.effect_at(l.at.fail));
            add_each({{"flip_variance", c.flip_variance}, {"questions_flipping", c.flipping},
                      {"questions_flipping_at_most", c.max_flipping},
                      {"design_effect_of_runs", c.run_effect}});
        }
        add_each({{"misses", c.k}, {"trials", c.n}, {"design_effect", c.effect},
                  {"allowed", c.allowed}, {"pass_level", l.at.pass}, {"fail_level", l.at.fail},
                  {"upper_bound", l.upper()}, {"lower_bound", l.lower()}});
        if (!std::isfinite(l.at.product)) return;
        line += printed("; product of the repeats' fractions over it %.6g, a miss from %.6g",
                        c.product, l.at.product);
        add_each({{"product_of_fractions", c.product}, {"product_that_fails", l.at.product}});
    }
};
inline void add_values(arithmetic& a, const decision& d) {
    const std::string what = values_name(kind_of(d.objective));
    a.line = what + " " + listed(d.values);
    a.add(what, d.values);
    a.add("limit", {d.limit});
    if (is_difference(d.objective)) a.add("scale", {d.scale});
}
inline arithmetic arithmetic_of(const decision& d) {
    arithmetic a;
    const bool on_log = is_on_the_log(d.objective);
    switch (d.decided_by) {
    case verdict_method::none: break;
    case verdict_method::counts:
        if (d.counted) a.add_counts(*d.counted);
        break;
    case verdict_method::counted_misses:
        add_values(a, d);
        if (!d.counted) break;
        a.line += "; ";
        a.add_counts(*d.counted);
        break;
    case verdict_method::moderated_t:
    case verdict_method::noisy_t:
    case verdict_method::t:
        add_values(a, d);
        a.line += (on_log ? "; ln distances from the limit "
                   : is_difference(d.objective)
                       ? printed("; distances from the limit in parts of %.6g ", d.scale)
                       : "; distances in parts of the limit ") + listed(d.distances);
        a.add(on_log ? "log_distances" : "distances", d.distances);
        a.add_each({{"prior_sd", d.last.prior_sd}, {"prior_df", d.last.prior_df}});
        if (!std::isnan(d.calibrated_sd)) a.add("calibrated_sd", {d.calibrated_sd});
        if (d.fractions) a.add_fractions(*d.fractions);
        if (d.stored.repeats > 0) {
            a.add("stored_values", d.stored_values);
            a.add("day_to_day_sd", {d.stored.day_sd});
        }
        a.add_analysis(d.last, d.rule);
        break;
    case verdict_method::predictive_t: d.past->explain(a, d); break;
    case verdict_method::slices:
        if (std::isnan(d.dependence)) break;
        a.line = printed("ln of %zu slices a third, mean over the repeats: ",
                         d.values.size() / 3) + listed(d.values);
        a.add("slice_logs", d.values);
        a.add_each({{"limit", d.limit}, {"dependence", d.dependence}});
        a.add_analysis(d.last, d.rule);
        break;
    case verdict_method::slices_at_once:
        a.line = "parts of the slices of the distance: " + listed(d.values);
        a.add("slice_parts", d.values);
        a.add("limit", {d.limit});
        a.add_analysis(d.last, d.rule);
        break;
    case verdict_method::loads:
        for (const margin_at& m : d.margins) a.add(printed("load %.6g", m.load), {m.margin});
        break;
    }
    return a;
}

/// Of a difference: the interval is wider by what the client may have added.
inline void add_client_part(arithmetic& a, const decision& d) {
    if (!(d.client_part > 0) || a.line.empty()) return;
    fill(a.line, "; the interval is wider by the client's part, {part:.6g} on each side",
         {{"part", d.client_part}});
    a.add("client_part", {d.client_part});
}

/// Returns a verdict with its sentences, which are the same in every report.
inline slo_verdict described(const decision& d) {
    slo_verdict v;
    static_cast<verdict_numbers&>(v) = d;
    if (d.counted_in != verdict_unit::none) v.unit = to_string(d.counted_in);
    v.method = method_text(d);
    v.reason = described(d.why, d);
    v.advice = described(d.advice, d);
    arithmetic a = arithmetic_of(d);
    add_client_part(a, d);
    v.arithmetic = a.line;
    v.inputs = a.inputs;
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
