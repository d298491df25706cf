// One test case for every way in which a gate can end. run.sh starts them one by one and checks the
// exit code, the text and the files; run all together they make no sense.
#define LLMBENCH_MAIN
#include "scenarios.hpp"
#include "llmbench_compare.hpp"
#include "llmbench_history.hpp"
#include "llmbench_machines.hpp"

#include <chrono>     // how long a gate is let run
#include <cstdlib>    // getenv, strtoul
#include <iostream>   // what reports tell
#include <stdexcept>  // what escapes from a test case
#include <string>
#include <thread>  // who ends the program beside it, and gates side by side


// A gate before main(), where it is asked for: neither doctest nor its test cases know of it.
static const bool early = [] {
    if (const char* how = std::getenv("GATE_BEFORE_MAIN"))
        gate(quick(simulated(fast_engine()),
                   std::string(how) == "miss" ? out_of_reach() : within_reach()));
    return true;
}();

TEST_CASE("pass") { gate(quick(simulated(fast_engine()), within_reach())); }

// Reports of one's own: each is told, whatever becomes of those before it.
TEST_CASE("reports of one's own throw") {
    on_report([](const report_view&) { throw std::runtime_error("no room\nleft"); });
    on_report([](const report_view&) { throw 42; });
    on_report([](const report_view&) { gate(quick(simulated(fast_engine()), within_reach())); });
    on_report(nullptr);
    on_report([](const report_view& r) { CHECK(r.exit_code == 0); CHECK_MESSAGE(r.exit_code == 77, "no"); });
    on_report([](const report_view& r) { std::cout << "told of " << r.exit_code << "\n"; });
    gate(quick(simulated(fast_engine()), within_reach()));
}
TEST_CASE("pass in real time") { gate(quick(served(), answered())); }

TEST_CASE("miss") { gate(quick(simulated(fast_engine()), out_of_reach())); }

TEST_CASE("advisory miss") {
    scenario s = quick(simulated(fast_engine()), {mean(tpot) <= 1_s, advisory(mean(tpot) <= 0.5_ms)});
    s.repeats = 5;  // else what is only advised costs no third one, and red takes three
    gate(s);
}

// Sixty requests without an error show no more than "at most 6.5 %".
TEST_CASE("inconclusive") {
    scenario s = quick(simulated(fast_engine()), {error_rate <= 0.5_pct});
    s.requests = 30;
    s.repeats = 2;
    gate(s);
}

TEST_CASE("pull request") {
    scenario s = quick(simulated(fast_engine()), {mean(tpot) <= 2 * baseline});
    s.baseline = simulated(fast_engine());
    gate(s);
}

// What the template of a pull-request workflow starts: this branch's server and that of its base.
TEST_CASE("head against base") {
    scenario s = quick({}, {mean(tpot) <= 1.5 * baseline});
    s.baseline = endpoint{};  // the server at LLMBENCH_BASELINE_URL
    s.requests = 20;
    gate(s);
}

// ---- refused

TEST_CASE("refused") {
    scenario s = quick(simulated(fast_engine()), {output_throughput >= 400_tps});
    s.arrivals = poisson(20_rps);
    gate(s);
}

TEST_CASE("default target") { gate(quick({}, within_reach())); }
TEST_CASE("default target again") { gate(quick({}, within_reach())); }

TEST_CASE("refused CHECK_SLO") {
    scenario s = quick(simulated(fast_engine()), {});
    s.repeats = 1;
    CHECK_SLO(run(s), p99(ttft) <= 1_s);
}

// ---- the server ends

TEST_CASE("server gone") {
    engine e = fast_engine();
    e.faults.stop_after = 60;
    gate(quick(simulated(e), within_reach()));
}

// Takes more descriptors than a low limit on them leaves.
TEST_CASE("many threads") {
    scenario s = quick(served(), answered());
    s.client.threads = 64;
    gate(s);
}

TEST_CASE("the program ends first") {
    std::thread([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(700));
        std::exit(0);
    }).detach();
    scenario s = quick(served(), answered());
    s.arrivals = constant(1_rps);
    gate(s);
}

// ---- no objectives: the guard on errors alone

static scenario without_objectives(fraction errors) {
    engine e = fast_engine();
    e.faults.error_rate = errors;
    return quick(simulated(e), {});
}

TEST_CASE("gate without objectives: half fails") { gate(without_objectives(50_pct)); }

TEST_CASE("gate without objectives: all fails") { gate(without_objectives(100_pct)); }

TEST_CASE("run without objectives: half fails") {
    const result r = run(without_objectives(50_pct));
    CHECK(r.verdicts()[0].outcome == verdict::fail);
}

