// Engine model: times of steps worked out by hand, in virtual time and without jitter.
#include "llmbench.hpp"
#include "extensions/simulated/core/engine_model.hpp"

#include <map>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

using admission = engine_model::admission;

doctest::Approx about(double x) { return doctest::Approx(x).epsilon(1e-9).scale(0); }

/// A step takes 10 ms, 1 ms more for each active sequence and 0.1 ms for each prompt token.
engine plain() {
    engine e;
    e.decode_step = 10_ms;
    e.step_per_sequence = 1_ms;
    e.prefill_per_token = 0.1_ms;
    e.prefill_budget = 100;
    e.jitter = 0;
    return e;
}
/// A cache with room for this many tokens: 2 x 1 x 1 x 1 x 1 bytes each.
kv_cache room_for(int tokens) {
    return {.layers = 1,
            .kv_heads = 1,
            .head_size = 1,
            .bytes_per_value = 1,
            .memory_bytes = 2.0 * tokens};
}
engine_model::request ask(std::uint64_t id, int prompt, int output,
                          vector<std::uint64_t> blocks = {}) {
    return {id, prompt, output, std::move(blocks)};
}

struct token {
    double at = 0;
    engine_model::emission what{};
};
/// Runs the engine until it has nothing to do: what it produced, and when.
vector<token> run_dry(engine_model& m) {
    vector<token> out;
    while (m.step_end() < infinity) {
        const double now = m.step_end();
        for (const engine_model::emission& e : m.finish_step()) out.push_back({now, e});
    }
    return out;
}
/// When a request's tokens came, in milliseconds.
vector<double> times_of(const vector<token>& tokens, std::uint64_t id) {
    vector<double> ms;
    for (const token& t : tokens)
        if (t.what.id == id) ms.push_back(std::round(t.at * 1e9) / 1e6);
    return ms;
}
using times = vector<double>;

}  // namespace

TEST_CASE("an engine without requests has nothing to do") {
    engine_model m(plain());
    CHECK(m.step_end() == infinity);
    CHECK(m.running() == 0);
    CHECK(m.waiting() == 0);
    CHECK(m.cache_usage() == 0);
}

TEST_CASE("a step takes its base, its sequences and its prompt tokens") {
    engine_model m(plain());
    REQUIRE(m.submit(1.0, ask(1, 50, 3)) == admission::accepted);
    CHECK(m.running() == 1);
    CHECK(m.step_end() == about(1.016));  // 10 + 1 + 50 x 0.1
    const vector<token> t = run_dry(m);
    CHECK(times_of(t, 1) == times{1016, 1027, 1038});
    REQUIRE(t.size() == 3);
    CHECK_FALSE(t[0].what.finished);
    CHECK_FALSE(t[1].what.finished);
    CHECK(t[2].what.finished);
    CHECK(m.totals().prompt_tokens == 50);
    CHECK(m.totals().generated_tokens == 3);
    CHECK(m.totals().finished == 1);
    CHECK(m.totals().busy_s == about(0.038));
    CHECK(m.running() == 0);
}

TEST_CASE("an answer of one token ends with its prompt") {
    engine_model m(plain());
    m.submit(0, ask(1, 50, 1));
    const vector<token> t = run_dry(m);
    REQUIRE(t.size() == 1);
    CHECK(t[0].what.finished);
    CHECK(times_of(t, 1) == times{16});
}

TEST_CASE("a prompt over the budget takes several steps") {
    engine_model m(plain());
    m.submit(0, ask(1, 250, 2));
    // 100, 100 and 50 prompt tokens: 21 + 21 + 16 ms, then one decoding step.
    CHECK(times_of(run_dry(m), 1) == times{58, 69});
}

TEST_CASE("a request that comes during a step joins the next one") {
    engine_model m(plain());
    m.submit(0, ask(1, 50, 3));
    m.submit(0.005, ask(2, 20, 2));
    CHECK(m.running() == 1);
    CHECK(m.waiting() == 1);
    const vector<token> t = run_dry(m);
    // Second step: 10 + 2 x 1 + 20 x 0.1 = 14 ms; third: 12 ms for both.
    CHECK(times_of(t, 1) == times{16, 30, 42});
    CHECK(times_of(t, 2) == times{30, 42});
}

