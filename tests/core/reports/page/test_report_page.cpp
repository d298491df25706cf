// The report page: what is on it, and that it stays whole whatever it is told.
#include "llmbench.hpp"
#include "core/reports/result_json.hpp"
#include "extensions/capacity/core/search_page.hpp"
#include "extensions/compare/core/reports.hpp"
#include "extensions/faults/core/reports.hpp"
#include "core/reports/page/page.hpp"
#include "support/markup.hpp"
#include "support/sample_comparison.hpp"
#include "support/sample_gates.hpp"
#include "support/synthetic_gates.hpp"
#include "support/texts.hpp"
#include "support/timelines.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace llmbench;
using namespace llmbench::detail;
using namespace sample_gates;
using namespace texts;
using namespace timelines;

namespace {

const std::string hostile =
    "</script></title><img src=x onerror=alert(1)>\"'&\n\x01\xFF--><svg onload=alert(2)>";

scenario chat(double rate = 8, long long requests = 300) {
    return {
        .workload =
            llmbench::synthetic{.prompt_tokens = fixed(200), .output_tokens = lognormal(40, 0.5)},
        .arrivals = poisson(request_rate(rate)),
        .requests = requests,
        .slos = {mean(tpot) <= 20_ms, p90(ttft) <= 400_ms,
                 goodput(ttft <= 300_ms && tpot <= 16_ms) >= 95_pct, advisory(p90(e2e) <= 500_ms)}};
}
test_gate passing_gate() {
    return synthetic_gates::gate_of("chat stays interactive", chat(), {}, 2);
}
test_gate failing_gate() {
    return synthetic_gates::gate_of("chat on a slower engine", chat(), {.gap_s = 0.031}, 3);
}
test_gate shedding_gate(const std::string& error = "HTTP 503: overloaded") {
    return synthetic_gates::gate_of("a server that sheds load", chat(),
                                    {.failed = 0.05, .error = error}, 3);
}
test_gate paired_gate() {
    scenario s = chat();
    s.baseline = endpoint{.url = "http://127.0.0.1:8001"};
    s.slos = {mean(tpot) <= 1.10 * baseline, p50(ttft) <= 1.10 * baseline};
    const synthetic_gates::server main{};
    return synthetic_gates::gate_of("this branch is not slower than main", s,
                                    {.ttft_s = 0.061, .gap_s = 0.0145}, 4, &main);
}
test_gate load_gate(double rate) {
    scenario s = chat(rate, 100);
    s.slos = {p90(ttft) <= 400_ms};
    s.workload = llmbench::synthetic{.prompt_tokens = fixed(100), .output_tokens = fixed(30)};
    return synthetic_gates::gate_of(printed("%g requests per second", rate), s,
                                    {.ttft_s = 0.05 + 0.0005 * rate * rate}, 2);
}
/// The passing gate with other records.
test_gate gate_with(vector<repeat_data> repeats, const std::string& name) {
    test_gate g = passing_gate();
    g.what.name = name;
    g.measured.candidate = std::move(repeats);
    judge(g);
    g.outcome = gate_outcome::invalid;
    return g;
}
test_gate all_failed_gate() {
    return gate_with({repeat_of({failed(0), failed(100)}), repeat_of({failed(0), failed(100)})},
                     "nothing was answered");
}
test_gate one_request_gate() { return gate_with({repeat_of({answered(0, 80)})}, "one request"); }
test_gate unmeasured_gate() { return gate_with({}, "nothing was measured"); }
test_gate interrupted_gate() {
    test_gate g = gate_with({steady_repeat(80, 5)}, "interrupted");
    g.measured.candidate[0].interrupted = true;
    g.verdicts = judge_all(g.measured);
    return g;
}

/// One of each kind.
test_gates gallery() {
    return {passing_gate(),     failing_gate(),    shedding_gate(),    paired_gate(),
            refused_gate(),     all_failed_gate(), one_request_gate(), unmeasured_gate(),
            interrupted_gate(), load_gate(4),      load_gate(8),       load_gate(16)};
}
/// Gates whose every text tries to become markup.
test_gates hostile_gates() {
    test_gate g = shedding_gate(hostile);
    g.what.name = g.what.test_case = g.what.file = hostile;
    g.what = with_traffic(g.what, [&](planned_traffic& t) { t.workload_text = hostile; });
    g.target = {target_kind::endpoint, hostile, hostile, hostile};
    g.baseline = {target_kind::endpoint, hostile, hostile, hostile};
    g.target.command = hostile;
    g.measured.candidate[0].records[0].id = hostile;
    g.measured.candidate[0].records[0].end_ns += 3600000000000;
    g.self_check.ok = false;
    g.self_check.reason = hostile;
    g.measured.stopped = hostile;
    g.measured.candidate[0].target_gone = hostile;
    for (slo_verdict& v : g.verdicts) {
        v.reason = v.advice = v.method = v.distance = hostile;
        v.objective.statistic.name = hostile;
    }
    test_gate heavier = g;
    heavier.what = with_traffic(heavier.what, [&](planned_traffic& t) { t.arrivals.rate = 99; });
    return {g, heavier, refused_gate(hostile)};
}
environment_facts hostile_environment() {
    environment_facts e = quiet_machine();
    e.cpu = e.os = e.started_at = e.program = hostile;
    return e;
}
/// The data of the first drawing after `at`.
picojson::value drawing_at(const std::string& h, std::size_t at) {
    const std::string begin = "<script type=\"application/json\">";
    const std::size_t from = h.find(begin, at) + begin.size();
    return parsed(h.substr(from, h.find("</script>", from) - from));
}
/// The data of the drawing with a caption.
picojson::value drawing_of(const std::string& h, const std::string& caption) {
    const std::size_t at = h.find("<figcaption>" + caption + "<");
    REQUIRE(at != std::string::npos);
    return drawing_at(h, at);
}
/// The shapes that begin so.
vector<std::string> shapes_of(const picojson::value& drawing, const std::string& begin) {
    vector<std::string> all;
    for (const picojson::value& shape : drawing.get("shapes").get<picojson::array>())
        if (const std::string text = shape.serialize(); text.rfind(begin, 0) == 0)
            all.push_back(text);
    return all;
}
std::string page(const test_gates& gates) {
    return report_html(gates, quiet_machine());
}

/// A search whose lightest probe had no value.
load_curve searched() {
    load_curve c;
    c.line = "capacity in [8, 9] req/s";
    c.objectives_held = {p90(ttft) <= 300_ms, goodput(ttft <= 300_ms) >= 90_pct};
    c.state.low = 8;
    c.state.high = 9;
    c.points = {{{.load = 4}, 60, {not_a_number, 1}},
                {{.load = 8, .shown = carried::holds}, 60, {0.25, 0.95}},
                {{.load = 9, .shown = carried::misses}, 60, {0.4, 0.8}}};
    return c;
}
/// What stands beside the gates of a program: several settings, a curve, and a search.
struct all_beside : comparisons_and_curves {
    explicit all_beside(const std::string& name)
        : comparisons_and_curves(
              {sample_comparison(name), cut_comparison()},
              {{name, "", 0, metric_id::capacity_in_rate,
                {{4, "4 requests per second", carried::holds},
                 {8, "8 requests per second", carried::open},
                 {16, "16 requests per second", carried::misses, "p90(ttft)"}}}}) {}
    std::string html(const vector<gate_report>& gates) const override {
        return comparisons_and_curves::html(gates) + "<section>" + search_html(searched(), "") +
               "</section>";
    }
};

std::string page_flaw(std::string_view s) { return markup::flaw_of(s, markup::html); }

}  // namespace

