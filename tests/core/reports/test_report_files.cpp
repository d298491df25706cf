// Reports, whole: what is written to the console and into files, held against tests/golden/.
#include "llmbench.hpp"
#include "core/stored/stored.hpp"
#include "core/reports/ci_files.hpp"
#include "core/reports/console.hpp"
#include "core/reports/result_json.hpp"
#include "extensions/compare/core/reports.hpp"
#include "extensions/faults/core/reports.hpp"
#include "support/golden.hpp"
#include "support/sample_comparison.hpp"
#include "support/sample_gates.hpp"
#include "support/server_pages.hpp"
#include "support/texts.hpp"

#include <set>
#include <sstream>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace sample_gates;
using namespace texts;

namespace {

/// The gate whose objectives stand in lines of their own, wherever they stand here.
test_gate placed_gate(const std::string& name, const slo_list& slos) {
    test_gate g = sample_gates::sampled_gate(name, slos);
    int line = 20;
    g.what = with_judging(g.what, [&](planned_judging& j) {
        for (slo& s : j.slos)
            if (s.at.line > 0) s.at = {"gates.cpp", line++};
    });
    g.measured.slos = g.what.judged->slos;
    g.took_s = 4.5;
    return g;
}

/// A queue that came and went, and one preemption in the second repeat.
void report_itself(repeat_data& d) {
    const long long from = d.window.from_ns(), to = d.window.to_ns();
    sample_pages::report(d, server_quantity::waiting, {0, 1, 6, 2, 0, 0});
    sample_pages::report(d, server_quantity::running, {0, 2, 4, 4, 3, 0});
    const double preempted = d.index;
    sample_pages::report(d, server_quantity::preemptions, {0, 0, 0, 0, preempted, preempted});
    sample_pages::report(d, server_quantity::queue_time, {0, 0.1, 0.5, 0.9, 1, 1});
    sample_pages::count(d, server_quantity::queue_time, {0, 2, 8, 14, 18, 20});
    sample_pages::report(d, server_quantity::requests_done, {50, 52, 58, 64, 68, 70});
    sample_pages::report(d, server_quantity::generation_tokens, {0, 50, 100, 150, 190, 260});
    d.server.selectors = {"x{y=\"z\"}"};
    d.window = time_interval::between(from, to);
    for (std::size_t i = 0; i < d.server.readings.size(); ++i) {
        page_reading& r = d.server.readings[i];
        r.at_ns = from + (to - from) * static_cast<long long>(i) / 5;
        r.began = 1767322801.25;
        r.named = {static_cast<double>(i) / 2};
    }
}

/// Every verdict there is, odd names, a miss that is only noted, what a server tells of itself, a
/// refusal, a gate that was skipped.
test_gates many_gates() {
    test_gates gates;
    gates.push_back(placed_gate("chat stays interactive", {mean(ttft) <= 100_ms}));
    gates.push_back(placed_gate("100 %, <fast> & \"cheap\": |all|",
                                {mean(ttft) <= 100_ms, mean(tpot) <= 9_ms, mean(e2e) <= 190_ms,
                                 advisory(p50(e2e) <= 50_ms), max(queued_requests) <= 8,
                                 preemptions <= 0, max(server_metric("x{y=\"z\"}")) <= 3}));
    for (repeat_data& d : gates.back().measured.candidate) report_itself(d);
    gates.push_back(placed_gate("nothing answered", {p50(ttft) <= 1_s}));
    for (repeat_data& d : gates.back().measured.candidate)
        for (record& r : d.records) {
            r.status = request_status::connect;
            r.error = "cannot connect: Connection refused";
        }
    gates.push_back(placed_gate("conversations over a prefix cache", {p50(ttft) <= 1_s}));
    gates.back().what = with_traffic(gates.back().what, [&](planned_traffic& t) { t.stride = 2; });
    for (repeat_data& d : gates.back().measured.candidate)
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            d.records[i].turn = static_cast<int>(i % 2);
            d.records[i].prompt_tokens = 100;
            d.records[i].cached_tokens = d.records[i].turn * 50;
        }
    for (test_gate& g : gates) judge(g);
    gates[1].what.test_case = "cheap, \"fast\"";
    const auto taken = std::make_shared<taken_profile>();
    taken->start = {"POST /start_profile", "answered HTTP 200", "@on `it`", true, true};
    taken->stop = {"POST /stop_profile", "answered HTTP 200", "", true, true};
    taken->load_s = 5.0123;
    taken->requests = 41;
    taken->files = "it is in /tmp/<p>, as VLLM_TORCH_PROFILER_DIR says";
    gates[1].profile = taken;
    gates.push_back(refused_gate());
    gates.back().what.name = "unsound";
    gates.push_back(refused_gate("no server at LLMBENCH_URL", gate_outcome::skipped));
    gates.back().what.name = "without a server";
    return gates;
}

