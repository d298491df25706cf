// How much of a prompt a prefix cache may have by the workload's own doing.
#include "llmbench.hpp"
#include "core/traffic/requests.hpp"
#include "support/scenarios.hpp"

#include <algorithm>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;

namespace {
/// As a server counts whose words are tokens, with so many around each prompt.
long long shared_of(const plan& p, std::size_t index, int around = 0,
                    const vector<std::string>& answers = {}) {
    token_fit fit{.lengths = token_fit::quality::exact, .words = whole_vocabulary()};
    fit.overhead = around;
    const request_spec r = request_of(p, run_variant::candidate, 0, index, answers, fit);
    const auto n = words(r.system_prompt + " " + joined_turns(r)).size();
    return shared_tokens(p, index, fit, static_cast<int>(n) + around);
}
}  // namespace

TEST_CASE("of prompts that are made up anew nothing was sent before but what stands around them") {
    for (std::size_t i = 0; i < 20; ++i) {
        CHECK(shared_of(traffic(), i) == 0);
        CHECK(shared_of(traffic(), i, 12) == 12);
    }
}

TEST_CASE("a prefix that prompts share may be cached, as far as it reaches") {
    const plan p = traffic(1, {.prompt_tokens = uniform(20, 60),
                               .output_tokens = fixed(8),
                               .shared_prefix = fixed(40)});
    for (std::size_t i = 0; i < 20; ++i)
        CHECK(shared_of(p, i) == std::min(item_of(p, i).prompt_tokens, 40));
    const plan some = traffic(1, {.prompt_tokens = fixed(60),
                                  .output_tokens = fixed(8),
                                  .shared_prefix = fixed(40),
                                  .prefix_groups = 2,
                                  .prefix_fraction = 50_pct});
    int with = 0;
    for (std::size_t i = 0; i < 40; ++i) {
        const long long n = shared_of(some, i);
        CHECK((n == 0 || n == 40));
        with += n == 40;
    }
    CHECK((with > 5 && with < 35));
}

TEST_CASE("a later turn may have all of its conversation cached but its own message") {
    for (const bool shared : {true, false}) {
        const plan p = planned({.workload = conversations{.turns = fixed(3),
                                                          .user_tokens = fixed(30),
                                                          .output_tokens = fixed(8),
                                                          .system_tokens = fixed(100),
                                                          .shared_system_prompt = shared},
                                .arrivals = poisson(8_rps),
                                .requests = 300},
                               1);
        CHECK(shared_of(p, 3) == (shared ? 100 : 0));
        CHECK(shared_of(p, 4, 0, {"one two three"}) == 100 + 30 + 3);
        CHECK(shared_of(p, 5, 7, {"one two three", "four five"}) == 7 + 100 + 30 + 3 + 30 + 2);
    }
}

TEST_CASE("prompts that are sent again as they are may all be cached") {
    const plan p = planned({.workload = prompts({"a b c", "d e"}), .arrivals = poisson(8_rps),
                            .requests = 300}, 1);
    CHECK(shared_of(p, 0) == 3);
    CHECK(shared_of(p, 1, 5) == 7);
}

TEST_CASE("of a salted dataset only what stands before the salt may be cached") {
    workload_files files;
    const std::string text(4000, 'x');  // of 500 tokens at least, a byte to eight each
    files.dialogues = {{.turns = {{.prompt = text}, {.prompt = "and?"}}}};
    const auto of = [&](bool salted) {
        return planned({.workload = dataset{.path = "a.jsonl", .max_turns = 2, .salted = salted},
                        .arrivals = poisson(8_rps),
                        .requests = 300},
                       1, files);
    };
    const token_fit fit;
    CHECK(shared_tokens(of(true), 0, fit, 1000) == 500);
    CHECK(shared_tokens(of(true), 0, fit, 100) == 0);
    CHECK(shared_tokens(of(true), 1, fit, 1100) == 1100);
    CHECK(shared_tokens(of(false), 0, fit, 1000) == 1000);
}
