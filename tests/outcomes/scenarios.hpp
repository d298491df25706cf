// What the programs of this folder share: a fast simulated server and a load that takes no second.
#ifndef LLMBENCH_TEST_OUTCOMES_SCENARIOS_HPP
#define LLMBENCH_TEST_OUTCOMES_SCENARIOS_HPP
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

#include <cstdlib>  // getenv

using namespace llmbench;

// One token takes 2 ms.
inline engine fast_engine() {
    return {.decode_step = 2_ms, .step_per_sequence = 0_ms, .prefill_per_token = 0_ms, .jitter = 0};
}

// The same on a port, in real time, which run.sh has started: where a signal, a thread, a limit of the
// machine or the clock is what a case is about.
inline endpoint served() { return {.url = std::getenv("SERVED")}; }

inline scenario quick(const any_target& target, const slo_list& slos) {
    return {
        .target = target,
        .workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(8)},
        .arrivals = closed_loop(4),
        .warmup = 4,
        .requests = 40,
        .slos = slos,
    };
}

// Against the baseline in the file $BASELINE, with an engine whose tokens take so long.
inline scenario compared_with_stored(time_span decode_step) {
    engine e = fast_engine();
    e.decode_step = decode_step;
    scenario s = quick(simulated(e), {p50(tpot) <= 2 * baseline, mean(tpot) <= 1_s});
    s.name = "compared";
    s.baseline = stored(std::getenv("BASELINE"));
    s.workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = uniform(6, 10)};
    return s;
}

// In real time: an objective that no machine which stands still for a while, and hands over several
// tokens at once afterwards, has a part in.
inline slo_list answered() { return {mean(e2e) <= 1_min}; }
inline slo_list within_reach() { return {mean(tpot) <= 1_s}; }
inline slo_list out_of_reach() { return {mean(tpot) <= 0.5_ms}; }
#endif
