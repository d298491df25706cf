// the console
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/metric/words.hpp"
#include "core/judging/calibrated.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/words.hpp"
#include "core/capacity/found.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/console_style.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/profile.hpp"
#include "core/reports/words.hpp"

#include <algorithm>  // max, min
#include <cmath>  // isnan
#include <string>
#include <string_view>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The table of a calibration run.
inline std::string calibration_text(const gate_report& g) {
    std::size_t width = 0;
    for (const calibrated& c : g.calibration) width = std::max(width, c.what.text().size());
    const char* unit = g.what.has_baseline ? "pairs" : "repeats";
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
                       c.suggestion.c_str());
    }
    return out;
}

/// What a search found: its line, and each probe where there was an interval to be found.
inline std::string search_text(const gate_report& g) {
    const load_curve& c = g.figures.search;
    if (c.empty() || !g.what.search.to_the_interval) return {};
    std::string out = "  " + c.line + "\n";
    for (std::size_t i = 0; i < c.points.size(); ++i)
        out += printed("    %2zu. ", i + 1) + probe_text(c.unit, c.points[i].what) + "\n";
    for (const std::string& words : {c.flat, c.fault, g.under.stopped})
        if (!words.empty()) out += "  " + words + "\n";
    return out;
}

/// A verdict's words in its colour, behind its mark where those can be shown.
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

/// The block that closes a gate on the console.
inline std::string console_text(const gate_report& g, const console_style& style = {}) {
    const std::string title = g.what.name + ": " + to_string(g.outcome);
    std::string out = "\n" + styled(verdict_like(g.outcome), title, style) + "\n";
    if (!g.refusal.empty()) return out + "  " + g.refusal + "\n";
    out += search_text(g);
    std::size_t width = 0;
    for (const slo_verdict& v : g.verdicts)
        width = std::max(width, std::min<std::size_t>(v.what.text().size(), 60));
    for (const slo_verdict& v : g.verdicts) {
        const std::string line = verdict_line(v, width);
        const std::size_t word = std::min(line.find(' '), line.size());
        out += "  " + styled(v.outcome, line.substr(0, word), style) + line.substr(word) + "\n";
        if (!v.advice.empty()) out += "                advice: " + str(v.advice) + "\n";
    }
    if (!g.calibration.empty()) out += "\n" + calibration_text(g);
    int name = 15;
    for (std::size_t i = 0; i < g.figures.table_rows; ++i)
        name = std::max(name, static_cast<int>(
            std::string_view(metric_name(g.figures.metrics[i])).size()));
    out += printed("\n  %-*s %10s %10s %10s %10s %10s\n", name,
                   g.figures.search.tables_at().c_str(), "mean", "p50", "p90", "p99", "max");
    for (std::size_t i = 0; i < g.figures.table_rows; ++i) {
        const metric_row& r = g.figures.candidate.distributions[i].row;
        out +=
            printed("  %-*s %10s %10s %10s %10s %10s\n", name, metric_name(r.metric),
                    time_text(r.mean).c_str(), time_text(r.p50).c_str(), time_text(r.p90).c_str(),
                    time_text(r.p99).c_str(), time_text(r.max).c_str());
    }
    out += printed("  %s %s, %s\n", throughput_kind(g),
                   throughput_text(g, g.figures.candidate).c_str(),
                   status_text(g.figures.candidate).c_str());
    if (!g.figures.baseline.empty())
        out += "  baseline: " + status_text(g.figures.baseline) + "\n";
    for (const std::string& note : notes_on(g)) out += "  " + note + "\n";
    if (g.profile.wanted) out += "  " + profile_text(g.profile) + "\n";
    return out + "  client: " + client_text(g) + "\n" + others_text(g);
}

/// The last word where there were several gates: how many ended how, and which did not pass.
inline std::string closing_text(const std::vector<gate_report>& gates,
                                const console_style& style = {}) {
    const auto why = [](const gate_report& g) {
        return g.beside.empty() ? std::string() : ": " + g.beside;
    };
    if (gates.size() == 1 && !gates[0].beside.empty())
        return "\n" + gates[0].what.name + why(gates[0]) + "\n";
    if (gates.size() < 2) return {};
    std::string counts, names;
    std::size_t named = 0, left = 0;
    for (const gate_outcome c : worst_first) {
        std::size_t n = 0;
        for (const gate_report& g : gates) {
            if (g.outcome != c) continue;
            ++n;
            if (c == gate_outcome::passed) continue;
            if (++named > 20) ++left;
            else names += "  " + styled(verdict_like(c), to_string(c), style) + "  " +
                          g.what.name + why(g) + "\n";
        }
        if (n > 0) counts += printed("%s %zu %s", counts.empty() ? "" : ",", n, to_string(c));
    }
    if (left > 0) names += printed("  and %zu more\n", left);
    return printed("\n%zu gates:%s\n", gates.size(), counts.c_str()) + names;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
