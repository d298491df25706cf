#include "llmbench.hpp"
#include "extensions/history/core/machines.hpp"
#include "extensions/history/core/reading.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"

#include <cmath>
#include <functional>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

/// Runs of three repeats, a day each, on machines by turns: `slower(i)` is run i's logarithm.
history_series runs_on(const vector<std::string>& machines, std::size_t count,
                       const std::function<double(std::size_t)>& slower) {
    history_series s{.statistic = "mean(tpot)"};
    generator g(2);
    for (std::size_t i = 0; i < count; ++i) {
        const auto day = static_cast<int>(i);
        series_run r{.id = printed("r%d", day),
                     .at = printed("2026-%02d-%02dT02:00:00Z", day / 28 + 1, day % 28 + 1),
                     .machine = machines[i % machines.size()]};
        const double run = slower(i) + 0.01 * g.normal();
        for (int k = 0; k < 3; ++k) r.repeats.push_back(0.01 * std::exp(run + 0.003 * g.normal()));
        s.runs.push_back(r);
    }
    return s;
}

/// The verdict on three repeats, `slower` than 0.01 s, on a machine.
history_analysis judged_on(const history_series& s, const std::string& machine, double slower) {
    const learned_history h = history_read_as(s, run_on::branch, 0, machine).learned;
    const double today = std::log(0.01) + slower;
    return judged_against(h, {today - 0.003, today, today + 0.003}, std::log(1.05),
                          run_on::branch);
}
double third_is_slow(std::size_t i) { return i % 3 == 0 ? std::log(1.2) : 0; }

}  // namespace

