// the history of each objective of a gate
// All that the rule needs: judging again needs no folder and gives the same bits.
#pragma once

#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "extensions/history/core/entry.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/levels.hpp"
#include "extensions/history/core/lines.hpp"
#include "extensions/history/core/reading.hpp"
#include "extensions/history/core/waivers.hpp"

#include <algorithm>  // max, max_element
#include <cmath>  // fabs
#include <cstddef>  // size_t
#include <map>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One statistic in one direction: data for the rule and the reports.
struct objective_history {
    std::string statistic{};
    bool at_most = true;
    double scale = 0;           // of differences: levels are values in parts of it; else logarithms
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
            if (o.statistic == str(s.statistic.name) && o.at_most == s.at_most &&
                (o.scale > 0) == is_difference(s))
                return &o;
        return nullptr;
    }
};

inline void fields_of(field_visitor& v, main_moved& m) {
    v.number({"level"}, m.now.mean, any_number);
    v.number({"nights"}, m.now.runs, {1, most_of_few});
    v.number({"by", "logarithm"}, m.by, any_number);
    v.flag({"on_machine", "its newest runs on the machine of the run", if_any}, m.is_on_machine);
}
inline void fields_of(field_visitor& v, machine_of_run& m, slow_runs& s) {
    constexpr whole_range count{0, most_of_few};
    v.text({"name"}, m.name);
    v.number({"effect", "logarithm, in the level already; above 0: slower"}, m.effect, any_number);
    v.number({"variance", "of the effect, or of the machines where it is not known"}, m.variance,
             {0, max_statistic, 0});
    v.number({"df"}, m.df, {0, most_of_few, 0});
    v.text({"only", "another machine, on which all runs of the level were", if_any}, m.only);
    v.whole({"runs"}, s.runs, count);
    v.whole({"slow_runs"}, s.slow, count);
    v.whole({"slow_runs_on_it"}, s.on_it, count);
    v.whole({"machines", "of those runs"}, s.machines, count);
    v.number({"chance", "of so many on it, by an exact test"}, s.chance, {0, 1, 1});
    v.number({"farthest_on_it"}, s.farthest, any_number);
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
    if (v.has("machine", !h.machine.name.empty()))
        v.object({"machine", "of the run, in a history of several", at_times}, h.machine, h.slow);
    v.list({"main_moved"}, h.moved, [&](main_moved& m) { fields_of(v, m); });
}
inline void fields_of(field_visitor& v, objective_history& o) {
    v.text({"statistic"}, o.statistic);
    v.flag({"at_most"}, o.at_most);
    v.number({"scale", "of differences: all levels are in parts of it, and no logarithms", if_any},
             o.scale, {0, largest_number, 0});
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
    std::string card{};     // today's, "" if unknown
    std::string machine{};  // likewise, its name
};
inline std::string too_old_text(const std::string& at, const std::string& of) {
    return joined({"the newest run", of, " is of ", at.substr(0, 10), ", over 30 days ago"});
}
inline objective_history objective_history_of(history_series s, const slo& what,
                                              const history_question& asked) {
    objective_history o;
    s.scale = is_difference(what) ? std::max(std::fabs(what.offset), s.mean()) : 0;
    o.scale = s.scale;
    o.statistic = str(what.statistic.name);
    o.at_most = s.at_most = what.at_most;
    const history_read r =
        history_read_as(s, asked.appends ? run_on::main : run_on::branch, asked.given_sd,
                        asked.machine);
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
        o.step = s.share_of(sign * (mean_of(means_of(r.runs, last.first, last.end)) -
                                    mean_of(means_of(r.runs, before.first, before.end))));
        o.step_at = run(last.first).at.substr(0, 10);
        const std::string changed =
            changed_facts(run(last.first - 1).watched, run(last.first).watched);
        o.step_text = run(last.first).commit.substr(0, 8);
        if (!changed.empty()) o.step_text += (o.step_text.empty() ? "" : ", ") + changed;
    }
    if (const auto d = drift_of_level(r.runs, r.segments, r.learned.spread)) {
        o.drift = s.share_of(sign * d->by);
        o.drift_low = s.share_of(sign * (sign > 0 ? d->low : d->high));
        o.drift_high = s.share_of(sign * (sign > 0 ? d->high : d->low));
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
        if (!(is_judged_by_spread(s.statistic.metric) || !is_absolute(s)) || h.of(s)) continue;
        h.objectives.push_back(
            objective_history_of(series_of(lines, runs, str(s.statistic.name)), s, asked));
    }
    return h;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
