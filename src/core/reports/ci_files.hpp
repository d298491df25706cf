// junit.xml, summary.md, annotations, metrics.txt
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/judging/outcome.hpp"
#include "core/described/described.hpp"
#include "core/described/verdict_text.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/tables.hpp"
#include "core/reports/text.hpp"

#include <algorithm>  // sort, min
#include <cmath>  // isnan, isinf
#include <string>
#include <string_view>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Returns the place of an objective; that of the error guard, which nobody wrote, is its gate's.
inline std::string place_of(const slo_verdict& v, const std::string& gate_place) {
    const bool written = v.what.at.line > 0;
    return written ? v.what.at.file + (":" + std::to_string(v.what.at.line)) : gate_place;
}
/// Returns "" if no file has the gate.
inline std::string place_of(const gate_identity& g) {
    return g.line > 0 ? g.file + ":" + std::to_string(g.line) : "";
}
inline std::string search_message(const load_curve& c) {
    return c.line + (c.fault.empty() ? "" : "; " + c.fault);
}

/// Divides the gate's time among its test cases: tools add them up.
inline double seconds_of_each(const gate_report& g) {
    const std::size_t cases = g.verdicts.size() + !g.refusal.empty() + !g.beside.empty() +
                              g.what.judged->search.to_the_interval;
    return cases > 0 ? g.took_s / static_cast<double>(cases) : 0;
}

/// Returns a gate's name as a class name. Jenkins splits class names into packages at dots, so
/// U+2024, which looks the same, replaces each dot.
inline std::string junit_class(const std::string& name) { return filled_in(name, ".", "\u2024"); }
/// The cases of a suite, counted by outcome.
struct junit_counts {
    int tests = 0, failures = 0, errors = 0, skipped = 0;
    void add(const junit_counts& c) {
        tests += c.tests;
        failures += c.failures;
        errors += c.errors;
    }
    std::string text() const {
        return printed(" tests=\"%d\" failures=\"%d\" errors=\"%d\"", tests, failures, errors);
    }
};
/// Returns JUnit XML that Jenkins accepts (junit-10.xsd of its xUnit plugin): properties belong to
/// a suite, a case names its place in its text. Each SLO is a test case: an inconclusive one is
/// skipped, or a failure if it fails the build, and an invalid one is an error.
inline std::string junit_xml(const std::vector<gate_report>& gates) {
    junit_counts all;
    double took_s = 0;
    std::string suites;
    for (const gate_report& g : gates) {
        junit_counts of;
        std::string properties, cases;
        const std::string class_name = xml_escaped(junit_class(g.what.name));
        const std::string seconds = printed("%.3f", seconds_of_each(g));
        const auto property = [&](const std::string& name, const std::string& value) {
            if (value.empty()) return;
            properties += joined({"      <property name=\"", xml_escaped(name), "\" value=\"",
                                  xml_escaped(value), "\"/>\n"});
        };
        const auto test = [&](const std::string& name, const char* tag, const std::string& words,
                              const std::string& place) {
            ++of.tests;
            const std::string text = xml_escaped(place.empty() ? words : place + ": " + words);
            const bool plain = std::string_view(tag) == "skipped";
            cases += joined({"    <testcase classname=\"", class_name, "\" name=\"",
                             xml_escaped(name), "\" time=\"", seconds, "\">\n"});
            if (*tag)
                cases += joined({"      <", tag, plain ? "" : " type=\"slo\" message=\"",
                                 plain ? "" : xml_escaped(words), plain ? ">" : "\">", text, "</",
                                 tag, ">\n"});
            cases += joined({"      <system-out>", text, "</system-out>\n    </testcase>\n"});
        };
        const std::string gate_place = place_of(g.what);
        if (!g.refusal.empty()) {
            const bool skip = g.outcome == gate_outcome::skipped;
            ++(skip ? of.skipped : of.errors);
            test("gate", skip ? "skipped" : "error", g.refusal, gate_place);
        }
        if (!g.beside.empty()) {
            ++of.failures;
            test("test case", "failure", g.beside, gate_place);
        }
        if (const load_curve& c = g.figures.search; g.what.judged->search.to_the_interval) {
            property("capacity: low", json_number(c.state.low));
            property("capacity: high", json_number(c.state.high));
            of.errors += !c.fault.empty();
            test("the search", c.fault.empty() ? "" : "error", search_message(c), gate_place);
        }
        for (const slo_verdict& v : g.verdicts) {
            const std::string name = str(v.what.text());
            property(name + ": verdict", to_string(v.outcome));
            for (const auto& [what, value] :
                 {std::pair{": measured", v.measured}, std::pair{": estimate", v.estimate.value},
                  std::pair{": interval_low", v.estimate.low},
                  std::pair{": interval_high", v.estimate.high}, std::pair{": limit", v.limit}})
                property(name + what, json_number(value));
            const bool blocks = !v.what.is_advisory;
            const bool undecided = v.outcome == verdict::inconclusive && g.undecided_fails;
            const bool failed = (v.outcome == verdict::fail || undecided) && blocks;
            const bool invalid = v.outcome == verdict::invalid && blocks;
            const bool skip = !failed && !invalid && v.outcome != verdict::pass;
            of.failures += failed;
            of.errors += invalid;
            of.skipped += skip;
            test(name, failed ? "failure" : invalid ? "error" : skip ? "skipped" : "",
                 flat_line(v), place_of(v, gate_place));
        }
        property("rehearsal", g.rehearsal.model);
        property("time", g.target.is_virtual ? virtual_time_text : "");
        if (!g.figures.candidate.empty())
            property("answers", status_text(g.figures.candidate));
        property("tls", unverified_servers(g));
        if (!properties.empty())
            properties = "    <properties>\n" + properties + "    </properties>\n";
        suites += joined({"  <testsuite name=\"", xml_escaped(g.what.name), "\"", of.text(),
                          printed(" skipped=\"%d\" time=\"%.3f\">\n", of.skipped, g.took_s),
                          properties, cases, "  </testsuite>\n"});
        all.add(of);
        took_s += g.took_s;
    }
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"llmbench\"" +
           all.text() + printed(" time=\"%.3f\">\n", took_s) + suites + "</testsuites>\n";
}

