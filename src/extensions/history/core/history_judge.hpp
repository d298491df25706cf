// verdicts by a history
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/described/described.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/counts.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/values.hpp"
#include "core/judging/walk.hpp"
#include "core/metric/table.hpp"
#include "core/reports/gate_report.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/objective_history.hpp"
#include "extensions/history/core/waivers.hpp"

#include <algorithm>  // clamp, max
#include <cmath>  // expm1, fabs, isnan, log, log1p, sqrt, floor
#include <cstddef>  // size_t
#include <memory>  // make_unique, unique_ptr
#include <optional>
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
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
    if (!o->none.empty()) return with_text(because::no_runs, o->none);
    const learned_history& l = o->learned;
    if (l.is_enough()) return {};
    if (l.given_sd <= 0 && l.runs < fewest_runs)
        return cause_with<because::few_runs>({{"runs", l.runs}});
    return l.repeats.df <= 0 ? cause_with<because::lone_repeats>({{"runs", l.runs}})
                             : cause_with<because::lone_levels>({{"runs", l.runs}});
}
inline cause cause_of(const history_analysis& l, const objective_history& o) {
    const learned_history& h = o.learned;
    switch (l.withheld) {
    case history_hold::none: break;
    case history_hold::other_machine:
        return with_text(because::other_machine,
                         h.machine.only + ", none on " + h.machine.name);
    case history_hold::machine:
        return cause_with<because::machine_explains>(
            {{"on_it", h.slow.on_it}, {"slow", h.slow.slow}, {"runs", h.slow.runs},
             {"chance", h.slow.chance},
             {"others", h.slow.on_it == h.slow.slow ? h.slow.machines - 1 : 0}},
            whose::nobody, h.machine.name);
    case history_hold::main_moved: {
        const main_moved& m = h.moved[l.by];
        const double share = std::fabs(o.scale > 0 ? m.by : std::expm1(m.by));
        return cause_with<because::main_moved>(
            {{"moved", share}, {"is_slower", m.by > 0}, {"in_two", m.now.runs - 1}},
            whose::nobody,
            m.is_on_machine ? "on " + h.machine.name + ": measure on another machine" : o.newest);
    }
    case history_hold::trouble:
        return cause_with<because::outlying_runs>({{"outlying", h.spread.trouble}, {"runs", h.runs}});
    case history_hold::given: return cause_with<because::given_spread>({{"spread", h.given_sd}});
    }
    return {};
}

/// The analysis in the form of others: bounds in standard errors.
inline interim_analysis reported_analysis(const history_analysis& l, const learned_history& h) {
    interim_analysis out;
    out.outcome = l.outcome;
    out.spread = spread_of::measured;
    out.mean = l.distance;
    out.sd = h.spread.sd;
    out.df = h.spread.df;
    out.pass_z = l.pass_z;
    out.fail_z = l.fail_z;
    out.pass_t = student_t_quantile(normal_cdf(out.pass_z), out.df);
    out.se = (l.pass_bound - l.distance) / out.pass_t;
    out.fail_t = (l.distance - l.fail_bound) / out.se;
    out.prior_sd = h.given_sd;
    out.pass_bound = l.pass_bound;
    out.fail_bound = l.fail_bound;
    out.detectable = std::expm1((out.fail_t + four_in_five) * out.se);
    return out;
}

/// The limit as a level, and the noise that today's run has beside the history's.
inline level_of_limit line_of(const objective_history& o, const slo& s) {
    const double sign = s.at_most ? 1 : -1;
    if (o.scale > 0) return {sign * s.offset / o.scale, s.factor};
    return sign * std::log(s.factor);
}
inline noise_of_today noise_today(const objective_history& o, const objective_columns& of,
                                  const slo& s, const comparison& c) {
    if (!(o.scale > 0)) return {};
    noise_of_today today{.counts = 0, .client = of.client_error / o.scale};
    if (!is_request_fraction(s.statistic.metric)) return today;
    slo own = s;
    own.bound = std::clamp(s.factor * c.others_together + s.offset, 0.0, 1.0);
    const miss_counts m = counted_misses(of.mine, own, of.repeats(), 0);
    const double value = std::clamp(of.mine.together, 0.0, 1.0);
    const double variance = std::max(own.bound * (1 - own.bound), value * (1 - value));
    today.counts = variance * std::max(1.0, m.effect) * as_number(of.repeats()) /
                   (m.n * o.scale * o.scale);
    return today;
}

