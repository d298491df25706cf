// A page of metrics that is read beside a load, in a thread of its own.
#include "support/effects.hpp"
#include "support/live.hpp"
#include "support/scripted_server.hpp"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

using namespace llmbench;
using namespace live;

TEST_CASE("a page that hangs in mid-run leaves the load as it was, and its objectives invalid") {
    engine narrow = quick_engine();
    narrow.slots = 2;
    const logging_server server(narrow);
    std::atomic<int> asked{0};
    scripted::server page;
    page.report([&](const scripted::request&) {
        if (++asked > 4) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        return std::string("# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 0\n");
    });
    scenario s;
    s.name = "hangs";
    s.target = endpoint{.url = server.url(), .model = "simulated",
                        .metrics_url = page.url() + "/metrics"};
    s.workload = synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(12)};
    s.arrivals = closed_loop(8);
    s.warmup = 8;
    s.duration = 5_s;
    s.repeats = 2;
    s.slos = {max(queued_requests) <= 3, mean(ttft) <= 5_s};
    const result r = run(s);
    all_ok(r);
    CHECK(outcome_of(r, "max(queued_requests) <= 3") == verdict::invalid);
    CHECK(reason_of(r, "max(queued_requests) <= 3")
              .find("readings of its page in the steady window failed") != std::string::npos);
    CHECK(outcome_of(r, "mean(ttft) <= 5 s") == verdict::pass);
}
