// 60 nights of a gate, with steps, trouble nights, marks and another machine: what was said each
// morning of a branch that changes nothing, and of main.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/described/verdict_text.hpp"
#include "core/stored/from_nights.hpp"
#include "core/reports/nights.hpp"
#include "support/golden.hpp"
#include "support/verdicts.hpp"

#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;
using namespace verdicts;

namespace {
const slo within_5 = mean(ttft) <= 1.05 * baseline;

struct night {
    int number;
    double level() const {  // 1 at first
        double l = 1;
        if (number >= 20) l *= 0.94;  // the server's new version
        if (number >= 32) l *= 1.08;  // somebody's change
        if (number >= 48) l *= 0.70;  // another machine
        return l;
    }
    double trouble() const { return number == 14 || number == 27 ? 1.15 : 1; }
    bool is_new_machine() const { return number >= 48; }
    std::string date() const {
        char at[40];
        std::snprintf(at, sizeof at, "2026-%02d-%02d", number / 28 + 1, number % 28 + 1);
        return at;
    }
};
history_note note_of(history_mark_kind kind, const std::string& at, const std::string& why) {
    history_note n;
    n.id = at + why;
    n.gate = "chat";
    n.mark = {kind, at, why, "me"};
    return n;
}
std::string said(const slo_verdict& v) {
    std::string words = verdict_text(v);
    if (std::isfinite(v.estimate.value))
        words += printed(" %.3f [%.3f, %.3f]", v.estimate.value, v.estimate.low, v.estimate.high);
    return words + (v.reason.empty() ? "" : ", " + str(v.reason));
}
}  // namespace

TEST_CASE("60 mornings") {
    cohort old{.gate = "chat", .accelerators = "1 x NVIDIA H100 80GB HBM3"};
    cohort other = old;
    other.accelerators = "1 x NVIDIA H200";
    const std::map<std::string, cohort> known = {{id_of(old), old}, {id_of(other), other}};
    history_lines lines;
    generator random(2026);
    std::string out, history;
    for (int i = 0; i < 60; ++i) {
        const night n{i};
        const cohort& in = n.is_new_machine() ? other : old;
        const auto drawn = [&](double trouble) {
            const double effect = std::exp(0.008 * random.normal());
            std::vector<double> ms;
            for (int k = 0; k < 3; ++k)
                ms.push_back(100 * n.level() * trouble * effect *
                             std::exp(0.005 * random.normal()));
            return ms;
        };
        const auto verdict_of = [&](const std::vector<double>& ms, bool appends) {
            measurement m = measured(repeats_with_ttft(ms), {within_5});
            m.history = history_terms_of(lines, in, known, {within_5},
                                         {.folder = "perf-history", .appends = appends});
            gate_report g;
            static_cast<terms&>(g.judged_by) = m;
            g.judged_by.slos = {within_5};
            for (const std::string& line : nights_lines(g)) history = line;
            return judged(m, within_5);
        };
        const std::vector<double> tonight = drawn(n.trouble());
        const slo_verdict of_main = verdict_of(tonight, true);
        history_run r;
        r.id = "run" + std::to_string(i);
        r.at = n.date() + "T02:15:04Z";
        r.gate = "chat";
        r.cohort = id_of(in);
        r.commit = printed("%08x", 0xe2bbe02aU + 77777U * static_cast<unsigned>(i));
        r.outcome = "passed";
        r.watched = {{"server", i < 20 ? "vLLM 0.32.0" : "vLLM 0.33.0"}};
        r.values = {{"mean(ttft)", tonight}};
        for (double& x : r.values[0].repeats) x /= 1000;
        lines.runs.push_back(r);
        if (i == 30)
            lines.notes.push_back(
                note_of(history_mark_kind::leave_out, night{27}.date(), "the room was hot"));
        if (i == 38)
            lines.notes.push_back(
                note_of(history_mark_kind::accept, night{32}.date(), "longer system prompt"));
        const slo_verdict of_branch = verdict_of(drawn(1), false);
        out += n.date() + "  main " + said(of_main) + "\n            branch " + said(of_branch) +
               "\n" + (i % 6 == 2 ? "            " + history + "\n" : "");
        CHECK(of_branch.outcome != verdict::fail);
    }
    golden::check("mornings.txt", out);
}