// ---- drawings ----------------------------------------------------------------------------------

TEST_CASE("a drawing is data for the script, and what has no value is null") {
    plot p({"elapsed", "given", -2, 8}, {"percentile", "nines"});
    CHECK(p.figure("nothing") == "");
    p.line("c", "without values", {{0, not_a_number}, {infinity, 1}});
    p.dot("c", {1, not_a_number});
    CHECK(p.figure("nothing") == "");
    p.line("c", "a<b", {{0, 0}, {0, 0}, {0.5, not_a_number}, {1, 1}});
    p.dot("open", {2, infinity});
    p.limit(mean(ttft) <= 500_ms, 0.5);
    p.limit(p50(ttft) <= 2_s, 2);
    const std::string h = p.figure("cap<tion", "of \"it\"");
    CHECK(holds(h, "<figcaption>cap&lt;tion<span>of &quot;it&quot;</span></figcaption>"));
    CHECK(drawing_at(h, 0).serialize() ==
          R"({"shapes":[["line",["c","a<b"],[0,0,0.5,null,1,1]],)"
          R"(["dot",["open"],[2,1.0000000000000001e+300]],)"
          R"(["limit",["mean <= 500 ms"],[0.5,null,1]],["limit",["p50 <= 2 s"],[2,0.5,1]]],)"
          R"("x":["elapsed","given",-2,8],"y":["percentile","nines"]})");
    CHECK(page_flaw("<!doctype html>\n" + h) == "");
}

