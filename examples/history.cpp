// llmbench_history: what many runs say together, from their result.json files, without a server.
//   llmbench_history [--page history.html] [--smaller FILE] [--bigger FILE] result.json...
// --page     one self-contained page: a trend for each objective of each gate, run by run
// --smaller  the newest run as github-action-benchmark's customSmallerIsBetter (upper limits)
// --bigger   the same for what has a lower limit: customBiggerIsBetter
#define LLMBENCH_IMPLEMENT
#define LLMBENCH_NO_DOCTEST
#include "llmbench.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace llmbench;

namespace {

std::string number(double v, const char* format = "%.4g") {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, format, v);
    return buffer;
}
std::string escaped(const std::string& s) {
    std::string out;
    for (const char c : s)
        out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;"
             : c == '"' ? "&quot;" : std::string(1, c);
    return out;
}
std::string quoted(const std::string& s) {
    std::string out = "\"";
    for (const char c : s) {
        if (c == '"' || c == '\\') out += '\\';
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out + "\"";
}

/// How a metric is best told: a factor on SI, and its unit.
struct unit_of_metric { double scale; std::string name; };
unit_of_metric unit_of(const past_slo& s) {
    const std::string m = s.metric;
    if (s.relative) return {1, "x baseline"};
    if (m == "error_rate" || m == "goodput") return {100, "%"};
    if (m == "request_throughput") return {1, "req/s"};
    if (m.find("throughput") != std::string::npos || m.find("speed") != std::string::npos)
        return {1, "tok/s"};
    return m == "server_metric" ? unit_of_metric{1, ""} : unit_of_metric{1e3, "ms"};
}

struct run_of_file { std::string file; past_result result; };

/// One objective of one gate through all runs; a run without it leaves a hole.
struct trend {
    std::string gate, slo;
    std::vector<std::pair<std::size_t, past_slo>> points{};  // by the run's number
};

std::vector<trend> trends_of(const std::vector<run_of_file>& runs) {
    std::vector<trend> trends;
    for (std::size_t i = 0; i < runs.size(); ++i)
        for (const past_gate& g : runs[i].result.gates)
            for (const past_slo& s : g.slos) {
                const std::string gate = g.name, slo = s.slo;
                auto at = std::find_if(trends.begin(), trends.end(), [&](const trend& t) {
                    return t.gate == gate && t.slo == slo;
                });
                if (at == trends.end()) at = trends.insert(trends.end(), {gate, slo});
                at->points.push_back({i, s});
            }
    return trends;
}

std::string commit_of(const past_result& r) {
    const std::string whole = r.commit;
    return whole.empty() ? "unknown commit" : whole.substr(0, 10);
}

std::string plot(const trend& t, const std::vector<run_of_file>& runs) {
    const double width = 640, height = 150, left = 60, right = 10, top = 10, bottom = 20;
    const unit_of_metric unit = unit_of(t.points.back().second);
    double low = 0, high = 0;  // zero is always shown: a small change must look small
    for (const auto& [i, s] : t.points)
        for (const double v : {s.estimate.value, s.estimate.high, s.limit})
            if (std::isfinite(v)) high = std::max(high, v);
    if (high <= low) high = low + 1;
    const auto x = [&](std::size_t i) {
        const double n = static_cast<double>(std::max<std::size_t>(runs.size() - 1, 1));
        return left + (width - left - right) * static_cast<double>(i) / n;
    };
    const auto y = [&](double v) {
        return top + (height - top - bottom) * (1 - (v - low) / (1.05 * (high - low)));
    };
    std::string svg = "<svg viewBox=\"0 0 640 150\" role=\"img\" aria-label=\"" +
                      escaped(t.slo) + " over " + std::to_string(t.points.size()) + " runs\">\n";
    for (const double v : {0.0, high / 2, high})
        svg += "<line class=\"grid\" x1=\"60\" x2=\"630\" y1=\"" + number(y(v)) + "\" y2=\"" +
               number(y(v)) + "\"/><text x=\"54\" y=\"" + number(y(v) + 4) + "\">" +
               number(v * unit.scale, "%.3g") + "</text>\n";
    std::string line, limits;
    for (const auto& [i, s] : t.points) {
        const std::string at = number(x(i)) + ",";
        if (std::isfinite(s.limit))
            limits += (limits.empty() ? "" : " ") + at + number(y(s.limit));
        if (std::isfinite(s.estimate.value))
            line += (line.empty() ? "" : " ") + at + number(y(s.estimate.value));
    }
    svg += "<polyline class=\"limit\" points=\"" + limits + "\"/>\n<polyline class=\"line\" points=\"" +
           line + "\"/>\n";
    for (const auto& [i, s] : t.points) {
        const bool known = std::isfinite(s.estimate.value);
        const double at = y(known ? s.estimate.value : high);
        std::string label = commit_of(runs[i].result) + ", " + std::string(runs[i].result.started_at) +
                            ": " + to_string(s.outcome);
        if (known) label += ", " + number(s.estimate.value * unit.scale) + " " + unit.name;
        if (std::isfinite(s.estimate.low) && std::isfinite(s.estimate.high))
            svg += "<line class=\"" + std::string(to_string(s.outcome)) + "\" x1=\"" + number(x(i)) +
                   "\" x2=\"" + number(x(i)) + "\" y1=\"" + number(y(s.estimate.low)) + "\" y2=\"" +
                   number(y(s.estimate.high)) + "\"/>";
        svg += "<circle class=\"" + std::string(to_string(s.outcome)) + "\" cx=\"" + number(x(i)) +
               "\" cy=\"" + number(at) + "\" r=\"4\"><title>" + escaped(label) +
               "</title></circle>\n";
    }
    return svg + "</svg>\n";
}

std::string page_of(const std::vector<run_of_file>& runs) {
    std::string h = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1"><title>llmbench history</title>
<style>
:root{color-scheme:light dark;--ink:#1c2024;--dim:#5b6570;--line:#d8dde3;--back:#fff;--pass:#116329;
--fail:#b3261e;--wait:#8a5a00;--bad:#7a1fa2}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--dim:#a3adb8;--line:#3a424b;--back:#15181b;
--pass:#6fdd8b;--fail:#ff8a80;--wait:#f5c542;--bad:#d9a0f0}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:60rem;
margin:0 auto;padding:1rem}
h2{border-top:1px solid var(--line);padding-top:1rem}p{color:var(--dim)}
svg{width:100%;height:auto;stroke-width:2;fill:none}svg text{font-size:11px;fill:var(--dim);
text-anchor:end}.grid{stroke:var(--line);stroke-width:1}.line{stroke:var(--dim);stroke-width:1}
.limit{stroke:var(--fail);stroke-dasharray:5 4;stroke-width:1}
line.pass{stroke:var(--pass)}circle.pass{fill:var(--pass)}line.fail{stroke:var(--fail)}
circle.fail{fill:var(--fail)}line.inconclusive,line.skipped{stroke:var(--wait)}
circle.inconclusive,circle.skipped{fill:var(--wait)}line.invalid{stroke:var(--bad)}
circle.invalid{fill:var(--bad)}.scroll{overflow-x:auto}table{border-collapse:collapse}
td,th{text-align:left;padding:.2rem .75rem .2rem 0;border-bottom:1px solid var(--line)}
</style></head><body><h1>llmbench history</h1>
)";
    h += "<p>" + std::to_string(runs.size()) + " runs, oldest on the left. Dashed: the limit. A "
         "point's bar is the interval its verdict used.</p>\n";
    std::string gate;
    for (const trend& t : trends_of(runs)) {
        if (t.gate != gate) h += "<h2>" + escaped(gate = t.gate) + "</h2>\n";
        const std::string unit = unit_of(t.points.back().second).name;
        h += "<h3>" + escaped(t.slo) + (unit.empty() ? "" : " <small>[" + unit + "]</small>") +
             "</h3>\n" + plot(t, runs);
    }
    h += "<h2>Runs</h2>\n<div class=\"scroll\"><table><thead><tr><th>started</th><th>commit</th>"
         "<th>machine</th><th>gates</th></tr></thead><tbody>\n";
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        std::string gates;
        for (const past_gate& g : run->result.gates)
            gates += (gates.empty() ? "" : ", ") + std::string(g.name) + ": " +
                     std::string(g.outcome);
        h += "<tr><td>" + escaped(run->result.started_at) + "</td><td>" +
             escaped(commit_of(run->result)) + "</td><td>" + escaped(run->result.cpu) +
             "</td><td>" + escaped(gates) + "</td></tr>\n";
    }
    return h + "</tbody></table></div>\n</body></html>\n";
}

