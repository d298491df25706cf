// llmbench_history: what many runs say together, from their result.json files, without a server.
//   llmbench_history [--page history.html] [--commits URL] [--smaller FILE] [--bigger FILE]
//                    result.json...
// --page     one self-contained page: which commit made what worse, and a trend for each objective
// --commits  what a commit's hash is appended to for a link, "https://github.com/me/it/commit/"
// --smaller  the newest run as github-action-benchmark's customSmallerIsBetter (upper limits)
// --bigger   the same for what has a lower limit: customBiggerIsBetter
// Each of the last two takes a step of its own with a `name` of its own. The action fails on an
// empty list: leave out the step of a side that has no limits. What was invalid is in neither,
// because it supports no number.
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
    if (s.relative) return {1, "x"};
    for (const char* fraction : {"error_rate", "goodput", "kv_cache_usage", "prefix_cache_hits"})
        if (m == fraction) return {100, "%"};
    for (const char* count : {"server_metric", "queued_requests", "running_requests",
                              "preemptions", "acceptance_length"})
        if (m == count) return {1, ""};
    if (m == "energy_per_token") return {1, "J"};
    if (m == "request_throughput") return {1, "req/s"};
    if (m == "capacity")
        return {1, std::string(s.slo).find("users") != std::string::npos ? "users" : "req/s"};
    if (m.find("throughput") != std::string::npos || m.find("speed") != std::string::npos)
        return {1, "tok/s"};
    return {1e3, "ms"};
}

struct run_of_file { std::string file; past_result result; };
struct point { std::size_t run; past_slo slo; };

/// One objective of one gate through the runs that have it, whatever its limit was at the time.
struct trend {
    std::string gate, what;  // "chat", "mean(tpot) <"
    std::vector<point> points{};
};

std::vector<trend> trends_of(const std::vector<run_of_file>& runs) {
    std::vector<trend> trends;
    for (std::size_t i = 0; i < runs.size(); ++i)
        for (const past_gate& g : runs[i].result.gates)
            for (const past_slo& s : g.slos) {
                const std::string gate = g.name, slo = s.slo;
                const std::string what = slo.substr(0, slo.rfind("= ")) + (s.relative ? "*" : "");
                const auto same = [&](const trend& t) {
                    return t.gate == gate && t.what == what && t.points.back().run != i;
                };
                auto at = std::find_if(trends.begin(), trends.end(), same);
                if (at == trends.end()) {  // after the last one of its gate
                    const auto last = std::find_if(trends.rbegin(), trends.rend(),
                                                   [&](const trend& t) { return t.gate == gate; });
                    at = trends.insert(last == trends.rend() ? trends.end() : last.base(),
                                       {gate, what});
                }
                at->points.push_back({i, s});
            }
    return trends;
}

bool judged(const point& p) {
    return p.slo.outcome != verdict::invalid && p.slo.outcome != verdict::skipped;
}
/// One interval lies wholly on the bad side of the other.
bool beyond(const past_slo& is, const past_slo& was) {
    return is.at_most ? is.estimate.low > was.estimate.high : is.estimate.high < was.estimate.low;
}

/// A run in which an objective got worse, or the newest one where it did so little by little.
struct turn {
    const trend* of;
    const point *before, *after;
    const point* mended = nullptr;  // the first that is as good as before
    bool slow = false;
};

