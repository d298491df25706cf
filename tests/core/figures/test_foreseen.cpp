// What other runs of a gate would find, by what one saw: held against many runs that are drawn.
#include "core/base/random.hpp"
#include "extensions/simulated/core/foreseen.hpp"
#include "core/described/described.hpp"
#include "core/judging/judge.hpp"

#include "support/verdicts.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace verdicts;

namespace {

/// Five repeats with this ttft on the average, and this noise of each.
vector<double> drawn_repeats(generator& random, double ms, double sd) {
    vector<double> all;
    for (int i = 0; i < last_analysis; ++i) all.push_back(ms * std::exp(sd * random.normal()));
    return all;
}
struct fractions {
    double failed = 0, inconclusive = 0;
};
fractions of_runs(double ms, double sd) {
    constexpr int runs = 400;
    generator random(5, 1);
    fractions s;
    for (int i = 0; i < runs; ++i) {
        const slo_verdict v = verdict_on(drawn_repeats(random, ms, sd));
        s.failed += v.outcome == verdict::fail;
        s.inconclusive += v.outcome == verdict::inconclusive;
    }
    return {s.failed / runs, s.inconclusive / runs};
}

}  // namespace

TEST_CASE("a miss of the size that is foreseen is shown in nine runs of ten") {
    const slo_verdict v = verdict_on({80, 80, 80});
    const foreseen f = foreseen_of(v, judging_rule{}, {0.04});
    REQUIRE(f.is_known());
    const double ms = f.shows_from * 1e3;
    CAPTURE(ms);
    CHECK(ms > 102);
    CHECK(ms < 125);
    CHECK(of_runs(ms, prior_sd).failed > 0.85);
    CHECK(of_runs(100 + (ms - 100) / 2, prior_sd).failed < 0.75);
    CHECK(f.inconclusive < 0.01);
}

TEST_CASE("how many runs are inconclusive is foreseen near the limit") {
    for (const double ms : {90.0, 96.0, 99.0, 103.0}) {
        CAPTURE(ms);
        const foreseen f = foreseen_of(verdict_on({ms, ms, ms}), judging_rule{}, {prior_sd});
        CHECK(f.inconclusive == doctest::Approx(of_runs(ms, prior_sd).inconclusive).epsilon(0.2));
    }
}

TEST_CASE("noise that earlier repeats had widens what is foreseen") {
    const slo_verdict v = verdict_on({90, 90, 90});
    const foreseen quiet = foreseen_of(v, judging_rule{}, {0}),
                   noisy = foreseen_of(v, judging_rule{}, {0.2});
    CHECK(noisy.shows_from > quiet.shows_from);
    CHECK(noisy.inconclusive > quiet.inconclusive);
    const auto noise = noise_of_repeats({{"a", {1, std::exp(0.2)}}, {"b", {3}}, {"c", {0, -1, 2}}});
    CHECK(noise.size() == 1);
    CHECK(noise.at("a") == doctest::Approx(0.2 / std::sqrt(2.0)));
}

TEST_CASE("what a quiet engine leaves open near a limit is little, and measured noise is not added to itself") {
    const slo_verdict near = verdict_on({95.9, 96.0, 96.1});
    CHECK(foreseen_of(near, judging_rule{}, {0}).inconclusive < 0.01);
    CHECK(foreseen_of(near, judging_rule{}, {0.04}).inconclusive > 0.3);
    const slo_verdict spread = verdict_on({80, 90, 101});
    CHECK(foreseen_of(spread, judging_rule{}, {0, true}).shows_from <
          foreseen_of(spread, judging_rule{}, {0}).shows_from);
}

TEST_CASE("of a stored baseline nothing is shown below what two days may differ by") {
    const measurement m = against_stored({100, 100, 100}, {0.1, 0.1, 0.1}, 0.05);
    const slo s = mean(ttft) <= 1.01 * baseline;
    const slo_verdict v = described(walked(by_values(columns_of(m, s), m, s)));
    const foreseen f = foreseen_of(v, judging_rule{});
    CHECK(f.shows_from > 1.01 * 1.1);
}

TEST_CASE("pairs of fresh processes are foreseen to show less than pairs of processes that last") {
    const slo_verdict v = verdict_on_pairs({1, 1, 1, 1}, mean(ttft) <= 1.02 * baseline);
    judging_rule rule = rule_of({}, first_pair_analysis, last_pair_analysis, 1);
    const double of_lasting = foreseen_of(v, rule, {0.002}).shows_from;
    rule.pairs_are_fresh = true;
    CHECK(of_lasting > 1.07);
    CHECK(foreseen_of(v, rule, {0.002}).shows_from < 1.04);
    CHECK(foreseen_of(v, rule, {0.002}).inconclusive < 0.01);
}

TEST_CASE("shares are foreseen by their counts") {
    const slo_verdict none = verdict_on_failures(200, 0, error_rate <= 1_pct, 3);
    const foreseen f = foreseen_of(none, judging_rule{});
    REQUIRE(f.is_known());
    CHECK(f.shows_from > 0.01);
    CHECK(f.shows_from < 0.1);
    // 2,000 requests of which none failed pass any limit, 20 only that of the guard, which observes.
    CHECK(foreseen_of(verdict_on_failures(2000, 0, error_rate <= 1_pct, 2), judging_rule{})
              .inconclusive < 0.01);
    CHECK(foreseen_of(verdict_on_failures(20, 0, error_rate <= 0.9_pct, 2), judging_rule{})
              .inconclusive > 0.9);
    CHECK(foreseen_of(verdict_on_failures(20, 0, error_rate <= 2_pct, 2), judging_rule{})
              .inconclusive < 0.01);
    slo_verdict guard = verdict_on_failures(20, 0, error_rate <= 1_pct, 2);
    guard.objective.at.line = 0;
    CHECK(foreseen_of(guard, judging_rule{}).inconclusive < 0.01);
    const foreseen near = foreseen_of(verdict_on_failures(200, 2, error_rate <= 0.9_pct, 2),
                                      judging_rule{});
    CHECK(near.inconclusive > 0.8);
}

TEST_CASE("nothing is foreseen of what has no value") {
    CHECK_FALSE(foreseen_of(described(undecided(mean(ttft) <= 1_s)), judging_rule{}).is_known());
    CHECK(foreseen_text(described(undecided(mean(ttft) <= 1_s)), {}) == "");
}

TEST_CASE("what is foreseen of a load at once is in the limit's unit, by the interval of its estimate") {
    slo_verdict v;
    v.objective = mean(tpot) <= 1.05 * baseline;
    v.limit = 1.05;
    v.estimate = {1.01, 0.98, 1.04};
    vector<named_values> inputs(3);
    inputs[0].name = "slice_parts";  // in seconds
    inputs[1].name = "standard_error";
    inputs[1].values = types::list<double>(vector<double>{0.0002});
    inputs[2].name = "df";
    inputs[2].values = types::list<double>(vector<double>{20});
    v.inputs = types::list<named_values>(inputs);
    const foreseen f = foreseen_of(v, judging_rule{});
    REQUIRE(f.is_known());
    CHECK(f.shows_from > 1.05 + 0.03);
    CHECK(f.shows_from < 1.05 + 0.05);
    v.estimate.low = -std::numeric_limits<double>::infinity();
    CHECK(!foreseen_of(v, judging_rule{}).is_known());
}
