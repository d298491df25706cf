// JSON without a tree: the values that picojson reads, and what neither reads.
#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "support/effort.hpp"
#include "support/json_views.hpp"

#include <random>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

bool reads_as_picojson(const std::string& text) {
    json_reader reader;
    const json_view* v = reader.read(text);
    picojson::value tree;
    const bool is_json = json_views::picojson_reads(text, tree);
    return is_json == (v != nullptr) && (!v || (json_views::same_value(*v, tree) && tree_of(*v) == tree));
}
const vector<std::string> texts = {
    "null", "true", "false", "nul", "nullx", "0", "-0", "-", "007", "1.", ".5", "+1", "1e5", "1E+5", "1e", "1e999", "-1e999",
    "1e-999", "5e-324", "123456789012345678", "9007199254740993", "0.1", std::string(400, '1'), "1" + std::string(300, '0') + ".5",
    "\"\"", "\"a\"", "\"", "\"a", "\"\\\"", "\"\\n\\t\\r\\b\\f\\/\\\\\\\"\"", "\"\\x\"", "\"\\u0041\"", "\"\\u00e9\\u4F60\"", "\"\\u12\"",
    "\"\\u12g4\"", "\"\\ud83d\\ude00\"", "\"\\ud83d\"", "\"\\ude00\"", "\"\\ud83d\\u0041\"", "\"\\ud83dx\"", "\"\\ud83d\\u00\"",
    "\"\\u0000\"", std::string("\"a\0b\"", 5), "\"\x1f\"", "\"\x7f\x80\xff\"", "\"\\\\ud83d\"", "[]", "{}", "[", "]", "{", "}", "[}",
    "[1,2]", "[1,]", "[,1]", "[1 2]", " [ 1 , 2 ] ", "[[],[[]],{}]", R"({"a":1,"b":[{"c":null}]})", R"({"a":1,"a":2})",
    R"({"a":1,})", R"({a:1})", R"({"a"})", R"({"a":})", R"({"":{}})", R"({"\u0061":1,"a":"x"})", "{} {}", "{}x", "", " ", "\xEF\xBB\xBF{}",
    std::string(100, '[') + std::string(100, ']'), std::string(101, '[') + std::string(101, ']'), std::string(100000, '['), "'a'", "//", "NaN"};

}  // namespace

TEST_CASE("a JSON text is read as picojson reads it, however it is spoilt") {
    for (const std::string& text : texts) {
        CAPTURE(text);
        CHECK(reads_as_picojson(text));
    }
    std::mt19937_64 random(20261127);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    for (int i = 0; i < effort(20000); ++i) {
        std::string s = "[";
        for (std::size_t k = below(4) + 1; k > 0; --k) s += (s.size() > 1 ? "," : "") + texts[below(texts.size() - 6)];
        s += "]";
        for (std::size_t k = below(3); k > 0; --k) {
            const std::size_t at = below(s.size());
            if (below(2)) s.erase(at, below(3) + 1);
            else s.insert(at, 1, "\"\\u{}[],:0-e \n"[below(15)]);
            if (s.empty()) s = "1";
        }
        if (!reads_as_picojson(s)) FAIL_CHECK("differs: " << printable(s, 500));
    }
}

TEST_CASE("values know their place, and of equal names the last one counts") {
    const std::string text = R"( {"a": [1, "x\n"], "b": {"c": -2.5}, "a": true} )";
    json_reader reader;
    const json_view* v = reader.read(text);
    REQUIRE(v);
    CHECK(v->values == 7);
    CHECK(is_true(*member(*v, "a")));
    CHECK(number_in(*value_at(*v, "b.c")) == -2.5);
    CHECK(member(*v, "c") == nullptr);
    CHECK(members_of(*v).size() == 2);
    const json_view& list = *items_of(*v).begin();
    CHECK(items_of(list).size() == 2);
    CHECK(list.text == R"([1, "x\n"])");
    CHECK(item_of(list, 1)->text == "x\n");
    CHECK(text.substr(item_of(list, 1)->from, 5) == R"("x\n")");
    CHECK(item_of(list, 2) == nullptr);
}

TEST_CASE("a long text leaves no memory behind") {
    json_reader reader;
    std::string longest = "[0";
    for (int i = 0; i < 100000; ++i) longest += ",\"\\n\"";
    REQUIRE(reader.read(longest + "]"));
    REQUIRE(reader.read("[1]"));
    CHECK(reader.values().capacity() < 100);
}
