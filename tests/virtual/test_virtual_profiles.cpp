// Gates with .on_fail = profile{}: asked for after a failed verdict and never else, outside of the
// measurement, and told in every report.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/failing_gates.hpp"
#include "support/texts.hpp"
#include "llmbench_faults.hpp"

#include <string>

using namespace live;

TEST_CASE("a failed gate's server is profiled under the same load, after the measurement") {
    const logging_server server(quick_engine());
    const std::string name = "profiled";
    const heard console;
    const result r = run(failing_at(server.url(), name));
    const std::string said = texts::unwrapped(said_of(r, console));
    CHECK(holds(said, "failed: its server is asked for a profile of 500 ms of the same load"));
    CHECK(holds(said, "requests; POST /start_profile answered HTTP 200; POST /stop_profile "
                      "answered HTTP 200; the server writes it where its"));

    const auto asked = server.profiler_log();
    REQUIRE(asked.size() == 2);
    CHECK(asked[0].path == "/start_profile");
    CHECK(asked[1].path == "/stop_profile");
    CHECK(asked[1].received_ns - asked[0].received_ns >= 500'000'000);
    std::size_t before = 0, during = 0;
    for (const server_log_entry& e : server.log()) {
        const bool later = e.received_ns > asked[0].received_ns;
        before += !later;
        during += later;
        if (later) CHECK(e.prompt_tokens == 64);
        CHECK(e.received_ns < asked[1].received_ns);
    }
    CHECK(before >= 40);
    CHECK(during >= 4);
    // Nothing of it is a result: not in the evidence, not in the records, not in the words.
    CHECK(r.requests().size() == 40);  // two repeats show such a miss
    CHECK(texts::count(content_of(report_file("records.jsonl")),
                       "\"gate\":\"" + name + "\"") == before);
    CHECK(holds(server.page_of_metrics(), "vllm:prefix_cache_hits_total{engine=\"0\",model_name="
                                          "\"simulated\"} 0.0\n"));

    const picojson::value reported = reported_profile(name);
    CHECK(reported.get("taken").get<bool>());
    CHECK(reported.get("load_s").get<double>() >= 0.5);
    CHECK(reported.get("requests").get<double>() >= static_cast<double>(during));
    CHECK(reported.get("stop").get("came").to_str() == "answered HTTP 200");
    for (const char* file : {"report.html", "summary.md", "result.json"})
        CHECK(holds(content_of(report_file(file)), "/stop_profile"));
}

TEST_CASE("nothing is profiled where nothing counts as failed") {
    const logging_server server(quick_engine());
    const auto profiled = [&](const char* name, const slo_list& slos) {
        scenario s = failing_at(server.url(), name);
        s.slos = slos;
        run(s);
        return reported_gate(name).contains("profile") || !server.profiler_log().empty();
    };
    CHECK_FALSE(profiled("passes", {mean(e2e) <= 60_s}));
    CHECK_FALSE(profiled("advises", {advisory(mean(e2e) <= 0.001_ms)}));
    scenario unasked = failing_at(server.url(), "asks for none");
    unasked.on_fail = {};
    CHECK(outcome_of(run(unasked), "mean(e2e) <= 0.001 ms") == verdict::fail);
    CHECK_FALSE(reported_gate("asks for none").contains("profile"));
    CHECK(server.profiler_log().empty());

    engine broken = quick_engine();
    broken.faults.error_rate = 100_pct;
    const logging_server errs(broken);
    scenario s = failing_at(errs.url(), "invalid");
    s.workload = prompts({"hi"});
    CHECK(outcome_of(run(s), "mean(e2e) <= 0.001 ms") == verdict::invalid);
    CHECK(errs.profiler_log().empty());
}
