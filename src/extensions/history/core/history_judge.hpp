// verdicts by the history of main
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/fields.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/described/described.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/judging_parameters.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/past_judge.hpp"
#include "core/judging/scale.hpp"
#include "core/judging/values.hpp"
#include "core/reports/gate_report.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/history_parameters.hpp"

#include <algorithm>  // clamp
#include <cmath>  // expm1, fabs, isnan, log, log1p, sqrt, floor
#include <cstddef>  // size_t
#include <memory>  // shared_ptr
#include <optional>
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline history_bounds history_bounds_of(const judging_rule& r) {
    const auto z = [](double level) { return -normal_quantile(level); };
    const bool usual = r.pass_level == 0.05 && r.fail_level == 0.01;
    if (usual && r.pass_z <= 2.17) return {};
    return {z(r.pass_level / 20), z(r.pass_level), z(r.fail_level), r.pass_z, r.fail_z};
}

/// Returns why an objective cannot be judged by the history; empty if it can.
inline cause without_runs(const history_parameters& h, const slo& s) {
    if (!h.none.empty()) return with_text(because::no_runs, h.none);
    const objective_history* const o = h.of(s);
    if (!o || o->learned.runs == 0) return {because::runs_lack};
    const learned_history& l = o->learned;
    if (l.is_enough()) return {};
    const because what = l.given_sd <= 0 && l.runs < fewest_runs ? because::few_runs
                         : l.repeats.df <= 0                     ? because::lone_repeats
                                                                 : because::lone_levels;
    return {what, {as_number(l.runs)}};
}
inline cause cause_of(const history_analysis& l, const objective_history& o) {
    const learned_history& h = o.learned;
    switch (l.withheld) {
    case history_hold::none: break;
    case history_hold::main_moved: {
        const main_moved& m = h.moved[l.by];
        return {because::main_moved,
                {std::fabs(std::expm1(m.by)), m.by > 0 ? 1.0 : 0.0, m.now.runs - 1},
                whose::nobody,
                o.newest};
    }
    case history_hold::trouble:
        return {because::outlying_runs, {as_number(h.spread.trouble), as_number(h.runs)}};
    case history_hold::given: return {because::given_spread, {h.given_sd}};
    }
    return {};
}

/// The analysis in the form of others: bounds in standard errors.
inline interim_analysis reported_analysis(const history_analysis& l, const learned_history& h,
                                          const history_bounds& z) {
    interim_analysis out;
    const bool is_late = l.kind == history_analysis_kind::late;
    out.outcome = l.outcome;
    out.spread = spread_of::measured;
    out.mean = l.distance;
    out.sd = h.spread.sd;
    out.df = h.spread.df;
    out.pass_z = l.kind == history_analysis_kind::early ? z.early_pass
                 : is_late                              ? z.late_pass
                                                        : z.pass;
    out.fail_z = is_late ? z.late_fail : z.fail;
    out.pass_t = student_t_quantile(normal_cdf(out.pass_z), out.df);
    out.se = (l.pass_bound - l.distance) / out.pass_t;
    out.fail_t = (l.distance - l.fail_bound) / out.se;
    out.prior_sd = h.given_sd;
    out.pass_bound = l.pass_bound;
    out.fail_bound = l.fail_bound;
    out.detectable = std::expm1((out.fail_t + four_in_five) * out.se);
    return out;
}