/// GitHub takes 65,536 characters in a comment; the program that posts it may add some.
inline constexpr std::size_t summary_limit = 64000;

/// One gate of the summary: a table of verdicts and a line on its requests.
inline std::string summary_of(const gate_report& g) {
    std::string out =
        "### " + markdown_escaped(g.what.name) + ": " + headline_text(g) + "\n\n";
    for (const std::string& words : {g.beside, g.refusal, unverified_servers(g)})
        if (!words.empty()) out += markdown_code(words) + "\n\n";
    if (!g.refusal.empty()) return out;
    if (const load_curve& c = g.figures.search; g.what.judged->search.to_the_interval) {
        out += markdown_escaped(c.line) + "\n\n";
        for (const std::string& words : {c.flat, c.fault, g.under.stopped})
            if (!words.empty()) out += markdown_escaped(words) + "\n\n";
    }
    if (!g.verdicts.empty())
        out += "| verdict | objective | measured | typical repeat | interval | headroom | note |\n"
               "| --- | --- | ---: | ---: | ---: | ---: | --- |\n";
    for (const slo_verdict& v : g.verdicts) {
        const estimate_t& e = v.estimate;
        const double room = headroom(v);
        const bool has_room = !std::isnan(room) && !is_request_fraction(v.what.what.metric);
        const bool noted = v.what.is_advisory && v.outcome != verdict::pass;
        const char* mark = is_only_observed(v)                      ? "\u2796"
                           : v.outcome == verdict::pass             ? "\u2705"
                           : v.outcome == verdict::fail && !noted   ? "\u274C"
                           : v.outcome == verdict::skipped || noted ? "\u2796"
                                                                    : "\u26A0\uFE0F";
        const std::string of = ratio_of_text(v);
        out += joined({"| ", mark, " ", verdict_text(v), " | ",
                       markdown_escaped(str(v.what.text())), " | ",
                       verdict_value_text(v, v.measured), of.empty() ? "" : " (" + of + ")", " | ",
                       verdict_value_text(v, e.value), " | ", verdict_value_text(v, e.low), " to ",
                       verdict_value_text(v, e.high), " | ",
                       has_room ? printed("%+.1f %%", room * 100) : "", " | ",
                       markdown_code(str(v.reason)), v.advice.empty() ? "" : "; ",
                       markdown_escaped(str(v.advice)), " |\n"});
    }
    if (const variant_figures& variant = g.figures.candidate; !variant.empty())
        out += joined({g.what.sent->scores.empty() ? "\n" : "\ninput ", throughput_text(g, variant),
                       ", ", markdown_code(status_text(variant)),
                       g.self_check.ok ? "" : "; " + markdown_code(str(g.self_check.reason)),
                       "\n"});
    for (const std::string& note : notes_on(g)) out += "\n" + markdown_escaped(note) + "\n";
    if (g.judged_by.past)
        for (const std::string& line : g.judged_by.past->lines(g))
            out += "\n" + markdown_escaped(line) + "\n";
    if (g.profile.wanted) out += "\n" + markdown_code(profile_text(g.profile)) + "\n";
    return out + "\n";
}

