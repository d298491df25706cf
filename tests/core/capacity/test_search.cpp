// Which load a search tries next, and what it has shown when it ends.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "extensions/capacity/core/search.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

/// A server without noise: its margin at a load, infinite where the load outgrows it.
using server = std::function<double(double load)>;
server knee_at(double capacity, double elasticity, double over = infinity) {
    return [=](double load) {
        return load >= over ? infinity : elasticity * std::log(load / capacity);
    };
}

/// Flat, then steep.
server bent_at(double knee, double flat, double steep, double floor) {
    return [=](double load) {
        const double x = std::log(load / knee);
        return floor + (x < 0 ? flat : steep) * x;
    };
}

struct searched {
    vector<probe> probes{};
    search_state state() const { return state_of(probes); }
    bool has_both() const { return state().has_both(); }
};
/// Three probes show a load, where it is further than `blur` from a margin of 0.
searched search(const search_parameters& t, const server& s, double blur = 0) {
    searched all;
    while (const auto next = next_load(t, all.probes)) {
        REQUIRE(all.probes.size() < 100);
        probe p{.load = *next, .margin = s(*next)};
        p.over = std::isinf(p.margin);
        int here = 1;
        for (const probe& q : all.probes) here += q.load == p.load;
        if (here >= least_of_an_end && std::abs(p.margin) > blur)
            p.shown = p.margin < 0 ? carried::holds : carried::misses;
        all.probes.push_back(p);
    }
    return all;
}

}  // namespace

TEST_CASE("a search ends with a load that holds and one that misses, around the capacity") {
    for (const double capacity : {0.02, 0.2, 1.0, 37.0})
        for (const double off : {0.5, 0.9, 1.0, 1.3, 2.0, 8.0})
            for (const double elasticity : {0.4, 4.0, 9.0}) {
                CAPTURE(capacity);
                CAPTURE(off);
                CAPTURE(elasticity);
                const searched s = search({.start = capacity * off}, knee_at(capacity, elasticity));
                REQUIRE(s.has_both());
                CHECK(s.state().low < capacity);
                CHECK(s.state().high > capacity);
                CHECK(s.probes.size() <= 16);
                CHECK(s.state().elasticity == doctest::Approx(elasticity).epsilon(0.05));
                CHECK(s.state().estimate == doctest::Approx(capacity).epsilon(0.2));
                if (elasticity > 1) CHECK(s.state().high / s.state().low < 1.3);
            }
}

TEST_CASE("the same probes give the same next load, one by one") {
    const searched s = search({.start = 3}, knee_at(2, 4));
    for (std::size_t n = 0; n < s.probes.size(); ++n) {
        const vector<probe> so_far(s.probes.begin(), s.probes.begin() + static_cast<long>(n));
        CHECK(*next_load({.start = 3}, so_far) == s.probes[n].load);
    }
}

TEST_CASE("a load that outgrows the server is a miss without a size") {
    const searched s = search({.start = 4}, knee_at(10, 0.4, 8));
    REQUIRE(s.has_both());
    CHECK(s.state().low < 8);
    CHECK(s.state().high >= 8);
}

TEST_CASE("users are whole, and the ends can be neighbours") {
    const searched s = search({.start = 20, .least = 1, .most = 256, .whole = true}, knee_at(31.5, 9));
    REQUIRE(s.has_both());
    for (const probe& p : s.probes) CHECK(p.load == std::floor(p.load));
    CHECK(s.state().low <= 31);
    CHECK(s.state().high >= 32);
    const searched few = search({.start = 1, .least = 1, .most = 8, .whole = true}, knee_at(1.5, 2));
    CHECK(few.state().low == 1);
    CHECK(few.state().high == 2);
}

TEST_CASE("a server that holds its objectives at all loads that may be tried has no upper end") {
    const searched s = search({.start = 8, .most = 32}, knee_at(100, 2));
    CHECK(s.state().low == 32);
    CHECK(std::isinf(s.state().high));
    const searched none = search({.start = 8, .least = 1, .most = 32}, knee_at(0.01, 2));
    CHECK(none.state().low == 0);
    CHECK(none.state().high == 1);
    CHECK(none.probes.size() == 6);
}

