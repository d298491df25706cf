// Which load a search tries next, and what it has shown when it ends.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/capacity/search.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>
#include <vector>

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
    std::vector<probe> probes{};
    search_step end{};
    search_state state() const { return state_of(probes); }
    int of(probe_of part) const {
        int n = 0;
        for (const probe& p : probes) n += p.part == part;
        return n;
    }
};
/// Evidence shows a load after `enough` probes at it, where it is further than `blur` from a margin
/// of 0.
searched search(const search_parameters& t, const server& s, double blur = 0, int enough = 2) {
    searched all;
    for (;;) {
        const search_step next = next_step(t, all.probes);
        all.end = next;
        if (!next.done.empty()) return all;
        REQUIRE(all.probes.size() < 100);
        probe p{next.part, next.load, s(next.load)};
        p.over = std::isinf(p.margin);
        int here = 1;
        for (const probe& q : all.probes) here += q.part == p.part && q.load == p.load;
        const bool measurements = p.part == probe_of::low || p.part == probe_of::high;
        if (measurements && here >= enough && std::abs(p.margin) > blur)
            p.shown = p.margin < 0 ? carried::holds : carried::misses;
        all.probes.push_back(p);
    }
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
                CHECK(s.end.done == "both ends are shown");
                CHECK(s.state().low < capacity);
                CHECK(s.state().high > capacity);
                CHECK(s.state().monotone());
                CHECK(s.probes.size() <= 16);
                CHECK(*s.state().elasticity == doctest::Approx(elasticity));
                CHECK(*s.state().capacity == doctest::Approx(capacity));
            }
}

TEST_CASE("the same probes give the same next load, one by one") {
    const searched s = search({.start = 3}, knee_at(2, 4));
    for (std::size_t n = 0; n < s.probes.size(); ++n) {
        const std::vector<probe> so_far(s.probes.begin(), s.probes.begin() + static_cast<long>(n));
        CHECK(next_step({.start = 3}, so_far).load == s.probes[n].load);
    }
}

TEST_CASE("only probes of the last part are evidence") {
    const searched s = search({.start = 2}, knee_at(2.1, 4));
    for (const probe& p : s.probes)
        if (p.part == probe_of::bracket || p.part == probe_of::refine)
            CHECK(p.shown == carried::open);
    CHECK(s.of(probe_of::low) == 2);
    CHECK(s.of(probe_of::high) == 2);
}

TEST_CASE("a load that outgrows the server is a miss without a size") {
    const searched s = search({.start = 4}, knee_at(10, 0.4, 8));
    CHECK(s.end.done == "both ends are shown");
    CHECK(s.state().low < 8);
    CHECK(s.state().high >= 8);
}

TEST_CASE("users are whole, and the ends can be neighbours") {
    const searched s = search({.start = 20, .least = 1, .most = 256, .whole = true}, knee_at(31.5, 9));
    CHECK(s.end.done == "both ends are shown");
    for (const probe& p : s.probes) CHECK(p.load == std::floor(p.load));
    CHECK(s.state().low <= 31);
    CHECK(s.state().high >= 32);
    const searched few = search({.start = 1, .least = 1, .most = 8, .whole = true}, knee_at(1.5, 2));
    CHECK(few.state().low == 1);
    CHECK(few.state().high == 2);
}

TEST_CASE("a server that holds its objectives at all loads that may be tried has no upper end") {
    const searched s = search({.start = 8, .most = 32}, knee_at(100, 2));
    CHECK(s.end.done == "the highest load that was allowed holds its objectives");
    CHECK(s.state().low == 32);
    CHECK(std::isinf(s.state().high));
    const searched none = search({.start = 8, .least = 1, .most = 32}, knee_at(0.01, 2));
    CHECK(none.end.done == "the lowest load that was allowed misses its objectives");
    CHECK(none.state().low == 0);
    CHECK(none.state().high == 1);
}

TEST_CASE("an end that is not shown goes further out") {
    const searched s = search({.start = 2}, knee_at(2, 1), 0.1);
    CHECK(s.end.done == "both ends are shown");
    CHECK(s.of(probe_of::low) > 3);
    CHECK(s.state().low < 2 * std::exp(-0.1));
}

TEST_CASE("a probe in which the client did not keep up is repeated once") {
    std::vector<probe> probes{{.load = 2, .margin = -1, .invalid = true}};
    CHECK(next_step({.start = 2}, probes).load == 2);
    probes.push_back(probes[0]);
    CHECK(next_step({.start = 2}, probes).done == "the client could not keep up twice in a row");
}

TEST_CASE("a pass that is shown above a miss is told") {
    std::vector<probe> probes{{.part = probe_of::low, .load = 5, .margin = -1, .shown = carried::holds},
                              {.part = probe_of::high, .load = 4, .margin = 1, .shown = carried::misses}};
    CHECK_FALSE(state_of(probes).monotone());
}

TEST_CASE("no search goes beyond its probes") {
    const searched s = search({.start = 2, .max_probes = 7}, knee_at(2, 1), 10);
    CHECK(s.probes.size() == 7);
    CHECK(s.end.done == "7 probes are spent");
}

