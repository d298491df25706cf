// What a request looks like on the wire.
#include "core/wire/http.hpp"
#include "extensions/simulated/core/questions.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace llmbench::detail;

TEST_CASE("a GET is its head alone") {
    CHECK(request_text(http_method::get, "/v1/models", "localhost:8000", "Connection: close\r\n") ==
          "GET /v1/models HTTP/1.1\r\n"
          "Host: localhost:8000\r\n"
          "Connection: close\r\n"
          "\r\n");
}

TEST_CASE("a POST says how long its body is, behind the fields") {
    CHECK(request_text(http_method::post, "/v1/completions", "[::1]:8000",
                       "Authorization: Bearer k\r\nAccept: */*\r\n", "{\"a\":1}") ==
          "POST /v1/completions HTTP/1.1\r\n"
          "Host: [::1]:8000\r\n"
          "Authorization: Bearer k\r\n"
          "Accept: */*\r\n"
          "Content-Length: 7\r\n"
          "\r\n"
          "{\"a\":1}");
}

TEST_CASE("a POST without a body says so") {
    CHECK(request_text(http_method::post, "/", "h", "", "") ==
          "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
}

TEST_CASE("the simulated server's parser reads what request_text() writes") {
    const std::string body(1000, 'x');
    request_parser parser;
    REQUIRE(parser.feed(request_text(http_method::post, "/p", "h:1", "X-One: 1\r\n", body)));
    CHECK(parser.method == "POST");
    CHECK(parser.path == "/p");
    CHECK(parser.header("host") == "h:1");
    CHECK(parser.header("x-one") == "1");
    CHECK(parser.body == body);
}