TEST_CASE("an end that is not shown goes further out") {
    const searched s = search({.start = 2, .max_probes = 24}, knee_at(2, 1), 0.15);
    REQUIRE(s.has_both());
    CHECK(s.state().low < 2 * std::exp(-0.15));
    CHECK(s.state().high > 2 * std::exp(0.15));
}

TEST_CASE("a probe in which the client did not keep up is repeated once") {
    vector<probe> probes{{.load = 2, .margin = -1, .invalid = true}};
    CHECK(*next_load({.start = 2}, probes) == 2);
    probes.push_back(probes[0]);
    CHECK(!next_load({.start = 2}, probes));
}

TEST_CASE("a load that is shown to hold above one that is shown to miss is not monotone") {
    const vector<probe> probes{{.load = 5, .margin = -1, .shown = carried::holds},
                               {.load = 4, .margin = 1, .shown = carried::misses}};
    CHECK_FALSE(state_of(probes).monotone());
    CHECK(std::isnan(state_of(probes).estimate));
}

TEST_CASE("no search goes beyond its probes") {
    CHECK(search({.start = 2, .max_probes = 7}, knee_at(2, 1), 10).probes.size() == 7);
    for (int most = 7; most <= 16; ++most) {
        const searched s = search({.start = 2, .max_probes = most}, knee_at(2.1, 4));
        CHECK(static_cast<int>(s.probes.size()) <= most);
        CHECK(s.has_both());
    }
}

TEST_CASE("a search from far below never sends much more than the server takes") {
    for (const double off : {1 / 16.0, 0.1, 0.3, 0.7, 0.99})
        for (const server& s : {knee_at(1, 0.4), knee_at(1, 8), bent_at(0.95, 0.2, 10, -0.5)}) {
            const searched all = search({.start = off}, s);
            CHECK(all.has_both());
            for (const probe& p : all.probes) CHECK(p.load <= 2.5);
        }
}

TEST_CASE("the ends of a knee are near each other though the curve below it is flat") {
    for (const double off : {0.1, 0.5, 0.8, 1.2, 1.9}) {
        CAPTURE(off);
        const searched s = search({.start = off}, bent_at(0.95, 0.2, 10, -0.5));
        REQUIRE(s.has_both());
        CHECK(s.state().high / s.state().low < 1.2);
    }
}

TEST_CASE("on noisy servers ends are seldom wrong and mostly shown") {
    const judging_rule rule = [] {
        judging_rule r;
        r.pass_z = 2.413;
        r.fail_z = 2.675;
        return r;
    }();
    generator random(1);
    int low_wrong = 0, high_wrong = 0, both = 0, trends = 0, trials = 0;
    for (const server& s : {knee_at(1, 0.5), knee_at(1, 8), bent_at(0.95, 0.2, 10, -0.5)}) {
        // Where the bent curve crosses 0.
        const double truth = std::fabs(s(1)) < 1e-9 ? 1 : 0.95 * std::exp(0.05);
        for (int trial = 0; trial < 100; ++trial) {
            const search_parameters t{.start = std::exp(1.4 * random.uniform() - 0.7)};
            vector<probe> probes;
            while (const auto next = next_load(t, probes)) {
                const double moved = std::exp(0.02 * random.normal());
                probe p{.load = *next, .margin = s(*next * moved) + 0.02 * random.normal()};
                vector<double> here{p.margin};
                for (const probe& q : probes)
                    if (q.load == p.load) here.push_back(q.margin);
                const interim_analysis l = analysis_of(here, prior_sd, rule);
                if (static_cast<int>(here.size()) >= least_of_an_end)
                    p.shown = l.outcome == verdict::pass   ? carried::holds
                              : l.outcome == verdict::fail ? carried::misses
                                                           : carried::open;
                probes.push_back(p);
            }
            const search_state found = state_of(probes);
            ++trials;
            low_wrong += found.low > truth;
            high_wrong += found.high < truth;
            both += found.has_both();
            trends += trend_of(probes, found).has_value();
        }
    }
    CHECK(low_wrong <= 0.025 * trials);
    CHECK(high_wrong <= 0.025 * trials);
    CHECK(both >= 0.9 * trials);
    CHECK(trends <= 0.02 * trials);
}
