// Gates end to end, on the simulated engine: do they tell a healthy engine from a slow,
// a failing and a dead one, and are the numbers those of the server's own log?
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "support/texts.hpp"
#include "virtual/execution_environment.hpp"

#include <string>

using namespace llmbench;
using namespace live;

TEST_CASE("an unchanged branch passes against its own baseline, a slower one fails") {
    scenario s = quick_scenario();
    s.requests = 60;
    s.baseline = simulated(quick_engine());
    s.slos = {mean(tpot) <= 1.30 * baseline};
    CHECK(outcome_of(run(s), "mean(tpot) <= 1.3 * baseline") == verdict::pass);
    engine slow = quick_engine();
    slow.decode_step = 20_ms;
    s.target = simulated(slow);
    const result r = run(s);
    CHECK(outcome_of(r, "mean(tpot) <= 1.3 * baseline") == verdict::fail);
    CHECK(r.verdicts()[0].repeats >= 4);
}

TEST_CASE("a model that is fitted to a run has that run's times at its load") {
    virtual_world::has_rehearsed = true;
    // A server that waits before each first token, as if its prompts were slow.
    engine server = quick_engine();
    server.decode_step = 8_ms;
    server.faults.delay = 100_ms;
    scenario s = quick_scenario(simulated(server));
    s.name = "measured, then rehearsed";
    s.arrivals = poisson(8_rps);
    s.workload = synthetic{.prompt_tokens = lognormal(300, 0.6), .output_tokens = fixed(60)};
    s.slos = {mean(ttft) <= 130_ms, mean(tpot) <= 11_ms};
    const result measured = run(s);
    const files::scratch at;
    const auto keep_as = [&, all = content_of(report_file("result.json"))](const char* name) {
        write(at.file("result.json"), texts::replaced(all, "\"measured, then rehearsed\"", name));
    };
    keep_as("\"measured, then rehearsed (2)\"");  // a gate of a program has a name of its own
    const variable rehearses("LLMBENCH_REHEARSE", at.file("result.json"));
    const heard_run again = heard_of(s);
    CHECK(holds(texts::unwrapped(again.said), "an engine fitted to "));
    CHECK(holds(texts::unwrapped(again.said), ", within "));
    CHECK(!holds(texts::unwrapped(again.said), "at mean lengths"));
    const auto mean_of = [](const result& r, const auto& metric) {
        double sum = 0, n = 0;
        for (const record& x : r.requests())
            if (x.phase == run_phase::measure) sum += metric(x), ++n;
        return sum / n;
    };
    const auto first = [](const record& x) { return seconds(x.first_token_ns - x.scheduled_ns); };
    const auto each = [](const record& x) {
        return seconds(x.last_token_ns - x.first_token_ns) / (x.output_tokens - 1);
    };
    CHECK(mean_of(again.result, first) == doctest::Approx(mean_of(measured, first)).epsilon(0.1));
    CHECK(mean_of(again.result, each) == doctest::Approx(mean_of(measured, each)).epsilon(0.1));
    // Under another load it is fitted at the means of the run's.
    s.arrivals = poisson(4_rps);
    keep_as("\"measured, then rehearsed (3)\"");
    CHECK(holds(texts::unwrapped(heard_of(s).said), "% at mean lengths; repeats"));
}

TEST_CASE("a rehearsal of a simulated target is of its own engine, and foresees what its repeats differ by") {
    const variable rehearses("LLMBENCH_REHEARSE", "1");
    virtual_world::has_rehearsed = true;
    engine e = quick_engine();
    e.decode_step = 40_ms;
    e.step_per_sequence = 0_ms;
    e.prefill_per_token = 0_ms;
    e.jitter = 0.001;
    e.faults.error_rate = 50_pct;  // what breaks it is no part of its pace
    scenario s = quick_scenario(simulated(e));
    s.name = "rehearsed as itself";
    s.arrivals = poisson(20_rps);
    s.slos = {mean(tpot) <= 42.5_ms, mean(tpot) <= 30_ms};
    const std::string said = texts::unwrapped(heard_of(s).said);
    CAPTURE(said);
    CHECK(holds(said, "a REHEARSAL on the engine of its own target, whose repeats differ as they do"));
    // 6 % within a limit, of which a machine that adds 2 % would leave one run in many open.
    CHECK(holds(texts::unwrapped(said),
                "a rehearsal: pass on the model; inconclusive in 0 % of the runs"));
    CHECK(holds(said, "a rehearsal: fail on the model"));
    s.target = endpoint{.url = "http://127.0.0.1:1"};
    s.name = "rehearsed on the default engine";
    CHECK(holds(texts::unwrapped(heard_of(s).said), "on the default engine, repeats taken to differ by 2 %"));
}
