// pages: their frame, and the report page
// Each drawing is data, which the script draws where it stands; without the script the tables say
// the same. Text of gates, servers and machines goes through xml_escaped, data through
// data_of_drawing.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/judging/outcome.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/ci_files.hpp"
#include "core/reports/console.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/text.hpp"
#include "core/reports/page/sections.hpp"
#include "core/reports/page/distributions.hpp"
#include "core/reports/page/verdicts.hpp"

#include <cstddef>  // size_t
#include <string>
#include <string_view>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr const char* page_style =
#include "core/reports/page/style.css.inc"
    ;

inline constexpr const char* page_icons =
#include "core/reports/page/icons.svg.inc"
    ;

inline constexpr const char* page_script =
#include "core/reports/page/script.js.inc"
    ;

/// What the short names of the table are.
inline std::string metrics_key(const gate_figures& f) {
    struct named_metric {
        metric_id id;
        const char* is;
    };
    constexpr named_metric all[] = {
        {metric_id::ttft, "time to first token, from when the request was due"},
        {metric_id::tpot, "time per output token after the first, of a request"},
        {metric_id::itl, "time between two tokens (inter-token latency)"},
        {metric_id::e2e, "time to the end of the answer (end to end)"},
        {metric_id::ttft_from_send, "ttft from when the request was sent"}};
    std::string key;
    for (const named_metric& m : all)
        if (any_of(f.metrics, [&](metric_id id) { return id == m.id; }))
            fill(key, "{;}<b>{name}</b>: {is}", {{"name", metric_name(m.id)}, {"is", m.is}});
    return filled("[<p class=\"note\">{key}.</p>\n]", {{"key", key}});
}
inline std::string curves_html(const gate_report& g) {
    const gate_figures& f = g.figures;
    std::string curves;
    for (std::size_t i = 0; i < f.metrics.size(); ++i)
        if (f.metrics[i] != metric_id::ttft_from_send)
            curves += distribution_figure(g, i);
    curves += ttft_by_prompt_figure(g);
    return filled(
         "[{curves?}<div class=\"charts\">\n<h3>Distributions</h3>\n<p class=\"note\">Height: the "
         "percentile. Thick line: the requests of all repeats together. Thin lines: the single "
         "repeats. A failed request counts as the worst value. Dashed line: a limit on a "
         "percentile, which ends in a ring at that percentile; a thick line that crosses it "
         "misses the limit. Mark on the axis: a limit on a mean. Dot with a bar: the typical "
         "repeat and its interval.{variants_key}</p>\n<div class=\"plots\">\n{curves}</div>\n"
         "</div>\n]",
         {{"curves", curves}, {"variants_key", f.baseline.empty() ? "" : variants_key}});
}
inline std::string numbers_html(const gate_report& g) {
    const gate_figures& f = g.figures;
    std::string h = filled("<h3>Latency[ {tables_at}]</h3>\n{latency}<p class=\"note\">Over the "
                           "requests of all repeats; max is the slowest request.</p>\n{key}"
                           "{labels}",
                           {{"tables_at", f.tables_at()}, {"latency", latency_table(g)},
                            {"key", metrics_key(f)}, {"labels", labels_html(g)}});
    for (const auto& [seen, whose] : f.measured())
        if (!seen.empty())
            fill(h, "<p>{whose?Baseline, throughput|Throughput} of {kind}: {throughput}, "
                 "{ok}{ended:x}.</p>\n",
                 {{"whose", whose}, {"kind", throughput_kind(g)},
                  {"throughput", throughput_text(g, seen)}, {"ok", ok_text(seen.statuses)},
                  {"ended", ended_text(seen)}});
    for (const std::string& note : notes_on(g)) fill(h, "<p class=\"note\">{note:x}.</p>\n",
        {{"note", note}});
    fill(h, "[<p class=\"note\">{profile:x}.</p>\n]", {{"profile", g.profile_text()}});
    for (const auto& [seen, whose] : f.measured())
        h += failures_html(seen, whose);
    return h + curves_html(g) + timelines_html(g);
}

