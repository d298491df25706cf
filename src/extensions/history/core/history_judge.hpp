// the history that a gate is judged by, and verdicts by it
// All that the rule needs: judging again needs no folder and gives the same bits.
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/described/described.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/values.hpp"
#include "core/metric/table.hpp"
#include "core/reports/gate_report.hpp"
#include "extensions/history/core/entry.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/levels.hpp"
#include "extensions/history/core/lines.hpp"
#include "extensions/history/core/waivers.hpp"

#include <algorithm>  // clamp, max_element
#include <cmath>  // expm1, fabs, isnan, log, log1p, sqrt, floor
#include <cstddef>  // size_t
#include <map>
#include <memory>  // shared_ptr
#include <optional>
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One statistic in one direction: data for the rule and the reports.
struct objective_history {
    std::string statistic{};
    bool at_most = true;
    learned_history learned{};
    std::string none{};         // why it is not judged by the history
    std::string newest{};       // the newest run's commit or date
    double step = 0;            // at the level's start, as a share; 0: none
    std::string step_at{};      // its date
    std::string step_text{};    // commit and changed properties
    bool is_open_step = false;  // main became worse, not accepted
    double drift = 0, drift_low = 0, drift_high = 0;  // as shares; 0: none shown
    std::string drift_since{};
    std::size_t drift_steps = 0;
};

/// The runs of main, for a gate's objectives.
struct history_parameters {
    std::string folder{};
    std::string machine{};     // of the runs, in words
    std::string none{};        // why there is no history to judge by
    bool appends = false;      // the run joins the history
    bool knows_card = true;    // whether any run was measured on today's
    vector<objective_history> objectives{};
    vector<met_waiver> met{};  // advisory objectives that can block again

    bool is_there() const { return !folder.empty(); }
    const objective_history* of(const slo& s) const {
        for (const objective_history& o : objectives)
            if (o.statistic == str(s.statistic.name) && o.at_most == s.at_most) return &o;
        return nullptr;
    }
};

inline void fields_of(field_visitor& v, main_moved& m) {
    v.number({"level"}, m.now.mean, any_number);
    v.number({"nights"}, m.now.runs, {1, most_of_few});
    v.number({"by", "logarithm"}, m.by, any_number);
}
inline void fields_of(field_visitor& v, learned_history& h) {
    constexpr number_range count{0, most_of_few};
    v.whole({"nights", "the newest ones, of which all of this is"}, h.runs, {0, most_of_few});
    v.number({"repeats_variance", "of logarithms, within runs"}, h.repeats.variance, any_number);
    v.number({"repeats_df"}, h.repeats.df, count);
    v.number({"repeats_a_night", "harmonic mean"}, h.repeats.repeats, count);
    v.number({"nights_sd", "of logarithms"}, h.spread.sd, any_number);
    v.number({"nights_df"}, h.spread.df, count);
    v.whole({"trouble_nights"}, h.spread.trouble, {0, most_of_few});
    v.number({"farthest", "of the outlying runs, from its level"}, h.spread.farthest, any_number);
    v.number({"level", "mean of the newest runs' logarithms; less is better"}, h.level.mean,
             any_number);
    v.number({"level_nights"}, h.level.runs, count);
    v.number({"given_sd", "what runs differ by as the user says; 0: it does not count"}, h.given_sd,
             any_number);
    v.list({"main_moved"}, h.moved, [&](main_moved& m) { fields_of(v, m); });
}
inline void fields_of(field_visitor& v, objective_history& o) {
    v.text({"statistic"}, o.statistic);
    v.flag({"at_most"}, o.at_most);
    fields_of(v, o.learned);
    v.text({"none", "why it is not judged by the runs", if_any}, o.none);
    v.text({"newest", "commit of the newest run, or its date"}, o.newest);
    v.text({"segment_from", "the date of the step that the level began with, \"\": none"},
           o.step_at);
    v.number({"segment_step", "as a share"}, o.step, any_number);
    v.text({"segment_text"}, o.step_text);
    v.flag({"open_step", "main became worse, and nobody accepted it"}, o.is_open_step);
    v.number({"drift", "as a share, 0: none is shown"}, o.drift, any_number);
    v.number({"drift_low"}, o.drift_low, any_number);
    v.number({"drift_high"}, o.drift_high, any_number);
    v.text({"drift_since"}, o.drift_since);
    v.whole({"drift_steps"}, o.drift_steps, {0, most_of_few});
}
inline void fields_of(field_visitor& v, history_parameters& h) {
    v.text({"folder"}, h.folder);
    v.text({"machine"}, h.machine);
    v.text({"none", "why there is nothing to be held against"}, h.none);
    v.flag({"appends", "the run joins the history"}, h.appends);
    v.flag({"knows_card", "a run was measured on the card"}, h.knows_card);
    v.list({"objectives"}, h.objectives, [&](objective_history& o) { fields_of(v, o); });
    v.list({"waivers", "advisory objectives that can block again", if_any}, h.met,
           [&](met_waiver& w) { fields_of(v, w); });
}