TEST_CASE("a search from far below never sends much more than the server takes") {
    for (const double off : {1 / 16.0, 0.1, 0.3, 0.7, 0.99})
        for (const server& s : {knee_at(1, 0.4), knee_at(1, 8), bent_at(0.95, 0.2, 10, -0.5)}) {
            const searched all = search({.start = off}, s);
            CHECK(all.end.done == "both ends are shown");
            for (const probe& p : all.probes) CHECK(p.load <= 2);
        }
}

TEST_CASE("the ends of a knee are near each other though the curve below it is flat") {
    for (const double off : {0.1, 0.5, 0.8, 1.2, 1.9}) {
        CAPTURE(off);
        const searched s = search({.start = off}, bent_at(0.95, 0.2, 10, -0.5));
        CHECK(s.end.done == "both ends are shown");
        CHECK(s.state().high / s.state().low < 1.15);
    }
}

TEST_CASE("margins in the wrong order are pooled") {
    const margin_curve c = curve_of({{.load = 1, .margin = -1},
                                     {.load = 2, .margin = 0.5},
                                     {.load = 3, .margin = -0.5},
                                     {.load = 4, .margin = 1}});
    REQUIRE(c.knots.size() == 3);
    CHECK(c.knots[1].y == doctest::Approx(0));
    CHECK(std::exp(c.crosses(0)) == doctest::Approx(std::sqrt(6.0)));
    CHECK(c.crosses(1) == doctest::Approx(std::log(4.0)));
    CHECK(c.crosses(100) == doctest::Approx(std::log(4.0) + 0.5));
    const margin_curve falling =
        curve_of({{.load = 1, .margin = 0.1}, {.load = 2, .margin = -0.1}, {.load = 3, .over = true}});
    CHECK(falling.knots.size() == 2);
}

TEST_CASE("no probe is spent on an end that those left cannot show") {
    for (int most = 1; most < 12; ++most) {
        const searched s = search({.start = 2, .max_probes = most}, knee_at(2.1, 4));
        CHECK(static_cast<int>(s.probes.size()) <= most);
        std::map<double, int> at;
        for (const probe& p : s.probes)
            if (is_measurement(p)) ++at[p.load];
        for (const auto& [load, times] : at) CHECK(times >= 2);
    }
}

TEST_CASE("an interval wider than is wanted is narrowed by the probes that are left") {
    std::vector<probe> probes{{.load = 1, .margin = -0.4}, {.load = 1.5, .margin = 2},
                              {.part = probe_of::refine, .load = 1.2, .margin = 0}};
    for (int i = 0; i < 3; ++i) {
        const bool is_last = i == 2;
        probes.push_back({.part = probe_of::low, .load = 0.7, .margin = -1,
                          .shown = is_last ? carried::holds : carried::open});
        probes.push_back({.part = probe_of::high, .load = 1.4, .margin = 1.5,
                          .shown = is_last ? carried::misses : carried::open});
    }
    const search_step next = next_step({.start = 1}, probes);
    CHECK(next.done.empty());
    CHECK(next.part == probe_of::low);
    CHECK(next.load > 0.7);
    CHECK(next.load < 1.2);
    CHECK(next_step({.start = 1, .max_probes = 10}, probes).done == "both ends are shown");
}

TEST_CASE("on noisy servers ends are seldom wrong and mostly shown") {
    const judging_rule rule = [] {
        judging_rule r;
        r.pass_z = 2.413;
        r.fail_z = 2.675;
        return r;
    }();
    generator random(1);
    int low_wrong = 0, high_wrong = 0, both = 0, trials = 0;
    for (const server& s : {knee_at(1, 0.5), knee_at(1, 8), bent_at(0.95, 0.2, 10, -0.5)}) {
        for (int trial = 0; trial < 40; ++trial) {
            const search_parameters t{.start = std::exp(1.4 * random.uniform() - 0.7)};
            std::vector<probe> probes;
            std::map<double, std::vector<double>> at;
            for (;;) {
                const search_step next = next_step(t, probes);
                if (!next.done.empty()) break;
                const double moved = std::exp(0.02 * random.normal());
                probe p{next.part, next.load, s(next.load * moved) + 0.02 * random.normal()};
                if (is_measurement(p)) {
                    std::vector<double>& here = at[p.load];
                    here.push_back(p.margin);
                    const interim_analysis l = analysis_of(here, prior_sd, rule);
                    if (here.size() >= 2 && l.outcome == verdict::pass) p.shown = carried::holds;
                    if (here.size() >= 3 && l.outcome == verdict::fail) p.shown = carried::misses;
                }
                probes.push_back(p);
            }
            // Where the bent curve crosses 0.
            const double truth = s(1) < 1e-9 && s(1) > -1e-9 ? 1 : 0.95 * std::exp(0.05);
            const search_state found = state_of(probes);
            ++trials;
            low_wrong += found.low > truth;
            high_wrong += found.high < truth;
            both += found.low > 0 && found.high < infinity;
        }
    }
    CHECK(low_wrong <= 0.025 * trials);
    CHECK(high_wrong <= 0.025 * trials);
    CHECK(both >= 0.9 * trials);
}
