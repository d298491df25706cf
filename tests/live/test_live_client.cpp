// What a client says of itself in real time, where it is kept from running, too.
#include "support/effects.hpp"
#include "support/short_loads.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace llmbench;
using namespace live;

#ifdef __linux__  // elsewhere no thread can be told to stay on a core
namespace {
void stay_on_the_first_core() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
}
/// Threads that leave next to nothing of the first core to whoever is less important.
class busy_core {
public:
    busy_core() {
        for (int i = 0; i < 3; ++i)
            threads_.emplace_back([this] {
                stay_on_the_first_core();
                while (!over_.load()) {}
            });
    }
    ~busy_core() {
        over_ = true;
        for (std::thread& t : threads_) t.join();
    }

private:
    std::atomic<bool> over_{false};
    std::vector<std::thread> threads_{};
};
}  // namespace

TEST_CASE("a client that is starved of its core says so, and no miss rests on it") {
    scenario s = short_requests(poisson(40_rps));
    s.target = endpoint_of(quick);
    s.requests = 80;
    s.repeats = 2;
    s.slos = {p90(ttft) <= 40_ms, max(itl) <= 30_ms};
    result r;
    {
        const busy_core others;
        std::thread client([&] {
            stay_on_the_first_core();
            ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 10);
            r = run(s);
        });
        client.join();
    }
    CAPTURE(r.self_check().lateness_p99);
    CAPTURE(r.self_check().loop_lag_p99);
    const bool is_stamped = r.self_check().stamped_fraction > 0.5;
    CHECK((is_stamped ? r.self_check().stamp_lag_max : r.self_check().lost_fraction) > 0.001);
    REQUIRE(r.verdicts().size() > 1);
    for (std::size_t i = 0; i < 2; ++i) {
        const slo_verdict& v = r.verdicts()[i];
        CAPTURE(v.line().c_str());
        CHECK(v.outcome != verdict::fail);
        if (v.outcome != verdict::invalid) continue;
        // Its server runs beside the busy loops, too, and may come late by itself.
        if (std::string(v.reason).rfind("the stream ", 0) == 0) continue;
        CHECK(std::string(v.reason).rfind("client: ", 0) == 0);
        CHECK_FALSE(r.self_check().ok);
        CHECK(std::string(r.self_check().reason).rfind("client: ", 0) == 0);
    }
}
#endif

TEST_CASE("every result tells how the client kept up") {
    scenario s = short_requests(poisson(100_rps));
    s.target = endpoint_of(quick);
    s.client.threads = 2;
    const self_check_t c = run(s).self_check();
    CHECK(c.lateness_max >= c.lateness_p99);
    CHECK(c.loop_lag_max >= c.loop_lag_p99);
    CHECK(c.stamp_lag_max >= c.stamp_lag_p99);
    CHECK(c.stamp_lag_max > 0);
    CHECK(c.cpu_utilization > 0);
    CHECK(c.asked_rate == doctest::Approx(100));
}
