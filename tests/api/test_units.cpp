// Text and lists, units.
#include "llmbench.hpp"
#include "core/base/text.hpp"

#include <chrono>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;

// ---- text ---------------------------------------------------------------------------------------

TEST_CASE("a text takes C strings, std::string and std::string_view, and gives them back") {
    const text from_literal = "ttft";
    const text from_string = std::string("ttft");
    const text from_view = std::string_view("ttft of a request").substr(0, 4);
    CHECK(from_literal.size() == 4);
    CHECK(from_string == from_literal);
    CHECK(from_view == from_literal);
    CHECK(from_view.c_str()[4] == '\0');

    const std::string string_back = from_literal;
    const std::string_view view_back = from_literal;
    CHECK(string_back == "ttft");
    CHECK(view_back == "ttft");
}

TEST_CASE("an empty text is a valid empty C string") {
    const text none;
    const text from_null = static_cast<const char*>(nullptr);
    for (const text& t : {none, from_null, text(""), text(std::string())}) {
        CHECK(t.empty());
        CHECK(t.size() == 0);
        CHECK(std::string_view(t.c_str()).empty());
        CHECK(t == none);
    }
    CHECK_FALSE(text("x") == none);
}

TEST_CASE("copies of a text are independent, and moving leaves an empty one") {
    text original = "one";
    text copy = original;
    original = "two";
    CHECK(copy == text("one"));
    CHECK(original == text("two"));

    const text moved = std::move(copy);
    CHECK(moved == text("one"));
    CHECK(copy.empty());  // NOLINT(bugprone-use-after-move): that is the question

    text assigned = "old";
    assigned = moved;
    CHECK(assigned == text("one"));
    CHECK(moved.data() != assigned.data());
    text& itself = assigned;
    assigned = itself;
    CHECK(assigned == text("one"));
    assigned = std::move(itself);
    CHECK(assigned == text("one"));
}

TEST_CASE("a text prints itself to streams and to doctest") {
    std::ostringstream out;
    out << text("p99") << '|' << text();
    CHECK(out.str() == "p99|");
    CHECK(doctest::toString(text("p99")) == "p99");
}

// ---- list ---------------------------------------------------------------------------------------

TEST_CASE("a list grows in order and can be walked and indexed") {
    list<int> numbers;
    CHECK(numbers.empty());
    CHECK(numbers.begin() == numbers.end());
    for (int i = 0; i < 100; ++i) numbers.push_back(i * i);
    REQUIRE(numbers.size() == 100);
    CHECK(numbers.front() == 0);
    CHECK(numbers[7] == 49);
    CHECK(numbers.back() == 99 * 99);
    int next = 0;
    for (const int n : numbers) {
        CHECK(n == next * next);
        ++next;
    }
    CHECK(next == 100);
}

TEST_CASE("a list is made from braces and from std containers") {
    const list<int> braces = {3, 1, 2};
    const list<int> vector = std::vector<int>{3, 1, 2};
    const list<text> texts = std::vector<std::string>{"a", "b"};
    REQUIRE(braces.size() == 3);
    REQUIRE(vector.size() == 3);
    for (size_type i = 0; i < 3; ++i) CHECK(vector[i] == braces[i]);
    REQUIRE(texts.size() == 2);
    CHECK(texts[1] == text("b"));
}

TEST_CASE("copies of a list are independent, and moving leaves an empty one") {
    list<text> original = {"a", "b"};
    list<text> copy = original;
    original.push_back("c");
    CHECK(copy.size() == 2);
    CHECK(original.size() == 3);
    CHECK(original.front() == text("a"));

    copy = original;
    CHECK(copy.size() == 3);
    CHECK(copy.data() != original.data());
    list<text>& itself = copy;
    copy = itself;
    CHECK(copy.back() == text("c"));

    const list<text> moved = std::move(copy);
    CHECK(moved.size() == 3);
    CHECK(copy.empty());  // NOLINT(bugprone-use-after-move): that is the question
}

TEST_CASE("a list can be given a copy of its own element, whatever its size") {
    list<text> l = {"first, long enough for no string to be stored in place"};
    const text first = l[0];
    for (int i = 0; i < 20; ++i) l.push_back(l[0]);
    REQUIRE(l.size() == 21);
    for (const text& t : l) CHECK(t == first);
}

// ---- box ----------------------------------------------------------------------------------------

TEST_CASE("a box gives back its value only as the type it was made with") {
    const box nothing;
    CHECK(nothing.empty());
    CHECK(nothing.get<int>() == nullptr);

    const box number = box::make(42);
    REQUIRE(number.get<int>() != nullptr);
    CHECK(*number.get<int>() == 42);
    CHECK(number.get<long>() == nullptr);
    CHECK(number.get<text>() == nullptr);
    CHECK_FALSE(number.empty());
}

