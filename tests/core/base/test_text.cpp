// Text helpers.
#include "llmbench.hpp"
#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

using namespace llmbench;
using namespace llmbench::detail;

namespace {
const std::string replaced = "\xEF\xBF\xBD";  // U+FFFD, what stands for a byte that is not UTF-8

std::string repeated(const std::string& s, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += s;
    return out;
}

/// What a JSON parser that is not ours reads.
picojson::value read_by_picojson(const std::string& json) {
    picojson::value v;
    const std::string error = picojson::parse(v, json);
    REQUIRE(error == "");
    return v;
}
}  // namespace

// ---- characters, digits, lines

TEST_CASE("letters and digits are those of ASCII, in every locale") {
    std::string all;
    for (int c = -128; c < 128; ++c)
        if (is_letter_or_digit(static_cast<char>(c))) all += static_cast<char>(c);
    CHECK(all == "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
}

TEST_CASE("numbers in words have no exponents, and lose none of their whole digits") {
    CHECK(digits_text(180.4, 2) == "180");
    CHECK(digits_text(1234567, 6) == "1234567");
    CHECK(digits_text(12.345, 3) == "12.3");
    CHECK(digits_text(9.996, 3) == "10");
    CHECK(digits_text(0.000042, 2) == "0.000042");
    CHECK(digits_text(-0.5, 3) == "-0.5");
    CHECK(digits_text(0, 3) == "0");
    CHECK(digits_text(123456789012345, 6) == "123456789012345");
    CHECK(digits_text(2e180, 6) == "2e+180");
    CHECK(digits_text(-1.23456e-300, 3) == "-1.23e-300");
    CHECK(value_text(metric_id::queued_requests, 12345) == "12345");
    CHECK(value_text(metric_id::error_rate, 1e-7) == "0.00001 %");
    CHECK(limit_text(metric_id::output_throughput, 1234567) == "1234567 tok/s");
}

TEST_CASE("lines are broken at blanks and go on behind an indent") {
    CHECK(wrapped("  a bb ccc", 20, 4) == "  a bb ccc");
    CHECK(wrapped("  a bb ccc", 6, 4) == "  a bb\n    ccc");
    CHECK(wrapped("aaaaaaaaaa b", 4, 2) == "aaaaaaaaaa\n  b");
    CHECK(wrapped("a  b", 4, 0) == "a  b");
    CHECK(wrapped("one two, three four; five", 16, 2) == "one two,\n  three four;\n  five");
    CHECK(wrapped("one two, three", 12, 2) == "one two,\n  three");
    CHECK(wrapped("one [2, 3], four", 12, 2) == "one [2, 3],\n  four");
    CHECK(wrapped("", 4, 2) == "");
    CHECK(wrapped("at most 25 ms", 11, 2) == "at most\n  25 ms");  // a number and its unit
    CHECK(wrapped("all (of 8 %), more", 9, 0) == "all (of\n8 %),\nmore");
    CHECK(wrapped("at most 25 more", 11, 2) == "at most 25\n  more");
    CHECK(wrapped_lines("a\n\n  " + repeated("word, ", 20)) ==
          "a\n\n  " + repeated("word, ", 14) + "word,\n      " + repeated("word, ", 5));
    CHECK(wrapped("\u00E9\u00E9 \u00E9", 4, 0) == "\u00E9\u00E9 \u00E9");  // columns, not bytes
}

TEST_CASE("no width and no offset make a line of others' words a command") {
    const auto commands = [](const std::string& lines) {
        int n = 0;
        for (std::size_t i = 0; i != std::string::npos; i = lines.find('\n', i + 1))
            n += begins_with_colons(std::string_view(lines).substr(i + (i > 0)));
        return n;
    };
    REQUIRE(commands("a\n ::b\n::c\n\u00A0\u2003\u3000::d\n: :\n\u200B::") == 3);
    int lines = 0, wrong = 0;
    for (const char* before : {" ", "  ", ", ", "; ", " \u00A0 ", " \u2003", "\u3000 ", " \u1680",
                               " \u200A\u205F "})
        for (std::size_t offset = 0; offset < 110; ++offset) {
            std::string words = "  server: " + std::string(offset, 'y');
            for (int i = 0; i < 4; ++i)
                words += before + std::string("::error::z and ") + before + "::stop-commands::x";
            for (std::size_t width = 1; width < 120; width += offset % 9 == 0 ? 1 : 17)
                for (const std::size_t indent : {0u, 6u}) {
                    const std::string out = wrapped(words, width, indent);
                    lines += static_cast<int>(std::count(out.begin(), out.end(), '\n'));
                    wrong += commands(out);
                }
        }
    CHECK(lines > 10000);  // it does break
    CHECK(wrong == 0);
}

// ---- printed, json_number -----------------------------------------------------------------------

TEST_CASE("printed formats as printf does, whatever the length") {
    CHECK(printed("%d of %s", 3, "four") == "3 of four");
    CHECK(printed("%s", "") == "");
    const std::string kilobyte(1024, 'x');
    CHECK(printed("<%s>", repeated(kilobyte, 100).c_str()).size() == 100 * 1024 + 2);
}

TEST_CASE("a JSON number is the shortest text that reads back as the same double") {
    CHECK(json_number(0) == "0");
    CHECK(json_number(-0.5) == "-0.5");
    CHECK(json_number(0.1) == "0.1");
    CHECK(json_number(300) == "300");
    CHECK(json_number(1e300) == "1e+300");

    generator random(7);
    vector<double> values = {5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.3,
                             1.0 / 3, 123456789.123456789, 9007199254740993.0, -1e-7};
    for (int i = 0; i < 2000; ++i) {
        const std::uint64_t bits = random.next();
        double v = 0;
        std::memcpy(&v, &bits, sizeof v);
        if (std::isfinite(v)) values.push_back(v);
    }
    REQUIRE(values.size() > 1900);
    for (const double v : values) {
        const std::string s = json_number(v);
        CAPTURE(s);
        CHECK(std::strtod(s.c_str(), nullptr) == v);
        CHECK(s.size() <= printed("%.17g", v).size());
        CHECK(read_by_picojson(s).get<double>() == v);
    }
}

TEST_CASE("what JSON has no number for is null") {
    CHECK(json_number(infinity) == "null");
    CHECK(json_number(-infinity) == "null");
    CHECK(json_number(not_a_number) == "null");
}

// ---- printable ----------------------------------------------------------------------------------

TEST_CASE("well-formed UTF-8 of every length is left alone") {
    // The first and the last code point of each length, and both neighbours of the surrogates.
    for (const char* s : {"plain ASCII ~", "\xC2\xA0", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
                          "\xEE\x80\x80", "\xEF\xBF\xBC", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBC",
                          "gr\xC3\xBC\xC3\x9F \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80"})
        CHECK(printable(s) == s);
}

TEST_CASE("control characters are shown, on one line") {
    CHECK(printable("a\nb\tc\rd") == R"(a\nb\tc\rd)");
    CHECK(printable(std::string_view("\0\x01\x1F\x7F", 4)) == R"(\x00\x01\x1f\x7f)");
    CHECK(printable("\x1B[31mred\x1B[0m") == R"(\x1b[31mred\x1b[0m)");
    CHECK(printable("\xC2\x80\xC2\x9B" "31m\xC2\x9F") == R"(\u0080\u009b31m\u009f)");  // C1
    CHECK(printable("\xC2\xA0") == "\xC2\xA0");                                       // no control
}

TEST_CASE("what ends a line or turns its direction is shown") {
    CHECK(printable("a\xE2\x80\xA8" "b\xE2\x80\xA9" "c") == R"(a\u2028b\u2029c)");
    CHECK(printable("\xE2\x80\xAA\xE2\x80\xAE") == R"(\u202a\u202e)");
    CHECK(printable("\xE2\x81\xA6\xE2\x81\xA9") == R"(\u2066\u2069)");
    for (const char* neighbour : {"\xE2\x80\xA7", "\xE2\x80\xAF", "\xE2\x81\xA5", "\xE2\x81\xAA"})
        CHECK(printable(neighbour) == neighbour);
}

TEST_CASE("no runner finds a command in others' words") {
    CHECK(printable("##[error]no") == R"(#\x23[error]no)");
    CHECK(printable("so ##vso[task.complete result=Succeeded;] it was") ==
          R"(so #\x23vso[task.complete result=Succeeded;] it was)");
    CHECK(printable("##teamcity[buildProblem]") == R"(#\x23teamcity[buildProblem])");
    CHECK(printable("###[a] ####[b]") == R"(##\x23[a] ###\x23[b])");
    for (const char* harmless : {"## a title", "#[a]", "##", "##vso", "# #[a]", "issue ##12[3]"})
        CHECK(printable(harmless) == harmless);
    // GitHub's other commands begin a line, which nothing of others' does.
    CHECK(printable("ok\n::stop-commands::x\r::error::y") ==
          R"(ok\n::stop-commands::x\r::error::y)");
    CHECK(barred_lines("::stop-commands::x\r\n\n##[error]y\nz") ==
          "\n    | ::stop-commands::x\n    | \n    | #\\x23[error]y\n    | z");
    CHECK(barred_lines("").empty());
}

TEST_CASE("a part is taken off a text with the character that ends it") {
    std::string_view s = "a,,b;c";
    CHECK(taken_part(s, ",;") == "a");
    CHECK(taken_part(s, ",;").empty());
    CHECK(taken_part(s, ",;") == "b");
    CHECK(s == "c");
    CHECK(taken_part(s, ",;") == "c");
    CHECK(s.empty());
    CHECK(taken_part(s, ",;").empty());
}

TEST_CASE("a byte that is not well-formed UTF-8 becomes one replacement character") {
    CHECK(printable("\x80") == replaced);                  // a continuation without a start
    CHECK(printable("a\xFFz") == "a" + replaced + "z");    // never part of UTF-8
    CHECK(printable("\xC3(") == replaced + "(");           // the second byte is not a continuation
    CHECK(printable("\xE4\xBDz") == repeated(replaced, 2) + "z");
    CHECK(printable("\xF0\x9F\x98") == repeated(replaced, 3));  // cut short
    CHECK(printable("\xC3") == replaced);
}

TEST_CASE("overlong forms are not UTF-8") {
    CHECK(printable("\xC0\xAF") == repeated(replaced, 2));
    CHECK(printable("\xC1\xBF") == repeated(replaced, 2));
    CHECK(printable("\xE0\x80\xAF") == repeated(replaced, 3));
    CHECK(printable("\xE0\x9F\xBF") == repeated(replaced, 3));
    CHECK(printable("\xF0\x80\x80\xAF") == repeated(replaced, 4));
    CHECK(printable("\xF0\x8F\xBF\xBF") == repeated(replaced, 4));
}

TEST_CASE("surrogates and what lies beyond U+10FFFF are not UTF-8") {
    CHECK(printable("\xED\xA0\x80") == repeated(replaced, 3));  // U+D800
    CHECK(printable("\xED\xBF\xBF") == repeated(replaced, 3));  // U+DFFF
    CHECK(printable("\xF4\x90\x80\x80") == repeated(replaced, 4));
    CHECK(printable("\xF5\x80\x80\x80") == repeated(replaced, 4));
    CHECK(printable("\xF8\x88\x80\x80\x80") == repeated(replaced, 5));
}

TEST_CASE("a text longer than its limit is cut between characters and says so") {
    CHECK(printable("123456", 6) == "123456");
    CHECK(printable("1234567", 6) == "123456...");
    CHECK(printable("", 0) == "");
    CHECK(printable(std::string(400, 'x')) == std::string(300, 'x') + "...");
    const std::string cut = printable(repeated("\xE2\x82\xAC", 10), 4);  // euro signs
    CHECK(cut == repeated("\xE2\x82\xAC", 2) + "...");
}

TEST_CASE("what is printable once stays as it is") {
    generator random(11);
    for (int i = 0; i < 500; ++i) {
        std::string bytes(1 + random.below(12), '\0');
        for (char& c : bytes) c = static_cast<char>(random.below(256));
        const std::string once = printable(bytes);
        CHECK(printable(once) == once);
    }
}

// ---- quoting ------------------------------------------------------------------------------------

TEST_CASE("a quoted text is what picojson reads back") {
    std::string all;
    for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
    for (const std::string& s :
         {std::string(), std::string("say \"hi\""), std::string("C:\\temp\\"),
          std::string("a\nb\r\tc"), std::string("\0", 1), all,
          std::string("\xE4\xBD\xA0\xF0\x9F\x98\x80"), std::string("</script>")})
        CHECK(read_by_picojson(json_quoted(s)).get<std::string>() == s);
}

TEST_CASE("no control character stands bare in a quoted text") {
    CHECK(json_quoted(std::string_view("\0\x1F", 2)) == "\"\\u0000\\u001f\"");
    CHECK(json_quoted("a\"b\\") == "\"a\\\"b\\\\\"");
    CHECK(json_quoted("\n\t\r") == "\"\\n\\t\\r\"");
}

TEST_CASE("nothing in an escaped text can end an XML element or attribute") {
    CHECK(xml_escaped("p99(ttft) <= 300 ms") == "p99(ttft) &lt;= 300 ms");
    CHECK(xml_escaped("<a b='c' d=\"e\">&amp;") ==
          "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;amp;");
    CHECK(xml_escaped("]]>") == "]]&gt;");
    CHECK(xml_escaped("a\x01\x1B\nb") == R"(a\x01\x1b\nb)");
}

TEST_CASE("an escaped text is never cut, not even where every byte grows") {
    CHECK(xml_escaped(std::string(1000, 'x')) == std::string(1000, 'x'));
    CHECK(xml_escaped(std::string(1000, '\xFF')) == repeated(replaced, 1000));
    CHECK(xml_escaped(std::string(1000, '"')) == repeated("&quot;", 1000));
    CHECK(xml_escaped("") == "");
}

TEST_CASE("characters that XML 1.0 forbids are replaced although they are UTF-8") {
    CHECK(xml_escaped("\xEF\xBF\xBD") == replaced);
    CHECK(xml_escaped("\xEF\xBF\xBE") == repeated(replaced, 3));  // U+FFFE, byte by byte
    CHECK(xml_escaped("\xEF\xBF\xBF") == repeated(replaced, 3));  // U+FFFF
}

TEST_CASE("letters are compared without case, other characters as they are") {
    CHECK(same_ignoring_case("Content-Type", "content-TYPE"));
    CHECK(same_ignoring_case("", ""));
    CHECK_FALSE(same_ignoring_case("chunked", "chunke"));
    CHECK_FALSE(same_ignoring_case("[", "{"));  // 32 apart, as a letter from its other case
    CHECK_FALSE(same_ignoring_case("@", "`"));
}

TEST_CASE("trimming takes spaces and tabs from both ends only") {
    CHECK(trimmed(" \t a b\t ") == "a b");
    CHECK(trimmed(" \t ") == "");
    CHECK(trimmed("") == "");
    CHECK(trimmed("\na\r") == "\na\r");
}

// ---- values and limits --------------------------------------------------------------------------

TEST_CASE("a time has three significant digits and the unit that fits") {
    CHECK(time_text(0) == "0 ms");
    CHECK(time_text(12.3e-6) == "12.3 us");
    CHECK(time_text(0.0009982) == "998 us");
    CHECK(time_text(0.001) == "1 ms");
    CHECK(time_text(0.08731) == "87.3 ms");
    CHECK(time_text(0.3) == "300 ms");
    CHECK(time_text(0.9994) == "999 ms");
    CHECK(time_text(1.2351) == "1.24 s");
    CHECK(time_text(999) == "999 s");
    CHECK(time_text(12345.6) == "12346 s");
    CHECK(time_text(-0.0125) == "-12.5 ms");
    CHECK(time_text(1.5e180) == "1.5e+180 s");
}

TEST_CASE("no time is printed with an exponent, on either side of every change of unit") {
    for (const double at : {0.001, 1.0, 1000.0})
        for (int i = -2000; i <= 2000; ++i) {
            const std::string s = time_text(at * (1 + i * 1e-6));
            CAPTURE(s);
            CHECK(s.find('e') == std::string::npos);
        }
}

TEST_CASE("a time that is no number is told in words") {
    CHECK(time_text(infinity) == "infinite");
    CHECK(time_text(not_a_number) == "none");
}

TEST_CASE("a value is printed with the unit of its metric") {
    CHECK(value_text(metric_id::ttft, 0.0873) == "87.3 ms");
    CHECK(value_text(metric_id::e2e, infinity) == "infinite");
    CHECK(value_text(metric_id::startup_time, 12.5) == "12.5 s");
    CHECK(value_text(metric_id::decode_speed, 41.239) == "41.2 tok/s");
    CHECK(value_text(metric_id::output_throughput, 12345.6) == "12346 tok/s");
    CHECK(value_text(metric_id::request_throughput, 8.004) == "8 req/s");
    CHECK(value_text(metric_id::error_rate, 0.0123456) == "1.235 %");
    CHECK(value_text(metric_id::goodput, 0.905) == "90.5 %");
    CHECK(value_text(metric_id::server_metric, 3.5) == "3.5");
    CHECK(value_text(metric_id::energy_per_token, 0.6123) == "612 mJ");
    CHECK(value_text(metric_id::energy_per_token, 12.34) == "12.3 J");
    CHECK(value_text(metric_id::cost_per_million_tokens, 0.31251) == "0.313 USD");
}

TEST_CASE("a value that was not measured is none for every metric") {
    for (int m = 0; m <= static_cast<int>(metric_id::cost_per_million_tokens); ++m)
        CHECK(value_text(static_cast<metric_id>(m), not_a_number) == "none");
}

TEST_CASE("a limit is printed as its author wrote it") {
    CHECK(limit_text(metric_id::ttft, si(300_ms)) == "300 ms");
    CHECK(limit_text(metric_id::tpot, si(12.345_ms)) == "12.345 ms");
    CHECK(limit_text(metric_id::itl, si(0.05_ms)) == "0.05 ms");
    CHECK(limit_text(metric_id::e2e, si(1_s)) == "1 s");
    CHECK(limit_text(metric_id::e2e, si(2.5_s)) == "2.5 s");
    CHECK(limit_text(metric_id::startup_time, si(2_min)) == "120 s");
    CHECK(limit_text(metric_id::output_throughput, si(400_tps)) == "400 tok/s");
    CHECK(limit_text(metric_id::decode_speed, si(12.5_tps)) == "12.5 tok/s");
    CHECK(limit_text(metric_id::request_throughput, si(7.5_rps)) == "7.5 req/s");
    CHECK(limit_text(metric_id::error_rate, si(1_pct)) == "1 %");
    CHECK(limit_text(metric_id::goodput, si(99.5_pct)) == "99.5 %");
    CHECK(limit_text(metric_id::server_metric, 10) == "10");
    CHECK(limit_text(metric_id::energy_per_token, si(0.6_J)) == "0.6 J");
    CHECK(limit_text(metric_id::cost_per_million_tokens, si(0.4_usd)) == "0.4 USD");
    CHECK(limit_text(metric_id::preemptions, 0) == "0");
}

TEST_CASE("every metric has its own name and at most one family") {
    vector<std::string> names;
    for (int i = 0; i <= static_cast<int>(metric_id::cost_per_million_tokens); ++i) {
        const auto m = static_cast<metric_id>(i);
        names.push_back(metric_name(m));
        CHECK(is_request_fraction(m) + is_speed(m) + is_throughput(m) <= 1);
    }
    CHECK(names.front() == "ttft");
    CHECK(names.back() == "cost_per_million_tokens");
    std::sort(names.begin(), names.end());
    CHECK(names.front() != "");
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
    CHECK(is_request_fraction(metric_id::goodput));
    CHECK(is_speed(metric_id::prefill_speed));
    CHECK(is_throughput(metric_id::request_throughput));
}
