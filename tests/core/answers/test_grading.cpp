// Whether an answer is right: each grade, and the answers that fool graders.
#include "llmbench.hpp"
#include "core/answers/grading.hpp"

#include <memory>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

graded_as by_text(const std::string& text, const std::string& key) {
    return graded(text, {.by = exact, .key = key}).is;
}
std::string number_read(const std::string& text) {
    return graded(text, {.by = last_number, .key = "42"}).read;
}
graded_as by_number(const std::string& text, const std::string& key) {
    return graded(text, {.by = last_number, .key = key}).is;
}
std::string letter_read(const std::string& text, int choices = 4) {
    return graded(text, {.by = choice, .key = "B", .choices = choices}).read;
}
bool found(const std::string& expression, const std::string& text) {
    return text_pattern(expression).found_in(text);
}
bool allows(const std::string& schema_text, const std::string& json) {
    picojson::value s, v;
    REQUIRE(parse_json(schema_text, s));
    REQUIRE(parse_json(json, v));
    check_schema(s);
    return schema_allows(s, v);
}
void refused_schema(const std::string& schema_text, const char* sentence) {
    picojson::value s;
    REQUIRE(parse_json(schema_text, s));
    CHECK_THROWS_WITH_AS(check_schema(s), doctest::Contains(sentence), std::invalid_argument);
}

}  // namespace

TEST_CASE("exact is the same text but for space around it") {
    CHECK(by_text("\n Paris \n", "Paris") == graded_as::right);
    CHECK(by_text("paris", "Paris") == graded_as::wrong);
    CHECK(by_text("It is Paris", "Paris") == graded_as::wrong);
    CHECK(by_text("", "Paris") == graded_as::unreadable);
    CHECK(by_text(" \n\t", "Paris") == graded_as::unreadable);
}

TEST_CASE("a key that is part of a wrong number is wrong") {
    CHECK(by_number("The answer is 42.", "4") == graded_as::wrong);
    CHECK(by_number("4", "42") == graded_as::wrong);
    CHECK(by_number("So 42", "42") == graded_as::right);
    CHECK(by_number("-42", "42") == graded_as::wrong);
    CHECK(by_number("14.5", "4.5") == graded_as::wrong);
}

TEST_CASE("numbers are compared as numbers, without their commas") {
    CHECK(by_number("#### 1,234", "1234") == graded_as::right);
    CHECK(by_number("#### $1,234.00", "1,234") == graded_as::right);
    CHECK(by_number("that makes 18.00 dollars.", "18") == graded_as::right);
    CHECK(by_number("it is .5", "0.5") == graded_as::right);
    CHECK(by_number("x = -3", "-3") == graded_as::right);
    CHECK(number_read("5-3") == "3");          // a difference, and no sign
    CHECK(number_read("2 and 3,4") == "4");    // a list, and no thousands
    CHECK(number_read("#### 7\nI checked it in 3 steps") == "7");
    CHECK(number_read("#### 7\nno: #### 8") == "8");
    CHECK(number_read("first 5, then ####") == "5");
    CHECK(by_number("I do not know", "42") == graded_as::unreadable);
    CHECK(by_number("nan", "42") == graded_as::unreadable);
    CHECK(by_number("inf 0x", "0") == graded_as::right);  // of which 0 is the last number
    CHECK(by_number(std::string(400, '9'), "42") != graded_as::right);
}

TEST_CASE("a choice is the letter that was named, and not one of the list that is repeated") {
    CHECK(letter_read("B") == "B");
    CHECK(letter_read("**B**\nbecause A is wrong") == "B");
    CHECK(letter_read("(b)") == "B");
    CHECK(letter_read("A. cats\nB. dogs\nC. birds\nD. fish\nThe answer is B.") == "B");
    CHECK(letter_read("A. cats\nB. dogs\nC. birds\nD. fish\nI choose C because D is no bird. "
                      "The answer is (C)") == "C");
    CHECK(letter_read("The answer is B. Wait. The answer is C.") == "C");
    CHECK(letter_read("so \\boxed{D} and not A") == "D");
    CHECK(letter_read("The answer is B\nso \\boxed{D}") == "D");
    CHECK(letter_read("A and B are wrong, therefore C") == "C");
    CHECK(letter_read("D it is, as A bird has no fur") == "D");
    CHECK(letter_read("D it is: a bird") == "D");
    CHECK(letter_read("The answer is E", 4).empty());
    CHECK(letter_read("The answer is E", 5) == "E");
    CHECK(letter_read("Because apples do. Can't say") == "");
    CHECK(graded("dogs", {.by = choice, .key = "B", .choices = 4}).is == graded_as::unreadable);
}

TEST_CASE("a model that thinks and never answers is unreadable, whatever grades it") {
    for (const answer_grade by : {exact, last_number, choice, pattern, schema})
        CHECK(graded("", {.by = by, .key = "4", .choices = 4}).is == graded_as::unreadable);
}

TEST_CASE("patterns find what ECMAScript's would") {
    CHECK(found("colou?r", "the color"));
    CHECK(!found("^colou?r$", "the color"));
    CHECK(found("^(yes|no|maybe)$", "maybe"));
    CHECK(!found("^(yes|no|maybe)$", "maybe not"));
    CHECK(found("\\b4\\b", "it is 4."));
    CHECK(!found("\\b4\\b", "42"));
    CHECK(found("[^a-c]{2,3}x", "abddx"));
    CHECK(!found("^[a-c]{2,3}$", "abca"));
    CHECK(found("^[a-c]{2,}$", "abca"));
    CHECK(found("a.*?b", "a\\x b"));
    CHECK(!found("a.b", "a\nb"));
    CHECK(found("\\$\\d+\\.\\d\\d", "costs $12.50"));
    CHECK(found("(?:ab)+c", "xababc"));
    CHECK(found("^(a|(b|c)d)*e$", "acdbdae"));
    CHECK(!found("^(a|(b|c)d)*e$", "acbdae"));
    CHECK(found("", "anything"));
    CHECK(found("a{0}b", "b"));
    CHECK(found("[-a]", "-"));
    CHECK(found("[\\]x]", "]"));
    CHECK(found("\\Bx", "axe"));
}

