// What a file of TOML says, and the sentence with its line that a file with a mistake gets.
#include "llmbench.hpp"
#include "program/config/toml.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

using namespace llmbench_program;

namespace {

toml_value read(const std::string& content) { return toml_reader(content, "g.toml").read(); }
std::string refusal_of(const std::string& content) {
    try {
        read(content);
    } catch (const std::invalid_argument& e) { return e.what(); }
    return "";
}
/// The text at a path of keys; a number is the place in a list.
std::string at(const toml_value& from, std::initializer_list<const char*> path) {
    const toml_value* v = &from;
    for (const char* key : path) {
        if (v->is == toml_value::kind::list) v = &v->items[static_cast<std::size_t>(*key - '0')];
        else v = v->find(key);
        REQUIRE(v != nullptr);
    }
    return v->text;
}

}  // namespace

TEST_CASE("tables, lists and values have their lines") {
    const toml_value all = read("# gates\n"
                                "url = \"http://127.0.0.1:8000\"  # of all\r\n"
                                "[chat]\n"
                                "rate = 8.5\n"
                                "requests = 1_000\n"
                                "insecure = true\n"
                                "slo = [  # two\n"
                                "  'p90(ttft) <= 300 ms',\n"
                                "\n"
                                "  \"mean(tpot) <= 25 ms\",\n"
                                "]\n"
                                "[[chat.part]]\n"
                                "name = 'a'\n"
                                "[[chat.part]]\n"
                                "name = 'b'\n"
                                "[\"two words\".'x.y']\n"
                                "a.b = { c = 1, d.e = \"f\" }\n");
    CHECK(at(all, {"url"}) == "http://127.0.0.1:8000");
    CHECK(at(all, {"chat", "rate"}) == "8.5");
    CHECK(at(all, {"chat", "requests"}) == "1000");
    CHECK(all.find("chat")->find("insecure")->is == toml_value::kind::boolean);
    CHECK(at(all, {"chat", "slo", "1"}) == "mean(tpot) <= 25 ms");
    CHECK(all.find("chat")->find("slo")->line == 7);
    CHECK(all.find("chat")->find("slo")->items[1].line == 10);
    CHECK(at(all, {"chat", "part", "1", "name"}) == "b");
    CHECK(all.find("chat")->find("part")->items[1].line == 14);
    CHECK(at(all, {"two words", "x.y", "a", "b", "d", "e"}) == "f");
    CHECK(read("").items.empty());
    CHECK(read("\xEF\xBB\xBF# only a comment").items.empty());
}

TEST_CASE("a mistake is refused with file, line and what is expected") {
    CHECK(refusal_of("[chat]\nslo = p90(ttft) <= 300 ms\n") ==
          "g.toml:2: \"p90(ttft)\" is no value: a text needs quotes, a number is decimal, and true "
          "and false have small letters");
    CHECK(refusal_of("a = True\n").find("g.toml:1: \"True\" is no value: a text needs quotes") == 0);
    CHECK(refusal_of("[chat]\na = 1\n\n[chat]\n") == "g.toml:4: [chat] is there twice");
    CHECK(refusal_of("a = 1\n\"a\" = 2\n") == "g.toml:2: \"a\" is there twice");
    CHECK(refusal_of("users 8\n") == "g.toml:1: \"users 8\" has no value: a line is key = value");
    CHECK(refusal_of("a = 1 b = 2\n").find("g.toml:1: \"a\": more stands behind the end") == 0);
    CHECK(refusal_of("a = [1,\n2\n").find("g.toml:2: ") == 0);
    CHECK(refusal_of("a = \"x\n\"\n").find("g.toml:1: \"a\" is no TOML: ") == 0);
    CHECK(refusal_of("\n\nd = 2026-12-31\n").find("g.toml:3: a date, a time, inf and nan are") == 0);
    CHECK(refusal_of("a = 'x'\n[\xC3\xA9]\n").find("g.toml:2: \"\xC3\xA9\" stands outside of quotes") == 0);
    for (const char* content :
         {"a = ", "a = [1 2]", "a = {b = 1", "[a", "= 1", "a = \"\\q\"", "a = 1__0", "a = .5", "a = inf",
          "a.b = 1\na = 2", "a = []\n[[a]]", "a = {b = 1, b = 2}", "a = \"\x01\"", "\x80 = 1",
          "a = '\xED\xA0\x80'", "# \x01", "[\xC3\xA9]", "a.b = 1\n[a]"}) {
        CAPTURE(content);
        CHECK(refusal_of(content).find("g.toml:") == 0);
    }
    CHECK(refusal_of("a = 1\n# gr\xFC\xDF\n").find("g.toml:2: ") == 0);
    CHECK(refusal_of("a = 1\n\nb = '\x1B[31m'\n").find("g.toml:3: ") == 0);
    CHECK(refusal_of("a = 1\n\nb = '\x1B[31m'\n").find('\x1B') == std::string::npos);
    CHECK(refusal_of(std::string(1 << 20, '#') + "\n").find("at most 1048576 bytes") !=
          std::string::npos);
}

