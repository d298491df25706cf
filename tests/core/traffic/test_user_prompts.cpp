// Prompts of a user's function: drawn from the seed, told apart by the load's hash, the same again.
#include "llmbench.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/trace_hash.hpp"
#include "support/scenarios.hpp"

#include <set>
#include <stdexcept>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;

namespace {

prompt word_of(request_index i, draw& random) {
    const std::string word = random.below(2) == 0 ? "heads" : "tails";
    return {.text = word + " " + std::to_string(i), .output_tokens = random.length(uniform(5, 9))};
}
prompt other_word_of(request_index i, draw& random) {
    prompt p = word_of(i, random);
    p.text = "other " + p.text;
    return p;
}
scenario of(const generated_prompts& g, long long seed = 1) {
    scenario s = sound();
    s.workload = g;
    s.seed = seed;
    return s;
}
std::string refusal_with(prompt (*f)(request_index, draw&)) { return refusal(of(generated(f))); }

}  // namespace

TEST_CASE("a function's prompts follow from the seed and the index, in every repeat and arm") {
    const generated_prompts plain{.of = word_of, .salted = false};
    const plan p = planned(of(plain), 1), other = planned(of(plain, 2), 2);
    std::set<std::string> seen, others;
    for (std::size_t i = 0; i < 40; ++i) {
        const request_spec r = request_of(p, run_variant::candidate, 0, i);
        CHECK(r.prompt == request_of(p, run_variant::baseline, 3, i).prompt);
        CHECK(r.prompt.ends_with(" " + std::to_string(i)));
        CHECK(r.max_tokens >= 5);
        CHECK(r.max_tokens <= 9);
        CHECK(r.force_length);
        seen.insert(r.prompt.substr(0, 5) + std::to_string(r.max_tokens));
        others.insert(r.prompt == request_of(other, run_variant::candidate, 0, i).prompt ? "same" : "other");
    }
    CHECK(seen.size() > 5);
    CHECK(others.size() == 2);
}

TEST_CASE("a function's prompts are salted like those of a dataset, if nobody objects") {
    const plan p = planned(of(generated(word_of)), 1);
    const std::string a = request_of(p, run_variant::candidate, 0, 7).prompt;
    const std::string b = request_of(p, run_variant::candidate, 1, 7).prompt;
    CHECK(a != b);
    CHECK(words(a).size() == 7);
    CHECK(a.substr(a.find('\n')) == b.substr(b.find('\n')));
    CHECK(p.sent->workload_text.starts_with("generated prompts, about "));
    CHECK(planned(of({.of = word_of, .salted = false}), 1).sent->sent_as_given == "prompts");
    CHECK(p.sent->sent_as_given.empty());
}

TEST_CASE("the hash of a load has what a function gives") {
    const auto hash = [](const scenario& s) { return load_hash(*planned(s, 1).sent); };
    CHECK(hash(of(generated(word_of))) == hash(of(generated(word_of))));
    CHECK(hash(of(generated(word_of))) != hash(of(generated(other_word_of))));
    CHECK(hash(of(generated(word_of))) != hash(of(generated(word_of), 2)));
}

TEST_CASE("answers are as long as is said, or as they get") {
    scenario s = of(generated([](request_index, draw&) { return prompt{.text = "a"}; }));
    CHECK_FALSE(request_of(planned(s, 1), run_variant::candidate, 0, 0).force_length);
    s.options.max_tokens = 12;
    CHECK(request_of(planned(s, 1), run_variant::candidate, 0, 0).max_tokens == 12);
    s = of({.of = word_of, .force_output = false});
    CHECK_FALSE(request_of(planned(s, 1), run_variant::candidate, 0, 0).force_length);
}

TEST_CASE("a part of a mix may be a function's") {
    scenario s = sound();
    s.workload = mix({{.name = "made", .weight = 2}, {.name = "mine", .workload = generated(word_of)}});
    CHECK(refusal(s).empty());
}

TEST_CASE("a function whose prompts cannot be sent, or sent again, is refused before the load") {
    CHECK(refusal_with(nullptr) == "workload is generated(nullptr): it needs a function");
    CHECK(refusal_with([](request_index, draw&) {
              static int asked = 0;
              return prompt{.text = std::to_string(++asked)};
          }) == "workload is generated: asked twice for request 0, its function gives two prompts: what "
                "is left to chance is drawn from its draw&");
    CHECK(refusal_with([](request_index i, draw&) { return prompt{.text = i < 3 ? "a" : ""}; }) ==
          "workload is generated: for request 3 its function gives an empty prompt");
    CHECK(refusal_with([](request_index, draw&) {
              return prompt{.text = "a", .output_tokens = -1};
          }) == "workload is generated: for request 0 its function asks for -1 output tokens: they run "
                "from 0 to 10000000");
    CHECK(refusal_with([](request_index, draw&) -> prompt { throw std::runtime_error("no file"); }) ==
          "workload is generated: for request 0 its function throws: no file");
    CHECK(refusal_with([](request_index, draw& random) {
              return prompt{.text = "a", .output_tokens = random.length(empirical("lengths.txt"))};
          }) == "workload is generated: for request 0 its function throws: the length that is drawn is "
                "empirical(lengths.txt): read files in the function itself");
    CHECK(refusal_with([](request_index, draw& random) {
              return prompt{.text = "a", .output_tokens = random.length(fixed(0))};
          }).find("the length that is drawn is 0: lengths run from 1") != std::string::npos);
}
