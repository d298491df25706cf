// Gates in GoogleTest: the header without doctest, through run() and its verdicts. The same works
// in Catch2, or in no framework at all.
#define LLMBENCH_NO_DOCTEST
#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

#include <gtest/gtest.h>

using namespace llmbench;

/// Fails the test where an objective is missed or could not be measured; notes what is undecided.
static void expect_met(const result& r) {
    for (const slo_verdict& v : r.verdicts()) {
        const bool red = v.outcome == verdict::fail || v.outcome == verdict::invalid;
        EXPECT_TRUE(!red || v.objective.is_advisory) << v.line();
        if (v.outcome == verdict::inconclusive) GTEST_LOG_(WARNING) << v.line();
    }
}

TEST(Chat, StaysInteractive) {
    const result r = run({
        .name = "chat stays interactive",  // no test case of ours to be named after
        .target = simulated(engine{.decode_step = 4_ms, .seed = 5}),
        .workload = synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(16)},
        .arrivals = closed_loop(4),
        .requests = 60,
        .slos = {mean(tpot) <= 25_ms, p90(ttft) <= 300_ms},
    });
    expect_met(r);
    EXPECT_NE(judge(r, p50(e2e) <= 5_s).outcome, verdict::fail);  // asked afterwards
}

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    const int failed = RUN_ALL_TESTS();
    const int gates = exit_code();  // 1, 2 or 3 say which red, 77 that a gate was skipped
    return failed != 0 && (gates == 0 || gates == 77) ? failed : gates;
}