/// A ratio to main's level, or a difference, by what runs and repeats of main differ by.
class by_history final : public method {
public:
    by_history(const history_parameters& past, const objective_columns& columns,
               const judging_parameters& parameters, const slo& objective, sought which)
        : method(columns, parameters, objective), past_(past), runs_(past.of(objective)),
          which_(which) {
        if (runs_ && runs_->scale > 0) seen_.scale = runs_->scale;
    }
    cause lacking(decision& d) const override {
        cause why = without_runs(past_, s);
        if (!why) return {};
        d.outcome = verdict::inconclusive;
        d.is_at_its_end = true;
        count_repeats(d, repeats());
        return why;
    }
    taken_repeat take(std::size_t i) override {
        const double value = c.of_repeat(i);
        if (std::isnan(value)) return {false, why_no_value(c, s, i)};
        seen_.add(value, s, limit_of(s));
        return {};
    }
    /// Of the newest analysis that such a run has after so many repeats: it is of as many as
    /// runs of main have. One that joins the history has a single analysis, of all repeats.
    evidence shown(decision& d, const fewest_repeats&) override {
        const std::size_t n = seen_.values.size();
        if (past_.appends && n < repeats()) return {.n = as_number(n)};
        if (seen_.unbounded > 0) return evidence_of_misses(d, seen_, t, c, first_fail);
        if (n < 2) return {.n = as_number(n), .words = {cause{because::one_repeat}}};
        const history_analysis l = analysis();
        count_repeats(d, l.repeats);
        d.last = reported_analysis(l, runs_->learned);
        evidence x{.outcome = l.outcome, .n = as_number(n),
                   .is_final = !past_.appends && is_last_analysis(runs_->learned, l)};
        if (l.outcome == verdict::fail && !past_.knows_card) {
            x.outcome = verdict::inconclusive;
            x.words = {cause{because::unknown_card}};
        } else if (cause why = cause_of(l, *runs_)) {
            x.words = {std::move(why)};
        }
        return x;
    }
    void end(decision& d, sought) const override {
        d.values = seen_.values;
        d.decided_by = verdict_method::counted_misses;
        if (seen_.unbounded > 0) return;
        d.decided_by = verdict_method::predictive_t;
        d.past = t.past;
        d.scale = seen_.scale;
        d.distances = seen_.distances;
        d.values.resize(static_cast<std::size_t>(d.repeats));
        d.distances.resize(d.values.size());
    }

private:
    void count_repeats(decision& d, std::size_t n) const {
        d.repeats = static_cast<int>(n);
        d.requests = measured_requests(of(), n, s.statistic.metric);
    }
    history_analysis analysis() const {
        const learned_history& h = runs_->learned;
        const level_of_limit line = line_of(*runs_, s);
        const noise_of_today today = noise_today(*runs_, of(), s, c);
        const history_bounds bounds = history_bounds_of(t.rule);
        vector<double> run = seen_.distances;
        for (double& x : run) x += h.level.mean + line.of(h.level.mean);
        if (which_ == sought::last)
            return analysis_against(h, run, line, history_analysis_kind::whole, bounds, today);
        return judged_against(h, run, line, past_.appends ? run_on::main : run_on::branch, bounds,
                              today);
    }

    const history_parameters& past_;
    const objective_history* const runs_;  // null: none has the statistic
    const sought which_;
    observed_repeats seen_{};
};

/// The numbers of such a verdict, and a limit that unchanged code would mostly pass.
inline void estimate_by_history(const learned_history& h, decision& d) {
    if (d.repeats < 2) return;
    const interim_analysis& l = d.last;
    const auto back = [&](double distance) { return at_distance(d.objective, distance, d.limit); };
    set_interval(d);
    if (is_difference(d.objective)) {  // in its unit
        d.detectable = std::log1p(l.detectable) * d.scale;
        return;
    }
    d.detectable = fraction_of_limit(d.objective, std::log1p(l.detectable));
    const double se = sd_of_a_run(h);
    const history_bounds bounds = history_bounds_of(d.rule);
    const double t = student_t_quantile(normal_cdf(bounds.pass), l.df);
    if (l.mean < 0 && -l.mean < (t + four_in_five) * se && d.why.empty())
        d.advice = cause_with<because::headroom_in_noise>(
            {{"headroom", -fraction_of_limit(d.objective, l.mean)},
             {"noise", l.sd},
             {"better", back(l.mean + (t + 1.645) * se)}});
}

inline constexpr double wide_runs_sd = 0.03;  // above this a live comparison sees far more

