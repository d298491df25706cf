// the console: gates, and the progress line
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/outcome.hpp"
#include "core/described/described.hpp"
#include "core/described/limits.hpp"
#include "core/described/verdict_text.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/figures/rows.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/tables.hpp"
#include "core/reports/text.hpp"

#include <algorithm>  // max, min
#include <cmath>  // isnan
#include <string>
#include <string_view>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

struct console_style {
    bool colour = false;   // ANSI escapes
    bool unicode = false;  // UTF-8
    bool verbose = false;  // also the lines that no verdict depends on: LLMBENCH_VERBOSE
};
struct console_facts {
    bool terminal = false;
    std::string no_color{}, clicolor_force{}, term{}, lc_all{}, lc_ctype{}, lang{};
};
inline console_style style_of(const console_facts& c) {
    const std::string& locale = !c.lc_all.empty() ? c.lc_all : !c.lc_ctype.empty() ? c.lc_ctype
                                                                                   : c.lang;
    std::string charset = locale.substr(std::min(locale.find('.'), locale.size()));
    charset = charset.substr(0, charset.find('@'));
    const bool forced = !c.clicolor_force.empty() && c.clicolor_force != "0";
    return {c.no_color.empty() && (forced || (c.terminal && c.term != "dumb")),
            same_ignoring_case(charset, ".utf-8") || same_ignoring_case(charset, ".utf8"),
            false};
}

/// Returns "mean(tpot) <= 25_ms" for "mean(tpot) <= 25 ms". Names in quotes stay.
inline std::string written_in_code(const std::string& words) {
    std::string out;
    bool is_quoted = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const char before = i > 0 ? words[i - 1] : ' ';
        if (words[i] == '"' && before != '\\') is_quoted = !is_quoted;
        const bool may_be_unit =
            words[i] == ' ' && before >= '0' && before <= '9' && !is_quoted;
        const std::string_view rest = std::string_view(words).substr(i + 1);
        bool is_unit = false;
        for (const written_unit& u : written_units) {
            const char next = rest.size() > u.name.size() ? rest[u.name.size()] : ')';
            if (is_unit || !may_be_unit || rest.substr(0, u.name.size()) != u.name) continue;
            is_unit = next == ')' || next == ' ' || next == ',';
            if (!is_unit) continue;
            out += u.literal;
            i += u.name.size();
        }
        if (!is_unit) out += words[i];
    }
    return out;
}
/// Returns `"chat"`, or `label("chat") && turns(2)`.
inline std::string selection_in_code(const selection& s) {
    const std::string all = selection_text(s);
    if (s.label.empty()) return all;
    const std::string name = json_quoted(str(s.label)), rest = all.substr(s.label.size() + 2);
    return rest.empty() ? name : "label(" + name + ")" + rest;
}
/// Returns the name with the quotes inside a series' name escaped.
inline std::string name_in_code(const statistic_data& s) {
    std::string name = str(s.name);
    const std::string series = "\"" + str(s.gauge) + "\"";
    if (const std::size_t at = name.find(series); at != name.npos)
        name.replace(at, series.size(), json_quoted(str(s.gauge)));
    return name;
}
/// Returns `mean(ttft).of("chat")` for the statistic named `mean(ttft) of "chat"`, and for a value
/// of the run `of(error_rate, "chat")`.
inline std::string statistic_in_code(const statistic_data& s) {
    std::string name = name_in_code(s);
    const std::string some = " of " + selection_text(s.which);
    const std::size_t at = name.rfind(some);
    if (is_all(s.which) || at == name.npos) return name;
    name.erase(at, some.size());  // of a drift it may be in the middle
    const bool is_of_run = s.kind == statistic_kind::value && s.metric != metric_id::goodput &&
                           !is_drift(s.metric);
    return filled(is_of_run ? "of({name}, {which})" : "{name}.of({which})",
                  {{"name", name}, {"which", selection_in_code(s.which)}});
}
/// Returns an objective as it stands in a gate, with the better limit if there is one.
inline std::string objective_in_code(const slo& s, const std::string& better) {
    const statistic_data& what = s.statistic;
    const bool is_of_two = what.parts.size() == 2;
    const std::string limit = (s.at_most ? "<= " : ">= ") +
                              (is_of_two ? digits_text(s.bound, 6) : limit_text(s));
    const std::string code = written_in_code(
        filled("{statistic} {limit}[ * {to}]",
               {{"statistic", statistic_in_code(is_of_two ? what.parts[0] : what)},
                {"limit", better.empty() ? limit : better},
                {"to", is_of_two ? statistic_in_code(what.parts[1]) : ""}}));
    if (!s.is_advisory) return code;
    return filled(s.advisory_until.empty() ? "advisory({code})" : "({code}).until(\"{day}\")",
                  {{"code", code}, {"day", s.advisory_until}});
}
/// Returns a calibrated gate's objectives with the suggested limits, as a line to paste.
inline std::string line_to_paste(const vector<calibrated>& rows) {
    std::string all;
    for (const calibrated& c : rows)
        fill(all, "{,}{code}", {{"code", objective_in_code(c.objective, suggestion_of(c))}});
    return joined({".slos = {", all, "},"});
}

