// Times that are not before one another.
#include "core/base/time_interval.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <utility>

using namespace llmbench::detail;

TEST_CASE("an interval of time holds its beginning and not its end") {
    const time_interval t = time_interval::between(1'000'000'000, 3'500'000'000);
    CHECK(t.seconds() == 2.5);
    CHECK_FALSE(t.is_empty());
    CHECK(t.holds(1'000'000'000));
    CHECK(t.holds(3'499'999'999));
    CHECK_FALSE(t.holds(3'500'000'000));
    CHECK_FALSE(t.holds(999'999'999));
}

TEST_CASE("an interval cannot be inverted: nothing lies between two times in the wrong order") {
    constexpr long long least = std::numeric_limits<long long>::min(),
                        most = std::numeric_limits<long long>::max();
    for (const auto& [from, to] : {std::pair{5ll, 0ll}, {5ll, 5ll}, {most, least}, {0ll, -1ll}}) {
        const time_interval t = time_interval::between(from, to);
        CHECK(t.is_empty());
        CHECK(t.from_ns() == from);
        CHECK(t.to_ns() == from);
        CHECK(t.seconds() == 0);
        CHECK_FALSE(t.holds(from));
    }
    CHECK(time_interval().is_empty());
    CHECK(time_interval::between(least, most).seconds() == doctest::Approx(18446744073.709552));
}

TEST_CASE("what two intervals share begins with the later one, and may be nothing") {
    const time_interval a = time_interval::between(0, 10), b = time_interval::between(4, 20);
    CHECK(a.shared_with(b) == time_interval::between(4, 10));
    CHECK(b.shared_with(a) == time_interval::between(4, 10));
    CHECK(a.shared_with(time_interval::between(12, 20)) == time_interval::between(12, 12));
}
