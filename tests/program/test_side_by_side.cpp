// Two runs on one page, as `llmbench show A B --page` has them.
#include "program/side_by_side.hpp"

#include "support/texts.hpp"
#include "support/timelines.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace llmbench::detail;
using texts::count;
using texts::holds;
using texts::refusal_of;
using texts::replaced;
using timelines::answered;
using timelines::repeat_of;

namespace {

// A gate of all verdicts whose name is markup, a refused one, and one that was skipped.
const char* const marked_up = "100 %, <fast> & \"cheap\": |all|";
std::string golden_run() { return texts::content_of("golden/result.json"); }

run_side run_of(const std::string& json, const std::string& gate = "") {
    run_side r = run_side_of(json, "a/result.json", gate);
    r.folder = "a";
    return r;
}
/// The first of them, by another name, with its first objective and the one on errors.
run_side chat_of(const std::string& json) {
    run_side r = run_of(json, marked_up);
    llmbench::past_gate& g = r.gates[0].judged;
    g.name = "chat stays interactive";
    g.outcome = "passed";
    g.slos = {g.slos.front(), g.slos.back()};
    return r;
}
void add_requests(gate_side& g, double ttft_ms) {
    const repeat_list repeats({repeat_of({answered(0, ttft_ms), answered(100, 2 * ttft_ms)})});
    g.ttft = distribution_of(metric_id::ttft, repeats);
    g.tpot = distribution_of(metric_id::tpot, repeats);
}

}  // namespace

TEST_CASE("every gate of both runs is there, with both verdicts, values and their ratio") {
    run_side a = chat_of(golden_run()), b = a;
    llmbench::past_slo s = a.gates[0].judged.slos[0];
    const auto shown = [&] {
        b.gates[0].judged.slos = {s, a.gates[0].judged.slos[1]};
        return side_by_side_html(a, b);
    };
    REQUIRE(str(s.slo) == "mean(ttft) <= 100 ms");
    s.outcome = llmbench::verdict::fail;
    s.measured *= 1.25;
    s.reason = "of <b>course</b>";
    const std::string page = shown();
    CHECK(holds(page, "mean(ttft)"));
    CHECK(holds(page, "1.250 x<div>25.0 % worse</div>"));
    CHECK(holds(page, "80 ms"));
    CHECK(holds(page, "100 ms"));
    CHECK(count(page, "#icon-fail") == 1);
    CHECK(holds(page, "B, mean(ttft): of &lt;b&gt;course&lt;/b&gt;."));
    CHECK(holds(side_by_side_html(b, a), "0.800 x<div>20.0 % better</div>"));
    // Zero errors in both are the same, and no ratio.
    CHECK(holds(page, ">same<"));
    // Of a throughput less is worse.
    s.slo = "advisory(output_throughput >= 5 tok/s)";
    s.at_most = false;
    s.advisory = true;
    CHECK(words_of(s).statistic == "output_throughput");
    CHECK(words_of(s).limit == ">= 5 tok/s, advisory");
    CHECK(count(shown(), "no such objective") == 2);
    s.slo = "mean(ttft) <= <i>9</i>";
    s.at_most = true;
    CHECK_FALSE(holds(shown(), "<i>"));
}

TEST_CASE("two objectives on one statistic have a row each") {
    run_side a = chat_of(golden_run()), b = a;
    llmbench::past_slo hard = a.gates[0].judged.slos[0], wish = hard;
    wish.slo = "advisory(mean(ttft) <= 50 ms)";
    wish.advisory = true;
    wish.outcome = llmbench::verdict::fail;
    a.gates[0].judged.slos = {hard, wish};
    b.gates[0].judged.slos = {wish, hard};  // in another order
    const std::string page = side_by_side_html(a, b);
    CHECK(count(page, "&lt;= 50 ms, advisory") == 1);
    CHECK(count(page, ">&lt;= 100 ms<") == 1);
    CHECK(count(page, "#icon-fail\"/></svg>fail") == 2);
    CHECK_FALSE(holds(page, "A &lt;="));
    // Where a limit has changed, the statistic says which belong together.
    hard.slo = "mean(ttft) <= 120 ms";
    b.gates[0].judged.slos = {hard};
    CHECK(holds(side_by_side_html(a, b), "A &lt;= 100 ms; B &lt;= 120 ms"));
}

