// Time that comes through one door.
#include <doctest/doctest.h>

#include "effects/system/clock.hpp"
#include "effects/system/threads.hpp"
#include "effects/targets/server_pages.hpp"

#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <thread>

using namespace llmbench::detail;

namespace {

struct still_world final : execution_environment {
    long long now = 5000000000;
    std::multimap<long long, std::function<void()>> to_come{};
    long long now_ns() const override { return now; }
    double unix_s() const override { return 1e9 + static_cast<double>(now) * 1e-9; }
    void sleep_until(long long at_ns) override {
        while (!to_come.empty() && to_come.begin()->first <= at_ns) {
            const auto next = to_come.extract(to_come.begin());
            now = next.key();
            next.mapped()();
        }
        now = at_ns;
    }
    void at(long long ns, std::function<void()> what) override { to_come.emplace(ns, what); }
    long long waited_ns() const override { return 7; }
    std::unique_ptr<network> new_network() override { return nullptr; }
    vector<address> resolved(const http_url&) const override { return {}; }
};

}  // namespace

TEST_CASE("a thread in a world of its own has that one's time, and sleeps in it") {
    still_world still;
    long long elsewhere = 0;
    const long long before = now_ns();
    {
        const inside_environment here(&still);
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
    still_world still;
    const inside_environment here(&still);
    rest({});
    CHECK(still.now == 5200000000);
}

TEST_CASE("what is done again and again happens in a made-up world, and in a thread elsewhere") {
    std::atomic<int> done{0};
    const auto each = [](long long ns) { return [ns] { return now_ns() + ns; }; };
    {
        still_world still;
        const inside_environment here(&still);
        repeated often;
        often.begin(each(1000000000), [&] { ++done; }, [](const char*) {});
        CHECK(done == 0);
        sleep_s(10);
        CHECK(done == 10);
        often.stop();
        sleep_s(10);
        CHECK(done == 10);
    }
    repeated often;
    const std::thread::id mine = std::this_thread::get_id();
    std::atomic<bool> elsewhere{false};
    std::atomic<bool> has_failed{false};
    const auto act = [&] {
        elsewhere = std::this_thread::get_id() != mine;
        if (++done == 12) throw std::runtime_error("the disk is gone");
    };
    often.begin(each(1000000), act, [&](const char* why) {
        has_failed = std::string(why) == "the disk is gone";
    });
    while (!has_failed) sleep_s(0.001);
    sleep_s(0.01);
    often.stop();
    CHECK(done == 12);
    CHECK(elsewhere);
    repeated never;
    never.stop();
    for (int i = 0; i < 200; ++i) {  // stopped before its thread runs
        repeated soon;
        soon.begin(each(0), [] {}, [](const char*) {});
        soon.stop();
    }
}

TEST_CASE("the time of day goes as the client's clock does, until somebody sets it") {
    const long long ahead = day_ahead_ns();
    sleep_s(0.05);
    CHECK(std::llabs(day_ahead_ns() - ahead) < noticed_step_ns);
}
