// Texts with places for values.
#include "llmbench.hpp"
#include "core/metric/filled.hpp"
#include "support/texts.hpp"

#include <string>
#include <string_view>

using namespace llmbench;
using namespace llmbench::detail;

TEST_CASE("a place takes the value of its name") {
    const std::string name = "a";
    CHECK(filled("{d}, {a}, {c}, {b}, {a}", {{"a", name}, {"b", "b"},
                                             {"c", std::string_view("cd", 1)}, {"d", text("d")}}) ==
          "d, a, c, b, a");
    CHECK(filled("{i} {n} {x}", {{"i", 3}, {"n", std::size_t{4}}, {"x", -0.5}}) == "3 4 -0.5");
    CHECK(filled("{rate} {took:t}", {{"rate", {metric_id::output_throughput, 703.0}},
                                     {"took", 0.0391}}) == "703 tok/s 39.1 ms");
    CHECK(filled("{x:.3g} {x:.1f%} % {n:.0f} {n:0}", {{"x", 0.12345}, {"n", 2.5e6}}) ==
          "0.123 12.3 % 2500000 2500000");
    CHECK(filled("{a?two|one} {b?two|one}{a?}{b?yes}{a?, yes: no}", {{"a", 2}, {"b", 0}}) ==
          "two one, yes: no");
    CHECK(filled("{a:x} {b:m} {b:c}", {{"a", "<a>"}, {"b", "a_b"}}) == "&lt;a&gt; a\\_b `a_b`");
    CHECK(filled("{n} repeat{n:s}, {m} request{m:s}", {{"n", 1}, {"m", 2}}) ==
          "1 repeat, 2 requests");
}
TEST_CASE("a name that no value has stays as it is written, for a reader to find") {
    CHECK(filled("{n} of {all:.0f}{is_so? yes}", {{"n", 1}}) == "1 of {all:.0f}{is_so? yes}");
}
TEST_CASE("a value is no format") {
    CHECK(filled("{a}", {{"a", "{b} [x] {a:s}"}}) == "{b} [x] {a:s}");
}
TEST_CASE("a part in brackets is left out if its first value is nothing") {
    CHECK(filled("a[, {a} b][, {b} c][, {c} d][, {d} e]",
                 {{"a", 0}, {"b", 1}, {"c", ""}, {"d", not_a_number}}) == "a, 1 c");
    CHECK(filled("[{a?}{b} of {c}] {d}", {{"a", false}, {"b", 1}, {"c", 2}, {"d", 3}}) == " 3");
    CHECK(filled("[{a?}{b} of {c}] {d}", {{"a", true}, {"b", 0}, {"c", 2}, {"d", 3}}) ==
          "0 of 2 3");
}
TEST_CASE("elements of a list are separated") {
    std::string out;
    for (const int n : {1, 2, 3}) fill(out, "{,}{n}", {{"n", n}});
    CHECK(out == "1, 2, 3");
    fill(out, "{;}{n}", {{"n", 4}});
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