/// Of each method the numbers of one objective: those of the others are as many, under the same names.
std::string with_inputs_once(const std::string& json) {
    std::istringstream lines(json);
    std::set<std::string> shown;
    std::string out, method, end;
    for (std::string line; std::getline(lines, line);) {
        const bool is_left_out = !end.empty();
        if (line == end) end.clear();
        if (is_left_out) continue;
        if (line.find("\"method\": ") != std::string::npos) method = line;
        if (const std::size_t at = line.find("\"inputs\": {"); at != std::string::npos && !shown.insert(method).second) {
            end = line.substr(0, at) + "},";
            line += "},";
        }
        out += line + "\n";
    }
    return out;
}

progress_facts middle_of_a_gate() {
    progress_facts f;
    f.stage = "repeat 2 of 2-5";
    f.elapsed_s = 21.4;
    f.least_s = 36;
    f.max_s = 90;
    f.planned = 320;
    f.sent = 212;
    f.done = 200;
    f.failed = 2;
    f.ttft = 0.0873;
    f.tpot = 0.01234;
    f.slos = 3;
    f.decided = 1;
    f.waits_for = {"p90(ttft) <= 300 ms", "mean(e2e) <= 2 s"};
    return f;
}

}  // namespace

TEST_CASE("what reports look like") {
    const test_gates gates = many_gates();
    std::string plain;
    for (const test_gate& g : gates) plain += console_text(g);
    golden::check("console.txt", plain + closing_text(gates) +
                                     last_line(gates, "llmbench-report", quiet_machine()));
    golden::check("console-styled.txt",
                  console_text(gates[1], {true, true}) + closing_text(gates, {true, true}));
    golden::check("summary.md", summary_md(gates));
    golden::check("junit.xml", golden::rounded(junit_xml(gates)));
    golden::check("annotations.txt", github_annotations(gates, ""));
    // A gate of each kind: what the others have is the same fields with other values.
    const test_gates kinds = {gates[1], gates[4], gates[5]};
    golden::check("metrics.txt", golden::rounded(open_metrics({gates[1], gates[2], gates[4], gates[5]})));
    golden::check("result.json",
                  golden::folded(with_inputs_once(golden::rounded(
                      result_json(kinds, quiet_machine(), {{0, 10, 30}, "00ff"}, 1)))));
}

TEST_CASE("Jenkins finds no dot in a class at which it would split a gate's name") {
    gate_report g;
    g.what.name = "carries 1.5 rps";
    g.refusal = "limits.total is 0 s";
    const std::string xml = junit_xml({g});
    CHECK(xml.find("<testsuite name=\"carries 1.5 rps\"") != std::string::npos);
    CHECK(xml.find("classname=\"carries 1\u20245 rps\"") != std::string::npos);
    CHECK(xml.find("classname=\"carries 1.5") == std::string::npos);
}

