// Reports: what people and programs read.
#include "llmbench.hpp"
#include "core/stored/record_json.hpp"
#include "core/reports/ci_files.hpp"
#include "core/reports/console.hpp"
#include "core/reports/page/page.hpp"
#include "core/reports/page/verdicts.hpp"
#include "core/reports/result_json.hpp"
#include "support/full_record.hpp"
#include "support/markup.hpp"
#include "support/sample_gates.hpp"
#include "support/texts.hpp"
#include "support/timelines.hpp"
#include "support/verdicts.hpp"

#include <set>
#include <sstream>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace sample_gates;
using namespace timelines;
using namespace texts;

namespace {

const std::string hostile = "<b>&\"'|`*_[x](http://evil)]]> \\ \n\x01\xFF</b>";

/// Its objectives are met, missed, undecided and missed but only noted; the guard on errors comes
/// last.
test_gate sample_gate(const std::string& name = "chat stays interactive") {
    test_gate g = sample_gates::sampled_gate(name, {mean(ttft) <= 100_ms, mean(tpot) <= 9_ms,
                                         mean(e2e) <= 190_ms, advisory(p50(e2e) <= 50_ms)});
    judge(g);
    return g;
}
std::string serialized(const test_gates& gates) {
    return result_json(gates, quiet_machine(), {{0, 10, 30}, "00ff"}, 1);
}
double number(const picojson::value& v, const char* field) { return v.get(field).get<double>(); }
std::string words(const picojson::value& v, const char* field) {
    return v.get(field).get<std::string>();
}

std::string xml_flaw(std::string_view s) { return markup::flaw_of(s, markup::xml); }

}  // namespace

TEST_CASE("no line end, escape or command in a name reaches the console") {
    const std::string name = "::set-env name=PATH::/evil\n::error::\x1b[31mred\r##[group]";
    test_gate g = sample_gate(name), other = sample_gate("other");
    g.verdicts[0].objective = mean(ttft).of("a\n::add-mask::b\x1b[0m") <= 100_ms;
    const test_gates gates{g, other};
    vector<gate_report> reports = gates;
    reports[0].beside = "an assertion";
    for (const std::string& said :
         {console_text(g), console_text(g, {.verbose = true}), closing_text(reports),
          console_table({{name, "p50"}, 1, {{{name}, {"1"}}}})}) {
        CAPTURE(said);
        CHECK(said.find('\x1b') == said.npos);
        CHECK(said.find('\r') == said.npos);
        std::istringstream lines(said);
        for (std::string line; std::getline(lines, line);) CHECK_FALSE(begins_with_colons(line));
    }
}

// ---- JSON --------------------------------------------------------------------------------------

TEST_CASE("result.json survives hostile names and measurements without a value") {
    test_gate g = sample_gate(hostile);
    for (repeat_data& d : g.measured.candidate) d = repeat_of({failed(0), failed(1)});
    g.verdicts = judge_all(g.measured);
    const picojson::value v = parsed(serialized({g, refused_gate(hostile)}));
    const picojson::value& first = v.get("gates").get(0);
    CHECK(words(first, "name").find("<b>&\"'|`*_[x](http://evil)]]> \\ ") == 0);
    CHECK(first.get("candidate").get("ttft").get("mean").is<picojson::null>());
    CHECK(first.get("candidate").get("ttft").get("p50").is<picojson::null>());
    CHECK(number(first.get("candidate"), "error_rate") == 1);
    CHECK(number(first.get("candidate").get("statuses"), "timeout") == 2 * 2);
    CHECK(words(first.get("slos").get(0), "verdict") == "invalid");
    CHECK(first.get("slos").get(0).get("estimate").is<picojson::null>());
}

TEST_CASE("a file that programs read is UTF-8 whatever the gate is called") {
    const std::string odd = "caf\xC3\xA9 \xFF\xC3(\xE2\x82 end";
    record r;
    for (const std::string& text : {serialized({sample_gate(odd)}), record_json(r, odd)}) {
        CHECK(text.find("caf\xC3\xA9 ") != std::string::npos);
        CHECK(text.find('\xFF') == std::string::npos);
        CHECK(text.find("\xC3(") == std::string::npos);
        CHECK(text.find("\xE2\x82 end") == std::string::npos);
    }
}

TEST_CASE("a record is one line with its fields in order") {
    CHECK(
        record_json(full_records::full_record(), "chat") ==
        R"({"id":"llmbench-1c-0-17","gate":"chat","arm":"candidate","repeat":3,"phase":"measure",)"
        R"("scheduled_ns":9007199254740993,"dispatched_ns":9007199254740995,"connected_ns":9007199254740997,)"
        R"("sent_ns":9007199254740999,"first_token_ns":9007199254741001,"second_token_ns":9007199254741002,)"
        R"("first_answer_ns":9007199254741004,"last_token_ns":9007199254741003,"end_ns":9007199254741005,)"
        R"("prompt_tokens":17,"output_tokens":9,"token_source":"events","events":4,"first_event_tokens":2,)"
        R"("status":"ok","http_status":200,"finish_reason":"stop","error":null,"late_ns":1000003,)"
        R"("cached_tokens":16,"reasoning_tokens":6,"hidden_tokens":4,"conversation":9007199254740993,"turn":2,)"
        R"("reads":3,"first_read_events":2,"text_bytes":40,"most_prompt_tokens":90,"most_output_tokens":64,)"
        R"("choices":5,"length_forced":true,"asked_prompt_tokens":15,"shared_tokens":8,)"
        R"("opening_hash":"00000000000000ff","resends":1})"
        "\n");
}

