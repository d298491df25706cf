// Right answers beside speed: a server that got faster by answering worse does not pass.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_answers.hpp"
#include "llmbench_simulated.hpp"

#include <string>

using namespace llmbench;

// 200 made-up sums, which the simulated server can work out. GSM8K's file has the same form.
static const std::string here = __FILE__;
static const std::string sums = here.substr(0, here.rfind('/') + 1) + "../tests/data/arithmetic.jsonl";

TEST_CASE("the server is right under load, and quick") {
    gate({
        .target = simulated(),  // or leave it out, and set LLMBENCH_URL
        .workload = questions{.path = sums, .format = gsm8k},
        .arrivals = closed_loop(16),
        .slos = {accuracy >= 95_pct, p90(e2e) <= 5_s},
        .options = {.max_tokens = 512},
    });
}

TEST_CASE("a server that is wrong more often than the one before is found") {
    engine worse;
    worse.faults.wrong_answers = 10_pct;  // stands for a model of fewer bits
    const result r = run({
        .target = simulated(worse),
        .baseline = simulated(),
        .workload = questions{.path = sums, .format = gsm8k, .max_items = 100},
        .arrivals = closed_loop(16),
        .slos = {accuracy >= 0.98 * baseline},
    });
    CHECK(r.verdicts()[0].outcome == verdict::fail);
    CHECK(r.measured(accuracy) < 0.95);
}

TEST_CASE("a server whose answers change is found, wherever they do") {
    engine other;
    other.faults.wrong_answers = 20_pct;
    const result r = run({
        .target = simulated(other),
        .baseline = simulated(),
        .workload = questions{.path = sums, .format = gsm8k, .max_items = 100},
        .arrivals = closed_loop(16),
        .slos = {same_answers >= 95_pct},  // byte for byte, so under load a real server needs less
    });
    CHECK(r.verdicts()[0].outcome == verdict::fail);  // answers.jsonl has both texts
}