TEST_CASE("running sequences take their token out of the prefill budget") {
    engine_model m(plain());
    m.submit(0, ask(1, 50, 5));
    m.submit(0.005, ask(2, 150, 1));
    const vector<token> t = run_dry(m);
    // 99 prompt tokens beside the running one (10 + 2 + 9.9 ms), then 51 (10 + 2 + 5.1 ms).
    CHECK(times_of(t, 1) == times{16, 37.9, 55, 66, 77});
    CHECK(times_of(t, 2) == times{55});
}

TEST_CASE(
    "without chunks a prompt over the budget is refused and others wait for a step of their own") {
    engine e = plain();
    e.chunked_prefill = false;
    engine_model m(e);
    CHECK(m.submit(0, ask(1, 101, 1)) == admission::too_long);
    CHECK(m.submit(0, ask(2, 100, 3)) == admission::accepted);
    CHECK(m.submit(0.001, ask(3, 100, 1)) ==
          admission::accepted);  // 99 are left beside the running one
    CHECK(m.submit(0.001, ask(4, 99, 1)) == admission::accepted);
    const vector<token> t = run_dry(m);
    // 21 ms for the first prompt; then 4's prompt fits beside it, and 3 goes when nothing else
    // runs.
    CHECK(times_of(t, 2) == times{21, 42.9, 53.9});
    CHECK(times_of(t, 4) == times{42.9});
    CHECK(times_of(t, 3) == times{74.9});
}

TEST_CASE("no more sequences run together than there are slots") {
    engine e = plain();
    e.slots = 2;
    engine_model m(e);
    for (std::uint64_t id = 1; id <= 4; ++id)
        REQUIRE(m.submit(0, ask(id, 10, 2)) == admission::accepted);
    std::size_t most = 0;
    vector<std::uint64_t> order;
    while (m.step_end() < infinity) {
        most = std::max(most, m.running());
        for (const auto& x : m.finish_step())
            if (x.finished) order.push_back(x.id);
    }
    CHECK(most == 2);
    CHECK(order == vector<std::uint64_t>{1, 2, 3, 4});
}

TEST_CASE("a freed slot is taken by the next step") {
    engine e = plain();
    e.slots = 1;
    engine_model m(e);
    m.submit(0, ask(1, 10, 1));
    m.submit(0, ask(2, 10, 1));
    const vector<token> t = run_dry(m);
    CHECK(times_of(t, 1) == times{12});
    CHECK(times_of(t, 2) == times{24});
}

TEST_CASE("the queue is limited where it should be") {
    engine e = plain();
    e.slots = 1;
    e.queue_limit = 2;
    engine_model m(e);
    CHECK(m.submit(0, ask(1, 10, 2)) == admission::accepted);  // runs at once
    CHECK(m.submit(0, ask(2, 10, 2)) == admission::accepted);
    CHECK(m.submit(0, ask(3, 10, 2)) == admission::accepted);
    CHECK(m.submit(0, ask(4, 10, 2)) == admission::queue_full);
    CHECK(m.waiting() == 2);
    m.finish_step();
    m.finish_step();  // 1 has ended and 2 runs
    CHECK(m.submit(0.1, ask(5, 10, 2)) == admission::accepted);
    run_dry(m);
    CHECK(m.totals().finished == 4);
}

TEST_CASE("a token takes 2 x layers x heads x size x bytes of the cache") {
    CHECK(kv_capacity_tokens({.layers = 32,
                              .kv_heads = 8,
                              .head_size = 128,
                              .bytes_per_value = 2,
                              .memory_bytes = 16e9}) == 122070);
    CHECK(kv_capacity_tokens({.layers = 3,
                              .kv_heads = 5,
                              .head_size = 7,
                              .bytes_per_value = 1,
                              .memory_bytes = 2099}) == 9);
    CHECK(kv_capacity_tokens({.layers = 3,
                              .kv_heads = 5,
                              .head_size = 7,
                              .bytes_per_value = 1,
                              .memory_bytes = 2100}) == 10);
    CHECK(kv_capacity_tokens(room_for(100)) == 100);
}

