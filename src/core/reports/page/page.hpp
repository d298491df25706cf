// the report page: the whole
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/judging/outcome.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/ci_files.hpp"
#include "core/reports/console.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/profile.hpp"
#include "core/reports/rehearsal.hpp"
#include "core/reports/text.hpp"
#include "core/reports/program_section.hpp"
#include "core/reports/page/answers.hpp"
#include "core/reports/page/assets.hpp"
#include "core/reports/page/distributions.hpp"
#include "core/reports/page/load_curves.hpp"
#include "core/reports/page/search.hpp"
#include "core/reports/page/sections.hpp"
#include "core/reports/page/timelines.hpp"
#include "core/reports/page/verdicts.hpp"

#include <string>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Returns the tables and drawings of measured values.
inline std::string numbers_html(const gate_report& g) {
    const gate_figures& f = g.figures;
    const std::string at = f.search.tables_at();
    std::string h = "<h3>Latency" + (at.empty() ? "" : " " + at) + "</h3>\n" + latency_table(g) +
                    "<p class=\"note\">Over the requests of all repeats; max is the slowest "
                    "request.</p>\n" + labels_html(g);
    for (const variant_figures* variant : {&f.candidate, &f.baseline})
        if (!variant->empty())
            h += std::string("<p>") + (variant == &f.baseline ? "Baseline, " : "") +
                 (variant == &f.baseline ? "throughput of " : "Throughput of ") +
                 throughput_kind(g) + ": " + throughput_text(g, *variant) + ", " +
                 ok_text(variant->statuses) + xml_escaped(ended_text(*variant)) + ".</p>\n";
    for (const std::string& note : notes_on(g))
        h += "<p class=\"note\">" + xml_escaped(note) + ".</p>\n";
    if (g.profile.wanted)
        h += "<p class=\"note\">" + xml_escaped(profile_text(g.profile)) + ".</p>\n";
    h += failures_html(f.candidate, "") + failures_html(f.baseline, " of the baseline");
    std::string curves;
    for (std::size_t i = 0; i < f.metrics.size(); ++i)
        if (f.metrics[i] != metric_id::ttft_from_send)
            curves += distribution_figure(g, f.metrics[i], f.candidate.distributions[i],
                                          f.baseline.distributions[i]);
    if (!curves.empty())
        h += "<h3>Distributions</h3>\n<p class=\"note\">Height: the percentile. Thick line: the "
             "requests of all repeats together. Thin lines: the single repeats. A failed request "
             "counts as the worst value. Dashed line: a limit on a percentile, which ends in a "
             "ring at that percentile; a thick line that crosses it misses the limit. Mark on the "
             "axis: a limit on a mean. Dot with a bar: the typical repeat and its interval." +
             variants_key(!f.baseline.empty()) + "</p>\n<div class=\"plots\">\n" + curves +
             "</div>\n";
    return h + timeline_figures(g).html();
}

inline std::string gate_html(const gate_report& g, std::size_t number,
                             const environment_facts& env) {
    const headline head = headline_of(g);
    std::string h =
        printed("<section id=\"gate-%zu\" data-outcome=\"%s\" aria-labelledby=\"name-%zu\">\n",
                number, to_string(head), number) +
        badge(look_of(head), headline_text(g));
    h += printed("\n<h2 id=\"name-%zu\">", number) + xml_escaped(g.what.name) +
         "</h2>\n<p class=\"why\">" + xml_escaped(gate_sentence(g)) + "</p>\n";
    const bool measured = !g.figures.candidate.empty();
    if (g.refusal.empty())
        h += "<p class=\"dim\">" + xml_escaped(target_text(g.target)) +
             xml_escaped(compared_text(g.baseline)) +
             "; " + xml_escaped(plan_text(g.what)) + "</p>\n";
    if (!g.verdicts.empty() && g.refusal.empty()) {
        h += "<ol class=\"verdicts\">\n";
        for (const slo_verdict& v : g.verdicts) h += verdict_item(v);
        h += "</ol>\n";
        if (g.figures.search.empty()) h += verdicts_key;
    }
    if (!g.calibration.empty()) h += "<pre>" + escaped_lines(calibration_text(g)) + "</pre>\n";
    const std::string command = rerun_command(g, env);
    const std::string again = command.empty() ? ""
                                              : "<h3>Run it again</h3>\n<pre><code>" +
                                                    xml_escaped(command) + "</code></pre>\n";
    if (!g.refusal.empty()) return h + again + "</section>\n";
    h += search_html(g) + answers_html(g);
    h += measured ? numbers_html(g) : "<p>Nothing was measured.</p>\n";
    h += "<h3>More</h3>\n";
    const bool has_client = g.target.kind != target_kind::files && !g.target.is_virtual;
    if (measured && has_client) h += self_check_html(g.self_check);
    if (measured) h += repeats_html(g) + ranks_html(g) + side_tasks_html(g);
    h += scenario_html(g);
    if (!g.verdicts.empty()) h += arithmetic_html(g);
    return h + again + "</section>\n";
}

