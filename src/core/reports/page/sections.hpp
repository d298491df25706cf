// the report page: other sections of a gate
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/units.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/dialects/table.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/figures/shown_answers.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/text.hpp"
#include "core/reports/page/verdicts.hpp"

#include <algorithm>  // find_if, sort, min, max
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <string>
#include <string_view>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline std::string failures_html(const variant_figures& variant, const char* who) {
    if (variant.failures.empty()) return {};
    std::size_t all = 0;
    for (const status_count& c : variant.statuses) all += c.count;
    report_table t{{"kind", "what they said", "requests", "fraction"}, {}, 2};
    for (const failure_kind& k : variant.failures) {
        std::string said;
        for (std::size_t i = 0; i < std::min<std::size_t>(k.examples.size(), 3); ++i)
            said += joined({"<p>", std::to_string(k.examples[i].second), " x ",
                            xml_escaped(printable(k.examples[i].first, 200)), "</p>"});
        if (k.examples.size() > 3) said += "<p class=\"dim\">and other words</p>";
        const double fraction = static_cast<double>(k.count) / static_cast<double>(all);
        t.rows.push_back(
            {to_string(k.status) + (k.http_status ? printed(" (HTTP %d)", k.http_status) : ""),
             {said, nullptr, true}, std::to_string(k.count), printed("%.3g %%", fraction * 100)});
    }
    const std::string title = std::string("Errors") + who;
    return joined({"<h3>", title, "</h3>\n", page_table(title, t)});
}

inline std::string row_of(std::string_view name, const std::string& value) {
    if (value.empty()) return {};
    return joined({"<dt>", name, "</dt><dd>", xml_escaped(value), "</dd>\n"});
}
/// Returns a list of names and values, without those that have no value.
inline std::string list_of(
    std::initializer_list<std::pair<const char*, std::string>> rows) {
    std::string h;
    for (const auto& [name, value] : rows) h += row_of(name, value);
    return h;
}
inline std::string folded(const std::string& title, const std::string& aside, bool open,
                          const std::string& body) {
    return joined({open ? "<details open>" : "<details>", "<summary>", title,
                   aside.empty() ? "" : " <span>", xml_escaped(aside),
                   aside.empty() ? "" : "</span>", "</summary>\n", body, "</details>\n"});
}
inline std::string folded_list(const std::string& title, const std::string& aside, bool open,
                               const std::string& rows) {
    return folded(title, aside, open, joined({"<dl>\n", rows, "</dl>\n"}));
}

inline std::string self_check_html(const self_check_t& c) {
    const auto up_to = [](double p99, double max) {
        return joined({"p99 ", time_text(p99), ", max ", time_text(max)});
    };
    return folded_list(
        "The client's self-check", c.ok ? "ok" : "NOT OK: " + str(c.reason), !c.ok,
        list_of({{"sends late by",
                  joined({"p50 ", time_text(c.lateness_p50), ", ",
                          up_to(c.lateness_p99, c.lateness_max),
                          printed("; %.2g %% over 10 ms", c.late_fraction * 100)})},
                 {"rate", c.asked_rate > 0 ? printed("sent %.4g of %.4g requests/s",
                                                     c.achieved_rate, c.asked_rate)
                                           : ""},
                 {"stamps", stamps_text(c)},
                 {"bytes read after", up_to(c.stamp_lag_p99, c.stamp_lag_max)},
                 {"thread woke late by", up_to(c.loop_lag_p99, c.loop_lag_max)},
                 {"lost", c.lost_fraction > 0
                              ? printed("%.2g %% of a repeat's time", c.lost_fraction * 100)
                              : ""},
                 {"busiest thread", printed("%.0f %% of a core", c.cpu_utilization * 100)},
                 {"events read together", printed("%.1f %%", c.coalesced_fraction * 100)},
                 {"connections", std::to_string(c.connections_opened)}}));
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
    const auto rate = [](double r) { return r > 0 ? printed("%.4g", r) : std::string(); };
    const std::size_t n = std::max(mine.repeats.size(), other.repeats.size());
    for (std::size_t i = 0; i < n; ++i)
        for (const variant_figures* variant : {&mine, &other}) {
            if (i >= variant->repeats.size()) continue;
            const repeat_figures& d = variant->repeats[i];
            t.rows.push_back(
                {std::to_string(i + 1), std::to_string(d.requests), std::to_string(d.failed),
                 rate(d.asked_rate), rate(d.achieved_rate),
                 value_text(metric_id::output_throughput, d.output_throughput),
                 value_text(metric_id::request_throughput, d.request_throughput),
                 time_text(d.window_s),
                 {(d.interrupted ? "interrupted " : "") + d.target_gone, ""}});
            if (both)
                t.rows.back().insert(t.rows.back().begin() + 1, variant_cell(variant == &other));
        }
    return folded("Repeats", plural(n, both ? "pair" : "repeat"), false,
                  page_table("Repeats of " + g.what.name, t));
}

