// texts of reports
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/measured/histograms.hpp"
#include "core/measured/rates.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/server_usage.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/gate_report.hpp"

#include <algorithm>  // find, max
#include <cmath>  // ceil, fabs, isnan, round
#include <cstdint>  // uint64_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Returns "input" for an API that generates nothing.
inline const char* throughput_kind(const gate_report& g) {
    return g.what.sent->scores.empty() ? "output" : "input";
}
/// "789 tok/s (prefill 3020 tok/s, decode 783 tok/s)"; the phases only if they are known
inline std::string throughput_text(const gate_report& g, const variant_figures& variant) {
    const auto value = [&](metric_id id) { return filling(id, variant.run_value(id)); };
    if (!g.what.sent->scores.empty())
        return filled("{tokens} ({requests})",
                      {{"tokens", value(metric_id::input_throughput)},
                       {"requests", value(metric_id::request_throughput)}});
    const bool has_phases = saturates(g.what.sent->arrivals) && g.what.sent->common.stream;
    return filled("{output}[{has_phases?} (prefill {prefill}, decode {decode})][, {cost} per "
                  "million output tokens]",
                  {{"output", value(metric_id::output_throughput)}, {"has_phases", has_phases},
                   {"prefill", value(metric_id::prefill_throughput)},
                   {"decode", value(metric_id::decode_throughput)},
                   {"cost", value(metric_id::cost_per_million_tokens)}});
}

inline std::string ok_text(const vector<status_count>& counts) {
    std::size_t all = 0;
    for (const status_count& c : counts) all += c.count;
    return printed("%zu of %zu requests ok", counts[0].count, all);
}
/// Returns the server's reasons, " (ended: 290 stop, 10 length)"; "" if there are none.
inline std::string ended_text(const variant_figures& variant) {
    std::string t;
    bool is_reported = false;
    for (const auto& [reason, count] : variant.finish_reasons) {
        is_reported = is_reported || !reason.empty();
        fill(t, "{,}{count} {reason}",
             {{"count", count}, {"reason", reason.empty() ? "without a reason" : reason.c_str()}});
    }
    return is_reported ? filled(" (ended: {reasons})", {{"reasons", t}}) : "";
}
inline std::string status_text(const variant_figures& variant) {
    const vector<status_count>& counts = variant.statuses;
    std::string t = ok_text(counts) + ended_text(variant);
    for (std::size_t i = 1; i < counts.size(); ++i)
        fill(t, "; {count} {status} ({example})",
             {{"count", counts[i].count}, {"status", to_string(counts[i].status)},
              {"example", counts[i].example}});
    const answer_counts& a = variant.answers;
    fill(t, "[; usage reports fewer tokens than content events in {below_events} of those][; "
         "{without_usage} of those tell no usage: their number of tokens is not known][; usage "
         "reports more prompt tokens than what was sent can be in {over_prompt}][; usage reports "
         "more tokens than the text can be in {over_content} of those]",
         {{"below_events", variant.usage_below_events}, {"without_usage", a.without_usage},
          {"over_prompt", a.over_prompt}, {"over_content", a.over_content}});
    return t;
}

/// "kernel", "read", "kernel, but for 0.4 % of the reads; 12 gaps unknown"
inline std::string stamps_text(const self_check_t& c) {
    const double read = 1 - c.stamped_fraction;
    const bool is_kernel = read <= 0.01;
    return filled("{is_kernel?kernel|read}[, but for {others:.2g%} % of the reads][, "
                  "{unknown_gaps} gaps unknown]",
                  {{"is_kernel", is_kernel},
                   {"others", read <= 0 || read >= 1 ? 0 : is_kernel ? read : 1 - read},
                   {"unknown_gaps", c.unknown_gaps}});
}
inline std::string problem_text(const self_check_t& c) {
    return c.ok ? "" : filled("; NOT OK: {reason}", {{"reason", c.reason}});
}
inline std::string self_check_text(const self_check_t& c) {
    return filled("sends late by p50 {late_p50:t}, p99 {late_p99:t}, max "
                  "{late_max:t}[{asked_rate?}; sent {sent_rate:.4g} of {asked_rate:.4g} "
                  "requests/s]; read within p99 {read_p99:t}, woke within p99 {woke_p99:t}; "
                  "stamps: {stamps}; {cpu:.0f%} % of a core; {together:.1f%} % of events read "
                  "together; {connections} connections[; lost {lost:.2g%} % of a "
                  "repeat]{problem}",
                  {{"late_p50", c.lateness_p50}, {"late_p99", c.lateness_p99},
                   {"late_max", c.lateness_max}, {"asked_rate", c.asked_rate},
                   {"sent_rate", c.achieved_rate}, {"read_p99", c.stamp_lag_p99},
                   {"woke_p99", c.loop_lag_p99}, {"stamps", stamps_text(c)},
                   {"cpu", c.cpu_utilization}, {"together", c.coalesced_fraction},
                   {"connections", c.connections_opened}, {"lost", c.lost_fraction},
                   {"problem", problem_text(c)}});
}