/// Why a calibration has no noise of an objective.
inline const char* why_without_noise(const slo& s) {
    const metric_id m = s.statistic.metric;
    return is_request_fraction(m) ? "judged on counts"
           : is_drift(m)          ? "judged within each repeat"
           : is_difference(s)     ? "the noise of a difference is not measured"
           : is_of_server(m)      ? "the noise of the server's own numbers is not measured"
                                  : "without a finite value in every repeat";
}
inline std::string noted(const std::string& words) {
    return wrapped("  " + words, console_columns, 6) + "\n";
}
inline std::string calibration_text(const gate_report& g) {
    std::size_t width = 0;
    for (const calibrated& c : g.calibration) width = std::max(width, c.objective.text().size());
    std::string out = printed("  calibration over %zu %ss\n  %-*s %11s %10s %15s  %s\n",
                              g.figures.candidate.repeats.size(),
                              to_string(g.what.judged->counted_in()), static_cast<int>(width), "",
                              "typical", "noise sd", "headroom / sd",
                              "a limit that would seldom be inconclusive");
    for (const calibrated& c : g.calibration) {
        out += printed("  %-*s ", static_cast<int>(width), c.objective.text().c_str());
        if (std::isnan(c.sd)) {
            out += joined({why_without_noise(c.objective), "\n"});
            continue;
        }
        const std::string value = value_text(c.objective, c.estimate);
        out += printed("%11s %8.2f %% %15.1f  %s\n", value.c_str(), c.sd * 100, c.headroom_sd,
                       is_missed(c) ? "MISSED: its limit stays" : suggestion_of(c).c_str());
    }
    return out + noted("to paste: " + line_to_paste(g.calibration));
}

/// Returns the result and the probes of a search for an interval, "" without one.
inline std::string search_text(const gate_report& g) {
    const auto& c = g.figures.search;
    if (!c || !g.what.judged->search.to_the_interval) return {};
    return filled("  {line}\n{probes}[  {flat}\n][  {fault}\n][  {stopped}\n]",
                  {{"line", c->line}, {"probes", c->console()}, {"flat", c->flat},
                   {"fault", c->fault}, {"stopped", g.under.stopped}});
}

/// Returns text in a verdict's colour, after its symbol, if the console can show them.
inline std::string styled(verdict v, const std::string& words, const console_style& style) {
    const char* mark = name_at({"\u2713 ", "\u2717 ", "? ", "! ", "- "}, v);
    const char* colour = name_at(
        {"\x1b[32m", "\x1b[1;31m", "\x1b[33m", "\x1b[1;35m", "\x1b[2m"}, v);
    return joined({style.colour ? colour : "", style.unicode ? mark : "", words,
                   style.colour ? "\x1b[0m" : ""});
}

