// the report page: other sections of a gate
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/units.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/dialects/table.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/text.hpp"
#include "core/reports/page/verdicts.hpp"

#include <algorithm>  // find_if, sort, min, max
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <string>
#include <string_view>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

inline std::string failures_html(const variant_figures& variant, const char* whose) {
    if (variant.failures.empty()) return {};
    std::size_t all = 0;
    for (const status_count& c : variant.statuses) all += c.count;
    report_table t{{"kind", "what they said", "requests", "fraction"}, 2};
    for (const failure_kind& k : variant.failures) {
        std::string said;
        for (std::size_t i = 0; i < std::min<std::size_t>(k.examples.size(), 3); ++i)
            fill(said, "{;}{times} x {words}",
                 {{"times", k.examples[i].second}, {"words", printable(k.examples[i].first, 200)}});
        t.add({filled("{status}[ (HTTP {http_status})]",
                      {{"status", to_string(k.status)}, {"http_status", k.http_status}}),
               filled("{said}{has_more?; and other words}",
                      {{"said", said}, {"has_more", k.examples.size() > 3}}), k.count,
               filled("{fraction:.3g%} %",
                      {{"fraction", static_cast<double>(k.count) / static_cast<double>(all)}})});
    }
    const std::string title = filled("Errors{whose? of the baseline}", {{"whose", whose}});
    return filled("<h3>{title}</h3>\n{table}", {{"title", title}, {"table", page_table(title, t)}});
}

/// Returns a list of names and values, without those that have no value.
inline std::string list_of(std::initializer_list<named_filling> rows) {
    std::string h;
    for (const auto& [name, value] : rows)
        fill(h, "[{value?}<dt>{name}</dt><dd>{value:x}</dd>\n]",
             {{"value", value}, {"name", name}});
    return h;
}
enum class fold : unsigned char { closed, open };
inline std::string folded(const std::string& title, const std::string& aside, fold state,
                          const std::string& body) {
    return filled("<details{open? open}><summary>{title}[ <span>{aside:x}</span>]</summary>\n"
                  "{body}</details>\n",
                  {{"open", state == fold::open}, {"title", title}, {"aside", aside},
                   {"body", body}});
}
inline std::string folded_list(const std::string& title, const std::string& aside, fold state,
                               const std::string& rows) {
    return folded(title, aside, state, filled("<dl>\n{rows}</dl>\n", {{"rows", rows}}));
}

inline std::string self_check_html(const self_check_t& c) {
    return folded_list(
        "The client's self-check", c.ok ? "ok" : filled(
            "NOT OK: {reason}", {{"reason", c.reason}}), c.ok ? fold::closed : fold::open,
        filled("<dt>sends late by</dt><dd>p50 {lateness_p50:t}, p99 {lateness_p99:t}, max "
               "{lateness_max:t}; {late_fraction:.2g%} % over 10 ms</dd>\n"
               "[{asked_rate?}<dt>rate</dt><dd>sent {achieved_rate:.4g} of {asked_rate:.4g} "
               "requests/s</dd>\n]<dt>stamps</dt><dd>{stamps:x}</dd>\n<dt>bytes read "
               "after</dt><dd>p99 {stamp_lag_p99:t}, max {stamp_lag_max:t}</dd>\n<dt>thread woke "
               "late by</dt><dd>p99 {loop_lag_p99:t}, max {loop_lag_max:t}</dd>\n"
               "[<dt>lost</dt><dd>{lost_fraction:.2g%} % of a repeat's time</dd>\n]<dt>busiest "
               "thread</dt><dd>{cpu_utilization:.0f%} % of a core</dd>\n<dt>events read "
               "together</dt><dd>{coalesced_fraction:.1f%} %</dd>\n"
               "<dt>connections</dt><dd>{connections_opened}</dd>\n",
               {{"lateness_p50", c.lateness_p50}, {"lateness_p99", c.lateness_p99},
                {"lateness_max", c.lateness_max}, {"late_fraction", c.late_fraction},
                {"asked_rate", c.asked_rate}, {"achieved_rate", c.achieved_rate},
                {"stamps", stamps_text(c)}, {"stamp_lag_p99", c.stamp_lag_p99},
                {"stamp_lag_max", c.stamp_lag_max}, {"loop_lag_p99", c.loop_lag_p99},
                {"loop_lag_max", c.loop_lag_max}, {"lost_fraction", c.lost_fraction},
                {"cpu_utilization", c.cpu_utilization},
                {"coalesced_fraction", c.coalesced_fraction},
                {"connections_opened", c.connections_opened}}));
}

