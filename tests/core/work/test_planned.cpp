// Which gates can count work: each refusal in one sentence, and what the plan of the others is.
#include "extensions/work/api.hpp"
#include "extensions/work/core/planned.hpp"
#include "support/scenarios.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using scenarios::refusal;

namespace {

const extension counts_alone{.name = "work", .add_to_plan = add_counts_to_plan};
const bool is_added = (add(counts_alone), true);

scenario counting(const slo& s) {
    return {.workload = conversations{.turns = fixed(3)},
            .arrivals = closed_loop(4),
            .requests = 24,
            .slos = {s},
            .prepare = {post("/reset_prefix_cache")}};
}
template <class Spoil>
std::string refusal_of(const slo& s, Spoil&& spoil) {
    scenario x = counting(s);
    spoil(x);
    return refusal(x);
}
std::string refusal_of(const slo& s) { return refusal(counting(s)); }
std::string given(const slo& s) { return "the SLO " + str(s.text()) + " is refused: "; }

}  // namespace

TEST_CASE("a gate that counts work has two repeats, no warm-up, and greedy answers of one seed") {
    REQUIRE(is_added);
    const plan p = planned(counting(cached_tokens == expected), 1);
    CHECK(p.sent->counts_work);
    CHECK(p.sent->warmup_requests == 0);
    CHECK(p.sent->common.temperature == 0);
    CHECK(p.judged->first_repeats == 2);
    CHECK(p.judged->max_repeats == 2);
    CHECK(p.judged->max_if_noisy == 0);
    CHECK(salt_of(p, run_variant::candidate, 0) == salt_of(p, run_variant::baseline, 3));

    scenario s = counting(cached_tokens == expected);
    s.repeats = 1;
    s.warmup = 6;
    s.options.temperature = 0.7;
    const plan asked = planned(s, 1);
    CHECK(asked.judged->max_repeats == 1);
    CHECK(asked.sent->warmup_requests == 6);
    CHECK(asked.sent->common.temperature == 0.7);

    s.slos = {mean(ttft) <= 1_s};
    s.repeats = 2;
    const plan of_time = planned(s, 1);
    CHECK_FALSE(of_time.sent->counts_work);
    CHECK(salt_of(of_time, run_variant::candidate, 0) !=
          salt_of(of_time, run_variant::candidate, 1));
}

TEST_CASE("work is counted of one load of a known number of requests") {
    const slo s = server_requests == 24;
    CHECK(refusal_of(s).empty());
    CHECK(refusal_of(s, [](scenario& x) { x.slos.push_back(p50(ttft) <= 1_s); }) ==
          given(s) + "it counts the work of a load whose prompts are the same each time, and "
                     "p50(ttft) <= 1 s needs new ones: give each a gate of its own");
    CHECK(refusal_of(s, [](scenario& x) { x.slos.push_back(error_rate <= 2_pct); }).empty());
    CHECK(refusal_of(s, [](scenario& x) { x.duration = 10_s; }) ==
          given(s) + "duration is set, which sends another number of requests each time: give "
                     "requests alone");
    CHECK(refusal_of(s, [](scenario& x) { x.warmup = 3_s; }) ==
          given(s) + "warmup is a time, in which another number of requests is sent each time: "
                     "give it a number of requests");
    CHECK(refusal_of(s, [](scenario& x) {
              x.arrivals = constant(1_rps);
              x.warmup = until_stable(30_s);
          }).starts_with(given(s) + "warmup is a time"));
}