TEST_CASE("a metric's line goes through its percentiles and keeps its extremes") {
    vector<timelines::request> requests;
    for (int i = 1; i <= 1000; ++i) requests.push_back(answered(10.0 * i, i));
    const repeat_data d = timelines::repeat_of(requests);
    const variant_distribution all = distribution_of(metric_id::ttft, {d});
    REQUIRE(all.lines.size() == 1);
    const vector<curve_point>& line = all.lines[0];
    CHECK(line.size() == line_points + 2);
    CHECK(line.front().x == about(0.001));
    CHECK(line[line_points].x == about(0.999));  // as far as a thousand requests can tell
    CHECK(line.back().x == about(1));            // and the slowest of them
    CHECK(line[line_points / 3].y == about(0.9));
    CHECK(line[line_points / 3].x == about(0.9));
    CHECK(all.row.p99 == about(0.99));
    CHECK(all.row.max == about(1));
}

TEST_CASE("windows over time lose nothing") {
    repeat_data d = timelines::repeat_of({answered(0, 80), failed(150), answered(900, 300, 40)});
    for (record& r : d.records)
        if (r.end_ns == 0) r.end_ns = r.sent_ns + 50'000'000;
    d.window = time_interval::between(at_ms(0), 0);
    measurement m;
    m.candidate = {d};
    const timeline_grid grid = grid_of(m);
    CHECK(grid.step == 0.1);
    const repeat_timeline t = timeline_of(d, grid, (ttft <= 100_ms).steps);
    const auto total = [&](const vector<double>& v) {
        double sum = 0;
        for (const double x : v) sum += x * grid.step;
        return sum;
    };
    CHECK(total(t.asked) == about(3));
    CHECK(total(t.sent) == about(3));
    CHECK(total(t.failed) == about(1));
    CHECK(total(t.tokens) == about(22));
    CHECK(total(t.in_flight) == about(0.18 + 0.05 + 0.7));
    CHECK(t.ttft_p50[0] == about(0.08));
    CHECK(std::isnan(t.ttft_p50[1]));  // only a failed one was planned then
    CHECK(t.good[0] == 1);
    CHECK(t.good[1] == 0);
    CHECK(t.good[9] == 0);
    CHECK(std::isnan(t.good[5]));
}

TEST_CASE("windows are five seconds, finer in a short run and coarser in a long one") {
    const auto step = [](double seconds) {
        repeat_data d = timelines::repeat_of({answered(0, 80), answered(seconds * 1e3, 80)});
        d.window = time_interval::between(at_ms(0), 0);
        measurement m;
        m.candidate = {d};
        const timeline_grid grid = grid_of(m);
        CHECK(grid.windows <= 152);
        CHECK(grid.windows >= 12);
        return grid.step;
    };
    CHECK(step(3) == 0.2);
    CHECK(step(29) == 1);
    CHECK(step(120) == 5);
    CHECK(step(600) == 5);
    CHECK(step(3600) == 30);
    CHECK(step(4 * 3600) == 120);
}

// ---- the page ----------------------------------------------------------------------------------