inline std::string reason_md(const slo_verdict& v) {
    return markdown_escaped(str(v.what.text())) + ": " + markdown_code(str(v.reason));
}
/// In Markdown: "mean(tpot) is 28.7 ms, the limit is 27.5 ms, 1.1 times the baseline's 25 ms".
inline std::string against_limit_text(const slo_verdict& v) {
    const statistic_data& what = v.what.what;
    const double is = v.denominator > 0 ? v.numerator : v.measured;
    if (std::isnan(is)) return reason_md(v);
    const bool has_parts = !what.parts.empty();
    const metric_id m = has_parts ? what.parts[0].metric : what.metric;
    const std::string name = str(has_parts ? what.parts[0].name : what.name);
    if (!(v.denominator > 0))
        return markdown_escaped(name + " is " + verdict_value_text(v, is) + ", the limit is " +
                                verdict_limit_text(v));
    const std::string to = value_text(m, v.denominator);
    return markdown_escaped(
        joined({name, " is ", value_text(m, is), ", the limit is ",
                value_text(m, v.limit * v.denominator), ", ", digits_text(v.limit, 6),
                " times the ",
                has_parts ? to + " of " + str(what.parts[1].name) : "baseline's " + to}));
}
/// Returns the opening of the summary: the first failure or problem, and its size.
inline std::string opening_of(const std::vector<gate_report>& gates) {
    std::string first;
    std::size_t more = 0;
    const auto add = [&](const gate_report& g, const std::string& words) {
        if (first.empty()) first = markdown_escaped(g.what.name) + ": " + words;
        else ++more;
    };
    const auto add_verdicts = [&](verdict outcome) {
        for (const gate_report& g : gates)
            for (const slo_verdict& v : g.verdicts)
                if (v.outcome == outcome && !v.what.is_advisory)
                    add(g, outcome == verdict::invalid ? reason_md(v) : against_limit_text(v));
    };
    const auto opened = [&](const char* how) {
        return joined({"**", how, first, more > 0 ? printed("; and %zu more", more) : "",
                       "**\n\n"});
    };
    add_verdicts(verdict::fail);
    for (const gate_report& g : gates)
        if (!g.beside.empty()) add(g, markdown_code(g.beside));
    if (!first.empty()) return opened("Failed: ");
    for (const gate_report& g : gates)
        if (!g.refusal.empty() && g.outcome != gate_outcome::skipped)
            add(g, markdown_code(g.refusal.substr(0, g.refusal.find('\n'))));
    if (!first.empty()) return opened("Nothing is judged: ");
    add_verdicts(verdict::invalid);
    if (!first.empty()) return opened("Invalid: ");
    add_verdicts(verdict::inconclusive);
    return first.empty() ? std::string() : opened("Inconclusive: ");
}
/// Returns "All 3 gates passed, with 7 objectives", or "" if one did not.
inline std::string all_passed(const std::vector<gate_report>& gates) {
    std::size_t objectives = 0;
    for (const gate_report& g : gates) {
        if (headline_of(g) != headline::passed) return {};
        for (const slo_verdict& v : g.verdicts) objectives += is_own_objective(v);
    }
    if (gates.empty()) return {};
    const std::string n = gates.size() == 1 ? "The gate" : printed("All %zu gates", gates.size());
    return "**" + n + " passed, with " + plural(objectives, "objective") + "**\n\n";
}