/// Widths of the columns of a gate's verdicts.
struct verdict_columns {
    std::size_t objective = 0, measured = 0;
};
inline verdict_columns columns_of(const vector<slo_verdict>& verdicts) {
    verdict_columns c;
    for (const slo_verdict& v : verdicts) {  // longer texts are not aligned
        if (const std::size_t n = v.objective.text().size(); n <= 32)
            c.objective = std::max(c.objective, n);
        if (const std::size_t n = parts_of(v, 0).measured.size(); n <= 32)
            c.measured = std::max(c.measured, n);
    }
    return c;
}
/// Returns a verdict's line: verdict, objective, measured value, interval. Under it stands its
/// basis unless it is a plain pass.
inline std::string verdict_lines_in_short(const slo_verdict& v, const verdict_columns& c) {
    const std::size_t indent = 14;
    const verdict_parts p = parts_of(v, c.objective);
    const auto without_end = [](std::string text) {
        return text.erase(text.find_last_not_of(' ') + 1);
    };
    const std::size_t padding = c.measured - std::min(c.measured, p.measured.size());
    const std::string found = without_end(p.measured + std::string(padding + 2, ' ') + p.interval);
    const std::string name = without_end(p.name), start(indent, ' ');
    std::string line = without_end(p.name + "  " + found);
    if (columns_of(line) > console_columns)
        line = wrapped(name, console_columns, indent) + "\n" +
               wrapped(start + found, console_columns, indent);
    // An interval beside the measured value stands with the value that it is of.
    std::string more = joined_texts({is_beside_interval(v) ? p.typical : "", p.reason}, "; ");
    if (v.outcome == verdict::invalid || v.outcome == verdict::skipped)  // nothing is shown
        more = joined_texts({p.typical, p.room, p.reason}, "; ");
    else if (v.outcome != verdict::pass)
        more = joined_texts({p.typical, p.room, p.reason, p.smallest_miss, p.basis}, "; ");
    if (more.empty()) return line;
    if (begins_with_colons(more)) return line + "; " + more;  // never a command to GitHub's runner
    return line + "\n" + wrapped(start + more, console_columns, indent);
}
/// Returns a verdict's lines, with its first word coloured, and its advice.
inline std::string verdict_block(const slo_verdict& v, const verdict_columns& c,
                                 const console_style& style) {
    const std::string lines = style.verbose ? verdict_lines(v, c.objective)
                                            : verdict_lines_in_short(v, c);
    const std::size_t word = std::min(lines.find(' '), lines.size());
    const std::string before = style.unicode ? "    " : "  ";
    std::string out = "  " + styled(verdict_like(v), lines.substr(0, word), style);
    for (const char ch : lines.substr(word)) out += ch == '\n' ? "\n" + before : std::string(1, ch);
    if (v.advice.empty()) return out + "\n";
    const std::string indent(before.size() + (style.verbose ? 6 : 14), ' ');
    return out + "\n" +
           wrapped(indent + "advice: " + str(v.advice), console_columns, indent.size()) + "\n";
}
inline std::string latency_text(const gate_report& g) {
    const gate_figures& f = g.figures;
    report_table t{{f.tables_at()}};
    for (const row_statistic& s : row_statistics) t.head.push_back(s.name);
    for (std::size_t i = 0; i < f.table_rows; ++i)
        for (const auto& [seen, whose] : f.measured()) {
            const metric_row& r = seen.distributions[i].row;
            t.add({*whose ? "  baseline" : metric_name(r.metric)});
            for (const row_statistic& s : row_statistics) t.append({{r.metric, r.*s.value}});
        }
    return console_table(t, 15);
}
/// Returns the table of latencies, and that of labels if there are any.
inline std::string tables_text(const gate_report& g) {
    const report_table labels = labels_table(g);
    return latency_text(g) + (labels.rows.empty() ? "" : console_table(labels));
}
/// A name that no line end, escape or command of GitHub's runner gets through, as on the page.
inline std::string name_on_console(const std::string& name) {
    const std::string shown = printable(name, name.size() * 4 + 4);
    return begins_with_colons(shown) ? "gate " + shown : shown;
}
/// Throughput and statuses of each variant.
inline vector<std::string> outcome_lines(const gate_report& g) {
    vector<std::string> lines;
    for (const auto& [seen, whose] : g.figures.measured())
        lines.push_back(filled("{whose}{kind} {throughput}, {status}",
                               {{"whose", whose}, {"kind", throughput_kind(g)},
                                {"throughput", throughput_text(g, seen)},
                                {"status", status_text(seen)}}));
    return lines;
}
inline std::string console_text(const gate_report& g, const console_style& style = {}) {
    const std::string title = filled("{name}: {headline}", {{"name", name_on_console(g.what.name)},
                                                            {"headline", headline_text(g)}});
    std::string out = filled("\n{title}\n",
                             {{"title", styled(verdict_like(headline_of(g)), title, style)}});
    if (!g.refusal.empty()) return filled("{title}  {refusal}\n",
                                          {{"title", out}, {"refusal", g.refusal}});
    out += search_text(g);
    const verdict_columns columns = columns_of(g.verdicts);
    std::string last;
    for (slo_verdict v : g.verdicts) {
        const std::string why = str(v.reason);
        if (why.size() > 40 && why == last) v.reason = "as above";
        last = why;
        out += verdict_block(v, columns, style);
    }
    if (!g.calibration.empty()) fill(out, "\n{calibration}",
                                     {{"calibration", calibration_text(g)}});
    out += tables_text(g);
    const auto note = [&](const char* format, std::initializer_list<named_filling> values) {
        const std::string words = filled(format, values);
        if (!words.empty()) out += noted(words);
    };
    for (const std::string& line : outcome_lines(g)) note("{line}", {{"line", line}});
    const server_notes wanted = style.verbose ? server_notes::all : server_notes::problems;
    for (const std::string& words : notes_with_past(g, wanted)) note("{words}", {{"words", words}});
    note("{profile}", {{"profile", g.profile_text()}});
    if (style.verbose || has_client_problem(g)) note(
        "client: {client}", {{"client", client_text(g)}});
    if (!style.verbose) note("{passed_checks}", {{"passed_checks", passed_checks_text(g)}});
    return out;
}

