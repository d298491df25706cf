// llmbench show A B --page: two runs on one page
// Nothing is judged anew: verdicts are those of the runs.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/described/limits.hpp"
#include "core/figures/rows.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/reports/page/page.hpp"
#include "core/reports/page/plot.hpp"
#include "core/reports/page/verdicts.hpp"
#include "core/reports/tables.hpp"
#include "core/stored/stored.hpp"
#include "program/slo_text.hpp"

#include <algorithm>  // max, min
#include <cmath>      // fabs, isfinite, pow
#include <cstddef>    // size_t
#include <optional>
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // exchange, move, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A text of result.json that the page shows where two runs differ in it.
struct compared_fact {
    const char *title, *object, *field;
};
inline constexpr compared_fact facts_of_run[] = {{"began", "environment", "started_at"},
                                                 {"commit", "environment", "commit"},
                                                 {"client's CPU", "environment", "cpu"},
                                                 {"client's cores", "environment", "cores"},
                                                 {"client's system", "environment", "os"},
                                                 {"compiler", "environment", "compiler"},
                                                 {"llmbench", "", "version"},
                                                 {"definitions", "", "definitions"}};
inline constexpr compared_fact facts_of_scenario[] = {
    {"workload", "scenario", "workload"}, {"load", "scenario", "arrivals"},
    {"warm-up", "scenario", "warmup_requests"}, {"measured", "scenario", "extent"},
    {"options", "scenario", "options"}, {"limits", "scenario", "limits"},
    {"repeats", "scenario", "repeats_planned"}, {"seed", "scenario", "seed_text"},
    {"trace hash", "scenario", "trace_hash"}};
inline constexpr compared_fact facts_of_server[] = {
    {"kind", "target", "kind"}, {"URL", "target", "url"}, {"model", "target", "model"},
    {"API", "target", "api"}, {"command", "target", "command"}, {"TLS", "target", "tls"},
    {"requests", "target", "options"}, {"measured by", "target", "measured_by"},
    {"baseline's URL", "baseline_target", "url"},
    {"baseline's command", "baseline_target", "command"}};

template <std::size_t N>
vector<std::string> texts_of(const stored_object& of, const compared_fact (&facts)[N]) {
    vector<std::string> texts;
    for (const compared_fact& f : facts) {
        const json_view* v = (*f.object ? of.at(f.object) : of).present(f.field);
        texts.emplace_back(v ? v->text : std::string_view());
    }
    return texts;
}

/// One gate of a run. `no_curves` says why it has no distributions, "" if it has.
struct gate_side {
    past_gate judged{};
    vector<std::string> scenario{}, server{};
    std::string no_curves{};
    variant_distribution ttft{}, tpot{};
};
struct run_side {
    std::string folder{};
    vector<std::string> facts{};
    vector<gate_side> gates{};
    const gate_side* gate(const text& name) const {
        for (const gate_side& g : gates)
            if (g.judged.name == name) return &g;
        return nullptr;
    }
};
/// Reads a result.json, without the requests; `gate` names one of several, "" means all. Throws
/// std::invalid_argument if there is none.
inline run_side run_side_of(const std::string& json, const std::string& file,
                            const std::string& gate = "") {
    json_reader reader;
    const stored_object root = result_document(reader, json, file);
    const past_result past = read_past_result(json, file);
    run_side run{.facts = texts_of(root, facts_of_run)};
    std::string names;
    std::size_t k = 0;
    for (const stored_object& g : root.each("gates")) {
        const std::string name = g.text("name");
        const bool is_rehearsal = g.has("rehearsal");  // not in `past`
        fill(names, "{,}\"{name}\"{is_rehearsal? (a rehearsal)}",
             {{"name", printable(name, 80)}, {"is_rehearsal", is_rehearsal}});
        if (is_rehearsal) continue;
        const past_gate& judged = past.gates[k++];
        if (!gate.empty() && gate != name) continue;
        const bool is_measured = !array_member(g.at("candidate").value(), "repeats").empty();
        run.gates.push_back({judged, texts_of(g, facts_of_scenario), texts_of(g, facts_of_server),
                             is_measured              ? ""
                             : g.text("refusal").empty() ? "nothing was measured"
                                                         : g.text("refusal")});
    }
    if (run.gates.empty())
        refuse({file, " has no measured gate", filled(
            "[ \"{gate}\"]", {{"gate", printable(gate, 80)}}),
                ": it has ", names.empty() ? "none" : names});
    return run;
}