namespace {
/// Counts how many of its kind are alive.
struct one_of_its_kind {
    int* alive;
    explicit one_of_its_kind(int& n) : alive(&n) { ++n; }
    one_of_its_kind(const one_of_its_kind& o) : alive(o.alive) { ++*alive; }
    one_of_its_kind& operator=(const one_of_its_kind&) = delete;
    ~one_of_its_kind() { --*alive; }
};
}  // namespace

TEST_CASE("copies of a box share one value, which ends with the last of them") {
    int alive = 0;
    {
        box a = box::make(one_of_its_kind(alive));
        CHECK(alive == 1);
        box b = a;
        CHECK(alive == 1);
        CHECK(b.get<one_of_its_kind>() == a.get<one_of_its_kind>());
        a = box();
        CHECK(a.empty());
        CHECK(alive == 1);
        const box c = std::move(b);
        CHECK(b.empty());  // NOLINT(bugprone-use-after-move): that is the question
        CHECK(alive == 1);
        box d = box::make(one_of_its_kind(alive));
        CHECK(alive == 2);
        d = c;
        CHECK(alive == 1);
        const box& itself = d;
        d = itself;
        CHECK(alive == 1);
        CHECK(d.get<one_of_its_kind>() == c.get<one_of_its_kind>());
    }
    CHECK(alive == 0);
}

// ---- whole and maybe ----------------------------------------------------------------------------

TEST_CASE("a whole number takes every integer type and keeps its value") {
    const auto value = [](whole n) { return static_cast<long long>(n); };
    CHECK(value({}) == 0);
    CHECK(value(static_cast<short>(-3)) == -3);
    CHECK(value(300u) == 300);
    CHECK(value(std::size_t{7}) == 7);
    CHECK(value(std::numeric_limits<long long>::max()) == std::numeric_limits<long long>::max());
    CHECK(value(std::numeric_limits<long long>::min()) == std::numeric_limits<long long>::min());
}

TEST_CASE("a whole number takes neither fractions nor lengths of time") {
    CHECK(std::is_convertible_v<int, whole>);
    CHECK_FALSE(std::is_convertible_v<double, whole>);
    CHECK_FALSE(std::is_convertible_v<time_span, whole>);
    CHECK_FALSE(std::is_convertible_v<std::chrono::seconds, whole>);
}

// ---- units --------------------------------------------------------------------------------------

TEST_CASE("literals of time hold seconds, whole and fractional") {
    CHECK((300_ms).seconds() == 0.3);
    CHECK((2.5_ms).seconds() == 0.0025);
    CHECK((10_s).seconds() == 10);
    CHECK((0.25_s).seconds() == 0.25);
    CHECK((3_min).seconds() == 180);
    CHECK((1.5_min).seconds() == 90);
    CHECK(time_span().seconds() == 0);
    CHECK(time_span::from_seconds(-1.5).seconds() == -1.5);
}

TEST_CASE("literals of rates, shares and tokens hold their SI value") {
    CHECK((8_rps).per_second == 8);
    CHECK((0.5_rps).per_second == 0.5);
    CHECK((400_tps).per_second == 400);
    CHECK((12.5_tps).per_second == 12.5);
    CHECK((90_pct).value == 0.9);
    CHECK((99.5_pct).value == 0.995);
    CHECK((100_pct).value == 1);
    CHECK((512_tokens).tokens == 512);
    CHECK((1.5_tokens).tokens == 1.5);
}

TEST_CASE("any std::chrono duration is a length of time") {
    using namespace std::chrono;
    const auto seconds_of = [](time_span t) { return t.seconds(); };
    CHECK(seconds_of(300ms) == (300_ms).seconds());
    CHECK(seconds_of(nanoseconds(1500)) == 1.5e-6);
    CHECK(seconds_of(2h) == 7200);
    CHECK(seconds_of(-3s) == -3);
    CHECK(seconds_of(duration<double>(0.125)) == 0.125);
    CHECK(seconds_of(duration<float, std::ratio<1, 4>>(3)) == 0.75);
    CHECK(seconds_of(duration<int, std::ratio<86400>>(1)) == 86400);
}

TEST_CASE("plain numbers do not turn into units by themselves") {
    CHECK_FALSE(std::is_convertible_v<int, time_span>);
    CHECK_FALSE(std::is_convertible_v<double, request_rate>);
    CHECK_FALSE(std::is_convertible_v<double, token_rate>);
    CHECK_FALSE(std::is_convertible_v<double, fraction>);
    CHECK_FALSE(std::is_convertible_v<double, token_count>);
    CHECK_FALSE(std::is_convertible_v<request_rate, token_rate>);
    CHECK(std::is_convertible_v<double, plain_number>);  // of gauges, which have no unit
}
