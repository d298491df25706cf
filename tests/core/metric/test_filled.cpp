// Texts with places for values.
#include "llmbench.hpp"
#include "core/metric/filled.hpp"
#include "support/texts.hpp"

#include <string>
#include <string_view>

using namespace llmbench;
using namespace llmbench::detail;

TEST_CASE("a place takes the next value") {
    const std::string name = "a";
    CHECK(filled("{}, {}, {}, {}", {name, "b", std::string_view("cd", 1), text("d")}) ==
          "a, b, c, d");
    CHECK(filled("{} {} {}", {3, std::size_t{4}, -0.5}) == "3 4 -0.5");
    CHECK(filled("{} {t}", {{metric_id::output_throughput, 703.0}, 0.0391}) == "703 tok/s 39.1 ms");
    CHECK(filled("{.3g} {.1f%} % {.0f}", {0.12345, 0.12345, 2.5e6}) == "0.123 12.3 % 2500000");
    CHECK(filled("{p} {p} {p}", {12.34, -0.04, not_a_number}) == "12.3 0 0");
    CHECK(filled("{two|one} {two|one}{?}", {2, 0, 5}) == "two one");
    CHECK(filled("{x} {m} {c}", {"<a>", "a_b", "a_b"}) == "&lt;a&gt; a\\_b `a_b`");
    CHECK(filled("{} repeat{s}, {} request{s}", {1, 2}) == "1 repeat, 2 requests");
    CHECK(filled("{} {}", {1}) == "1 ");
}
TEST_CASE("a value is no format") {
    CHECK(filled("{}", {"{} [x] {s}"}) == "{} [x] {s}");
}
TEST_CASE("a part in brackets is left out if its first value is nothing") {
    CHECK(filled("a[, {} b][, {} c][, {} d][, {} e]", {0, 1, "", not_a_number}) == "a, 1 c");
    CHECK(filled("[{?}{} of {}] {}", {false, 1, 2, 3}) == " 3");
    CHECK(filled("[{?}{} of {}] {}", {true, 0, 2, 3}) == "0 of 2 3");
}
TEST_CASE("elements of a list are separated") {
    std::string out;
    for (const int n : {1, 2, 3}) fill(out, "{,}{}", {n});
    CHECK(out == "1, 2, 3");
    fill(out, "{;}{}", {4});
    CHECK(out == "1, 2, 3; 4");
}

TEST_CASE("escaped for Markdown a text is no mention, issue, link or formula") {
    CHECK(markdown_escaped("tok/s: 3 of a_b, 5 %") == "tok/s: 3 of a\\_b, 5 %");
    CHECK(markdown_escaped("by @you, see #12 in me/it#3.") == "by `@you,` see `#12` in `me/it#3.`");
    CHECK(markdown_escaped("https://evil/?a=@b (www.evil.com) GH-12") ==
          "`https://evil/?a=@b` `(www.evil.com)` `GH-12`");
    CHECK(markdown_escaped("high-end awww.a $a b$") == "high-end awww.a `$a` `b$`");
    CHECK(markdown_escaped("` @a`b|c d") == "\\` ``@a`b\u2502c`` d");
    CHECK(markdown_escaped(" @a  ") == " `@a`  ");
    CHECK(markdown_escaped("\\ @a") == "\\\\ `@a`");
    for (const std::string word : {"@org/team", "me@mail.de", "a#1", "WWW.a.de", "ftp://a", "`@a``b`"})
        for (const std::string& text : {word, "a " + word, word + " `b", "``" + word + "` " + word}) {
            CAPTURE(text);
            const std::string seen = texts::outside_of_code(markdown_escaped(text));
            for (const char* live : {"@", "#", "://", "WWW."}) CHECK(!texts::holds(seen, live));
        }
}
