// The simulated engine costs what the model expects, to the token, whatever the load: 1,000 seeds.
#include "extensions/simulated/core/engine_model.hpp"
#include "extensions/work/core/model.hpp"

#include "core/base/bytes.hpp"
#include "core/base/random.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

/// A hash for each whole block of tokens with all earlier ones.
vector<std::uint64_t> blocks_of(const token_ids& ids, std::size_t block) {
    vector<std::uint64_t> blocks;
    fnv1a hash;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        hash.add(static_cast<long long>(ids[i]));
        if ((i + 1) % block == 0) blocks.push_back(hash.value());
    }
    return blocks;
}
/// Users who talk in turns, with a drawn size of blocks, slots, budget, prefix and lengths.
struct drawn_load {
    explicit drawn_load(std::uint64_t seed) : random(seed) {
        of.jitter = 0.1;
        of.kv.block_tokens = static_cast<long long>(1 + random.below(40));
        of.slots = static_cast<long long>(1 + random.below(6));
        of.prefill_budget = static_cast<long long>(8 + random.below(200));
        of.tokens_per_event = static_cast<long long>(1 + random.below(3));
        const std::size_t users = 1 + random.below(8);
        token_ids prefix;
        add_words(prefix, random.below(100));
        for (std::size_t i = 0; i < users; ++i)
            talks.push_back({prefix, static_cast<int>(1 + random.below(4))});
    }
    void add_words(token_ids& to, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) to.push_back(static_cast<int>(random.below(50)));
    }

    struct talk {
        token_ids said{};
        int turns_left = 1;
    };
    generator random;
    engine of{};
    vector<talk> talks{};
};
/// Sends it, and returns what the engine counted and what the model expects of the same requests.
struct both_counts {
    work_done counted{}, expected{};
};
both_counts run(std::uint64_t seed) {
    drawn_load load(seed);
    engine_model server(load.of);
    const auto block = static_cast<std::size_t>(static_cast<long long>(load.of.kv.block_tokens));
    vector<model_request> in_order;
    const auto ask = [&](std::size_t user, double now) {
        drawn_load::talk& t = load.talks[user];
        if (t.turns_left-- == 0) return;
        load.add_words(t.said, 1 + load.random.below(80));
        model_request r{.prompt = t.said};
        load.add_words(r.answer, 1 + load.random.below(40));
        const auto admitted =
            server.submit(now, {.id = user,
                                .prompt_tokens = static_cast<int>(t.said.size()),
                                .output_tokens = static_cast<int>(r.answer.size()),
                                .blocks = blocks_of(t.said, block)});
        REQUIRE(admitted == engine_model::admission::accepted);
        for (const int id : r.answer) t.said.push_back(id);
        in_order.push_back(std::move(r));
    };
    for (std::size_t user = 0; user < load.talks.size(); ++user) ask(user, 0);
    while (server.step_end() < infinity) {
        const double now = server.step_end();
        for (const engine_model::emission& e : server.finish_step()) {
            if (!e.finished) continue;
            token_ids left_behind = load.talks[e.id].said;
            left_behind.pop_back();
            for (const std::uint64_t b : blocks_of(left_behind, block)) server.keep_block(b);
            ask(e.id, now + 0.001);
        }
    }
    const engine_model::counters& c = server.totals();
    const auto whole = [](double n) { return static_cast<long long>(n); };
    both_counts both{{whole(c.prompt_tokens - c.cached_tokens), whole(c.cached_tokens)}, {}};
    for (const work_done& w : expected_work(in_order, static_cast<int>(block))) {
        both.expected.prefilled += w.prefilled;
        both.expected.cached += w.cached;
    }
    long long asked_for = 0;
    for (const model_request& r : in_order) asked_for += static_cast<long long>(r.answer.size());
    REQUIRE(whole(c.finished) == static_cast<long long>(in_order.size()));
    REQUIRE(whole(c.generated_tokens) == asked_for);
    return both;
}

}  // namespace

TEST_CASE("the simulated engine and the model agree in 1,000 drawn loads, to the token") {
    long long cached = 0;
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        CAPTURE(seed);
        const both_counts both = run(seed);
        REQUIRE(both.counted == both.expected);
        cached += both.counted.cached;
    }
    CHECK(cached > 100000);
}