TEST_CASE("run without objectives: all fails") {
    const result r = run(without_objectives(100_pct));
    CHECK(r.verdicts()[0].outcome == verdict::invalid);
}

// A few of eighty: more than one in a hundred, and no shown miss.
TEST_CASE("a few errors") {
    engine e = fast_engine();
    e.faults.error_rate = 1_pct;
    e.seed = 3;
    scenario s = quick(simulated(e), within_reach());
    s.repeats = 2;
    gate(s);
}

TEST_CASE("process ends at once") {
    gate(quick(process{.command = "echo the model file is broken on {port}; exit 4"}, answered()));
}

TEST_CASE("process never ready") {
    gate(quick(process{.command = "echo still loading {port}; exec sleep 60", .ready_within = 1_s}, answered()));
}

TEST_CASE("process whose second start hangs") {
    scenario s = quick(process{.command = "[ ! -e \"$CHILD\" ] || exec sleep 100; : > \"$CHILD\"; "
                                          "exec \"$SERVER\" serve {port}",
                               .restart_between_repeats = true},
                       answered());
    s.repeats = 2;
    gate(s);
}

static const char* const starts_once =
    "[ ! -e \"$CHILD\" ] || exit 4; : > \"$CHILD\"; exec \"$SERVER\" serve {port}";
TEST_CASE("process whose second start fails") {
    scenario s = quick(process{.command = starts_once, .restart_between_repeats = true}, answered());
    s.repeats = 2;
    gate(s);
}

// Its log is as hostile as a server can be, and repeats what it was told in confidence.
TEST_CASE("process with hostile words") {
    gate(quick(process{.command = "printf '::error::it said\\n##[error]so\\r\\n\\033[31m::stop-commands::x\\n'; "
                                  "echo key $TOKEN {port}; exit 4",
                       .env = {{"TOKEN", "hf_abcdefghijklmnop"}}},
               answered()));
}

TEST_CASE("process that repeats its token") {
    gate(quick(process{.command = "echo key $TOKEN; exec \"$SERVER\" serve {port}",
                       .env = {{"TOKEN", "hf_abcdefghijklmnop"}}},
               answered()));
}

// `$SERVER serve PORT` is a simulated server. The shell and the sleeper beside it are what a kill of
// the server alone would leave behind; the sleeper's process id goes to $CHILD.
static const process server_with_child = {
    .command = "sleep 600 & echo $! > \"$CHILD\"; \"$SERVER\" serve {port}"};

TEST_CASE("process with a child") { gate(quick(server_with_child, answered())); }

TEST_CASE("process crashes") {
    scenario s = quick(process{.command = "\"$SERVER\" serve {port} & sleep 0.7; kill -9 $!"}, answered());
    s.requests = 4000;
    gate(s);
}

TEST_CASE("a minute to be ready") {
    gate(quick(process{.command = "echo still loading {port}; exec sleep 60"}, answered()));
}

// ---- what the environment asks for

// With a time budget of twice as much, one repeat fits and a second one does not.
TEST_CASE("two seconds a repeat") {
    scenario s = quick(simulated(fast_engine()), within_reach());
    s.arrivals = constant(20_rps);
    gate(s);
}

TEST_CASE("stored baseline") { gate(compared_with_stored(5_ms)); }

TEST_CASE("four times slower than stored") { gate(compared_with_stored(20_ms)); }

TEST_CASE("held against runs") {
    scenario s = quick(simulated(fast_engine()), {mean(tpot) <= 1.05 * baseline});
    s.baseline = history();
    gate(s);
}

// ---- long enough to be interrupted

static scenario one_minute(const process& target) {
    scenario s = quick(target, answered());
    s.requests = 0;
    s.duration = 60_s;
    return s;
}

TEST_CASE("long with a child") { gate(one_minute(server_with_child)); }

// Both servers in real time: run.sh ends the program, or the process, in the middle of a pair.
TEST_CASE("long at once") {
    scenario s = one_minute({.command = "echo $$ > \"$CHILD\"; exec \"$SERVER\" serve {port}",
                             .restart_between_repeats = true});
    s.baseline = served();
    s.pairs = at_once;
    s.arrivals = poisson(20_rps);
    s.duration = 20_s;
    s.slos = {mean(tpot) <= 100 * baseline};
    gate(s);
}

// Its sleeper does not heed SIGTERM: to end it takes five seconds, or SIGKILL.
TEST_CASE("long with a stubborn child") {
    gate(one_minute({.command = "trap '' TERM; sleep 600 & echo $! > \"$CHILD\"; \"$SERVER\" serve {port}"}));
}

