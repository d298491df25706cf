// A run held against a history: what is learned from runs, bounds, looks, what holds a verdict.
#include "llmbench.hpp"
#include "extensions/history/core/learned.hpp"
#include "core/judging/rule.hpp"

#include <cmath>

using namespace llmbench;
using namespace llmbench::detail;

namespace {
const double line = std::log(1.05);

/// Runs of three repeats with these means, and a standard deviation within a run.
vector<run_level> runs(const vector<double>& means, double sd = 0.01) {
    vector<run_level> out;
    for (const double m : means) out.push_back({out.size(), m, sd * sd, 3});
    return out;
}
learned_history learned(const vector<double>& means, double reported = 0,
                        run_on who = run_on::branch, double sd = 0.01) {
    const auto all = runs(means, sd);
    return learned_from(all, {{0, all.size()}}, who, reported);
}
vector<double> steady(std::size_t n, double sd = 0.01) {  // in turns above and below 0
    vector<double> out;
    for (std::size_t i = 0; i < n; ++i) out.push_back(i % 2 == 0 ? sd : -sd);
    return out;
}
history_analysis looked(const learned_history& h, const vector<double>& run) {
    return analysis_against(h, run, line, history_analysis_kind::whole);
}
}  // namespace

TEST_CASE("what a few runs teach is what is worked out by hand") {
    const learned_history h = learned({0.00, 0.01, 0.02});
    CHECK(h.runs == 3);
    CHECK(h.repeats.variance == doctest::Approx(0.0001));
    CHECK(h.repeats.df == 6);
    CHECK(h.repeats.repeats == doctest::Approx(3));
    CHECK(h.spread.sd == doctest::Approx(0.01));
    CHECK(h.spread.df == 2);
    CHECK(h.level.mean == doctest::Approx(0.01));
    CHECK(h.level.runs == 3);
    CHECK(h.is_enough());
    CHECK_FALSE(learned({0.00, 0.01}).is_enough());
    CHECK_FALSE(learned({}).is_enough());
}

TEST_CASE("with a run's noise in a run, its bounds are the exact predictive ones") {
    const learned_history h = learned({0.00, 0.01, 0.02});
    const history_analysis l = looked(h, {0.010, 0.011, 0.009});
    const double reach = 0.01 * std::sqrt(1 + 1.0 / 3);
    CHECK(l.distance == doctest::Approx(-line));
    CHECK(l.pass_bound ==
          doctest::Approx(-line + student_t_quantile(normal_cdf(1.645), 2) * reach));
    CHECK(l.fail_bound ==
          doctest::Approx(-line - student_t_quantile(normal_cdf(2.326), 2) * reach));
    CHECK(l.outcome == verdict::pass);
}

TEST_CASE("a run noisier than the history pays for it with its own degrees of freedom") {
    const learned_history h = learned(steady(10));
    const vector<double> run = {-0.06, 0.0, 0.06};  // variance 0.0036
    const history_analysis l = looked(h, run);
    const double between = std::pow(student_t_quantile(normal_cdf(1.645), h.spread.df), 2) *
                       h.spread.sd * h.spread.sd * 1.1;
    const double own = std::pow(student_t_quantile(normal_cdf(1.645), 2), 2) *
                       (0.0036 - 0.0001) / 3;
    CHECK(l.is_noisier);
    CHECK(l.pass_bound == doctest::Approx(-line + std::sqrt(between + own)));
    CHECK_FALSE(looked(h, {-0.01, 0, 0.01}).is_noisier);
}

TEST_CASE("a step changes the level, not the machine") {
    const auto all = runs({0, 0.01, 0.02, 1.00, 1.01, 1.02});
    const learned_history h = learned_from(all, {{0, 3}, {3, 6}}, run_on::branch);
    CHECK(h.spread.sd == doctest::Approx(0.01));
    CHECK(h.spread.df == 4);
    CHECK(h.level.mean == doctest::Approx(1.01));
    // Main is held against the level that was accepted.
    const history_segment regression{3, 6, 4, false};
    CHECK(learned_from(all, {{0, 3}, regression}, run_on::main).level.mean == doctest::Approx(0.01));
    CHECK(learned_from(all, {{0, 3}, regression}, run_on::branch).level.mean == doctest::Approx(1.01));
}

TEST_CASE("runs never differ by less than two programs on a machine do") {
    CHECK(learned(vector<double>(10, 0.0)).spread.sd == least_run_sd);
}

TEST_CASE("a pass may come after two repeats, a fail after as many as a run has") {
    const learned_history h = learned(steady(10, 0.002));
    CHECK(judged_against(h, {0, 0.001}, line, run_on::branch).outcome == verdict::pass);
    CHECK(judged_against(h, {1, 1.001}, line, run_on::branch).outcome == verdict::inconclusive);
    const history_analysis l = judged_against(h, {1, 1.001, 1}, line, run_on::branch);
    CHECK(l.outcome == verdict::fail);
    CHECK(l.repeats == 3);
    // A run that becomes a part of the history looks once, at the end.
    CHECK(judged_against(h, {0, 0.001, 0}, line, run_on::main).repeats == 3);
}

TEST_CASE("more repeats than a run has are looked at where the run was noisier, only") {
    const learned_history h = learned(steady(30));
    const vector<double> open = {line - 0.01, line, line + 0.01, -9, -9};
    CHECK(judged_against(h, open, line, run_on::branch).repeats == 3);
    const vector<double> noisy = {line - 0.06, line, line + 0.06, line, line};
    CHECK(judged_against(h, noisy, line, run_on::branch).repeats == 5);
}