/// Returns the worst headline, and "1 of 2 gates failed".
inline std::pair<headline, std::string> overall(const std::vector<gate_report>& gates) {
    for (const headline c : headlines) {
        std::size_t n = 0;
        for (const gate_report& g : gates) n += headline_of(g) == c;
        if (n == 0) continue;
        const bool is_state = c == headline::invalid || c == headline::inconclusive;
        const bool was_done = c == headline::refused || c == headline::skipped ||
                              c == headline::calibrated || c == headline::rehearsed ||
                              c == headline::measured;
        const std::string verb =
            std::string(is_state   ? (n == 1 ? " is " : " are ")
                        : was_done ? (n == 1 ? " was " : " were ")
                                   : " ") + to_string(c);
        if (gates.size() == 1) return {c, "The gate" + verb};
        if (n == gates.size())
            return {c, (n == 2 ? "Both" : printed("All %zu", n)) + " gates" + verb};
        return {c, printed("%zu of %zu gates", n, gates.size()) + verb};
    }
    return {headline::skipped, "No gate ran"};
}

/// Returns the links to the gates, worst first, and buttons that filter them by outcome.
inline std::string gates_html(const std::vector<gate_report>& gates) {
    std::vector<std::pair<std::string, std::size_t>> outcomes;
    std::string items;
    for (const headline c : headlines) {
        const char* name = to_string(c);
        std::size_t n = 0;
        for (std::size_t i = 0; i < gates.size(); ++i) {
            if (headline_of(gates[i]) != c) continue;
            ++n;
            items += printed("<li data-outcome=\"%s\">", name) + badge(look_of(c), name) +
                     printed("<div><a href=\"#gate-%zu\">", i + 1) +
                     xml_escaped(gates[i].what.name) + "</a><p class=\"note\">" +
                     xml_escaped(gate_sentence(gates[i])) + "</p></div></li>\n";
        }
        if (n > 0) outcomes.emplace_back(name, n);
    }
    std::string h;
    if (outcomes.size() > 1) {
        h += printed(
            "<div class=\"filter\" role=\"group\" aria-label=\"Show gates\" hidden><button "
            "type=\"button\" aria-pressed=\"true\" data-show=\"all\">all %zu</button>",
            gates.size());
        for (const auto& [name, n] : outcomes)
            h += printed(
                "<button type=\"button\" aria-pressed=\"false\" data-show=\"%s\">%s %zu"
                "</button>",
                name.c_str(), name.c_str(), n);
        h += "</div>\n";
    }
    return h + "<nav aria-label=\"Gates\"><ol class=\"gates\">\n" + items + "</ol></nav>\n";
}

inline std::string report_html(const std::vector<gate_report>& gates,
                               const environment_facts& env,
                               const all_sections& beside = {}) {
    const auto [worst, title] = overall(gates);
    std::size_t undecided = 0;
    for (const gate_report& g : gates) undecided += count_of(g, verdict::inconclusive);
    std::string h =
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
        "name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>" +
        title + " - llmbench</title>\n<style>" + page_style + "</style>\n</head>\n<body>" +
        page_icons + "<main>\n<header>\n<h1><span class=\"" + look_of(worst) + "\">" +
        icon(look_of(worst)) + title + "</span></h1>\n";
    if (const std::string t = rehearsal_of_all(gates); !t.empty())
        h += "<p class=\"why\">" + xml_escaped(t) + "</p>\n";
    if (undecided > 0)
        h += "<p class=\"why\">" + plural(undecided, "objective") +
             (undecided == 1 ? " is " : " are ") + undecided_text(gates.front()) + ".</p>\n";
    h += "<p class=\"dim\">" +
         xml_escaped("llmbench " + version_text() + ", " + env.started_at + ", " + env.os + ", " +
                     env.cpu + printed(", %d cores", env.cores) +
                     (env.commit.empty() ? "" : ", commit " + env.commit)) +
         "</p>\n</header>\n";
    if (gates.size() > 1) h += gates_html(gates);
    for (const program_section* b : beside) h += b->html(gates);
    h += load_curves_html(gates, beside);
    for (std::size_t i = 0; i < gates.size(); ++i) h += gate_html(gates[i], i + 1, env);
    return h + "</main>\n<script>" + page_script + "</script>\n</body>\n</html>\n";
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
