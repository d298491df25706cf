// What probes of two servers in turns show of the ratio of their capacities.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/capacity/compare.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

/// The margin of an arm at a load, infinite where the load outgrows it.
using server = std::function<double(double load)>;
server line_at(double capacity, double elasticity) {
    return [=](double load) { return elasticity * std::log(load / capacity); };
}
/// Flat below its capacity, steep from 5 % below it.
server knee_at(double capacity) {
    return [=](double load) {
        const double x = std::log(load / capacity) + 0.05;
        return -0.5 + (x < 0 ? 0.2 : 10) * x;
    };
}

struct compared_arms {
    std::vector<arm_probe> probes{};
    pair_step end{};
    capacity_ratio found{};
};
compared_arms compare(const compare_terms& t, const server& baseline, const server& candidate,
                      double noise = 0, std::uint64_t seed = 1) {
    compared_arms all;
    generator random(seed);
    for (;;) {
        all.end = next_pair(t, all.probes);
        if (!all.end.done.empty()) break;
        REQUIRE(all.probes.size() < 100);
        const run_arm first = all.end.first;
        const run_arm second =
            first == run_arm::baseline ? run_arm::candidate : run_arm::baseline;
        for (const run_arm arm : {first, second}) {
            const double load = all.end.load * std::exp(noise * random.normal());
            const double m = (arm == run_arm::baseline ? baseline : candidate)(load);
            all.probes.push_back({arm, all.end.load, m, std::isinf(m)});
        }
    }
    all.found = compared(t, all.probes);
    return all;
}

}  // namespace

TEST_CASE("the loads are a factor apart, up to the baseline's capacity") {
    const std::vector<double> loads = loads_of({.capacity = 10, .factor = 0.95});
    REQUIRE(loads.size() == 3);
    CHECK(loads[0] == doctest::Approx(9.025));
    CHECK(loads[1] == doctest::Approx(9.5));
    CHECK(loads[2] == 10);
}

TEST_CASE("users are whole, and no step between them is larger than the factor") {
    for (const double capacity : {1.0, 3.7, 19.0, 20.0, 64.4, 257.0}) {
        const std::vector<double> loads = loads_of({.capacity = capacity, .whole = true});
        for (std::size_t i = 0; i < loads.size(); ++i) {
            CHECK(loads[i] == std::floor(loads[i]));
            CHECK(loads[i] >= 1);
            if (i > 0) CHECK(loads[i - 1] >= 0.95 * loads[i] - 1e-9);
        }
    }
}

TEST_CASE("the arms take turns in going first, and every other round goes down") {
    const compared_arms c = compare({.capacity = 1}, line_at(1, 1), line_at(0.95, 1));
    REQUIRE(c.probes.size() == 18);
    for (std::size_t i = 0; i < c.probes.size(); i += 2) {
        CHECK(c.probes[i].load == c.probes[i + 1].load);
        CHECK((c.probes[i].arm == run_arm::baseline) == (i % 4 == 0));
    }
    CHECK(c.probes[0].load < c.probes[4].load);
    CHECK(c.probes[6].load > c.probes[10].load);
}

TEST_CASE("equal servers pass, and one with a tenth less fails") {
    for (const server& (*curve)(double) : {+[](double c) -> const server& {
             static server s;
             return s = line_at(c, 8);
         },
                                           +[](double c) -> const server& {
             static server s;
             return s = knee_at(c);
         }}) {
        const server baseline = curve(1), worse = curve(0.9);
        const compared_arms same = compare({.capacity = 1}, baseline, baseline);
        CHECK(same.found.outcome == verdict::pass);
        CHECK(same.found.ratio == doctest::Approx(1));
        CHECK(same.end.done == "the comparison is decided");
        const compared_arms less = compare({.capacity = 1}, baseline, worse);
        CHECK(less.found.outcome == verdict::fail);
        CHECK(less.found.ratio < 0.95);
    }
}

TEST_CASE("on straight lines the ratio is found, within its interval") {
    for (const double ratio : {0.8, 0.9, 0.95, 1.0, 1.1}) {
        const compared_arms c = compare({.capacity = 2}, line_at(2, 6), line_at(2 * ratio, 6));
        CHECK(c.found.ratio == doctest::Approx(ratio));
        CHECK(c.found.low < ratio);
        CHECK(c.found.high > ratio);
        CHECK(c.found.elasticity == doctest::Approx(6));
    }
}

TEST_CASE("a candidate at the factor itself does not pass") {
    const compared_arms c = compare({.capacity = 1}, line_at(1, 8), line_at(0.95, 8));
    CHECK(c.found.outcome != verdict::pass);
}

TEST_CASE("objectives that hardly depend on the load leave the ratio open and say so") {
    const compared_arms c = compare({.capacity = 1}, line_at(1, 0.1), line_at(1, 0.1));
    CHECK(c.found.outcome == verdict::inconclusive);
    CHECK(c.end.done == "all loads were compared");
    CHECK(c.found.reason.find("hardly depend on the load") != std::string::npos);
    CHECK(std::isnan(c.found.ratio));
}

TEST_CASE("a candidate that is over-saturated at every load fails after one round") {
    const compared_arms c =
        compare({.capacity = 1}, line_at(1, 4), [](double) { return infinity; });
    CHECK(c.found.outcome == verdict::fail);
    CHECK(c.probes.size() == 6);
    CHECK(c.found.reason.find("over-saturated") == 0);
}

TEST_CASE("a candidate that is over-saturated at one load does not pass") {
    const server over = [](double load) { return load > 0.99 ? infinity : -2; };
    const compared_arms c = compare({.capacity = 1}, line_at(1, 4), over);
    CHECK(c.found.outcome != verdict::pass);
}

TEST_CASE("a baseline that is over-saturated below its capacity leaves the ratio open") {
    const compared_arms c =
        compare({.capacity = 1}, [](double) { return infinity; }, line_at(1, 4));
    CHECK(c.found.outcome == verdict::inconclusive);
    CHECK(c.found.reason.find("baseline") != std::string::npos);
}

TEST_CASE("a pair in which the client did not keep up is repeated once") {
    const compare_terms t{.capacity = 1};
    const pair_step first = next_pair(t, {});
    std::vector<arm_probe> probes{{.arm = first.first, .load = first.load, .invalid = true},
                                  {.arm = run_arm::candidate, .load = first.load}};
    CHECK(next_pair(t, probes).load == first.load);
    CHECK(next_pair(t, probes).first == first.first);
    probes.insert(probes.end(), probes.begin(), probes.begin() + 2);
    CHECK(next_pair(t, probes).done == "the client could not keep up twice in a row");
}

TEST_CASE("noise seldom makes a pass below the factor or a fail of equals") {
    int passed = 0, failed = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        passed += compare({.capacity = 1}, knee_at(1), knee_at(0.94), 0.02, seed).found.outcome ==
                  verdict::pass;
        failed += compare({.capacity = 1}, knee_at(1), knee_at(1), 0.02, seed).found.outcome ==
                  verdict::fail;
    }
    CHECK(passed <= 3);
    CHECK(failed <= 1);
}
