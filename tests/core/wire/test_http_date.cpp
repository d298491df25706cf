// Dates of HTTP, which servers tell their clocks by.
#include "core/wire/http.hpp"

#include <doctest/doctest.h>

using namespace llmbench::detail;

TEST_CASE("a date of HTTP is seconds since 1970") {
    CHECK(seconds_of_http_date("Thu, 01 Jan 1970 00:00:00 GMT") == 0);
    CHECK(seconds_of_http_date("Sun, 06 Nov 1994 08:49:37 GMT") == 784111777);
    CHECK(seconds_of_http_date("Thu, 29 Feb 2024 23:59:60 GMT") == 1709251200);
    CHECK(seconds_of_http_date("Fri, 01 Mar 2024 00:00:00 GMT") == 1709251200);
    CHECK(seconds_of_http_date("Fri, 31 Dec 2100 12:00:00 GMT") == 4133937600);
}

TEST_CASE("what is no date of HTTP is none") {
    for (const char* text :
         {"", "now", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 GMT ",
          "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 ovD 1994 08:49:37 GMT",
          "Sun, 06 Nov 1969 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
          "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
          "Sun, -6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT"}) {
        CAPTURE(text);
        CHECK_FALSE(seconds_of_http_date(text));
    }
}