TEST_CASE("where main moved in its last runs, a verdict must hold against these too") {
    vector<double> means = steady(20);
    means.back() = 0.12;  // main is slower since last run
    const learned_history h = learned(means);
    REQUIRE(h.moved.size() >= 1);
    CHECK(h.moved[0].now.runs == 1);
    CHECK(h.moved[0].by == doctest::Approx(0.12).epsilon(0.02));
    const history_analysis same = looked(h, {0.12, 0.121, 0.119});
    CHECK(same.outcome == verdict::inconclusive);
    CHECK(same.withheld == history_hold::main_moved);
    CHECK(looked(h, {0.5, 0.501, 0.499}).outcome == verdict::fail);
    CHECK(looked(h, {0, 0.001, -0.001}).outcome == verdict::pass);  // a pass does not need them
    // Main's own run is held against what main was.
    CHECK(learned(means, 0, run_on::main).moved.empty());

    means.back() = -0.12;  // quicker: what was as quick as before may be a regression
    CHECK(looked(learned(means), {0, 0.001, -0.001}).withheld == history_hold::main_moved);
}

TEST_CASE("what trouble runs show without a change is no fail") {
    vector<double> means = steady(30);
    means[10] = 0.15;
    const learned_history h = learned(means);
    CHECK(h.spread.trouble == 1);
    CHECK(h.spread.farthest == doctest::Approx(0.16).epsilon(0.1));
    const history_analysis l = looked(h, {0.15, 0.151, 0.149});
    CHECK(l.outcome == verdict::inconclusive);
    CHECK(l.withheld == history_hold::trouble);
    CHECK(looked(h, {0.3, 0.301, 0.299}).outcome == verdict::fail);
    CHECK(learned(steady(30)).spread.trouble == 0);
    means[10] = -0.15;  // quick runs hold no fail
    CHECK(learned(means).spread.farthest == 0);
}

TEST_CASE("a given spread makes a baseline of one run, and counts until ten") {
    const learned_history h = learned({0}, 0.03);
    CHECK(h.is_enough());
    CHECK(h.given_sd == 0.03);
    CHECK(h.spread.sd == doctest::Approx(0.03));
    CHECK(h.spread.df == given_df);
    // (4 * 0.03^2 + 2 * 0.01^2) / 6
    CHECK(learned({0, 0.01, 0.02}, 0.03).spread.sd == doctest::Approx(std::sqrt(0.0038 / 6)));
    CHECK(learned(steady(10), 0.03).given_sd == 0);
    CHECK(learned(steady(10), 0.03).spread.sd == learned(steady(10)).spread.sd);

    learned_history narrow = learned(steady(9, 0.001), 0.03);
    narrow.spread.sd = 0.001;
    const history_analysis l = looked(narrow, {line + 0.05, line + 0.05, line + 0.05});
    CHECK(l.withheld == history_hold::given);
    CHECK(looked(narrow, {line + 0.07, line + 0.07, line + 0.07}).outcome == verdict::fail);
}

TEST_CASE("dependent runs widen the bounds and weigh less") {
    vector<double> slow, quick = steady(30);
    for (int i = 0; i < 30; ++i) slow.push_back(i / 8 % 2 == 0 ? 0.01 : -0.01);
    const learned_history h = learned(slow), other = learned(quick);
    CHECK(h.spread.sd > 1.1 * other.spread.sd);
    CHECK(h.spread.df < other.spread.df);
    CHECK(h.spread.df >= 0.3 * 29);
}

TEST_CASE("the quantiles are those of tables") {
    CHECK(f_quantile_80(2, 60) == doctest::Approx(1.65).epsilon(0.005));
    CHECK(chi_square_20(20) == doctest::Approx(14.578).epsilon(0.005));
    CHECK(chi_square_20(60) == doctest::Approx(50.641).epsilon(0.005));
    CHECK(median_of({3, 1, 2}) == 2);
    CHECK(median_of({4, 1, 3, 2}) == 2.5);
}

TEST_CASE("chances are those of the bounds") {
    const learned_history h = learned(steady(30));
    CHECK(chance_to_pass(h, line) > 0.9);
    CHECK(chance_to_pass(h, 0.0) == doctest::Approx(0.05).epsilon(0.01));
    CHECK(chance_to_find(h, 0.0) == doctest::Approx(0.01).epsilon(0.02));
    CHECK(chance_to_find(h, std::log(1.10)) > 0.99);
}

TEST_CASE("the noise of repeats is believed from 20 degrees of freedom on, if today's is no more") {
    CHECK(prior_sd_of({0.0001, 19, 3}) == 0);
    CHECK(prior_sd_of({0.0001, 60, 3}) == least_prior_sd);
    CHECK(prior_sd_of({0.01, 60, 3}) ==
          doctest::Approx(0.1 * std::sqrt(60 / 50.641)).epsilon(0.01));
    const history_noise known{0.04, 60};
    const interim_analysis calm = analysis_with_history({-0.1, -0.101}, known, {});
    CHECK(calm.prior_df == history_prior_df);
    CHECK(calm.outcome == verdict::pass);
    const interim_analysis noisy = analysis_with_history({-0.2, 0.0, -0.1}, known, {});
    CHECK(noisy.df == analysis_of_repeats({-0.2, 0.0, -0.1}, prior_sd, {}).df);
    CHECK(analysis_with_history({-0.1, -0.101}, {}, {}).df ==
          analysis_of_repeats({-0.1, -0.101}, prior_sd, {}).df);
}