/// Returns the text for objectives that the repeats do not decide.
inline const char* undecided_text(const gate_report& g) {
    return g.undecided_fails                       ? "inconclusive, which fails this build"
           : g.outcome == gate_outcome::skipped ? "inconclusive, and the gate counts as skipped"
                                                : "inconclusive: green does not mean shown";
}

/// Returns summary.md, for a CI step summary or a comment: the program's sections, then the gates,
/// first those that did not pass. A section or gate without room is left out as a whole.
inline std::string summary_md(const std::vector<gate_report>& gates,
                              const all_sections& beside = {},
                              std::size_t at_most = summary_limit) {
    std::string out = rehearsal_of_all(gates);
    if (!out.empty()) out = "**" + markdown_escaped(out) + "**\n\n";
    std::string open;
    for (const gate_report& g : gates)
        for (const slo_verdict& v : g.verdicts)
            if (v.outcome == verdict::inconclusive && !v.what.is_advisory && out.empty())
                open = std::string("**Some objectives are ") + undecided_text(g) + ".**\n\n";
    out += opening_of(gates) + open + all_passed(gates);
    std::size_t left = 0, tables = 0, tables_left = 0;
    const std::size_t room = at_most > 400 ? at_most - 400 : 0;  // for the last sentences
    for (const program_section* b : beside)
        for (const std::string& one : b->tables(gates)) {
            ++tables;
            if (out.size() + one.size() <= room) out += one;
            else ++tables_left;
        }
    for (const gate_report* g : most_urgent_first(gates)) {
        const std::string one = summary_of(*g);
        if (left > 0 || out.size() + one.size() > room) ++left;
        else out += one;
    }
    if (tables_left > 0)
        out += printed("**%zu of %zu comparisons and curves are left out here, because GitHub "
                       "shows no more: report.html has them all.**\n\n",
                       tables_left, tables);
    if (left > 0)
        out += printed("**%zu of %zu gates are left out here, because GitHub shows no more: "
                       "report.html and junit.xml have them all.**\n", left, gates.size());
    return out;
}