TEST_CASE("a record has null where there is no time, status or reason") {
    record r;
    r.id = "x";
    r.scheduled_ns = 5;
    r.hidden_tokens = -1;
    CHECK(
        record_json(r, "g") ==
        R"({"id":"x","gate":"g","arm":"candidate","repeat":0,"phase":"measure",)"
        R"("scheduled_ns":5,"dispatched_ns":null,"connected_ns":null,"sent_ns":null,)"
        R"("first_token_ns":null,"second_token_ns":null,"first_answer_ns":null,"last_token_ns":null,"end_ns":null,)"
        R"("prompt_tokens":0,"output_tokens":0,"token_source":"events","events":0,"first_event_tokens":0,)"
        R"("status":"unsent","http_status":null,"finish_reason":null,"error":null,"late_ns":0,)"
        R"("cached_tokens":null,"reasoning_tokens":null,"hidden_tokens":null,"conversation":0,"turn":0,"reads":0,"first_read_events":0,)"
        R"("text_bytes":0,"most_prompt_tokens":0,"most_output_tokens":0,"choices":0,"resends":0})"
        "\n");
    CHECK(count(record_json(r, "two\nlines\r"), "\n") == 1);
    CHECK(words(parsed(record_json(r, "two\nlines\r")), "gate") == "two\nlines\r");
}

// ---- JUnit -------------------------------------------------------------------------------------

TEST_CASE("where inconclusive fails the build, every report has it red") {
    test_gate g = sample_gate();
    g.undecided_fails = true;
    g.verdicts[3].outcome = verdict::inconclusive;  // advisory: never red
    const std::string xml = junit_xml({g});
    CHECK(count(xml, "<failure type=\"slo\" message=\"INCONCLUSIVE ") == 1);
    CHECK(count(xml, "<failure ") == 2);
    CHECK(count(xml, "<skipped>") == 1);
    CHECK(xml.find("tests=\"5\" failures=\"2\" errors=\"0\" skipped=\"1\"") != std::string::npos);
    const std::string notes = github_annotations({g}, "");
    CHECK(count(notes, "::error ") == 2);
    CHECK(count(notes, "::warning ") == 1);
    CHECK(holds(summary_md({g}), "**\n\n**Some objectives are inconclusive, which fails this build.**"));
}

TEST_CASE("junit.xml is well-formed whatever the gates are called") {
    test_gate g = sample_gate(hostile);
    g.verdicts[0].reason = hostile;
    g.verdicts[0].outcome = verdict::fail;
    const std::string xml = junit_xml({g, refused_gate(hostile)});
    CHECK(xml_flaw(xml) == "");
    CHECK(xml.find("&lt;b&gt;&amp;&quot;&#39;|") != std::string::npos);
    CHECK(xml.find("<b>") == std::string::npos);
    CHECK(xml_flaw(junit_xml({})) == "");
}

// ---- Markdown -----------------------------------------------------------------------------------

TEST_CASE("a summary with inconclusive objectives says first what green does not mean") {
    const std::string warning =
        "**Some objectives are inconclusive: green does not mean shown.**\n\n";
    const std::string failed =
        "**Failed: chat stays interactive: mean(tpot) is 10 ms, the limit is 9 ms**\n\n";
    CHECK(summary_md({sample_gate()}).find(failed +
                                           "**Some objectives are inconclusive.**\n\n") == 0);
    test_gate g = sample_gate();
    g.verdicts[1].outcome = verdict::pass;
    g.outcome = gate_outcome::passed;
    CHECK(summary_md({g}).find("**Inconclusive: chat stays interactive: mean(e2e) is 180 ms, the "
                               "limit is 190 ms**\n\n" + warning) == 0);
    g = sample_gate();
    g.verdicts[2].objective.is_advisory = true;
    CHECK(summary_md({g}).find(warning) == std::string::npos);
    g = sample_gate();
    g.verdicts[2].outcome = verdict::pass;
    CHECK(summary_md({g}).find(warning) == std::string::npos);
}

TEST_CASE("a green summary begins with how many gates and objectives there are") {
    test_gate g = sample_gates::sampled_gate("g", {mean(ttft) <= 100_ms, mean(tpot) <= 11_ms});
    judge(g);
    CHECK(summary_md({g}).find("**The gate passed, with 2 objectives**\n\n### g") == 0);
    CHECK(summary_md({g, g}).find("**All 2 gates passed, with 4 objectives**\n\n") == 0);
    const test_gate skipped = refused_gate("no server", gate_outcome::skipped);
    CHECK(summary_md({g, skipped}).find("###") == 0);
}

