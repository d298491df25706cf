// Numbers in texts: the one at the start, and the one that a whole text is.
#include "core/base/text.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>

using namespace llmbench::detail;

TEST_CASE("a whole text is one number, or none") {
    CHECK(parsed_number<int>("12") == 12);
    CHECK(parsed_number<int>("-12") == -12);
    CHECK(parsed_number<int>("007") == 7);
    CHECK(parsed_number<double>("1e3") == 1000);
    CHECK(parsed_number<double>("-0.5") == -0.5);
    CHECK(parsed_number<unsigned>("ff", 16) == 255u);
    for (const char* none : {"", " ", " 12", "12 ", "+12", "12s", "1.5", "0x12", "twelve", "--1"})
        CHECK_MESSAGE(!parsed_number<int>(none), none);
    for (const char* none : {"", ".", "1,5", "1e", "1.5s", " 1.5", "+1.5", "0x12", "-0x1p3", "e5",
                             "nan", "NaN", "inf", "-inf", "Infinity", "nan(1)"})
        CHECK_MESSAGE(!parsed_number<double>(none), none);
    CHECK(!parsed_number<unsigned>("-1"));
    CHECK(!parsed_number<int>(std::string_view("1\0", 2)));
}

TEST_CASE("a number that its type cannot hold is none") {
    CHECK(parsed_number<int>("2147483647") == 2147483647);
    CHECK(!parsed_number<int>("2147483648"));
    CHECK(parsed_number<std::uint64_t>("18446744073709551615") == UINT64_MAX);
    CHECK(!parsed_number<std::uint64_t>("18446744073709551616"));
    CHECK(!parsed_number<double>("1e999"));
}

TEST_CASE("the number at the start is taken off, and nothing where there is none") {
    std::string_view s = "5min";
    CHECK(leading_number<double>(s) == 5);
    CHECK(s == "min");
    CHECK(!leading_number<double>(s));
    CHECK(s == "min");
    s = "2023-11";
    CHECK(leading_number<int>(s) == 2023);
    CHECK(leading_number<int>(s) == -11);
    CHECK(s.empty());
    CHECK(!leading_number<int>(s));
    s = "99999999999 rest";
    CHECK(!leading_number<int>(s));
    CHECK(s == "99999999999 rest");
}