/// Returns the objective of a file, nothing if it cannot be read, as one on a user's metric.
inline std::optional<slo> slo_of(const past_slo& s) {
    try {
        return parse_slo(s.slo);
    } catch (const std::invalid_argument&) {
        return {};
    }
}
/// "p90(ttft)" and "<= 300 ms" of "advisory(p90(ttft) <= 300 ms)".
struct slo_words {
    std::string statistic{}, limit{};
};
inline slo_words words_of(const past_slo& s) {
    std::string text = str(s.slo);
    if (text.rfind("advisory(", 0) == 0) text = text.substr(9, text.size() - 10);
    const std::size_t at = std::min(text.rfind(s.at_most ? " <= " : " >= "), text.size());
    return {text.substr(0, at) + (s.difference ? " - baseline" : s.relative ? " / baseline" : ""),
            filled("{name}{is_advisory?, advisory}",
                   {{"name", trimmed(text.substr(at))}, {"is_advisory", s.advisory}})};
}
inline std::string value_words(const past_slo& s, double v) {
    if (const std::optional<slo> what = slo_of(s)) return value_text(*what, v);
    return (s.difference && v > 0 ? "+" : "") + digits_text(v, 4) + (s.relative ? " x" : "");
}
inline std::string ratio_words(double of, double to) {
    const double ratio = of / to;
    return of == to                                ? "same"
           : std::isfinite(ratio) && ratio > 0 ? printed("%.3f x", ratio)
                                                   : "none";
}
/// What run B has of run A: a ratio; of differences, which may be 0, what it has more.
inline std::string change_words(const past_slo& s, double of, double to) {
    if (!s.difference || of == to) return ratio_words(of, to);
    return std::isfinite(of - to) ? value_words(s, of - to) : "none";
}

/// An objective in both runs; null: the other one lacks it.
struct slo_pair {
    const past_slo *a = nullptr, *b = nullptr;
};
/// Those of the same text belong together, then those on the same statistic, in their order.
inline vector<slo_pair> paired_objectives(const past_gate& a, const past_gate& b) {
    vector<slo_pair> pairs;
    for (const past_slo& s : a.slos) pairs.push_back({&s});
    vector<const past_slo*> left;
    for (const past_slo& s : b.slos) left.push_back(&s);
    const auto join = [&](auto&& is_same) {
        for (slo_pair& p : pairs)
            for (const past_slo*& s : left)
                if (!p.b && s && is_same(*p.a, *s)) p.b = std::exchange(s, nullptr);
    };
    join([](const past_slo& x, const past_slo& y) { return x.slo == y.slo; });
    join([](const past_slo& x, const past_slo& y) {
        return words_of(x).statistic == words_of(y).statistic;
    });
    for (const past_slo* s : left)
        if (s) pairs.push_back({nullptr, s});
    return pairs;
}

/// The value, the verdict and the interval of an objective in one run.
inline table_cell objective_cell(const past_slo* s) {
    if (!s) return {.text = "no such objective", .look = ""};
    table_cell c{.text = std::isnan(s->measured) ? "not measured" : value_words(*s, s->measured),
                 .look = "",
                 .ratio = badge(to_string(s->outcome), to_string(s->outcome))};
    if (std::isfinite(s->estimate.low) && std::isfinite(s->estimate.high))
        fill(c.ratio, "<div class=\"note\">{low:x} to {high:x}</div>",
             {{"low", value_words(*s, s->estimate.low)},
              {"high", value_words(*s, s->estimate.high)}});
    return c;
}
/// A row for each objective of either run, and the reasons of verdicts.
inline std::string objectives_html(const gate_side& a, const gate_side& b) {
    report_table t{{"objective", "B / A", "A", "B"}, 4};
    std::string reasons;
    for (const slo_pair& p : paired_objectives(a.judged, b.judged)) {
        const past_slo& s = p.a ? *p.a : *p.b;
        const auto [statistic, limit] = words_of(s);
        for (const past_slo* one : {p.a, p.b})
            if (one && one->outcome != verdict::pass)
                fill(reasons, "[{reason?}<p class=\"note\">{is_a?A|B}, {statistic:x}: "
                     "{reason:x}.</p>\n]",
                     {{"reason", one->reason}, {"is_a", one == p.a}, {"statistic", statistic}});
        t.add({statistic});
        const std::string other = p.a && p.b ? words_of(*p.b).limit : limit;
        t.last().ratio = filled(other == limit ? "{limit:x}" : "A {limit:x}; B {other:x}",
                                {{"limit", limit}, {"other", other}});
        const double x = p.a ? p.a->measured : not_a_number;
        const double y = p.b ? p.b->measured : not_a_number;
        t.append({change_words(s, y, x)});
        t.last().look = "arm";
        const double change = s.difference ? y - x : y / x - 1;
        if (std::isfinite(change) && change != 0)
            t.last().ratio = filled("[{change:.1f%} % ]{is_worse?worse|better}",
                                    {{"change", s.difference ? 0 : std::fabs(change)},
                                     {"is_worse", (change > 0) == s.at_most}});
        t.rows.back().push_back(objective_cell(p.a));
        t.rows.back().push_back(objective_cell(p.b));
    }
    return t.rows.empty() ? "" : page_table("Objectives of " + str(a.judged.name), t) + reasons;
}