inline std::string ranks_html(const gate_report& g) {
    const std::vector<rank_part>& all = g.figures.candidate.ranks;
    if (all.size() < 2) return {};
    report_table t{{"rank", "machine", "requests", "failed", "began late by", "known to",
                    "sends late by p99", "busiest thread", "memory"}, {}, 2};
    for (const rank_part& r : all)
        t.rows.push_back({std::to_string(r.index), r.host, std::to_string(r.requests),
                          std::to_string(r.failed), time_text(r.off_s),
                          std::isnan(r.error_s) ? "?" : time_text(r.error_s),
                          time_text(r.lateness_p99), printed("%.1f %%", 100 * r.cpu_utilization),
                          memory_text(r.memory_bytes)});
    return folded("Programs that sent the load", plural(all.size(), "rank"), false,
                  page_table("Ranks of " + g.what.name, t));
}

inline std::string side_tasks_html(const gate_report& g) {
    constexpr std::size_t max_shown = 1000;
    report_table t{{"repeat", "arm", "task", "step", "at", "took", "failed"}, {}, 4};
    std::size_t steps = 0;
    const auto seconds = [](long long ns) { return time_text(static_cast<double>(ns) * 1e-9); };
    for (const variant_figures* variant : {&g.figures.candidate, &g.figures.baseline})
        for (const repeat_figures& d : variant->repeats)
            for (const side_task_seen& task : d.side_tasks)
                for (const side_step& s : task.steps)
                    if (++steps <= max_shown)
                        t.rows.push_back({std::to_string(d.index + 1), to_string(d.variant),
                                          task.name, s.what,
                                          seconds(s.from_ns - d.window.from_ns()),
                                          seconds(s.to_ns - s.from_ns), {s.failed, ""}});
    if (steps == 0) return {};
    return folded("Beside the load",
                  plural(steps, "step") + (steps > max_shown ? ", the first 1000 of them" : ""),
                  false, page_table("Side tasks of " + g.what.name, t));
}

/// Returns the rows that only the sender of the load knows.
inline std::string sent_html(const gate_report& g) {
    const plan& p = g.what;
    return list_of({{"seed", std::to_string(p.sent->seed)},
                    {"trace hash", trace_hash(p)},
                    {"prompt tokens", prompt_lengths_text(g.figures.candidate.prompts)},
                    {"options", options_text(p)},
                    {"limits", limits_text(p)}});
}
inline std::string scenario_html(const gate_report& g) {
    const plan& p = g.what;
    const judging_rule& rule = p.judged->rule;
    const bool has_baseline = g.baseline.kind != target_kind::none;
    return folded_list(
        "The scenario in full", "", false,
        list_of({{"target", target_text(g.target)},
                 {"api", g.target.api},
                 {"baseline", has_baseline ? target_text(g.baseline) : ""},
                 {"arrivals", arrival_text(p.sent->arrivals)},
                 {"workload", p.sent->workload_text},
                 {"measured", extent_text(p)},
                 {"repeats", repeats_text(p)}}) +
            (p.sent->is_read ? "" : sent_html(g)) +
            list_of({{"error levels",
                      printed("false pass %g %%, false fail %g %%%s", rule.pass_level * 100,
                              rule.fail_level * 100, rule.holm ? ", Holm over the gate" : "")},
                     {"stopped", g.under.stopped},
                     {"definitions", definitions_version},
                     {"stands at", p.line > 0 ? p.file + ":" + std::to_string(p.line) : ""}}));
}

inline std::string arithmetic_html(const gate_report& g) {
    std::string rows;
    for (const slo_verdict& v : g.verdicts)
        rows += row_of(xml_escaped(str(v.what.text())),
                       joined({v.method.c_str(), v.method.empty() ? "" : ": ",
                               v.arithmetic.c_str()}));
    return folded_list("How the verdicts came about", "", false, rows);
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

inline std::string answer_html(const shown_answer& a) {
    std::string rows;
    for (const auto& [name, text] :
         {std::pair{"question", &a.question}, std::pair{"wanted", &a.wanted},
          std::pair{"read", &a.read}, std::pair{"answer", &a.answer},
          std::pair{"baseline's answer", &a.baseline_answer}})
        if (!text->empty())
            rows += joined({"<dt>", name, "</dt><dd><pre>", escaped_lines(*text),
                            "</pre></dd>\n"});
    const std::string aside =
        !std::isnan(a.same_characters)
            ? printed("after %.0f equal characters", a.same_characters)
            : joined({"wanted ", printable(a.wanted, 60), a.read.empty() ? "" : ", read ",
                      printable(a.read, 60)});
    return folded_list(
        xml_escaped(joined({a.is, printed(" in %lld of %lld: ", a.times, a.asked),
                            printable(a.question, 100)})),
        aside, false, rows + row_of("request", a.id));
}
/// Returns the answers of objectives on answers that did not pass.
inline std::string answers_html(const gate_report& g) {
    if (g.answers.empty()) return {};
    std::string h = "<h3>Answers</h3>\n<p class=\"note\">Each question once, in the order in which "
                    "its answer came, with the repeats in which it was so; answers.jsonl has the "
                    "same.</p>\n";
    constexpr std::size_t max_at_once = 10;
    std::string more;
    for (std::size_t i = 0; i < g.answers.size(); ++i)
        (i < max_at_once ? h : more) += answer_html(g.answers[i]);
    if (more.empty()) return h;
    return h + folded(printed("%zu more", g.answers.size() - max_at_once), "", false, more);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