TEST_CASE("a request waits until the cache has room for all of it") {
    engine e = plain();
    e.kv = room_for(100);
    engine_model m(e);
    CHECK(m.submit(0, ask(1, 90, 11)) == admission::too_long);
    CHECK(m.submit(0, ask(2, 40, 20)) == admission::accepted);
    CHECK(m.cache_usage() == about(0.6));
    CHECK(m.submit(0, ask(3, 21, 20)) == admission::accepted);  // 60 + 41 are too many
    CHECK(m.submit(0, ask(4, 5, 5)) == admission::accepted);    // has room, but does not overtake
    const vector<token> t = run_dry(m);
    const double ended = times_of(t, 2).back();
    CHECK(times_of(t, 2).size() == 20);
    CHECK(times_of(t, 3).front() == about(ended + 10 + 2 + 2.1 + 0.5));
    CHECK(times_of(t, 4).front() == times_of(t, 3).front());
    CHECK(m.cache_usage() == 0);

    engine_model both(e);
    both.submit(0, ask(2, 40, 20));
    both.submit(0, ask(3, 20, 20));  // 60 + 40: fits exactly
    both.finish_step();
    CHECK(both.running() == 2);
    CHECK(both.cache_usage() == about(1));
}

TEST_CASE("a request over the model's length is refused") {
    engine e = plain();
    e.max_model_len = 64;
    engine_model m(e);
    CHECK(m.submit(0, ask(1, 60, 5)) == admission::too_long);
    CHECK(m.submit(0, ask(2, 60, 4)) == admission::accepted);
}

TEST_CASE("a prompt start that was computed before is not computed again") {
    engine_model m(plain());
    m.submit(0, ask(1, 64, 1, {11, 12, 13, 14}));
    CHECK(times_of(run_dry(m), 1) == times{17.4});
    m.submit(1, ask(2, 70, 1, {11, 12, 13, 99}));  // 48 known tokens, 22 new ones
    CHECK(times_of(run_dry(m), 2) == times{1013.2});
    // All is known, but the last token, and so its block, is computed all the same.
    m.submit(2, ask(3, 64, 1, {11, 12, 13, 14}));
    CHECK(times_of(run_dry(m), 3) == times{2012.6});
    m.submit(3, ask(4, 64, 1, {77, 12, 13, 14}));  // known blocks count from the start only
    CHECK(times_of(run_dry(m), 4) == times{3017.4});
    CHECK(m.totals().cache_queries == 64 + 70 + 64 + 64);
    CHECK(m.totals().cache_hits == 48 + 48);
    CHECK(m.totals().cached_tokens == 48 + 48);
    CHECK(m.totals().prompt_tokens == 64 + 70 + 64 + 64);
}

TEST_CASE("hits are whole blocks of all but the last token, as vLLM counts them") {
    const auto hits = [](int block, int prompt) {
        engine e = plain();
        e.kv.block_tokens = block;
        engine_model m(e);
        vector<std::uint64_t> blocks;
        for (int i = 1; i * block <= prompt; ++i) blocks.push_back(static_cast<std::uint64_t>(i));
        for (std::uint64_t id = 1; id <= 2; ++id) {
            m.submit(static_cast<double>(id), ask(id, prompt, 1, blocks));
            run_dry(m);
        }
        return m.totals().cache_hits;
    };
    CHECK(hits(16, 160) == 144);
    CHECK(hits(16, 161) == 160);
    CHECK(hits(32, 160) == 128);
    CHECK(hits(128, 160) == 128);
    CHECK(hits(1, 160) == 159);
    CHECK(hits(160, 160) == 0);
    CHECK(hits(16, 1) == 0);
}