TEST_CASE("a summary says what the gates cost in minutes") {
    test_gate g = sample_gate();
    CHECK_FALSE(holds(summary_md({g}), " minutes"));
    g.took_s = 100;
    CHECK(holds(summary_md({g}), "**\n\nThe gate took 1.7 minutes.\n\n### "));
    CHECK(holds(summary_md({g, g}), "The gates took 3.3 minutes.\n"));
    g.target.is_virtual = true;
    CHECK(holds(summary_md({g}), "The gate took 1.7 minutes of virtual time.\n"));
    gate_report rehearsed = g;
    rehearsed.rehearsal.model = "the default engine";
    // Its own sentence has the time.
    CHECK_FALSE(holds(summary_md({rehearsed}), " minutes"));
}

TEST_CASE("a red summary begins with what failed, in its units, beside what it is compared with") {
    test_gate g = sample_gate();
    slo_verdict v = verdicts::verdict_on_pairs({1.2, 1.2, 1.2, 1.2}, mean(ttft) <= 1.1 * baseline);
    REQUIRE(v.outcome == verdict::fail);
    g.verdicts = {v};
    CHECK(summary_md({g}).find("**Failed: chat stays interactive: mean(ttft) is 120 ms, the limit is "
                               "110 ms, 1.1 times the baseline's 100 ms**\n\n") == 0);
    CHECK(holds(summary_md({g}), "| 1.200 x (120 ms against 100 ms) |"));
    v.objective = p50(ttft).of("a") <= 1.1 * p50(ttft).of("b");
    v.against_limit = against_limit(v);
    g.verdicts = {v, v, v};
    CHECK(summary_md({g}).find("**Failed: chat stays interactive: p50(ttft) of \"a\" is 120 ms, the "
                               "limit is 110 ms, 1.1 times the 100 ms of p50(ttft) of \"b\"; and 2 "
                               "more**\n\n") == 0);
    g.verdicts[0].objective.is_advisory = g.verdicts[1].objective.is_advisory =
        g.verdicts[2].objective.is_advisory = true;
    CHECK(!holds(summary_md({g}), "**Failed"));
}

TEST_CASE("no text of a gate or a server becomes markup of the summary") {
    test_gate g = sample_gate(hostile);
    g.verdicts[0].reason = hostile;
    const std::string md = summary_md({g, refused_gate(hostile)});
    const std::string escaped = "``<b>&\"'\u2502`*_[x](http://evil)]]>`` \\\\ "
                                "\\\\n\\\\x01\xEF\xBF\xBD\\</b\\>";
    const std::string code = "``<b>&\"'\u2502`*_[x](http://evil)]]> \\ \\n\\x01\xEF\xBF\xBD</b>``";
    CHECK(count(md, escaped) == 2);  // over all of it, and over its gate  // the gate's name, which is its author's
    CHECK(count(md, code) == 2);     // what may be a server's
    // Every row of a table is still one line of six cells.
    std::size_t rows = 0;
    for (std::size_t at = 0; at < md.size(); at = md.find('\n', at) + 1) {
        if (md[at] != '|') continue;
        const std::string line = md.substr(at, md.find('\n', at) - at);
        CAPTURE(line);
        CHECK(count(line, "|") - count(line, "\\|") == 8);
        ++rows;
    }
    CHECK(rows == 2 + 5);
}

TEST_CASE("what may be a server's words is code, whatever backticks it has") {
    CHECK(markdown_code("") == "");
    CHECK(markdown_code("  ") == "");
    CHECK(markdown_code("@you see #12 in me/it#3, https://evil") ==
          "`@you see #12 in me/it#3, https://evil`");
    CHECK(markdown_code("a `b` c") == "``a `b` c``");
    CHECK(markdown_code("``x`") == "``` ``x` ```");
    CHECK(markdown_code(" x ") == "`  x  `");
    CHECK(markdown_code("a|b\nc") == "`a\u2502b\\nc`");
    test_gate g = sample_gate();
    for (repeat_data& d : g.measured.candidate) {
        d.records[0].status = request_status::http;
        d.records[0].error = "HTTP 500: @you, see #12";
    }
    g.self_check.ok = false;
    g.self_check.reason = "it was @late";
    const std::string md = summary_md({g});
    CHECK(md.find("`38 of 40 requests ok (ended: 38 stop); 2 http (HTTP 500: @you, see #12)`; `it was @late`\n") !=
          std::string::npos);
}

