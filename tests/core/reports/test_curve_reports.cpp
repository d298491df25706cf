// A curve in reports: its ends, and words of others in it.
#include "llmbench.hpp"
#include "core/reports/ci_files.hpp"
#include "extensions/compare/core/reports.hpp"
#include "core/reports/page/page.hpp"
#include "core/reports/result_json.hpp"
#include "support/sample_gates.hpp"
#include "support/texts.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace sample_gates;
using namespace texts;

namespace {

/// A letter a load: h(olds), m(isses), or open.
curve_report loads(const std::string& shown) {
    curve_report c;
    for (std::size_t i = 0; i < shown.size(); ++i)
        c.loads.push_back({static_cast<double>(i + 1), "", shown[i] == 'h'   ? carried::holds
                                                           : shown[i] == 'm' ? carried::misses
                                                                             : carried::open,
                           "p90(ttft)"});
    return c;
}
void check_ends(const std::string& shown, double low, double high) {
    CAPTURE(shown);
    CHECK(ends_of(loads(shown)).low == low);
    CHECK(ends_of(loads(shown)).high == high);
}
slo_verdict verdict_on(const slo& s, verdict v) {
    slo_verdict d;
    d.objective = s;
    d.outcome = v;
    return d;
}
carried shown_by(const list<slo_verdict>& verdicts) {
    return judged_load_of(8, "", verdicts).shows;
}

}  // namespace

TEST_CASE("an end of the capacity rests on an unbroken row of loads") {
    check_ends("hhmm", 2, 3);
    check_ends("hh.m", 2, 4);
    check_ends("h.hm", 1, 4);   // what passes beyond an open load shows nothing
    check_ends("hmhm", 1, 4);   // nor does a miss below a load that passes
    check_ends("hm.m", 1, 4);
    check_ends(".hh", 0, infinity);
    check_ends("mm", 0, 1);
    check_ends("hh", 2, infinity);
    check_ends("...", 0, infinity);
    CHECK(limit_of(loads("hm")) == "p90(ttft)");
    CHECK(limit_of(loads("hh")) == "");
}

TEST_CASE("a load is carried where every objective that counts was shown to hold") {
    const slo ttft_ok = p90(ttft) <= 1_s, only_told = advisory(p90(ttft) <= 1_s);
    slo guard = error_rate <= 1_pct;
    guard.at = {};  // which nobody wrote
    const auto guarded = verdict_on(guard, verdict::pass);
    CHECK(shown_by({verdict_on(ttft_ok, verdict::pass), guarded}) == carried::holds);
    CHECK(shown_by({verdict_on(ttft_ok, verdict::inconclusive), guarded}) == carried::open);
    CHECK(shown_by({verdict_on(ttft_ok, verdict::invalid), guarded}) == carried::open);
    CHECK(shown_by({verdict_on(ttft_ok, verdict::skipped), guarded}) == carried::open);
    CHECK(shown_by({verdict_on(ttft_ok, verdict::pass), verdict_on(guard, verdict::fail)}) ==
          carried::misses);
    CHECK(shown_by({verdict_on(only_told, verdict::fail), guarded}) == carried::open);
    CHECK(shown_by({guarded}) == carried::open);
    CHECK(shown_by({}) == carried::open);
}

TEST_CASE("names of curves are words in every report") {
    const std::string hostile = "<img src=x> | \"a\", [l](http://x)\n=1+1";
    test_gate light = sampled_gate("light", {p50(ttft) <= 1_s});
    test_gate heavy = sampled_gate("heavy", {p50(ttft) <= 1_s});
    judge(light);
    judge(heavy);
    const vector<gate_report> gates = {light, heavy};
    curve_report c{hostile, "gates.cpp", 7, metric_id::capacity_in_rate, {}};
    for (const gate_report& g : gates)
        c.loads.push_back({c.loads.empty() ? 4.0 : 8.0, g.what.name});
    comparisons_and_curves told({}, {c});
    const std::string page = report_html(gates, quiet_machine(), {&told});
    CHECK_FALSE(holds(page, "<img"));
    CHECK(holds(page, "no capacity is shown, 2 loads"));
    CHECK(holds(page, "<a href=\"#gate-2\">8 req/s</a>"));
    CHECK(holds(summary_md(gates, {&told}), "### \\<img src=x\\> \\|"));
    const std::string csv = curves_csv({c}, gates);
    CHECK(holds(csv, "| \"\"a\"\", [l]"));
    CHECK(count(csv, "\n") >= 3);
    CHECK(parsed(result_json(gates, quiet_machine(), {}, 0, {&told})).get("curves").get(0).get(
              "name").to_str() == hostile);
}
