// What each source of traffic puts on a place of the trace.
#include "core/base/bytes.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/sources.hpp"
#include "core/traffic/traffic_source.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

const vector<std::string> no_answers;
const token_fit plain_words;

request_spec filled(const prompt_source& source, const trace_position& at,
                    const workload_files& files = {},
                    const vector<std::string>& answers = no_answers) {
    request_spec r;
    source.fill(r, at, {1, files}, {7, plain_words, answers});
    return r;
}
std::string hash_of(const prompt_source& source, const workload_files& files = {}) {
    fnv1a h;
    source.hash_all(h, {1, files});
    source.hash_conversation(h, 0, {1, files});
    return h.text();
}

/// Two conversations, of two turns and of one.
workload_files recorded() {
    workload_files f;
    f.dialogues.push_back({{{"system", "be brief"}}, {{.prompt = "a"}, {.prompt = "b"}}});
    f.dialogues.push_back({{}, {{.prompt = "c", .output_tokens = 9}}});
    return f;
}

}  // namespace

TEST_CASE("given prompts come in turn and say nothing of lengths") {
    const given_prompts two({"one", "two"});
    const workload_files none;
    CHECK(filled(two, {3, 0, 3}).prompt == "two");
    const prompt_source& source = two;
    CHECK(source.turns(3, {1, none}) == 1);
    CHECK(source.item({3, 0, 3}, {1, none}).prompt_tokens == 0);
    CHECK(source.item({3, 0, 3}, {1, none}).output_tokens == 0);
    CHECK(hash_of(two) != hash_of(given_prompts({"onet", "wo"})));
}

TEST_CASE("prompts of a recorded trace begin again behind the warm-up, and where it ends") {
    workload_files f;
    f.trace.rows = {{0, 10, 1}, {1, 20, 2}, {2, 30, 3}};
    const synthetic_prompts p({.prompt_tokens = from_trace(), .output_tokens = from_trace(2, 5)}, 2);
    vector<int> prompts, outputs;
    for (std::size_t i = 0; i < 6; ++i) {
        prompts.push_back(p.item({i, 0, i}, {1, f}).prompt_tokens);
        outputs.push_back(p.item({i, 0, i}, {1, f}).output_tokens);
    }
    CHECK(prompts == vector<int>{10, 20, 10, 20, 30, 10});
    CHECK(outputs == vector<int>{2, 4, 2, 4, 5, 2});
}

TEST_CASE("a recorded dialogue is played with the answers it got") {
    const workload_files f = recorded();
    recorded_dialogues source;
    source.most_turns = 2;
    CHECK(source.turns(0, {1, f}) == 2);
    CHECK(source.turns(1, {1, f}) == 1);
    CHECK(source.turns(2, {1, f}) == 2);  // the sample begins again
    const request_spec r = filled(source, {2, 1, 4}, f, {"an answer"});
    CHECK(r.system_prompt == "be brief");
    REQUIRE(r.history.size() == 2);
    CHECK(r.history[0].content == "a");
    CHECK(r.history[1].content == "an answer");
    CHECK(r.prompt == "b");
    CHECK(filled(source, {2, 1, 4}, f, {""}).history.empty());  // nothing came of the first turn
    CHECK(filled(source, {1, 0, 2}, f).max_tokens == 9);
}

TEST_CASE("what a place holds does not depend on how it was come to") {
    synthetic_conversations talk({.turns = uniform(1, 4),
                                  .user_tokens = uniform(2, 9),
                                  .output_tokens = uniform(2, 9),
                                  .system_tokens = 3});
    talk.most_turns = 4;
    const request_spec third = filled(talk, {5, 2, 20}, {}, {"x", "y"});
    REQUIRE(third.history.size() == 4);
    CHECK(filled(talk, {5, 0, 20}).prompt == third.history[0].content);
    CHECK(filled(talk, {5, 1, 20}).prompt == third.history[2].content);
    CHECK(filled(talk, {6, 0, 24}).system_prompt == third.system_prompt);
    synthetic_conversations own = talk;
    own.said.shared_system_prompt = false;
    CHECK(filled(own, {5, 0, 20}).system_prompt != filled(own, {6, 0, 24}).system_prompt);
}
