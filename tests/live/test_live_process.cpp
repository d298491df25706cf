// process{...}: started, waited for, told of, ended.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "support/relay.hpp"
#include "support/scripted_server.hpp"
#include "support/sockets.hpp"
#include "llmbench_compare.hpp"

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

using namespace llmbench;
using namespace live;

namespace {
#ifdef __APPLE__
/// And no zombie.
bool is_alive(pid_t pid) {
    int what[4] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, pid};
    kinfo_proc info{};
    std::size_t size = sizeof info;
    return ::sysctl(what, 4, &info, &size, nullptr, 0) == 0 && size > 0 &&
           info.kp_proc.p_stat != SZOMB;
}
#else
bool is_alive(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(status, line);
    const std::size_t paren = line.rfind(')');
    return paren != std::string::npos && line[paren + 2] != 'Z';
}
#endif

}  // namespace

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

TEST_CASE("a process that exits at once is told with its log's tail") {
    process p;
    p.command = "echo the model file is missing, {port}; exit 7";
    const std::string why = bring_up_and_end(p);
    CHECK(holds(why, "exited with status 7 before it was ready"));
    CHECK(holds(why, "the model file is missing"));
}

TEST_CASE("a command that does not say where its port belongs is refused") {
    process p;
    p.command = "llama-server --port 8080";
    const std::string why = bring_up_and_end(p);
    CHECK(holds(why, "process.command \"llama-server --port 8080\" has no {port}"));
}

TEST_CASE("a process that never becomes ready is given up after ready_within") {
    process p;
    p.command = "echo still loading, {port}; sleep 60";
    p.ready_within = 2_s;  // in which its echo is surely heard
    const std::string why = bring_up_and_end(p);
    CHECK(holds(why, "was not ready within 2 s"));
    CHECK(holds(why, "still loading"));
}

TEST_CASE("environment and working directory reach the process") {
    process p;
    p.command = ": {port}; echo \"$LLMBENCH_TEST_WORD in $PWD\"; exit 1";
    p.env = {{"LLMBENCH_TEST_WORD", "salt"}};
    p.working_directory = "/tmp";
    CHECK(holds(bring_up_and_end(p), "salt in /tmp"));
    p.working_directory = "/no/such/place";
    CHECK(holds(bring_up_and_end(p), "cannot enter /no/such/place"));
}

TEST_CASE("the whole process group is ended, children of the server included") {
    const scratch directory;
    const std::string pid_file = directory.file("grandchild.pid");
    process p;
    p.command = "(trap '' TERM; sleep 100) & echo $! > " + pid_file + "; \"" + this_program() +
                "\" --serve {port}";
    REQUIRE(bring_up_and_end(p) == "");
    pid_t pid = 0;
    std::ifstream(pid_file) >> pid;
    REQUIRE(pid > 0);
    bool alive = true;
    for (int i = 0; i < 200 && (alive = is_alive(pid)); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK_FALSE(alive);
}

TEST_CASE("a command may bring its own exec, variables or quotes") {
    for (const char* before : {"exec ", "LLMBENCH_X=1 ", "  exec env LLMBENCH_X=1 ", "command "}) {
        CAPTURE(before);
        process p;
        p.command = before + ("\"" + this_program()) + "\" --serve {port}";
        CHECK(bring_up_and_end(p) == "");
    }
}

TEST_CASE("a process that dies in mid-run makes the gate invalid, and its log is named") {
    process p;
    // Ready long before it dies, and asked for more than ten seconds.
    p.command = "echo all is well so far; (sleep 4; kill $$) & exec \"" + this_program() +
                "\" --serve {port}";
    scenario s = quick_scenario(p);
    s.requests = 400;
    s.slos = {p50(ttft) <= 2_s};
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::invalid);
    const std::string why = r.verdicts()[0].reason;
    CHECK(holds(why, "the server process exited with status 0"));
    CHECK(holds(why, "; its log is "));
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

TEST_CASE("a setting that cannot be started is invalid with the reason, and the others go on") {
    const scenario s = {
        .name = "one is broken",
        .workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(8)},
        .arrivals = closed_loop(2),
        .warmup = 2,
        .requests = 12,
        .repeats = 2};
    comparison_result c;
    CHECK(refusal_by([&] {
              c = compare(s, {{"a", simulated(engine_of(5_ms))},
                              {"broken",
                               process{.command = "echo no such model, {port}; exit 3"}},
                              {"b", simulated(engine_of(10_ms))}});
          }) == "");
    CHECK(holds(c.line(), "broken is not compared: process"));
    CHECK(holds(c.line(), "exited with status 3 before it was ready"));
    CHECK(judge(c["broken"], p50(ttft) <= 1_s).outcome == verdict::invalid);
    CHECK(c["a"].requests().size() == 2 * 14);
    CHECK(c["b"].requests().size() == 2 * 14);
    CHECK(std::isfinite(c.ratio("a", "b", p50(tpot)).value));
    CHECK(std::isnan(c.ratio("broken", "b", p50(tpot)).value));
    CHECK(reported_gate("one is broken / broken").get("outcome").to_str() == "invalid");
    CHECK(reported_gate("one is broken / a").get("outcome").to_str() == "passed");
    CHECK(holds(report_files_with("no such model"), "summary.md"));
}