TEST_CASE("blocks that an answer filled are found like those of prompts, until they are forgotten") {
    engine_model m(plain());
    m.submit(0, ask(1, 20, 30, {11}));
    run_dry(m);
    m.keep_block(12);
    m.keep_block(13);
    m.submit(1, ask(2, 60, 1, {11, 12, 13}));
    run_dry(m);
    CHECK(m.totals().cache_hits == 48);
    m.forget_blocks();
    m.submit(2, ask(3, 60, 1, {11, 12, 13}));
    run_dry(m);
    CHECK(m.totals().cache_hits == 48);

    engine e = plain();
    e.prefix_cache = false;
    engine_model without(e);
    without.keep_block(11);
    without.submit(0, ask(1, 20, 1, {11}));
    run_dry(without);
    CHECK(without.totals().cached_tokens == 0);
}

TEST_CASE("steps that give tokens are counted, with the prompts that they end") {
    engine_model m(plain());
    m.submit(0, ask(1, 250, 3));  // two steps without a token, then three with one
    run_dry(m);
    CHECK(m.totals().token_steps == 3);
    CHECK(m.totals().step_tokens == 250 + 3);
}

TEST_CASE("a prompt is known from the step on that computes it") {
    engine_model m(plain());
    m.submit(0, ask(1, 32, 1, {1, 2}));
    m.submit(0, ask(2, 32, 1, {1, 2}));
    const vector<token> t = run_dry(m);
    CHECK(times_of(t, 1) == times{14.2});
    CHECK(times_of(t, 2) == times{26.8});  // 14.2 + 12.6: admitted when the first step had ended

    engine e = plain();
    e.slots = 2;
    engine_model together(e);
    together.submit(0, ask(9, 10, 1));
    together.submit(0, ask(1, 32, 1, {1, 2}));
    together.submit(0, ask(2, 32, 1, {1, 2}));
    const vector<token> u = run_dry(together);
    CHECK(times_of(u, 1) == times_of(u, 2));  // both in one step
    CHECK(together.totals().cache_hits == 16);

    e.prefill_budget = 20;
    engine_model in_chunks(e);
    in_chunks.submit(0, ask(9, 10, 1));
    in_chunks.submit(0, ask(1, 32, 1, {1, 2}));
    in_chunks.submit(0, ask(2, 32, 1, {1, 2}));  // waits for tokens of the second step
    run_dry(in_chunks);
    CHECK(in_chunks.totals().cache_hits == 16);
}

TEST_CASE("the oldest blocks make room for new ones") {
    engine e = plain();
    e.kv = room_for(64);  // four blocks
    engine_model m(e);
    m.submit(0, ask(1, 32, 1, {1, 2}));
    run_dry(m);
    m.submit(1, ask(2, 48, 1, {3, 4, 5}));  // the fifth block, so 1 goes
    run_dry(m);
    m.submit(2, ask(3, 32, 1, {1, 2}));
    run_dry(m);
    CHECK(m.totals().cache_hits == 0);
    m.submit(3, ask(4, 48, 1, {4, 5, 1}));
    run_dry(m);
    CHECK(m.totals().cache_hits == 32);
}

TEST_CASE("without a prefix cache every prompt is computed") {
    engine e = plain();
    e.prefix_cache = false;
    engine_model m(e);
    for (std::uint64_t id = 1; id <= 2; ++id) {
        m.submit(static_cast<double>(id), ask(id, 64, 1, {11, 12, 13, 14}));
        CHECK(times_of(run_dry(m), id) == times{1000.0 * static_cast<double>(id) + 17.4});
    }
    CHECK(m.totals().cache_queries == 0);
    CHECK(m.totals().cache_hits == 0);
}

TEST_CASE("speculative decoding gives several tokens a step, the first one alone") {
    engine e = plain();
    e.tokens_per_event = 3;
    engine_model m(e);
    m.submit(0, ask(1, 10, 8));
    vector<int> counts;
    const vector<token> t = run_dry(m);
    for (const token& x : t) counts.push_back(x.what.tokens);
    CHECK(counts == vector<int>{1, 3, 3, 1});
    CHECK(times_of(t, 1) == times{12, 23, 34, 45});
    CHECK(t.back().what.finished);
    CHECK(m.totals().generated_tokens == 8);
}