TEST_CASE("every report says how answers ended, in words that are the server's") {
    test_gate g = sample_gate();
    for (repeat_data& d : g.measured.candidate)
        for (std::size_t i = 0; i < d.records.size(); ++i)
            d.records[i].finish_reason = i % 2 == 0 ? "content_filter" : i == 1 ? "" : "@a`<b>";
    const std::string reported = "40 of 40 requests ok (ended: 20 content_filter, 18 @a`<b>, "
                             "2 without a reason)";
    CHECK(holds(console_text(g), "(ended: 20 content_filter, 18 @a`<b>,"));
    CHECK(holds(summary_md({g}), "``" + reported + "``"));
    const std::string escaped = "(ended: 20 content_filter, 18 @a`&lt;b&gt;, 2 without a reason)";
    CHECK(holds(report_html({g}, quiet_machine()), escaped));
    CHECK(holds(junit_xml({g}), escaped));
    const picojson::value variant = *member(array_member(parsed(result_json({g}, quiet_machine(), {{0}, "00ff"}, 1)), "gates")[0],
                                        "candidate");
    CHECK(array_member(variant, "finish_reasons").size() == 3);
    CHECK(string_member(array_member(variant, "finish_reasons")[0], "reason") == "content_filter");
    CHECK(number_member(array_member(variant, "finish_reasons")[0], "count") == 20);
}

// ---- what failed beside a gate -------------------------------------------------------------------

TEST_CASE("a test case that failed beside its objectives is told in every report") {
    gate_report g = sample_gate();
    g.verdicts.resize(1);  // it passed
    g.outcome = gate_outcome::failed;
    g.beside = "its test case failed: an exception ended it: <@you>";
    CHECK(xml_flaw(junit_xml({g})) == "");
    CHECK(junit_xml({g}).find("tests=\"2\" failures=\"1\"") != std::string::npos);
    CHECK(junit_xml({g}).find("an exception ended it: &lt;@you&gt;") != std::string::npos);
    CHECK(summary_md({g}).find("**Failed: chat stays interactive: `its test case failed: an exception "
                               "ended it: <@you>`**\n\n### chat stays interactive: failed\n\n"
                               "`its test case failed: an exception ended it: <@you>`\n\n| verdict") == 0);
    CHECK(closing_text({g}) == "\nchat stays interactive: " + g.beside + "\n");
    CHECK(closing_text({g, refused_gate()}).find("failed  chat stays interactive: " + g.beside) !=
          std::string::npos);
    CHECK(github_annotations({g}, "").find("::error file=") == 0);
    CHECK(gate_sentence(g) == g.beside + ".");
    CHECK(parsed(result_json({g}, {}, {}, 1)).get("gates").get(0).get("failed_beside").get<std::string>() ==
          g.beside);
    g.beside.clear();
    CHECK_FALSE(parsed(result_json({g}, {}, {}, 1)).get("gates").get(0).contains("failed_beside"));
}

// ---- the console -------------------------------------------------------------------------------

TEST_CASE("the verbose console also has what no verdict depends on") {
    test_gate g = sample_gates::sampled_gate("g", {mean(ttft) <= 100_ms});
    judge(g);
    const std::string out = console_text(g, {false, false, true});
    CHECK(holds(unwrapped(out), "  PASS          mean(ttft) <= 100 ms  measured 80 ms, 20 % inside "
                                "the limit (interval 74.8 to 85.5 ms; the smallest miss this run "
                                "could show: 13 %), 2 repeats x 20 requests, moderated t\n"));
    CHECK(holds(out, "\n  client: sends late by p50 0 ms, "));
    CHECK_FALSE(holds(out, "checks passed"));
}

TEST_CASE("the client's line stands on the console where it matters for a verdict") {
    const auto has_line = [](const auto& change) {
        test_gate g = sample_gate();
        gate_report r = g;
        change(r);
        const std::string out = console_text(r);
        CHECK(holds(out, "\n  client: ") != holds(out, "\n  client checks passed\n"));
        return holds(out, "\n  client: ");
    };
    CHECK_FALSE(has_line([](gate_report&) {}));
    CHECK(has_line([](gate_report& r) { r.self_check.ok = false; }));
    CHECK(has_line([](gate_report& r) { r.self_check.unknown_gaps = 3; }));
    CHECK(has_line([](gate_report& r) { r.self_check.stamped_fraction = 0.5; }));
    CHECK(has_line([](gate_report& r) { r.self_check.lost_fraction = 0.01; }));
}

TEST_CASE("the server's line stands on the console where its counters differ") {
    test_gate g = sample_gate();
    gate_report r = g;
    server_usage& page = r.figures.candidate.server;
    page.is_read = true;
    page.of = "vLLM";
    page.readings = 12;
    page.checked = 2;
    CHECK(holds(console_text(r), "\n  client and server checks passed\n"));
    CHECK_FALSE(holds(console_text(r), "server: "));
    CHECK(holds(unwrapped(console_text(r, {false, false, true})),
                "server: vLLM's page, 12 readings; cross-check: the server's counters match our "
                "requests"));
    page.differences = "it counts 2 generated tokens, the usage in its answers 3";
    CHECK(holds(unwrapped(console_text(r)), "cross-check: the server's counters differ from our "
                                            "requests: it counts 2 generated tokens"));
    CHECK(holds(console_text(r), "\n  client checks passed\n"));
    page.differences = "";
    page.missed = 1;
    CHECK(holds(unwrapped(console_text(r)), "server: vLLM's page, 12 readings (1 failed: "));
}

