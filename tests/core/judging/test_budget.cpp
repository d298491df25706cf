// What a budget of time leaves open.
#include "llmbench.hpp"
#include "core/described/verdict_text.hpp"
#include "support/verdicts.hpp"

#include <cmath>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

TEST_CASE("what the time budget leaves open is inconclusive and says so") {
    const std::string why = "LLMBENCH_TIME_BUDGET of 60 s is spent after 2 of 5 repeats";
    const slo s = mean(ttft) <= 100_ms;
    const auto on = [&](vector<repeat_data> data, const slo& objective) {
        measurement m = measured(std::move(data), {objective});
        m.stopped = why;
        return judged(m, objective);
    };
    const slo_verdict open = on(repeats_with_ttft({99, 99}), s);
    CHECK(open.outcome == verdict::inconclusive);
    CHECK(str(open.reason) == why);
    CHECK(open.estimate.value == about(0.099));
    CHECK(on({repeat_with_failures(100, 0), repeat_with_failures(100, 0)}, error_rate <= 0.9_pct)
              .reason == text(why));
    // Noise is no other reason to be silent about it.
    const slo_verdict noisy = on(repeats_with_ttft({70, 100}), s);
    CHECK(noisy.outcome == verdict::inconclusive);
    CHECK(mentions(noisy.reason, "LLMBENCH_TIME_BUDGET"));

    const slo_verdict decided = on(repeats_with_ttft({80, 80}), s);
    CHECK(decided.outcome == verdict::pass);
    CHECK(decided.reason.empty());
    CHECK(on(repeats_with_ttft({150, 150, 150}), s).outcome == verdict::fail);
    // Two are too few to fail, however far outside.
    CHECK(on(repeats_with_ttft({150, 150}), s).outcome == verdict::inconclusive);
    CHECK(mentions(on(repeats_with_ttft({150, 150}), s).reason, "LLMBENCH_TIME_BUDGET"));
    CHECK(on(repeats_with_ttft({80}), s).outcome == verdict::inconclusive);
}

TEST_CASE("a budget that left no time to measure shows nothing at all") {
    measurement m =
        measured({}, {mean(ttft) <= 100_ms, error_rate <= 1_pct, goodput(ttft <= 1_s) >= 1_pct,
                      startup_time <= 60_s, mean(ttft) <= 1.1 * baseline});
    m.stopped = "LLMBENCH_TIME_BUDGET of 1 s is spent after 0 of 5 repeats";
    vector<slo_verdict> verdicts = judge_all(m);
    m.slos = {mean(ttft) <= 100_ms};  // now with the guard on errors
    verdicts.push_back(judge_all(m).back());
    verdicts.push_back(judged(m, p90(ttft) <= 1_s));
    for (const slo_verdict& v : verdicts) {
        CHECK(v.outcome == verdict::inconclusive);
        CHECK(str(v.reason) == m.stopped);
        CHECK(std::isnan(v.estimate.value));
        CHECK(mentions(verdict_line(v), "INCONCLUSIVE"));
    }
}

TEST_CASE("a server that went away is invalid however short the time was") {
    measurement m = measured(repeats_with_ttft({99, 99}));
    m.stopped = "LLMBENCH_TIME_BUDGET of 60 s is spent after 2 of 5 repeats";
    m.candidate[1].target_gone = "it went away";
    CHECK(judged(m, mean(ttft) <= 100_ms).outcome == verdict::invalid);
}