TEST_CASE("a static batch is not joined before all of it has ended") {
    engine e = plain();
    e.slots = 2;
    e.static_batching = true;
    engine_model m(e);
    m.submit(0, ask(1, 10, 1));
    m.submit(0, ask(2, 10, 3));
    m.submit(0, ask(3, 10, 1));
    m.submit(0, ask(4, 10, 1));
    const vector<token> t = run_dry(m);
    CHECK(times_of(t, 1) == times{12});  // alone: the others came after the batch had begun
    // 2 and 3 start together; 3 ends first and its slot stays empty.
    CHECK(times_of(t, 3) == times{12 + 14});
    CHECK(times_of(t, 2) == times{26, 37, 48});
    CHECK(times_of(t, 4) == times{60});

    e.static_batching = false;
    engine_model continuous(e);
    for (const auto& [id, output] : {std::pair{1, 1}, {2, 3}, {3, 1}, {4, 1}})
        continuous.submit(0, ask(static_cast<std::uint64_t>(id), 10, output));
    CHECK(times_of(run_dry(continuous), 4) == times{26 + 13});
}

TEST_CASE("a cancelled request produces nothing more and frees what it held") {
    engine e = plain();
    e.slots = 1;
    e.kv = room_for(100);
    engine_model m(e);
    m.submit(0, ask(1, 50, 50));
    m.submit(0, ask(2, 10, 1));
    m.submit(0, ask(3, 10, 1));
    CHECK(m.finish_step().size() == 1);
    m.cancel(1);
    m.cancel(2);
    m.cancel(77);  // unknown: ignored
    CHECK(m.waiting() == 1);
    CHECK(m.finish_step().empty());  // the step that ran is lost
    CHECK(m.cache_usage() == about(0.11));
    const vector<token> t = run_dry(m);
    CHECK(times_of(t, 1).empty());
    CHECK(times_of(t, 2).empty());
    CHECK(times_of(t, 3) == times{15 + 1 + 11 + 12});
    CHECK(m.totals().generated_tokens == 2);
    CHECK(m.totals().finished == 1);
    CHECK(m.cache_usage() == 0);
    CHECK(m.step_end() == infinity);
}

TEST_CASE("an engine that leaks slots keeps those of cancelled requests, and is slower for it") {
    engine e = plain();
    e.slots = 2;
    e.faults.leaks_slots = true;
    engine_model m(e);
    m.submit(0, ask(1, 50, 50));
    m.finish_step();
    m.cancel(1);
    m.submit(20, ask(2, 10, 1));
    m.submit(20, ask(3, 10, 1));
    const vector<token> t = run_dry(m);
    CHECK(times_of(t, 1).empty());
    REQUIRE(times_of(t, 2).size() == 1);
    REQUIRE(times_of(t, 3).size() == 1);
    CHECK(times_of(t, 3)[0] > times_of(t, 2)[0]);  // one slot is left for the two
    CHECK(m.running() == 1);
    CHECK(m.step_end() == infinity);
    m.cancel(2);
    m.submit(100, ask(4, 10, 1));
    CHECK(times_of(run_dry(m), 4).size() == 1);
}

TEST_CASE("an engine that ran dry starts again with the next request") {
    engine_model m(plain());
    m.submit(0, ask(1, 10, 1));
    run_dry(m);
    m.submit(5, ask(2, 10, 1));
    CHECK(times_of(run_dry(m), 2) == times{5012});
}

namespace {

/// Two hundred random requests at random times; what each got and the end of the last step.
struct load_result {
    std::map<std::uint64_t, int> got{};
    std::map<std::uint64_t, int> ends{};
    vector<double> steps{};
    double asked_tokens = 0, prompt_tokens = 0;
};
load_result run_random_load(engine_model& m, std::uint64_t seed) {
    generator random(seed);
    load_result r;
    double next = 0;
    std::uint64_t id = 0;
    const auto step = [&] {
        r.steps.push_back(m.step_end());
        for (const auto& e : m.finish_step()) {
            r.got[e.id] += e.tokens;
            r.ends[e.id] += e.finished;
        }
    };
    while (id < 200) {
        next += 0.05 * random.exponential();
        while (m.step_end() <= next) step();
        const int prompt = 1 + static_cast<int>(random.below(300)),
                  output = 1 + static_cast<int>(random.below(20));
        vector<std::uint64_t> blocks;
        for (int b = 0; b < prompt / 16; ++b)
            blocks.push_back(mixed(random.below(2) + 10 * static_cast<std::uint64_t>(b)));
        r.asked_tokens += output;
        r.prompt_tokens += prompt;
        r.got[++id] = -output;
        CHECK(m.submit(next, ask(id, prompt, output, blocks)) == admission::accepted);
    }
    while (m.step_end() < infinity) step();
    return r;
}

}  // namespace

