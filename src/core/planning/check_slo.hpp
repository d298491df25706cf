// which SLOs a scenario can have, and on which day they block
#pragma once

#include "api/metrics.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/server_metrics/page_readings.hpp"
#include "core/measured/server_values.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/samples.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/expected.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"

#include <algorithm>  // find, max
#include <cmath>  // ceil, floor, isfinite
#include <cstddef>  // size_t
#include <optional>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr long long days_announced = 7;

/// Returns the day from which it blocks, if it has one. Throws std::invalid_argument for a bad
/// date.
inline std::optional<long long> day_of_end(const slo& s) {
    if (s.advisory_until.empty()) return {};
    const std::string date = str(s.advisory_until);
    const std::optional<long long> day = days_of_date(date);
    if (!day)
        refuse({"the SLO ", str(s.text()), " is refused: until(\"", printable(date, 40),
                "\") names no day, which is one of UTC, such as until(\"2026-12-31\")"});
    return day;
}
/// Returns the objective as it counts on a day, in days since 1970-01-01.
inline slo on_day(slo s, long long today) {
    if (const auto end = day_of_end(s)) s.is_advisory = today < *end;
    return s;
}
/// Returns the note of reports on that day, "" unless its end is near.
inline std::string end_text(slo s, long long today) {
    const std::optional<long long> end = day_of_end(s);
    if (!end || today < *end - days_announced) return {};
    s.is_advisory = false;
    const std::string of = str(s.text()), date = str(s.advisory_until);
    if (today >= *end) return of + " was advisory until " + date + ": it blocks again";
    return of + " is advisory until " + date + ": it blocks again in " +
           plural(static_cast<std::size_t>(*end - today), "day");
}
inline slo_list on_day(const slo_list& slos, long long today) {
    slo_list all;
    for (const slo& s : slos) all.push_back(on_day(s, today));
    return all;
}

inline int deepest_of(const planned_traffic& t) {
    int deepest = 0;
    for_each_part(t, [&](const plan_part& part) {
        deepest = std::max(deepest, part.source->facts().deepest);
    });
    return deepest;
}
inline vector<std::string> names_of(const vector<planned_task>& tasks) {
    vector<std::string> all;
    for (const planned_task& t : tasks) all.push_back(t.name);
    return all;
}
/// Returns why answers to the same prompt cannot be compared with the baseline's, "" if they can.
inline std::string why_not_compared(const planned_traffic& t, const planned_judging& j) {
    if (!j.has_baseline)
        return "it needs a live baseline, whose answers are there to be compared: a server, "
               "or otherwise{...}";
    if (!t.scores.empty()) return t.scores + " generates nothing";
    if (t.searches()) return "a search compares no answers: ask for them at one load";
    if (t.otherwise && (*t.otherwise).has_other_prompts)
        return "the baseline is asked something else: leave its workload out";
    bool any = false;
    std::string sampled;
    const auto look_at = [&](const plan_part& part) {
        if (!repeats_prompts(part)) return;
        any = true;
        if (part.common.temperature != 0)
            sampled = "options.temperature is " +
                      (std::isnan(part.common.temperature)
                           ? std::string("not set")
                           : printed("%g", part.common.temperature)) +
                      ": answers that are drawn by chance are not the same, set it to 0 in both "
                      "arms";
    };
    for_each_part(t, look_at);
    if (t.otherwise) for_each_part(*t.otherwise, look_at);
    return any ? sampled
               : "prompts differ from repeat to repeat: it needs questions{...}, prompts({...}) or "
                 "a dataset that is not salted, of one turn each";
}
/// A plan, and the facts of it that decide which objectives it can have. The plan outlives it.
struct slo_context {
    const planned_traffic& sent;
    const planned_judging& judged;
    bool has_turns;
    long long requests;  // measured ones of a repeat, 0 if only the run can tell
    counts_by_kind kinds;  // of these
    explicit slo_context(const plan& p)
        : sent(*p.sent), judged(*p.judged), has_turns(detail::has_turns(p)),
          requests(expected_requests(p)), kinds(expected_kinds(p)) {}
    bool is_held_against_the_past() const { return judged.has_stored_baseline || judged.past.by; }
    bool has_baseline() const { return judged.has_baseline || is_held_against_the_past(); }
    std::string arrivals() const { return arrival_text(sent.arrivals); }
};