TEST_CASE("the numbers on the page are those of result.json") {
    const test_gates gates = gallery();
    const std::string h = page(gates);
    const picojson::value json = parsed(result_json(gates, quiet_machine(), {}, 1));
    const auto real = [](const picojson::value& v) {
        return v.is<double>() ? v.get<double>() : not_a_number;
    };
    std::size_t at = 0, cells = 0;
    for (std::size_t i = 0; i < gates.size(); ++i) {
        CAPTURE(gates[i].what.name);
        at = h.find(printed("<section id=\"gate-%zu\"", i + 1));
        REQUIRE(at != std::string::npos);
        const std::string gate = h.substr(at, h.find("</section>", at) - at);
        const picojson::value& g = json.get("gates").get(i);
        if (!g.contains("slos")) continue;
        for (std::size_t k = 0; k < g.get("slos").get<picojson::array>().size(); ++k) {
            const picojson::value& v = g.get("slos").get(k);
            CHECK(holds(gate, "<code>" + xml_escaped(v.get("slo").to_str()) + "</code>"));
            if (!v.get("estimate").is<double>()) continue;
            const metric_id id = gates[i].verdicts[k].objective.statistic.metric;
            const auto shown = [&](double x) {
                return v.get("relative_to_baseline").get<bool>() ? printed("%.3f x", x)
                                                                 : value_text(id, x);
            };
            CHECK(holds(gate, "<b>" + shown(real(v.get("measured"))) + "</b>"));
            CHECK(holds(gate, "\"words\":\"limit " +
                                  (gates[i].verdicts[k].objective.factor > 0
                                       ? printed("%.6g * baseline", real(v.get("limit")))
                                       : limit_text(id, real(v.get("limit")))) +
                                  "\""));
        }
        for (const char* variant : {"candidate", "baseline"}) {
            if (!g.contains(variant) || g.get(variant).get("repeats").get<picojson::array>().empty())
                continue;
            for (const metric_id id : table_metrics(gates[i].what)) {
                std::string row;
                bool finite = true;
                for (const char* column : {"mean", "p50", "p90", "p99", "max"}) {
                    const double x = real(g.get(variant).get(metric_name(id)).get(column));
                    finite &= std::isfinite(x);
                    row += "<td class=\"n\">" + time_text(x) + "</td>";
                    ++cells;
                }
                CAPTURE(row);
                if (finite) CHECK(holds(gate, row + "</tr>"));
            }
        }
    }
    CHECK(cells > 200);
}

TEST_CASE("a page of every outcome is well-formed and its drawings hold numbers only") {
    for (const test_gate& g : gallery()) {
        CAPTURE(g.what.name);
        CHECK(page_flaw(page({g})) == "");
    }
    CHECK(page_flaw(page(gallery())) == "");
    CHECK(page_flaw(page({})) == "");
    CHECK(page_flaw("<!doctype html>\n<p><b></p></b>") != "");
    CHECK(page_flaw("<!doctype html>\n<script type=\"application/json\">[nan]</script>") != "");
}

TEST_CASE("the page says first why it is red, worst gate first") {
    const std::string h = page(gallery());
    CHECK(holds(h, "<title>3 of 12 gates failed - llmbench</title>"));
    const std::size_t failed = h.find("href=\"#gate-2\""), refused = h.find("href=\"#gate-5\""),
                      invalid = h.find("href=\"#gate-6\""), passed = h.find("href=\"#gate-1\"");
    CHECK(failed < refused);
    CHECK(refused < invalid);
    CHECK(invalid < passed);
    CHECK(passed < h.find("<section"));
    CHECK(holds(h,
                "mean(tpot) &lt;= 20 ms is missed: measured 30.8 ms, 53.9 % over the limit; 1 more "
                "objective missed."));
    CHECK(holds(h, "inconclusive.</p>"));  // it is red: nobody asks what green means
    CHECK_FALSE(holds(h, "green does not mean shown"));
}