TEST_CASE("levels and machines are told apart") {
    // One of three is 20 % slower, and after 30 runs all are 10 % slower.
    const history_read r = history_read_as(runs_on({"a", "b", "c"}, 60, [](std::size_t i) {
        return (i % 3 == 0 ? std::log(1.2) : 0) + (i >= 30 ? std::log(1.1) : 0);
    }), run_on::main);
    REQUIRE(r.machines.all.size() == 3);
    const double apart = r.machines.all[0].effect - r.machines.all[1].effect;
    CHECK(apart == doctest::Approx(std::log(1.2)).epsilon(0.1));
    CHECK(std::sqrt(r.machines.within) < 0.02);
    REQUIRE(r.segments.size() == 2);
    CHECK(r.segments[1].first == 30);
    CHECK(r.learned.spread.sd < 0.02);
}
TEST_CASE("machines that do not differ are corrected by next to nothing") {
    const history_read r =
        history_read_as(runs_on({"a", "b", "c", "d"}, 40, [](std::size_t) { return 0; }),
                        run_on::main);
    for (const machine_effect& m : r.machines.all) {
        CHECK(std::fabs(m.effect) < 0.005);
        CHECK(std::fabs(m.own) < reach_of_effect(r.machines, m) + 0.004);
    }
}
TEST_CASE("a machine that replaced another one is compared with none") {
    history_series s = runs_on({"a"}, 20, [](std::size_t i) { return i >= 12 ? 0.2 : 0; });
    for (std::size_t i = 12; i < 20; ++i) s.runs[i].machine = "b";
    const history_read r = history_read_as(s, run_on::main);
    REQUIRE(r.machines.all.size() == 2);
    for (const machine_effect& m : r.machines.all) {
        CHECK(!m.overlaps);
        CHECK(m.effect == 0);
        CHECK(std::isinf(reach_of_effect(r.machines, m)));
    }
    CHECK(r.segments.size() == 2);
}
TEST_CASE("runs whose machine is not known belong to none, and one machine corrects nothing") {
    const auto flat = [](std::size_t) { return 0; };
    CHECK(history_read_as(runs_on({""}, 9, flat), run_on::main).machines.all.empty());
    const history_read one = history_read_as(runs_on({"a", ""}, 12, flat), run_on::main);
    REQUIRE(one.machines.all.size() == 1);
    CHECK(one.machines.of_run[1] == 1);
    CHECK(one.machines.all[0].effect == 0);
}
TEST_CASE("machines of a run each are not told from the runs") {
    const history_series s = runs_on({"a", "b", "c", "d", "e", "f"}, 6, [](std::size_t i) {
        return i % 2 ? 0.1 : 0;
    });
    for (const machine_effect& m : history_read_as(s, run_on::main).machines.all)
        CHECK(m.effect == 0);
}
TEST_CASE("a run is judged with the effect of its machine") {
    const history_series s = runs_on({"a", "b", "c"}, 30, third_is_slow);
    CHECK(judged_on(s, "a", std::log(1.2)).outcome == verdict::pass);
    CHECK(judged_on(s, "b", 0).outcome == verdict::pass);
    CHECK(judged_on(s, "b", std::log(1.2)).outcome == verdict::fail);
    CHECK(judged_on(s, "a", 2 * std::log(1.2)).outcome == verdict::fail);
    // What machines differ by is in the interval of a new one, and of one that nobody named in none.
    CHECK(judged_on(s, "d", std::log(1.2)).outcome == verdict::inconclusive);
    const learned_history h = history_read_as(s, run_on::branch, 0, "d").learned;
    CHECK(h.machine.df == 2);
    CHECK(h.machine.variance > 0.005);
    CHECK(history_read_as(s, run_on::branch, 0, "").learned.machine.variance == 0);
}
TEST_CASE("machines that nothing compares decide nothing") {
    const history_series s = runs_on({"a"}, 20, [](std::size_t) { return 0; });
    for (const double slower : {0.0, 0.3}) {
        const history_analysis l = judged_on(s, "b", slower);
        CHECK(l.outcome == verdict::inconclusive);
        CHECK(l.withheld == history_hold::other_machine);
    }
    CHECK(judged_on(s, "a", 0.3).outcome == verdict::fail);
    CHECK(judged_on(s, "", 0.3).outcome == verdict::fail);
    // Runs of one machine each: what they differ by has the machines in it.
    const history_series pods = runs_on({"a", "b", "c", "d", "e", "f", "g", "h"}, 8,
                                        [](std::size_t) { return 0; });
    CHECK(judged_on(pods, "z", 0).outcome == verdict::pass);
    CHECK(judged_on(pods, "z", 0.3).outcome == verdict::fail);
}
TEST_CASE("the chance that slow runs are all on one machine is Fisher's") {
    CHECK(chance_of_slow(31, 5, 4, 4) == doctest::Approx(5.0 / 31465));
    CHECK(chance_of_slow(8, 4, 4, 3) == doctest::Approx(17.0 / 70));  // the tea of the lady
    CHECK(chance_of_slow(10, 10, 3, 3) == doctest::Approx(1));
    CHECK(chance_of_slow(10, 2, 3, 0) == doctest::Approx(1));
}
TEST_CASE("a red that slow runs of the machine explain is none") {
    // Three of the newest six runs on a are slow, now and then.
    const auto now_and_then = [](std::size_t i) {
        return i == 45 || i == 55 || i == 70 ? std::log(1.2) : 0;
    };
    const history_series s = runs_on({"a", "b", "c", "d", "e"}, 75, now_and_then);
    const history_read r = history_read_as(s, run_on::branch, 0, "a");
    CHECK(r.machines.all[0].turned == 0);
    CHECK(r.learned.slow.on_it == 3);
    CHECK(r.learned.slow.slow == 3);
    CHECK(r.learned.slow.machines == 5);
    CHECK(r.learned.slow.explain());
    CHECK(judged_on(s, "a", std::log(1.2)).outcome == verdict::inconclusive);
    CHECK(judged_on(s, "a", std::log(1.5)).outcome == verdict::fail);
    CHECK(!history_read_as(s, run_on::branch, 0, "b").learned.slow.explain());
}
const vector<std::string> ten = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
double a_turns(std::size_t i) { return i % 10 == 0 && i >= 40 ? std::log(1.2) : 0; }