/// Escapes text for GitHub's workflow commands: %, line ends, and in properties ":" and ",".
inline std::string workflow_escaped(std::string_view s, bool property) {
    std::string out;
    for (const char c : s) {
        const bool special = c == '%' || c == '\r' || c == '\n' ||
                             (property && (c == ':' || c == ','));
        out += special ? printed("%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)))
                       : std::string(1, c);
    }
    return out;
}

/// Returns annotations at the lines of the gates, worst first: GitHub shows ten of a kind in a
/// step, so nine are listed and one counts the rest. `workspace` is cut off the file names.
inline std::string github_annotations(const std::vector<gate_report>& gates,
                                      const std::string& workspace) {
    struct note { int rank; std::size_t order; std::string text; };
    std::vector<note> notes;
    const auto add = [&](int rank, const char* level, std::string file, int line,
                         const std::string& title, const std::string& message) {
        if (!workspace.empty() && file.rfind(workspace + "/", 0) == 0)
            file.erase(0, workspace.size() + 1);
        const std::string place =
            line > 0 ? printed("file=%s,line=%d,", workflow_escaped(file, true).c_str(), line) : "";
        notes.push_back({rank, notes.size(),
                         joined({"::", level, " ", place, "title=", workflow_escaped(title, true),
                                 "::", workflow_escaped(message, false), "\n"})});
    };
    for (const gate_report& g : gates) {
        if (!g.refusal.empty() && g.outcome != gate_outcome::skipped)
            add(1, "error", g.what.file, g.what.line, g.what.name, g.refusal);
        for (const std::string& why : {g.beside, g.figures.search.fault})
            if (!why.empty()) add(1, "error", g.what.file, g.what.line, g.what.name, why);
        for (const slo_verdict& v : g.verdicts) {
            if (!g.refusal.empty() || v.outcome == verdict::pass) continue;
            if (v.outcome == verdict::skipped) continue;
            const bool red = !v.what.is_advisory &&
                             (v.outcome != verdict::inconclusive || g.undecided_fails);
            const int rank = !red ? 3 : v.outcome == verdict::fail ? 0 : 2;
            // Nobody wrote the error guard, so its annotation is at the gate.
            const bool written = v.what.at.line > 0;
            add(rank, red ? "error" : "warning", written ? v.what.at.file : g.what.file,
                written ? v.what.at.line : g.what.line, g.what.name, flat_line(v));
        }
    }
    std::sort(notes.begin(), notes.end(), [](const note& a, const note& b) {
        return a.rank != b.rank ? a.rank < b.rank : a.order < b.order;
    });
    std::string out;
    for (std::size_t i = 0; i < std::min<std::size_t>(notes.size(), 9); ++i) out += notes[i].text;
    if (notes.size() > 9)
        out += printed("::warning title=llmbench::%zu more, see the step summary\n",
                       notes.size() - 9);
    return out;
}

/// Returns OpenMetrics text (version 1.0, SI units), for GitLab's metrics report among others. No
/// label has a '#': GitLab takes it for a comment and refuses the whole file.
inline std::string open_metrics(const std::vector<gate_report>& gates) {
    const auto label = [](const std::string& s) {
        std::string out;
        for (const char c : printable(s, s.size() * 4 + 4))
            out += c == '"' || c == '\\' ? std::string("\\") + c
                 : c == '#' ? "No. " : std::string(1, c);
        return out;
    };
    const auto number = [](double v) {
        return std::isnan(v) ? std::string("NaN")
               : std::isinf(v) ? std::string(v > 0 ? "+Inf" : "-Inf") : json_number(v);
    };
    std::string measured, estimates, limits, metrics, loads;
    for (const gate_report& g : gates) {
        if (g.figures.candidate.empty()) continue;
        const std::string gate = "{gate=\"" + label(g.what.name) + "\"," +
                                 (g.target.is_virtual ? "time=\"virtual\"," : "") +
                                 (g.rehearsal.model.empty() ? "" : "rehearsal=\"yes\",");
        for (const slo_verdict& v : g.verdicts) {
            const std::string of = gate + "slo=\"" + label(str(v.what.text())) + "\"} ";
            measured += joined({"llmbench_slo_measured", of, number(v.measured), "\n"});
            estimates += joined({"llmbench_slo_estimate", of, number(v.estimate.value), "\n"});
            limits += joined({"llmbench_slo_limit", of, number(v.limit), "\n"});
        }
        if (const load_curve& c = g.figures.search; g.what.judged->search.to_the_interval)
            for (const auto& [end, value] :
                 {std::pair{"low", c.state.low}, std::pair{"high", c.state.high}})
                loads += joined({"llmbench_capacity", gate, "end=\"", end, "\"} ", number(value),
                                 "\n"});
        for (std::size_t i = 0; i < g.figures.table_rows; ++i) {
            const metric_row& r = g.figures.candidate.distributions[i].row;
            for (const auto& [name, value] :
                 {std::pair{"mean", r.mean}, std::pair{"p50", r.p50}, std::pair{"p90", r.p90},
                  std::pair{"p99", r.p99}, std::pair{"max", r.max}})
                metrics += joined({"llmbench_latency_seconds", gate, "metric=\"",
                                   metric_name(r.metric), "\",statistic=\"", name, "\"} ",
                                   number(value), "\n"});
        }
    }
    return "# TYPE llmbench_slo_measured gauge\n" + measured +
           "# TYPE llmbench_slo_estimate gauge\n" + estimates +
           "# TYPE llmbench_slo_limit gauge\n" + limits +
           (loads.empty() ? "" : "# TYPE llmbench_capacity gauge\n" + loads) +
           "# TYPE llmbench_latency_seconds gauge\n# UNIT llmbench_latency_seconds seconds\n" +
           metrics + "# EOF\n";
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
