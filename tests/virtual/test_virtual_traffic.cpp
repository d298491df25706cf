// Datasets, recorded traces and conversations, from the file to the verdict, against the simulated
// server. Numbers of tokens are words there.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"

#include <map>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {

/// Answers in milliseconds; the limits are seconds away.
engine immediate() {
    engine e = quick_engine();
    e.decode_step = 1_ms;
    e.step_per_sequence = 0_ms;
    return e;
}
scenario short_gate(const any_workload& workload, long long requests = 12) {
    scenario s;
    s.target = simulated(immediate());
    s.workload = workload;
    s.arrivals = constant(100_rps);
    s.warmup = 2;
    s.requests = requests;
    s.repeats = 2;
    s.slos = {mean(ttft) <= 5_s};
    return s;
}
std::vector<record> of_repeat(const result& r, int repeat) {
    std::vector<record> out;
    for (const record& x : r.requests())
        if (x.repeat == repeat) out.push_back(x);
    return out;
}
/// All is answered, and every objective shown to be met.
result passes(const scenario& s) {
    result r = run(s);
    check_passes(r);
    all_ok(r);
    return r;
}

}  // namespace

TEST_CASE("every dataset format gates a server, from its file to the verdict") {
    const dataset files[] = {
        {.path = "data/sharegpt.json", .format = sharegpt},
        {.path = "data/dolly.jsonl", .format = dolly},
        {.path = "data/openai.jsonl", .format = openai_jsonl},
        {.path = "data/captions.json", .format = coco_captions, .images = "data/images"},
        {.path = "data/image_questions.jsonl", .format = coco_captions, .images = "data/images"},
        {.path = "data/prompts.txt", .format = text_lines},
    };
    for (const dataset& file : files) {
        CAPTURE(std::string(file.path));
        scenario s = short_gate(file);
        if (file.format == text_lines) s.options.max_tokens = 5;
        const result r = passes(s);
        const std::vector<record> first = of_repeat(r, 0), second = of_repeat(r, 1);
        REQUIRE(first.size() == 14);
        REQUIRE(second.size() == 14);
        for (std::size_t i = 0; i < first.size(); ++i) {
            CHECK(first[i].prompt_tokens == second[i].prompt_tokens);
            CHECK(first[i].output_tokens == second[i].output_tokens);
            CHECK(first[i].prompt_tokens > 5);  // the salt alone has five words
            if (file.format == text_lines) CHECK(first[i].output_tokens == 5);
        }
    }
}

TEST_CASE("recorded traces are replayed at their times, with their lengths") {
    for (const std::string file : {"azure.csv", "burstgpt.csv", "mooncake.jsonl"}) {
        CAPTURE(file);
        scenario s;
        s.target = simulated(immediate());
        s.arrivals = replay("data/" + file).speed(file == "burstgpt.csv" ? 100 : 10);
        s.warmup = 3;
        s.repeats = 2;
        s.slos = {mean(ttft) <= 5_s};
        const result r = passes(s);
        std::vector<record> measured;
        for (const record& x : of_repeat(r, 1))
            if (x.phase == run_phase::measure) measured.push_back(x);
        REQUIRE(measured.size() == 10);
        const double times[] = {0, 0.13, 0.31, 0.36, 0.80, 1.02, 1.10, 1.55, 1.71, 1.90};
        const int outputs[] = {6, 12, 7, 3, 3, 10, 16, 10, 3, 17};
        for (std::size_t i = 0; i < 10; ++i) {
            const double at =
                static_cast<double>(measured[i].scheduled_ns - measured[0].scheduled_ns) * 1e-9;
            CHECK(at == doctest::Approx(times[i] / 10).epsilon(1e-4));
            CHECK(measured[i].output_tokens == outputs[i]);
        }
        if (file == "azure.csv") CHECK(measured[6].prompt_tokens == 167);
    }
}

TEST_CASE("what prompts of a recorded trace have in common is common again") {
    scenario s;
    s.target = simulated(immediate());
    s.arrivals = replay("data/mooncake.jsonl").speed(10).max_in_flight(1);  // so that nothing runs beside it
    s.warmup = 0;
    s.repeats = 1;
    const std::vector<record> all = of_repeat(run(s), 0);
    REQUIRE(all.size() == 10);
    // Even requests share two blocks of 512 tokens, odd ones one block; the first of each is cold.
    CHECK(all[0].cached_tokens == 0);
    CHECK(all[1].cached_tokens == 0);
    for (std::size_t i = 2; i < 10; ++i) {
        CAPTURE(i);
        CHECK(all[i].cached_tokens >= (i % 2 == 0 ? 1024 : 512));
        CHECK(all[i].cached_tokens < (i % 2 == 0 ? 1024 : 512) + 16);
    }
}

// ---- conversations ------------------------------------------------------------------------------

TEST_CASE("users play conversations whose prompts grow by the answers") {
    scenario s = short_gate(conversations{.turns = 3,
                                          .user_tokens = fixed(20),
                                          .output_tokens = fixed(8),
                                          .system_tokens = fixed(32)},
                            30);
    s.arrivals = closed_loop(2);
    s.warmup = 3;
    s.slos = {mean(first_turn_ttft) <= 5_s, mean(later_turn_ttft) <= 5_s};
    const result r = passes(s);
    const std::vector<record> all = of_repeat(r, 1);
    REQUIRE(all.size() == 33);
    std::map<long long, std::vector<record>> by_conversation;
    for (const record& x : all) by_conversation[x.conversation].push_back(x);
    CHECK(by_conversation.size() == 11);
    for (const auto& [number, turns] : by_conversation) {
        REQUIRE(turns.size() == 3);
        for (std::size_t t = 0; t < 3; ++t) {
            CHECK(turns[t].turn == static_cast<int>(t));
            CHECK(turns[t].output_tokens == 8);
            // The system prompt, and of each turn before the message and the answer.
            CHECK(turns[t].prompt_tokens == 32 + 20 + static_cast<int>(t) * (20 + 8));
            if (t > 0) CHECK(turns[t].scheduled_ns >= turns[t - 1].end_ns);
            // What was said before is in the server's prefix cache, by blocks of 16 tokens.
            if (t > 0) CHECK(turns[t].cached_tokens >= 32 + 16);
        }
    }
    CHECK(r.estimate(mean(first_turn_ttft)).value > 0);
    CHECK(r.estimate(mean(later_turn_ttft)).value > 0);
}
