// What each design of a gate finds in a given time, as `llmbench explain --budget` says it.
#include "program/designs.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

using namespace llmbench_program;

namespace {

/// Repeats of 40 s, as in the table of error rates.
design_costs eight_repeats(double sd) {
    design_costs c;
    c.budget_s = 320;
    c.repeat_s = 40;
    c.sd = sd;
    return c;
}
const gate_design& named(const vector<gate_design>& all, const std::string& name) {
    for (const gate_design& d : all)
        if (d.name == name) return d;
    FAIL("no design ", name);
    return all.front();
}

}  // namespace

TEST_CASE("a design finds what the measured error rates say, within a third") {
    struct row {
        double sd, fixed, calibrated, history;
    };
    for (const row& r : {row{0.01, 0.03, 0.03, 0.06}, row{0.03, 0.07, 0.07, 0.16},
                         row{0.06, 0.13, 0.13, 0.35}}) {
        CAPTURE(r.sd);
        const auto all = designs_for(eight_repeats(r.sd), true);
        // Published in whole percent, the first that nine of ten gates find.
        const auto close = [](double is, double published) {
            return is < published * 1.34 && is > published * 0.66 - 0.01;
        };
        CHECK(close(named(all, "a fixed limit").finds, r.fixed));
        CHECK(close(named(all, "calibrated").finds, r.calibrated));
        CHECK(close(named(all, "a history of 30 runs").finds, r.history));
    }
    design_costs five_minutes = eight_repeats(0.03);
    five_minutes.budget_s = 300;
    CHECK(by_fixed_limit(five_minutes).takes == "7 repeats");
    CHECK(std::expm1(both_at_once(five_minutes).finds) == doctest::Approx(0.07));
}

TEST_CASE("the restarts of a design in turns are in its time") {
    design_costs c = eight_repeats(0.01);
    c.budget_s = 15 * 60;
    c.restart_s = 15;
    const gate_design d = pairs_in_turns(c, "in turns", c.restart_s, true);
    CHECK(d.takes == "8 pairs");
    CHECK(std::expm1(d.finds) < 0.04);
    c.restart_s = 300;
    CHECK(std::isinf(pairs_in_turns(c, "in turns", c.restart_s, true).finds));
}

TEST_CASE("switches leave time for more pairs than restarts do") {
    design_costs c = eight_repeats(0.01);
    c.budget_s = 13 * 60;
    CHECK(std::isinf(pairs_in_turns(c, "in turns, restarted", c.restart_s, true).finds));
    const gate_design d = pairs_switched(c);
    CHECK(d.takes == "8 pairs");
    CHECK(std::expm1(d.finds) < 0.06);
    CHECK(d.lacks.find("switched(...)") != d.lacks.npos);
    c.switch_s = 200;
    CHECK(std::isinf(pairs_switched(c).finds));
}

TEST_CASE("the best is first, one that has too few repeats is last, and says what it needs") {
    design_costs c = eight_repeats(0.03);
    c.budget_s = 130;
    const auto all = designs_for(c, false);
    for (std::size_t i = 1; i < all.size(); ++i) CHECK_FALSE(all[i].finds < all[i - 1].finds);
    for (const char* too_few : {"in turns, restarted", "in turns, switched"})
        CHECK(std::isinf(named(all, too_few).finds));
    CHECK(std::isinf(all.back().finds));
    CHECK(named(all, "calibrated").lacks == "LLMBENCH_CALIBRATE=10, once, 6.67 min");
    CHECK(named(all, "a history of 30 runs").lacks.find("30 runs of main") == 0);
    c.is_calibrated = true;
    CHECK(named(designs_for(c, true), "calibrated").lacks == "");
    CHECK(named(designs_for(c, true), "a history of 30 runs").lacks == "");
    c.budget_s = 30;
    for (const gate_design& d : designs_for(c, true)) CHECK(std::isinf(d.finds));
}

TEST_CASE("each calibrated objective has designs of its own, counts and advisories have none") {
    scenario s;
    s.slos = {mean(tpot) <= 25_ms, p90(ttft) <= 300_ms, advisory(p99(ttft) <= 1_s),
              goodput(ttft <= 500_ms) >= 90_pct};
    const design_costs c = eight_repeats(0.03);
    CHECK(designs_of(s, c, {}).size() == 1);
    CHECK(designs_of(s, c, {})[0].statistic == "");
    gate_calibration known;
    known.noise = {{"mean(tpot)", 0.005}, {"p90(ttft)", 0.06}, {"p99(ttft)", 0.2}};
    const auto all = designs_of(s, c, known);
    REQUIRE(all.size() == 2);
    CHECK(all[0].statistic == "mean(tpot)");
    CHECK(all[1].sd == 0.06);
    CHECK(all[0].designs[0].finds < all[1].designs[0].finds);
    s.slos = {goodput(ttft <= 500_ms) >= 90_pct};
    CHECK(designs_of(s, c, known).empty());
}
