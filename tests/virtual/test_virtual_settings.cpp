// Several settings of a server on one trace: measured in turns, compared, told of.
#include "support/loads.hpp"
#include "virtual/scripted_server.hpp"
#include "llmbench_compare.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {

scenario suite(const char* name) {
    scenario s;
    s.name = name;
    s.workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(8)};
    s.arrivals = closed_loop(2);
    s.warmup = 2;
    s.requests = 12;
    s.repeats = 2;
    return s;
}
/// compare() where a setting that is not there fails no test case.
comparison_result compared(const scenario& s, const types::list<setting>& settings) {
    comparison_result c;
    CHECK(refusal_by([&] { c = compare(s, settings); }) == "");
    return c;
}
std::string refusal_to_compare(const scenario& s, const types::list<setting>& settings) {
    return refusal_by([&] { compare(s, settings); });
}
setting engine_named(const char* name, const engine& e) { return {name, simulated(e)}; }

}  // namespace

TEST_CASE("a smaller prefill budget lets prompts disturb the others less") {
    engine chunks = engine_of(10_ms), whole = engine_of(10_ms);
    chunks.prefill_per_token = whole.prefill_per_token = 0.2_ms;
    chunks.prefill_budget = 64;
    scenario s = suite("chunked prefill");
    // A prompt comes while others decode, and takes 80 ms at once or seven steps of 23 ms: one gap
    // of 23 is long in each running answer, or some are a little longer.
    const auto longest = percentile(itl, 0.97);
    s.workload = synthetic{.prompt_tokens = fixed(400), .output_tokens = fixed(24)};
    s.arrivals = constant(5_rps);
    s.requests = 20;
    s.repeats = 3;
    s.slos = {longest <= 1_s};
    const comparison_result c =
        compare(s, {engine_named("chunks", chunks), engine_named("whole", whole)});
    INFO(c.explain());
    REQUIRE(c.settings().size() == 2);
    // Every setting is a gate of its own, with its own verdicts.
    CHECK(c["chunks"].name() == types::text("chunked prefill / chunks"));
    for (int i = 0; i < 2; ++i) CHECK(c.at(i).verdicts()[0].outcome == verdict::pass);
    CHECK(c.best(longest) == types::text("chunks"));
    const estimate_t ratio = c.ratio("whole", "chunks", longest);
    CHECK(ratio.low > 1);
    CHECK(ratio.value == doctest::Approx(1 / c.ratio("chunks", "whole", longest).value));
    CHECK(holds(c.line(), "p97(itl): chunks is best, then whole"));
    CHECK_SLO(c["whole"], p50(ttft) <= 20_s);

    // The records of a setting give its verdicts again.
    check_rejudged(c["chunks"], s.slos);
    const picojson::value all = texts::parsed(content_of(report_file("result.json")));
    const picojson::value reported = all.get("comparisons").get(0);
    CHECK(reported.get("name").to_str() == "chunked prefill");
    CHECK(reported.get("rounds").get<double>() == 3);
    const picojson::value first = reported.get("statistics").get(0);
    CHECK(first.get("statistic").to_str() == "p97(itl)");
    CHECK(first.get("best").to_str() == "chunks");
    CHECK(first.get("ratios").get(0).get("log_ratios").get<picojson::array>().size() == 3);
}

TEST_CASE("two settings differ by a time: with its interval, as a verdict, and from the files") {
    scenario s = suite("what a setting adds");
    s.repeats = 4;
    const comparison_result c =
        compare(s, {engine_named("base", engine_of(20_ms)), engine_named("head", engine_of(21.5_ms))});
    const auto added = c.difference("head", "base", mean(ttft));
    INFO(added);
    CHECK(added.value == doctest::Approx(0.003).epsilon(0.4));
    CHECK(added <= 10_ms);
    CHECK(added >= 100_us);
    CHECK_FALSE(added <= 1_ms);
    CHECK(c.difference("base", "head", mean(ttft)).value == doctest::Approx(-added.value));
    CHECK(holds(added.words, "mean(ttft): +"));
    CHECK(refusal_by([&] { c.difference("head", "head", mean(ttft)); }) ==
          "difference() of setting \"head\" and itself");
    CHECK(holds(refusal_by([&] { c.difference("head", "best", mean(ttft)); }),
                "there is no setting \"best\""));

    const slo_list limits = {mean(ttft) <= baseline + 10_ms, mean(ttft) <= baseline + 500_us,
                             mean(tpot) <= 1.15 * baseline};
    const result pairs = c.difference("head", "base");
    const slo_verdict within = judge(pairs, limits[0]);
    CHECK(within.outcome == verdict::pass);
    CHECK(within.counted_in == verdict_unit::pair);
    CHECK(holds(within.line(), "measured +"));
    CHECK(judge(pairs, limits[1]).outcome == verdict::fail);
    CHECK_SLO(c.difference("head", "base"), mean(ttft) <= baseline + 10_ms);
    const types::text records = report_file("records.jsonl").c_str();
    const types::list<slo_verdict> again =
        judge(records, limits, "what a setting adds / head", "what a setting adds / base");
    auto from_files = again.begin();
    for (const slo& limit : limits) {
        const slo_verdict v = judge(pairs, limit);
        CHECK(from_files->explain() == v.explain());
        CHECK(from_files->line() == v.line());
        ++from_files;
    }
    CHECK(holds(refusal_by([&] {
              judge(records, limits, "what a setting adds / head", "what a setting adds / head");
          }), "are no two settings of one compare()"));
}