TEST_CASE("each outcome has its sentence") {
    using enum gate_outcome;
    const auto title = [](vector<gate_outcome> outcomes) {
        test_gates gates;
        for (const gate_outcome o : outcomes) {
            gates.push_back(refused_gate("no rate", o));
            gates.back().verdicts.push_back(described(undecided(mean(ttft) <= 1_s)));
            gates.back().verdicts[0].outcome = verdict::pass;
        }
        return overall(gates).second;
    };
    CHECK(title({}) == "No gate ran");
    CHECK(title({passed}) == "The gate passed");
    CHECK(title({failed}) == "The gate failed");
    CHECK(title({refused}) == "The gate was refused");
    CHECK(title({invalid}) == "The gate is invalid");
    CHECK(title({skipped}) == "The gate was skipped");
    CHECK(title({passed, passed}) == "Both gates passed");
    CHECK(title({passed, skipped, invalid}) == "1 of 3 gates is invalid");
    CHECK(title({refused, passed, refused}) == "2 of 3 gates were refused");
    CHECK(title({failed, refused, invalid}) == "1 of 3 gates failed");
    CHECK(gate_sentence(refused_gate("no rate")) == "no rate");
    CHECK(gate_sentence(passing_gate()) == "All 4 objectives are met.");
    CHECK(holds(gate_sentence(all_failed_gate()), "none of 4 requests succeeded"));
    CHECK(holds(gate_sentence(interrupted_gate()), "interrupted"));
    test_gate measured = passing_gate();
    measured.verdicts.clear();
    CHECK(gate_sentence(measured) == "Measured only: no objective was set.");
    measured = passing_gate();
    measured.verdicts[0].outcome = verdict::inconclusive;
    measured.verdicts[0].reason = "too close to call";
    CHECK(gate_sentence(measured) ==
          "mean(tpot) <= 20 ms is neither shown to be met nor missed: too close to call.");
    measured.verdicts[0].objective.is_advisory = true;
    CHECK(gate_sentence(measured) == "All 3 objectives are met.");
}

TEST_CASE("a gate with nothing to show says so") {
    CHECK(holds(page({unmeasured_gate()}), "<p>Nothing was measured.</p>"));
    CHECK(count(page({unmeasured_gate()}), "<figure>") == 0);
    CHECK(holds(page({refused_gate()}), "the rate must be above 0"));
    CHECK(count(page({refused_gate()}), "<details") == 0);
    CHECK(holds(page({all_failed_gate()}), "0 of 4 requests ok"));
    CHECK(holds(page({all_failed_gate()}), "not measured"));
    CHECK(holds(page({one_request_gate()}), "1 of 1 requests ok"));
    CHECK(holds(page({interrupted_gate()}), "the run was interrupted"));
}

TEST_CASE("each metric has a drawing with a line of all, one a repeat, its limit and its typical value") {
    const std::string h = page({failing_gate()});
    const picojson::value tpot = drawing_of(h, "tpot");
    CHECK(shapes_of(tpot, R"(["line",["c2","all, by repeat"],)").size() == 3);
    CHECK(shapes_of(tpot, R"(["line",["c1","all"],)").size() == 1);
    CHECK(shapes_of(tpot, R"(["interval",)").size() == 1);
    CHECK(shapes_of(tpot, "[\"limit\"") ==
          vector<std::string>{R"(["limit",["mean <= 20 ms"],[0.02,null,1]])"});
    CHECK(shapes_of(drawing_of(h, "ttft"), R"(["limit",["p90 <= 400 ms"],[0.4)").size() == 1);
    for (const char* what : {"itl", "e2e", "Requests/s", "In flight", "ttft", "Output tokens/s",
                             "Goodput"})
        CHECK(shapes_of(drawing_of(h, what), "[\"line\"").size() >= 3);
}

TEST_CASE("the page says where the profile of a failed gate is, in words and not in markup") {
    test_gate g = failing_gate();
    CHECK_FALSE(holds(report_html({g}, quiet_machine()), "profile:"));
    const auto taken = std::make_shared<taken_profile>();
    taken->load_s = 5;
    taken->requests = 41;
    taken->files = "it is in " + hostile;
    g.profile = taken;
    const std::string page = report_html({g}, quiet_machine());
    CHECK(holds(page, "<p class=\"note\">profile: 5 s of the same load, 41 requests"));
    CHECK_FALSE(holds(page, "<svg onload"));
    taken->none = "the run was interrupted";
    CHECK(holds(report_html({g}, quiet_machine()), "no profile: the run was interrupted.</p>"));
}