TEST_CASE("a result is read back as it was written") {
    const std::string json = result_json(many_gates(), quiet_machine(), {{0, 10, 30}, "00ff"}, 1);
    const past_result run = read_past_result(json, "x");
    CHECK(str(run.commit) == quiet_machine().commit);
    CHECK(str(run.started_at) == "2026-01-02T03:04:05Z");
    REQUIRE(run.gates.size() == 6);
    const past_gate& g = run.gates[1];
    CHECK(str(g.name) == many_gates()[1].what.name);
    CHECK(str(g.outcome) == "failed");
    CHECK(str(g.model) == "tiny");
    REQUIRE(g.slos.size() == 8);
    CHECK(str(g.slos[1].slo) == "mean(tpot) <= 9 ms");
    CHECK(g.slos[1].outcome == verdict::fail);
    CHECK(g.slos[1].at_most);
    CHECK(g.slos[1].limit == 0.009);
    CHECK(g.slos[1].estimate.low < g.slos[1].estimate.value);
    CHECK(g.slos[1].estimate.value < g.slos[1].estimate.high);
    CHECK(g.slos[2].outcome == verdict::inconclusive);
    CHECK(g.slos[3].advisory);
    CHECK(std::isnan(run.gates[2].slos[0].estimate.value));  // infinite: JSON has no such number
    CHECK(str(run.gates[4].outcome) == "refused");
    CHECK(run.gates[4].slos.empty());
    CHECK_THROWS_WITH_AS(read_past_result("{}", "old.json"),
                         "old.json is not a result of this schema (llmbench/result/2)",
                         std::invalid_argument);
}

TEST_CASE("the side of an objective that was read back is that of its limit") {
    const auto reported = [](const std::string& which) {
        return read_past_result(R"({"schema": "llmbench/result/2", "gates": [{"slos": [{"slo": "x",)"
                                R"("side": ")" + which + R"("}]}]})", "x").gates[0].slos[0].at_most;
    };
    CHECK(reported("at_most"));
    CHECK_FALSE(reported("at_least"));
}

// ---- progress ----------------------------------------------------------------------------------

TEST_CASE("the progress line says all there is, and leaves out what does not fit") {
    std::string lines;
    progress_facts f = middle_of_a_gate();
    for (const int failed : {2, 0}) {
        f.failed = failed;
        for (const std::size_t width : {0u, 120u, 79u, 60u, 40u, 10u}) {
            const std::string line = progress_line(f, width);
            CAPTURE(width);
            CHECK((width == 0 || line.size() <= width));
            lines += line + "\n";
        }
    }
    lines += progress_line(f, 0, {.unicode = true}) + "\n";
    f.phase = "warming up";
    lines += progress_line(f, 0) + "\n";
    f = {};
    f.phase = "waiting for the server";
    lines += progress_line(f, 80) + "\n";
    f = middle_of_a_gate();
    f.elapsed_s = f.max_s + 1;  // with the start of a server, which nobody planned
    lines += progress_line(f, 40) + "\n";
    f = middle_of_a_gate();
    f.planned = 0;  // a closed loop of some duration
    f.least_s = f.max_s = 0;
    f.tpot = not_a_number;
    f.decided = 0;
    f.waits_for.clear();
    lines += progress_line(f, 0) + "\n";
    golden::check("progress.txt", lines);
}

TEST_CASE("a line's width counts characters and not bytes") {
    const std::string line = progress_line(middle_of_a_gate(), 0, {.unicode = true});
    const std::size_t columns = columns_of(line);
    CHECK(columns < line.size());
    CHECK(progress_line(middle_of_a_gate(), columns, {.unicode = true}) == line);
    CHECK(progress_line(middle_of_a_gate(), columns - 1, {.unicode = true}).size() < line.size());
}