// The functions below each refuse an objective for one reason; the sentence starts with `given`.

inline void check_condition(const statistic_data& w, const std::string& given) {
    if (w.metric == metric_id::goodput && !is_condition(w.where))
        refuse({given, no_condition_text});
    concerns_a_metric(w, [&](metric_id m) {
        const std::string why = metric_problem(m);
        if (!why.empty()) refuse({given, metric_name(m), ": ", why});
        return false;
    });
    for (const predicate_step& step : w.where) {
        if (step.op != predicate_step::op_kind::compare) continue;
        if (!is_of_requests(step.metric))
            refuse({given, metric_name(step.metric), " is no metric of one request"});
        if (!(step.bound > 0 && std::isfinite(step.bound)))
            refuse({given, "the limit of ", metric_name(step.metric), " must be above zero"});
    }
}
inline void check_series(const statistic_data& w) {
    if (w.metric == metric_id::server_metric) selector_of(str(w.gauge));
}
inline void check_answers(const statistic_data& w, const slo_context& c,
                          const std::string& given) {
    if (c.sent.described.is_there) return;
    if (w.metric == metric_id::accuracy && !asks_questions(c.sent))
        refuse({given, "workload is not questions{...}, and without questions whose answers are "
                       "known there is none that is right"});
    if (w.metric == metric_id::same_answers)
        if (const std::string why = why_not_compared(c.sent, c.judged); !why.empty())
            refuse({given, why});
}
inline void check_stream(const statistic_data& w, const slo_context& c, const std::string& given) {
    const bool is_of_output = concerns(w, &metric_facts::needs_stream) ||
                              concerns(w, &metric_facts::counts_output);
    if (!c.sent.scores.empty() && is_of_output)
        refuse({given, c.sent.scores, " answers in one piece and generates no tokens: use e2e, "
                                 "input_throughput, request_throughput or error_rate"});
    if (!c.sent.common.stream && concerns(w, &metric_facts::needs_stream))
        refuse({given, "options.stream is false, and an answer that comes in one piece has no "
                       "first token apart from its last: use e2e"});
}
inline void check_metric(const statistic_data& w, const slo_context& c, const std::string& given) {
    check_condition(w, given);
    check_answers(w, c, given);
    if (is_cost(drifting(w).metric) && !(c.judged.usd_per_hour > 0))
        refuse({given, "the scenario does not say what the server costs: .cost = "
                       "usd_per_hour(2.5)"});
    check_series(w);
    check_stream(w, c, given);
    if (w.kind == statistic_kind::percentile && !(w.q > 0 && w.q < 1))
        refuse({given, "a percentile lies strictly between 0 and 1"});
}