TEST_CASE("what is nested too deep is refused with its line, however deep it is") {
    const auto times = [](int n, const std::string& s) {
        std::string all;
        for (int i = 0; i < n; ++i) all += s;
        return all;
    };
    for (const int n : {40, 1000, 100000}) {
        CAPTURE(n);
        for (const std::string& open : {times(n, "["), times(n, "{a="), times(n, "[{a=")})
            CHECK(refusal_of("x = 1\na = " + open) == "g.toml:2: values are nested deeper than 20");
        const std::string key = "a" + times(n, ".a");
        for (const std::string& content :
             {key + " = 1", "[" + key + "]", "[[" + key + "]]", "a = {" + key + " = 1}",
              "a = {b = \"\"\"x\"\"\"\", " + key + " = 1}", "a = ['#', {" + key + " = 1}]",
              "a = '' # '\n" + key + " = 1", "a = \"\\\"\"\n" + key + " = 1",
              "a" + times(n, ". \"a\"") + " = 1"}) {
            CAPTURE(content.substr(0, 60));
            const std::string why = refusal_of("\n" + content);
            CHECK(why.find(": a key has more than 32 parts") != std::string::npos);
            CHECK(why.find("g.toml:") == 0);
        }
    }
    const std::string dots = "prompt = '''\n" + times(100, ".") + "\n''' # " + times(100, ".") + "\n";
    CHECK(at(read(dots), {"prompt"}) == times(100, ".") + "\n");
    CHECK(at(read("a = {b = {c = [[1]]}}\n"), {"a", "b", "c", "0", "0"}) == "1");
}

TEST_CASE("a table between braces may have several lines, and keeps them") {
    const toml_value all = read("steps = [\n  {\n    post = '/a',\n    body = '{}',\n  },\n]\nlast = 1\n");
    CHECK(at(all, {"steps", "0", "body"}) == "{}");
    CHECK(all.find("steps")->items[0].find("body")->line == 4);
    CHECK_FALSE(all.find("steps")->is_of_headers);
    CHECK(all.find("last")->line == 7);
}

TEST_CASE("numbers are decimal texts, and tables keep the order of the file") {
    const toml_value all = read("z = 0.25\ny = 1e3\nx = -7\nw = 9007199254740993\nv = 0x10\n");
    CHECK(all.keys == vector<std::string>{"z", "y", "x", "w", "v"});
    CHECK(at(all, {"z"}) == "0.25");
    CHECK(at(all, {"y"}) == "1000");
    CHECK(at(all, {"x"}) == "-7");
    CHECK(at(all, {"w"}) == "9007199254740993");
    CHECK(at(all, {"v"}) == "16");
}
