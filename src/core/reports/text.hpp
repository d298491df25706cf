// words of reports
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/text.hpp"
#include "core/metric/value_text.hpp"
#include "core/measured/histograms.hpp"
#include "core/measured/prefix_hits.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/rule.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/capacity/compare.hpp"
#include "core/capacity/searched.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/definitions.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/rehearsal.hpp"

#include <algorithm>  // max
#include <cmath>  // fabs, isnan
#include <cstdint>  // uint64_t
#include <string>
#include <utility>  // pair, move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What the tokens are that a throughput is of.
inline const char* throughput_kind(const gate_report& g) {
    return g.what.sent->scores.empty() ? "output" : "input";
}
/// "789 tok/s (prefill 3020 tok/s, decode 783 tok/s)"; the phases only where they can be told.
inline std::string throughput_text(const gate_report& g, const arm_figures& arm) {
    const auto shown = [&](metric_id id) { return value_text(id, arm.run_value(id)); };
    if (!g.what.sent->scores.empty())
        return shown(metric_id::input_throughput) + " (" +
               shown(metric_id::request_throughput) + ")";
    const double cost = arm.run_value(metric_id::cost_per_million_tokens);
    const std::string at = std::isnan(cost) ? ""
                                            : ", " + shown(metric_id::cost_per_million_tokens) +
                                                  " per million output tokens";
    if (!saturates(g.what.sent->arrivals) || !g.what.sent->common.stream)
        return shown(metric_id::output_throughput) + at;
    return shown(metric_id::output_throughput) + " (prefill " +
           shown(metric_id::prefill_throughput) + ", decode " +
           shown(metric_id::decode_throughput) + ")" + at;
}

inline std::string ok_text(const std::vector<status_count>& counts) {
    std::size_t all = 0;
    for (const status_count& c : counts) all += c.count;
    return printed("%zu of %zu requests ok", counts[0].count, all);
}
/// How their answers ended, in the server's words: " (ended: 290 stop, 10 length)"; "" where none
/// says it.
inline std::string ended_text(const arm_figures& arm) {
    std::string t;
    bool is_reported = false;
    for (const auto& [reason, count] : arm.finish_reasons) {
        is_reported = is_reported || !reason.empty();
        t += printed("%s%zu %s", t.empty() ? "" : ", ", count,
                     reason.empty() ? "without a reason" : reason.c_str());
    }
    return is_reported ? " (ended: " + t + ")" : "";
}
inline std::string status_text(const arm_figures& arm) {
    const std::vector<status_count>& counts = arm.statuses;
    std::string t = ok_text(counts) + ended_text(arm);
    for (std::size_t i = 1; i < counts.size(); ++i)
        t += printed("; %zu %s (%s)", counts[i].count, to_string(counts[i].status),
                     counts[i].example.c_str());
    if (const std::size_t n = arm.usage_below_events; n > 0)
        t += printed("; usage reports fewer tokens than content events in %zu of those", n);
    if (const std::size_t n = arm.answers.over_prompt; n > 0)
        t += printed("; usage reports more prompt tokens than what was sent can be in %zu", n);
    if (const std::size_t n = arm.answers.over_content; n > 0)
        t += printed("; usage reports more tokens than the text can be in %zu of those", n);
    return t;
}
inline std::string answers_text(const arm_figures& arm) {
    return arm.empty() ? "" : status_text(arm);
}
/// What came of the way between server and client, a sentence each.
inline std::vector<std::string> notes_on_the_way(const arm_figures& arm, const char* whose) {
    std::vector<std::string> notes;
    long long resends = 0, hang_ups = 0, connections = 0;
    bool used_once = false;
    for (const repeat_figures& d : arm.repeats) {
        resends += d.resends;
        hang_ups += d.hang_ups;
        connections += d.connections_opened;
        used_once = used_once || d.used_once;
    }
    if (used_once)
        notes.push_back(printed("%sconnections were used once, as the server closes them right "
                                "after an answer without saying so: %lld opened, %lld closed so",
                                whose, connections, hang_ups));
    else if (hang_ups > 0)
        notes.push_back(printed("%sthe server closed %lld of %lld connections right after their "
                                "first answer without saying so",
                                whose, hang_ups, connections));
    if (resends > 0)
        notes.push_back(printed("%ssent again, as the server closed the kept connection without an "
                                "answer: %lld requests; more than one that are over 1 %% of a "
                                "repeat's are failures",
                                whose, resends));
    const answer_counts& a = arm.answers;
    if (a.in_a_lump > 0)
        notes.push_back(printed("%s%zu of %zu answers came in one piece, %zu more began with over "
                                "5 %% of their tokens at once",
                                whose, a.in_one_piece, a.paced, a.in_a_lump - a.in_one_piece));
    return notes;
}