/// Judges a ratio to main's level. `to_the_end`: with all repeats, whenever they decided.
inline decision judge_by_history(const history_parameters& past, const measurements& e,
                                 const judging_parameters& t, const slo& s, bool to_the_end) {
    decision d = undecided(s);
    d.limit = s.factor;
    d.repeats = static_cast<int>(e.candidate.size());
    d.requests = measured_requests(e, e.candidate.size(), s.what);
    d.is_at_its_end = true;
    if (cause why = without_runs(past, s))
        return decided(std::move(d), verdict::inconclusive, std::move(why));
    const objective_history& o = *past.of(s);
    const learned_history& h = o.learned;
    const comparison c = comparison_of(e, t, s);
    set_measured(d, e, t, c);
    observed_repeats seen;
    for (std::size_t i = 0; i < e.candidate.size(); ++i) {
        const double value = c.of_repeat(i);
        if (std::isnan(value))
            return decided(std::move(d), verdict::invalid,
                           {because::no_value_in, {as_number(i + 1), 1}});
        seen.add(value, s, d.limit);
    }
    if (seen.values.empty())
        return decided(std::move(d), verdict::invalid, {because::nothing_measured});
    d.values = seen.values;
    d.decided_by = verdict_method::counted_misses;
    d.is_at_its_end = false;
    if (seen.unbounded > 0) {
        decide_by_misses(d, seen, e, t, c, first_fail);
        return d;
    }
    d.decided_by = verdict_method::predictive_t;
    d.past = t.past;
    d.distances = seen.distances;
    if (seen.values.size() < 2)
        return decided(std::move(d), verdict::inconclusive, {because::one_repeat});
    const double line = (s.at_most ? 1 : -1) * std::log(d.limit);
    std::vector<double> run = seen.distances;
    for (double& x : run) x += h.level.mean + line;
    const history_bounds bounds = history_bounds_of(t.rule);
    const history_analysis l =
        to_the_end ? analysis_against(h, run, line, history_analysis_kind::whole, bounds)
                   : judged_against(h, run, line, past.appends, bounds);
    d.repeats = static_cast<int>(l.repeats);
    d.requests = measured_requests(e, l.repeats, s.what);
    d.values.resize(l.repeats);
    d.distances.resize(l.repeats);
    d.last = reported_analysis(l, h, bounds);
    d.outcome = l.outcome;
    d.is_at_its_end = !past.appends && is_last_analysis(h, l);
    if (cause why = cause_of(l, o)) d.why = {std::move(why)};
    if (d.outcome == verdict::fail && !past.knows_card)
        return decided(std::move(d), verdict::inconclusive, {because::unknown_card});
    if (d.outcome == verdict::pass) withdraw_over_failures(d, e, t);
    return d;
}

/// The numbers of such a verdict, and a limit that unchanged code would mostly pass.
inline void estimate_by_history(const learned_history& h, decision& d) {
    if (d.repeats < 2) return;
    const interim_analysis& l = d.last;
    const double sign = d.what.at_most ? 1 : -1, reach = l.pass_t * l.se;
    const auto back = [&](double distance) { return at_distance(d.what, distance, d.limit); };
    d.estimate = {back(l.mean), back(l.mean - sign * reach), back(l.mean + sign * reach)};
    d.detectable = fraction_of_limit(d.what, std::log1p(l.detectable));
    const double se = l.sd * std::sqrt(1 + 1 / h.level.runs);
    const history_bounds bounds = history_bounds_of(d.rule);
    const double t = student_t_quantile(normal_cdf(bounds.pass), l.df);
    if (l.mean < 0 && -l.mean < (t + four_in_five) * se && d.why.empty())
        d.advice = {because::headroom_in_noise,
                    {-fraction_of_limit(d.what, l.mean), l.sd, back(l.mean + (t + 1.645) * se)}};
}

inline constexpr double wide_runs_sd = 0.03;  // above this a live comparison sees far more

