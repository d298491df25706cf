// the report page: the whole
// report.html needs no other file. Each drawing is an SVG with a text beside it; without the script
// the page is complete. Text of gates, servers and machines goes through xml_escaped, coordinates
// of drawings through pixels.
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
#include "core/reports/text.hpp"
#include "core/reports/page/sections.hpp"
#include "core/reports/page/distributions.hpp"
#include "core/reports/page/load_curves.hpp"
#include "core/reports/page/search.hpp"
#include "core/reports/page/verdicts.hpp"

#include <cstddef>  // size_t
#include <string>
#include <string_view>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr const char* page_style =
#include "core/reports/page/style.css.inc"
    ;

inline constexpr const char* page_icons =
#include "core/reports/page/icons.svg.inc"
    ;

// A plot's data-x and data-y are "scale low high unit"; the script reads values from the drawn
// lines. It inserts text as text, never as markup.
inline constexpr const char* page_script =
#include "core/reports/page/script.js.inc"
    ;

inline std::string note_html(const std::string& words) {
    return joined({"<p class=\"note\">", xml_escaped(words), ".</p>\n"});
}
inline std::string numbers_html(const gate_report& g) {
    const gate_figures& f = g.figures;
    const std::string at = f.search.tables_at();
    std::string h = joined({"<h3>Latency", at.empty() ? "" : " ", at, "</h3>\n", latency_table(g),
                            "<p class=\"note\">Over the requests of all repeats; max is the "
                            "slowest request.</p>\n", labels_html(g)});
    for (const variant_figures* variant : {&f.candidate, &f.baseline})
        if (!variant->empty())
            h += joined({variant == &f.baseline ? "<p>Baseline, throughput of "
                                                : "<p>Throughput of ",
                         throughput_kind(g), ": ", throughput_text(g, *variant), ", ",
                         ok_text(variant->statuses), xml_escaped(ended_text(*variant)),
                         ".</p>\n"});
    for (const std::string& note : notes_on(g)) h += note_html(note);
    if (g.profile.wanted) h += note_html(profile_text(g.profile));
    h += failures_html(f.candidate, "") + failures_html(f.baseline, " of the baseline");
    std::string curves;
    for (std::size_t i = 0; i < f.metrics.size(); ++i)
        if (f.metrics[i] != metric_id::ttft_from_send)
            curves += distribution_figure(g, f.metrics[i], f.candidate.distributions[i],
                                          f.baseline.distributions[i]);
    if (!curves.empty())
        h += joined({"<h3>Distributions</h3>\n<p class=\"note\">Height: the percentile. Thick "
                     "line: the requests of all repeats together. Thin lines: the single repeats. "
                     "A failed request counts as the worst value. Dashed line: a limit on a "
                     "percentile, which ends in a ring at that percentile; a thick line that "
                     "crosses it misses the limit. Mark on the axis: a limit on a mean. Dot with a "
                     "bar: the typical repeat and its interval.",
                     variants_key(!f.baseline.empty()), "</p>\n<div class=\"plots\">\n", curves,
                     "</div>\n"});
    return h + timeline_figures(g).html();
}

inline std::string gate_html(const gate_report& g, std::size_t number,
                             const environment_facts& env) {
    const headline head = headline_of(g);
    const std::string command = rerun_command(g, env), n = std::to_string(number);
    const std::string again =
        command.empty() ? "</section>\n"
                        : joined({"<h3>Run it again</h3>\n<pre><code>", xml_escaped(command),
                                  "</code></pre>\n</section>\n"});
    std::string h = joined({"<section id=\"gate-", n, "\" data-outcome=\"", to_string(head),
                            "\" aria-labelledby=\"name-", n, "\">\n",
                            badge(look_of(head), headline_text(g)), "\n<h2 id=\"name-", n, "\">",
                            xml_escaped(g.what.name), "</h2>\n<p class=\"why\">",
                            xml_escaped(gate_sentence(g)), "</p>\n"});
    if (g.refusal.empty())
        h += joined({"<p class=\"dim\">", xml_escaped(target_text(g.target)),
                     xml_escaped(compared_text(g.baseline)), "; ", xml_escaped(plan_text(g.what)),
                     "</p>\n"});
    if (!g.verdicts.empty() && g.refusal.empty()) {
        h += "<ol class=\"verdicts\">\n";
        for (const slo_verdict& v : g.verdicts) h += verdict_item(v);
        h += "</ol>\n";
        if (g.figures.search.empty()) h += verdicts_key;
    }
    if (!g.calibration.empty())
        h += joined({"<pre>", escaped_lines(calibration_text(g)), "</pre>\n"});
    if (!g.refusal.empty()) return h + again;
    const bool measured = !g.figures.candidate.empty();
    h += search_html(g) + answers_html(g);
    h += measured ? numbers_html(g) : "<p>Nothing was measured.</p>\n";
    h += "<h3>More</h3>\n";
    const bool has_client = g.target.kind != target_kind::files && !g.target.is_virtual;
    if (measured && has_client) h += self_check_html(g.self_check);
    if (measured) h += repeats_html(g) + ranks_html(g) + side_tasks_html(g);
    h += scenario_html(g);
    if (!g.verdicts.empty()) h += arithmetic_html(g);
    return h + again;
}

