// Gates beside a project's other doctest tests, under a main() of its own.
//   ./own_main --test-suite=perf      only the gates
//   ./own_main --test-suite-exclude=perf
#define DOCTEST_CONFIG_IMPLEMENT
#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

using namespace llmbench;

TEST_CASE("prompts are cut to the context window") {  // an ordinary unit test
    CHECK(1024 % 16 == 0);
}

TEST_SUITE("perf") {
    TEST_CASE("chat is fast enough") {
        gate({
            .target = simulated(engine{.decode_step = 4_ms, .seed = 4}),
            .workload = synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(16)},
            .arrivals = closed_loop(4),
            .requests = 60,
            .slos = {mean(tpot) <= 25_ms, p90(ttft) <= 300_ms},
        });
    }
}

int main(int argc, char** argv) {
    doctest::Context context(argc, argv);
    const int result = context.run();
    if (context.shouldExit()) return result;
    const int gates = exit_code();  // 1, 2 or 3 say which red, 77 that a gate was skipped
    return result != 0 && (gates == 0 || gates == 77) ? result : gates;
}