inline std::string self_check_text(const self_check_t& c) {
    std::string t =
        printed("sends late by p50 %s, p99 %s, max %s", time_text(c.lateness_p50).c_str(),
                time_text(c.lateness_p99).c_str(), time_text(c.lateness_max).c_str());
    if (c.asked_rate > 0)
        t += printed("; sent %.4g of %.4g requests/s", c.achieved_rate, c.asked_rate);
    t += printed("; read within p99 %s, woke within p99 %s", time_text(c.stamp_lag_p99).c_str(),
                 time_text(c.loop_lag_p99).c_str());
    t += printed("; %.0f %% of a core; %.1f %% of events read together; %lld connections",
                 c.cpu_utilization * 100, c.coalesced_fraction * 100, c.connections_opened);
    for (const auto& [h, kind] : {std::pair{c.handshakes_full, "full"},
                                  std::pair{c.handshakes_resumed, "resumed"}})
        if (h.count > 0)
            t += printed("; %lld %s TLS handshakes, mean %s, max %s", h.count, kind,
                         time_text(h.mean).c_str(), time_text(h.max).c_str());
    if (c.stalls > 0)
        t += printed("; stalled %lld time%s, at most %s", c.stalls, c.stalls == 1 ? "" : "s",
                     time_text(c.stall_max).c_str()) +
             (c.ok ? ": no verdict rests on it" : "");
    return t + (c.ok ? "" : "; NOT OK: " + str(c.reason));
}

/// What is said where gaps were counted instead of kept, "" where all were kept.
inline std::string counted_gaps_text(std::uint64_t n) {
    if (n == 0) return {};
    return printed("itl: %llu gaps were too many to keep each one, so its percentiles are within "
                   "%.1f %%; means, longest gaps and throughputs are exact",
                   static_cast<unsigned long long>(n), 100 * gap_counts::relative_error);
}

inline constexpr const char* unverified_text =
    "its TLS certificate was NOT VERIFIED (endpoint.tls.verify is false)";
inline std::string target_text(const target_facts& t) {
    if (t.kind == target_kind::same) return "A/A: the same server twice";
    if (t.kind == target_kind::otherwise)
        return "the same server with other requests: options " + t.options + ", model " + t.model;
    if (t.kind == target_kind::files)
        return "files of " + t.measured_by + ": " + t.url +
               (t.model.empty() ? "" : "; model " + t.model);
    std::string s =
        t.is_rehearsal ? "rehearsed on a model in virtual time"
        : t.is_virtual ? "simulated in virtual time"
        : (t.kind == target_kind::endpoint ? "" : to_string(t.kind) + std::string(" at ")) + t.url;
    if (!t.model.empty()) s += ", model " + t.model;
    if (!t.options.empty()) s += ", options " + t.options;
    return t.tls == tls_trust::not_verified ? s + ", " + unverified_text : s;
}
/// What a target is compared with, "" where with nothing.
inline std::string compared_text(const target_facts& baseline) {
    if (baseline.kind == target_kind::none) return {};
    return (baseline.kind == target_kind::same ? "; " : "; baseline ") + target_text(baseline);
}
/// What every report says of servers that anybody may have been; "" where there are none.
inline std::string unverified_servers(const gate_report& g) {
    std::string s;
    for (const target_facts* t : {&g.target, &g.baseline})
        if (t->kind != target_kind::same && t->kind != target_kind::otherwise &&
            t->tls == tls_trust::not_verified)
            s += (s.empty() ? "" : "; ") + t->url + ": " + unverified_text;
    return s;
}