// By backtracking these take years, and the stack.
TEST_CASE("no pattern is slow, whatever the answer") {
    const std::string as(4096, 'a');
    for (const char* expression : {"(a+)+$b", "(a|aa)*c", "(a*)*b", "(.*)(.*)(.*)(.*)x",
                                   "(a?){500}a{500}b", "((((a*)*)*)*)*z"})
        CHECK(!found(expression, as));
}

TEST_CASE("a pattern that is none, or that only backtracking can follow, is refused") {
    const auto refused = [](const char* expression, const char* sentence) {
        CHECK_THROWS_WITH_AS(text_pattern{expression}, doctest::Contains(sentence),
                             std::invalid_argument);
    };
    refused("(a)\\1", "\\1, which is not known here");
    refused("(?=a)b", "only (?: is known");
    refused("(?<n>a)", "only (?: is known");
    refused("(a", "( without its )");
    refused("a)", ") that nothing opens");
    refused("[a", "[ without its ]");
    refused("[b-a]", "not in order");
    refused("[\\d-x]", "not in order");
    refused("*a", "nothing before it");
    refused("a**", "two quantifiers");
    refused("a{2", "{ without its }");
    refused("a{2,1}", "not in order");
    refused("a{2,0}", "not in order");
    refused("a{1001}", "0 to 1000");
    refused("a{99999999999999999999}", "0 to 1000");
    refused("((a{100}){100}){100}", "over 4000 steps");
    refused("a\\", "\\ at its end");
    refused(std::string(200, '(').c_str(), "50 deep");
}

TEST_CASE("a pattern is looked for in the last 4096 bytes") {
    const wanted_answer w{.by = pattern, .key = "yes",
                          .found = std::make_shared<const text_pattern>("yes")};
    CHECK(graded("yes", w).is == graded_as::right);
    CHECK(graded("yes" + std::string(4096, '.'), w).is == graded_as::wrong);
    CHECK(graded(std::string(9000, '.') + "yes", w).is == graded_as::right);
}

TEST_CASE("a schema allows what it says") {
    CHECK(allows(R"({"type":"object","properties":{"n":{"type":"integer","minimum":1}},)"
                 R"("required":["n"],"additionalProperties":false})", R"({"n":2})"));
    const char* strict = R"({"type":"object","properties":{"n":{"type":"integer","minimum":1}},)"
                         R"("required":["n"],"additionalProperties":false})";
    CHECK(!allows(strict, R"({"n":0})"));
    CHECK(!allows(strict, R"({"n":1.5})"));
    CHECK(!allows(strict, R"({})"));
    CHECK(!allows(strict, R"({"n":1,"m":1})"));
    CHECK(!allows(strict, R"([])"));
    CHECK(allows(R"({"enum":["a",1,null]})", "null"));
    CHECK(!allows(R"({"enum":["a",1,null]})", "\"b\""));
    CHECK(allows(R"({"const":{"a":1}})", R"({"a":1})"));
    CHECK(!allows(R"({"const":{"a":1}})", R"({"a":2})"));
    CHECK(allows(R"({"type":["string","null"]})", "null"));
    CHECK(!allows(R"({"type":"array","items":{"type":"string"},"minItems":1})", "[]"));
    CHECK(!allows(R"({"type":"array","items":{"type":"string"}})", "[1]"));
    CHECK(allows(R"({"type":"string","maxLength":2})", "\"\xC3\xA4\xC3\xA4\""));
    CHECK(!allows(R"({"type":"string","maxLength":2})", "\"abc\""));
    CHECK(!allows(R"({"exclusiveMaximum":3})", "3"));
    CHECK(allows(R"({"exclusiveMaximum":3})", "2.9"));
    CHECK(!allows(R"({"additionalProperties":{"type":"number"}})", R"({"a":"b"})"));
}

TEST_CASE("a schema with a keyword that is not checked is refused by its place") {
    refused_schema(R"({"$ref":"#/x"})", "schema.$ref is a keyword that is not checked here");
    refused_schema(R"({"properties":{"a":{"items":{"anyOf":[]}}}})",
                   "schema.properties.a.items.anyOf is a keyword");
    refused_schema(R"({"pattern":"a"})", "schema.pattern is a keyword");
    refused_schema(R"({"type":"int"})", "schema.type must be one of object");
    refused_schema(R"({"minimum":"1"})", "schema.minimum must be a number");
    refused_schema(R"({"required":"a"})", "schema.required must be a list of names");
    refused_schema(R"({"enum":1})", "schema.enum must be a list");
    refused_schema("3", "is no object");
}

TEST_CASE("an answer that is no JSON is unreadable to a schema, and one that breaks it wrong") {
    picojson::value s;
    REQUIRE(parse_json(R"({"type":"object"})", s));
    const wanted_answer w{.by = schema, .allowed = std::make_shared<const picojson::value>(s)};
    CHECK(graded(" {\"a\":1}\n", w).is == graded_as::right);
    CHECK(graded("[]", w).is == graded_as::wrong);
    CHECK(graded("```json\n{}\n```", w).is == graded_as::unreadable);
    CHECK(graded("{\"a\":", w).is == graded_as::unreadable);
    CHECK(graded(std::string(100000, '['), w).is == graded_as::unreadable);
}