/// Slices of a load at once compare what single requests and tokens show.
inline void check_slices(const slo& s, const slo_context& c, const std::string& given) {
    const statistic_data& w = s.statistic;
    if (!c.judged.by_slices) return;
    if (is_absolute(s)) {
        if (is_judged_by_spread(w.metric) && !c.sent.described.is_there &&
            c.judged.max_repeats < fewest_repeats_of(s, repeats_are::at_once, last_analysis).pass)
            refuse({given, "pairs is at_once, whose one load decides only comparisons: give it "
                           ".repeats = 3, or its own gate"});
        return;
    }
    const bool is_one = w.kind == statistic_kind::max || w.kind == statistic_kind::min;
    const bool has_slices = (is_of_requests(w.metric) && !is_one) ||
                            (is_throughput(w.metric) && !is_cost(w.metric)) ||
                            is_request_fraction(w.metric);
    if (!has_slices)
        refuse({given, "pairs is at_once, which compares means and percentiles of requests, "
                       "throughputs and fractions of requests"});
}
inline bool is_a_fraction(const slo& s) {
    return facts_of(s.statistic.metric).unit == metric_unit::fraction;
}
inline void check_absolute_limit(const slo& s, const std::string& given) {
    const metric_id metric = s.statistic.metric;
    const bool may_be_zero = facts_of(metric).is_whole || metric == metric_id::server_metric;
    if (may_be_zero) {
        if (!std::isfinite(s.bound) || (!(s.bound >= 0) && metric != metric_id::server_metric))
            refuse({given, "the limit must not be below zero"});
        return;
    }
    if (!(s.bound > 0 && std::isfinite(s.bound))) refuse({given, "the limit must be above zero"});
    const bool may_be_all = metric == metric_id::same_answers;
    if (is_a_fraction(s) && !(s.bound < 1 || (may_be_all && s.bound == 1)))
        refuse({given, may_be_all ? "the limit must be 100 % at most"
                                  : "the limit must be under 100 %"});
}
/// A fraction is held against the baseline's by their difference, and answers to the same questions
/// by nothing else.
inline void check_limit_of_fraction(const slo& s, const slo_context& c, const std::string& given) {
    const metric_id metric = s.statistic.metric;
    const bool may_differ = is_difference(s) && metric != metric_id::same_answers;
    if (!may_be_relative(metric) && !may_differ)
        refuse({given, "a fraction is judged against a limit of its own, or by its difference "
                       "from a baseline"});
    if (!is_difference(s)) return;
    if (is_of_answers(metric) && c.judged.has_baseline && s.factor != 1)
        refuse({given, "answers are compared in pairs, whose limit is a difference alone: "
                       "baseline - 1_pct"});
    const bool always_holds =
        s.at_most ? s.offset >= 1 : s.factor + s.offset <= 0;  // whatever the baseline is
    if (always_holds) refuse({given, "no fraction can miss it: a fraction is 0 to 100 %"});
}
inline void check_relative_limit(const slo& s, const slo_context& c, const std::string& given) {
    const metric_id metric = s.statistic.metric;
    if (!(s.factor > 0 && std::isfinite(s.factor) && std::isfinite(s.offset)))
        refuse({given, "the limit must be above zero"});
    if (!c.has_baseline()) refuse({given, "the scenario has no baseline"});
    if (is_cost(metric) && c.is_held_against_the_past())
        refuse({given, "prices change from one day to another: compare output_throughput, which "
                       "the cost goes with"});
    if (is_a_fraction(s)) check_limit_of_fraction(s, c, given);
    if (is_of_start(metric) || is_of_recovery(metric))
        refuse({given, metric_name(metric), " of two servers is not compared by this version"});
}

inline void check_named(const text& name, const vector<std::string>& all, const char* what,
                        const std::string& given) {
    if (name.empty() || std::find(all.begin(), all.end(), str(name)) != all.end()) return;
    refuse({given, "the scenario has no ", what, " \"", str(name), "\"",
            all.empty() ? "" : "; it has " + enumerated(all)});
}
inline selection without_label(selection s) {
    s.label = "";
    return s;
}
inline void check_recovery(const statistic_data& w, const slo_context& c,
                           const std::string& given) {
    selection none = w.which;
    none.during = "";
    if (!is_all(none)) refuse({given, "a recovery is from a side task, and of the whole load"});
    const vector<planned_task>& tasks = c.sent.beside;
    if (tasks.empty())
        refuse({given, "the scenario has no side task (beside) from which it could be counted"});
    if (w.which.during.empty() && tasks.size() > 1)
        refuse({given, "there are several side tasks: say from which, as in of(recovery_time, "
                       "during(\"", tasks[0].name, "\"))"});
}
/// Some metrics are of all that a server does, or of whole sessions.
inline void check_selectable(const statistic_data& w, const slo_context& c,
                             const std::string& given) {
    if (is_cost(drifting(w).metric))
        refuse({given, "a server costs what it does, for whomever: the cost is of all tokens"});
    if (is_of_server(w.metric) || is_of_start(w.metric))
        refuse({given, "what a server tells of itself is of all that it does, for whomever"});
    if (is_of_sessions(w.metric) && (plays_sessions(c.sent) || !is_all(without_label(w.which))))
        refuse({given, "a session is one value, with all of its steps: only a part of a mix can be "
                       "selected"});
}
inline void check_steps_selected(const selection& s, const slo_context& c,
                                 const std::string& given) {
    if (s.first_turn < 1 || (s.last_turn != 0 && s.last_turn < s.first_turn))
        refuse({given, "turns are counted from 1, and the last one is none before the first"});
    if (s.last_turn == 0 ? s.first_turn > 1 && !c.has_turns : !c.has_turns)
        refuse({given, selection_text(turns(s.first_turn, s.last_turn)),
                " needs a workload of conversations"});
    const int deepest = std::max(c.sent.described.deepest, deepest_of(c.sent));
    if (s.depth < -1 || s.depth > deepest)
        refuse({given,
                printed("a depth from 0 to %d is allowed, which the workload has", deepest)});
}
inline void check_selection(const statistic_data& w, const slo_context& c,
                            const std::string& given) {
    if (is_of_recovery(w.metric)) check_recovery(w, c, given);
    if (is_of_all(w)) return;
    check_selectable(w, c, given);
    check_named(w.which.label, c.sent.labels, "label", given);
    check_named(w.which.during, names_of(c.sent.beside), "side task", given);
    check_steps_selected(w.which, c, given);
}