TEST_CASE("a difference to a baseline is shown as one, and two of them by what one has more") {
    const std::string run = replaced(
        replaced(golden_run(), R"("relative_to_baseline": false,)",
                 R"("relative_to_baseline": false, "difference_to_baseline": true, "factor": 1,)"),
        "mean(ttft) <= 100 ms", "mean(ttft) <= baseline + 100 ms");
    run_side a = chat_of(run), b = a;
    llmbench::past_slo s = a.gates[0].judged.slos[0];
    REQUIRE(s.difference);
    CHECK(words_of(s).statistic == "mean(ttft) - baseline");
    CHECK(words_of(s).limit == "<= baseline + 100 ms");
    CHECK(value_words(s, 0.002) == "+2 ms");
    CHECK(change_words(s, 0.005, 0.002) == "+3 ms");
    llmbench::past_slo later = s;
    later.measured += 0.001;
    b.gates[0].judged.slos = {later};
    CHECK(holds(side_by_side_html(a, b), "+1 ms<div>worse</div>"));
    CHECK(holds(side_by_side_text(a, b), "+80 ms"));
    s.slo = "mean(of_users) <= baseline + 5";
    CHECK(value_words(s, 2.5) == "+2.5");
}

TEST_CASE("two runs as tables: both folders, verdicts and values, with ratios") {
    run_side a = chat_of(golden_run()), b = a;
    b.folder = "later";
    b.gates[0].judged.outcome = "failed";
    llmbench::past_slo slower = b.gates[0].judged.slos[0];
    slower.measured *= 1.25;
    b.gates[0].judged.slos = {slower};
    add_requests(a.gates[0], 50);
    add_requests(b.gates[0], 60);
    const std::string text = side_by_side_text(a, b);
    CAPTURE(text);
    CHECK(text.find("A: a\nB: later\n") == 0);
    CHECK(holds(text, "chat stays interactive: A passed, B failed\n"));
    CHECK(holds(text, "mean(ttft)"));
    CHECK(holds(text, "80 ms pass"));
    CHECK(holds(text, "1.250 x"));
    CHECK(holds(text, "p99 ttft"));
    CHECK(holds(text, "1.200 x"));
    CHECK(holds(text, "p99 tpot"));
    // Without the requests of one there are the objectives alone.
    a.gates[0].ttft = a.gates[0].tpot = {};
    CHECK_FALSE(holds(side_by_side_text(a, b), "p99 t"));
    b.gates[0].judged.name = "another";
    CHECK(refusal_of([&] { side_by_side_text(a, b); }).find("have no gate in common") !=
          std::string::npos);
}

TEST_CASE("all gates of a real file; what its texts are is no markup") {
    const run_side a = run_of(golden_run()), b = a;
    CHECK(a.gates.size() == 3);
    const std::string page = side_by_side_html(a, b);
    CHECK(count(page, "<section>") == 3);
    CHECK(count(page, "Scenario: no difference.") == 3);
    CHECK(count(page, "Server: no difference.") == 3);
    CHECK(holds(page, "Run: no difference."));
    CHECK(holds(page, "100 %, &lt;fast&gt; &amp; &quot;cheap&quot;"));
    CHECK_FALSE(holds(page, "<fast>"));
    CHECK(holds(page, "inconclusive"));
    // A refused gate says why.
    CHECK(holds(page, "A has no curve: "));
    CHECK(count(page, "src=") + count(page, "<link") == 0);
    CHECK(holds(page, "content=\"default-src 'none';"));
}