TEST_CASE("failures are counted by kind, most frequent first, with an example") {
    vector<request> requests;
    for (int i = 0; i < 5; ++i) requests.push_back(answered(i, 50));
    requests.push_back(failed(5, request_status::http));
    for (int i = 6; i < 9; ++i) requests.push_back(failed(i, request_status::timeout));
    requests.push_back(failed(9, request_status::http).warmup());
    CHECK(status_text({repeat_of(requests), repeat_of({answered(0, 50)})}) ==
          "6 of 10 requests ok (ended: 6 stop); 3 timeout (no answer); 1 http (no answer)");
    CHECK(status_text({}) == "0 of 0 requests ok");
    repeat_data odd = steady_repeat(80);
    odd.records[0].output_tokens = odd.records[0].events - 1;
    odd.records[1].output_tokens = odd.records[1].events + 5;  // several an event
    odd.records[2].output_tokens = 0;
    odd.records[2].status = request_status::timeout;
    CHECK(status_text({odd}) == "19 of 20 requests ok (ended: 19 stop); 1 timeout (); usage reports fewer tokens "
                                "than content events in 1 of those");
}

TEST_CASE("traffic that a server may have seen before says so in every report") {
    test_gate g = sample_gates::sampled_gate("given", {p50(ttft) <= 1_s});
    judge(g);
    const std::string said = "prompts are sent as given: a prefix cache of the server may answer "
                             "them from earlier repeats and earlier runs";
    CHECK_FALSE(holds(console_text(g), "sent as given"));
    g.what = with_traffic(g.what, [&](planned_traffic& t) {
        t.sent_as_given = planned({.workload = prompts({"one", "two"}), .arrivals = closed_loop(2),
                                   .requests = 40}, 1)
                              .sent->sent_as_given;
    });
    CHECK(holds(unwrapped(console_text(g)), said));
    CHECK(holds(summary_md({g}), said));
    CHECK(holds(report_html({g}, quiet_machine()), said));
    CHECK(holds(result_json({g}, quiet_machine(), {}, 0), "\"sent_as_given\": \"prompts\""));
    CHECK(planned({.workload = synthetic{}, .arrivals = closed_loop(2), .requests = 40}, 1)
              .sent->sent_as_given.empty());
}

TEST_CASE("a table shows the data of all repeats together") {
    // One request of 40 took 1.955 s. The geometric mean of the two largest values is 280 ms.
    vector<repeat_data> variant = {steady_repeat(40), steady_repeat(40)};
    variant[1].records[3].first_token_ns += 1'915'000'000;
    variant[1].records[3].last_token_ns += 1'915'000'000;
    variant[1].records[3].end_ns += 1'915'000'000;
    const metric_row row = distribution_of(metric_id::ttft, variant).row;
    CHECK(row.max == about(1.955));
    CHECK(row.p99 == about(1.955));
    CHECK(row.p50 == about(0.040));
    CHECK(row.mean == about((39 * 0.040 + 1.955) / 40));
    // Failures are the worst values of all, not of their repeat alone.
    vector<repeat_data> with_failure = variant;
    with_failure.push_back(repeat_of({answered(0, 50), failed(1)}));
    CHECK(distribution_of(metric_id::ttft, with_failure).row.max == infinity);
    CHECK(distribution_of(metric_id::ttft, with_failure).row.p90 == about(0.040));
    CHECK(std::isnan(distribution_of(metric_id::ttft, {}).row.mean));
}

TEST_CASE("the client's account in one line") {
    self_check_t c;
    c.lateness_p50 = 0.0001;
    c.lateness_p99 = 0.002;
    c.lateness_max = 0.012;
    c.asked_rate = 8;
    c.achieved_rate = 7.996;
    c.cpu_utilization = 0.25;
    c.coalesced_fraction = 0.015;
    c.connections_opened = 12;
    CHECK(self_check_text(c) ==
          "sends late by p50 100 us, p99 2 ms, max 12 ms; sent 7.996 of 8 requests/s; read within "
          "p99 0 ms, woke within p99 0 ms; stamps: read; 25 % of a "
          "core; 1.5 % of events "
          "read together; 12 connections");
    c.stamped_fraction = 1;
    CHECK(stamps_text(c) == "kernel");
    c.stamped_fraction = 0.996;
    c.unknown_gaps = 12;
    CHECK(stamps_text(c) == "kernel, but for 0.4 % of the reads, 12 gaps unknown");
    c.stamped_fraction = 0.25;
    CHECK(stamps_text(c) == "read, but for 25 % of the reads, 12 gaps unknown");
    c.stamped_fraction = 0;
    c.unknown_gaps = 0;
    c.ok = false;
    c.reason = "client: too slow";
    CHECK(self_check_text(c).find("; NOT OK: client: too slow") != std::string::npos);
}

