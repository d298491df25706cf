// junit.xml, summary.md, annotations, metrics.txt
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/judging/outcome.hpp"
#include "core/described/described.hpp"
#include "core/described/limits.hpp"
#include "core/described/verdict_text.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/tables.hpp"
#include "core/reports/text.hpp"

#include <algorithm>  // sort, min
#include <cmath>  // isnan, isinf, round
#include <map>
#include <string>
#include <string_view>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Returns the place of an objective; that of the error guard, which nobody wrote, is its gate's.
inline std::string place_of(const slo_verdict& v, const gate_report& g) {
    const auto& at = v.objective.at;
    if (at.line <= 0) return place_of(g.what);
    return filled("{file}:{line}", {{"file", at.file}, {"line", at.line}});
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
/// The suite of one gate. Jenkins (junit-10.xsd of its xUnit plugin) wants properties of a suite,
/// and no place beside a case, which names it in its text.
class junit_suite {
public:
    explicit junit_suite(const gate_report& g)
        : g_(g), class_name_(junit_class(g.what.name)), seconds_(seconds_of_each(g)) {
        const std::string gate_place = place_of(g.what);
        if (!g.refusal.empty()) {
            const bool skip = g.outcome == gate_outcome::skipped;
            add_case("gate", skip ? "skipped" : "error", g.refusal, gate_place);
        }
        if (!g.beside.empty()) add_case("test case", "failure", g.beside, gate_place);
        if (g.what.judged->search.to_the_interval) add_search(*g.figures.search, gate_place);
        for (const slo_verdict& v : g.verdicts) add_verdict(v);
        add_property("rehearsal", g.rehearsal.model);
        add_property("time", g.target.is_virtual ? virtual_time_text : "");
        if (!g.figures.candidate.empty()) add_property("answers", status_text(g.figures.candidate));
        add_property("tls", unverified_servers(g));
    }
    const junit_counts& counts() const { return counts_; }
    std::string text() const {
        return filled("  <testsuite name=\"{name:x}\"{counts} skipped=\"{skipped}\" "
                      "time=\"{took:.3f}\">\n[    <properties>\n{properties}    </properties>\n]"
                      "{cases}  </testsuite>\n",
                      {{"name", g_.what.name}, {"counts", counts_.text()},
                       {"skipped", counts_.skipped}, {"took", g_.took_s},
                       {"properties", properties_}, {"cases", cases_}});
    }

private:
    void add_property(const std::string& name, const std::string& value) {
        fill(properties_, "[{value?}      <property name=\"{name:x}\" value=\"{value:x}\"/>\n]",
             {{"value", value}, {"name", name}});
    }
    void add_search(const search_figures& c, const std::string& place) {
        add_property("capacity: low", json_number(c.ends.low));
        add_property("capacity: high", json_number(c.ends.high));
        add_case("the search", c.fault.empty() ? "" : "error",
                 filled("{line}[; {fault}]", {{"line", c.line}, {"fault", c.fault}}), place);
    }
    /// `tag` is "" for a case that passes.
    void add_case(const std::string& name, const std::string& tag, const std::string& words,
                  const std::string& place) {
        ++counts_.tests;
        counts_.failures += tag == "failure";
        counts_.errors += tag == "error";
        counts_.skipped += tag == "skipped";
        const std::string text = filled("[{place}: ]{words}", {{"place", place}, {"words", words}});
        fill(cases_, "    <testcase classname=\"{class_name:x}\" name=\"{name:x}\" "
             "time=\"{seconds:.3f}\">\n",
             {{"class_name", class_name_}, {"name", name}, {"seconds", seconds_}});
        if (tag == "skipped") fill(cases_, "      <skipped>{text:x}</skipped>\n", {{"text", text}});
        else fill(cases_, "[      <{tag} type=\"slo\" message=\"{words:x}\">{text:x}</{tag}>\n]",
                  {{"tag", tag}, {"words", words}, {"text", text}});
        fill(cases_, "      <system-out>{text:x}</system-out>\n    </testcase>\n",
             {{"text", text}});
    }
    /// An inconclusive objective is skipped, or a failure if it fails the build, and an invalid one
    /// is an error.
    void add_verdict(const slo_verdict& v) {
        const std::string name = str(v.objective.text());
        add_property(name + ": verdict", to_string(v.outcome));
        for (const auto& [what, value] :
             {std::pair{": measured", v.measured}, std::pair{": estimate", v.estimate.value},
              std::pair{": interval_low", v.estimate.low},
              std::pair{": interval_high", v.estimate.high}, std::pair{": limit", v.limit}})
            add_property(name + what, json_number(value));
        const bool blocks = !v.objective.is_advisory;
        const bool undecided = v.outcome == verdict::inconclusive && g_.undecided_fails;
        const bool failed = (v.outcome == verdict::fail || undecided) && blocks;
        const bool invalid = v.outcome == verdict::invalid && blocks;
        add_case(name, failed                         ? "failure"
                       : invalid                      ? "error"
                       : v.outcome != verdict::pass ? "skipped" : "",
                 flat_line(v), place_of(v, g_));
    }

    const gate_report& g_;
    const std::string class_name_;
    const double seconds_;
    junit_counts counts_{};
    std::string properties_{}, cases_{};
};
/// Returns JUnit XML in which each SLO is a test case.
inline std::string junit_xml(const vector<gate_report>& gates) {
    junit_counts all;
    double took_s = 0;
    std::string suites;
    for (const gate_report& g : gates) {
        const junit_suite of(g);
        suites += of.text();
        all.add(of.counts());
        took_s += g.took_s;
    }
    return filled("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"llmbench\""
                  "{counts} time=\"{took:.3f}\">\n{suites}</testsuites>\n",
                  {{"counts", all.text()}, {"took", took_s}, {"suites", suites}});
}

/// GitHub takes 65,536 characters in a comment; the program that posts it may add some.
inline constexpr std::size_t summary_limit = 64000;

/// One gate of the summary: a table of verdicts and a line on its requests.
inline std::string summary_of(const gate_report& g) {
    std::string out = filled("### {name:m}: {headline}\n\n[{beside:c}\n\n][{refusal:c}\n\n"
                             "][{unverified:c}\n\n]",
                             {{"name", g.what.name}, {"headline", headline_text(g)},
                              {"beside", g.beside}, {"refusal", g.refusal},
                              {"unverified", unverified_servers(g)}});
    if (!g.refusal.empty()) return out;
    if (const auto& c = g.figures.search; g.what.judged->search.to_the_interval)
        fill(out, "{line:m}\n\n[{flat:m}\n\n][{fault:m}\n\n][{stopped:m}\n\n]",
             {{"line", c->line}, {"flat", c->flat}, {"fault", c->fault},
              {"stopped", g.under.stopped}});
    if (!g.verdicts.empty())
        fill(out, "| verdict | objective | {is_measured?measured|modelled} | estimate | "
             "interval | headroom | note |\n| --- | --- | ---: | ---: | ---: | ---: | --- |\n",
             {{"is_measured", !g.is_modelled()}});
    for (const slo_verdict& v : g.verdicts) {
        const estimate_t& e = v.estimate;
        const char* mark = name_at({"\u2705", "\u274C", "\u26A0\uFE0F", "\u26A0\uFE0F", "\u2796"},
                                   verdict_like(v));
        fill(out, "| {mark} {verdict} | {objective:m} | {measured}[ ({ratio})] | {typical} | "
             "{interval} | {room} | {reason:c}[; {advice:m}][{alone:m}] |\n",
             {{"mark", mark}, {"verdict", verdict_text(v)}, {"objective", v.objective.text()},
              {"measured", verdict_value_text(v, v.measured)}, {"ratio", ratio_of_text(v)},
              {"typical", verdict_value_text(v, e.value)}, {"interval", interval_text(v)},
              {"room", v.distance}, {"reason", v.reason},
              {"advice", v.reason.empty() ? text() : v.advice},
              {"alone", v.reason.empty() ? v.advice : text()}});
    }
    if (const variant_figures& variant = g.figures.candidate; !variant.empty())
        fill(out, "\n{generates?|input }{throughput}, {status:c}[; {problem:c}]\n",
             {{"generates", g.what.sent->scores.empty()},
              {"throughput", throughput_text(g, variant)}, {"status", status_text(variant)},
              {"problem", g.self_check.ok ? "" : g.self_check.reason.c_str()}});
    for (const std::string& note : notes_with_past(g)) fill(out, "\n{note:m}\n", {{"note", note}});
    fill(out, "[\n{profile:c}\n]\n", {{"profile", g.profile_text()}});
    return out;
}

inline std::string reason_md(const slo_verdict& v) {
    return filled("{objective:m}: {reason:c}",
                  {{"objective", v.objective.text()}, {"reason", v.reason}});
}
/// Its value beside the limit, or the reason of one that has none.
inline std::string against_limit_md(const slo_verdict& v) {
    return v.against_limit.empty() ? reason_md(v) : markdown_escaped(str(v.against_limit));
}
/// Returns the opening of the summary: the first failure or problem, and its size.
inline std::string opening_of(const vector<gate_report>& gates) {
    std::string first;
    std::size_t more = 0;
    const auto add = [&](const gate_report& g, const std::string& words) {
        if (first.empty()) first = filled("{name:m}: {words}",
                                          {{"name", g.what.name}, {"words", words}});
        else ++more;
    };
    const auto add_verdicts = [&](verdict outcome) {
        for (const gate_report& g : gates)
            for (const slo_verdict& v : g.verdicts)
                if (v.outcome == outcome && !v.objective.is_advisory)
                    add(g, outcome == verdict::invalid ? reason_md(v) : against_limit_md(v));
    };
    const auto opened = [&](const char* how) {
        return filled("**{how}: {first}[; and {more} more]**\n\n",
                      {{"how", how}, {"first", first}, {"more", more}});
    };
    add_verdicts(verdict::fail);
    for (const gate_report& g : gates)
        if (!g.beside.empty()) add(g, markdown_code(g.beside));
    if (!first.empty()) return opened("Failed");
    for (const gate_report& g : gates)
        if (!g.refusal.empty() && g.outcome != gate_outcome::skipped)
            add(g, markdown_code(g.refusal.substr(0, g.refusal.find('\n'))));
    if (!first.empty()) return opened("Nothing is judged");
    add_verdicts(verdict::invalid);
    if (!first.empty()) return opened("Invalid");
    add_verdicts(verdict::inconclusive);
    return first.empty() ? std::string() : opened("Inconclusive");
}
/// Returns "All 3 gates passed, with 7 objectives", or "" if one did not.
inline std::string all_passed(const vector<gate_report>& gates) {
    std::size_t objectives = 0;
    for (const gate_report& g : gates) {
        if (headline_of(g) != headline::passed) return {};
        for (const slo_verdict& v : g.verdicts) objectives += is_own_objective(v);
    }
    if (gates.empty()) return {};
    return filled("**{is_one?The gate|All }[{gates} gates] passed, with {objectives} "
                  "objective{objectives:s}**\n\n",
                  {{"is_one", gates.size() == 1}, {"gates", gates.size() == 1 ? 0 : gates.size()},
                   {"objectives", objectives}});
}

/// Returns what the gates cost, "" if they were rehearsed or took no time.
inline std::string cost_text(const vector<gate_report>& gates) {
    double took_s = 0;
    bool is_virtual = false;
    for (const gate_report& g : gates) {
        took_s += g.is_modelled() ? 0 : g.took_s;
        is_virtual = is_virtual || g.target.is_virtual;
    }
    return filled("[{minutes?}The gate{gates:s} took {minutes:.1f} minutes{is_virtual? of virtual "
                  "time}.\n\n]",
                  {{"minutes", std::round(took_s / 6) / 10}, {"gates", gates.size()},
                   {"is_virtual", is_virtual}});
}
/// Returns the text for objectives that the repeats do not decide, "" without one. Only a build
/// that is green needs to hear what green means.
inline const char* undecided_text(const vector<gate_report>& gates) {
    const gate_report* open = nullptr;
    bool is_red = false;
    for (const gate_report& g : gates) {
        is_red = is_red || headline_of(g) <= headline::invalid;
        if (!open && count_of(g, verdict::inconclusive) > 0) open = &g;
    }
    return !open                                    ? ""
           : open->undecided_fails                  ? "inconclusive, which fails this build"
           : open->outcome == gate_outcome::skipped ? "inconclusive, and the gate counts as skipped"
           : is_red                                 ? "inconclusive"
                                                    : "inconclusive: green does not mean shown";
}

/// Returns summary.md, for a CI step summary or a comment: the program's sections, then the gates,
/// first those that did not pass. A section or gate without room is left out as a whole.
inline std::string summary_md(const vector<gate_report>& gates,
                              const all_sections& beside = {},
                              std::size_t at_most = summary_limit) {
    std::string out = filled("[**{rehearsal_of_all:m}**\n\n]",
                             {{"rehearsal_of_all", rehearsal_of_all(gates)}});
    const bool is_rehearsal = !out.empty();
    fill(out, "{opening}[**Some objectives are {undecided}.**\n\n]{all_passed}{cost}",
         {{"opening", opening_of(gates)}, {"undecided", is_rehearsal ? "" : undecided_text(gates)},
          {"all_passed", all_passed(gates)}, {"cost", cost_text(gates)}});
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
    fill(out, "[**{tables_left} of {tables} comparisons and curves are left out here, because "
         "GitHub shows no more: report.html has them all.**\n\n][**{left} of {gates} gates are "
         "left out here, because GitHub shows no more: report.html and junit.xml have them "
         "all.**\n]",
         {{"tables_left", tables_left}, {"tables", tables}, {"left", left},
          {"gates", gates.size()}});
    return out;
}

/// Escapes text for GitHub's workflow commands: %, line ends, and in properties ":" and ",".
enum class workflow_text : unsigned char { message, property };
inline std::string workflow_escaped(std::string_view s, workflow_text kind) {
    std::string out;
    for (const char c : s) {
        const bool special = c == '%' || c == '\r' || c == '\n' ||
                             (kind == workflow_text::property && (c == ':' || c == ','));
        out += special ? printed("%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)))
                       : std::string(1, c);
    }
    return out;
}

/// Returns annotations at the lines of the gates, worst first: GitHub shows ten of a kind in a
/// step, so nine are listed and one counts the rest. `workspace` is cut off the file names.
inline std::string github_annotations(const vector<gate_report>& gates,
                                      const std::string& workspace) {
    struct note { int rank; std::size_t order; std::string text; };
    vector<note> notes;
    const auto add = [&](int rank, const char* level, std::string file, int line,
                         const std::string& title, const std::string& message) {
        if (!workspace.empty() && file.rfind(workspace + "/", 0) == 0)
            file.erase(0, workspace.size() + 1);
        notes.push_back(
            {rank, notes.size(),
             filled("::{level} [{has_place?}file={file},line={line},]title={title}::{message}\n",
                    {{"level", level}, {"has_place", line > 0},
                     {"file", workflow_escaped(file, workflow_text::property)}, {"line", line},
                     {"title", workflow_escaped(title, workflow_text::property)},
                     {"message", workflow_escaped(message, workflow_text::message)}})});
    };
    for (const gate_report& g : gates) {
        if (!g.refusal.empty() && g.outcome != gate_outcome::skipped)
            add(1, "error", g.what.file, g.what.line, g.what.name, g.refusal);
        for (const std::string& why : {g.beside, g.figures.fault()})
            if (!why.empty()) add(1, "error", g.what.file, g.what.line, g.what.name, why);
        for (const slo_verdict& v : g.verdicts) {
            if (!g.refusal.empty() || v.outcome == verdict::pass) continue;
            if (v.outcome == verdict::skipped) continue;
            const bool red = !v.objective.is_advisory &&
                             (v.outcome != verdict::inconclusive || g.undecided_fails);
            const int rank = !red ? 3 : v.outcome == verdict::fail ? 0 : 2;
            // Nobody wrote the error guard, so its annotation is at the gate.
            const bool written = v.objective.at.line > 0;
            add(rank, red ? "error" : "warning", written ? v.objective.at.file : g.what.file,
                written ? v.objective.at.line : g.what.line, g.what.name, flat_line(v));
        }
    }
    std::sort(notes.begin(), notes.end(), [](const note& a, const note& b) {
        return a.rank != b.rank ? a.rank < b.rank : a.order < b.order;
    });
    std::string out;
    for (std::size_t i = 0; i < std::min<std::size_t>(notes.size(), 9); ++i) out += notes[i].text;
    const std::size_t more = notes.size() - std::min<std::size_t>(notes.size(), 9);
    fill(out, "[::warning title=llmbench::{more} more, see the step summary\n]", {{"more", more}});
    return out;
}

/// The value of a label in OpenMetrics. None has a '#': GitLab takes it for a comment and refuses
/// the whole file.
inline std::string metrics_escaped(const std::string& s) {
    std::string out;
    for (const char c : printable(s, s.size() * 4 + 4))
        out += c == '"' || c == '\\' ? std::string("\\") + c
               : c == '#'            ? "No. "
                                     : std::string(1, c);
    return out;
}
/// The lines of one file of OpenMetrics, family by family. A series may be there only once.
class metrics_lines {
public:
    void add(const gate_report& g) {
        if (g.figures.candidate.empty()) return;
        const std::string gate = joined({"{gate=\"", once("", g.what.name), "\",",
                                         g.target.is_virtual ? "time=\"virtual\"," : "",
                                         g.is_modelled() ? "rehearsal=\"yes\"," : ""});
        for (const slo_verdict& v : g.verdicts) add(gate, v);
        if (g.what.judged->search.to_the_interval) add(gate, (*g.figures.search).ends);
        for (std::size_t i = 0; i < g.figures.table_rows; ++i)
            add(gate, g.figures.candidate.distributions[i].row);
    }
    std::string text() const {
        return filled("# TYPE llmbench_slo_measured gauge\n{measured}# TYPE llmbench_slo_estimate "
                      "gauge\n{estimates}# TYPE llmbench_slo_limit gauge\n{limits}[# TYPE "
                      "llmbench_capacity gauge\n{loads}]# TYPE llmbench_latency_seconds gauge\n"
                      "# UNIT llmbench_latency_seconds seconds\n{latencies}# EOF\n",
                      {{"measured", measured_}, {"estimates", estimates_}, {"limits", limits_},
                       {"loads", loads_}, {"latencies", latencies_}});
    }

private:
    static std::string number(double v) {
        return std::isnan(v)   ? std::string("NaN")
               : std::isinf(v) ? std::string(v > 0 ? "+Inf" : "-Inf")
                               : json_number(v);
    }
    /// The text, with a number behind it if `of` has it already.
    std::string once(const std::string& of, const std::string& text) {
        const std::string words = metrics_escaped(text);
        const int n = ++written_[of + words];
        return n == 1 ? words : words + printed(" (%d)", n);
    }
    void add(const std::string& gate, const slo_verdict& v) {
        const std::string of =
            joined({gate, "slo=\"", once(gate, str(v.objective.text())), "\"} "});
        fill(measured_, "llmbench_slo_measured{of}{value}\n",
             {{"of", of}, {"value", number(v.measured)}});
        fill(estimates_, "llmbench_slo_estimate{of}{value}\n",
             {{"of", of}, {"value", number(v.estimate.value)}});
        fill(limits_, "llmbench_slo_limit{of}{value}\n",
             {{"of", of}, {"value", number(v.limit)}});
    }
    void add(const std::string& gate, const capacity_ends& found) {
        fill(loads_, "llmbench_capacity{gate}end=\"low\"} {low}\n"
             "llmbench_capacity{gate}end=\"high\"} {high}\n",
             {{"gate", gate}, {"low", number(found.low)}, {"high", number(found.high)}});
    }
    void add(const std::string& gate, const metric_row& r) {
        for (const row_statistic& s : row_statistics)
            fill(latencies_, "llmbench_latency_seconds{gate}metric=\"{metric}\","
                 "statistic=\"{statistic}\"} {value}\n",
                 {{"gate", gate}, {"metric", metric_name(r.metric)}, {"statistic", s.name},
                  {"value", number(r.*s.value)}});
    }

    std::map<std::string, int> written_{};
    std::string measured_{}, estimates_{}, limits_{}, loads_{}, latencies_{};
};
/// Returns OpenMetrics text (version 1.0, SI units), for GitLab's metrics report among others.
inline std::string open_metrics(const vector<gate_report>& gates) {
    metrics_lines lines;
    for (const gate_report& g : gates) lines.add(g);
    return lines.text();
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