/// Returns the counts of several gates by outcome, and the gates that did not pass.
inline std::string closing_text(const vector<gate_report>& gates, const console_style& style = {}) {
    if (gates.size() == 1 && !gates[0].beside.empty())
        return filled("\n{name}: {beside}\n",
                      {{"name", name_on_console(gates[0].what.name)},
                       {"beside", gates[0].beside}});
    const std::string last = filled("[\n{rehearsal_of_all}\n]",
                                    {{"rehearsal_of_all", rehearsal_of_all(gates)}});
    if (gates.size() < 2) return last;
    std::string counts, names;
    std::size_t named = 0;
    const char* before = "";
    for (const gate_report* g : most_urgent_first(gates)) {
        const headline h = headline_of(*g);
        const char* name = to_string(h);
        if (name != std::string_view(before))
            fill(counts, "{,}{count} {name}", {{"count", count_of(gates, h)}, {"name", name}});
        before = name;
        const bool is_fine =
            h == headline::passed || h == headline::measured || h == headline::rehearsed;
        if (!is_fine && ++named <= 20)
            fill(names, "  {outcome}  {name}[: {beside}]\n",
                 {{"outcome", styled(verdict_like(h), name, style)},
                  {"name", name_on_console(g->what.name)}, {"beside", g->beside}});
    }
    return filled("\n{gates} gates: {counts}\n{names}[{has_more?}  and {more} more\n]{last}",
                  {{"gates", gates.size()}, {"counts", counts}, {"names", names},
                   {"has_more", named > 20}, {"more", named - 20}, {"last", last}});
}