TEST_CASE("the plan of a gate in one line") {
    const test_gate g = sample_gate();
    CHECK(plan_text(g.what) ==
          "closed_loop(4 users), 20 requests after 20 to warm up, synthetic, prompt 10 tokens, "
          "output 11 tokens, seed 7");
    CHECK(repeats_text(g.what) == "2 to 5 repeats (8 if still open)");
    CHECK(span_text(80, 320) == "about 80 to 320 s");
    CHECK(span_text(1.1, 1.3) == "about 1 s");
    CHECK(span_text(0.3, 1.3) == "up to 2 s");
    CHECK(span_text(0.2, 0.9) == "less than a second");
    CHECK(target_text(g.target) == "http://127.0.0.1:8000, model tiny");
    CHECK(target_text({target_kind::process, "http://127.0.0.1:9", "", ""}) ==
          "process at http://127.0.0.1:9");
}

// ---- GitHub and OpenMetrics --------------------------------------------------------------------

TEST_CASE("annotations stand at the lines of the objectives, worst first") {
    test_gate g = sample_gate("a, b: 100 %\nsure");
    g.measured.slos[1].at = {"/home/x/gates.cpp", 7};
    g.verdicts = judge_all(g.measured);
    const std::string out = github_annotations({g}, "/home/x");
    const std::string first = out.substr(0, out.find('\n'));
    CHECK(first.rfind("::error file=gates.cpp,line=7,title=a%2C b%3A 100 %25%0Asure::FAIL ", 0) == 0);
    CHECK(first.find("mean(tpot) <= 9 ms") != std::string::npos);
    // What is undecided or only advised is a warning; what passed is not told.
    CHECK(std::count(out.begin(), out.end(), '\n') == 3);
    CHECK(out.find("\n::warning file=", 0) != std::string::npos);
    CHECK(out.find("PASS") == std::string::npos);
    CHECK(github_annotations({}, "") == "");
}

TEST_CASE("annotations beyond nine are counted") {
    const test_gates gates(5, sample_gate());  // three notes each
    const std::string out = github_annotations(gates, "");
    CHECK(std::count(out.begin(), out.end(), '\n') == 10);
    CHECK(out.find("::warning title=llmbench::6 more, see the step summary\n") != std::string::npos);
    CHECK(out.find("::error") == 0);
}

TEST_CASE("no series of the OpenMetrics text is there twice, or has a # in its name") {
    // GitLab cuts a line at the first '#', and an open quote there costs the whole file. Other readers
    // refuse a file with a series twice.
    test_gate twice = sample_gate("issue #12");
    twice.verdicts.push_back(twice.verdicts[0]);
    std::set<std::string> series;
    std::istringstream lines(open_metrics({twice, sample_gate("issue No. 12"), twice}));
    for (std::string line; std::getline(lines, line);) {
        CAPTURE(line);
        CHECK(series.insert(line.substr(0, line.rfind(' '))).second);
    }
    CHECK(series.size() > 20);
    CHECK(holds(open_metrics({sample_gate("issue #12")}), "gate=\"issue No. 12\""));
    CHECK(holds(open_metrics({sample_gate("say \"hi\"")}), "gate=\"say \\\"hi\\\"\""));
}

// ---- what the server counted --------------------------------------------------------------------

TEST_CASE("prompts that the server counts otherwise are told beside what was asked for") {
    const plan p = planned({.workload = synthetic{.prompt_tokens = uniform(100, 200)},
                            .arrivals = closed_loop(1), .warmup = 0, .requests = 50}, 1);
    const auto reported = [&](double factor) {
        repeat_data d;
        for (int i = 0; i < 50; ++i) {
            record r;
            r.status = request_status::ok;
            r.conversation = i;
            r.prompt_tokens = static_cast<int>(
                factor * item_of(p, static_cast<std::size_t>(i)).prompt_tokens);
            d.records.push_back(r);
        }
        test_gate g;
        g.what = p;
        g.measured.candidate = {d};
        CHECK(prompt_lengths_text(prompt_lengths_of(p, {d})).find("asked for 1") == 0);
        const vector<std::string> notes = notes_on(g);
        return notes.empty() ? std::string() : notes[0];
    };
    CHECK(reported(1.0) == "");
    CHECK(reported(1.015) == "");
    CHECK(reported(2.0).find("prompt tokens: asked for 1") == 0);
    CHECK(reported(2.0).find("the server counted ") != std::string::npos);
    CHECK(reported(0.5) != "");
}

TEST_CASE("what was said of a load and of its server before it is said in every report, once") {
    gate_report g;
    planned_traffic sent;
    workload_files files;
    files.fields.leave_out("tools", 1);
    sent.files = std::make_shared<const workload_files>(std::move(files));
    g.what.sent = std::make_shared<const planned_traffic>(std::move(sent));
    g.target.notes = {"http://h: the server does not list this model; it lists a"};
    g.baseline.notes = g.target.notes;
    g.notes = notes_before(g, g.under);
    CHECK(notes_on(g) == vector<std::string>{g.target.notes[0], "left out: tools (1 row)"});
}

