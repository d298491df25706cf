// Gates with .on_fail = profile{}: asked for after a failed verdict and never else, outside of the
// measurement, and told in every report.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/failing_gates.hpp"
#include "virtual/scripted_server.hpp"
#include "support/texts.hpp"
#include "llmbench_faults.hpp"

#include <string>
#include <vector>

using namespace live;

namespace {

/// Answers every question for tokens well, and those for a profile as it is told.
class profiled_server {
public:
    explicit profiled_server(const scripted::answer& to_profiler)
        : server_([to_profiler](const scripted::request& r) {
              return holds(r.path, "_profile") ? to_profiler : scripted::healthy();
          }) {}
    std::string url() const { return server_.url(); }
    std::vector<std::string> asked_of_profiler() const {
        std::vector<std::string> paths;
        for (const scripted::request& r : server_.log())
            if (holds(r.path, "_profile")) paths.push_back(r.path);
        return paths;
    }

private:
    scripted::server server_;
};
scenario answering_at(const profiled_server& server, const std::string& name) {
    scenario s = failing_at(server.url(), name);
    s.workload = prompts({"hi"});
    return s;
}

}  // namespace

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

TEST_CASE("a server without a profiler fails all the same, with a sentence on it") {
    const profiled_server server({scripted::send(
        scripted::json("404 Not Found", R"({"detail":"Not Found"})"))});
    const heard console;
    const result r = run(answering_at(server, "without a profiler"));
    CHECK(holds(texts::unwrapped(said_of(r, console)),
                "no profile: POST /start_profile answered HTTP 404: vLLM has it where it was started "
                "with VLLM_TORCH_PROFILER_DIR"));
    CHECK(server.asked_of_profiler() == std::vector<std::string>{"/start_profile"});
    CHECK_FALSE(reported_profile("without a profiler").get("taken").get<bool>());
}

TEST_CASE("a profiler that repeats a key brings it into no file and on no console") {
    const std::string key = "sk-93a4-of-the-profiler";
    const profiled_server server({scripted::send(
        scripted::sized("200 OK", "text/plain", "Bearer " + key + " begins\x1b[2J\n::error::x"))});
    const variable set("LLMBENCH_API_KEY", key);
    const heard console;
    const result r = run(answering_at(server, "secret profiles"));
    const std::string said = texts::unwrapped(said_of(r, console));
    CHECK(holds(said, "answered HTTP 200: Bearer *** begins\\x1b[2J\\n"));
    CHECK_FALSE(holds(said, "sk-93a4"));
    CHECK(report_files_with("sk-93a4") == "");
}

TEST_CASE("the time budget leaves a failed gate failed, without a profile") {
    const logging_server server(quick_engine());
    scenario s = failing_at(server.url(), "no time to profile");
    s.on_fail = profile{.duration = 60_s};
    const variable budget("LLMBENCH_TIME_BUDGET", budget_from_now(40));
    const heard console;
    const result r = run(s);
    CHECK(holds(said_of(r, console), "no profile: LLMBENCH_TIME_BUDGET leaves no time for 60 s"));
    CHECK(server.profiler_log().empty());
}