TEST_CASE("every request gets its tokens, whatever the load") {
    for (const bool chunked : {true, false})
        for (const bool batches : {true, false})
            for (const int per_event : {1, 4}) {
                CAPTURE(chunked);
                CAPTURE(batches);
                CAPTURE(per_event);
                engine e = plain();
                e.slots = 5;
                e.prefill_budget = 300;
                e.kv = room_for(700);
                e.jitter = 0.1;
                e.chunked_prefill = chunked;
                e.static_batching = batches;
                e.tokens_per_event = per_event;
                engine_model m(e);
                const load_result r = run_random_load(m, 5);
                CHECK(r.got.size() == 200);
                for (const auto& [id, left] : r.got) CHECK(left == 0);
                CHECK(r.ends.size() == 200);
                for (const auto& [id, ends] : r.ends) CHECK(ends == 1);
                CHECK(m.totals().generated_tokens == r.asked_tokens);
                CHECK(m.totals().prompt_tokens == r.prompt_tokens);
                CHECK(m.totals().finished == 200);
                CHECK(m.running() == 0);
                CHECK(m.waiting() == 0);
                CHECK(m.cache_usage() == 0);
            }
}

TEST_CASE("the same seed gives the same run, another one does not") {
    engine e = plain();
    e.jitter = 0.05;
    engine_model a(e), b(e);
    e.seed = 2;
    engine_model other(e);
    const vector<double> steps = run_random_load(a, 5).steps;
    CHECK(steps.size() > 200);
    CHECK(steps == run_random_load(b, 5).steps);
    CHECK(steps != run_random_load(other, 5).steps);
}

TEST_CASE("jitter spreads the steps around their time") {
    engine e = plain();
    e.jitter = 0.1;
    e.max_model_len = 20000;
    engine_model m(e);
    m.submit(0, ask(1, 10, 10001));
    m.finish_step();
    vector<double> lengths;
    double before = m.step_end();
    while (m.finish_step(), m.step_end() < infinity) {
        lengths.push_back(m.step_end() - before);
        before = m.step_end();
    }
    REQUIRE(lengths.size() == 9999);
    // 11 ms, sd 1.1 ms: the mean's standard error is 0.011 ms.
    CHECK(mean_of(lengths) == doctest::Approx(0.011).epsilon(0.005));
    CHECK(std::sqrt(sample_variance(lengths)) == doctest::Approx(0.0011).epsilon(0.05));
    CHECK(*std::min_element(lengths.begin(), lengths.end()) > 0.001);
}

TEST_CASE("a paused engine ends its step, takes requests, and begins none until it resumes") {
    engine_model m(plain());
    CHECK(m.submit(0, ask(1, 10, 2)) == admission::accepted);
    m.pause();
    CHECK(m.step_end() == about(0.012));
    CHECK(m.finish_step().size() == 1);
    CHECK(m.step_end() == infinity);
    CHECK(m.submit(1, ask(2, 10, 1)) == admission::accepted);
    CHECK(m.submit(2, ask(3, 10, 1)) == admission::accepted);
    CHECK(m.step_end() == infinity);
    CHECK(m.waiting() == 2);
    m.resume(3);
    CHECK(m.step_end() == about(3 + 0.010 + 3 * 0.001 + 20 * 0.0001));
    CHECK(run_dry(m).size() == 3);
    m.resume(9);
    CHECK(m.step_end() == infinity);
}