TEST_CASE("what differs in scenario, server and run is named, and nothing else") {
    const std::string old = golden_run();
    const run_side a = chat_of(old);
    run_side b = a;
    b.gates[0].server[1] = "http://<other>:8000";
    b.gates[0].scenario[1] = "";
    b.facts[2] = "another CPU";
    const std::string page = side_by_side_html(a, b);
    CHECK(holds(page, "http://&lt;other&gt;:8000"));
    CHECK(holds(page, ">URL</th>"));
    CHECK(holds(page, ">load</th>"));
    CHECK(holds(page, "another CPU"));
    CHECK_FALSE(holds(page, ">workload</th>"));
    CHECK_FALSE(holds(page, ">commit</th>"));
    // Every field that is compared is one of the file, under its name.
    const std::string schema = texts::content_of("../ci/result.schema.json");
    const auto check_names = [&](const auto& facts) {
        for (const compared_fact& f : facts)
            CHECK_MESSAGE(holds(schema, '"' + std::string(f.field) + '"'), f.field);
    };
    check_names(facts_of_run);
    check_names(facts_of_scenario);
    check_names(facts_of_server);
}

TEST_CASE("curves of both runs stand over each other, with the limits that are near") {
    run_side a = chat_of(golden_run()), b = a;
    add_requests(a.gates[0], 50);
    add_requests(b.gates[0], 60);
    const std::string page = side_by_side_html(a, b);
    CHECK(count(page, "<figure>") == 2);
    CHECK(count(page, "\"A\"],[") == 2);
    CHECK(count(page, "\"B\"],[") == 2);
    CHECK(holds(page, "B / A: p50 1.200 x, p90 1.200 x, p99 1.200 x"));
    CHECK(holds(page, "[\"limit\",[\"mean \\u003c= 100 ms\"]"));
    // One of them alone.
    a.gates[0].ttft = a.gates[0].tpot = {};
    a.gates[0].no_curves = "a/records.jsonl is not there";
    const std::string half = side_by_side_html(a, b);
    CHECK(count(half, "<figure>") == 2);
    CHECK(count(half, "\"A\"],[") == 0);
    CHECK_FALSE(holds(half, "B / A: "));
    CHECK(holds(half, "A has no curve: a/records.jsonl is not there."));
}

TEST_CASE("gates that only one run has are named; two runs without a common gate are refused") {
    run_side a = run_of(golden_run()), b = a;
    a.gates.resize(2);
    b.gates.erase(b.gates.begin());
    const std::string page = side_by_side_html(a, b);
    CHECK(holds(page, "Only A has the gates &quot;100 %, &lt;fast&gt; &amp; "));
    CHECK(holds(page, "Only B has the gates &quot;without a server&quot;."));
    CHECK(count(page, "<section>") == 1);
    a.gates.resize(1);
    CHECK(refusal_of([&] { side_by_side_html(a, b); }).find(
              "have no gate in common: the first has \"" + std::string(marked_up) + "\", the second") !=
          std::string::npos);
}

TEST_CASE("a file that cannot be shown is refused in a sentence") {
    const auto refused = [](const std::string& json, const std::string& gate = "") {
        return refusal_of([&] { run_of(json, gate); });
    };
    const std::string run = golden_run();
    CHECK(refused(replaced(run, "llmbench/result/2", "llmbench/result/3")) ==
          "a/result.json is not a result of this schema (llmbench/result/2)");
    CHECK(refused("{}") != "");
    CHECK(refused(run, "other").find("a/result.json has no measured gate \"other\": it has \"100 %, ") ==
          0);
    const std::string rehearsed = R"({"schema": "llmbench/result/2",
        "gates": [{"name": "x", "outcome": "skipped", "rehearsal": {"model": "m"}}]})";
    CHECK(refused(rehearsed) == "a/result.json has no measured gate: it has \"x\" (a rehearsal)");
}