/// Of a held burst the client knows no time that is the server's.
inline void check_held(const statistic_data& w, const slo_context& c, const std::string& given) {
    if (c.sent.arrivals.held.empty() || w.metric == metric_id::error_rate ||
        is_of_answers(w.metric))
        return;
    refuse({given, "the server holds its requests until all are there, so times mean nothing: "
                   "objectives on work, errors and answers can be judged"});
}
inline void check_saturation(const statistic_data& w, const slo_context& c,
                             const std::string& given) {
    if (is_throughput(w.metric) && !saturates(c.sent.arrivals))
        refuse({given, "below saturation ", is_cost(w.metric) ? "a cost per token" : "a throughput",
                " only measures the arrival rate of ", c.arrivals(),
                ", use closed_loop(n) or all_at_once()"});
}
inline void check_has_turns(const statistic_data& w, const slo_context& c,
                            const std::string& given) {
    const auto check_turns = [&](metric_id id) {
        if (is_of_turns(id) && !c.has_turns)
            refuse({given, metric_name(id), " needs a workload of conversations"});
    };
    for (const predicate_step& step : w.where) check_turns(step.metric);
    check_turns(w.metric);
    if (is_of_sessions(w.metric) && !c.has_turns)
        refuse({given, metric_name(w.metric), " needs a workload of sessions or conversations"});
}
/// Some metrics need a load that saturates, or conversations.
inline void check_metric_of_load(const statistic_data& w, const slo_context& c,
                                 const std::string& given) {
    check_saturation(drifting(w), c, given);
    check_has_turns(drifting(w), c, given);
}

/// Returns the requests of one repeat that a statistic is of, 0 if only the run can tell. A session
/// counts once: it has one first step on its main line.
inline long long requests_behind(const statistic_data& w, const slo_context& c) {
    if (is_of_sessions(w.metric)) {
        selection first = w.which;
        first.first_turn = first.last_turn = 1;
        first.depth = 0;
        return selected_of(c.kinds, c.sent.labels, first);
    }
    if (is_all(w.which)) return c.requests;
    return w.which.during.empty() ? selected_of(c.kinds, c.sent.labels, w.which) : 0;
}
inline const char* what_of(const statistic_data& w) {
    return is_of_sessions(w.metric) ? "sessions" : "requests";
}
/// The fewest questions of which three may be wrong.
inline long long least_answers_of(const slo& s) {
    const bool is_judged = is_of_answers(s.statistic.metric) && is_absolute(s) && s.bound < 1;
    return is_judged && !s.is_advisory ? static_cast<long long>(rounded_up(3 / (1 - s.bound))) : 0;
}
inline void check_readings(const statistic_data& w, const slo_context& c,
                           const std::string& given) {
    const std::size_t readings = least_readings_of(w);
    if (w.kind == statistic_kind::percentile && is_of_gauge(w.metric) &&
        !c.sent.described.is_there && c.sent.duration_s > 0 &&
        c.sent.duration_s < static_cast<double>(readings))
        refuse({given, printed("%s needs at least %zu readings of the server's page, one a second, "
                               "so that three lie beyond it, and the duration is %g s",
                               w.name.c_str(), readings, c.sent.duration_s)});
}
/// `answers`: the fewest that an objective on answers needs, 0 for others.
inline void check_sample(const statistic_data& w, const slo_context& c, const std::string& given,
                         long long answers = 0) {
    check_readings(w, c, given);
    const long long n = requests_behind(w, c), needed = std::max(answers, least_values_of(w));
    if (pools_gaps(w.metric) || n <= 0) return;
    if (n < needed)
        refuse({given, printed("%s needs at least %lld measured %s a repeat%s, and the "
                               "scenario has %lld", w.name.c_str(), needed, what_of(w),
                               is_tail(w) ? " so that three lie beyond it"
                : answers > 0 ? " so that three may be wrong" : "", n),
                n < c.requests ? printed(" of them; about %lld requests in all would do",
                                         (c.requests * needed + n - 1) / n)
                : c.requests == 0 && c.sent.duration_s > 0
                    ? printed("; about %.3g s would do",
                              std::ceil(c.sent.duration_s * static_cast<double>(needed) /
                                        static_cast<double>(n)))
                    : ""});
}

