// Loads over sockets: what several threads share, what the machine allows, what a client reads while it
// still sends, and that its stamps are those of a server in real time.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/scripted_server.hpp"
#include "support/short_loads.hpp"
#include "support/wire_server.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>

using namespace llmbench;
using namespace live;

// ---- threads

TEST_CASE("two threads send what one would send") {
    for (const arrival_pattern& a :
         {arrival_pattern(poisson(200_rps)), arrival_pattern(closed_loop(5)),
          arrival_pattern(all_at_once())}) {
        CAPTURE(static_cast<int>(a.data().kind));
        scenario s = short_requests(a);
        s.target = endpoint_of(quick);
        s.warmup = 3;
        s.client = {.threads = 2};
        const records all = all_ok(run(s));
        CHECK(indices(all) == from_0_to(43));
        CHECK(phase_of(all, run_phase::warmup).size() == 3);
        for (const record& r : all) CHECK(r.dispatched_ns >= r.scheduled_ns);
    }
    scenario s = short_requests(poisson(200_rps));
    s.target = endpoint_of(quick);
    s.client = {.threads = 2};
    check_follows(all_ok(run(s)), open_loop_times(poisson(200_rps), 40));
}

TEST_CASE("an id is one answer's, whichever thread had the first one") {
    const scripted::server server([](const scripted::request&) -> scripted::answer {
        const std::string events =
            scripted::sse_event(R"({"type":"response.output_text.delta","delta":" word"})") +
            scripted::sse_event(R"({"type":"response.completed","response":{"id":"the same",)"
                                R"("status":"completed","usage":{"input_tokens":30,"output_tokens":1}}})");
        return {scripted::send(scripted::sized_stream(events))};
    });
    scenario s = short_requests(closed_loop(2));
    s.target = endpoint{.url = server.url(), .model = "m", .api = openai_responses};
    s.workload = conversations{.turns = fixed(2), .user_tokens = fixed(20), .force_output = false};
    s.options.server_history = true;
    s.requests = 4;
    s.client = {.threads = 2};
    const result r = run(s);
    int kept = 0, refused = 0;
    for (const record& x : r.requests()) {
        if (x.turn > 0) continue;  // which nothing goes on from
        kept += x.status == request_status::ok;
        refused += error(x) == "the response has the id of an earlier one";
    }
    CHECK(kept == 1);
    CHECK(refused == 1);
}

TEST_CASE("gates of several threads take turns") {
    // Where the sanitizer looks for races, too.
    const endpoint server = endpoint_of(quick);
    std::vector<result> results(3);
    std::vector<std::thread> threads;
    for (result& r : results)
        threads.emplace_back([&] { r = run(asking(server, 2)); });
    for (std::thread& t : threads) t.join();
    std::vector<std::pair<long long, long long>> spans;
    for (const result& r : results) {
        REQUIRE(r.requests().size() > 0);
        spans.emplace_back(r.requests()[0].scheduled_ns, 0);
        for (const record& q : r.requests()) {
            spans.back().first = std::min(spans.back().first, q.scheduled_ns);
            spans.back().second = std::max(spans.back().second, q.end_ns);
        }
    }
    std::sort(spans.begin(), spans.end());
    CHECK(spans[0].second < spans[1].first);
    CHECK(spans[1].second < spans[2].first);
}

TEST_CASE("many answers of all kinds at once do not disturb each other") {
    const wire::cases_server<scripted::server> server(wire::all_cases());
    scenario s = server.asking();
    s.arrivals = closed_loop(24);
    s.requests = 3 * static_cast<int>(server.cases().size());
    s.client.threads = 2;
    const result r = run(s);
    REQUIRE(r.requests().size() == 3 * server.cases().size());
    for (std::size_t i = 0; i < r.requests().size(); ++i) {
        const wire::wire_case& c = server.cases()[i % server.cases().size()];
        CAPTURE(c.name);
        wire::check(r.requests()[i], c.expected);
    }
}

// ---- limits of the machine

