// the console
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/metric/value_text.hpp"
#include "core/judging/calibrated.hpp"
#include "core/judging/outcome.hpp"
#include "core/described/described.hpp"
#include "core/described/verdict_text.hpp"
#include "core/capacity/found.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/figures/rows.hpp"
#include "core/reports/console_style.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/headlines.hpp"
#include "core/reports/labels.hpp"
#include "core/reports/profile.hpp"
#include "core/reports/rehearsal.hpp"
#include "core/reports/text.hpp"

#include <algorithm>  // max, min
#include <cmath>  // isnan
#include <string>
#include <string_view>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Returns "mean(tpot) <= 25_ms" for "mean(tpot) <= 25 ms".
inline std::string written_in_code(const std::string& words) {
    std::string out;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const bool may_be_unit =
            words[i] == ' ' && i > 0 && words[i - 1] >= '0' && words[i - 1] <= '9';
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
/// Returns a calibrated gate's objectives with the suggested limits, as a line to paste.
inline std::string line_to_paste(const std::vector<calibrated>& rows) {
    std::string all;
    for (const calibrated& c : rows) {
        slo plain = c.what;
        plain.is_advisory = false;
        const std::string better = suggestion_of(c);
        const std::string words =
            better.empty() ? str(plain.text()) : str(c.what.what.name) + " " + better;
        const std::string code = written_in_code(words);
        all += (all.empty() ? "" : ", ") + (c.what.is_advisory ? "advisory(" + code + ")" : code);
    }
    return ".slos = {" + all + "},";
}

/// Returns the table of a calibration run.
inline std::string calibration_text(const gate_report& g) {
    std::size_t width = 0;
    for (const calibrated& c : g.calibration) width = std::max(width, c.what.text().size());
    const char* unit = g.what.judged->has_baseline ? "pairs" : "repeats";
    std::string out = printed("  calibration over %zu %s\n  %-*s %11s %10s %15s  %s\n",
                              g.figures.candidate.repeats.size(), unit, static_cast<int>(width), "",
                              "typical", "noise sd", "headroom / sd",
                              "a limit that would seldom be inconclusive");
    for (const calibrated& c : g.calibration) {
        out += printed("  %-*s ", static_cast<int>(width), c.what.text().c_str());
        if (std::isnan(c.sd)) {
            out += "judged on counts, or without a finite value in every repeat\n";
            continue;
        }
        const std::string value = c.what.factor > 0 ? printed("%.3f x", c.estimate)
                                                    : value_text(c.what.what.metric, c.estimate);
        out += printed("%11s %8.2f %% %15.1f  %s\n", value.c_str(), c.sd * 100, c.headroom_sd,
                       suggestion_of(c).c_str());
    }
    return out + wrapped("  to paste: " + line_to_paste(g.calibration), console_columns, 6) + "\n";
}

/// Returns the result and the probes of a search for an interval, "" without one.
inline std::string search_text(const gate_report& g) {
    const load_curve& c = g.figures.search;
    if (c.empty() || !g.what.judged->search.to_the_interval) return {};
    std::string out = "  " + c.line + "\n";
    for (std::size_t i = 0; i < c.points.size(); ++i)
        out += printed("    %2zu. ", i + 1) + probe_text(c.unit, c.points[i].what) + "\n";
    for (const std::string& words : {c.flat, c.fault, g.under.stopped})
        if (!words.empty()) out += "  " + words + "\n";
    return out;
}

/// Returns text in a verdict's colour, after its symbol, if the console can show them.
inline std::string styled(verdict v, const std::string& words, const console_style& style) {
    struct dress { const char *mark, *colour; };
    const auto [mark, colour] = [&]() -> dress {
        switch (v) {
        case verdict::pass: return {"\u2713 ", "\x1b[32m"};
        case verdict::fail: return {"\u2717 ", "\x1b[1;31m"};
        case verdict::inconclusive: return {"? ", "\x1b[33m"};
        case verdict::invalid: return {"! ", "\x1b[1;35m"};
        case verdict::skipped: break;
        }
        return {"- ", "\x1b[2m"};
    }();
    const std::string marked = (style.unicode ? mark : "") + words;
    return style.colour ? colour + marked + "\x1b[0m" : marked;
}

/// Widths of the columns of a gate's verdicts.
struct verdict_columns {
    std::size_t objective = 0, measured = 0;
};
inline verdict_columns columns_of(const std::vector<slo_verdict>& verdicts) {
    verdict_columns c;
    for (const slo_verdict& v : verdicts) {  // longer texts are not aligned
        if (const std::size_t n = v.what.text().size(); n <= 32)
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
    const std::string found =
        without_end(p.measured + std::string(padding + 2, ' ') + p.interval);
    const std::string name = without_end(p.name), start(indent, ' ');
    std::string line = without_end(p.name + "  " + found);
    if (columns_of(line) > console_columns)
        line = wrapped(name, console_columns, indent) + "\n" +
               wrapped(start + found, console_columns, indent);
    std::string more = p.reason;
    if (v.outcome == verdict::invalid)  // its numbers show nothing
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
inline std::string latency_line(const char* name, int width, const metric_row& r) {
    return printed("  %-*s %10s %10s %10s %10s %10s\n", width, name, time_text(r.mean).c_str(),
                   time_text(r.p50).c_str(), time_text(r.p90).c_str(), time_text(r.p99).c_str(),
                   time_text(r.max).c_str());
}
/// Returns a line of a gate's block, wrapped.
inline std::string noted(const std::string& words) {
    return wrapped("  " + words, console_columns, 6) + "\n";
}

/// Returns the table of labels, "" if there are none.
inline std::string labels_text(const gate_report& g) {
    const labels_table t = labels_table_of(g);
    if (t.lines.empty()) return {};
    std::vector<int> widths(t.head.size(), 10);
    const auto widen = [&](const std::vector<std::string>& line) {
        for (std::size_t i = 0; i < line.size(); ++i)
            widths[i] = std::max(widths[i], static_cast<int>(line[i].size()));
    };
    widen(t.head);
    for (const auto& line : t.lines) widen(line);
    std::string out = "\n";
    const auto add = [&](const std::vector<std::string>& line) {
        out += printed("  %-*s", widths[0], line[0].c_str());
        for (std::size_t i = 1; i < line.size(); ++i)
            out += printed(" %*s", widths[i], line[i].c_str());
        out += "\n";
    };
    add(t.head);
    for (const auto& line : t.lines) add(line);
    return out;
}

/// Returns the console's report on a gate.
inline std::string console_text(const gate_report& g, const console_style& style = {}) {
    const std::string title = g.what.name + ": " + headline_text(g);
    std::string out = "\n" + styled(verdict_like(headline_of(g)), title, style) + "\n";
    if (!g.refusal.empty()) return out + "  " + g.refusal + "\n";
    out += search_text(g);
    const verdict_columns columns = columns_of(g.verdicts);
    std::string last;
    for (slo_verdict v : g.verdicts) {
        const std::string why = str(v.reason);
        if (why.size() > 40 && why == last) v.reason = "as above";
        last = why;
        out += verdict_block(v, columns, style);
    }
    if (!g.calibration.empty()) out += "\n" + calibration_text(g);
    int name = 15;
    for (std::size_t i = 0; i < g.figures.table_rows; ++i)
        name = std::max(name, static_cast<int>(
            std::string_view(metric_name(g.figures.metrics[i])).size()));
    out += printed("\n  %-*s %10s %10s %10s %10s %10s\n", name,
                   g.figures.search.tables_at().c_str(), "mean", "p50", "p90", "p99", "max");
    const variant_figures &mine = g.figures.candidate, &other = g.figures.baseline;
    for (std::size_t i = 0; i < g.figures.table_rows; ++i) {
        const metric_row& r = mine.distributions[i].row;
        out += latency_line(metric_name(r.metric), name, r);
        if (!other.empty()) out += latency_line("  baseline", name, other.distributions[i].row);
    }
    out += labels_text(g);
    const std::string kind = throughput_kind(g);
    out += noted(kind + " " + throughput_text(g, mine) + ", " + status_text(mine));
    if (!other.empty())
        out += noted("baseline: " + kind + " " + throughput_text(g, other) + ", " +
                     status_text(other));
    const server_notes wanted = style.verbose ? server_notes::all : server_notes::problems;
    for (const std::string& note : notes_on(g, wanted)) out += noted(note);
    if (g.judged_by.past)
        for (const std::string& line : g.judged_by.past->lines(g)) out += noted(line);
    if (g.profile.wanted) out += noted(profile_text(g.profile));
    if (style.verbose || has_client_problem(g)) out += noted("client: " + client_text(g));
    const std::string passed = passed_checks_text(g);
    return style.verbose || passed.empty() ? out : out + noted(passed);
}

/// Returns the counts of several gates by outcome, and the gates that did not pass.
inline std::string closing_text(const std::vector<gate_report>& gates,
                                const console_style& style = {}) {
    const auto why = [](const gate_report& g) {
        return g.beside.empty() ? std::string() : ": " + g.beside;
    };
    if (gates.size() == 1 && !gates[0].beside.empty())
        return "\n" + gates[0].what.name + why(gates[0]) + "\n";
    const std::string rehearsed = rehearsal_of_all(gates);
    const std::string last = rehearsed.empty() ? "" : "\n" + rehearsed + "\n";
    if (gates.size() < 2) return last;
    std::string counts, names;
    std::size_t named = 0, left = 0;
    for (const headline c : headlines) {
        std::size_t n = 0;
        for (const gate_report& g : gates) {
            if (headline_of(g) != c) continue;
            ++n;
            if (c == headline::passed || c == headline::measured || c == headline::rehearsed)
                continue;
            if (++named > 20) ++left;
            else names += "  " + styled(verdict_like(c), to_string(c), style) + "  " +
                          g.what.name + why(g) + "\n";
        }
        if (n > 0) counts += printed("%s %zu %s", counts.empty() ? "" : ",", n, to_string(c));
    }
    if (left > 0) names += printed("  and %zu more\n", left);
    return printed("\n%zu gates:%s\n", gates.size(), counts.c_str()) + names + last;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