/// The opening of a gate's section: what it is, how it ended, and what was loaded with what.
inline std::string opening_html(const gate_report& g, std::size_t number) {
    const headline head = headline_of(g);
    std::string h = filled(
        "<section id=\"gate-{number}\" data-outcome=\"{outcome}\" aria-labelledby=\"name-{number}"
                           "\">\n{badge}\n<h2 id=\"name-{number}\">{name:x}</h2>\n<p "
                           "class=\"why\">{why:x}</p>\n",
                           {{"number", number}, {"outcome", to_string(head)},
                            {"badge", badge(look_of(head), headline_text(g))},
                            {"name", g.what.name}, {"why", gate_sentence(g)}});
    if (g.refusal.empty())
        fill(h, "<p class=\"dim\">{target:x}{compared:x}; {plan:x}[{has_time?}; "
             "took {took:t}][; {accelerators:x}]</p>\n",
             {{"target", target_text(g.target)}, {"compared", compared_text(g.baseline)},
              {"plan", plan_text(g.what)}, {"accelerators", accelerators_text(g.accelerators)},
              {"has_time", g.took_s > 0 && !g.is_modelled()}, {"took", g.took_s}});
    return h;
}
/// The verdicts, or what is in their place.
inline std::string verdicts_html(const gate_report& g) {
    std::string h;
    if (!g.verdicts.empty() && g.refusal.empty()) {
        h += "<ol class=\"verdicts\">\n";
        for (const slo_verdict& v : g.verdicts) h += verdict_item(v);
        h += "</ol>\n";
        if (!g.figures.search) fill(h, verdicts_key, {{"is_measured", !g.is_modelled()}});
    }
    if (!g.calibration.empty())
        fill(h, "<pre>{escaped}</pre>\n", {{"escaped", escaped_lines(calibration_text(g))}});
    return h;
}
/// What was measured, and how.
inline std::string details_html(const gate_report& g) {
    const bool measured = !g.figures.candidate.empty();
    std::string h = g.figures.search ? g.figures.search->page(g) : "";
    const report_parts more = parts_of_extensions(g);
    h += more.results;
    h += measured ? numbers_html(g) : "<p>Nothing was measured.</p>\n";
    h += "<h3>More</h3>\n";
    const bool has_client = g.target.kind != target_kind::files && !g.target.is_virtual;
    if (measured && has_client) h += self_check_html(g.self_check);
    if (measured) h += slowest_html(g) + repeats_html(g) + more.details;
    h += scenario_html(g);
    if (!g.verdicts.empty()) h += arithmetic_html(g);
    return h;
}
inline std::string gate_html(const gate_report& g, std::size_t number,
                             const environment_facts& env) {
    return opening_html(g, number) + verdicts_html(g) +
           (g.refusal.empty() ? details_html(g) : "") +
           filled("[<h3>Run it again</h3>\n<pre><code>{rerun_command:x}</code></pre>\n]"
                  "</section>\n",
                  {{"rerun_command", rerun_command(g, env)}});
}

/// Returns the worst headline, and "1 of 2 gates failed".
inline std::pair<headline, std::string> overall(const vector<gate_report>& gates) {
    const vector<const gate_report*> sorted = most_urgent_first(gates);
    if (sorted.empty()) return {headline::skipped, "No gate ran"};
    const headline worst = headline_of(*sorted[0]);
    const std::size_t n = count_of(gates, worst);
    const bool is_state = worst == headline::invalid || worst == headline::inconclusive;
    const bool was_done = worst != headline::failed && worst != headline::passed;
    const std::string which = gates.size() == 1  ? "The gate"
                              : n < gates.size() ? filled(
                                  "{n} of {all} gates", {{"n", n}, {"all", gates.size()}})
                              : n == 2           ? "Both gates"
                                                 : filled(
                                                     "All {n} gates", {{"n", n}});
    const char* is = is_state   ? (n == 1 ? " is" : " are")
                     : was_done ? (n == 1 ? " was" : " were") : "";
    return {worst, filled("{which}{is} {outcome}",
                          {{"which", which}, {"is", is}, {"outcome", to_string(worst)}})};
}

