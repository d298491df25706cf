// Gates against a real inference engine, llama.cpp's server, written the way a user would write them.
//   run.sh installs it, runs them and knows what has to come out; on its own:
//   ENGINE=.../start.sh MODELS=... real_engine_gates --test-case="healthy*"
// $ENGINE starts a server and understands --port, --parallel and --model; $MODELS holds the models.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_faults.hpp"
#include "llmbench_answers.hpp"
#include "llmbench_simulated.hpp"

#include <fstream>  // questions
#include <iostream>  // what was found
#include <string>  // commands

using namespace llmbench;

// One engine thread: on two cores, the other one belongs to the server's sockets and to the client.
static process engine_with(int slots, const std::string& more = "") {
    return {.command = "\"$ENGINE\" --port {port} --threads 1 --parallel " + std::to_string(slots) + more,
            .ready = "/health"};
}

// ---- must pass: the limits are thirty times what an idle machine of two cores shows, because a busy
// one was seen to be five times slower, with repeats that differ by a factor of two

TEST_CASE("healthy: chat stays interactive at 12 requests per second") {
    gate({
        .target = engine_with(8),
        .workload = synthetic{.prompt_tokens = lognormal(40, 0.4), .output_tokens = fixed(32)},
        .arrivals = poisson(12_rps),
        .warmup = 12,
        .requests = 60,
        .slos = {
            p90(ttft) <= 2_s,
            mean(tpot) <= 30_ms,
            error_rate <= 5_pct,
            mean(queued_requests) <= 4,
            startup_time <= 30_s,
            advisory(goodput(ttft <= 2_s && tpot <= 20_ms) >= 80_pct),
        },
    });
}

TEST_CASE("healthy: completions keep four users busy") {
    process completions = engine_with(8);
    completions.api = openai_completions;
    gate({
        .target = completions,
        .workload = synthetic{.prompt_tokens = fixed(40), .output_tokens = uniform(16, 48)},
        .arrivals = closed_loop(4),
        .warmup = 8,
        .requests = 80,
        .slos = {
            p90(ttft) <= 2_s,
            p50(itl) <= 30_ms,
            output_throughput >= 70_tps,
            error_rate <= 5_pct,
        },
    });
}

TEST_CASE("healthy: killed under load, it is back within 15 s") {
    process supervised = engine_with(8);
    supervised.command = "while :; do " + std::string(supervised.command) +
                         " & echo $! > \"$MODELS/engine.pid\"; wait $!; sleep 1; done";
    supervised.restart_between_repeats = true;
    gate({
        .target = supervised,
        .workload = synthetic{.prompt_tokens = fixed(40), .output_tokens = fixed(16)},
        .arrivals = constant(8_rps),
        .warmup = 8,
        .duration = 30_s,
        .slos = {
            advisory(p90(ttft) <= 2_s),
            recovery_time <= 15_s,
            error_rate <= 5_pct,
            first_answer_time <= 30_s,
        },
        .beside = {{.name = "kill", .steps = {command("kill -9 $(cat \"$MODELS/engine.pid\")")},
                    .first = 8_s, .excuses = 15_s}},
    });
}

// ---- must fail: one slot where the branch before had sixteen

TEST_CASE("crippled: one slot is not slower than sixteen") {
    gate({
        .target = engine_with(1),
        .baseline = engine_with(16),
        .workload = synthetic{.prompt_tokens = fixed(24), .output_tokens = fixed(160)},
        .arrivals = closed_loop(16),
        .warmup = 16,
        .requests = 48,
        .slos = {p50(ttft) <= 3 * baseline},
    });
}

// ---- answers that are not one event per token

static scenario few_prompts(const process& target) {
    return {
        .target = target,
        .workload = prompts({"the way home", "what is new", "search for it", "one more time",
                             "all of us", "no other page", "my news", "how do you do"}),
        .arrivals = closed_loop(4),
        .warmup = 0,
        .requests = 24,
        .repeats = 1,
        .options = {.max_tokens = 48, .temperature = 0},  // drawn ones may end with their first token
    };
}

TEST_CASE("tokens: an end token is counted and brings no event") {
    const result r = run(few_prompts(engine_with(4, " --model \"$MODELS\"/tiny-eos.gguf")));
    CHECK(r.requests().size() == 24);
    CHECK(r.measured(prefix_cache_hits) > 0.3);  // eight prompts, each three times
    int stopped = 0;
    for (const record& x : r.requests()) {
        CAPTURE(x.id);
        CHECK(x.status == request_status::ok);
        CHECK(x.token_source == token_origin::usage);
        CHECK(x.output_tokens <= 48);
        if (x.finish_reason == "stop") {
            ++stopped;
            CHECK(x.output_tokens == x.events + 1);
        } else {
            CHECK(x.output_tokens == 48);
        }
    }
    CHECK(stopped > 0);
}

TEST_CASE("tokens: letters of two tokens make fewer events") {
    const result r = run(few_prompts(engine_with(4, " --model \"$MODELS\"/tiny-bytes.gguf")));
    CHECK(r.requests().size() == 24);
    int fewer = 0;
    for (const record& x : r.requests()) {
        CAPTURE(x.id);
        CHECK(x.status == request_status::ok);
        CHECK(x.token_source == token_origin::usage);
        CHECK(x.output_tokens == 48);
        CHECK(x.events <= x.output_tokens);
        fewer += x.events < x.output_tokens;
    }
    CHECK(fewer > 0);
}

// ---- answers: the model is random, so it knows nothing, and says the same whenever it is asked

/// Whether the last word of `answer` begins with a letter of "a-m" or "n-z".
static bool ends_in_a_word_from(std::string_view answer, std::string_view key) {
    const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
    while (!answer.empty() && !is_letter(answer.back())) answer.remove_suffix(1);
    if (answer.empty()) return false;
    std::size_t first = answer.size() - 1;
    while (first > 0 && is_letter(answer[first - 1])) --first;
    return answer[first] >= key.front() && answer[first] <= key.back();
}

/// Half of them are right where an answer ends in a word of the first half of the alphabet, the
/// others where it ends in one of the second: whatever is answered, chance makes half of that right.
static questions asked_of_chance() {
    std::ofstream file("chance.jsonl");
    for (int i = 0; i < 100; ++i)
        file << "{\"question\": \"Where is house number " << i << " of the old road?\", \"answer\": \""
             << (i % 2 ? "a-m" : "n-z") << "\"}\n";
    return {.path = "chance.jsonl", .grade = ends_in_a_word_from};
}
static scenario of_chance(int users) {
    return {
        .name = "answers to " + std::to_string(users),
        .target = engine_with(8),
        .baseline = otherwise{.same = true},
        .workload = asked_of_chance(),
        .arrivals = closed_loop(users),
        .warmup = 8,
        .slos = {accuracy >= 90_pct, advisory(same_answers >= 95_pct), error_rate <= 5_pct},
        .options = {.max_tokens = 24},
    };
}

TEST_CASE("answers: what is random is right by chance, and the same when it is asked again") {
    for (const int users : {1, 8}) {
        CAPTURE(users);
        const result r = run(of_chance(users));
        CHECK(r.verdicts()[0].outcome == verdict::fail);
        CHECK(r.measured(accuracy) > 0.3);
        CHECK(r.measured(accuracy) < 0.7);
        CHECK(r.measured(same_answers) > (users == 1 ? 0.95 : 0.3));  // alone there is no batch
        std::cout << users << " users: " << r.verdicts()[0].line() << "\n"
                  << users << " users: " << r.verdicts()[1].line() << "\n";
    }
}
