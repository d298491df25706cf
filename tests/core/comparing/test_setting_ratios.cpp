// Settings beside each other: turns, ratios, what differs significantly and which is best.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "extensions/compare/core/settings.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

const statistic_data ttft_mean = mean(ttft).data;
const statistic_data throughput =
    make_statistic(statistic_kind::value, metric_id::output_throughput, 0);

/// Rounds of settings with these true values and this noise; what a round does to all is drawn too.
vector<values_in_rounds> drawn(const vector<double>& truth, double noise,
                               std::size_t rounds, generator& random) {
    vector<values_in_rounds> all(truth.size());
    for (std::size_t r = 0; r < rounds; ++r) {
        const double shared = 0.1 * random.normal();
        for (std::size_t i = 0; i < truth.size(); ++i)
            all[i].measured.push_back(truth[i] * std::exp(shared + noise * random.normal()));
    }
    return all;
}
/// In how many of `trials` any two differ significantly.
double significant_fraction(const vector<double>& truth, double noise, std::size_t rounds,
                            int trials) {
    generator random(20260801);
    int reported = 0;
    for (int i = 0; i < trials; ++i) {
        const compared_statistic c =
            compared(ttft_mean, drawn(truth, noise, rounds, random), prior_sd);
        reported += std::any_of(c.pairs.begin(), c.pairs.end(),
                                [](const setting_ratio& r) { return r.significant(); });
    }
    return static_cast<double>(reported) / trials;
}
vector<values_in_rounds> steady(const vector<double>& values, std::size_t rounds = 4) {
    vector<values_in_rounds> all;
    for (const double v : values)
        all.push_back({.measured = vector<double>(rounds, v)});
    return all;
}

}  // namespace

TEST_CASE("every setting has one turn in a round, and an even drift hits all alike") {
    for (const std::size_t n : {2u, 3u, 5u, 8u}) {
        vector<std::size_t> places(n);
        for (int round = 0; round < 4; ++round) {
            vector<std::size_t> turns = turns_of_round(n, round);
            for (std::size_t i = 0; i < n; ++i)
                places[turns[i]] += static_cast<std::size_t>(round) * n + i;
            std::sort(turns.begin(), turns.end());
            for (std::size_t i = 0; i < n; ++i) CHECK(turns[i] == i);
        }
        CAPTURE(n);
        CHECK(std::count(places.begin(), places.end(), places[0]) == static_cast<long>(n));
    }
    CHECK(turns_of_round(3, 0).front() == 0);
    CHECK(turns_of_round(3, 1).front() == 2);
    CHECK(turns_of_round(3, 2).front() == 1);  // after both directions another one begins
}

TEST_CASE("settings that are alike differ significantly in 5 percent of the comparisons at most") {
    // On a quiet machine hardly ever, since more noise is believed of it; on a noisy one at the
    // level, which is that of all pairs together. 1500 trials at 5 % spread by 0.56 %.
    CHECK(significant_fraction({1, 1}, 0.02, 4, 1500) < 0.01);
    CHECK(significant_fraction({1, 1}, 0.06, 4, 1500) < 0.05 + 3 * 0.0056);
    CHECK(significant_fraction({1, 1, 1}, 0.2, 4, 1500) < 0.05 + 3 * 0.0056);
    CHECK(significant_fraction({1, 1}, 0.2, 4, 1500) > 0.03);  // the level is used where noise is known
}

TEST_CASE("a fifth more is nearly always seen at 2 percent of noise") {
    CHECK(significant_fraction({1, 1.2}, 0.02, 4, 500) > 0.98);
    CHECK(significant_fraction({1, 1.2, 1.44}, 0.02, 4, 500) > 0.98);
    CHECK(significant_fraction({1, 1.1}, 0.02, 8, 500) > 0.95);
}

TEST_CASE("what a round does to all settings is no part of a difference") {
    vector<values_in_rounds> all(2);
    for (const double round : {1.0, 3.0, 0.2, 7.0}) {
        all[0].measured.push_back(round);
        all[1].measured.push_back(1.3 * round);
    }
    const compared_statistic c = compared(ttft_mean, all, prior_sd);
    REQUIRE(c.pairs.size() == 1);
    CHECK(c.pairs[0].ratio == doctest::Approx(1.3));
    CHECK(c.pairs[0].significant());
    CHECK(c.is_better(0, 1));
    CHECK_FALSE(c.is_better(1, 0));
}

TEST_CASE("an interval is the one that the formula gives") {
    const vector<double> logs = {0.1, 0.3, 0.2, 0.4};  // wider than what is believed
    vector<values_in_rounds> all(2);
    for (const double l : logs) {
        all[0].measured.push_back(1);
        all[1].measured.push_back(std::exp(l));
    }
    const setting_ratio r = compared(ttft_mean, all, prior_sd).pairs.at(0);
    const double se = std::sqrt(sample_variance(logs) / 4), t = student_t_quantile(0.975, 3);
    CHECK(r.ratio == doctest::Approx(std::exp(0.25)));
    CHECK(r.low == doctest::Approx(std::exp(0.25 - t * se)));
    CHECK(r.high == doctest::Approx(std::exp(0.25 + t * se)));
}