TEST_CASE("from two slow runs on a machine is one that is so slow since then") {
    for (const std::size_t runs : {60U, 80U}) {
        const history_series s = runs_on(ten, runs, a_turns);
        const machine_effect a = history_read_as(s, run_on::branch).machines.all[0];
        CHECK(a.turned == doctest::Approx(std::log(1.2)).epsilon(0.1));
        CHECK(a.turned_at == 40);
        CHECK(judged_on(s, "a", std::log(1.2)).outcome == verdict::pass);
        CHECK(judged_on(s, "b", std::log(1.2)).outcome == verdict::fail);
    }
}
TEST_CASE("a run of main that was slow on the machine leaves a red on it open") {
    const history_series s = runs_on(ten, 45, a_turns);
    CHECK(history_read_as(s, run_on::branch).machines.all[0].turned == 0);
    const history_analysis l = judged_on(s, "a", std::log(1.2));
    CHECK(l.outcome == verdict::inconclusive);
    CHECK(l.withheld == history_hold::main_moved);
    const learned_history h = history_read_as(s, run_on::branch, 0, "a").learned;
    REQUIRE(!h.moved.empty());
    CHECK(h.moved[0].is_on_machine);
    CHECK(h.moved[0].by == doctest::Approx(std::log(1.2)).epsilon(0.15));
    CHECK(history_read_as(s, run_on::branch, 0, "b").learned.moved.empty());
}
TEST_CASE("a step that one machine alone has shown is nobody's") {
    // The newest three runs are slow, and all on a.
    history_series s = runs_on({"a", "b", "c"}, 33, [](std::size_t i) {
        return i >= 30 ? std::log(1.2) : 0;
    });
    for (std::size_t i = 30; i < 33; ++i) s.runs[i].machine = "a";
    const history_read alone = history_read_as(s, run_on::branch);
    CHECK(alone.segments.size() == 1);
    CHECK(alone.machines.all[0].turned == 0);
    // The next run of another machine tells whose it is.
    for (const double slower : {0.0, std::log(1.2)}) {
        history_series next = s;
        next.runs.push_back(s.runs[28]);
        next.runs.back().at = "2026-03-05T02:00:00Z";
        for (double& x : next.runs.back().repeats) x *= std::exp(slower);
        const history_read r = history_read_as(next, run_on::branch);
        CHECK(r.segments.size() == (slower > 0 ? 2 : 1));
        CHECK((r.machines.all[0].turned > 0) == (slower == 0));
    }
}
TEST_CASE("a slow machine leaves the level of the others") {
    const history_series s = runs_on({"a", "b", "c"}, 60, [](std::size_t i) {
        return i % 3 == 0 && i >= 40 ? std::log(1.2) : 0;
    });
    CHECK(history_read_as(s, run_on::branch).segments.size() == 1);
    CHECK(judged_on(s, "b", std::log(1.2)).outcome == verdict::fail);
    CHECK(judged_on(s, "b", 0).outcome == verdict::pass);
}
TEST_CASE("a step that came with a machine is the machine's") {
    series_machines of;
    of.all = {{.name = "a"}, {.name = "b"}};
    of.of_run = {0, 0, 0, 0, 1, 1, 1};
    CHECK(machine_of_step(of, {0, 4}, {4, 7}) == "the runs since then were on b, and none before");
    of.of_run = {0, 0, 0, 0, 1, 0, 1};
    CHECK(machine_of_step(of, {0, 4}, {4, 7}) == "");
    of.of_run = {0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1};
    CHECK(machine_of_step(of, {0, 9}, {9, 13}) ==
          "all 4 slow runs of 13 were on b (chance: 0.007)");
    of.of_run = {2, 2, 2, 2, 1, 1, 1};
    CHECK(machine_of_step(of, {0, 4}, {4, 7}) == "");
}