/// What is still worse comes first, then the newest.
std::vector<turn> turns_of(const std::vector<trend>& trends) {
    std::vector<turn> turns;
    for (const trend& t : trends) {
        std::vector<const point*> points;
        for (const point& p : t.points)
            if (judged(p)) points.push_back(&p);
        double explained = 0;  // of the way from the first run to the newest, by single runs
        for (std::size_t i = 1; i < points.size(); ++i) {
            const past_slo &was = points[i - 1]->slo, &is = points[i]->slo;
            const bool fails = is.outcome == verdict::fail && was.outcome != verdict::fail;
            if (!fails && !beyond(is, was)) continue;
            const auto as_good = [&](const point* p) {
                return p->slo.outcome != verdict::fail && !beyond(p->slo, was);
            };
            const auto from = points.begin() + static_cast<std::ptrdiff_t>(i);
            const auto mended = std::find_if(from, points.end(), as_good);
            turns.push_back({&t, points[i - 1], points[i]});
            if (mended != points.end()) turns.back().mended = *mended;
            else explained += is.estimate.value - was.estimate.value;
        }
        if (points.size() < 3 || !beyond(points.back()->slo, points.front()->slo)) continue;
        const double way = points.back()->slo.estimate.value - points.front()->slo.estimate.value;
        if (std::abs(explained) < std::abs(way) / 2)
            turns.push_back({&t, points.front(), points.back(), nullptr, true});
    }
    std::sort(turns.begin(), turns.end(), [](const turn& a, const turn& b) {
        if (!a.mended != !b.mended) return !a.mended;
        if (a.slow != b.slow) return b.slow;
        return a.after->run != b.after->run ? a.after->run > b.after->run : a.of < b.of;
    });
    return turns;
}

// ---- words --------------------------------------------------------------------------------------

/// A page of runs, and how its commits are linked.
struct history {
    std::vector<run_of_file> runs{};
    std::string commits{};
};

std::string hash_of(const past_result& r) {
    const std::string whole = r.commit;
    return whole.empty() ? "no commit" : whole.substr(0, 8);
}
std::string day_of(const past_result& r) { return std::string(r.started_at).substr(0, 10); }

std::string commit_of(const history& h, std::size_t run) {
    const past_result& r = h.runs[run].result;
    const std::string text = "<code>" + escaped(hash_of(r)) + "</code>", whole = r.commit;
    if (h.commits.empty() || whole.empty()) return text;
    return "<a href=\"" + escaped(h.commits + whole) + "\">" + text + "</a>";
}

/// Large times read better in seconds.
unit_of_metric page_unit(const trend& t) {
    const unit_of_metric unit = unit_of(t.points.back().slo);
    const auto large = [](const point& p) {
        return judged(p) && std::max(p.slo.estimate.value, p.slo.limit) >= 10;
    };
    const bool seconds = unit.name == "ms" && std::any_of(t.points.begin(), t.points.end(), large);
    return seconds ? unit_of_metric{1, "s"} : unit;
}
std::string value_in(const unit_of_metric& unit, double v) {
    if (!std::isfinite(v)) return "no value";
    return number(v * unit.scale, "%.3g") + (unit.name.empty() ? "" : " " + unit.name);
}
std::string change_of(const past_slo& was, const past_slo& is) {
    if (unit_of(is).name == "%")
        return number(100 * (is.estimate.value - was.estimate.value), "%+.1f points");
    const double ratio = is.estimate.value / was.estimate.value;
    return std::isfinite(ratio) && ratio > 0 ? number(100 * (ratio - 1), "%+.0f %%") : "";
}

/// Verdicts differ in shape too: not everybody tells the colours apart.
std::string mark(const std::string& verdict, double x, double y, bool small = true) {
    const char* shape = "M-4 3.5L0-4L4 3.5z";  // invalid
    if (verdict == "skipped") shape = "M-4 0h8";
    if (verdict == "fail") shape = "M-4-4L4 4M-4 4L4-4";
    if (verdict == "pass") shape = "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z";
    if (verdict == "pass" && !small) shape = "M-5 .5l3.5 3.5 6-8";
    if (verdict == "inconclusive") shape = "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z";
    return "<path class=\"mark " + verdict + (small ? " small" : "") + "\" transform=\"translate(" +
           number(x) + " " + number(y) + ")\" d=\"" + shape + "\"/>";
}
std::string badge(const std::string& verdict, const std::string& text, bool small = false) {
    return "<b class=\"" + verdict + "\"><svg class=\"icon\" viewBox=\"-6 -6 12 12\" "
           "aria-hidden=\"true\">" + mark(verdict, 0, 0, small) + "</svg>" + escaped(text) + "</b>";
}

