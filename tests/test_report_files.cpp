// [P12] reports, whole: what is written to the console and into files, held against tests/golden/.
#include "support/golden.hpp"
#include "support/timelines.hpp"

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;

namespace {

gate_report judged_gate(const std::string& name, const slo_list& slos) {
    gate_report g;
    g.what = planned(
        scenario{.workload = synthetic{.prompt_tokens = fixed(10), .output_tokens = fixed(11)},
                 .arrivals = closed_loop(4),
                 .requests = 20,
                 .slos = slos,
                 .seed = 7},
        1);
    g.what.name = name;
    g.what.file = "gates.cpp";
    g.what.line = 12;
    g.target = {"endpoint", "http://127.0.0.1:8000", "tiny", "openai_chat"};
    int line = 20;
    for (slo& s : g.what.slos)
        if (s.at.line > 0) s.at = {"gates.cpp", line++};
    for (int i = 0; i < 2; ++i) {
        repeat_data d = steady_repeat(80);
        d.index = i;
        d.window_from_ns = at_ms(0);
        d.window_to_ns = at_ms(2200);
        g.measured.candidate.push_back(d);
    }
    g.measured.slos = g.what.slos;
    g.measured.rule.most = 2;
    g.took_s = 4.5;
    return g;
}
void judge_it(gate_report& g) {
    g.verdicts = judge_all(g.measured);
    g.self_check = self_check_of(g.measured);
    for (const slo_verdict& v : g.verdicts) {
        if (v.what.is_advisory) continue;
        if (v.outcome == verdict::fail) g.exit_class = 1;
        if (v.outcome == verdict::invalid) g.exit_class = 3;
    }
}

/// Every verdict there is, odd names, a miss that is only noted, a refusal, a gate that was skipped.
std::vector<gate_report> many_gates() {
    std::vector<gate_report> gates;
    gates.push_back(judged_gate("chat stays interactive", {mean(ttft) <= 100_ms}));
    gates.push_back(judged_gate("100 %, <fast> & \"cheap\": |all|",
                                {mean(ttft) <= 100_ms, mean(tpot) <= 9_ms, mean(e2e) <= 190_ms,
                                 advisory(p50(e2e) <= 50_ms)}));
    gates.push_back(judged_gate("nothing answered", {p50(ttft) <= 1_s}));
    for (repeat_data& d : gates.back().measured.candidate)
        for (record& r : d.records) {
            r.status = request_status::connect;
            r.error = "cannot connect: Connection refused";
        }
    for (gate_report& g : gates) judge_it(g);
    for (const int c : {2, 77}) {
        gate_report g;
        g.what.name = c == 2 ? "unsound" : "without a server";
        g.what.file = "gates.cpp";
        g.what.line = 40;
        g.refusal = c == 2 ? "the rate must be above 0" : "no server at LLMBENCH_URL";
        g.exit_class = c;
        gates.push_back(g);
    }
    return gates;
}

environment_facts known_environment() {
    environment_facts e;
    e.os = "Linux";
    e.cpu = "a fast one";
    e.compiler = "g++ 12";
    e.cores = 2;
    e.started_at = "2026-01-02T03:04:05Z";
    e.commit = "0123456789abcdef0123456789abcdef01234567";
    return e;
}

progress_facts middle_of_a_gate() {
    progress_facts f;
    f.stage = "repeat 2 of 2-5";
    f.elapsed_s = 21.4;
    f.least_s = 36;
    f.most_s = 90;
    f.planned = 320;
    f.sent = 212;
    f.done = 200;
    f.failed = 2;
    f.ttft = 0.0873;
    f.tpot = 0.01234;
    f.slos = 3;
    f.decided = {"mean(tpot) <= 25 ms: pass"};
    return f;
}

}  // namespace

TEST_CASE("what reports look like") {
    const std::vector<gate_report> gates = many_gates();
    std::string plain, styled_text;
    for (const gate_report& g : gates) {
        plain += console_text(g);
        styled_text += console_text(g, {true, true});
    }
    golden::check("console.txt", plain + reports_text("llmbench-report") + closing_text(gates));
    golden::check("console-styled.txt", styled_text + closing_text(gates, {true, true}));
    golden::check("summary.md", summary_md(gates));
    golden::check("junit.xml", golden::rounded(junit_xml(gates)));
    golden::check("annotations.txt", github_annotations(gates, ""));
    golden::check("metrics.txt", golden::rounded(open_metrics(gates)));
    golden::check("result.json", golden::rounded(result_json(gates, known_environment(),
                                                             {{0, 10, 30}, "00ff"}, 1)));
}

// ---- progress ----------------------------------------------------------------------------------

TEST_CASE("the progress line says all there is, and leaves out what does not fit") {
    std::string lines;
    progress_facts f = middle_of_a_gate();
    for (const std::size_t width : {0, 120, 79, 60, 10}) {
        const std::string line = progress_line(f, width, false);
        CAPTURE(width);
        CHECK((width == 0 || line.size() <= width));
        lines += line + "\n";
    }
    lines += progress_line(f, 0, true) + "\n";
    f.phase = "warming up";
    lines += progress_line(f, 0, false) + "\n";
    f = {};
    f.phase = "waiting for the server";
    lines += progress_line(f, 80, false) + "\n";
    f = middle_of_a_gate();
    f.planned = 0;  // a closed loop of some duration
    f.least_s = f.most_s = 0;
    f.tpot = not_a_number;
    f.decided.clear();
    lines += progress_line(f, 0, false) + "\n";
    golden::check("progress.txt", lines);
}

TEST_CASE("a line's width counts characters and not bytes") {
    const std::string line = progress_line(middle_of_a_gate(), 0, true);
    const std::size_t columns = columns_of(line);
    CHECK(columns < line.size());
    CHECK(progress_line(middle_of_a_gate(), columns, true) == line);
    CHECK(progress_line(middle_of_a_gate(), columns - 1, true).size() < line.size());
}

TEST_CASE("the stage of a gate names its repeat, pair or stage") {
    plan p = judged_gate("x", {mean(ttft) <= 100_ms}).what;
    CHECK(stage_text(p, 0, run_arm::candidate) == "repeat 1 of 2-5");
    p.has_baseline = true;
    CHECK(stage_text(p, 1, run_arm::baseline) == "pair 2 of 2-5, baseline");
    p.has_baseline = false;
    p.slos.clear();
    p.most_repeats = 3;
    CHECK(stage_text(p, 2, run_arm::candidate) == "repeat 3 of 3");
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
    std::vector<gate_report> gates(400, many_gates()[0]);
    gates.push_back(many_gates()[1]);
    const std::string md = summary_md(gates);
    CHECK(md.size() <= summary_limit);
    CHECK(md.size() > summary_limit - 2000);
    CHECK(md.find("mean(tpot)") < 1000);
    CHECK(md.find(" of 401 gates are left out here") != std::string::npos);
    CHECK(md.substr(md.size() - 3) == "**\n");
    CHECK(summary_md({gates[0]}).find("left out") == std::string::npos);
    CHECK(summary_md(gates, 0).size() < 400);  // one sentence
}

TEST_CASE("of many gates those that did not pass are named at the end") {
    CHECK(closing_text({many_gates()[0]}).empty());
    const std::vector<gate_report> bad(25, many_gates()[3]);
    const std::string text = closing_text(bad);
    CHECK(text.find("\n25 gates: 25 refused\n") == 0);
    CHECK(std::count(text.begin(), text.end(), '\n') == 2 + 20 + 1);
    CHECK(text.find("  and 5 more\n") != std::string::npos);
}
