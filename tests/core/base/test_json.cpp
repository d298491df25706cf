// JSON of files and servers: what is none, and which numbers it has.
#include "core/base/json.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

using namespace llmbench::detail;

namespace {
/// What is wrong with it; "it is not JSON" where the parser says no more.
std::string problem(const std::string& json) {
    picojson::value v;
    std::string why;
    if (parse_json(json, v, &why)) return "";
    return why.empty() ? "it is not JSON" : why;
}
}  // namespace

TEST_CASE("numbers are those of JSON, wherever they stand") {
    for (const char* sound : {"0", "-0", "7", "-1.5", "0.05", "1e3", "1E+3", "2.5e-3", "-0.0", "0e0",
                              "1e-400", "12345678901234567890123456789"}) {
        CAPTURE(sound);
        const std::string s = sound;
        CHECK(problem(s) == "");
        CHECK(problem("{\"a\": [" + s + "," + s + "], \"b\":" + s + " }") == "");
    }
    for (const char* none : {"007", "00", "-01", "1.", "1.e5", ".5", "-.5", "+1", "--1", "1e", "1e+",
                             "1.5.2", "1-2", "0x10", "1f", "-", "-Infinity", "-NaN", "1_000"}) {
        CAPTURE(none);
        const std::string s = none, said = "it is not JSON: " + s + " is no number there";
        CHECK(problem(s) == said);
        CHECK(problem("[" + s + "]") == said);
        CHECK(problem("[1," + s + ",2]") == said);
        CHECK(problem("{\"a\":" + s + "}") == said);
        CHECK(problem("{\"a\":\n" + s + " ,\"b\": 1}") == said);
    }
    for (const char* none : {"NaN", "Infinity", "inf", "nan", "e5"}) CHECK(problem(none) != "");
    CHECK(problem("1e400") == "it has a number that no double holds");
    CHECK(problem("[-1e999]") == "it has a number that no double holds");
    // In a text there are no numbers.
    CHECK(problem(R"({"a": "007", "1.": "\" 1. +1 [ .5"})") == "");
    picojson::value v;
    REQUIRE(parse_json("[-0, 1e3]", v));
    CHECK(std::signbit(v.get(0).get<double>()));
    CHECK(v.get(1).get<double>() == 1000);
}

TEST_CASE("what is no JSON is refused in words of the reason, as far as it is known") {
    CHECK(problem(std::string(101, '[') + std::string(101, ']')) ==
          "its JSON nests deeper than 100 levels");
    for (const char* none : {"", " ", "{", "[1,]", "{\"a\":}", "[1] 2", "tru", "\"a", "'a'"})
        CHECK_MESSAGE(problem(none) == "it is not JSON", none);
}
