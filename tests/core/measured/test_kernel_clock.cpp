#include "core/measured/alertness.hpp"

#include <doctest/doctest.h>

using namespace llmbench::detail;

namespace {

/// Two clocks of a machine, of which one may be set.
struct machine {
    long long now = 50'000'000'000, ahead = 1'700'000'000'000'000'000;
    kernel_clock clock{};
    long long read_ns = 0, came_ns = 0;  // of the one socket
    /// What came then is read now.
    long long read(long long arrived_ns, long long arrived_ahead) {
        clock.on_readings(now, now + 20 + ahead, now + 40);
        came_ns = clock.time_of(arrived_ns + arrived_ahead, read_ns, came_ns, now);
        read_ns = now;
        return came_ns;
    }
    long long read(long long arrived_ns) { return read(arrived_ns, ahead); }
};

}  // namespace

TEST_CASE("what the kernel stamped by the time of day has its place on the other clock") {
    machine m;
    CHECK(m.read(m.now - 30'000) == m.now - 30'000);
    m.now += 200'000'000;  // stopped, and what came meanwhile is as old as it is
    CHECK(m.read(m.now - 70'000'000) == m.now - 70'000'000);
    CHECK(m.read(m.now + 2000) == m.now);  // never after it was read
    m.now += 10'000;
    CHECK(m.clock.time_of(0, m.read_ns, m.came_ns, m.now) == 0);  // no stamp
}

TEST_CASE("a time of day that is slewed moves no stamp by 5 us, however long it is slewed") {
    machine m;
    for (int i = 0; i < 2000; ++i) {
        m.now += 5'000'000;
        m.ahead += 2500;  // 500 us a second, the most that adjtime() has ever done
        const long long came = m.read(m.now - 40'000);
        CHECK(came <= m.now - 40'000 + kernel_clock::noticed_ns);
        CHECK(came >= m.now - 40'000 - kernel_clock::noticed_ns);
    }
}

TEST_CASE("what may have come before the time of day was set has no stamp of the kernel") {
    for (const long long step : {-3'600'000'000'000ll, -200'000ll, 40'000ll, 3'600'000'000'000ll}) {
        CAPTURE(step);
        machine m;
        m.read(m.now - 30'000);
        const long long before = m.ahead;
        m.now += 20'000'000;
        m.ahead += step;
        CHECK(m.read(m.now - 10'000'000, before) == 0);
        m.now += 20'000'000;
        CHECK(m.read(m.now - 30'000) == m.now - 30'000);
        // A socket that nobody has read since.
        CHECK(m.clock.time_of(m.now - 35'000'000 + before, m.now - 50'000'000, 0, m.now) == 0);
    }
}

TEST_CASE("a thread that was held up between two readings of the clocks learns nothing from them") {
    machine m;
    m.read(m.now - 30'000);
    m.now += 1'000'000;
    // Read late in a bracket of 10 ms: not far off its middle, and not believed.
    m.clock.on_readings(m.now, m.now + 9'000'000 + m.ahead, m.now + 10'000'000);
    m.now += 10'000'000;
    CHECK(m.clock.time_of(m.now - 500 + m.ahead, m.read_ns, m.came_ns, m.now) == m.now - 500);
}

TEST_CASE("a stamp from before a read that left nothing is of what waited for a lost segment") {
    machine m;
    const long long came = m.read(m.now - 10'000);
    m.now += 50'000'000;
    CHECK(m.read(came - 500'000) == came);    // no earlier than what was read before it
    CHECK(m.read(came - 1'500'000) == 0);  // readable later, nobody knows when
    CHECK(m.clock.time_of(m.now + 30'000'000 + m.ahead, m.read_ns, came, m.now) == 0);
}

TEST_CASE("a kernel that stamps by another clock is not believed, wherever its stamps lie") {
    machine m;
    for (int i = 0; i < 50; ++i) {
        CHECK(m.read(m.now - 200'000'000) == 0);  // the time of day is 0.2 s ahead of the stamps
        m.now += 500'000'000;
    }
    machine constant;
    const long long stamp = constant.now - 40'000'000;
    for (int i = 0; i < 50; ++i) {
        CHECK(constant.read(stamp) == 0);
        constant.now += 10'000'000;
    }
    // One punctual read shows that the clocks agree, until the time of day is set.
    CHECK(m.read(m.now - 30'000) == m.now - 30'000);
    m.now += 500'000'000;
    CHECK(m.read(m.now - 200'000'000) == m.now - 200'000'000);
    m.ahead += 3'600'000'000'000;
    m.now += 10'000'000;
    CHECK(m.read(m.now - 5'000'000) == 0);
    for (int i = 0; i < 9; ++i) {
        m.now += 100'000'000;
        CHECK(m.read(m.now - 50'000'000) == 0);
    }
}
