// Users of two servers at once: servers that share a machine take each other's time, and are not
// compared; servers with a machine each are.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "virtual/execution_environment.hpp"
#include "virtual/scripted_server.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <string>

using namespace llmbench;
using namespace live;

namespace {

/// It does one step after the other, of all servers on it.
struct machine {
    long long free_ns = 0;
};
/// A request takes so much work on its machine; `noise` is the deviation of its logarithm.
scripted::server server_on(const std::shared_ptr<machine>& on, double work_ms, unsigned seed = 1,
                           double noise = 0) {
    const auto drawn = std::make_shared<std::mt19937_64>(seed);
    return scripted::server([=](const scripted::request&) -> scripted::answer {
        std::normal_distribution<> deviation(0, 1);
        const double ms = work_ms * std::exp(noise * deviation(*drawn));
        const long long now = virtual_world::now_ns();
        on->free_ns = std::max(on->free_ns, now) + std::llround(ms * 1e6);
        return {scripted::wait(std::chrono::milliseconds((on->free_ns - now) / 1'000'000)),
                scripted::send(scripted::sized_stream(scripted::healthy_events(3)))};
    });
}
scenario users_of(const scripted::server& candidate, const scripted::server& base,
                  const std::string& name) {
    scenario s;
    s.name = name.c_str();
    s.target = endpoint{.url = candidate.url()};
    s.baseline = endpoint{.url = base.url()};
    s.pairs = at_once;
    s.workload = prompts({"Name a city."});
    s.arrivals = closed_loop(4);
    s.warmup = 2_s;
    s.duration = 40_s;
    s.repeats = 1;
    s.slos = {mean(e2e) <= 1.2 * baseline, request_throughput >= 0.8 * baseline};
    return s;
}

}  // namespace

TEST_CASE("users at once of two servers on one machine: a candidate three times slower is not compared") {
    const auto one = std::make_shared<machine>();
    const scripted::server candidate = server_on(one, 30), base = server_on(one, 10);
    scenario s = users_of(candidate, base, "one machine");
    s.slos.push_back(goodput(e2e <= 1_s) >= 90_pct);
    const result r = run(s);
    for (std::size_t i = 0; i < 2; ++i) {
        INFO(std::string(r.verdicts()[i].line().c_str()));
        CHECK(r.verdicts()[i].outcome == verdict::invalid);
        CHECK(holds(r.verdicts()[i].reason.c_str(), "answer 49.8 % slower"));  // 25 and 75 %
        CHECK(holds(r.verdicts()[i].reason.c_str(), "compare()"));
    }
    CHECK(r.verdicts()[2].outcome == verdict::pass);  // of the candidate alone
    const std::string told = reported_gate("one machine").get("notes").get(0).to_str();
    CHECK(told == "at once, the candidate answers at 75.2 % of its speed alone, the baseline at 25.1 %");
    check_rejudged(r, s.slos);
}

TEST_CASE("users at once of two servers on one machine: a dozen slow answers that vary show it, too") {
    for (unsigned seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        const auto one = std::make_shared<machine>();
        const scripted::server candidate = server_on(one, 330, seed, 0.2),
                               base = server_on(one, 300, 100 + seed, 0.2);
        scenario s = users_of(candidate, base, "one slow machine " + std::to_string(seed));
        s.seed = static_cast<int>(seed);
        const result r = run(s);
        for (std::size_t i = 0; i < 2; ++i) {
            INFO(std::string(r.verdicts()[i].line().c_str()));
            CHECK(holds(r.verdicts()[i].reason.c_str(), "they share a machine"));
        }
    }
}

TEST_CASE("users at once of two servers with a machine each are compared") {
    struct pace {
        std::string name;
        double work_ms, noise;
    };
    for (const pace& p : {pace{"quick", 25, 0.3}, pace{"slow", 300, 0.2}})
        for (unsigned seed = 1; seed <= 5; ++seed) {
            CAPTURE(p.name);
            CAPTURE(seed);
            const auto one = std::make_shared<machine>(), other = std::make_shared<machine>();
            const scripted::server candidate = server_on(one, 1.1 * p.work_ms, seed, p.noise),
                                   base = server_on(other, p.work_ms, 100 + seed, p.noise);
            scenario s = users_of(candidate, base, p.name + (" machines " + std::to_string(seed)));
            s.seed = static_cast<int>(seed);
            const result r = run(s);
            for (std::size_t i = 0; i < 2; ++i) {
                INFO(std::string(r.verdicts()[i].line().c_str()));
                CHECK(r.verdicts()[i].outcome != verdict::invalid);
            }
            if (seed == 1) check_rejudged(r, s.slos);
        }
}

TEST_CASE("conversations of users at once of two engines that batch are compared") {
    engine e;
    e.decode_step = 20_ms;
    e.tokens_per_event = 2;  // less to simulate
    const logging_server candidate(e), base(e);
    scenario s;
    s.name = "engines that batch";
    s.target = endpoint{.url = candidate.url()};
    s.baseline = endpoint{.url = base.url()};
    s.pairs = at_once;
    s.workload = conversations{.turns = uniform(1, 4), .user_tokens = uniform(10, 400),
                               .output_tokens = uniform(8, 60)};
    s.arrivals = closed_loop(6).think(fixed(500_ms));
    s.duration = 60_s;
    s.slos = {mean(e2e) <= 1.1 * baseline, mean(tpot) <= 1.1 * baseline};
    const result r = run(s);
    for (std::size_t i = 0; i < 2; ++i) {
        INFO(std::string(r.verdicts()[i].line().c_str()));
        CHECK(r.verdicts()[i].outcome == verdict::pass);
    }
    check_rejudged(r, s.slos);
}