TEST_CASE("a setting that dies has no more turns, and is compared on nothing") {
    engine mortal = engine_of(5_ms);
    mortal.faults.stop_after = 20;  // in the second round
    const comparison_result c = compared(
        suite("one dies"), {engine_named("a", engine_of(5_ms)), engine_named("mortal", mortal)});
    CHECK(holds(c.line(), "mortal is not compared: "));
    CHECK(std::isnan(c.ratio("mortal", "a", p50(tpot)).value));
    CHECK(c["a"].requests().size() == 2 * 14);
}

TEST_CASE("nonsense is refused in a sentence, before anything is sent") {
    const setting a = engine_named("a", engine_of(5_ms)), b = engine_named("b", engine_of(5_ms));
    const scenario s = suite("nonsense");
    CHECK(holds(refusal_to_compare(s, {a}), "compare() has 1 setting: it takes 2 to 8"));
    CHECK(holds(refusal_to_compare(s, {a, b, a}), "settings 1 and 3 are both named \"a\""));
    CHECK(holds(refusal_to_compare(s, {a, {" ", simulated()}}), "setting 2 has no name"));
    CHECK(holds(refusal_to_compare(s, {a, engine_named(std::string(61, 'x').c_str(), {})}),
                "over 60 characters"));
    const auto refused = [&](const char* why, auto change) {
        scenario x = s;
        change(x);
        const std::string got = refusal_to_compare(x, {a, b});
        CAPTURE(got);
        CHECK(holds(got, why));
    };
    refused("target is given", [](scenario& x) { x.target = simulated(); });
    refused("baseline is given", [](scenario& x) { x.baseline = simulated(); });
    refused("baseline is given", [](scenario& x) { x.baseline = otherwise{.same = true}; });
    refused("find_capacity() searches one",
            [](scenario& x) { x.arrivals = poisson(up_to(8_rps)); });
    refused("compare() has no baseline",
            [](scenario& x) { x.slos = {mean(tpot) <= 1.1 * baseline}; });
    refused("repeats is 13: compare() takes 2 to 12 rounds",
            [](scenario& x) { x.repeats = 13; });
    refused("repeats is 1: compare() takes", [](scenario& x) { x.repeats = 1; });
    CHECK(reported_gate("nonsense").get("outcome").to_str() == "refused");
}

TEST_CASE("two settings that are one server are refused, and told as refused") {
    const logging_server server(engine_of(5_ms));
    const endpoint it{.url = server.url()};
    CHECK(holds(refusal_to_compare(suite("twice the same"), {{"a", it}, {"b", it}}),
                "settings \"a\" and \"b\" are one server at http://127.0.0.1:"));
    CHECK(server.log().size() < 40);  // words were asked about, no load was sent
    CHECK(reported_gate("twice the same / b").get("outcome").to_str() == "refused");
}

TEST_CASE("a time budget leaves what was measured by then, and says so") {
    const variable budget("LLMBENCH_TIME_BUDGET", budget_from_now(5));
    scenario s = suite("no time");
    s.slos = {p50(ttft) <= 1_s};
    s.requests = 0;
    s.duration = 30_s;
    const comparison_result c = compared(
        s, {{"a", endpoint_of(engine_of(5_ms))}, {"b", endpoint_of(engine_of(5_ms))}});
    CHECK(holds(c.line(), " left, and a round takes 60 s or more: none of 2 was measured"));
    CHECK(c["a"].verdicts()[0].outcome == verdict::inconclusive);
}

TEST_CASE("a time budget that ends while a setting is prepared blames no setting") {
    const auto answering = [](const scripted::answer& to_warm) {
        return [to_warm](const scripted::request& r) {
            return r.path == "/warm" ? to_warm : scripted::healthy();
        };
    };
    const scripted::server ready(answering({scripted::send(scripted::json("200 OK", "{}"))}));
    const scripted::server stalls(answering({scripted::stall()}));
    const variable budget("LLMBENCH_TIME_BUDGET", budget_from_now(10));
    scenario s = suite("no time to prepare");
    s.slos = {p50(ttft) <= 1_s};
    s.prepare = {post("/warm")};
    const comparison_result c =
        compare(s, {{"a", endpoint{.url = ready.url(), .model = "m"}},
                    {"b", endpoint{.url = stalls.url(), .model = "m"}}});
    INFO(c.line());
    for (int i = 0; i < 2; ++i) {
        CHECK(c.at(i).verdicts()[0].outcome == verdict::inconclusive);
        CHECK(holds(c.at(i).verdicts()[0].reason, "LLMBENCH_TIME_BUDGET"));
    }
}

TEST_CASE("a setting's report tells how its server warmed up") {
    scenario s = suite("warm settings");
    s.arrivals = constant(40_rps);
    s.warmup = until_stable(8_s);
    compare(s, {engine_named("a", engine_of(5_ms)), engine_named("b", engine_of(5_ms))});
    const picojson::value notes = reported_gate("warm settings / b").get("notes");
    CHECK(holds(notes.serialize(), "repeat 2"));
    CHECK(holds(notes.serialize(), "stable"));
}

TEST_CASE("a result without a setting of this name says which there are") {
    const comparison_result c = compared(
        suite("names"), {engine_named("a", engine_of(5_ms)), engine_named("b", engine_of(5_ms))});
    CHECK(holds(texts::refusal_of([&] { c["c"]; }),
                "there is no setting \"c\" in the result: it has a and b"));
    CHECK(holds(texts::refusal_of([&] { c.at(2); }), "there is no setting at 2"));
    CHECK(comparison_result().settings().empty());
}
