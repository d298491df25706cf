// process{...}: started, waited for, told of, ended.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "support/relay.hpp"
#include "support/scripted_server.hpp"
#include "support/sockets.hpp"
#include "llmbench_switched.hpp"

using namespace llmbench;
using namespace live;

TEST_CASE("a process is started on a free port, measured and ended") {
    scenario s = quick_scenario(served());
    s.requests = 30;
    s.slos = {startup_time <= 60_s, p50(ttft) <= 2_s};
    const result r = run(s);
    CHECK(outcome_of(r, "startup_time <= 60 s") == verdict::pass);
    CHECK(outcome_of(r, "p50(ttft) <= 2 s") == verdict::pass);
    CHECK(r.estimate(startup_time).value > 0);
}

TEST_CASE("a restart between repeats measures the startup each time") {
    process p = served();
    p.restart_between_repeats = true;
    scenario s = quick_scenario(p);
    s.name = "restarted";
    s.requests = 10;
    s.warmup = 0;
    s.repeats = 2;
    CHECK(judge(run(s), startup_time <= 60_s).outcome == verdict::pass);
    const picojson::value repeats = reported_gate("restarted").get("candidate").get("repeats");
    const double first = repeats.get(0).get("startup_s").get<double>(),
                 second = repeats.get(1).get("startup_s").get<double>();
    CHECK(first > 0);
    CHECK(second > 0);
    CHECK(first != second);
}

TEST_CASE("processes that have one GPU in turns stay, and are started anew after so many pairs") {
    const auto in_turns_on = [](const process& p) {
        return switched(p, post("/reset_prefix_cache"), post("/reset_prefix_cache"), {.restart_every = 2});
    };
    scenario s = quick_scenario(in_turns_on(served()));
    s.name = "started anew";
    s.baseline = in_turns_on(served());
    s.requests = 10;
    s.warmup = 0;
    s.repeats = 4;
    run(s);
    for (const char* variant : {"candidate", "baseline"}) {
        const picojson::value repeats = reported_gate("started anew").get(variant).get("repeats");
        for (std::size_t i = 0; i < 4; ++i) {
            CAPTURE(i);
            CHECK(repeats.get(i).get("startup_s").is<double>() == (i % 2 == 0));
        }
    }
}

TEST_CASE("the first answer of a cold process is counted from its spawn, at each restart") {
    process p = served();
    p.restart_between_repeats = true;
    scenario s = quick_scenario(p);
    s.name = "cold";
    s.requests = 10;
    s.warmup = 0;
    s.repeats = 2;
    s.slos = {startup_time <= 60_s, first_answer_time <= 60_s};
    const result r = run(s);
    CHECK(outcome_of(r, "first_answer_time <= 60 s") == verdict::pass);
    CHECK(r.measured(first_answer_time) > r.measured(startup_time));
    const picojson::value repeats = reported_gate("cold").get("candidate").get("repeats");
    for (std::size_t i : {0u, 1u})
        CHECK(repeats.get(i).get("first_answer_s").get<double>() > repeats.get(i).get("startup_s").get<double>());
}

TEST_CASE("an endpoint is left cold before each repeat, and its first answer is waited for") {
    const logging_server server(quick_engine());
    const scratch dir;
    const std::string file = dir.file("cold");
    scenario s = quick_scenario(endpoint{.url = server.url(), .cold = "echo cold {url} >> " + file});
    s.name = "scaled";
    s.requests = 10;
    s.repeats = 2;
    s.slos = {first_answer_time <= 60_s};
    CHECK(outcome_of(run(s), "first_answer_time <= 60 s") == verdict::pass);
    CHECK(content_of(file) == "cold " + server.url() + "\ncold " + server.url() + "\n");
}

TEST_CASE("a command may bring its own exec, variables or quotes") {
    for (const char* before : {"exec ", "LLMBENCH_X=1 ", "  exec env LLMBENCH_X=1 ", "command "}) {
        CAPTURE(before);
        process p;
        p.command = before + ("\"" + this_program()) + "\" --serve {port}";
        CHECK(refusal_to_bring_up(p) == "");
    }
}

TEST_CASE("what goes wrong before the load repeats no secret either") {
    const std::string token = "t0ken-of-a-gateway";
    const int listener = relay::ipv4_listener();
    std::string body = "{\"data\":[{\"id\":\"a\"},{\"id\":\"" + token + "\"}]}";
    const relay::acceptor server(listener, [&body](int fd, int) {
        char taken[4096];
        ::recv(fd, taken, sizeof taken, 0);
        const std::string all = scripted::json("200 OK", body);
        ::send(fd, all.data(), all.size(), sockets::no_signal);
    });
    const endpoint e{.url = "http://127.0.0.1:" + std::to_string(relay::port_of(listener)),
                     .headers = {{"Authorization", "Bearer " + token}}};
    const std::string listed = refusal_to_bring_up(e);
    CHECK(holds(listed, "lists 2 (a, ***)"));
    body = "no entry for " + token;
    CHECK(holds(refusal_to_bring_up(e), "answered HTTP 200: no entry for ***"));
    process p;
    p.command = ": {port}; echo the key is s3cret-of-a-process; exit 7";
    p.env = {{"A_KEY", "s3cret-of-a-process"}};
    const std::string ended = refusal_to_bring_up(p);
    CHECK(holds(ended, "ends:\n    | the key is ***"));
}