TEST_CASE("rounds of fresh processes that agree show small differences, others do not") {
    const auto ratio_of_rounds = [](bool is_fresh) {
        vector<values_in_rounds> all = steady({1, 1.03});
        for (values_in_rounds& v : all) v.is_fresh = is_fresh;
        return compared(ttft_mean, all, prior_sd).pairs.at(0);
    };
    CHECK(ratio_of_rounds(true).significant());
    CHECK(ratio_of_rounds(true).low == doctest::Approx(1.03 * std::exp(-hidden_by_modes(4, 0.025))));
    CHECK_FALSE(ratio_of_rounds(false).significant());
    // Never without what a machine with two modes may hide.
    vector<values_in_rounds> all = steady({1, 1.01});
    for (values_in_rounds& v : all) v.is_fresh = true;
    CHECK_FALSE(compared(ttft_mean, all, prior_sd).pairs.at(0).significant());
}

TEST_CASE("rounds of a pair that agree while those of all others scatter agree by luck") {
    // The machine is slow for some turns. The first and the last setting do not show it.
    for (const bool is_fresh : {false, true}) {
        vector<values_in_rounds> all(4);
        all[0].measured = {1, 1.001, 1, 1.001};
        all[1].measured = {1, 1.2, 1, 1.2};
        all[2].measured = {1.2, 1, 1.2, 1};
        all[3].measured = {1.1, 1.16, 1.1, 1.16};
        for (values_in_rounds& v : all) v.is_fresh = is_fresh;
        CHECK(compared(ttft_mean, {all[0], all[3]}, prior_sd).pairs.at(0).significant());
        CHECK_FALSE(compared(ttft_mean, all, prior_sd).pair(0, 3)->significant());
        // Others that are as steady take nothing away.
        all[1].measured = all[2].measured = {1.3, 1.301, 1.3, 1.301};
        CHECK(compared(ttft_mean, all, prior_sd).pair(0, 3)->significant());
    }
    // One noisy setting takes nothing away from pairs that are shown to spread less.
    vector<values_in_rounds> one_noisy = steady({1, 1.2, 1.5, 1});
    one_noisy[3].measured = {0.6, 1.5, 0.7, 1.4};
    CHECK(compared(ttft_mean, one_noisy, prior_sd).pair(0, 1)->significant());
    CHECK_FALSE(compared(ttft_mean, one_noisy, prior_sd).pair(0, 3)->significant());
    vector<values_in_rounds> steady_ones = steady({1, 1.03, 2});
    for (values_in_rounds& v : steady_ones) v.is_fresh = true;
    CHECK(compared(ttft_mean, steady_ones, prior_sd).pair(0, 1)->significant());
}

TEST_CASE("the order of the settings changes nothing but the direction of ratios") {
    generator random(7);
    const vector<values_in_rounds> all = drawn({1, 1.05, 1.4}, 0.05, 5, random);
    const compared_statistic c = compared(ttft_mean, all, prior_sd);
    const compared_statistic back =
        compared(ttft_mean, {all[2], all[1], all[0]}, prior_sd);
    for (std::size_t a = 0; a < 3; ++a)
        for (std::size_t b = a + 1; b < 3; ++b) {
            const setting_ratio &r = *c.pair(a, b), &s = *back.pair(2 - a, 2 - b);
            CHECK(r.ratio * s.ratio == doctest::Approx(1));
            CHECK(r.low * s.high == doctest::Approx(1));
            CHECK(r.significant() == s.significant());
            CHECK(c.is_better(a, b) == back.is_better(2 - a, 2 - b));
        }
}

TEST_CASE("best is what differs significantly from every other, on the good side") {
    const compared_statistic one = compared(ttft_mean, steady({1, 1.5, 1.51}), prior_sd);
    REQUIRE(one.best());
    CHECK(*one.best() == 0);
    CHECK_FALSE(one.pair(1, 2)->significant());
    CHECK_FALSE(compared(ttft_mean, steady({1, 1.01, 2}), prior_sd).best());
    CHECK_FALSE(compared(ttft_mean, steady({1, 1}), prior_sd).best());
    // More is better of a throughput.
    CHECK(compared(throughput, steady({1, 1.5, 2}), prior_sd).best() == 2u);
}

TEST_CASE("a setting with a fault is compared with none and keeps none from being best") {
    vector<values_in_rounds> all = steady({2, 1, 3});
    all[1].fault = "failed requests reach it in 1 of 4 rounds";
    const compared_statistic c = compared(ttft_mean, all, prior_sd);
    CHECK(c.pairs.size() == 1);
    CHECK(c.pair(0, 1) == nullptr);
    CHECK(c.best() == 0u);
    CHECK(std::string(c.settings[1].fault) == all[1].fault);
    // It does not make the rest easier to tell apart.
    const setting_ratio kept = *compared(ttft_mean, steady({2, 1, 3}), prior_sd).pair(0, 2);
    CHECK(c.pair(0, 2)->high == doctest::Approx(kept.high));
}

TEST_CASE("one round compares nothing") {
    const compared_statistic c = compared(ttft_mean, steady({1, 9}, 1), prior_sd);
    CHECK(c.pairs.empty());
    CHECK(c.settings[0].fault == "it was measured in 1 round, it takes 2");
}

TEST_CASE("a difference that the client's delays can have made is not significant") {
    vector<values_in_rounds> all = steady({1, 1.5});
    all[0].pessimistic = all[0].optimistic = all[0].measured;
    all[1].pessimistic = all[1].measured;
    all[1].optimistic = {1, 1, 1, 1};  // all of it may have been the client's
    const setting_ratio r = compared(ttft_mean, all, prior_sd).pairs.at(0);
    CHECK(r.low > 1);
    CHECK(r.may_be_the_clients);
    CHECK_FALSE(r.significant());
    all[1].optimistic = {1.45, 1.45, 1.45, 1.45};
    CHECK(compared(ttft_mean, all, prior_sd).pairs.at(0).significant());
}
