// Time that comes through one door.
#include <doctest/doctest.h>

#include "effects/system/clock.hpp"
#include "effects/system/run_queue.hpp"
#include "effects/targets/page_watch.hpp"

#include <thread>

using namespace llmbench::detail;

namespace {

struct still_world final : world {
    long long now = 5000000000;
    long long now_ns() const override { return now; }
    double unix_s() const override { return 1e9 + static_cast<double>(now) * 1e-9; }
    void sleep_until(long long at_ns) override { now = at_ns; }
    long long waited_ns() const override { return 7; }
};

}  // namespace

TEST_CASE("a thread in a world of its own has that one's time, and sleeps in it") {
    still_world made_up;
    long long elsewhere = 0;
    const long long before = now_ns();
    {
        const inside_world here(&made_up);
        CHECK(now_ns() == 5000000000);
        CHECK(unix_s() == 1000000005.0);
        CHECK(thread_cpu_seconds() == 0);
        CHECK(run_queue_wait().so_far_ns() == 7);
        sleep_s(3600);
        CHECK(now_ns() == 3605000000000);
        CHECK(seconds_until(3606000000000) == doctest::Approx(1));
        std::thread([&] { elsewhere = now_ns(); }).join();
    }
    CHECK(elsewhere >= before);
    CHECK(now_ns() >= elsewhere);
    CHECK(now_ns() - before < 3600000000000);
}

TEST_CASE("what the client waits for between two loads is made-up time there") {
    still_world made_up;
    const inside_world here(&made_up);
    rest({});
    CHECK(made_up.now == 5200000000);
}