inline std::string repeats_html(const gate_report& g) {
    const variant_figures &mine = g.figures.candidate, &other = g.figures.baseline;
    const bool both = !other.empty();
    report_table t{{both ? "pair" : "repeat", "requests", "failed", "asked/s", "sent/s", "output",
                    "completed", "window", ""}};
    if (both) {
        t.head.insert(t.head.begin() + 1, "");
        t.words = 2;
    }
    const std::size_t n = std::max(mine.repeats.size(), other.repeats.size());
    for (std::size_t i = 0; i < n; ++i)
        for (const variant_figures* variant : {&mine, &other}) {
            if (i >= variant->repeats.size()) continue;
            const repeat_figures& d = variant->repeats[i];
            t.add({i + 1});
            if (both) {
                t.append({""});
                mark_variant(t.last(), variant == &other ? run_variant::baseline
                                                         : run_variant::candidate);
            }
            t.append({d.requests, d.failed, filled(
                "[{asked_rate:.4g}]", {{"asked_rate", d.asked_rate}}),
                      filled("[{achieved_rate:.4g}]", {{"achieved_rate", d.achieved_rate}}),
                      {metric_id::output_throughput, d.output_throughput},
                      {metric_id::request_throughput, d.request_throughput},
                      time_text(d.window_s),
                      filled("{interrupted?interrupted }{gone}",
                             {{"interrupted", d.interrupted}, {"gone", d.target_gone}})});
            t.last().look = "";
        }
    return folded("Repeats", plural(n, both ? "pair" : "repeat"), fold::closed,
                  page_table(filled("Repeats of {name}", {{"name", g.what.name}}), t));
}

inline std::string slowest_html(const gate_report& g) {
    const vector<slow_request>& all = g.figures.candidate.slowest;
    if (all.empty()) return {};
    const auto tokens = [](int n) { return filled(
        "[{is_known?}{n}]", {{"is_known", n > 0}, {"n", n}}); };
    const auto seconds = [](double s) { return std::isnan(s) ? "" : time_text(s); };
    report_table t{{"request", "repeat", "prompt tokens", "output tokens", "ttft", "tpot", "e2e",
                    "status"}};
    for (const slow_request& s : all)
        t.add({s.id.empty() ? "?" : s.id, s.repeat, tokens(s.prompt_tokens),
               tokens(s.output_tokens), seconds(s.ttft), seconds(s.tpot), seconds(s.e2e),
               to_string(s.status)});
    return folded("Slowest requests", filled("first token or end after up to {waited:t}",
                                             {{"waited", all[0].waited}}),
                  headline_of(g) == headline::failed ? fold::open : fold::closed,
                  "<p class=\"note\">Those that waited longest for their first token, failed ones "
                  "too. records.jsonl and the server's log (X-Request-Id) have their ids.</p>\n" +
                      page_table(filled("Slowest requests of {name}", {{"name", g.what.name}}), t));
}

inline std::string scenario_html(const gate_report& g) {
    const plan& p = g.what;
    const judging_rule& rule = p.judged->rule;
    const bool has_baseline = g.baseline.kind != target_kind::none;
    const bool is_read = p.sent->is_read;  // then only the sender of the load knows the rest
    return folded_list(
        "The scenario in full", "", fold::closed,
        list_of(
            {{"target", target_text(g.target)},
             {"command", g.target.command},
             {"api", g.target.api},
             {"baseline", has_baseline ? target_text(g.baseline) : ""},
             {"arrivals", arrival_text(p.sent->arrivals)},
             {"workload", p.sent->workload_text},
             {"measured", extent_text(p)},
             {"repeats", repeats_text(p)},
             {"seed", is_read ? "" : std::to_string(p.sent->seed)},
             {"trace hash", is_read ? "" : trace_hash(p)},
             {"prompt tokens", is_read ? "" : prompt_lengths_text(g.figures.candidate.prompts)},
             {"options", is_read ? "" : options_text(p)},
             {"limits", is_read ? "" : limits_text(p)},
             {"error levels", filled("false pass {pass_level} %, false fail {fail_level} "
                                     "%{holm?, Holm over the gate}",
                                     {{"pass_level", rule.pass_level * 100},
                                      {"fail_level", rule.fail_level * 100}, {"holm", rule.holm}})},
             {"stopped", g.under.stopped},
             {"definitions", definitions_version},
             {"stands at", place_of(p)}}));
}

inline std::string arithmetic_html(const gate_report& g) {
    std::string rows;
    for (const slo_verdict& v : g.verdicts)
        rows += list_of({{xml_escaped(str(v.objective.text())).c_str(),
                          filled("[{method}: ]{inputs}",
                                 {{"method", v.method}, {"inputs", inputs_text(v, "; ")}})}});
    return folded_list("How the verdicts came about", "", fold::closed, rows);
}

/// Returns the command that runs this gate again, on the same traffic.
inline std::string rerun_command(const gate_report& g, const environment_facts& env) {
    if (env.program.empty()) return {};
    const bool is_named = env.call.find(g.target.url) != std::string::npos;
    if (g.what.test_case.empty() && (g.what.sent->is_read || is_named)) return gate_command(g, env);
    std::string t;
    if (g.target.kind == target_kind::endpoint)
        fill(t, "LLMBENCH_URL={url} [{has_model?}LLMBENCH_MODEL={model} "
             "][{is_other_api?}LLMBENCH_API={api} ]",
             {{"url", shell_quoted(g.target.url)}, {"has_model", g.target.model},
              {"model", shell_quoted(g.target.model)},
              {"is_other_api", g.target.api != apis[0].name}, {"api", shell_quoted(g.target.api)}});
    if (!g.what.sent->is_read)
        fill(t, "LLMBENCH_SEED={seed} ", {{"seed", std::to_string(g.what.sent->seed)}});
    return t + gate_command(g, env);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
