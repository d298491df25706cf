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
#include "core/reports/comparison_md.hpp"
#include "core/reports/comparison_report.hpp"
#include "core/reports/curve_report.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/headlines.hpp"
#include "core/reports/markdown.hpp"
#include "core/reports/nights.hpp"
#include "core/reports/profile.hpp"
#include "core/reports/rehearsal.hpp"
#include "core/reports/text.hpp"

#include <algorithm>  // sort, min
#include <cmath>  // isnan, isinf
#include <string>
#include <string_view>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Where an objective was written; the guard on errors stands at its gate.
inline std::string place_of(const slo_verdict& v, const std::string& gate_place) {
    const bool written = v.what.at.line > 0;
    return written ? v.what.at.file + (":" + std::to_string(v.what.at.line)) : gate_place;
}
inline std::string search_message(const load_curve& c) {
    return c.line + (c.fault.empty() ? "" : "; " + c.fault);
}

/// Every test case of a gate has an equal part of its time: what adds them up has the gate's.
inline double seconds_of_each(const gate_report& g) {
    const std::size_t cases = g.verdicts.size() + !g.refusal.empty() + !g.beside.empty() +
                              g.what.judged->search.to_the_interval;
    return cases > 0 ? g.took_s / static_cast<double>(cases) : 0;
}

/// One test case per SLO: a miss is a failure, an inconclusive one is skipped, an invalid one an
/// error. Where inconclusive fails the build it is a failure: no red build without a red case.
/// A gate's name as the class of its cases, which Jenkins splits into packages at its dots ("1.5
/// rps" would be a package that ends in 1): U+2024 looks the same and is none.
inline std::string junit_class(const std::string& name) {
    std::string out;
    for (const char c : name) out += c == '.' ? std::string("\u2024") : std::string(1, c);
    return out;
}
inline std::string junit_case(const gate_report& g, const std::string& name) {
    return "    <testcase classname=\"" + xml_escaped(junit_class(g.what.name)) + "\" name=\"" +
           xml_escaped(name) + printed("\" time=\"%.3f\">\n", seconds_of_each(g));
}
/// How many of the cases of a suite ended how.
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
/// Written so that Jenkins' own schema (junit-10.xsd of its xUnit plugin) accepts it: there
/// properties belong to a suite, and a case names its place in its text.
inline std::string junit_xml(const std::vector<gate_report>& gates) {
    junit_counts all;
    double took_s = 0;
    std::string suites;
    for (const gate_report& g : gates) {
        junit_counts of;
        std::string properties, cases;
        const auto property = [&](const std::string& name, const std::string& value) {
            if (value.empty()) return;
            properties += "      <property name=\"" + xml_escaped(name) + "\" value=\"" +
                          xml_escaped(value) + "\"/>\n";
        };
        const auto test = [&](const std::string& name, const char* tag, const std::string& words,
                              const std::string& place) {
            ++of.tests;
            cases += junit_case(g, name);
            const std::string text = xml_escaped(place + ": " + words);
            const std::string start = std::string("      <") + tag;
            const std::string end = std::string("</") + tag + ">\n";
            const bool plain = std::string_view(tag) == "skipped";
            if (*tag)
                cases += start + (plain ? ">" : " type=\"slo\" message=\"" + xml_escaped(words) +
                                                    "\">") + text + end;
            cases += "      <system-out>" + text + "</system-out>\n    </testcase>\n";
        };
        const std::string gate_place = g.what.file + ":" + std::to_string(g.what.line);
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
            property(name + ": measured", json_number(v.measured));
            property(name + ": estimate", json_number(v.estimate.value));
            property(name + ": interval_low", json_number(v.estimate.low));
            property(name + ": interval_high", json_number(v.estimate.high));
            property(name + ": limit", json_number(v.limit));
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
        property("answers", answers_text(g.figures.candidate));
        property("tls", unverified_servers(g));
        if (!properties.empty())
            properties = "    <properties>\n" + properties + "    </properties>\n";
        suites += "  <testsuite name=\"" + xml_escaped(g.what.name) + "\"" + of.text() +
                  printed(" skipped=\"%d\" time=\"%.3f\">\n", of.skipped, g.took_s) + properties +
                  cases + "  </testsuite>\n";
        all.add(of);
        took_s += g.took_s;
    }
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"llmbench\"" +
           all.text() + printed(" time=\"%.3f\">\n", took_s) + suites + "</testsuites>\n";
}