/// Returns the links to the gates, worst first, and buttons that filter them by outcome.
inline std::string gates_html(const vector<gate_report>& gates) {
    std::string items, buttons;
    const auto add_button = [&](const char* name, std::size_t n) {
        fill(buttons, "<button type=\"button\" aria-pressed=\"{is_pressed?true|false}\" "
             "data-show=\"{name}\">{name} {n}</button>",
             {{"is_pressed", buttons.empty()}, {"name", name}, {"n", n}});
    };
    add_button("all", gates.size());
    const char* last = "";
    std::size_t outcomes = 0;
    for (const gate_report* g : most_urgent_first(gates)) {
        const headline h = headline_of(*g);
        const char* name = to_string(h);
        if (name != std::string_view(last)) {
            ++outcomes;
            add_button(name, count_of(gates, h));
        }
        last = name;
        fill(
            items,
            "<li data-outcome=\"{outcome}\">{badge}<div><a href=\"#gate-{number}\">{name:x}</a><p "
             "class=\"note\">{why:x}</p></div></li>\n",
             {{"outcome", name}, {"badge", badge(look_of(h), name)},
              {"number", g - gates.data() + 1}, {"name", g->what.name},
              {"why", gate_sentence(*g)}});
    }
    return filled(
        "[{is_mixed?}<div class=\"filter\" role=\"group\" aria-label=\"Show gates\" "
                  "hidden>{buttons}</div>\n]<nav aria-label=\"Gates\"><ol class=\"gates\">\n"
                  "{items}</ol></nav>\n",
                  {{"is_mixed", outcomes > 1}, {"buttons", buttons}, {"items", items}});
}

/// A page: one file that needs no other, and may load none.
inline std::string html_page(const std::string& title, const char* more_style,
                             const std::string& body) {
    return joined({"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
                   "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src "
                   "'unsafe-inline';script-src 'unsafe-inline'\">\n<meta name=\"viewport\" "
                   "content=\"width=device-width,initial-scale=1\">\n<title>",
                   title, " - llmbench</title>\n<style>", page_style, more_style,
                   "</style>\n</head>\n<body>", page_icons, "<main>\n", body,
                   "</main>\n<script>", page_script, "</script>\n</body>\n</html>\n"});
}

inline std::string report_html(const vector<gate_report>& gates,
                               const environment_facts& env,
                               const all_sections& beside = {}) {
    const auto [worst, title] = overall(gates);
    std::size_t undecided = 0;
    for (const gate_report& g : gates) undecided += count_of(g, verdict::inconclusive);
    std::string h = filled(
        "<header>\n<h1><span class=\"{look}\">{icon}{title}</span></h1>\n[<p "
        "class=\"why\">{rehearsal:x}</p>\n][<p class=\"why\">{undecided} objective{undecided:s} "
        "{is_one?is|are} {what}.</p>\n]<p class=\"dim\">llmbench {version:x}, {started_at:x}, "
        "{os:x}, {cpu:x}, {cores} cores[, commit {commit:x}][; machine {machine:x}]"
        "[, {facts:x}]</p>\n</header>\n",
        {{"title", title}, {"look", look_of(worst)}, {"icon", icon(look_of(worst))},
         {"rehearsal", rehearsal_of_all(gates)}, {"undecided", undecided},
         {"is_one", undecided == 1}, {"what", undecided_text(gates)},
         {"version", version_text()}, {"started_at", env.started_at}, {"os", env.os},
         {"cpu", env.cpu}, {"cores", env.cores}, {"commit", env.commit},
         {"machine", env.machine.name}, {"facts", machine_words(env.machine)}});
    if (gates.size() > 1) h += gates_html(gates);
    for (const program_section* b : beside) h += b->html(gates);
    for (std::size_t i = 0; i < gates.size(); ++i) h += gate_html(gates[i], i + 1, env);
    return html_page(title, "", h);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
