// The traffic people really have: a dataset's prompts, a recorded trace, conversations.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

#include <string>

using namespace llmbench;

// Samples with a handful of lines each; guides/workloads.md says where the real files come from.
static const std::string here = __FILE__;
static const std::string folder = here.substr(0, here.rfind('/') + 1) + "../tests/data/";
static const any_target server = simulated(engine{.decode_step = 4_ms});  // or set LLMBENCH_URL

TEST_CASE("questions of a dataset, with answers as long as the recorded ones") {
    gate({
        .target = server,
        .workload = dataset{.path = folder + "dolly.jsonl", .format = dolly, .max_prompt_tokens = 1024},
        .arrivals = poisson(20_rps),
        .requests = 40,
        .slos = {p90(ttft) <= 2_s, goodput(presets::chat.predicate()) >= 80_pct},
    });
}

TEST_CASE("a recorded trace at ten times its speed, with its lengths") {
    gate({
        .target = server,
        .arrivals = replay(folder + "azure.csv").speed(10),
        .slos = {mean(ttft) <= 2_s, mean(tpot) <= 100_ms},
    });
}

TEST_CASE("conversations answer later turns as fast as first ones") {
    gate({
        .target = server,
        .workload = conversations{.turns = uniform(2, 5),
                                  .user_tokens = lognormal(40, 0.5),
                                  .output_tokens = fixed(16),
                                  .think = 50_ms,
                                  .system_tokens = fixed(256)},
        .arrivals = closed_loop(8).ramp(200_ms),
        .requests = 120,
        .slos = {p90(first_turn_ttft) <= 1_s, p90(later_turn_ttft) <= 1_s},
    });
}

TEST_CASE("a system prompt that all conversations share is read once") {
    const auto time_to_first_answers = [](bool is_shared) {
        return run({.target = server,
                    .workload = conversations{.turns = fixed(3),
                                              .output_tokens = fixed(32),
                                              .system_tokens = fixed(4000),
                                              .shared_system_prompt = is_shared},
                    .arrivals = closed_loop(4),
                    .requests = 24,
                    .repeats = 1})
            .estimate(mean(first_turn_ttft))
            .value;
    };
    CHECK(time_to_first_answers(true) < 0.8 * time_to_first_answers(false));
}

TEST_CASE("a recorded conversation, played with the server's own answers") {
    const result r = run({.target = server,
                          .workload = dataset{.path = folder + "sharegpt.json", .max_turns = 10},
                          .arrivals = closed_loop(4),
                          .requests = 30,
                          .repeats = 1});
    for (const record& x : r.requests())
        if (x.turn > 0) CHECK(x.cached_tokens >= 0);  // what the prefix cache had of its prompt
}
