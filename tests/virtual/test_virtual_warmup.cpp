// Warm-ups that end when the server is stable.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "virtual/scripted_server.hpp"
#include "virtual/execution_environment.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;
using namespace std::chrono_literals;

namespace {
/// The first ten requests wait for what the server has to do first, all others for 20 ms.
scripted::answer cold_at_first(int& asked) {
    scripted::answer a = scripted::healthy(3);
    a.insert(a.begin(), scripted::wait(asked++ < 10 ? 1500ms : 20ms));
    return a;
}
scenario of(const std::string& url, const arrival_pattern& arrivals) {
    return {.name = "warm-up",
            .target = endpoint{.url = url},
            .workload = prompts({"hi"}),
            .arrivals = arrivals,
            .warmup = until_stable(8_s),
            .requests = 60,
            .repeats = 2,
            .slos = {p90(ttft) <= 700_ms}};
}
std::vector<record> phase_of(const result& r, run_phase phase, int repeat) {
    std::vector<record> out;
    for (const record& x : r.requests())
        if (x.phase == phase && x.repeat == repeat) out.push_back(x);
    std::sort(out.begin(), out.end(), [](const record& a, const record& b) {
        return a.scheduled_ns < b.scheduled_ns;
    });
    return out;
}
}  // namespace

TEST_CASE("a cold first wave is no part of what is judged, and every report tells of it") {
    int asked{0};
    const scripted::server server([&](const scripted::request&) { return cold_at_first(asked); });
    const result r = run(of(server.url(), constant(40_rps)));
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    CHECK(r.measured(p90(ttft)) < 0.7);
    for (const int repeat : {0, 1}) {
        CAPTURE(repeat);
        const std::vector<record> warm = phase_of(r, run_phase::warmup, repeat),
                                  measured = phase_of(r, run_phase::measure, repeat);
        REQUIRE(measured.size() == 60);
        REQUIRE(warm.size() >= 30);
        CHECK(warm.size() < 300);  // 8 s would be 320
        // One load: it goes on at the answer that showed it stable, 20 ms after its send.
        CHECK(measured[0].scheduled_ns - warm.back().scheduled_ns ==
              20'000'000 + 2 * virtual_world::way_ns);
        CHECK(measured[59].scheduled_ns - measured[0].scheduled_ns == 59 * 25'000'000ll);
        for (const record& x : measured) CHECK(x.dispatched_ns == x.scheduled_ns);
    }
    // The wave is over before the measured part begins, though nothing waits for it to be.
    CHECK(content_of(report_file("summary.md")).find("ttft 1.5") != std::string::npos);
    CHECK(phase_of(r, run_phase::warmup, 0).size() > 60);
    for (const char* file : {"summary.md", "report.html"}) {
        const std::string text = content_of(report_file(file));
        CHECK(text.find(" was stable after") != std::string::npos);
        CHECK(text.find("s of its first ten requests") != std::string::npos);
    }
}

TEST_CASE("users go on as they are when a warm-up ends") {
    int asked{0};
    const scripted::server server([&](const scripted::request&) { return cold_at_first(asked); });
    const result r = run(of(server.url(), closed_loop(4)));
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    CHECK(phase_of(r, run_phase::measure, 1).size() == 60);
    const std::vector<record> warm = phase_of(r, run_phase::warmup, 1);
    CHECK(warm.size() >= 30);
    CHECK(warm.back().end_ns - warm.front().scheduled_ns < 7'000'000'000);
}
