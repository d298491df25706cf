// A gate that costs next to nothing: a few requests to the simulated server.
#ifndef LLMBENCH_TEST_GATES_HPP
#define LLMBENCH_TEST_GATES_HPP
inline llmbench::scenario tiny_scenario() {
    using namespace llmbench;
    return {.target = simulated(engine{}),
            .workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(4)},
            .arrivals = closed_loop(4),
            .warmup = 4,
            .requests = 40,
            .repeats = 2,
            .slos = {mean(tpot) <= 10_s}};
}
#endif
