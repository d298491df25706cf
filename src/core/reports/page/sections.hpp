// the report page: other sections of a gate
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/units.hpp"
#include "core/base/text.hpp"
#include "core/metric/value_text.hpp"
#include "core/dialects/table.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/text.hpp"
#include "core/reports/page/verdicts.hpp"

#include <algorithm>  // find_if, sort, min, max
#include <string>
#include <string_view>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline std::string failures_html(const variant_figures& variant, const char* who) {
    std::size_t all = 0;
    for (const status_count& c : variant.statuses) all += c.count;
    const std::vector<failure_kind>& kinds = variant.failures;
    if (kinds.empty()) return {};
    std::string rows;
    for (const failure_kind& k : kinds) {
        rows += std::string("<tr><th scope=\"row\">") + to_string(k.status) +
                (k.http_status ? printed(" (HTTP %d)", k.http_status) : "") + "</th><td>";
        for (std::size_t i = 0; i < std::min<std::size_t>(k.examples.size(), 3); ++i)
            rows += "<p>" + printed("%zu x ", k.examples[i].second) +
                    xml_escaped(printable(k.examples[i].first, 200)) + "</p>";
        if (k.examples.size() > 3) rows += "<p class=\"dim\">and other words</p>";
        const double fraction = static_cast<double>(k.count) / static_cast<double>(all);
        rows += "</td>" + number_cell(std::to_string(k.count)) +
                number_cell(printed("%.3g %%", fraction * 100)) + "</tr>\n";
    }
    return std::string("<h3>Errors") + who + "</h3>\n" +
           page_table(std::string("Errors") + who,
                      {"kind", "what they said", "requests", "fraction"},
                      rows, 2);
}

inline std::string row_of(const char* name, const std::string& value) {
    if (value.empty()) return {};
    return std::string("<dt>") + name + "</dt><dd>" + xml_escaped(value) + "</dd>\n";
}
inline std::string folded(const std::string& title, const std::string& aside, bool open,
                          const std::string& body) {
    return std::string(open ? "<details open>" : "<details>") + "<summary>" + title +
           (aside.empty() ? "" : " <span>" + xml_escaped(aside) + "</span>") + "</summary>\n" +
           body + "</details>\n";
}

inline std::string self_check_html(const self_check_t& c) {
    std::string h = "<dl>\n";
    h += row_of("sends late by", "p50 " + time_text(c.lateness_p50) + ", p99 " +
                                     time_text(c.lateness_p99) + ", max " +
                                     time_text(c.lateness_max) +
                                     printed("; %.2g %% over 10 ms", c.late_fraction * 100));
    if (c.asked_rate > 0)
        h += row_of("rate", printed("sent %.4g of %.4g requests/s", c.achieved_rate, c.asked_rate));
    h += row_of("stamps", stamps_text(c));
    h += row_of("bytes read after",
                "p99 " + time_text(c.stamp_lag_p99) + ", max " + time_text(c.stamp_lag_max));
    h += row_of("thread woke late by",
                "p99 " + time_text(c.loop_lag_p99) + ", max " + time_text(c.loop_lag_max));
    if (c.lost_fraction > 0)
        h += row_of("lost", printed("%.2g %% of a repeat's time", c.lost_fraction * 100));
    h += row_of("busiest thread", printed("%.0f %% of a core", c.cpu_utilization * 100));
    h += row_of("events read together", printed("%.1f %%", c.coalesced_fraction * 100));
    h += row_of("connections", std::to_string(c.connections_opened));
    return folded("The client's self-check", c.ok ? "ok" : "NOT OK: " + str(c.reason), !c.ok,
                  h + "</dl>\n");
}

/// Returns the load of each repeat as asked and as sent, and its results.
inline std::string repeats_html(const gate_report& g) {
    const variant_figures &mine = g.figures.candidate, &other = g.figures.baseline;
    const bool both = !other.empty();
    std::string rows;
    const std::size_t n = std::max(mine.repeats.size(), other.repeats.size());
    for (std::size_t i = 0; i < n; ++i)
        for (const variant_figures* variant : {&mine, &other}) {
            if (i >= variant->repeats.size()) continue;
            const repeat_figures& d = variant->repeats[i];
            rows += printed("<tr><th scope=\"row\">%zu</th>", i + 1) +
                    (!both           ? ""
                     : variant == &other ? "<td class=\"arm b\">baseline</td>"
                                     : "<td class=\"arm c\">candidate</td>") +
                    number_cell(std::to_string(d.requests)) +
                    number_cell(std::to_string(d.failed));
            const auto rate = [](double r) { return r > 0 ? printed("%.4g", r) : std::string(); };
            rows += number_cell(rate(d.asked_rate)) + number_cell(rate(d.achieved_rate));
            rows += number_cell(value_text(metric_id::output_throughput, d.output_throughput)) +
                    number_cell(value_text(metric_id::request_throughput, d.request_throughput));
            rows += number_cell(time_text(d.window_s));
            rows += std::string("<td>") + (d.interrupted ? "interrupted " : "") +
                    xml_escaped(d.target_gone) + "</td></tr>\n";
        }
    std::vector<std::string> head = {both ? "pair" : "repeat",
                                     "requests",
                                     "failed",
                                     "asked/s",
                                     "sent/s",
                                     "output",
                                     "completed",
                                     "window",
                                     ""};
    if (both) head.insert(head.begin() + 1, "");
    return folded("Repeats", plural(n, both ? "pair" : "repeat"), false,
                  page_table("Repeats of " + g.what.name, head, rows, both ? 2 : 1));
}

