// Files of questions: what they ask, what is right, and what is refused by file and line.
#include "llmbench.hpp"
#include "core/files/questions.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

byte_stream stream_of(const std::string& text) {
    auto at = std::make_shared<std::size_t>(0);
    return {[=](char* to, std::size_t most) {
                const std::size_t n = std::min(most, text.size() - *at);
                std::memcpy(to, text.data() + *at, n);
                *at += n;
                return n;
            },
            "qa.jsonl"};
}
std::vector<dialogue> read(const std::string& text, const questions& q = {},
                           const request_options& o = {}) {
    byte_stream in = stream_of(text);
    return read_questions(in, q, o, 1);
}
wanted_answer wanted_of(const std::string& line, const questions& q = {}) {
    return *read(line, q).at(0).wanted;
}
void refused(const std::string& text, const char* sentence, const questions& q = {}) {
    CHECK_THROWS_WITH_AS(read(text, q), doctest::Contains(sentence), std::invalid_argument);
}

}  // namespace

TEST_CASE("gsm8k's answers are graded by the number behind their ####") {
    const auto all = read("{\"question\": \"2 and 2?\", \"answer\": \"2+2 is <<2+2=4>>4\\n#### 1,004\"}",
                          {.format = gsm8k, .before = "Q: ", .after = "\nA:"});
    REQUIRE(all.size() == 1);
    CHECK(all[0].turns[0].prompt == "Q: 2 and 2?\nA:");
    CHECK(all[0].turns[0].output_tokens == 0);
    CHECK(all[0].wanted->by == last_number);
    CHECK(all[0].wanted->key == "1,004");
}

TEST_CASE("choices stand below their question, and the key is a letter, an index or a text") {
    const std::string asked = "{\"question\": \"Which?\", \"choices\": [\"red\", \"blue\"], \"answer\": ";
    CHECK(read(asked + "\"B\"}")[0].turns[0].prompt == "Which?\nA. red\nB. blue");
    for (const char* key : {"\"B\"}", "1}", "\"blue\"}", "\" blue \"}"}) {
        CHECK(wanted_of(asked + key).by == choice);
        CHECK(wanted_of(asked + key).key == "B");
        CHECK(wanted_of(asked + key).choices == 2);
    }
    refused(asked + "\"C\"}", "qa.jsonl:1: answer \"C\" is none of the 2 choices");
    refused(asked + "2}", "qa.jsonl:1: answer \"2\" is none of the 2 choices");
    refused("{\"question\": \"?\", \"choices\": [\"B\", \"A\"], \"answer\": \"A\"}",
            "may be several of the choices");
    refused("{\"question\": \"?\", \"choices\": [\"x\", \"x\"], \"answer\": \"x\"}",
            "may be several of the choices");
    refused("{\"question\": \"?\", \"choices\": [\"x\"], \"answer\": \"x\"}", "2 to 26 are allowed");
    refused("{\"question\": \"?\", \"choices\": [1, 2], \"answer\": \"x\"}", "a list of strings");
}

TEST_CASE("a line says by itself how it is graded, unless the workload does") {
    CHECK(wanted_of("{\"question\": \"?\", \"answer\": \"Paris\"}").by == exact);
    CHECK(wanted_of("{\"question\": \"?\", \"answer\": 7}").key == "7");
    CHECK(wanted_of("{\"question\": \"?\", \"pattern\": \"a+\"}").by == pattern);
    CHECK(wanted_of("{\"question\": \"?\", \"schema\": {\"type\": \"object\"}}").by == schema);
    CHECK(wanted_of("{\"question\": \"?\", \"answer\": \"so 7\"}", {.grade = last_number}).key == "7");
}

TEST_CASE("a schema that a line leaves out is the one of response_format") {
    const request_options o{.extra_body = R"({"response_format": {"type": "json_schema", )"
                                          R"("json_schema": {"schema": {"type": "array"}}}})"};
    const auto all = read("{\"question\": \"?\"}", {.grade = schema}, o);
    CHECK(graded("[]", *all[0].wanted).is == graded_as::right);
    CHECK(graded("{}", *all[0].wanted).is == graded_as::wrong);
    refused("{\"question\": \"?\"}", "qa.jsonl:1: schema is missing", {.grade = schema});
}

TEST_CASE("a question without a key, a key that cannot be, and a question asked twice are refused") {
    const std::string good = "{\"question\": \"a\", \"answer\": \"b\"}\n";
    refused(good + "{\"question\": \"c\"}", "qa.jsonl:2: answer is missing or empty");
    refused(good + "{\"question\": \"c\", \"answer\": \" \"}", "qa.jsonl:2: answer is missing or empty");
    refused(good + "{\"answer\": \"c\"}", "qa.jsonl:2: question is missing");
    refused(good + "\n" + good, "qa.jsonl:3: the question stands on line 1 already");
    refused(good + "[]", "qa.jsonl:2: an object is expected here");
    refused(good + "{", "qa.jsonl:2: it is not JSON");
    refused("", "qa.jsonl: it holds no questions");
    refused(good, "qa.jsonl:1: answer has no number", {.grade = last_number});
    refused(good, "qa.jsonl:1: choices is missing", {.grade = choice});
    refused(good, "qa.jsonl:1: pattern is missing", {.grade = pattern});
    refused("{\"question\": \"?\", \"pattern\": \"(a\"}", "qa.jsonl:1: the pattern \"(a\" has a (");
    refused("{\"question\": \"?\", \"pattern\": 1}", "qa.jsonl:1: pattern is not a string");
    refused("{\"question\": \"?\", \"schema\": {\"$ref\": \"#\"}}", "qa.jsonl:1: schema.$ref is a keyword");
}

TEST_CASE("of many questions the seed draws so many, in an order of its own") {
    std::string text;
    for (int i = 0; i < 50; ++i)
        text += printed("{\"question\": \"q%d\", \"answer\": \"%d\"}\n", i, i);
    const auto all = read(text), some = read(text, {.max_items = 10}), again = read(text, {.max_items = 10});
    CHECK(all.size() == 50);
    REQUIRE(some.size() == 10);
    for (std::size_t i = 0; i < some.size(); ++i) {
        CHECK(some[i].turns[0].prompt == again[i].turns[0].prompt);
        CHECK("q" + some[i].wanted->key == some[i].turns[0].prompt);
    }
}
