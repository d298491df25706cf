// process{...}: started, waited for, told of, ended.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"

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
    p.ready_within = 300_ms;
    const std::string why = bring_up_and_end(p);
    CHECK(holds(why, "was not ready within 300 ms"));
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

TEST_CASE("a process that dies in mid-run makes the gate invalid and is quoted") {
    process p;
    p.command = "echo all is well so far; (sleep 1.2; kill $$) & exec \"" + this_program() +
                "\" --serve {port}";
    scenario s = quick_scenario(p);
    s.requests = 400;
    s.slos = {p50(ttft) <= 2_s};
    const result r = run(s);
    CHECK(r.verdicts()[0].outcome == verdict::invalid);
    const std::string why = r.verdicts()[0].reason;
    CHECK(holds(why, "the server process exited with status 0"));
    CHECK(holds(why, "its log ends: "));
    CHECK(holds(why, "all is well so far"));
}