/// Returns the load and the results of each of several programs.
inline std::string ranks_html(const gate_report& g) {
    const std::vector<rank_part>& all = g.figures.candidate.ranks;
    if (all.size() < 2) return {};
    std::string rows;
    for (const rank_part& r : all) {
        rows += printed("<tr><th scope=\"row\">%d</th><td>", r.index) + xml_escaped(r.host) +
                "</td>" + number_cell(std::to_string(r.requests)) +
                number_cell(std::to_string(r.failed));
        for (const std::string& cell :
             {time_text(r.off_s), std::isnan(r.error_s) ? std::string("?") : time_text(r.error_s),
              time_text(r.lateness_p99), printed("%.1f %%", 100 * r.cpu_utilization),
              memory_text(r.memory_bytes)})
            rows += number_cell(cell);
        rows += "</tr>\n";
    }
    return folded("Programs that sent the load", plural(all.size(), "rank"), false,
                  page_table("Ranks of " + g.what.name,
                             {"rank", "machine", "requests", "failed", "began late by",
                              "known to", "sends late by p99", "busiest thread", "memory"},
                             rows, 2));
}

/// Returns each step of the side tasks, and when it was done.
inline std::string side_tasks_html(const gate_report& g) {
    constexpr std::size_t max_shown = 1000;
    std::string rows;
    std::size_t steps = 0;
    for (const variant_figures* variant : {&g.figures.candidate, &g.figures.baseline})
        for (const repeat_figures& d : variant->repeats)
            for (const side_task_seen& t : d.beside)
                for (const side_step& s : t.steps) {
                    if (++steps > max_shown) continue;
                    const auto seconds = [](long long ns) {
                        return time_text(static_cast<double>(ns) * 1e-9);
                    };
                    rows += printed("<tr><th scope=\"row\">%d</th><td>%s</td><td>", d.index + 1,
                                    to_string(d.variant)) +
                            xml_escaped(t.name) + "</td><td>" + xml_escaped(s.what) + "</td>" +
                            number_cell(seconds(s.from_ns - d.window.from_ns())) +
                            number_cell(seconds(s.to_ns - s.from_ns)) + "<td>" +
                            xml_escaped(s.failed) + "</td></tr>\n";
                }
    if (steps == 0) return {};
    return folded("Beside the load",
                  plural(steps, "step") + (steps > max_shown ? ", the first 1000 of them" : ""),
                  false,
                  page_table("Side tasks of " + g.what.name,
                             {"repeat", "arm", "task", "step", "at", "took", "failed"}, rows, 4));
}

/// Returns the rows that only the sender of the load knows.
inline std::string sent_html(const gate_report& g) {
    const plan& p = g.what;
    return row_of("seed", std::to_string(p.sent->seed)) + row_of("trace hash", trace_hash(p)) +
           row_of("prompt tokens", prompt_lengths_text(g.figures.candidate.prompts)) +
           row_of("options", options_text(p)) +
           row_of("limits", limits_text(p));
}
inline std::string scenario_html(const gate_report& g) {
    const plan& p = g.what;
    std::string h =
        "<dl>\n" + row_of("target", target_text(g.target)) + row_of("api", g.target.api);
    if (g.baseline.kind != target_kind::none) h += row_of("baseline", target_text(g.baseline));
    h += row_of("arrivals", arrival_text(p.sent->arrivals)) +
         row_of("workload", p.sent->workload_text);
    h += row_of("measured", extent_text(p)) + row_of("repeats", repeats_text(p));
    const judging_rule& rule = p.judged->rule;
    if (!p.sent->is_read) h += sent_html(g);
    h += row_of("error levels",
                printed("false pass %g %%, false fail %g %%%s", rule.pass_level * 100,
                        rule.fail_level * 100, rule.holm ? ", Holm over the gate" : ""));
    h += row_of("stopped", g.under.stopped);
    h += row_of("definitions", definitions_version);
    if (p.line > 0) h += row_of("stands at", p.file + ":" + std::to_string(p.line));
    return folded("The scenario in full", "", false, h + "</dl>\n");
}

inline std::string arithmetic_html(const gate_report& g) {
    std::string h = "<dl>\n";
    for (const slo_verdict& v : g.verdicts) {
        const std::string how = str(v.method) + (v.method.empty() ? "" : ": ") + str(v.arithmetic);
        h += row_of(xml_escaped(str(v.what.text())).c_str(), how);
    }
    return folded("How the verdicts came about", "", false, h + "</dl>\n");
}

/// Returns the command that runs this gate again, on the same traffic.
inline std::string rerun_command(const gate_report& g, const environment_facts& env) {
    if (env.program.empty()) return {};
    std::string t;
    if (g.target.kind == target_kind::endpoint) {
        t += "LLMBENCH_URL=" + shell_quoted(g.target.url) + " ";
        if (!g.target.model.empty()) t += "LLMBENCH_MODEL=" + shell_quoted(g.target.model) + " ";
        if (g.target.api != apis[0].name) t += "LLMBENCH_API=" + shell_quoted(g.target.api) + " ";
    }
    if (!g.what.sent->is_read)
        t += printed("LLMBENCH_SEED=%llu ", static_cast<unsigned long long>(g.what.sent->seed));
    return t + gate_command(g, env);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