TEST_CASE("a load that needs more connections than there are ports or files is refused") {
    scenario s = short_requests(all_at_once());
    s.requests = 70000;
    const std::string why = refusal_to_run(s);
    CHECK(holds(why, "the load needs 70000 connections at a time"));
}

TEST_CASE("an answer that never ends, as fast as it is read, ends with limits.total") {
    // Comments, since a fast machine reads the 64 MiB that events of an answer may have in a second.
    std::string some;
    while (some.size() < 200000) some += scripted::chunk(": still here\n\n");
    scripted::server server({{scripted::send(scripted::chunked_head() + scripted::chunk(scripted::chat_chunk("a"))),
                              scripted::send_again(some, 1u << 30), scripted::close()}});
    scenario s = asking(endpoint{.url = server.url()});
    s.limits.total = 1_s;
    const record r = only_record(s);
    CHECK(status(r) == "timeout");
    CHECK(holds(error(r), "limits.total"));
    CHECK(r.events == 1);
}

// ---- the server's side of it

#if defined(__linux__) && !defined(LLMBENCH_WAIT_BY_ASIO)
TEST_CASE("a client that does not run for a while knows when tokens came meanwhile") {
    engine e = quick_engine();
    e.decode_step = 20_ms;
    const logging_server host(e);
    scenario s = quick_scenario(endpoint{.url = host.url()});
    s.workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(40)};
    s.arrivals = closed_loop(4);
    s.requests = 24;
    s.repeats = 1;
    struct sigaction away{}, before{};
    away.sa_handler = [](int) {
        const timespec t{0, 200000000};
        ::nanosleep(&t, nullptr);
    };
    ::sigaction(SIGUSR1, &away, &before);
    result r;
    std::atomic<bool> over{false};
    std::thread client([&] {
        r = run(s);
        over = true;
    });
    while (!over) {  // a third of the time
        std::this_thread::sleep_for(std::chrono::milliseconds(600));
        if (!over) ::pthread_kill(client.native_handle(), SIGUSR1);
    }
    client.join();
    ::sigaction(SIGUSR1, &before, nullptr);
    std::map<std::string, server_log_entry> log;
    for (const auto& x : host.log()) log[x.request_id] = x;
    std::vector<double> late_ms;
    for (const record& x : r.requests()) {
        REQUIRE(log.count(x.id) == 1);
        const auto late = [&](long long stamp, long long written) {
            late_ms.push_back(static_cast<double>(stamp - written) * 1e-6);
            CHECK(late_ms.back() >= 0);
        };
        if (x.first_early_ns == 0) late(x.first_token_ns, log[x.id].first_write_ns);
        else CHECK(x.first_token_ns - x.first_early_ns <= log[x.id].first_write_ns);
        late(x.last_token_ns, log[x.id].last_write_ns);
    }
    CHECK(r.self_check().stamped_fraction > 0.9);
    CHECK(r.self_check().stamp_lag_max > 0.1);  // so late some were read
    CHECK(r.self_check().unknown_gaps > 0);
    std::sort(late_ms.begin(), late_ms.end());
    CHECK(late_ms[late_ms.size() * 9 / 10] < 20);
    CHECK(late_ms[late_ms.size() / 2] < 2);
}
#endif

TEST_CASE("made-up prompts are new to a prefix cache whenever a gate is run again") {
    engine e = quick;
    e.prefix_cache = true;
    const logging_server server(e);
    std::set<std::string> nonces;
    for (const char* name : {"the first time", "the second time", "under another name"}) {
        CAPTURE(name);
        scenario s = short_requests(constant(100_rps));
        s.name = name;
        s.target = endpoint{.url = server.url()};
        s.workload = synthetic{.prompt_tokens = fixed(200), .output_tokens = fixed(2)};
        s.requests = 12;
        s.repeats = 2;
        for (const record& r : all_ok(run(s))) CHECK(r.cached_tokens == 0);
        const picojson::value scenario = reported_gate(name).get("scenario");
        nonces.insert(scenario.get("nonce").to_str());
        CHECK(scenario.get("trace_hash").to_str() ==
              reported_gate("the first time").get("scenario").get("trace_hash").to_str());
    }
    CHECK(nonces.size() == 3);
}