TEST_CASE("a server that is not reset would find the prompts of the repeat before") {
    for (const slo& s : {cached_tokens == expected, prefilled_tokens <= 2'200, engine_steps <= 12,
                         preemptions == 0})
        CHECK(refusal_of(s, [](scenario& x) { x.prepare = {}; }) ==
              given(s) + "nothing resets the server before a repeat, which would find the prompts "
                         "of the one before: give .prepare = {post(\"/reset_prefix_cache\")} "
                         "(vLLM, with VLLM_SERVER_DEV_MODE=1) or {post(\"/flush_cache\")} "
                         "(SGLang), or a process with .restart_between_repeats");
    const auto restarted = [](scenario& x) {
        x.prepare = {};
        x.target = process{.command = "serve", .restart_between_repeats = true};
    };
    CHECK(refusal_of(cached_tokens == expected, restarted).empty());
    CHECK(refusal_of(generated_tokens == expected, [](scenario& x) { x.prepare = {}; }).empty());
    CHECK(refusal_of(server_requests == expected, [](scenario& x) { x.prepare = {}; }).empty());
}

TEST_CASE("prime() is the last step of a gate on work, and no reset") {
    const task_step primes{.path = "prime()", .by = &counts_alone};
    const auto prepared = [](const slo& s, const list<task_step>& steps) {
        return refusal_of(s, [&](scenario& x) { x.prepare = steps; });
    };
    const slo s = cached_tokens == 24;
    CHECK(prepared(s, {post("/flush_cache"), primes}).empty());
    CHECK(prepared(s, {primes, post("/flush_cache")}) ==
          "prepare has a step after prime(), which is the last: a reset would empty the cache "
          "again");
    CHECK(prepared(s, {primes}).starts_with(given(s) + "nothing resets the server"));
    CHECK(prepared(mean(ttft) <= 1_s, {primes}) ==
          "prepare has prime(), and no objective is on work: a warm-up serves others");
    scenario x = counting(s);
    x.prepare = {post("/flush_cache"), primes};
    CHECK(preparation_text(planned(x, 1).sent->prepare) ==
          "; before each repeat POST /flush_cache, prime()");
}

TEST_CASE("a count is a whole number, and a part of one is no equality") {
    for (const slo& s : {cached_tokens == 0.98 * expected, cached_tokens == 1.05 * baseline})
        CHECK(refusal_of(s) ==
              given(s) + "a part of a count is seldom a whole number: write <= or >=");
    CHECK(refusal_of(cached_tokens == -1) ==
          given(cached_tokens == -1) + "a count is a whole number from 0 on");
    slo half = cached_tokens == 2;
    half.statistic.gauge = "cached_tokens == 2.5";
    CHECK(refusal_of(half) == given(half) + "a count is a whole number from 0 on");
    CHECK(refusal_of(cached_tokens >= 0 * expected) ==
          given(cached_tokens >= 0 * expected) + "the factor must be above zero");
    CHECK(refusal_of(cached_tokens <= baseline) ==
          given(cached_tokens <= baseline) + "the scenario has no baseline");
}

TEST_CASE("what depends on time is no number to equal") {
    const slo steps = engine_steps == 12, preempted = preemptions == 3;
    CHECK(refusal_of(steps) ==
          given(steps) + "which requests share a pass depends on time: write <=, send one after "
                         "the other, closed_loop(1), or " + how_to_hold);
    CHECK(refusal_of(steps, [](scenario& x) { x.arrivals = closed_loop(1); }).empty());
    CHECK(refusal_of(engine_steps <= 500).empty());
    CHECK(refusal_of(engine_steps <= 500, [](scenario& x) { x.arrivals = poisson(8_rps); }) ==
          given(engine_steps <= 500) + "at a rate, which requests share a pass depends on time: "
                                       "give it a closed loop, or all_at_once()");
    CHECK(refusal_of(preempted) ==
          given(preempted) + "how often a server preempts depends on time: only none, == 0, is the "
                             "same each time, or " + how_to_hold);
    CHECK(refusal_of(preemptions == 0).empty());
}

TEST_CASE("what a server holds until all of it is there has exact steps and preemptions") {
    const auto held = [](scenario& x) {
        x.workload = synthetic{};
        x.arrivals = all_at_once().held(post("/pause?mode=keep"), post("/resume"));
    };
    const slo steps = engine_steps == 12;
    CHECK(refusal_of(steps, held).empty());
    CHECK(refusal_of(preemptions == 3, held).empty());
    for (const slo& s : {steps, preemptions == 3})
        CHECK(refusal_of(s, [](scenario& x) { x.arrivals = all_at_once(); }).ends_with(how_to_hold));
    // Later turns follow answers, whenever those come.
    CHECK(refusal_of(steps, [&](scenario& x) {
              held(x);
              x.workload = conversations{.turns = fixed(3)};
          }).ends_with(how_to_hold));
}

