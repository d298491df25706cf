// Files of questions: what they ask, what is right, and what is refused by file and line.
#include "llmbench.hpp"
#include "extensions/answers/core/questions.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

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
vector<dialogue> read(const std::string& text, const questions& q = {}) {
    byte_stream in = stream_of(text);
    return read_questions(in, q, 1);
}
answer_key key_of(const dialogue& d) { return static_cast<const keyed_answer&>(*d.wanted).what; }
answer_key wanted_of(const std::string& line, const questions& q = {}) {
    return key_of(read(line, q).at(0));
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
    CHECK(key_of(all[0]).by == last_number);
    CHECK(all[0].wanted->key() == "1,004");
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
    CHECK(wanted_of("{\"question\": \"?\", \"answer\": 7}").by == last_number);
    CHECK(wanted_of("{\"question\": \"?\", \"answer\": \"7 \\u00B0C\"}").by == exact);
    refused("{\"question\": \"?\", \"answer\": 7}", "qa.jsonl:1: answer is a number: graded by exact",
            {.grade = exact});
}

TEST_CASE("a key of last_number is wholly a number") {
    const auto key = [](const std::string& answer) {
        return wanted_of("{\"question\": \"?\", \"answer\": " + answer + "}", {.grade = last_number});
    };
    for (const char* answer : {"0.75", "\"0.750\"", "\"6/8 #### 0.75\""})
        CHECK(graded("it is .75", key(answer)).is == graded_as::right);
    CHECK(graded("-1234.5", key("\"-$1,234.50\"")).is == graded_as::right);
    CHECK(graded("121932631112635268", key("\"121932631112635269\"")).is == graded_as::wrong);
    for (const char* answer : {"50%", "1,5", "3/4", "5e-05", "2 h 30", "so 7", "7 apples", "1.2.3", "2:30", "#### ", "x"}) {
        const std::string text = std::string("{\"question\": \"?\", \"answer\": \"") + answer + "\"}";
        refused(text, " is no number: graded by last_number, a key is wholly one", {.grade = last_number});
        refused(text, "qa.jsonl:1: answer \"", {.format = gsm8k});
    }
    refused("{\"question\": \"?\", \"answer\": 121932631112635269}",
            "which JSON's numbers may not hold to the last digit: write it in quotes");
}

TEST_CASE("a key that is wholly a number, in quotes or not, is graded as one") {
    for (const char* answer : {"42", "\"42\""}) {
        const auto key = wanted_of(std::string("{\"question\": \"?\", \"answer\": ") + answer + "}", {});
        CHECK(key.by == last_number);
        CHECK(graded("Since 6*7, it is 42.", key).is == graded_as::right);
    }
    CHECK(wanted_of(R"({"question": "?", "answer": "42 days"})", {}).by == exact);
    CHECK(wanted_of(R"({"question": "?", "answer": "42"})", {.grade = exact}).by == exact);
}

TEST_CASE("a function of the gate's has whatever stands as answer for its key") {
    const questions own{.grade = [](std::string_view answer, std::string_view key) {
        return answer == key;
    }};
    const auto key = [&](const std::string& answer) {
        return wanted_of("{\"question\": \"?\", \"pattern\": \"\", \"answer\": " + answer + "}", own);
    };
    CHECK(key("\"(a|b)+\"").key == "(a|b)+");
    CHECK(key("{\"type\": \"array\"}").key == "{\"type\":\"array\"}");
    CHECK(key("7").key == "7");
    CHECK(graded("7", key("7")).is == graded_as::right);
    refused("{\"question\": \"?\"}", "qa.jsonl:1: answer is missing or empty", own);

    bool (*none)(types::text, types::text) = nullptr;
    const std::function<bool(types::text, types::text)> empty;
    for (const answer_grader& g : {answer_grader(none), answer_grader(empty)})
        CHECK_THROWS_WITH_AS(check_questions({.path = "qa.jsonl", .grade = g}, {}),
                             "workload.grade is a null function: it needs one that grades",
                             std::invalid_argument);
    CHECK_FALSE(own.grade.is_null());
    CHECK_NOTHROW(check_questions({.path = "qa.jsonl", .grade = own.grade}, {}));
}

TEST_CASE("a question without a key, a key that cannot be, and a question asked twice are refused") {
    const std::string good = "{\"question\": \"a\", \"answer\": \"b\"}\n";
    refused(good + "{\"question\": \"c\"}", "qa.jsonl:2: answer is missing or empty");
    refused(good + "{\"question\": \"c\", \"answer\": \" \"}", "qa.jsonl:2: answer is missing or empty");
    refused(good + "{\"answer\": \"c\"}", "qa.jsonl:2: question is missing");
    refused(good + "\n" + good, "qa.jsonl:3: the question stands on line 1 already");
    refused(good + "[]", "qa.jsonl:2: an object is expected here");
    refused(good + "{", "qa.jsonl:2: the file ends inside a value that begins here");
    refused("", "qa.jsonl: it holds no questions");
    refused(good, "qa.jsonl:1: answer \"b\" is no number", {.grade = last_number});
    refused(good, "qa.jsonl:1: choices is missing", {.grade = choice});
    for (const char* gone : {"\"pattern\": \"a+\"", "\"schema\": {\"type\": \"array\"}"})
        refused(std::string("{\"question\": \"?\", ") + gone + "}", " is no grade any more: write it as answer");
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
        CHECK("q" + some[i].wanted->key() == some[i].turns[0].prompt);
    }
}