inline int of_hundred(double fraction) {
    return static_cast<int>(std::floor(100 * std::clamp(fraction, 0.0, 1.0)));
}
inline std::string history_words(const history_parameters& h, const objective_history& o,
                                 const slo& s, const judging_rule& rule) {
    const learned_history& l = o.learned;
    if (!o.none.empty()) return o.none;
    std::string words = plural(l.runs, "run") + (h.machine.empty() ? "" : " on " + h.machine);
    if (!o.step_at.empty())
        words += printed(", the level is of the step of %+.1f %% on %s", o.step * 100,
                         o.step_at.c_str()) +
                 (o.step_text.empty() ? "" : " (" + o.step_text + ")");
    if (o.is_open_step) words += ", which made main worse and which nobody accepted";
    if (!l.is_enough()) return words;
    const history_bounds bounds = history_bounds_of(rule);
    const double line = line_of(o, s).of(l.level.mean);
    const auto spread_text = [&](double sd) {
        return o.scale > 0 ? value_text(s.statistic.metric, sd * o.scale)
                           : printed("%.2g %%", sd * 100);
    };
    words += "; runs differ by " + spread_text(l.spread.sd) +
             (l.given_sd > 0 ? " (as given)" : "") + ", repeats by " +
             spread_text(std::sqrt(l.repeats.variance)) +
             printed("; unchanged code passes in %d of 100",
                     of_hundred(chance_to_pass(l, line, bounds)));
    if (!(o.scale > 0))
        words += printed(", 10 %% beyond the limit is found in %d",
                         of_hundred(chance_to_find(l, std::log(1.10), bounds)));
    if (l.machine.effect != 0)
        words += "; runs on " + l.machine.name +
                 printed(" are %.2g %% %s", 100 * std::fabs(std::expm1(l.machine.effect)),
                         l.machine.effect > 0 ? "slower" : "faster");
    if (o.drift != 0)
        words += printed("; main has drifted by %+.1f %% [%+.1f %%, %+.1f %%] since %s, in %zu "
                         "steps", o.drift * 100, o.drift_low * 100, o.drift_high * 100,
                         o.drift_since.c_str(), o.drift_steps);
    if (l.spread.sd >= wide_runs_sd) words += "; with such runs, compare with a live baseline";
    return words;
}
/// A line for each objective, "history: 27 runs on ...".
inline vector<std::string> report_lines(const history_parameters& h, const gate_report& g) {
    vector<std::string> lines;
    if (!h.none.empty()) return {"history: " + h.none};
    vector<const slo*> relative;
    for (const slo& s : g.judged_by.slos)
        if (!is_absolute(s) && h.of(s)) relative.push_back(&s);
    for (const slo* s : relative)
        lines.push_back(
            (relative.size() > 1 ? "history of " + str((*s).statistic.name) : "history") + ": " +
            history_words(h, *h.of(*s), *s, g.judged_by.rule));
    for (const met_waiver& w : h.met)
        for (const slo_verdict& v : g.verdicts)
            if (v.outcome == verdict::pass && str(v.objective.text()) == w.objective)
                lines.push_back(waiver_text(w));
    return lines;
}

inline void add_history(arithmetic& a, const learned_history& h, const decision& d) {
    if (d.repeats < 2) return;
    a.add_values(d);
    a.add_distances(d);
    a.add_each({{"nights_sd", h.spread.sd}, {"nights_df", h.spread.df},
                {"repeats_sd", std::sqrt(h.repeats.variance)}, {"level", h.level.mean},
                {"level_nights", h.level.runs}});
    if (h.given_sd > 0) a.add("given_sd", {h.given_sd});
    a.add_each({{"standard_error", d.last.se}, {"pass_z", d.last.pass_z},
                {"fail_z", d.last.fail_z}, {"pass_bound", d.last.pass_bound},
                {"fail_bound", d.last.fail_bound}});
}

class history_judge final : public past_judge {
public:
    explicit history_judge(history_parameters&& h = {}) : parameters(std::move(h)) {}
    history_parameters parameters;

    std::unique_ptr<method> method_for(const objective_columns& c, const judging_parameters& t,
                                       const slo& s, sought which) const override {
        return std::make_unique<by_history>(parameters, c, t, s, which);
    }
    void estimate(decision& d) const override { estimate_by_history(learned(d), d); }
    std::string against(const decision& d) const override {
        return printed("%zu runs", learned(d).runs);
    }
    void explain(arithmetic& a, const decision& d) const override { add_history(a, learned(d), d); }
    std::optional<level> level_of(const slo& s) const override {
        const objective_history* const o = parameters.of(s);
        if (!o) return std::nullopt;
        return level{(s.at_most ? 1 : -1) * o->learned.level.mean, o->learned.spread.sd, o->scale};
    }
    std::optional<interim_analysis> analysis_of(const slo& s, const vector<double>& distances,
                                                const judging_rule& rule) const override {
        const bool has_level = is_absolute(s) && parameters.none.empty();
        const objective_history* const o = has_level ? parameters.of(s) : nullptr;
        if (!o || !o->none.empty()) return {};
        const history_noise known{prior_sd_of(o->learned.repeats), o->learned.repeats.df};
        if (!(known.sd > 0)) return {};
        return analysis_with_history(distances, known, rule);
    }
    vector<std::string> lines(const gate_report& g) const override {
        return report_lines(parameters, g);
    }
    void fields(field_visitor& v) override { fields_of(v, parameters); }

private:
    const learned_history& learned(const decision& d) const {
        return parameters.of(d.objective)->learned;
    }
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