TEST_CASE("streams that were buffered are told of each arm") {
    test_gate g;
    g.what = planned({.workload = prompts({"hi"}), .arrivals = closed_loop(1), .requests = 20}, 1);
    g.what = with_traffic(g.what, [](planned_traffic& t) {
        t.sent_as_given.clear();  // which would be told, too
    });
    g.measured.candidate = {steady_repeat(80), steady_repeat(80)};
    CHECK(notes_on(g).empty());
    record& at_once = g.measured.candidate[1].records[3];
    at_once.last_token_ns = at_once.first_token_ns;
    g.measured.baseline = {steady_repeat(80)};
    g.measured.baseline[0].records[0].first_read_events = 5;
    const vector<std::string> notes = notes_on(g);
    REQUIRE(notes.size() == 2);
    CHECK(notes[0] == "1 of 40 answers came in one piece, 0 more began with over 5 % of their tokens "
                      "at once");
    CHECK(notes[1] == "baseline: 0 of 20 answers came in one piece, 1 more began with over 5 % of "
                      "their tokens at once");
    g.measured.candidate[0].records[0].text_bytes = 10;
    g.measured.candidate[0].records[0].output_tokens = 27;
    CHECK(status_text({g.measured.candidate[0]}) ==
          "20 of 20 requests ok (ended: 20 stop); usage reports more tokens than the text can be in 1 of those");
}

TEST_CASE("the share of prompt tokens from the prefix cache is told where the server tells it") {
    repeat_data d;
    record r;
    r.status = request_status::ok;
    r.prompt_tokens = 100;
    d.records = {r, r};
    measurement m;
    m.candidate = {d};
    CHECK(prefix_cache_text(m) == "");
    m.candidate[0].records[0].cached_tokens = 50;
    m.candidate[0].records[1].cached_tokens = 0;
    CHECK(prefix_cache_text(m) == "prefix cache: 25 % of the prompt tokens came from it");
    m.baseline = {d};
    CHECK(prefix_cache_text(m) == "prefix cache: 25 % of the prompt tokens came from it, with the "
                                  "baseline an unknown part");
    m.baseline[0].records[0].cached_tokens = 100;
    CHECK(prefix_cache_text(m) == "prefix cache: 25 % of the prompt tokens came from it, with the "
                                  "baseline 100 %");
    m.baseline[0].records[0].cached_tokens = 216;
    m.baseline[0].records[1].cached_tokens = 0;
    CHECK(prefix_cache_text(m) == "prefix cache: usage has 216 cached tokens of 200 prompt tokens, "
                                  "which cannot be");
    CHECK(reasoning_text({.requests = 2, .tokens = 200, .output = 100}, "") ==
          "reasoning: in 2 requests; usage has 200 reasoning tokens of 100 output tokens, which "
          "cannot be");
}

// ---- headlines ----------------------------------------------------------------------------------

TEST_CASE("a headline says how much of a pass a green gate is") {
    const auto judged_gate = [](const vector<slo>& slos) {
        test_gate g = sample_gates::sampled_gate("g", slos);
        judge(g);
        return g;
    };
    CHECK(headline_text(judged_gate({mean(ttft) <= 100_ms})) == "passed");
    CHECK(headline_text(judged_gate({mean(ttft) <= 100_ms, mean(e2e) <= 190_ms})) ==
          "inconclusive, 1 of 2 objectives");
    CHECK(headline_text(judged_gate({mean(e2e) <= 190_ms})) == "inconclusive, 1 of 1 objective");
    CHECK(headline_text(judged_gate({})) == "measured");
    CHECK(headline_text(judged_gate({advisory(mean(ttft) <= 100_ms)})) == "measured");
    CHECK(headline_text(judged_gate({mean(tpot) <= 9_ms, mean(e2e) <= 190_ms})) == "failed");
    CHECK(headline_text(refused_gate()) == "refused");
    test_gate calibrated_one = judged_gate({mean(ttft) <= 100_ms});
    calibrated_one.calibration.push_back({});
    calibrated_one.outcome = gate_outcome::skipped;
    CHECK(headline_text(calibrated_one) == "calibrated");
    const test_gate open = judged_gate({mean(e2e) <= 190_ms});
    CHECK(console_text(open).find("g: inconclusive, 1 of 1 objective\n") != std::string::npos);
    CHECK(summary_md({open}).find("### g: inconclusive, 1 of 1 objective\n") != std::string::npos);
    CHECK(closing_text({open, judged_gate({}), refused_gate()}).find(
              "3 gates: 1 refused, 1 inconclusive, 1 measured\n") != std::string::npos);
    CHECK(open.outcome == gate_outcome::passed);  // exit codes do not know headlines
}

TEST_CASE("the console shows both arms of a comparison") {
    test_gate g = sample_gates::sampled_gate("a/b", {mean(ttft) <= 1_s});
    g.measured.baseline = {steady_repeat(200), steady_repeat(200)};
    judge(g);
    const gate_report r = g;
    const std::string out = console_text(r);
    CHECK(out.find("  ttft                 80 ms") != std::string::npos);
    CHECK(out.find("    baseline          200 ms") != std::string::npos);
    CHECK(count(out, "    baseline  ") == r.figures.table_rows);
    CHECK(out.find("  baseline: output ") != std::string::npos);
}