/// The objectives of one side: [{"name", "unit", "value", "range", "extra"}].
std::string benchmark_of(const past_result& run, bool smaller) {
    std::string out;
    for (const past_gate& g : run.gates)
        for (const past_slo& s : g.slos) {
            if (s.at_most != smaller || !std::isfinite(s.estimate.value)) continue;
            const unit_of_metric unit = unit_of(s);
            const double spread = (s.estimate.high - s.estimate.low) / 2 * unit.scale;
            out += (out.empty() ? "\n  " : ",\n  ");
            out += "{\"name\": " + quoted(std::string(g.name) + ": " + std::string(s.slo)) +
                   ", \"unit\": " + quoted(unit.name) +
                   ", \"value\": " + number(s.estimate.value * unit.scale, "%.9g");
            if (std::isfinite(spread)) out += ", \"range\": \"\u00B1 " + number(spread) + "\"";
            out += ", \"extra\": " + quoted(std::string("verdict: ") + to_string(s.outcome) +
                                            ", limit: " + number(s.limit * unit.scale) + " " +
                                            unit.name) + "}";
        }
    return "[" + out + "\n]\n";
}

void write(const std::string& file, const std::string& text) {
    std::ofstream out(file, std::ios::binary);
    out << text << std::flush;
    if (!out) throw std::runtime_error(file + " cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
    std::string page, smaller, bigger;
    std::vector<run_of_file> runs;
    try {
        for (int i = 1; i < argc; ++i) {
            const std::string a = argv[i];
            std::string* into = a == "--page" ? &page : a == "--smaller" ? &smaller
                              : a == "--bigger" ? &bigger : nullptr;
            if (into && i + 1 < argc) *into = argv[++i];
            else if (a.rfind("--", 0) != 0) runs.push_back({a, read_result(a)});
            else throw std::invalid_argument(a + " is no option, or its file is missing");
        }
        if (runs.empty() || (page + smaller + bigger).empty())
            throw std::invalid_argument(std::string("usage: ") + argv[0] +
                                        " [--page FILE] [--smaller FILE] [--bigger FILE] "
                                        "result.json...");
        std::sort(runs.begin(), runs.end(), [](const run_of_file& a, const run_of_file& b) {
            const std::string at = a.result.started_at, bt = b.result.started_at;
            return at != bt ? at < bt : a.file < b.file;
        });
        if (!page.empty()) write(page, page_of(runs));
        if (!smaller.empty()) write(smaller, benchmark_of(runs.back().result, true));
        if (!bigger.empty()) write(bigger, benchmark_of(runs.back().result, false));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "llmbench_history: %s\n", e.what());
        return 2;
    }
    return 0;
}
