// Server metrics, read beside a load: against the simulated engine's own truth, and
// against servers that lie, hang, restart or serve others.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "virtual/scripted_server.hpp"
#include "virtual/execution_environment.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace live;

namespace {

/// Eight users of two slots, for long enough to be read five times.
scenario waiting_at(const any_target& target, const char* name) {
    scenario s;
    s.name = name;
    s.target = target;
    s.workload = synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(12)};
    s.arrivals = closed_loop(8);
    s.warmup = 8;
    s.duration = 5_s;
    s.repeats = 2;
    return s;
}
engine narrow() {
    engine e = quick_engine();
    e.slots = 2;
    return e;
}
endpoint at(const std::string& url) { return {.url = url, .model = "simulated"}; }
double now_s() { return seconds(virtual_world::now_ns()); }

/// Asks a server for a few tokens ten times a second.
class somebody_else {
public:
    explicit somebody_else(int port) : port_(port) { ask(); }

private:
    struct deaf final : virtual_world::talk {
        void on_bytes(std::string_view) override {}
        void on_end() override {}
    };
    void ask() {
        const std::string body = R"({"prompt":"a","max_tokens":4})";
        asked_->push_back(virtual_world::connected_to(port_, std::make_shared<deaf>()));
        asked_->back()->send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                             std::to_string(body.size()) + "\r\n\r\n" + body);
        virtual_world::after(100'000'000, [this, known = std::weak_ptr(asked_)] {
            if (!known.expired()) ask();
        });
    }

    const int port_;
    const std::shared_ptr<std::vector<std::shared_ptr<virtual_world::end>>> asked_ =
        std::make_shared<std::vector<std::shared_ptr<virtual_world::end>>>();
};

}  // namespace

TEST_CASE("queue and running requests are those of the engine, and judged again they are the same") {
    const logging_server server(narrow());
    scenario s = waiting_at(at(server.url()), "the engine's own metrics");
    s.slos = {mean(queue_time) <= 60_s, max(queued_requests) <= 8, max(running_requests) <= 2,
              max(kv_cache_usage) <= 95_pct, preemptions <= 0,
              max(server_metric("vllm:num_requests_waiting{engine=\"0\"}")) <= 8};
    const result r = run(s);
    check_passes(r);
    double queue = 0;
    const auto log = server.log();
    for (const server_log_entry& e : log) queue += e.queue_s;
    // Of all its requests; the window has those of five seconds, which are like the others.
    const double measured = r.measured(mean(queue_time));
    CAPTURE(queue / static_cast<double>(log.size()));
    CHECK(measured > 0.7 * queue / static_cast<double>(log.size()));
    CHECK(measured < 1.4 * queue / static_cast<double>(log.size()));
    CHECK(r.measured(max(running_requests)) == 2);
    CHECK(r.measured(max(queued_requests)) <= 6);
    CHECK(r.measured(max(queued_requests)) >= 4);
    CHECK(verdict_of(r, "max(queued_requests) <= 8").measured ==
          verdict_of(r, "max(server_metric(\"vllm:num_requests_waiting{engine=\"0\"}\")) <= 8")
              .measured);
    check_rejudged(r, s.slos);
    const std::string json = content_of(report_file("result.json"));
    CHECK(json.find("\"cross_check\"") != std::string::npos);
    CHECK(content_of(report_file("summary.md")).find("cross-check: the server's counters match our requests") !=
          std::string::npos);
}

TEST_CASE("somebody else's requests make a gate invalid") {
    const logging_server server(narrow());
    const somebody_else other(server.port());
    const result r = run(waiting_at(at(server.url()), "shared"));
    CHECK(outcome_of(r, "error_rate <= 1 %") == verdict::invalid);
    CHECK(reason_of(r, "error_rate <= 1 %").find("server: it served others too: in repeat ") == 0);
}

TEST_CASE("a server that restarts in mid-run makes a gate invalid") {
    engine e = narrow();
    e.faults.restart_after = 30;
    const logging_server server(e);
    const result r = run(waiting_at(at(server.url()), "restarted"));
    CHECK(outcome_of(r, "error_rate <= 1 %") == verdict::invalid);
    CHECK(reason_of(r, "error_rate <= 1 %").find("server: it restarted in repeat 1") == 0);
}

TEST_CASE("a page that is never answered harms nothing") {
    engine e = narrow();
    e.faults.metrics_hang = true;
    const logging_server server(e);
    scenario s = waiting_at(at(server.url()), "mute");
    const double began = now_s();
    check_passes(run(s));
    CHECK(now_s() - began < 60);
    s.slos = {mean(queue_time) <= 1_s};
    const std::string why = refusal_of(s);
    CHECK(why.find("mean(queue_time) <= 1 s is refused") != std::string::npos);
    CHECK(why.find("no answer within 5 s") != std::string::npos);
    s.slos = {};
    s.target = endpoint{.url = server.url(), .model = "simulated", .metrics_url = "/metrics"};
    CHECK(refusal_of(s).find("endpoint.metrics_url: ") != std::string::npos);
}