/// Draws both runs by percentile, with the limits of either, "" if neither has values.
inline std::string curves_figure(metric_id id, const gate_side& a, const gate_side& b,
                                 variant_distribution gate_side::*of) {
    plot p = by_percentile(id, "B", b.*of, "A", a.*of);
    vector<std::string> limits;
    for (const gate_side* side : {&a, &b})
        for (const past_slo& s : side->judged.slos) {
            const std::optional<slo> o = slo_of(s);
            if (!o || !is_limit_on(id, *o)) continue;
            const std::string text = str(o->text());
            if (std::find(limits.begin(), limits.end(), text) != limits.end()) continue;
            p.limit(*o, o->bound);
            limits.push_back(text);
        }
    std::string ratios;
    for (const row_statistic& r : row_statistics) {
        const double x = (a.*of).row.*r.value, y = (b.*of).row.*r.value;
        if (r.kind == statistic_kind::percentile && !std::isnan(x) && !std::isnan(y))
            fill(ratios, "{,}{name} {ratio}", {{"name", r.name}, {"ratio", ratio_words(y, x)}});
    }
    return p.figure(metric_name(id), filled("[B / A: {ratios}]", {{"ratios", ratios}}));
}

template <std::size_t N>
std::string differences_html(const char* of, const compared_fact (&facts)[N],
                             const vector<std::string>& a, const vector<std::string>& b) {
    report_table t{{of, "A", "B"}, 3};
    for (std::size_t i = 0; i < N; ++i)
        if (a[i] != b[i])
            t.add({facts[i].title, a[i].empty() ? "none" : a[i], b[i].empty() ? "none" : b[i]});
    return t.rows.empty() ? filled("<p>{of}: no difference.</p>\n", {{"of", of}})
                          : page_table(filled("{of}: differences", {{"of", of}}), t);
}

inline constexpr const char* own_style =
    ".plots{grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),24rem))}\n"
    "td{min-width:3.5rem}td .note{font-size:.95em}";
inline constexpr const char* curves_key =
    "<p class=\"note\">Height: the percentile. Thick line: the requests of all repeats. Thin "
    "lines: the single repeats. Dashed upright line: a limit, at its percentile or, of a mean, on "
    "the axis. <b class=\"arm b\">A</b> <b class=\"arm c\">B</b></p>\n";
/// "failed", and of a gate that passed whether an objective was left open.
inline std::string outcome_word(const past_gate& g) {
    const bool is_open = any_of(g.slos, [](const past_slo& s) {
        return s.outcome == verdict::inconclusive && !s.advisory;
    });
    return is_open && g.outcome == "passed" ? "inconclusive" : str(g.outcome);
}
inline std::string outcome_badge(const past_gate& g) {
    const std::string word = outcome_word(g);
    const char* look = word == "passed"         ? "pass"
                       : word == "failed"       ? "fail"
                       : word == "inconclusive" ? "inconclusive"
                       : word == "skipped"      ? "skipped"
                                                : "invalid";
    return badge(look, xml_escaped(word));
}
inline std::string pair_html(const gate_side& a, const gate_side& b) {
    std::string h = filled("<section>\n<h2>{name:x}</h2>\n<p>A {a} &ensp; B {b}</p>\n{objectives}",
                           {{"name", a.judged.name}, {"a", outcome_badge(a.judged)},
                            {"b", outcome_badge(b.judged)}, {"objectives", objectives_html(a, b)}});
    const std::string curves = curves_figure(metric_id::ttft, a, b, &gate_side::ttft) +
                               curves_figure(metric_id::tpot, a, b, &gate_side::tpot);
    fill(h, "<h3>Distributions</h3>\n[{curves?}<div class=\"charts\">\n{curves_key}<div "
         "class=\"plots\">\n{curves}</div>\n</div>\n]",
         {{"curves", curves}, {"curves_key", curves_key}});
    if (curves.empty() && a.no_curves.empty() && b.no_curves.empty())
        h += "<p class=\"note\">Neither run has a ttft or a tpot.</p>\n";
    for (const gate_side* side : {&a, &b})
        fill(h, "[{why?}<p class=\"note\">{is_a?A|B} has no curve: {why:x}.</p>\n]",
             {{"why", side->no_curves}, {"is_a", side == &a}});
    return h + "<h3>Differences</h3>\n" +
           differences_html("Scenario", facts_of_scenario, a.scenario, b.scenario) +
           differences_html("Server", facts_of_server, a.server, b.server) + "</section>\n";
}