TEST_CASE("the ten slowest requests stand on the page, those that failed late before the quick ones") {
    vector<request> requests;
    for (int i = 0; i < 40; ++i) requests.push_back(answered(100 * i, 50 + i));
    requests.push_back(failed(4000));
    test_gate g = gate_with({repeat_of(requests), repeat_of(requests)}, "slow ones");
    record& lost = g.measured.candidate[0].records.back();
    lost.id = "the lost one";
    lost.end_ns = lost.scheduled_ns + 7000000000;
    const gate_report shown = g;
    const vector<slow_request>& all = shown.figures.candidate.slowest;
    REQUIRE(all.size() == 10);
    CHECK(all[0].id == "the lost one");
    CHECK(all[0].waited == doctest::Approx(7));
    CHECK(std::isnan(all[0].ttft));
    for (std::size_t i = 1; i < 10; ++i) {
        CHECK(all[i].waited <= all[i - 1].waited);
        CHECK(all[i].ttft == doctest::Approx(0.089 - 0.001 * static_cast<double>((i - 1) / 2)));
        CHECK(all[i].status == request_status::ok);
    }
    const std::string h = page({g});
    CHECK(holds(h, "Slowest requests <span>first token or end after up to 7 s</span>"));
    CHECK(holds(h, "the lost one"));
}

TEST_CASE("where prompts have several lengths each first token stands beside its own") {
    test_gate g = passing_gate();
    CHECK(gate_report(g).figures.candidate.ttft_by_prompt.empty());  // all have 200 tokens
    CHECK_FALSE(holds(page({g}), "by its prompt tokens"));
    vector<record>& records = g.measured.candidate[0].records;
    for (std::size_t i = 0; i < records.size(); ++i)
        records[i].prompt_tokens = 100 + 10 * static_cast<int>(i % 50);
    const gate_report shown = g;
    const auto& points = shown.figures.candidate.ttft_by_prompt;
    CHECK(points.size() > 100);
    CHECK(points.size() <= 400);
    const std::string h = page({g});
    CHECK(holds(h, "[\"cloud\",[\"c\"],["));
    CHECK(page_flaw(h) == "");
}

TEST_CASE("errors stand with their kinds and their words") {
    const std::string h = page({shedding_gate()});
    CHECK(holds(h, "<h3>Errors</h3>"));
    CHECK(holds(h, "http (HTTP 503)"));
    CHECK(holds(h, ">44 x HTTP 503: overloaded<"));
    CHECK(holds(h, "Failed requests/s"));
    CHECK_FALSE(holds(page({passing_gate()}), "<h3>Errors</h3>"));
    CHECK_FALSE(holds(page({passing_gate()}), "Failed requests/s"));
}

TEST_CASE("the page says once what its short names are, and a miss that blocks nothing is not red") {
    const std::string page = report_html(test_gates{failing_gate()}, quiet_machine());
    CHECK(count(page, "<b>ttft</b>: time to first token") == 1);
    CHECK(holds(page, "<b>tpot</b>: time per output token"));
    CHECK(holds(page, "<b>itl</b>: time between two tokens"));
    CHECK(holds(page, "<b>e2e</b>: time to the end of the answer"));
    test_gate g = failing_gate();
    REQUIRE(g.verdicts[3].objective.is_advisory);
    g.verdicts[3].outcome = verdict::fail;
    CHECK(verdict_item(g.verdicts[3]).find("badge skipped") != std::string::npos);
    CHECK(holds(verdict_item(g.verdicts[3]), "\"look\":\"skipped\""));
    CHECK(holds(console_text(g, {.colour = true}), "\x1b[2mFAIL\x1b[0m"));
    g.verdicts[3].objective.is_advisory = false;
    CHECK(holds(verdict_item(g.verdicts[3]), "badge fail"));
}