TEST_CASE("only a burst is held, by posts, and its times mean nothing") {
    const auto held_by = [](const task_step& hold, const task_step& release) {
        scenario x = counting(engine_steps == 12);
        x.workload = synthetic{};
        x.arrivals = all_at_once().held(hold, release);
        return x;
    };
    CHECK(refusal(held_by(command("pause"), post("/resume"))) ==
          "arrivals.held has a command(...): it takes post(\"/path\", body) alone; endpoint{.cold} "
          "and side tasks (beside) take commands");
    CHECK(refusal(held_by(post("/pause"), post("resume"))) ==
          "arrivals.held: post(\"resume\"): a path of the server begins with / and has no blanks");
    scenario timed = held_by(post("/pause"), post("/resume"));
    timed.prepare = {};
    for (const slo& s : {p50(ttft) <= 1_s, output_throughput >= 1_tps, mean(tpot) <= 1.1 * baseline}) {
        timed.slos = {s};
        CHECK(refusal(timed).ends_with(
            "the server holds its requests until all are there, so times mean nothing: objectives "
            "on work, errors and answers can be judged"));
    }
    timed.slos = {error_rate <= 2_pct};
    CHECK(refusal(timed).empty());
    const plan p = planned(timed, 1);
    CHECK(arrival_text(p.sent->arrivals) == "all_at_once, held from POST /pause to POST /resume");
    timed.arrivals = all_at_once();
    CHECK(load_hash(*p.sent) != load_hash(*planned(timed, 1).sent));
}

TEST_CASE("answers whose ends are drawn have no expected length") {
    const auto free = [](scenario& x) { x.workload = synthetic{.force_output = false}; };
    const auto drawn = [&](scenario& x) {
        free(x);
        x.options.temperature = 1.0;
    };
    const slo expects = generated_tokens == expected, counts = generated_tokens <= 400;
    CHECK(refusal_of(expects).empty());
    CHECK(refusal_of(expects, free) ==
          given(expects) + "answers end where the model ends them, so no length is expected: use a "
                           "workload that forces lengths");
    CHECK(refusal_of(counts, free).empty());
    CHECK(refusal_of(counts, drawn) ==
          given(counts) + "answers end where the model ends them, by chance with this temperature: "
                          "force their lengths, or set options.temperature to 0");
    CHECK(refusal_of(drafted_tokens >= 1, drawn) ==
          given(drafted_tokens >= 1) +
              "drafts are accepted by chance unless options.temperature is 0");
    CHECK(refusal_of(drafted_tokens >= 1).empty());
}

TEST_CASE("what is expected is of one model, whose requests share a cache") {
    const auto of_two = [](scenario& x) {
        x.workload = mix({part{.name = "a", .workload = synthetic{}},
                          part{.name = "b", .workload = synthetic{}, .model = "adapter"}});
    };
    const slo s = cached_tokens == expected;
    CHECK(refusal_of(s, of_two) ==
          given(s) + "parts of the mix ask for several models, and whether these share a cache "
                     "nobody knows: write a number, or baseline");
    CHECK(refusal_of(cached_tokens >= 10, of_two).empty());
}

TEST_CASE("what is expected is known of four counts") {
    for (const slo& s : {engine_steps <= expected, accepted_tokens >= expected,
                         llmbench::counted("x_total") == expected})
        CHECK(refusal_of(s, [](scenario& x) { x.arrivals = closed_loop(1); }) ==
              given(s) + "what is expected is known of server_requests, prefilled_tokens, "
                         "cached_tokens and generated_tokens: write a number, or baseline");
}