inline constexpr const char* unverified_text =
    "its TLS certificate was NOT VERIFIED (endpoint.tls.verify is false)";
inline std::string target_text(const target_facts& t) {
    if (t.kind == target_kind::same) return "A/A: the same server twice";
    if (t.kind == target_kind::otherwise)
        return filled("the same server with other requests: options {options}, model {model}",
                      {{"options", t.options}, {"model", t.model}});
    if (t.kind == target_kind::files)
        return filled("files of {measured_by}: {url}[; model {model}]",
                      {{"measured_by", t.measured_by}, {"url", t.url}, {"model", t.model}});
    const bool is_named = t.is_rehearsal || t.is_virtual || t.kind == target_kind::endpoint;
    return filled("[{kind} at ]{place}[ over {transport}][, model {model}][, options {options}]"
                  "[, {unverified}]",
                  {{"kind", is_named ? "" : to_string(t.kind)},
                   {"place", t.is_rehearsal ? "rehearsed on a model in virtual time"
                             : t.is_virtual ? "simulated in virtual time"
                                            : t.url.c_str()},
                   {"transport", t.transport}, {"model", t.model}, {"options", t.options},
                   {"unverified", t.tls == tls_trust::not_verified ? unverified_text : ""}});
}
/// Returns the text for the baseline's target, "" if there is none.
inline std::string compared_text(const target_facts& baseline) {
    if (baseline.kind == target_kind::none) return {};
    return filled("; {is_same?|baseline }{target}",
                  {{"is_same", baseline.kind == target_kind::same},
                   {"target", target_text(baseline)}});
}
/// Returns the note on servers whose certificate was not verified, "" if there are none.
inline std::string unverified_servers(const gate_report& g) {
    std::string s;
    for (const target_facts* t : {&g.target, &g.baseline})
        if (t->kind != target_kind::same && t->kind != target_kind::otherwise &&
            t->tls == tls_trust::not_verified)
            fill(s, "{;}{url}: {unverified}", {{"url", t->url}, {"unverified", unverified_text}});
    return s;
}