TEST_CASE("a gate with a baseline shows both arms and the ratio of its pairs") {
    const test_gate g = paired_gate();
    const std::string h = page({g});
    CHECK(holds(h, "<td class=\"arm c\">candidate</td>"));
    CHECK(holds(h, "<td class=\"arm b\">baseline</td>"));
    CHECK(holds(h, "\"words\":\"limit 1.1 * baseline\""));
    CHECK(holds(h, "<b>" + printed("%.3f x", g.verdicts[0].measured) + "</b>"));
    const std::string pairs = h.substr(h.find("\"repeats\":["));
    CHECK(count(pairs.substr(0, pairs.find(']')), ",") == 3);  // one a pair
    const picojson::value e2e = drawing_of(h, "e2e");
    for (const auto& [style, lines] : {std::pair{"c1", 1}, {"c2", 4}, {"b1", 1}, {"b2", 4}})
        CHECK(shapes_of(e2e, joined({"[\"line\",[\"", style, "\""})).size() == lines);
}

TEST_CASE("the command to run a gate again survives a shell and doctest's filter") {
    test_gate g = passing_gate();
    const environment_facts env = quiet_machine();
    CHECK(rerun_command(g, env) ==
          "LLMBENCH_URL=http://127.0.0.1:8000 LLMBENCH_MODEL=tiny LLMBENCH_SEED=1 ./gates "
          "--test-case='chat stays interactive'");
    g.target.api = "ollama";
    CHECK(holds(rerun_command(g, env), " LLMBENCH_API=ollama LLMBENCH_SEED=1 "));
    g.what.test_case = "it's fast, really";
    g.target.kind = target_kind::simulated;
    CHECK(rerun_command(g, env) == "LLMBENCH_SEED=1 ./gates --test-case='it'\\''s fast\\, really'");
    g.what.test_case.clear();
    CHECK(rerun_command(g, env) == "LLMBENCH_SEED=1 ./gates");
    CHECK(rerun_command(g, {}) == "");
}

TEST_CASE("the last line names the page, and the command of the worst gate that is red") {
    test_gate good = passing_gate(), bad = passing_gate(), refused = refused_gate();
    const environment_facts env = quiet_machine();
    CHECK(last_line({good, good}, "r", env) == "report: r/report.html\n");
    bad.outcome = gate_outcome::failed;
    bad.what.test_case = "two, \"three\"";
    refused.what.line = 7;
    refused.what.test_case = "sound";
    CHECK(last_line({good, refused}, "r", env) ==
          "report: r/report.html; run again: ./gates --test-case=sound\n");
    CHECK(last_line({refused, bad}, "r", env) ==
          "report: r/report.html; run again: ./gates --test-case='two\\, \"three\"'\n");
    bad.what.test_case = "two\n::error::lines";
    CHECK(last_line({bad}, "r", env) == "report: r/report.html\n");
    bad.what.line = 0;  // of a program that has other arguments
    CHECK(last_line({bad}, "r", env) == "report: r/report.html\n");
}

TEST_CASE("no text of a gate, a server or a machine becomes markup") {
    const std::string h = report_html(hostile_gates(), hostile_environment());
    CHECK(page_flaw(h) == "");
    CHECK_FALSE(holds(h, "<img"));
    CHECK_FALSE(holds(h, "<svg onload"));
    CHECK(count(h, "</script>") == count(h, "<script"));
    CHECK(count(h, "&lt;/script&gt;") > 30);
    CHECK(count(h, "&quot;&#39;&amp;") > 20);
    CHECK(h.find('\x01') == std::string::npos);
    CHECK(h.find('\xFF') == std::string::npos);
}

TEST_CASE("several settings stand beside each other, each statistic in a plot of its own") {
    comparisons_and_curves both({sample_comparison(), cut_comparison()});
    comparisons_and_curves rude({sample_comparison(hostile)});
    const std::string h = report_html({passing_gate()}, quiet_machine(), {&both});
    CHECK(page_flaw(h) == "");
    CHECK(holds(h, "<h2>chunked prefill</h2>"));
    CHECK(holds(h, "<li>p99(itl): budget 256 is best, then budget 1024, then budget 4096</li>"));
    CHECK(holds(h, "<span>budget 256 is best</span>"));
    CHECK(holds(h, "<b>2.42 [2."));
    const picojson::value itl = drawing_of(h, "p99(itl)");
    CHECK(shapes_of(itl, "[\"name\"")[0] == R"(["name",["budget 256"],[1]])");
    CHECK(shapes_of(itl, "[\"upright\"").size() == 3);
    // Green is the best: of itl, and of ttft, whose settings differ significantly.
    CHECK(shapes_of(itl, R"(["dot",["pass"],[1,)").size() == 1);
    CHECK(shapes_of(drawing_of(h, "mean(ttft)"), R"(["dot",["pass"],[3,)").size() == 1);
    CHECK(holds(h, "budget 1024 is not compared: process &quot;vllm serve&quot; exited"));
    CHECK_FALSE(holds(page({passing_gate()}), "in turns"));
    CHECK(page_flaw(report_html(hostile_gates(), hostile_environment(), {&rude})) == "");
}