/// Planning has already refused capacities that do not suit the arrivals.
inline void check_capacity(const slo& s, const slo_context& c, const std::string& given) {
    if (!is_absolute(s))
        refuse({given, "a capacity is held against a load, as in capacity >= 12_rps: write the one "
                       "that find_capacity() finds of the baseline"});
    if (!(s.bound > 0 && std::isfinite(s.bound))) refuse({given, "the limit must be above zero"});
    const bool in_users = s.statistic.metric == metric_id::capacity_in_users;
    if (in_users != is_counted_in_users(c.sent.arrivals))
        refuse({given, "arrivals is ", c.arrivals(), ", whose capacity is a ",
                in_users ? "rate: write 12_rps" : "number of users: write 12_users"});
    if (in_users && std::floor(s.bound) != s.bound) refuse({given, "users are whole"});
}

/// The thirds of a run can be compared for requests and for tokens, and only within one run.
inline void check_drift(const slo& s, const slo_context& c, const std::string& given) {
    const metric_id of = s.statistic.of;
    if ((!is_of_requests(of) || pools_gaps(of)) && !is_throughput(of))
        refuse({given, "a drift is of times and speeds of requests, or of a throughput; itl drifts "
                       "as tpot does"});
    if (has_planned_change(c.sent.arrivals))
        refuse({given, "arrivals is ", c.arrivals(), ", so that the drift would be that of the "
                       "load"});
    if (!is_absolute(s)) refuse({given, "a drift is compared with a fraction, as in 110_pct"});
    if (!(s.bound > 0 && std::isfinite(s.bound))) refuse({given, "the limit must be above zero"});
    if (!(s.at_most ? s.bound >= 1 : s.bound <= 1))
        refuse({given, "a run that stays as it is has a drift of 100 %: the limit lies on the side "
                       "that it may drift to"});
}

inline void check_limit(const slo& s, const slo_context& c, const std::string& given) {
    if (is_drift(s.statistic.metric)) check_drift(s, c, given);
    else if (is_absolute(s)) check_absolute_limit(s, given);
    else check_relative_limit(s, c, given);
}
/// Throws std::invalid_argument if the scenario cannot have this objective.
inline void check_slo(const slo& s, const slo_context& c) {
    const statistic_data& w = s.statistic;
    const std::string given = "the SLO " + str(s.text()) + " is refused: ";
    day_of_end(s);
    if (is_capacity(w.metric)) return check_capacity(s, c, given);
    if (is_of_work(w.metric)) return;  // by the extension, of the whole plan
    check_held(w, c, given);
    for (const statistic_data& part : w.parts) {
        if (!is_of_requests(part.metric) && !is_throughput(part.metric))
            refuse({given, "a ratio is of times and speeds of requests, or of throughputs"});
        check_metric(part, c, given);
        check_metric_of_load(part, c, given);
        check_selection(part, c, given);
        check_sample(part, c, given);
    }
    if (is_ratio(w.metric) && str(w.parts[0].name) == str(w.parts[1].name))
        refuse({given, "both sides are the same statistic of the same requests"});
    check_metric(w, c, given);
    check_limit(s, c, given);
    check_slices(s, c, given);
    check_metric_of_load(w, c, given);
    check_selection(w, c, given);
    check_sample(w, c, given, least_answers_of(s));
    if (w.kind != statistic_kind::mean || is_of_server(w.metric)) return;
    for (const slo& other : c.judged.slos)
        if (is_of_all_errors(other) && !(other.bound <= 0.05))
            refuse({given,
                    "a mean over completed requests says little beside an error limit over 5 %"});
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