/// The state of a running gate.
struct progress_facts {
    std::string stage{};                       // "repeat 2 of 2-5"
    std::string phase{};                       // "warming up"; "" while it measures
    double elapsed_s = 0;
    double least_s = 0, max_s = 0;            // of the whole gate; 0: not known
    long long planned = 0;                     // requests of this repeat; 0: not known
    long long sent = 0, done = 0, failed = 0;  // of this repeat
    double ttft = not_a_number, tpot = not_a_number;  // means of the answers so far
    std::size_t slos = 0;                      // objectives that the gate waits for
    std::size_t decided = 0;                   // of these
    vector<std::string> waits_for{};      // at the last analysis: "mean(tpot) <= 25 ms"
};

/// Returns one line of at most `width` columns (0: any); for that, parts are left out or shortened.
inline std::string progress_line(const progress_facts& f, std::size_t width,
                                 const console_style& style = {}) {
    const std::string stage = filled("{stage}[{has_both?}, ]{phase}",
                                     {{"stage", printable(f.stage)},
                                      {"has_both", !f.stage.empty() && !f.phase.empty()},
                                      {"phase", f.phase}});
    const bool is_planned = f.max_s > 0 && f.elapsed_s <= f.max_s;  // a start is in no plan
    const std::string time =
        filled("{elapsed:.0f}[{is_planned?} of {least}{most:.0f}] s",
               {{"elapsed", f.elapsed_s}, {"is_planned", is_planned},
                {"least", f.least_s < f.max_s ? printed("%.0f-", f.least_s) : ""},
                {"most", f.max_s}});
    const std::string of = f.planned > 0 ? printed("/%lld", f.planned) : "";
    std::string counts, in_short, which;
    if (f.planned > 0 || f.sent > 0) {
        counts = filled("{sent}{of} sent, {done} done, {failed} failed, {open} open",
                        {{"sent", f.sent}, {"of", of}, {"done", f.done}, {"failed", f.failed},
                         {"open", std::max(f.sent - f.done, 0ll)}});
        in_short = filled("{done}{of} done[, {failed} failed]",
                          {{"done", f.done}, {"of", of}, {"failed", f.failed}});
    }
    const bool has_ttft = !std::isnan(f.ttft);
    const std::string latency =
        filled("[{has_ttft?}ttft {ttft:t}][{has_tpot?}, tpot {tpot:t}]",
               {{"has_ttft", has_ttft}, {"ttft", f.ttft},
                {"has_tpot", has_ttft && !std::isnan(f.tpot)}, {"tpot", f.tpot}});
    const std::string decided = filled("[{all?}{decided} of {all} decided]",
                                       {{"all", f.slos}, {"decided", f.decided}});
    for (const std::string& w : f.waits_for) fill(which, "{is_first?waits for |, }{objective}",
        {{"is_first", which.empty()}, {"objective", w}});

    const auto fitted = [&](const std::string& reported) {
        std::string line = "  " + stage.substr(0, width > 2 ? width - 2 : std::string::npos);
        int parts = 0;
        for (const std::string& part : {time, reported, latency, decided, which}) {
            const std::string more = (style.unicode ? " \u00B7 " : " | ") + part;
            const bool fits = width == 0 || columns_of(line) + columns_of(more) <= width;
            if (part.empty() || !fits) continue;
            line += more;
            ++parts;
        }
        return std::pair(parts, line);
    };
    const auto [parts, line] = fitted(counts);
    const auto [parts_in_short, line_in_short] = fitted(in_short);
    const bool is_reported = line.find(counts) != std::string::npos;
    return is_reported && parts >= parts_in_short ? line : line_in_short;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