TEST_CASE("answers in one piece have no row of first tokens") {
    test_gate g = sample_gates::sampled_gate("whole", {mean(e2e) <= 1_s});
    g.what = with_traffic(g.what, [&](planned_traffic& t) { t.common.stream = false; });
    judge(g);
    const std::string out = console_text(g);
    CHECK(out.find("  e2e ") != std::string::npos);
    for (const char* name : {"\n  ttft", "\n  tpot", "\n  itl"})
        CHECK(out.find(name) == std::string::npos);
}

TEST_CASE("a calibration leaves a limit that is missed in the line to paste") {
    test_gate g = sample_gate();
    g.calibration = {{mean(tpot) <= 20_ms, 0.025, 0.01, -22, 0.0271},
                     {p90(ttft) <= 200_ms, 0.1, 0.03, 23, 0.11}};
    const std::string said = unwrapped(console_text(g));
    CAPTURE(said);
    CHECK(holds(said, "to paste: .slos = {mean(tpot) <= 20_ms, p90(ttft) <= 110_ms},"));
    CHECK(holds(said, "MISSED: its limit stays"));
    CHECK_FALSE(holds(said, "27.1"));
}

TEST_CASE("the line to paste is what its author wrote") {
    const auto check_pasted = [](const slo& s, const char* code) {
        CHECK(line_to_paste({{.objective = s}}) == joined({".slos = {", code, "},"}));
    };
#define CHECK_PASTED(...) check_pasted(__VA_ARGS__, #__VA_ARGS__)
    CHECK_PASTED(mean(ttft).of("chat") <= 24_ms);
    CHECK_PASTED(goodput(ttft <= 30_ms && tpot <= 13_ms).of("chat") >= 90_pct);
    CHECK_PASTED(advisory(of(error_rate, "a \"10 ms\" part") <= 1_pct));
    CHECK_PASTED((p90(ttft) <= 300_ms).until("2126-12-31"));
    CHECK_PASTED(p90(ttft).of(label("chat") && turns(2)) <= 1.1 * baseline);
    CHECK_PASTED(p90(later_turn_ttft).of(turns(2) && during("update")) <= 1.05 * baseline + 10_ms);
    CHECK_PASTED(p90(ttft).of("chat") <= 1.25 * p90(ttft).of("long"));
    CHECK_PASTED(drift(output_throughput).of("chat") >= 90_pct);
    CHECK_PASTED(max(server_metric("vllm:waiting{model=\"m\"}")) <= 8);
    CHECK_PASTED(percentile(itl, 0.975) <= 1.5_s);
#undef CHECK_PASTED
    CHECK(line_to_paste({{.objective = drift(p90(ttft).of("chat")) <= 110_pct}}) ==
          ".slos = {drift(p90(ttft)).of(\"chat\") <= 110_pct},");
    // With the better limit.
    CHECK(line_to_paste({{mean(ttft).of("chat") <= 24_ms, 0.022, 0.01, 9, 0.0231}}) ==
          ".slos = {mean(ttft).of(\"chat\") <= 24_ms},");
    CHECK(line_to_paste({{p90(ttft) <= 3 * p50(ttft), 2, 0.01, 9, 2.3}}) ==
          ".slos = {p90(ttft) <= 2.3 * p50(ttft)},");
}

TEST_CASE("a calibration says why an objective has no noise") {
    test_gate g = sample_gate();
    g.calibration = {{.objective = goodput(ttft <= 30_ms) >= 90_pct},
                     {.objective = mean(e2e) <= 1.05 * baseline + 10_ms},
                     {.objective = mean(ttft) <= 10_ms}};
    const std::string said = console_text(g);
    CAPTURE(said);
    CHECK(holds(said, ">= 90 %       judged on counts\n"));
    CHECK(holds(said, "mean(e2e) <= 1.05 * baseline + 10 ms the noise of a difference is not measured\n"));
    CHECK(holds(said, "without a finite value in every repeat\n"));
}

TEST_CASE("a calibration prints the line to paste") {
    CHECK(written_in_code("goodput(ttft <= 300 ms && tpot <= 0.03 s) >= 95 %") ==
          "goodput(ttft <= 300_ms && tpot <= 0.03_s) >= 95_pct");
    CHECK(written_in_code("output_throughput >= 400 tok/s") == "output_throughput >= 400_tps");
    CHECK(written_in_code("mean(tpot) <= 1.1 * baseline") == "mean(tpot) <= 1.1 * baseline");
    CHECK(written_in_code("max(queued_requests) <= 8") == "max(queued_requests) <= 8");
    test_gate g = sample_gates::sampled_gate("g", {mean(ttft) <= 100_ms});
    judge(g);
    calibrated row;
    row.objective = mean(tpot) <= 25_ms;
    row.to_write = 0.023;
    calibrated share;
    share.objective = advisory(error_rate <= 1_pct);
    g.calibration = {row, share};
    CHECK(console_text(g).find("  to paste: .slos = {mean(tpot) <= 23_ms, "
                               "advisory(error_rate <= 1_pct)},\n") != std::string::npos);
}