inline std::string short_commit(const series_run& n) {
    return n.commit.empty() ? n.at.substr(0, 10) : n.commit.substr(0, 8);
}
/// The watched properties that differ between two runs: "vLLM 0.32 -> vLLM 0.33".
inline std::string changed_facts(const vector<named_text>& before,
                                 const vector<named_text>& after) {
    std::string words;
    for (const auto& [name, now] : after)
        for (const auto& [known, then] : before) {
            if (known != name || then.empty() || then == now) continue;
            words += words.empty() ? "" : ", ";
            words += name == "card"        ? "another card"
                     : name == "arguments" ? "other arguments"
                     : name == "server"    ? then + " -> " + now
                                           : name + " " + then + " -> " + now;
        }
    return words;
}

/// The questioner's data, beside the gate's objectives.
struct history_question {
    std::string folder{};
    double given_sd = 0;
    bool appends = false;
    std::string oldest{};  // a newest run before that is too old
    std::string card{};    // today's, "" if unknown
};
inline std::string too_old_text(const std::string& at, const std::string& of) {
    return joined({"the newest run", of, " is of ", at.substr(0, 10), ", over 30 days ago"});
}
inline objective_history objective_history_of(const history_series& s, const slo& what,
                                              const history_question& asked) {
    objective_history o;
    o.statistic = str(what.statistic.name);
    o.at_most = what.at_most;
    const history_read r = history_read_as(s, what.at_most, asked.appends, asked.given_sd);
    o.learned = r.learned;
    if (r.runs.empty()) return o;
    const double sign = what.at_most ? 1 : -1;
    const auto run = [&](std::size_t i) -> const series_run& { return s.runs[r.runs[i].run]; };
    const series_run& newest = run(r.runs.size() - 1);
    o.newest = short_commit(newest);
    if (newest.at < asked.oldest) o.none = too_old_text(newest.at, " with " + o.statistic);
    o.is_open_step = !r.segments.back().is_accepted;
    if (r.segments.size() > 1) {
        const history_segment& last = r.segments.back();
        const history_segment& before = r.segments[r.segments.size() - 2];
        o.step = std::expm1(sign * (mean_of(means_of(r.runs, last.first, last.end)) -
                                    mean_of(means_of(r.runs, before.first, before.end))));
        o.step_at = run(last.first).at.substr(0, 10);
        const std::string changed = changed_facts(run(last.first - 1).watched, run(last.first).watched);
        o.step_text = run(last.first).commit.substr(0, 8);
        if (!changed.empty()) o.step_text += (o.step_text.empty() ? "" : ", ") + changed;
    }
    if (const auto d = drift_of_level(r.runs, r.segments, r.learned.spread)) {
        o.drift = std::expm1(sign * d->by);
        o.drift_low = std::expm1(sign * (sign > 0 ? d->low : d->high));
        o.drift_high = std::expm1(sign * (sign > 0 ? d->high : d->low));
        o.drift_since = run(d->since).at.substr(0, 10);
        o.drift_steps = d->steps;
    }
    return o;
}