/// GitHub takes 65,536 characters in a comment, of which whoever posts it may add some.
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
        out += std::string("| ") + mark + " " + verdict_text(v) + " | " +
               markdown_escaped(str(v.what.text())) + " | " + verdict_value_text(v, v.measured) +
               " | " + verdict_value_text(v, e.value) + " | " + verdict_value_text(v, e.low) +
               " to " + verdict_value_text(v, e.high) + " | " +
               (has_room ? printed("%+.1f %%", room * 100) : std::string()) + " | " +
               markdown_code(str(v.reason)) + " |\n";
    }
    if (const arm_figures& arm = g.figures.candidate; !arm.empty())
        out += (g.what.sent->scores.empty() ? "\n" : "\ninput ") + throughput_text(g, arm) + ", " +
               markdown_code(status_text(arm)) +
               (g.self_check.ok ? "" : "; " + markdown_code(str(g.self_check.reason))) + "\n";
    for (const std::string& note : notes_on(g)) out += "\n" + markdown_escaped(note) + "\n";
    if (const std::string t = ratchet_text(g.judged_by, g.verdicts); !t.empty())
        out += "\n" + markdown_escaped(t) + "\n";
    for (const std::string& line : nights_lines(g)) out += "\n" + markdown_escaped(line) + "\n";
    if (g.profile.wanted) out += "\n" + markdown_code(profile_text(g.profile)) + "\n";
    if (const std::string t = others_text(g); !t.empty()) out += "\n```" + t + "```\n";
    return out + "\n";
}

/// What objectives are that the repeats do not decide.
inline const char* undecided_text(const gate_report& g) {
    return g.undecided_fails ? "inconclusive, which fails this build"
                             : "inconclusive: green does not mean shown";
}

/// For a CI step summary or a comment: settings beside each other, then the gates that did not pass
/// first, and whole ones of either only.
inline std::string summary_md(const std::vector<gate_report>& gates,
                              const std::vector<comparison_report>& comparisons = {},
                              const std::vector<curve_report>& curves = {},
                              std::size_t at_most = summary_limit) {
    std::string out = rehearsal_of_all(gates);
    if (!out.empty()) out = "**" + markdown_escaped(out) + "**\n\n";
    for (const gate_report& g : gates)
        for (const slo_verdict& v : g.verdicts)
            if (v.outcome == verdict::inconclusive && !v.what.is_advisory && out.empty())
                out = std::string("**Some objectives are ") + undecided_text(g) + ".**\n\n";
    std::size_t left = 0;
    const std::size_t room = at_most > 300 ? at_most - 300 : 0;  // for the sentence at the end
    for (const comparison_report& r : comparisons)
        if (const std::string one = comparison_md(r); out.size() + one.size() <= room) out += one;
    for (const curve_report& c : curves)
        if (const std::string one = curve_md(c, gates); out.size() + one.size() <= room) out += one;
    for (const headline c : headlines)
        for (const gate_report& g : gates) {
            if (headline_of(g) != c) continue;
            const std::string one = summary_of(g);
            if (left > 0 || out.size() + one.size() > room) ++left;
            else out += one;
        }
    if (left > 0)
        out += printed("**%zu of %zu gates are left out here, because GitHub shows no more: "
                       "report.html and junit.xml have them all.**\n", left, gates.size());
    return out;
}

/// GitHub's workflow commands: %, line ends and in properties ":" and "," are told in hexadecimal.
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

/// Annotations at the lines of the gates, worst first. GitHub shows ten of a kind for a step, so
/// nine are told and the rest is counted. `workspace` is cut off the names of the files.
inline std::string github_annotations(const std::vector<gate_report>& gates,
                                      const std::string& workspace) {
    struct note { int rank; std::size_t order; std::string text; };
    std::vector<note> notes;
    const auto add = [&](int rank, const char* level, std::string file, int line,
                         const std::string& title, const std::string& message) {
        if (!workspace.empty() && file.rfind(workspace + "/", 0) == 0)
            file.erase(0, workspace.size() + 1);
        notes.push_back({rank, notes.size(), printed("::%s file=%s,line=%d,title=%s::%s\n", level,
                                       workflow_escaped(file, true).c_str(), line,
                                       workflow_escaped(title, true).c_str(),
                                       workflow_escaped(message, false).c_str())});
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
            // The guard on errors was not written by anybody: it stands at its gate.
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

/// OpenMetrics text (version 1.0), for GitLab's metrics report among others. SI units. No '#' in a
/// label: GitLab takes it for the start of a comment and refuses the whole file.
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
            measured += "llmbench_slo_measured" + of + number(v.measured) + "\n";
            estimates += "llmbench_slo_estimate" + of + number(v.estimate.value) + "\n";
            limits += "llmbench_slo_limit" + of + number(v.limit) + "\n";
        }
        if (const load_curve& c = g.figures.search; g.what.judged->search.to_the_interval)
            for (const auto& [end, value] :
                 {std::pair{"low", c.state.low}, std::pair{"high", c.state.high}})
                loads += "llmbench_capacity" + gate + "end=\"" + end + "\"} " + number(value) +
                         "\n";
        for (std::size_t i = 0; i < g.figures.table_rows; ++i) {
            const metric_row& r = g.figures.candidate.distributions[i].row;
            for (const auto& [name, value] :
                 {std::pair{"mean", r.mean}, std::pair{"p50", r.p50}, std::pair{"p90", r.p90},
                  std::pair{"p99", r.p99}, std::pair{"max", r.max}})
                metrics += "llmbench_latency_seconds" + gate + "metric=\"" + metric_name(r.metric) +
                           "\",statistic=\"" + name + "\"} " + number(value) + "\n";
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
}  // inline namespace v0
}  // namespace llmbench