TEST_CASE("an hour of a rehearsal") {
    scenario s = quick({}, within_reach());
    s.arrivals = poisson(100_rps);
    s.requests = 0;
    s.duration = 60_min;
    gate(s);
}

TEST_CASE("long comparison") {
    scenario s = one_minute({});
    s.target = any_target{};
    compare(s, {{"a", server_with_child}, {"b", simulated(fast_engine())}});
}

TEST_CASE("long curve") {
    scenario s = one_minute(server_with_child);
    s.arrivals = {};
    curve(s, {2_users, 4_users});
}

TEST_CASE("settings") {
    engine slower = fast_engine();
    slower.decode_step = 8_ms;
    scenario s = quick({}, out_of_reach());
    const comparison_result c =
        compare(s, {{"fast", simulated(fast_engine())}, {"slow", simulated(slower)}});
    MESSAGE(c);
}

TEST_CASE("settings of which one is lost") {
    compare(quick({}, within_reach()),
            {{"there", simulated(fast_engine())},
             {"lost", process{.command = "echo the model file is missing, {port}; exit 7"}}});
}

TEST_CASE("settings of which one does not come back") {
    scenario s = quick({}, within_reach());
    compare(s, {{"there", simulated(fast_engine())}, {"gone", process{.command = starts_once}}});
}

TEST_CASE("long") { gate(one_minute({.command = "\"$SERVER\" serve {port}"})); }

// ---- assertions of one's own on a run

// Two repeats have to show a miss: it is counted, so that what a machine adds to one of them does not
// hide it, and steps are so long that none of it comes near the limit.
static result measured() {
    engine e = fast_engine();
    e.decode_step = 20_ms;
    scenario s = quick(simulated(e), {});
    s.repeats = 2;
    return run(s);
}

TEST_CASE("assertions hold") {
    const result r = measured();
    CHECK_SLO(r, mean(tpot) <= 1_s);
    REQUIRE_SLO(r, p90(ttft) <= 10_s);
    CHECK(r.requests().size() == 88);
}

TEST_CASE("CHECK_SLO misses") {
    const result r = measured();
    CHECK_SLO(r, goodput(tpot <= 0.5_ms) >= 50_pct);
    MESSAGE("after the check");
}

TEST_CASE("REQUIRE_SLO misses") {
    const result r = measured();
    REQUIRE_SLO(r, goodput(tpot <= 0.5_ms) >= 50_pct);
    MESSAGE("after the requirement");
}

TEST_CASE("WARN_SLO misses") {
    const result r = measured();
    WARN_SLO(r, goodput(tpot <= 0.5_ms) >= 50_pct);
    MESSAGE("after the warning");
}

TEST_CASE("a plain CHECK fails") {
    gate(quick(simulated(fast_engine()), within_reach()));
    CHECK(1 + 1 == 3);
}

// ---- ends that no gate is to blame for

TEST_CASE("an exception after a run") {
    run(quick(simulated(fast_engine()), {}));
    throw std::runtime_error("what the test case itself did");
}

TEST_CASE("a unit test that fails") { CHECK(1 + 1 == 3); }

TEST_CASE("may fail" * doctest::may_fail()) {
    gate(quick(simulated(fast_engine()), out_of_reach()));
}

TEST_CASE("exit after a miss") {
    gate(quick(simulated(fast_engine()), out_of_reach()));
    std::exit(0);
}

TEST_CASE("exit after a pass") {
    gate(quick(simulated(fast_engine()), within_reach()));
    std::exit(0);
}

TEST_CASE("_Exit after a miss") {
    gate(quick(simulated(fast_engine()), out_of_reach()));
    std::_Exit(0);
}

// ---- threads

static scenario named(const char* name, const slo_list& slos) {
    scenario s = quick(served(), slos);
    s.name = name;
    return s;
}

TEST_CASE("one of three threads misses") {
    std::thread a([] { gate(named("first", answered())); });
    std::thread b([] { gate(named("second", {goodput(e2e <= 5_ms) >= 50_pct})); });
    std::thread c([] { gate(named("third", answered())); });
    a.join();
    b.join();
    c.join();
}

// Two gates that main() does not wait for: one runs, one waits for its turn.
TEST_CASE("nobody waits for them") {
    for (const char* name : {"one", "another"})
        std::thread([name] {
            scenario s = named(name, answered());
            s.arrivals = constant(1_rps);
            gate(s);
        }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
}

TEST_CASE("run does not assert") { run(quick(simulated(fast_engine()), out_of_reach())); }

TEST_CASE("no gate in it") { CHECK(1 + 1 == 2); }