// ---- the page -----------------------------------------------------------------------------------

std::string plot(const history& h, const trend& t, const std::vector<turn>& turns) {
    const double width = 400, height = 160, left = 42, right = 10, top = 20, bottom = 38;
    const unit_of_metric unit = page_unit(t);
    // The axis covers a factor of two at least: a small change must look small.
    double low = INFINITY, high = 0;
    for (const auto& [run, s] : t.points)
        for (const double v : {s.estimate.value, s.estimate.low, s.estimate.high, s.limit})
            if (std::isfinite(v) && (judged({run, s}) || v == s.limit)) {
                low = std::min(low, v);
                high = std::max(high, v);
            }
    if (high <= 0) high = 1;
    low = std::min(low, high / 2);
    const double room = 0.06 * (high - low);
    high = unit.name == "%" ? std::max(high, std::min(high + room, 1.0)) : high + room;
    low = std::max(0.0, low - room);
    const double floor_y = height - bottom;
    const auto x = [&](std::size_t i) {
        const double n = static_cast<double>(std::max<std::size_t>(h.runs.size(), 2) - 1);
        return left + 6 + (width - left - right - 12) * static_cast<double>(i) / n;
    };
    const auto y = [&](double v) {
        return top + (floor_y - top) * (1 - (std::clamp(v, low, high) - low) / (high - low));
    };
    const point& newest = t.points.back();
    std::string svg = "<svg class=\"plot\" viewBox=\"0 0 400 160\" role=\"img\" aria-label=\"" +
                      escaped(newest.slo.slo) + " over " + std::to_string(t.points.size()) +
                      " runs, now " + value_in(unit, newest.slo.estimate.value) + "\">\n";
    // What is allowed lies on one side of the limit.
    const double good = newest.slo.at_most ? floor_y : top;
    std::string limits, lines, line;
    std::vector<std::pair<double, double>> edge;
    for (const auto& [run, s] : t.points)
        if (std::isfinite(s.limit)) edge.emplace_back(x(run), y(s.limit));
    if (edge.size() == 1) {  // a single run has a limit as well
        edge.emplace_back(std::min(edge[0].first + 12, width - right), edge[0].second);
        edge[0].first = std::max(edge[0].first - 12, left);
    }
    for (const auto& [at, limit] : edge) limits += number(at) + "," + number(limit) + " ";
    if (!limits.empty())
        svg += "<polygon class=\"allowed\" points=\"" + limits + number(edge.back().first) + "," +
               number(good) + " " + number(edge.front().first) + "," + number(good) +
               "\"/><polyline class=\"limit\" points=\"" + limits + "\"/>\n";
    for (const double v : {low, (low + high) / 2, high})
        svg += "<line class=\"grid\" x1=\"42\" x2=\"390\" y1=\"" + number(y(v)) + "\" y2=\"" +
               number(y(v)) + "\"/><text class=\"end\" x=\"37\" y=\"" + number(y(v) + 4) + "\">" +
               number(v * unit.scale, "%.3g") + "</text>";
    const auto finish_line = [&] {
        if (!line.empty()) lines += "<polyline class=\"line\" points=\"" + line + "\"/>\n";
        line.clear();
    };
    for (const point& p : t.points)
        if (judged(p) && std::isfinite(p.slo.estimate.value))
            line += number(x(p.run)) + "," + number(y(p.slo.estimate.value)) + " ";
        else
            finish_line();  // where nothing is known nothing is drawn
    finish_line();
    svg += lines;
    // The turns, newest first; names only where they do not lie on each other.
    std::vector<double> named;
    for (const turn& turned : turns) {
        if (turned.of != &t || turned.slow) continue;
        const double at = x(turned.after->run);
        svg += "<line class=\"turn\" x1=\"" + number(at) + "\" x2=\"" + number(at) +
               "\" y1=\"16\" y2=\"" + number(floor_y) + "\"/>";
        if (std::any_of(named.begin(), named.end(),
                        [&](double other) { return std::abs(other - at) < 130; }))
            continue;
        named.push_back(at);
        const char* side = at > width - 70 ? "end" : at < left + 70 ? "start" : "middle";
        svg += "<text class=\"name " + std::string(side) + "\" x=\"" + number(at) + "\" y=\"12\">" +
               escaped(hash_of(h.runs[turned.after->run].result) + " " +
                       change_of(turned.before->slo, turned.after->slo)) + "</text>";
    }
    const double half = std::max(2.0, (width - left) / static_cast<double>(2 * h.runs.size()));
    for (const point& p : t.points) {
        const past_slo& s = p.slo;
        const std::string outcome = to_string(s.outcome), at = number(x(p.run));
        const bool known = judged(p) && std::isfinite(s.estimate.value);
        if (known && std::isfinite(s.estimate.low) && std::isfinite(s.estimate.high))
            svg += "<line class=\"interval " + outcome + "\" x1=\"" + at + "\" x2=\"" + at +
                   "\" y1=\"" + number(y(s.estimate.low)) + "\" y2=\"" +
                   number(y(s.estimate.high)) + "\"/>";
        svg += mark(outcome, x(p.run), known ? y(s.estimate.value) : floor_y + 9);
        const past_result& r = h.runs[p.run].result;
        std::string words = hash_of(r) + ", " + std::string(r.started_at) + "\n" + outcome + ", " +
                            value_in(unit, s.estimate.value);
        if (std::isfinite(s.estimate.low) && std::isfinite(s.estimate.high))
            words += " [" + value_in(unit, s.estimate.low) + ", " +
                     value_in(unit, s.estimate.high) + "]";
        if (const std::string reason = s.reason; !reason.empty()) words += "\n" + reason;
        svg += "<rect x=\"" + number(x(p.run) - half) + "\" y=\"16\" width=\"" + number(2 * half) +
               "\" height=\"" + number(floor_y - 16) + "\"><title>" + escaped(words) +
               "</title></rect>\n";
    }
    return svg + "<text x=\"42\" y=\"154\">" + escaped(day_of(h.runs.front().result)) +
           "</text><text class=\"end\" x=\"390\" y=\"154\">" +
           escaped(day_of(h.runs.back().result)) + "</text></svg>\n";
}