/// Returns the worst headline, and "1 of 2 gates failed".
inline std::pair<headline, std::string> overall(const std::vector<gate_report>& gates) {
    const std::vector<const gate_report*> sorted = most_urgent_first(gates);
    if (sorted.empty()) return {headline::skipped, "No gate ran"};
    const headline worst = headline_of(*sorted[0]);
    const std::size_t n = count_of(gates, worst);
    const bool is_state = worst == headline::invalid || worst == headline::inconclusive;
    const bool was_done = worst != headline::failed && worst != headline::passed;
    const std::string which = gates.size() == 1  ? "The gate"
                              : n < gates.size() ? printed("%zu of %zu gates", n, gates.size())
                              : n == 2           ? "Both gates"
                                                 : printed("All %zu gates", n);
    return {worst, joined({which, is_state   ? (n == 1 ? " is " : " are ")
                                  : was_done ? (n == 1 ? " was " : " were ")
                                             : " ", to_string(worst)})};
}

/// Returns the links to the gates, worst first, and buttons that filter them by outcome.
inline std::string gates_html(const std::vector<gate_report>& gates) {
    std::string items, buttons;
    const auto add_button = [&](const char* name, const char* shown, bool is_pressed,
                                std::size_t n) {
        buttons += joined({"<button type=\"button\" aria-pressed=\"",
                           is_pressed ? "true" : "false", "\" data-show=\"", name, "\">", shown,
                           printed(" %zu</button>", n)});
    };
    add_button("all", "all", true, gates.size());
    const char* last = "";
    std::size_t outcomes = 0;
    for (const gate_report* g : most_urgent_first(gates)) {
        const headline h = headline_of(*g);
        const char* name = to_string(h);
        if (name != std::string_view(last)) {
            ++outcomes;
            add_button(name, name, false, count_of(gates, h));
        }
        last = name;
        items += joined({"<li data-outcome=\"", name, "\">", badge(look_of(h), name),
                         printed("<div><a href=\"#gate-%td\">", g - gates.data() + 1),
                         xml_escaped(g->what.name), "</a><p class=\"note\">",
                         xml_escaped(gate_sentence(*g)), "</p></div></li>\n"});
    }
    if (outcomes > 1)
        buttons = joined({"<div class=\"filter\" role=\"group\" aria-label=\"Show gates\" hidden>",
                          buttons, "</div>\n"});
    return joined({outcomes > 1 ? buttons : "", "<nav aria-label=\"Gates\"><ol class=\"gates\">\n",
                   items, "</ol></nav>\n"});
}

inline std::string report_html(const std::vector<gate_report>& gates,
                               const environment_facts& env,
                               const all_sections& beside = {}) {
    const auto [worst, title] = overall(gates);
    std::size_t undecided = 0;
    for (const gate_report& g : gates) undecided += count_of(g, verdict::inconclusive);
    std::string h = joined(
        {"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
         "name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>",
         title, " - llmbench</title>\n<style>", page_style, "</style>\n</head>\n<body>", page_icons,
         "<main>\n<header>\n<h1><span class=\"", look_of(worst), "\">", icon(look_of(worst)), title,
         "</span></h1>\n"});
    const auto say = [&](const std::string& why) {
        if (!why.empty()) h += joined({"<p class=\"why\">", xml_escaped(why), "</p>\n"});
    };
    say(rehearsal_of_all(gates));
    if (undecided > 0)
        say(joined({plural(undecided, "objective"), undecided == 1 ? " is " : " are ",
                    undecided_text(gates.front()), "."}));
    h += joined({"<p class=\"dim\">",
                 xml_escaped(joined({"llmbench ", version_text(), ", ", env.started_at, ", ",
                                     env.os, ", ", env.cpu, printed(", %d cores", env.cores),
                                     env.commit.empty() ? "" : ", commit ", env.commit})),
                 "</p>\n</header>\n"});
    if (gates.size() > 1) h += gates_html(gates);
    for (const program_section* b : beside) h += b->html(gates);
    h += load_curves_html(gates, beside);
    for (std::size_t i = 0; i < gates.size(); ++i) h += gate_html(gates[i], i + 1, env);
    return joined({h, "</main>\n<script>", page_script, "</script>\n</body>\n</html>\n"});
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