inline int of_hundred(double fraction) {
    return static_cast<int>(std::floor(100 * std::clamp(fraction, 0.0, 1.0)));
}
inline std::string history_words(const history_parameters& h, const objective_history& o,
                                 const slo& s, const judging_rule& rule) {
    const learned_history& l = o.learned;
    std::string words = plural(l.runs, "run") + (h.machine.empty() ? "" : " on " + h.machine);
    if (!o.step_at.empty())
        words += printed(", the level is of the step of %+.1f %% on %s", o.step * 100,
                         o.step_at.c_str()) +
                 (o.step_text.empty() ? "" : " (" + o.step_text + ")");
    if (o.is_open_step) words += ", which made main worse and which nobody accepted";
    if (!l.is_enough()) return words;
    const history_bounds bounds = history_bounds_of(rule);
    const double line = (s.at_most ? 1 : -1) * std::log(s.factor);
    words += printed(
        "; runs differ by %.2g %%%s, repeats by %.2g %%; unchanged code passes in "
        "%d of 100, 10 %% beyond the limit is found in %d",
        l.spread.sd * 100, l.given_sd > 0 ? " (as given)" : "", std::sqrt(l.repeats.variance) * 100,
        of_hundred(chance_to_pass(l, line, bounds)),
        of_hundred(chance_to_find(l, std::log(1.10), bounds)));
    if (o.drift != 0)
        words += printed("; main has drifted by %+.1f %% [%+.1f %%, %+.1f %%] since %s, in %zu "
                         "steps", o.drift * 100, o.drift_low * 100, o.drift_high * 100,
                         o.drift_since.c_str(), o.drift_steps);
    if (l.spread.sd >= wide_runs_sd) words += "; with such runs, compare with a live baseline";
    return words;
}
/// A line for each objective, "history: 27 runs on ...".
inline std::vector<std::string> report_lines(const history_parameters& h, const gate_report& g) {
    std::vector<std::string> lines;
    if (!h.none.empty()) return {"history: " + h.none};
    std::vector<const slo*> relative;
    for (const slo& s : g.judged_by.slos)
        if (s.factor > 0 && h.of(s)) relative.push_back(&s);
    for (const slo* s : relative)
        lines.push_back((relative.size() > 1 ? "history of " + str((*s).what.name) : "history") +
                        ": " + history_words(h, *h.of(*s), *s, g.judged_by.rule));
    return lines;
}

inline void add_history(arithmetic& a, const learned_history& h, const decision& d) {
    if (d.repeats < 2) return;
    add_values(a, d);
    a.line += "; ln distances from the limit " + listed(d.distances) +
              printed(
                  "; %zu runs, sd %.6g (df %.3g); repeats, sd %.6g (df %.0f); level of "
                  "%.0f runs; bounds: pass %.6g < 0, fail %.6g > 0 (t quantiles of the "
                  "normal scores %.4f and %.4f)",
                  h.runs, h.spread.sd, h.spread.df, std::sqrt(h.repeats.variance), h.repeats.df,
                  h.level.runs, d.last.pass_bound, d.last.fail_bound, d.last.pass_z, d.last.fail_z);
    a.add("log_distances", d.distances);
    a.add("nights_sd", {h.spread.sd});
    a.add("nights_df", {h.spread.df});
    a.add("repeats_sd", {std::sqrt(h.repeats.variance)});
    a.add("level", {h.level.mean});
    a.add("level_nights", {h.level.runs});
    if (h.given_sd > 0) a.add("given_sd", {h.given_sd});
    a.add("standard_error", {d.last.se});
    a.add("pass_bound", {d.last.pass_bound});
    a.add("fail_bound", {d.last.fail_bound});
}

class history_judge final : public past_judge {
public:
    explicit history_judge(history_parameters&& h = {}) : parameters(std::move(h)) {}
    history_parameters parameters;

    decision judged(const measurements& e, const judging_parameters& t, const slo& s,
                    bool to_the_end) const override {
        return judge_by_history(parameters, e, t, s, to_the_end);
    }
    void estimate(decision& d) const override { estimate_by_history(learned(d), d); }
    std::string against(const decision& d) const override {
        return printed("%zu runs", learned(d).runs);
    }
    void explain(arithmetic& a, const decision& d) const override { add_history(a, learned(d), d); }
    std::optional<level> level_of(const slo& s) const override {
        const objective_history* const o = parameters.of(s);
        if (!o) return std::nullopt;
        return level{(s.at_most ? 1 : -1) * o->learned.level.mean, o->learned.spread.sd};
    }
    history_noise noise_of(const slo& s) const override { return noise_by(parameters, s); }
    std::vector<std::string> lines(const gate_report& g) const override {
        return report_lines(parameters, g);
    }
    void fields(field_visitor& v) override { fields_of(v, parameters); }

private:
    const learned_history& learned(const decision& d) const {
        return parameters.of(d.what)->learned;
    }
};
/// Static objects of other files may read results, too.
[[gnu::constructor(101)]] static void make_histories_readable() {
    new_past_judge = []() -> std::shared_ptr<past_judge> {
        return std::make_shared<history_judge>();
    };
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