/// One line of what got worse; `first` of its run, whose commit then stands before it.
std::string reported(const history& h, const turn& turned, std::size_t plot, bool first) {
    const past_slo &was = turned.before->slo, &is = turned.after->slo;
    const past_result& old_run = h.runs[turned.before->run].result;
    const past_result& new_run = h.runs[turned.after->run].result;
    const unit_of_metric unit = page_unit(*turned.of);
    const std::string from = commit_of(h, turned.before->run), to = commit_of(h, turned.after->run);
    std::string when, note;
    if (turned.slow) {
        when = "slowly<br><span class=\"dim\">since " + escaped(day_of(old_run)) + "</span>";
        note = "Little by little from " + from + " to " + to + ", in no single run";
    } else {
        when = first ? to + "<br><span class=\"dim\">" + escaped(day_of(new_run)) + "</span>" : "";
        note = "The run before was " + from;
        if (turned.mended) note += "; as good as before since " + commit_of(h, turned.mended->run);
    }
    if (std::string(old_run.cpu) != std::string(new_run.cpu))
        note += "; on another machine: " + escaped(new_run.cpu) + " instead of " +
                escaped(old_run.cpu);
    if (was.limit != is.limit) note += "; the limit was " + value_in(unit, was.limit);
    return "<li><p class=\"when\">" + when + "</p><p><a href=\"#plot-" + std::to_string(plot) +
           "\"><code>" + escaped(is.slo) + "</code></a> <span class=\"dim\">" +
           escaped(turned.of->gate) + "</span><br><span class=\"dim\">" + note +
           ".</span></p><p class=\"found\"><b>" + escaped(change_of(was, is)) + "</b> " +
           value_in(unit, was.estimate.value) + " &rarr; " + value_in(unit, is.estimate.value) +
           "<br>" + badge(to_string(is.outcome), to_string(is.outcome)) +
           (turned.mended ? ", mended" : "") + "</p></li>\n";
}

