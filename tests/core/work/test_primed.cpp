// Which beginnings are sent before a load: those with which any two prompts find what they share.
#include "extensions/work/core/primed.hpp"

#include "core/base/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {
vector<std::string> starts_in(const vector<std::string>& texts) {
    vector<std::string> all;
    for (const shared_start& s : shared_starts(texts)) all.push_back(texts[s.which].substr(0, s.length));
    std::sort(all.begin(), all.end());
    return all;
}
using list_of = vector<std::string>;
}  // namespace

TEST_CASE("each longest start that several texts share, once") {
    CHECK(starts_in({}).empty());
    CHECK(starts_in({"one"}).empty());
    CHECK(starts_in({"one", "two"}) == list_of{""});  // what a server puts before both
    CHECK(starts_in({"abc 1", "abc 2", "abc 3"}) == list_of{"abc "});
    CHECK(starts_in({"abc x1", "abc y1", "abc x2", "abc y2", "abc z"}) == list_of{"abc x", "abc y"});
    CHECK(starts_in({"ab", "abc", "abcd"}) == list_of{"abc"});
    CHECK(starts_in({"same", "same", "same"}) == list_of{"same"});
    CHECK(starts_in({"a1", "a2", "b1", "b2"}) == list_of{"a", "b"});
}

TEST_CASE("any two texts find in them what they share, of 1,000 drawn loads") {
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        CAPTURE(seed);
        generator random(seed);
        vector<std::string> texts;
        for (std::size_t n = 2 + random.below(12); n > 0; --n) {
            std::string text;
            for (std::size_t k = 1 + random.below(6); k > 0; --k)
                text += static_cast<char>('a' + random.below(3));
            texts.push_back(text);
        }
        const vector<std::string> sent = starts_in(texts);
        for (std::size_t i = 0; i < texts.size(); ++i)
            for (std::size_t k = 0; k < i; ++k) {
                const std::size_t shared = common_length(texts[i], texts[k]);
                REQUIRE(any_of(sent, [&](const std::string& s) {
                    return s.starts_with(texts[i].substr(0, shared));
                }));
            }
        for (std::size_t i = 1; i < sent.size(); ++i)
            REQUIRE_FALSE(sent[i].starts_with(sent[i - 1]));
    }
}

TEST_CASE("a beginning ends with a whole word of the prompt, and asks for one token") {
    request_spec r;
    r.system_prompt = "be brief";
    r.prompt = "count to ten";
    r.max_tokens = 32;
    const std::size_t before = r.system_prompt.size() + 1;
    const auto prompt_of = [&](std::size_t length) { return begun(r, length).prompt; };
    CHECK(prompt_of(0) == "count");
    CHECK(prompt_of(before) == "count");
    CHECK(prompt_of(before + 5) == "count");
    CHECK(prompt_of(before + 6) == "count");  // the blank is shared, the next word is not
    CHECK(prompt_of(before + 7) == "count to");
    CHECK(prompt_of(before + 100) == "count to ten");
    CHECK(begun(r, 0).max_tokens == 1);
    CHECK(begun(r, 0).system_prompt == "be brief");
    r = {};
    r.prompt = "2001 2040 2002";
    r.token_ids = "[2001,2040,2002]";
    CHECK(begun(r, 7).token_ids == "[2001,2040]");
}