/// "asked for 150 (p50 149, p90 190) on the average, the server counted 151 (...)", "" without any
inline std::string prompt_lengths_text(const prompt_lengths& l) {
    if (!l.known) return {};
    return filled("asked for {asked:.4g} (p50 {asked_p50:.0f}, p90 {asked_p90:.0f}) on the "
                  "average, the server counted {counted:.4g} (p50 {counted_p50:.0f}, p90 "
                  "{counted_p90:.0f})",
                  {{"asked", l.asked.mean}, {"asked_p50", l.asked.p50}, {"asked_p90", l.asked.p90},
                   {"counted", l.counted.mean}, {"counted_p50", l.counted.p50},
                   {"counted_p90", l.counted.p90}});
}
inline std::string prefix_cache_text(const gate_figures& f) {
    const prefix_hits mine = f.candidate.prefix_cache, other = f.baseline.prefix_cache;
    const auto fraction = [](const prefix_hits& h) {
        return h.prompt > 0 ? printed("%.3g %%", 100 * h.cached / h.prompt) : "an unknown part";
    };
    if (mine.cached + other.cached <= 0) return {};
    for (const prefix_hits& h : {mine, other})
        if (h.is_over_all())
            return filled("prefix cache: usage has {cached:.0f} cached tokens of {prompt:.0f} "
                          "prompt tokens, which cannot be",
                          {{"cached", h.cached}, {"prompt", h.prompt}});
    return filled("prefix cache: {fraction} of the prompt tokens came from it[, with the baseline "
                  "{baseline}]",
                  {{"fraction", fraction(mine)},
                   {"baseline", f.baseline.empty() ? "" : fraction(other)}});
}
/// Returns the part of the output that was reasoning, "" if there was none.
inline std::string reasoning_text(const reasoning_counts& c, const char* whose) {
    if (c.requests == 0) return {};
    const bool is_wrong = c.tokens > c.output;
    return filled("{whose}reasoning: in {requests} requests[{is_wrong?}; usage has {tokens} "
                  "reasoning tokens of {output} output tokens, which cannot be][{is_known?}, "
                  "{fraction:.3g%} % of their output tokens][; {hidden} tokens were never "
                  "streamed, and are in no time per token and no throughput][; the usage of "
                  "{unreported} does not say how much]",
                  {{"whose", whose}, {"requests", c.requests}, {"is_wrong", is_wrong},
                   {"tokens", c.tokens}, {"output", c.output},
                   {"is_known", !is_wrong && c.output > 0},
                   {"fraction", static_cast<double>(c.tokens) / static_cast<double>(c.output)},
                   {"hidden", c.hidden}, {"unreported", c.unreported}});
}
/// Returns the note on traffic that a server may know from earlier repeats, "" if it cannot.
inline std::string as_given_text(const planned_traffic& p) {
    return filled("[{sent_as_given} are sent as given: a prefix cache of the server may answer "
                  "them from earlier repeats and earlier runs]",
                  {{"sent_as_given", p.sent_as_given}});
}
inline std::string server_text(const variant_figures& variant, const char* whose) {
    if (!variant.server.is_read) return {};
    return filled("{whose}server: {usage}[; {cross_check}]",
                  {{"whose", whose}, {"usage", server_usage_text(variant.server)},
                   {"cross_check", cross_check_text(variant.server)}});
}
/// Whether the metrics page has a problem, which concerns a reader even if no objective needs it.
inline bool has_problem(const server_usage& a) {
    return a.missed > 0 || !a.differences.empty();
}
inline std::string unsupported_text(const unsupported_metrics& u) {
    std::string of;
    for (const metric_id m : u.of) fill(of, "{,}{metric_name}", {{"metric_name", metric_name(m)}});
    return of.empty() ? "nothing is judged: " + u.why : filled(
        "no verdict on {of}: {why}", {{"of", of}, {"why", u.why}});
}
inline bool is_in_virtual_time(const gate_report& g) {
    return g.target.is_virtual || g.is_modelled();
}
/// Returns the client's self-check. There is none in virtual time, or in other tools' files.
inline std::string client_text(const gate_report& g) {
    if (is_in_virtual_time(g))
        return "in virtual time, which knows no delays of its own" + problem_text(g.self_check);
    if (g.figures.candidate.empty() && g.self_check.ok && g.self_check.connections_opened == 0)
        return "no request was sent";
    if (g.target.kind != target_kind::files) return self_check_text(g.self_check);
    return g.target.measured_by + " reports nothing of its own delays" + problem_text(g.self_check);
}
/// Whether the client's own delays may matter for a verdict.
inline bool has_client_problem(const gate_report& g) {
    const self_check_t& c = g.self_check;
    if (!c.ok) return true;
    if (is_in_virtual_time(g)) return false;
    const bool is_mixed = c.stamped_fraction > 0 && c.stamped_fraction < 0.99;
    return g.target.kind == target_kind::files || g.figures.candidate.empty() || is_mixed ||
           c.unknown_gaps > 0 || c.lost_fraction > 0;
}
/// "client and server checks passed", of those that were made; "" if none was
inline std::string passed_checks_text(const gate_report& g) {
    const server_usage &mine = g.figures.candidate.server, &other = g.figures.baseline.server;
    const bool client = !is_in_virtual_time(g) && !has_client_problem(g);
    const bool server = mine.checked + other.checked > 0 && !has_problem(mine) &&
                        !has_problem(other);
    return client && server ? "client and server checks passed"
           : client         ? "client checks passed"
           : server         ? "server checks passed"
                            : "";
}
inline constexpr const char* virtual_time_text = "computed in virtual time";
/// "prompt 512, output 128", on the average
inline std::string tokens_text(const request_tokens& t) {
    const auto known = [](double n) { return n > 0 ? printed("%.4g", n) : "unknown"; };
    return filled("prompt {prompt}, output {output}",
                  {{"prompt", known(t.prompt)}, {"output", known(t.output)}});
}
/// The lines about a server's metrics that are notes: all, or those with a problem.
enum class server_notes : unsigned char { all, problems };
/// Notes, of which the empty ones are left out.
struct note_list {
    vector<std::string> all{};
    void add(const char* format, std::initializer_list<named_filling> values) {
        const std::string note = filled(format, values);
        if (!note.empty()) all.push_back(note);
    }
};
/// What answered, if it was no server of one's own in real time.
inline void note_source(const gate_report& g, note_list& notes) {
    if (g.target.kind == target_kind::files)
        notes.add("from {target}", {{"target", target_text(g.target)}});
    if (g.is_modelled()) notes.add("{rehearsal}", {{"rehearsal", rehearsal_text(g)}});
    else if (g.target.is_virtual) notes.add(virtual_time_text, {});
}
/// How the requests of both variants differ.
inline void note_other_requests(const gate_report& g, note_list& notes) {
    if (g.baseline.kind == target_kind::otherwise)
        notes.add("candidate: options {options}, model {model}; baseline: {baseline}",
                  {{"options", g.target.options}, {"model", g.target.model},
                   {"baseline", target_text(g.baseline)}});
    if (!g.under.other_workload) return;
    notes.add("tokens of a request: {candidate}; baseline: {baseline}[, {workload}]",
              {{"candidate", tokens_text(g.figures.candidate.tokens)},
               {"baseline", tokens_text(g.figures.baseline.tokens)},
               {"workload",
                g.what.sent->otherwise ? (*g.what.sent->otherwise).workload_text : ""}});
}
/// What was seen of one variant, and done beside its load. `whose`: "baseline: ", or "".
inline void note_variant(const variant_figures& seen, const vector<std::string>& beside,
                         const char* whose, server_notes wanted, note_list& notes) {
    notes.add("{reasoning}", {{"reasoning", reasoning_text(seen.reasoning, whose)}});
    if (wanted == server_notes::all || has_problem(seen.server))
        notes.add("{server}", {{"server", server_text(seen, whose)}});
    for (const std::string& task : beside)
        notes.add("beside the load: {whose}{task}", {{"whose", whose}, {"task", task}});
    notes.add("[{requests?}{whose}{requests} requests failed while a side task excused it, or the "
              "client had no means for them: they are counted apart, in no error rate and no "
              "latency]", {{"requests", seen.exempt}, {"whose", whose}});
    const answer_counts& a = seen.answers;
    notes.add("[{is_any?}{whose}{in_one_piece} of {answers} answers came in one piece, {others} "
              "more began with over 5 % of their tokens at once]",
              {{"is_any", a.in_a_burst}, {"whose", whose}, {"in_one_piece", a.in_one_piece},
               {"answers", a.paced}, {"others", a.in_a_burst - a.in_one_piece}});
}
inline void note_set_aside(const gate_report& g, note_list& notes) {
    for (const set_aside_repeat& r : g.under.set_aside)
        notes.add("repeat {repeat} of the {variant} was set aside and measured again: {why}",
                  {{"repeat", r.index + 1}, {"variant", to_string(r.variant)}, {"why", r.why}});
}
inline vector<std::string> notes_on(const gate_report& g, server_notes wanted = server_notes::all) {
    note_list notes;
    const auto add = [&](const char* format, std::initializer_list<named_filling> values) {
        notes.add(format, values);
    };
    note_source(g, notes);
    note_other_requests(g, notes);
    for (const unsupported_metrics& u : g.under.unsupported) add(
        "{unsupported}", {{"unsupported", unsupported_text(u)}});
    for (const std::string& note : g.notes) notes.all.push_back(note);
    const report_parts more = parts_of_extensions(g);
    notes.all.append(more.notes.begin(), more.notes.end());
    if (const prompt_lengths& prompts = g.figures.candidate.prompts; !prompts.are_as_asked())
        add("prompt tokens: {prompt_lengths}", {{"prompt_lengths", prompt_lengths_text(prompts)}});
    note_set_aside(g, notes);
    add("{as_given}", {{"as_given", as_given_text(g.what)}});
    add("{prefix_cache}", {{"prefix_cache", prefix_cache_text(g.figures)}});
    add("[itl: {gaps} gaps were too many to keep each one, so its percentiles are within "
        "{error:.1f%} %; means, longest gaps and throughputs are exact]",
        {{"gaps", g.figures.counted_gaps}, {"error", gap_error}});
    std::size_t i = 0;
    for (const auto& [seen, whose] : g.figures.measured())
        note_variant(seen, more.tasks[i++], whose, wanted, notes);
    return notes.all;
}
/// The same, and what judged the gate by earlier runs says of them.
inline vector<std::string> notes_with_past(const gate_report& g,
                                           server_notes wanted = server_notes::all) {
    vector<std::string> notes = notes_on(g, wanted);
    if (!g.judged_by.past) return notes;
    for (std::string& line : g.judged_by.past->lines(g)) notes.push_back(std::move(line));
    return notes;
}