/// "failed: chat; invalid: saturated", or how many passed.
std::string outcome_of(const past_result& r) {
    std::string wrong;
    for (const past_gate& g : r.gates)
        if (const std::string outcome = g.outcome; outcome != "passed")
            wrong += (wrong.empty() ? "" : "; ") + outcome + ": " + std::string(g.name);
    if (!wrong.empty()) return wrong;
    return r.gates.size() == 1 ? "passed" : std::to_string(r.gates.size()) + " gates passed";
}
std::string class_of(const past_result& r) {
    std::string is = "pass";
    for (const past_gate& g : r.gates) {
        const std::string outcome = g.outcome;
        if (outcome == "failed" || outcome == "refused") return "fail";
        if (outcome != "passed" && is != "invalid") is = outcome;
    }
    return is;
}

std::string page_of(const history& h) {
    std::string page = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1"><title>llmbench history</title>
<style>
:root{color-scheme:light dark;--ink:#1a1f24;--dim:#56616c;--line:#dce1e7;--back:#fff;--pass:#0f6b4c;
--fail:#b3241c;--inconclusive:#8a5600;--invalid:#6f3fb0;--skipped:#56616c;--allowed:#e9f4ef}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--dim:#a3adb8;--line:#343b43;--back:#14171a;
--pass:#5fcfa4;--fail:#ff9086;--inconclusive:#f0b64c;--invalid:#c8a4f5;--skipped:#a3adb8;
--allowed:#1a2b26}}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;margin:0 auto;
max-width:76rem;padding:1.25rem 1rem 4rem;color:var(--ink);background:var(--back);
font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem;font-weight:650}
h2{font-size:1.25rem;margin:2.5rem 0 .25rem;padding-top:1.25rem;border-top:3px solid var(--line)}
p{margin:.25rem 0;text-wrap:pretty}a{color:inherit;text-underline-offset:.15em}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
font-size:.87em}
.dim{color:var(--dim);font-size:.87rem}b{font-weight:650}
:focus-visible{outline:2px solid var(--ink)}
.icon{width:1em;height:1em;vertical-align:-.1em;margin-right:.35em}
b.pass{color:var(--pass)}b.fail{color:var(--fail)}b.inconclusive{color:var(--inconclusive)}
b.invalid{color:var(--invalid)}b.skipped{color:var(--skipped)}
ol{list-style:none;margin:.75rem 0 0;padding:0;border-top:1px solid var(--line)}
li{display:grid;grid-template-columns:7.75rem minmax(0,1fr) auto;gap:0 1.25rem;padding:.5rem 0;
border-bottom:1px solid var(--line)}
li p{margin:0}.when,td code{white-space:nowrap}.found{text-align:right}
.found b:first-child{font-size:1.15rem;margin-right:.5em}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,22rem),1fr));gap:1.25rem}
figure{margin:.75rem 0 0;min-width:0;display:flex;flex-direction:column;justify-content:flex-end}
figcaption{display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 1rem}
.key b{margin-right:1em;white-space:nowrap}svg.plot{width:100%;height:auto;display:block}
svg text{font-size:11px;fill:var(--dim)}text.end{text-anchor:end}text.middle{text-anchor:middle}
svg .name{fill:var(--ink);font-weight:600}
.grid{stroke:var(--line)}.allowed{fill:var(--allowed)}rect{fill:transparent}
rect:hover{fill:var(--dim);opacity:.2}
.limit{fill:none;stroke:var(--ink);stroke-dasharray:3 2;stroke-width:1.2}
.line{fill:none;stroke:var(--dim);opacity:.6}.turn{stroke:var(--ink);stroke-dasharray:1 2}
.mark,.interval{stroke-width:2;fill:none}.interval{opacity:.45}
.small.inconclusive,.small.invalid,.small.skipped{fill:var(--back)}
.pass{stroke:var(--pass)}.small.pass{fill:var(--pass);stroke-width:0}.fail{stroke:var(--fail)}
.inconclusive{stroke:var(--inconclusive)}.invalid{stroke:var(--invalid)}
.skipped{stroke:var(--skipped)}
table{border-collapse:collapse;width:100%;margin-top:.75rem}
td,th{text-align:left;padding:.25rem 1rem .25rem 0;border-bottom:1px solid var(--line);
vertical-align:top}th{color:var(--dim);font-weight:400;font-size:.87rem}
td:first-child{white-space:nowrap}
@media(max-width:40rem){li{grid-template-columns:max-content minmax(0,1fr)}
li p:nth-child(2){grid-area:2/1/3/3}}
@media print{li,figure,tr{break-inside:avoid}}
</style></head><body><main>
)";
    const std::vector<trend> trends = trends_of(h.runs);
    const std::vector<turn> turns = turns_of(trends);
    const past_result& newest = h.runs.back().result;
    page += "<h1>" + badge(class_of(newest), "newest run: " + outcome_of(newest)) + "</h1>\n<p " +
            "class=\"dim\">" + commit_of(h, h.runs.size() - 1) + " of " + escaped(day_of(newest)) +
            ", " + escaped(newest.cpu) + "; " + std::to_string(h.runs.size()) + " runs since " +
            escaped(day_of(h.runs.front().result)) + "</p>\n<h2>" +
            (turns.empty() ? "Nothing got worse" : "What got worse") +
            "</h2>\n<p class=\"dim\">Runs whose interval lies wholly on the bad side of the one "
            "before, or whose verdict turned to fail. What is not mended comes first.</p>\n";
    const std::size_t shown = std::min<std::size_t>(turns.size(), 12);
    if (shown) page += "<ol>\n";
    for (std::size_t i = 0; i < shown; ++i) {
        const turn& now = turns[i];
        const bool first = i == 0 || turns[i - 1].slow || turns[i - 1].after->run != now.after->run;
        page += reported(h, now, static_cast<std::size_t>(now.of - trends.data()), first);
    }
    if (shown) page += "</ol>\n";
    if (shown < turns.size())
        page += "<p>and " + std::to_string(turns.size() - shown) + " more, marked below</p>\n";
    for (std::size_t i = 0; i < trends.size(); ++i) {
        const trend& t = trends[i];
        const point& last = t.points.back();
        const std::string outcome = to_string(last.slo.outcome);
        if (i == 0 || trends[i - 1].gate != t.gate) {
            page += (i ? "</div>\n<h2>" : "<h2>") + escaped(t.gate) + "</h2>\n";
            if (i == 0) {
                page += "<p class=\"dim key\">Oldest run on the left. ";
                for (const char* v : {"pass", "fail", "inconclusive", "invalid", "skipped"})
                    page += badge(v, v, true);
                page += "Bar: the verdict's interval. Dashed: the limit; shaded: what it "
                        "allows. Below the axis: runs without a value.</p>";
            }
            page += "<div class=\"plots\">\n";
        }
        page += "<figure id=\"plot-" + std::to_string(i) + "\"><figcaption><code>" +
                escaped(last.slo.slo) + "</code><span>" +
                badge(outcome, value_in(page_unit(t), last.slo.estimate.value)) +
                "</span></figcaption>\n" + plot(h, t, turns) + "</figure>\n";
    }
    page += std::string(trends.empty() ? "" : "</div>\n") + "<h2>Runs</h2>\n<table><thead><tr><th>"
            "started</th><th>commit</th><th>gates</th></tr></thead><tbody>\n";
    for (std::size_t i = h.runs.size(); i-- > 0;) {
        const past_result& r = h.runs[i].result;
        page += "<tr><td>" + escaped(std::string(r.started_at).substr(0, 16)) + "</td><td>" +
                commit_of(h, i) + "</td><td>" + badge(class_of(r), outcome_of(r));
        if (i && std::string(r.cpu) != std::string(h.runs[i - 1].result.cpu))
            page += " <span class=\"dim\">from here on " + escaped(r.cpu) + "</span>";
        page += "</td></tr>\n";
    }
    return page + "</tbody></table>\n</main></body></html>\n";
}

