// When a thread did not run, as it can tell by the clock alone.
#include "core/measured/alertness.hpp"
#include "core/base/random.hpp"
#include "core/base/vector.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

using namespace llmbench::detail;

namespace {

constexpr long long ms = 1'000'000;

/// A thread that began at 1 s.
struct thread_of_time {
    alertness alert{};
    long long now = 1000 * ms;
    thread_of_time() { alert.begin(now); }
    /// It sleeps until then, and asked to be woken at `due`.
    void sleep(long long until, long long due, long long full_turns = 0) {
        alert.on_sleep(now);
        now = until;
        alert.on_wake(now, due, full_turns);
    }
    void work(long long until) { alert.on_step(now = until); }
};

}  // namespace

TEST_CASE("a thread that comes when it asked to lost nothing") {
    thread_of_time t;
    for (int i = 1; i < 100; ++i) t.sleep((1000 + 5 * i) * ms, (1000 + 5 * i) * ms);
    t.sleep(1496 * ms, 1500 * ms);  // woken by a socket
    t.sleep(1501 * ms, 1500 * ms);  // a millisecond is every machine's
    CHECK(t.alert.lost_fraction() == 0);
    CHECK_FALSE(t.alert.is_behind());
}

TEST_CASE("a thread that wakes too late may have lost all since it fell asleep") {
    thread_of_time t;
    t.sleep(1100 * ms, 1005 * ms);
    CHECK(t.alert.is_behind());
    CHECK(t.alert.lost_since(1000 * ms) == 100 * ms);
    CHECK(t.alert.lost_since(1040 * ms) == 60 * ms);  // no more than the time since then
    CHECK(t.alert.lost_since(1100 * ms) == 0);
    CHECK(t.alert.lost_fraction() == 1);
    t.sleep(1105 * ms, 1105 * ms);
    CHECK_FALSE(t.alert.is_behind());
    CHECK(t.alert.lost_since(0) == 100 * ms);
    t.sleep(1200 * ms, 1200 * ms);
    CHECK(t.alert.lost_fraction() == doctest::Approx(0.5));
}

TEST_CASE("it is not late for a time that had passed when it fell asleep") {
    thread_of_time t;
    t.sleep(1000 * ms + 1000, 900 * ms);
    CHECK(t.alert.lost_fraction() == 0);
}

TEST_CASE("a thread that is stopped in the middle of its work lost that, and is behind for a turn") {
    thread_of_time t;
    t.sleep(1005 * ms, 1005 * ms);
    t.work(1085 * ms);
    CHECK(t.alert.lost_since(1000 * ms) == 80 * ms);
    CHECK(t.alert.is_behind());
    t.sleep(1086 * ms, 1090 * ms);
    CHECK(t.alert.is_behind());  // what it is told of now came in meanwhile
    t.sleep(1087 * ms, 1090 * ms);
    CHECK_FALSE(t.alert.is_behind());
}

TEST_CASE("more sockets than one wait tells of are all waited for") {
    thread_of_time t;
    t.sleep(1100 * ms, 1005 * ms, 3);
    for (int i = 1; i <= 3; ++i) {
        CHECK(t.alert.is_behind());
        t.sleep((1100 + i) * ms, (1105 + i) * ms, 3);
    }
    CHECK(t.alert.is_behind());
    t.sleep(1105 * ms, 1110 * ms, 3);
    CHECK_FALSE(t.alert.is_behind());
}

TEST_CASE("a turn that is busy for long is lost to its sockets, and counted once") {
    thread_of_time t;
    t.sleep(1005 * ms, 1005 * ms);
    for (int i = 1; i <= 20; ++i) t.work((1005 + i) * ms);  // in small steps
    t.sleep(1030 * ms, 1030 * ms);
    CHECK(t.alert.lost_since(1000 * ms) == 20 * ms);
    t.work(1050 * ms);  // in one step
    t.sleep(1055 * ms, 1055 * ms);
    CHECK(t.alert.lost_since(1000 * ms) == 40 * ms);
}

TEST_CASE("what was lost before the load is nobody's, and of many losses the last ones are known") {
    alertness a;
    a.on_step(5000 * ms);
    a.on_sleep(9000 * ms);
    CHECK(a.lost_fraction() == 0);
    thread_of_time t;
    for (int i = 1; i <= 1000; ++i) t.work((1000 + 2 * i) * ms);
    CHECK(t.alert.lost_since(1000 * ms) == 512 * 2 * ms);
    CHECK(t.alert.lost_fraction() == 1);
}

TEST_CASE("a thread looks at its limits at the next point, or at the one after it if that shows nothing") {
    CHECK(point_to_look_at(1100, 100, 1010, 0) == 1100);     // anything may be
    CHECK(point_to_look_at(1100, 100, 1010, 1099) == 1100);
    CHECK(point_to_look_at(1100, 100, 1010, 1100) == 1100);
    CHECK(point_to_look_at(1100, 100, 1010, 1101) == 1200);
    CHECK(point_to_look_at(1100, 100, 1010, 9999) == 1200);  // never two of them
    CHECK(point_to_look_at(1100, 100, 1100, 9999) == 1100);  // its time has come while the thread was busy
    CHECK(point_to_look_at(1100, 100, 1350, 9999) == 1100);
}

TEST_CASE("a limit is noticed at the same point of the grid where points are passed over") {
    constexpr long long step = 100 * ms;
    generator random(7);
    long long looks[2] = {};
    for (int load = 0; load < 2000; ++load) {
        const auto drawn = [&](long long most) { return 1 + static_cast<long long>(random.below(static_cast<std::uint64_t>(most))); };
        const long long limit = 2000 * ms + drawn(1000 * ms), from = drawn(step), pace = drawn(load % 3 == 0 ? 2000 * ms : 90 * ms);
        vector<long long> events;  // each begins the limit anew
        for (long long at = 0; events.size() < 60;) events.push_back(at += drawn(2 * pace));
        const auto noticed_at = [&](bool passes_over) {
            long long now = 0, since = 0, next = from, at = 0;
            for (std::size_t i = 0;;) {
                while (next <= now && next < at) next += step;
                at = passes_over ? point_to_look_at(next, step, now, since + limit) : next;
                const bool is_event = i < events.size() && events[i] <= at;
                now = is_event ? events[i] : at;
                if (is_event) since = events[i++];
                if (now < at) continue;
                ++looks[passes_over];
                while (next <= now) next += step;
                if (now - since > limit) return now;
            }
        };
        CHECK(noticed_at(true) == noticed_at(false));
    }
    CHECK(looks[true] < looks[false] * 3 / 5);
}
