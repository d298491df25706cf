// When a thread did not run, as it can tell by the clock alone.
#include "core/measured/alertness.hpp"

#include <doctest/doctest.h>

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