TEST_CASE("each probe of a search is a dot, also one without a value") {
    const std::string h = search_html(searched(), "a gate");
    const picojson::value times = drawing_of(h, "p90(ttft) &lt;= 300 ms");
    CHECK(shapes_of(times, "").size() == 5);
    CHECK(shapes_of(times, "[\"stretch\",[],[8,9]]").size() == 1);
    CHECK(shapes_of(times, "[\"across\",[\"300 ms\"],[0.2").size() == 1);
    CHECK(shapes_of(times, "[\"dot\",[\"open\"],[4,1.0000000000000001e+300]]").size() == 1);
    CHECK(shapes_of(times, "[\"dot\",[\"pass\"],[8,0.25]]").size() == 1);
    CHECK(shapes_of(times, "[\"dot\",[\"fail\"],[9,").size() == 1);
    CHECK(page_flaw("<!doctype html>\n" + h) == "");
}

TEST_CASE("a curve has a dot a load, with the capacity over it and the loads beside it") {
    all_beside all("rates");
    const std::string h = report_html({load_gate(4), load_gate(8), load_gate(16)},
                                      quiet_machine(), {&all});
    const picojson::value over = drawing_of(h, "ttft"), against = drawing_of(h, "Output tokens/s");
    CHECK(shapes_of(over, "[\"stretch\",[],[4,16]]").size() == 1);
    CHECK(shapes_of(over, "[\"dot\",[\"pass\"],[4,").size() == 2);  // of p90 and of p50
    CHECK(shapes_of(over, "[\"dot\",[\"fail\"],[16,").size() == 2);
    CHECK(shapes_of(over, "[\"line\",[\"c\",\"p90\"],[4,").size() == 1);
    CHECK(shapes_of(against, "[\"label\",[\"4 carried\"],").size() == 1);
    CHECK(shapes_of(against, "[\"label\",[\"16 too much\"],").size() == 1);
}

TEST_CASE("the page needs nothing from elsewhere") {
    const std::string h = page(gallery());
    for (const char* part :
         {"<link", "src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("}) {
        CAPTURE(part);
        CHECK_FALSE(holds(h, part));
    }
    CHECK(count(h, "href=\"") == count(h, "href=\"#"));
}

TEST_CASE("four hours of records make a page that opens at once") {
    scenario s = chat(1, 14400);
    s.workload = llmbench::synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(3)};
    const std::string h = page({synthetic_gates::gate_of("four hours", s, {.failed = 0.002}, 2)});
    CHECK(h.size() < 300'000);
    CHECK(page_flaw(h) == "");
    test_gates many;
    for (int i = 0; i < 12; ++i) many.push_back(paired_gate());
    CHECK(page(many).size() < 2 * 1024 * 1024);
}

// tests/browser/run.sh looks at these.
TEST_CASE("pages are written for the browser") {
    const char* directory = std::getenv("LLMBENCH_GALLERY");
    if (!directory) return;
    const auto write = [&](const char* name, const test_gates& gates, const environment_facts& env,
                           all_beside told) {
        const std::filesystem::path to = std::filesystem::path(directory) / name;
        std::filesystem::create_directories(to);
        std::ofstream(to / "report.html", std::ios::binary) << report_html(gates, env, {&told});
        std::ofstream(to / "result.json", std::ios::binary)
            << result_json(gates, env, {}, 1, {&told});
        CHECK(std::filesystem::file_size(to / "report.html") > 10000);
    };
    write("gallery", gallery(), quiet_machine(), all_beside("budget 4096"));
    write("hostile", hostile_gates(), hostile_environment(), all_beside(hostile));
}