/// Returns why a series has no runs: the series with most, and its first difference.
inline std::string why_no_runs(const history_lines& lines, const run_series& mine,
                               const std::map<std::string, run_series>& known) {
    const auto runs = runs_by_series(lines, mine.gate);
    if (const std::string none = no_valid_run_of(lines, mine.gate); !none.empty()) return none;
    const auto most = std::max_element(runs.begin(), runs.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    const std::string count = plural(most->second, "run");
    const auto at = known.find(most->first);
    if (at == known.end()) return count + " of another series, none of this one";
    const std::string there = machine_text(at->second), here = machine_text(mine);
    if (there != here) return count + " of " + there + ", none of " + here;
    return count + " of another series, none of this one: " + first_difference(mine, at->second);
}

/// Values, speeds and rates have a spread between repeats, as have objectives on a baseline.
inline history_parameters history_parameters_of(const history_lines& lines, const run_series& mine,
                                      const std::map<std::string, run_series>& known,
                                      const vector<slo>& slos, const history_question& asked) {
    history_parameters h;
    h.folder = asked.folder;
    h.machine = machine_text(mine);
    h.appends = asked.appends;
    const std::string id = id_of(mine);
    const vector<const history_run*> runs = runs_of(lines, mine.gate, id);
    if (runs.empty()) {
        h.none = why_no_runs(lines, mine, known);
        return h;
    }
    if (runs.back()->at < asked.oldest) h.none = too_old_text(runs.back()->at, "");
    bool any_card = false, same_card = false;
    for (const history_run* r : runs)
        for (const auto& [name, value] : r->watched)
            if (name == "card") {
                any_card = true;
                same_card = same_card || value == asked.card;
            }
    h.knows_card = same_card || !any_card || asked.card.empty();
    h.met = met_waivers(runs, slos);
    for (const slo& s : slos) {
        if (!(is_judged_by_spread(s.statistic.metric) || s.factor > 0) || h.of(s)) continue;
        h.objectives.push_back(
            objective_history_of(series_of(lines, runs, str(s.statistic.name)), s, asked));
    }
    return h;
}

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

/// Judges a ratio to main's level. `to_the_end`: with all repeats, whenever they decided.
inline decision judge_by_history(const history_parameters& past, const objective_columns& of,
                                 const judging_parameters& t, const slo& s, bool to_the_end) {
    decision d = undecided(s);
    d.limit = s.factor;
    d.repeats = static_cast<int>(of.repeats());
    d.requests = measured_requests(of, of.repeats(), s.statistic.metric);
    d.is_at_its_end = true;
    if (cause why = without_runs(past, s))
        return decided(std::move(d), verdict::inconclusive, std::move(why));
    const objective_history& o = *past.of(s);
    const learned_history& h = o.learned;
    const comparison c = comparison_of(of, t, s);
    set_measured(d, c);
    observed_repeats seen;
    for (std::size_t i = 0; i < of.repeats(); ++i) {
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
        decide_by_misses(d, seen, t, c, first_fail);
        return d;
    }
    d.decided_by = verdict_method::predictive_t;
    d.past = t.past;
    d.distances = seen.distances;
    if (seen.values.size() < 2)
        return decided(std::move(d), verdict::inconclusive, {because::one_repeat});
    const double line = (s.at_most ? 1 : -1) * std::log(d.limit);
    vector<double> run = seen.distances;
    for (double& x : run) x += h.level.mean + line;
    const history_bounds bounds = history_bounds_of(t.rule);
    const history_analysis l =
        to_the_end ? analysis_against(h, run, line, history_analysis_kind::whole, bounds)
                   : judged_against(h, run, line, past.appends, bounds);
    d.repeats = static_cast<int>(l.repeats);
    d.requests = measured_requests(of, l.repeats, s.statistic.metric);
    d.values.resize(l.repeats);
    d.distances.resize(l.repeats);
    d.last = reported_analysis(l, h);
    d.outcome = l.outcome;
    d.is_at_its_end = !past.appends && is_last_analysis(h, l);
    if (cause why = cause_of(l, o)) d.why = {std::move(why)};
    if (d.outcome == verdict::fail && !past.knows_card)
        return decided(std::move(d), verdict::inconclusive, {because::unknown_card});
    if (d.outcome == verdict::pass) withdraw_over_failures(d, of, t);
    return d;
}

/// The numbers of such a verdict, and a limit that unchanged code would mostly pass.
inline void estimate_by_history(const learned_history& h, decision& d) {
    if (d.repeats < 2) return;
    const interim_analysis& l = d.last;
    const auto back = [&](double distance) { return at_distance(d.objective, distance, d.limit); };
    set_interval(d);
    d.detectable = fraction_of_limit(d.objective, std::log1p(l.detectable));
    const double se = l.sd * std::sqrt(1 + 1 / h.level.runs);
    const history_bounds bounds = history_bounds_of(d.rule);
    const double t = student_t_quantile(normal_cdf(bounds.pass), l.df);
    if (l.mean < 0 && -l.mean < (t + four_in_five) * se && d.why.empty())
        d.advice = {
            because::headroom_in_noise,
            {-fraction_of_limit(d.objective, l.mean), l.sd, back(l.mean + (t + 1.645) * se)}};
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
inline vector<std::string> report_lines(const history_parameters& h, const gate_report& g) {
    vector<std::string> lines;
    if (!h.none.empty()) return {"history: " + h.none};
    vector<const slo*> relative;
    for (const slo& s : g.judged_by.slos)
        if (s.factor > 0 && h.of(s)) relative.push_back(&s);
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

    decision judged(const objective_columns& c, const judging_parameters& t, const slo& s,
                    bool to_the_end) const override {
        return judge_by_history(parameters, c, t, s, to_the_end);
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
    std::optional<interim_analysis> analysis_of(const slo& s, const vector<double>& distances,
                                                const judging_rule& rule) const override {
        const bool is_absolute = s.factor <= 0 && parameters.none.empty();
        const objective_history* const o = is_absolute ? parameters.of(s) : nullptr;
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
/// Static objects of other files may read results, too.
[[gnu::constructor(101)]] static void make_histories_readable() {
    new_past_judge = []() -> std::shared_ptr<past_judge> {
        return std::make_shared<history_judge>();
    };
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