/// "asked for 150 (p50 149, p90 190) on the average, the server counted 151 (...)", "" without any.
inline std::string prompt_lengths_text(const prompt_lengths& l) {
    if (!l.known) return {};
    const auto reported = [](const length_figures& f) {
        return printed("%.4g (p50 %.0f, p90 %.0f)", f.mean, f.p50, f.p90);
    };
    return "asked for " + reported(l.asked) + " on the average, the server counted " +
           reported(l.counted);
}
inline std::string prefix_cache_text(const gate_figures& f) {
    const prefix_hits mine = f.candidate.prefix_cache, other = f.baseline.prefix_cache;
    const auto fraction = [](const prefix_hits& h) {
        return h.prompt > 0 ? printed("%.3g %%", 100 * h.cached / h.prompt) : "an unknown part";
    };
    if (mine.cached + other.cached <= 0) return {};
    return "prefix cache: " + fraction(mine) + " of the prompt tokens came from it" +
           (f.baseline.empty() ? "" : ", with the baseline " + fraction(other));
}
/// What of the output was reasoning, "" where nothing was.
inline std::string reasoning_text(const reasoning_counts& c, const char* whose) {
    if (c.requests == 0) return {};
    std::string t = std::string(whose) + printed("reasoning: in %zu requests", c.requests);
    if (c.output > 0)
        t += printed(", %.3g %% of their output tokens", 100.0 * static_cast<double>(c.tokens) /
                                                             static_cast<double>(c.output));
    if (c.hidden > 0)
        t += printed("; %lld tokens were never streamed, and are in no time per token and no "
                     "throughput", c.hidden);
    if (c.unreported > 0) t += printed("; the usage of %zu does not say how much", c.unreported);
    return t;
}
/// What is said where a server may know the traffic from earlier repeats, "" where it cannot.
inline std::string as_given_text(const planned_traffic& p) {
    if (p.sent_as_given.empty()) return {};
    return p.sent_as_given + " are sent as given: a prefix cache of the server may answer them "
                             "from earlier repeats and earlier runs";
}
/// An arm's server metrics, "" where it has no page of them.
inline std::string server_text(const arm_figures& arm, const char* whose) {
    if (!arm.server.is_read) return {};
    const std::string checked = cross_check_text(arm.server);
    return whose + std::string("server: ") + account_text(arm.server) +
           (checked.empty() ? "" : "; " + checked);
}
/// What the files of another tool cannot support, and of what nothing is judged for it.
inline std::string unsupported_text(const unsupported_metrics& u) {
    std::string of;
    for (const metric_id m : u.of) of += (of.empty() ? "" : ", ") + std::string(metric_name(m));
    return (u.of.empty() ? "nothing is judged: " : "no verdict on " + of + ": ") + u.why;
}
/// What the client says to its own numbers. In virtual time it has none; of files it is another
/// tool, which says nothing.
inline std::string client_text(const gate_report& g) {
    if (g.target.is_virtual || !g.rehearsal.model.empty())
        return "in virtual time, which knows no delays of its own" +
               (g.self_check.ok ? std::string() : "; NOT OK: " + str(g.self_check.reason));
    if (g.target.kind != target_kind::files) return self_check_text(g.self_check);
    return g.target.measured_by + " reports nothing of its own delays" +
           (g.self_check.ok ? "" : "; NOT OK: " + str(g.self_check.reason));
}
inline constexpr const char* virtual_time_text =
    "in virtual time: the load was computed, and nothing was waited for";