TEST_CASE("the stage of a gate names its repeat, pair or stage") {
    plan p = placed_gate("x", {mean(ttft) <= 100_ms}).what;
    CHECK(stage_text(p, 0, run_variant::candidate) == "repeat 1 of 2-5");
    p = with_judging(p, [&](planned_judging& j) { j.has_baseline = true; });
    CHECK(stage_text(p, 1, run_variant::baseline) == "pair 2 of 2-5, baseline");
    p = with_judging(p, [&](planned_judging& j) { j.has_baseline = false; });
    p = with_judging(p, [&](planned_judging& j) { j.first_repeats = j.max_repeats = 3; });
    CHECK(stage_text(p, 2, run_variant::candidate) == "repeat 3 of 3");
}

// ---- where colour and other characters are wanted ------------------------------------------------

TEST_CASE("colour is for terminals, unless somebody says otherwise") {
    const auto coloured = [](bool terminal, const char* no, const char* force, const char* term) {
        return style_of({terminal, no, force, term, "", "", ""}).colour;
    };
    CHECK(coloured(true, "", "", "xterm"));
    CHECK_FALSE(coloured(false, "", "", "xterm"));
    CHECK_FALSE(coloured(true, "1", "", "xterm"));
    CHECK_FALSE(coloured(true, "", "", "dumb"));
    CHECK(coloured(false, "", "1", ""));
    CHECK_FALSE(coloured(false, "", "0", ""));
    CHECK_FALSE(coloured(false, "1", "1", ""));
}

TEST_CASE("characters beyond ASCII are for locales that have them, LC_ALL before LANG") {
    const auto unicode = [](const char* all, const char* ctype, const char* lang) {
        return style_of({true, "", "", "xterm", all, ctype, lang}).unicode;
    };
    CHECK(unicode("", "", "en_US.UTF-8"));
    CHECK(unicode("", "", "C.utf8"));
    CHECK(unicode("", "", "de_DE.UTF-8@euro"));
    CHECK(unicode("", "C.UTF-8", "C"));
    CHECK_FALSE(unicode("C", "C.UTF-8", "en_US.UTF-8"));
    CHECK_FALSE(unicode("", "", ""));
    CHECK_FALSE(unicode("", "", "de_DE.ISO-8859-1"));
    const std::string ascii = console_text(many_gates()[1]);
    CHECK(columns_of(ascii) == ascii.size());
}

// ---- limits of those who show them ---------------------------------------------------------------

TEST_CASE("a summary stays below what a comment holds, the worst gates first and whole") {
    test_gates gates(400, many_gates()[0]);
    gates.push_back(many_gates()[1]);
    const std::string md = summary_md(gates);
    CHECK(md.size() <= summary_limit);
    CHECK(md.size() > summary_limit - 2000);
    CHECK(md.find("mean(tpot)") < 1000);
    CHECK(md.find(" of 401 gates are left out here") != std::string::npos);
    CHECK(md.substr(md.size() - 3) == "**\n");
    CHECK(summary_md({gates[0]}).find("left out") == std::string::npos);
    CHECK(summary_md(gates, {}, 0).size() < 400);  // one sentence
    const vector<comparison_report> comparisons(200, sample_comparison());
    comparisons_and_curves many(comparisons), one({comparisons[0]});
    const std::string tables = summary_md(gates, {&many});
    CHECK(tables.size() <= summary_limit);
    CHECK(tables.find(" of 200 comparisons and curves are left out here") != std::string::npos);
    CHECK(tables.find("**401 of 401 gates are left out here") != std::string::npos);
    CHECK(summary_md({gates[0]}, {&one}).find("left out") == std::string::npos);
}

TEST_CASE("of many gates those that did not pass are named at the end") {
    CHECK(closing_text({many_gates()[0]}).empty());
    const test_gates bad(25, many_gates()[4]);
    const std::string text = closing_text(bad);
    CHECK(text.find("\n25 gates: 25 refused\n") == 0);
    CHECK(std::count(text.begin(), text.end(), '\n') == 2 + 20 + 1);
    CHECK(text.find("  and 5 more\n") != std::string::npos);
}