inline std::string not_added_text(const std::string& why) {
    return wrapped_lines("  not added to the history: " + why) + "\n";
}
inline std::string why_not_added(const char* verb) {
    return std::string(verb) + " has no verdict of its own, and a history is of gates";
}
inline std::string reports_text(const std::string& directory) {
    return "  report: " + directory + "/report.html\n";
}

/// Quotes a word for a POSIX shell.
inline std::string shell_quoted(const std::string& s) {
    const bool plain = !s.empty() && s.find_first_not_of(
                                         "abcdefghijklmnopqrstuvwxyz"
                                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789_./:@%+=-") == std::string::npos;
    if (plain) return s;
    std::string out = "'";
    for (const char c : s) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}
/// Returns the command that runs this gate's test case alone; without one, the program's call.
inline std::string gate_command(const gate_report& g, const environment_facts& env) {
    if (env.program.empty()) return {};
    if (g.what.test_case.empty() && !env.call.empty()) return env.call;
    std::string pattern;  // doctest separates patterns by commas
    for (const char c : g.what.test_case) {
        if (c == ',' || c == '\\') pattern += '\\';
        pattern += c;
    }
    return filled("{program}[{has_case?} --test-case={test_case}]",
                  {{"program", shell_quoted(env.program)}, {"has_case", pattern},
                   {"test_case", shell_quoted(pattern)}});
}
/// Returns the program's last line: the report, and the command that runs the first failed gate
/// again. A name with a control character is in no command.
inline std::string last_line(const vector<gate_report>& gates, const std::string& directory,
                             const environment_facts& env) {
    std::string again;
    for (const gate_report* g : most_urgent_first(gates)) {
        if (headline_of(*g) > headline::invalid || !again.empty()) break;
        if (g->what.line > 0 || !env.call.empty()) again = gate_command(*g, env);
    }
    if (printable(again, again.size()) != again) again.clear();
    return filled("report: {directory}/report.html[; run again: {again}]\n",
                  {{"directory", directory}, {"again", again}});
}

/// Seconds of a gate's repeats, if one of a variant takes `each_s`.
struct span_of_repeats {  // no std::pair: g++ would print a note about it on Arm64
    double least, most;
};
inline span_of_repeats expected_span(const plan& p, double each_s) {
    const planned_judging& j = *p.judged;
    const auto lasting = [&](int repeats) { return j.loads_of_pair() * each_s * repeats; };
    if (p.searches()) {
        const double loads = static_cast<double>(std::max<std::size_t>(1, j.search.asked.size()));
        return {each_s * j.first_repeats * (j.search.to_the_interval ? 0.5 : loads),
                each_s * j.max_repeats * (j.search.to_the_interval ? 1 : loads)};
    }
    const double most = lasting(std::max(j.max_repeats, j.max_if_noisy));
    return {lasting(j.first_repeats), most};
}
inline std::string span_text(double least, double most) {
    if (most < 1) return "less than a second";
    if (std::round(least) < 1) return printed("up to %.0f s", std::ceil(most));
    return std::round(least) < std::round(most) ? printed("about %.0f to %.0f s", least, most)
                                                : printed("about %.0f s", most);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
