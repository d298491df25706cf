// What a thread of the load knows of the times at which it did not run, by a clock that is read out.
#include "llmbench.hpp"
#include "core/measured/alertness.hpp"

using namespace llmbench::detail;

namespace {

constexpr long long ms = 1000000;

/// A thread that does what it is told, at the times that it is told.
struct scripted {
    alertness a{};
    long long now = 1000 * ms;
    long long waited = 0;  // for a core, as the system counts

    scripted() {
        a.begin(now);
        a.on_tick(now, waited);
    }
    void sleep(long long for_ns, long long due_ns, bool read_all = true) {
        a.on_sleep(now);
        now += for_ns;
        a.on_wake(now, due_ns, read_all ? 0 : 2);
    }
    /// As it should be: it comes when it asked to.
    void sleep_well(long long for_ns = 5 * ms) { sleep(for_ns, now + for_ns); }
    void work(long long for_ns) {
        now += for_ns;
        a.on_step(now);
    }
    void tick() { a.on_tick(now, waited); }
    const client_stalls& found() {
        a.on_sleep(now);
        return a.found();
    }
};

}  // namespace

TEST_CASE("a thread that comes when it asked to was never blind") {
    scripted t;
    for (int i = 0; i < 100; ++i) {
        t.sleep_well();
        t.waited += 100'000;
        t.tick();
        for (int k = 0; k < 20; ++k) t.work(90'000);
        t.sleep(2 * ms, t.now + 5 * ms);  // woken by a socket
    }
    CHECK(t.found().empty());
    CHECK(t.a.lost_since(0) == 0);
}

TEST_CASE("a thread that wakes too late was blind since it fell asleep") {
    scripted t;
    t.sleep_well();
    t.work(100'000);
    const long long asleep = t.now;
    t.sleep(65 * ms, t.now + 5 * ms);
    CHECK(t.a.is_behind());
    t.work(200'000);  // what had come in
    REQUIRE(t.found().size() == 1);
    CHECK_FALSE(t.a.is_behind());
    CHECK(t.found()[0].from_ns == asleep);
    CHECK(t.found()[0].to_ns == t.now);
    CHECK(t.found()[0].lost_ns == 65 * ms);
    CHECK(possible_delay(t.found(), t.now - 1) == 65 * ms + 200'000 - 1);
    CHECK(t.a.lost_since(asleep + 5 * ms) == 60 * ms + 200'000);
    t.sleep_well();
    CHECK(t.found().size() == 1);
}

TEST_CASE("it is not late for a time that had passed when it fell asleep") {
    scripted t;
    t.sleep(50'000, t.now - 20 * ms);
    CHECK(t.found().empty());
}

TEST_CASE("a thread that is stopped in the middle of its work was blind until it has read all") {
    scripted t;
    t.sleep_well();
    const long long before = t.now;
    t.work(2000 * ms);
    CHECK(t.a.is_behind());
    t.a.on_sleep(t.now);
    CHECK(t.a.is_behind());  // what came in meanwhile is told of by the next wait
    t.sleep(0, t.now + 5 * ms);
    t.work(300'000);
    REQUIRE(t.found().size() == 1);
    CHECK(t.found()[0].from_ns == before);
    CHECK(t.found()[0].to_ns == t.now);
    CHECK(t.found()[0].most_delay_ns == t.now - before);
    CHECK(t.found()[0].lost_ns == 2000 * ms);
}

TEST_CASE("more sockets than one wait tells of are all waited for, but not for ever") {
    scripted t;
    t.sleep(100 * ms, t.now + 5 * ms, false);
    t.work(100'000);
    t.sleep(0, t.now + 5 * ms, false);
    t.work(100'000);
    CHECK(t.a.is_behind());
    t.sleep(0, t.now + 5 * ms, false);  // each has had its turn
    t.work(100'000);
    CHECK(t.found().size() == 1);
    CHECK(t.found()[0].to_ns == t.now);
}

TEST_CASE("a second delay before all is read is one with the first") {
    scripted t;
    const long long asleep = t.now;
    t.sleep(30 * ms, t.now + 5 * ms);
    t.work(40 * ms);
    t.sleep(0, t.now + 5 * ms);
    t.work(100'000);
    REQUIRE(t.found().size() == 1);
    CHECK(t.found()[0].from_ns == asleep);
    CHECK(t.found()[0].lost_ns == 70 * ms);
    CHECK(t.found()[0].most_delay_ns == t.now - asleep);
}

TEST_CASE("a thread that is only busy lost nothing, and is late all the same") {
    scripted t;
    t.sleep_well();
    const long long woke = t.now;
    for (int i = 0; i < 300; ++i) t.work(50'000);  // 15 ms of many sockets
    t.sleep(0, t.now + 5 * ms);
    REQUIRE(t.found().size() == 1);
    CHECK(t.found()[0].from_ns == woke);
    CHECK(t.found()[0].lost_ns == 0);
    CHECK(possible_delay(t.found(), woke + 10 * ms) == 10 * ms);
}

TEST_CASE("short waits for a core add up until the next tick") {
    scripted t;
    const long long before = t.now;
    t.waited = 2 * ms;
    t.sleep_well();
    t.tick();
    REQUIRE(t.found().size() == 1);
    CHECK(t.found()[0].from_ns == before);
    CHECK(t.found()[0].most_delay_ns == 2 * ms);
    CHECK(t.found()[0].lost_ns == 2 * ms);
    t.waited += 900'000;
    t.sleep_well();
    t.tick();
    CHECK(t.found().size() == 1);
}

TEST_CASE("what was seen by the clock is not counted again as a wait for a core") {
    scripted t;
    t.sleep(50 * ms, t.now + 5 * ms);
    t.waited += 44 * ms;
    t.tick();
    t.work(100'000);
    REQUIRE(t.found().size() == 1);
    CHECK(t.found()[0].lost_ns == 50 * ms);
    t.sleep_well();
    t.tick();
    CHECK(t.found().size() == 1);
}

TEST_CASE("where nobody counts waits for a core, the clock is all there is") {
    scripted t;
    t.waited = -1;
    for (int i = 0; i < 5; ++i) {
        t.sleep_well();
        t.tick();
    }
    CHECK(t.found().empty());
}

TEST_CASE("the end of a load closes what is open") {
    scripted t;
    t.work(30 * ms);
    t.a.end(t.now);
    CHECK(t.a.found().size() == 1);
    CHECK_FALSE(t.a.is_behind());
}