[[noreturn]] inline void refuse_without_common_gate(const run_side& a, const run_side& b) {
    std::string names[2];
    for (const bool is_second : {false, true})
        for (const gate_side& g : (is_second ? b : a).gates)
            fill(names[is_second], "{,}\"{name}\"", {{"name", printable(str(g.judged.name), 80)}});
    refuse({a.folder, " and ", b.folder, " have no gate in common: the first has ", names[0],
            ", the second ", names[1]});
}
/// Returns two runs as tables. Throws std::invalid_argument if they have no gate in common.
inline std::string side_by_side_text(const run_side& a, const run_side& b) {
    std::string gates;
    for (const gate_side& g : a.gates) {
        const gate_side* const other = b.gate(g.judged.name);
        if (!other) continue;
        report_table t{{"", "A", "B", "B / A"}};
        for (const slo_pair& p : paired_objectives(g.judged, other->judged)) {
            const past_slo& s = p.a ? *p.a : *p.b;
            const auto shown = [&](const past_slo* one) {
                return !one ? std::string("none")
                            : filled("{value} {verdict}",
                                     {{"value", value_words(*one, one->measured)},
                                      {"verdict", to_string(one->outcome)}});
            };
            t.add({words_of(s).statistic, shown(p.a), shown(p.b),
                   p.a && p.b ? change_words(s, p.b->measured, p.a->measured) : "none"});
        }
        for (const auto& [metric, of] : {std::pair{metric_id::ttft, &gate_side::ttft},
                                         std::pair{metric_id::tpot, &gate_side::tpot}})
            for (const row_statistic& r : row_statistics) {
                const double x = (g.*of).row.*r.value, y = (other->*of).row.*r.value;
                if (!(x > 0) || !(y > 0)) continue;  // one has no curves
                t.add({filled("{of} {metric}", {{"of", r.name}, {"metric", metric_name(metric)}}),
                       value_text(metric, x), value_text(metric, y), ratio_words(y, x)});
            }
        fill(gates, "\n{name}: A {a}, B {b}\n{table}",
             {{"name", printable(str(g.judged.name), 200)}, {"a", outcome_word(g.judged)},
              {"b", outcome_word(other->judged)}, {"table", console_table(t)}});
    }
    if (gates.empty()) refuse_without_common_gate(a, b);
    return filled("A: {a}\nB: {b}\n{gates}\nTwo runs of one server differ, too: no ratio here is a "
                  "verdict.\nWith --page FILE both are drawn.\n",
                  {{"a", printable(a.folder, 400)}, {"b", printable(b.folder, 400)},
                   {"gates", gates}});
}

/// Returns the page. Throws std::invalid_argument if the runs have no gate in common.
inline std::string side_by_side_html(const run_side& a, const run_side& b) {
    std::string pairs, only[2];
    for (const bool is_second : {false, true})
        for (const gate_side& g : (is_second ? b : a).gates) {
            const gate_side* other = (is_second ? a : b).gate(g.judged.name);
            if (!other) fill(only[is_second], "{,}\"{name}\"", {{"name", g.judged.name}});
            else if (!is_second) pairs += pair_html(g, *other);
        }
    if (pairs.empty()) refuse_without_common_gate(a, b);
    return html_page(
        "Two runs", own_style,
        joined({filled("<header>\n<h1>Two runs side by side</h1>\n<p>A: {a:x}<br>B: {b:x}</p>\n[<p>"
                       "Only A has the gates {only_a:x}.</p>\n][<p>Only B has the gates {only_b:x}."
                       "</p>\n]<p class=\"note\">Values are those of the requests of all repeats, "
                       "with the interval that decided the verdict. Two runs of one server "
                       "differ, too: no ratio here is a verdict.</p>\n</header>\n",
                       {{"a", a.folder}, {"b", b.folder}, {"only_a", only[0]},
                        {"only_b", only[1]}}),
                differences_html("Run", facts_of_run, a.facts, b.facts), pairs}));
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
