// Gates on simulated(): their load is computed instead of waited for.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "support/rejudged.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>

using namespace live;

namespace {

scenario five_minutes(const char* name, const any_target& target = simulated()) {
    return {.name = name,
            .target = target,
            .workload = synthetic{.prompt_tokens = uniform(32, 96), .output_tokens = fixed(12)},
            .arrivals = poisson(2_rps),
            .duration = 5_min,
            .repeats = 2,
            .slos = {p95(ttft) <= 500_ms, mean(tpot) <= 30_ms}};
}
std::string lines_of_records(const std::string& gate) {
    std::string all, line;
    std::istringstream in(content_of(report_file("records.jsonl")));
    const std::string named = "\"gate\":\"" + gate + "\"";
    while (std::getline(in, line)) {
        const std::size_t at = line.find(named), id = line.find(",\"gate\"");
        if (at != std::string::npos) all += line.substr(id + 8 + gate.size()) + "\n";
    }
    return all;
}

}  // namespace

TEST_CASE("twenty minutes of load are computed, and the same every time") {
    const result a = run(five_minutes("virtual")), b = run(five_minutes("virtual_again"));
    CHECK(a.verdicts()[0].outcome == verdict::pass);
    REQUIRE(a.verdicts().size() == b.verdicts().size());
    for (std::size_t i = 0; i < a.verdicts().size(); ++i) {
        CHECK(a.verdicts()[i].measured == b.verdicts()[i].measured);
        CHECK(a.verdicts()[i].estimate.high == b.verdicts()[i].estimate.high);
        CHECK(a.verdicts()[i].outcome == b.verdicts()[i].outcome);
    }
    for (const record& r : a.requests()) {
        CHECK(r.late_ns == 0);
        CHECK(r.dispatched_ns == r.scheduled_ns);
    }
    CHECK(a.requests().size() > 1000);
    const picojson::value reported = reported_gate("virtual");
    CHECK(reported.get("target").get("virtual_time").evaluate_as_boolean());
    CHECK(reported.get("self_check").get("ok").evaluate_as_boolean());
    CHECK_FALSE(reported.get("self_check").contains("lateness_p99"));
    CHECK(lines_of_records("virtual") != "");
}

TEST_CASE("every report of a gate in virtual time says so") {
    const heard_run r = heard_of(brief(simulated(), "computed"));
    CHECK(holds(r.said, "simulated in virtual time"));
    CHECK(holds(r.said, "computed in virtual time"));
    CHECK_FALSE(holds(r.said, "sends late by"));
    const std::string files = report_files_with("in virtual time");
    for (const char* name : {"report.html", "summary.md", "junit.xml"}) CHECK(holds(files, name));
    CHECK(holds(report_files_with("\"virtual_time\""), "result.json"));
    CHECK(holds(report_files_with("time=\"virtual\""), "metrics.txt"));
}