/// The objectives of one side: [{"name", "unit", "value", "range", "extra"}]. The action compares
/// by the ratio to the run before, and one error is infinitely more than none: so what it gets in
/// place of error_rate is the share of requests that were answered.
std::string benchmark_of(const past_result& run, bool smaller) {
    std::string out;
    for (const past_gate& g : run.gates)
        for (const past_slo& s : g.slos) {
            const bool errors = std::string(s.metric) == "error_rate";
            if ((s.at_most && !errors) != smaller || !std::isfinite(s.estimate.value)) continue;
            if (s.outcome == verdict::invalid) continue;
            const unit_of_metric unit = unit_of(s);
            const double value = errors ? 1 - s.estimate.value : s.estimate.value;
            const double spread = (s.estimate.high - s.estimate.low) / 2 * unit.scale;
            out += (out.empty() ? "\n  " : ",\n  ");
            out += "{\"name\": " + quoted(std::string(g.name) + ": " +
                                          (errors ? "answered" : std::string(s.slo))) +
                   ", \"unit\": " + quoted(unit.name) +
                   ", \"value\": " + number(value * unit.scale, "%.9g");
            if (std::isfinite(spread)) out += ", \"range\": \"\u00B1 " + number(spread) + "\"";
            out += ", \"extra\": " + quoted(std::string(s.slo) + ": " + to_string(s.outcome)) + "}";
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
    history all;
    try {
        for (int i = 1; i < argc; ++i) {
            const std::string a = argv[i];
            std::string* into = a == "--page" ? &page : a == "--smaller" ? &smaller
                              : a == "--bigger" ? &bigger
                              : a == "--commits" ? &all.commits : nullptr;
            if (into && i + 1 < argc) *into = argv[++i];
            else if (a.rfind("--", 0) != 0) all.runs.push_back({a, read_result(a)});
            else throw std::invalid_argument(a + " is no option, or its value is missing");
        }
        if (all.runs.empty() || (page + smaller + bigger).empty())
            throw std::invalid_argument(std::string("usage: ") + argv[0] +
                                        " [--page FILE] [--commits URL] [--smaller FILE] "
                                        "[--bigger FILE] result.json...");
        if (!all.commits.empty() && all.commits.rfind("http", 0) != 0)
            throw std::invalid_argument("--commits is \"" + all.commits + "\": it must be a URL");
        std::sort(all.runs.begin(), all.runs.end(), [](const run_of_file& a, const run_of_file& b) {
            const std::string at = a.result.started_at, bt = b.result.started_at;
            return at != bt ? at < bt : a.file < b.file;
        });
        const past_result& newest = all.runs.back().result;
        if (!page.empty()) write(page, page_of(all));
        if (!smaller.empty()) write(smaller, benchmark_of(newest, true));
        if (!bigger.empty()) write(bigger, benchmark_of(newest, false));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "llmbench_history: %s\n", e.what());
        return 2;
    }
    return 0;
}