TEST_CASE("a key and headers go to the server alone, not to whom else its metrics are asked of") {
    const variable key("LLMBENCH_API_KEY", "sk-not-for-exporters");
    std::string own, other;
    const std::string page = "vllm:num_requests_waiting 0\n";
    scripted::server server;
    server.report([&](const scripted::request& r) { own = r.header("Authorization"); return page; });
    scripted::server exporter;
    exporter.report([&](const scripted::request& r) {
        other += r.header("Authorization") + r.header("X-Team");
        return std::string("DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 5\n");
    });
    endpoint e{.url = server.url(), .model = "scripted", .headers = {{"X-Team", "secret-team"}}};
    e.telemetry = {exporter.url() + "/metrics"};
    run(asking(e));
    CHECK(own == "Bearer sk-not-for-exporters");
    CHECK(other == "");
}

TEST_CASE("what a page does not have is refused before the load, with what it has") {
    scenario s = waiting_at(simulated(narrow()), "not there");
    const auto why = [&](const slo& x) {
        s.slos = {x};
        return refusal_of(s);
    };
    CHECK(why(acceptance_length >= 2).find("the page of vLLM does not report it; it reports "
                                           "queue_time, ") != std::string::npos);
    CHECK(why(energy_per_token <= 1_J).find("telemetry = {") != std::string::npos);
    CHECK(why(max(server_metric("vllm:num_waiting")) <= 1).find("the page has no such name") !=
          std::string::npos);
    CHECK(why(max(server_metric("vllm:request_success_total")) <= 1).find("names 4 series") !=
          std::string::npos);
    scripted::server plain;
    s.target = endpoint{.url = plain.url(), .model = "scripted"};
    CHECK(why(preemptions <= 0).find("/metrics: HTTP 404; servers that have no page") !=
          std::string::npos);
}

TEST_CASE("trtllm-serve's page is behind JSON, with nothing on it before its first request") {
    int answered = 0, looks = 0;
    scripted::server server([&](const scripted::request&) {
        ++answered;
        return scripted::healthy();
    });
    const std::string of = "{engine_type=\"pytorch\",model_name=\"m\"} ";
    server.report([&](const scripted::request& r) {
        if (r.path == "/metrics") return std::string("[]");
        if (++looks == 1) return std::string();
        return "trtllm_prompt_tokens_total" + of + std::to_string(64 * (1 + answered)) +
               "\ntrtllm_prompt_cached_tokens_total" + of + std::to_string(16 * (1 + answered)) +
               "\ntrtllm_request_success_total{finished_reason=\"length\"} " +
               std::to_string(1 + answered) + "\n";
    });
    scenario s = asking(endpoint{.url = server.url(), .model = "scripted"}, 8);
    s.repeats = 2;
    s.slos = {prefix_cache_hits >= 20_pct};
    CHECK(run(s).measured(prefix_cache_hits) == 0.25);
    CHECK(answered == 16);
    s.slos = {max(queued_requests) <= 4};
    const std::string why = refusal_of(s);
    CHECK(why.find("the page of TensorRT-LLM does not report it; it reports prefix_cache_hits; with "
                   "enable_iter_perf_stats: true") != std::string::npos);
    s.target = endpoint{.url = server.url(), .model = "scripted", .metrics_url = "/metrics"};
    CHECK(refusal_of(s).find("return_perf_metrics: true (trtllm-serve)") != std::string::npos);
}

// ---- the simulated server's own page ---------------------------------------------------------------

namespace {
double sample(const std::string& page, const std::string& name, const std::string& own = "") {
    const std::string begins =
        "\nvllm:" + name + "{engine=\"0\"," + own + "model_name=\"simulated\"} ";
    CAPTURE(begins);
    const std::size_t at = page.find(begins);
    REQUIRE(at != std::string::npos);
    return std::stod(page.substr(at + begins.size()));
}
double ended(const std::string& page, const char* why) {
    return sample(page, "request_success_total", std::string("finished_reason=\"") + why + "\",");
}
scenario sixteen_at(const logging_server& server) {
    return {.target = at(server.url()),
            .workload = prompts({"a prompt of six words"}),
            .arrivals = closed_loop(16),
            .warmup = 0,
            .requests = 16,
            .repeats = 1,
            .options = {.max_tokens = 4}};
}
}  // namespace

TEST_CASE("what a client gave up on is aborted, what the server broke off is an error") {
    engine endless = quick_engine();
    endless.decode_step = 1_s;
    {
        const logging_server server(endless);
        scenario s = sixteen_at(server);
        s.limits.total = 0.3_s;
        run(s);
        const std::string page = server.page_of_metrics();
        CHECK(ended(page, "abort") == 16);
        CHECK(sample(page, "request_queue_time_seconds_count") == 1);  // the check before the load
    }
    engine rude = quick_engine();
    rude.faults.reset_rate = 100_pct;
    const logging_server server(rude);
    run(sixteen_at(server));
    const std::string page = server.page_of_metrics();
    CHECK(ended(page, "error") == 16);
    CHECK(ended(page, "abort") == 0);
    CHECK(sample(page, "time_to_first_token_seconds_count") == 17);  // the check has one, too
}