/// "prompt 512, output 128", on the average.
inline std::string tokens_text(const request_tokens& t) {
    const auto known = [](double n) { return n > 0 ? printed("%.4g", n) : "unknown"; };
    return "prompt " + known(t.prompt) + ", output " + known(t.output);
}
/// What a reader of a gate's numbers should know of them, a sentence each.
inline std::vector<std::string> notes_on(const gate_report& g) {
    std::vector<std::string> notes;
    if (g.target.kind == target_kind::files) notes.push_back("from " + target_text(g.target));
    if (!g.rehearsal.model.empty()) notes.push_back(rehearsal_text(g));
    else if (g.target.is_virtual) notes.push_back(virtual_time_text);
    if (g.baseline.kind == target_kind::otherwise)
        notes.push_back("candidate: options " + g.target.options + ", model " + g.target.model +
                        "; baseline: " + target_text(g.baseline));
    if (g.under.other_workload)
        notes.push_back("tokens of a request: " + tokens_text(g.figures.candidate.tokens) +
                        "; baseline: " + tokens_text(g.figures.baseline.tokens) +
                        (g.what.sent->otherwise ? ", " + (*g.what.sent->otherwise).workload_text
                                                : ""));
    for (const unsupported_metrics& u : g.under.unsupported) notes.push_back(unsupported_text(u));
    for (const std::string& note : g.under.notes) notes.push_back(note);
    if (std::string t = ranks_text(g.figures.candidate.ranks); !t.empty())
        notes.push_back(std::move(t));
    const prompt_lengths& lengths = g.figures.candidate.prompts;
    if (!lengths.are_as_asked())
        notes.push_back("prompt tokens: " + prompt_lengths_text(lengths));
    for (const set_aside_repeat& r : g.under.set_aside)
        notes.push_back(printed("repeat %d of the %s was set aside and measured again: ",
                                r.index + 1, to_string(r.arm)) + r.why);
    for (std::string t : {as_given_text(g.what), prefix_cache_text(g.figures),
                          counted_gaps_text(g.figures.counted_gaps)})
        if (!t.empty()) notes.push_back(std::move(t));
    for (const auto& [arm, whose] : {std::pair{&g.figures.candidate, ""},
                                     std::pair{&g.figures.baseline, "baseline: "}}) {
        if (std::string t = reasoning_text(arm->reasoning, whose); !t.empty())
            notes.push_back(std::move(t));
        if (std::string t = server_text(*arm, whose); !t.empty()) notes.push_back(std::move(t));
        for (const task_figures& t : arm->beside)
            notes.push_back(std::string("beside the load: ") + whose + task_figures_text(t));
        if (arm->excused > 0)
            notes.push_back(printed("%s%zu requests failed while a side task excused it: they are "
                                    "counted apart, in no error rate and no latency",
                                    whose, arm->excused));
        for (std::string& t : notes_on_the_way(*arm, whose)) notes.push_back(std::move(t));
    }
    return notes;
}

/// Our requests in the definitions of other tools, a table each; "" where none was asked for.
inline std::string others_text(const gate_report& g) {
    std::string out;
    for (const other_view& v : g.figures.others) {
        out += printed("\n  as %s has it, failed requests left out\n", v.title.c_str());
        if (!v.rows.empty())
            out += printed("  %-17s %10s %10s %10s %10s\n", "", "mean", "p50", "p90", "p99");
        for (const other_row& r : v.rows)
            out += printed("  %-17s %10s %10s %10s %10s\n", r.name.c_str(),
                           time_text(r.mean).c_str(), time_text(r.p50).c_str(),
                           time_text(r.p90).c_str(), time_text(r.p99).c_str());
        for (const std::string& note : v.notes) out += "  " + note + "\n";
    }
    return out;
}

/// Of gates that a file of a history was made of, and of one that was not added.
inline std::string history_text(const std::string& file, std::size_t gates) {
    return "history: " + plural(gates, "gate") + " added, " + file + "\n";
}
inline std::string no_night_text(const std::string& why) {
    return wrapped_lines("  not added to the history: " + why) + "\n";
}
inline std::string reports_text(const std::string& directory) {
    return "  report: " + directory + "/report.html\n";
}

/// Seconds that a gate's repeats take, at least and at most, where one arm's repeat takes `each_s`.
inline std::pair<double, double> expected_span(const plan& p, double each_s) {
    const planned_judging& j = *p.judged;
    const auto lasting = [&](int repeats) {  // the last stage of fresh traffic is twice as long
        const bool doubled = j.rule.traffic == fresh && repeats == last_stage;
        return (j.has_baseline ? 2 : 1) * each_s * (repeats + doubled);
    };
    if (p.searches() && j.has_baseline) {
        const double pairs = static_cast<double>(2 * compared_loads) * each_s;  // of a round
        return {3 * each_s + first_compared * pairs,
                most_probes_of_a_lead * each_s + compare_terms{}.most_rounds * pairs};
    }
    if (p.searches()) {
        const double loads = static_cast<double>(std::max<std::size_t>(1, j.search.asked.size()));
        return {each_s * j.first_repeats * (j.search.to_the_interval ? 0.5 : loads),
                each_s * j.most_repeats * (j.search.to_the_interval ? 1 : loads)};
    }
    const double most = lasting(std::max(j.most_repeats, j.most_if_noisy));
    return {lasting(j.first_repeats), most};
}
inline std::string span_text(double least, double most) {
    return least < most ? printed("about %.0f to %.0f s", least, most)
                        : printed("about %.0f s", most);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
