// Differences of fractions against a live baseline, in pairs, and against a stored run: errors, goodput,
// right answers.
#include "llmbench.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/fraction_pairs.hpp"
#include "support/verdicts.hpp"
#include "extensions/answers/api.hpp"

#include <cmath>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {

measurement in_pairs(vector<repeat_data> candidate, vector<repeat_data> baseline, const slo& s) {
    measurement m = measured(std::move(candidate), {s});
    for (repeat_data& d : baseline) d.variant = run_variant::baseline;
    m.baseline = std::move(baseline);
    return m;
}
/// So many of 500 requests fail in each of four repeats.
slo_verdict verdict_on_errors(int mine, int others, const slo& s) {
    return judged(in_pairs(vector<repeat_data>(4, repeat_with_failures(500, mine)),
                           vector<repeat_data>(4, repeat_with_failures(500, others)), s), s);
}
/// 1000 questions in four repeats; the first `only_mine` only one variant answers rightly, the next
/// `only_other` only the other one, 100 nobody.
slo_verdict verdict_on_answers(int only_mine, int only_other, const slo& s, int repeats = 4) {
    vector<repeat_data> mine, other;
    for (int k = 0; k < repeats; ++k)
        for (auto* to : {&mine, &other}) {
            vector<request> requests;
            for (int i = 0; i < 1000; ++i) requests.push_back(answered(10.0 * i, 50));
            repeat_data d = repeat_of(requests);
            for (int i = 0; i < 1000; ++i) {
                record& r = d.records[static_cast<std::size_t>(i)];
                const bool is_own = i < only_mine, is_others = !is_own && i < only_mine + only_other;
                r.conversation = i * 7 % 1000;
                r.right = is_own ? to == &mine : is_others ? to == &other : i < 900;
                r.graded = "7";
            }
            to->push_back(d);
        }
    return judged(in_pairs(std::move(mine), std::move(other), s), s);
}
fraction_pair answers(double only_mine, double only_other, double n) {
    return {.mine = 0, .other = 0, .trials = n, .other_trials = n, .is_paired = true,
            .only_mine = only_mine, .only_other = only_other};
}

/// Held against a stored run of five repeats with these counts each.
measurement against_counts(vector<repeat_data> candidate, const slo& s, const vector<kept_counts>& kept,
                           double day_sd = 0.05) {
    measurement m = measured(std::move(candidate), {s});
    m.stored.file = "b.json";
    m.stored.day_sd = day_sd;
    for (const kept_counts& c : kept) {
        const double missed = c.misses / c.requests;
        m.stored.values[str(s.statistic.name)].push_back(s.at_most ? missed : 1 - missed);
        for (const count_field& f : count_fields)
            m.stored.values[f.of(s.statistic)].push_back(c.*f.count);
    }
    return m;
}
/// So many of 500 requests fail in each of five repeats, and of five stored ones.
slo_verdict verdict_on_stored(int mine, int stored, const slo& s, double day_sd = 0.05) {
    const kept_counts each{static_cast<double>(stored), 500, 1};
    return judged(against_counts(vector<repeat_data>(5, repeat_with_failures(500, mine)), s,
                                 vector<kept_counts>(5, each), day_sd), s);
}

/// 200 questions in each of five repeats, of which so many are answered wrongly, and a stored run
/// that has so many wrong.
slo_verdict verdict_on_wrong(int mine, int stored, const slo& s) {
    vector<request> requests;
    for (int i = 0; i < 200; ++i) requests.push_back(answered(10.0 * i, 50));
    repeat_data d = repeat_of(requests);
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        d.records[i].conversation = static_cast<long long>(i);
        d.records[i].right = i * 7 % 200 >= static_cast<std::size_t>(mine);
        d.records[i].graded = "7";
    }
    const kept_counts each{static_cast<double>(stored), 200, 1};
    return judged(against_counts(vector<repeat_data>(5, d), s, vector<kept_counts>(5, each)), s);
}

}  // namespace

TEST_CASE("the score of paired answers is the published one") {
    // Tango (1998), table III: 44 pairs, 0 and 1 discordant; -0.118 to 0.061 at 95 %. Inverted here.
    const fraction_pair p = answers(0, 1 / 44.0, 44);
    const auto z = [&](double d) {
        return (-1 / 44.0 - d) / std::sqrt(variance_if_paired(p, d) / 44);
    };
    CHECK(z(0.061) == doctest::Approx(-1.96).epsilon(0.02));
    CHECK(variance_if_paired(answers(0, 0, 100), -0.01) == doctest::Approx(0.01 - 0.0001));
    CHECK(variance_if_paired(answers(0, 0, 100), 0.01) == doctest::Approx(0.01 - 0.0001));
}

TEST_CASE("two fractions at a limit are the likeliest ones") {
    // None failed of both: the candidate's rate is then the limit, and the baseline's is 0.
    const fraction_pair none{.mine = 0, .other = 0, .trials = 400, .other_trials = 400};
    CHECK(variance_if_apart(none, 1, 0.01) == doctest::Approx(0.01 * 0.99 / 400));
    // At no difference, that of both together.
    const fraction_pair some{.mine = 0.04, .other = 0.02, .trials = 400, .other_trials = 400};
    CHECK(variance_if_apart(some, 1, 1e-9) == doctest::Approx(0.03 * 0.97 / 200).epsilon(0.001));
}

TEST_CASE("an error rate may be higher by so much than the baseline's") {
    const slo s = error_rate <= baseline + 1_pct;
    CHECK(verdict_on_errors(1, 1, s).outcome == verdict::pass);
    CHECK(verdict_on_errors(0, 0, s).outcome == verdict::pass);
    CHECK(verdict_on_errors(20, 0, s).outcome == verdict::fail);
    CHECK(verdict_on_errors(5, 0, s).outcome == verdict::inconclusive);
    const slo_verdict v = verdict_on_errors(3, 1, s);
    CHECK(v.measured == about(0.004));
    CHECK(v.numerator == about(0.006));
    CHECK(v.denominator == about(0.002));
    CHECK(str(v.method) == "paired t");
    CHECK(input(v, "independent") == about(2000));
    CHECK(v.estimate.low < 0.004);
    CHECK(v.estimate.high < 0.01);
}

TEST_CASE("few requests show no difference of a fraction, and few pairs decide nothing") {
    const slo s = error_rate <= baseline + 0.5_pct;
    CHECK(judged(in_pairs(vector<repeat_data>(4, repeat_with_failures(50, 0)),
                          vector<repeat_data>(4, repeat_with_failures(50, 0)), s), s).outcome ==
          verdict::inconclusive);
    CHECK(judged(in_pairs(vector<repeat_data>(3, repeat_with_failures(5000, 0)),
                          vector<repeat_data>(3, repeat_with_failures(5000, 0)), s), s).outcome ==
          verdict::inconclusive);
}

TEST_CASE("errors that come in some pairs only are judged by the pairs") {
    const slo s = error_rate <= baseline + 1_pct;
    vector<repeat_data> mine(4, repeat_with_failures(500, 0));
    mine[1] = repeat_with_failures(500, 50);
    const slo_verdict v =
        judged(in_pairs(mine, vector<repeat_data>(4, repeat_with_failures(500, 0)), s), s);
    CHECK(v.measured == about(0.025));
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(str(v.method) == "paired t");
}

TEST_CASE("right answers are compared question by question") {
    const slo s = accuracy >= baseline - 1_pct;
    CHECK(verdict_on_answers(0, 0, s).outcome == verdict::pass);
    CHECK(verdict_on_answers(4, 4, s).outcome == verdict::pass);
    CHECK(verdict_on_answers(0, 10, s).outcome == verdict::inconclusive);
    CHECK(verdict_on_answers(0, 40, s).outcome == verdict::fail);
    // As many answers changed in both directions leave it open.
    CHECK(verdict_on_answers(60, 60, s).outcome == verdict::inconclusive);
    const slo_verdict v = verdict_on_answers(1, 3, s);
    CHECK(v.measured == about(-0.002));
    CHECK(str(v.method) == "paired t");
    CHECK(input(v, "only_candidate_right") == about(0.001));
    CHECK(input(v, "only_baseline_right") == about(0.003));
    // The same questions again are no new ones.
    CHECK(input(v, "independent") == about(1000).epsilon(0.01));
    CHECK(input(verdict_on_answers(1, 3, s, 8), "independent") == about(1000).epsilon(0.01));
}

// ---- against a stored run

TEST_CASE("an error rate is held against a stored run by the counts of both") {
    const slo s = error_rate <= baseline + 1_pct;
    // Two repeats: 2 of 1000 against 5 of 2500. At the limit the likeliest rates are 1.15 and 0.15 %,
    // so the error is 0.346 points, and 2.12 times that is less than the 1 point to the limit.
    const slo_verdict same = verdict_on_stored(1, 1, s);
    CHECK(same.outcome == verdict::pass);
    CHECK(same.repeats == 2);
    CHECK(same.counted_in == verdict_unit::repeat);
    CHECK(same.measured == doctest::Approx(0).epsilon(1e-12));
    CHECK(same.denominator == about(0.002));
    CHECK(str(same.method) == "against a stored run, t");
    CHECK(input(same, "independent") == about(1000));
    CHECK(input(same, "independent_of_baseline") == about(2500));
    CHECK(input(same, "standard_error") == doctest::Approx(0.00346).epsilon(0.005));
    CHECK(input(same, "day_to_day_sd") == about(0.05 * 0.002));
    // 4 % of 1500 against 0.2 %: 3.8 points, 2.8 above the limit, with an error of 0.514. Two repeats
    // would show it, and fail nothing.
    const slo_verdict worse = verdict_on_stored(20, 1, s);
    CHECK(worse.outcome == verdict::fail);
    CHECK(worse.repeats == 3);
    CHECK(worse.measured == about(0.038));
    CHECK(input(worse, "standard_error") == doctest::Approx(0.00514).epsilon(0.005));
    // At the limit it stays open.
    const slo_verdict close = verdict_on_stored(5, 0, s);
    CHECK(close.outcome == verdict::inconclusive);
    CHECK(close.repeats == 5);
}

TEST_CASE("few requests show no difference from a stored run, however many it had") {
    const slo s = error_rate <= baseline + 1_pct;
    const measurement m = against_counts(vector<repeat_data>(5, repeat_with_failures(50, 0)), s,
                                         vector<kept_counts>(5, kept_counts{0, 500, 1}));
    CHECK(judged(m, s).outcome == verdict::inconclusive);
    // Nor do many against few.
    const measurement other = against_counts(vector<repeat_data>(5, repeat_with_failures(500, 0)),
                                             goodput(ttft <= 1_s) >= baseline + 1_pct,
                                             vector<kept_counts>(2, kept_counts{2, 20, 1}));
    CHECK(judged(other, other.slos[0]).outcome == verdict::inconclusive);
}

TEST_CASE("a fraction of a stored run has the spread between days") {
    const slo s = error_rate <= baseline + 2_pct;
    CHECK(verdict_on_stored(10, 10, s).outcome == verdict::pass);
    // Half of the 2 % between days is an error of a point, which two points are not enough for.
    CHECK(verdict_on_stored(10, 10, s, 0.5).outcome == verdict::inconclusive);
    CHECK(input(verdict_on_stored(10, 10, s, 0.5), "day_to_day_sd") == about(0.01));
}

TEST_CASE("a fraction that is met is judged as the misses that it leaves, on another day as well") {
    const slo of_errors = error_rate <= baseline + 1_pct, of_good = goodput(ttft <= 1_s) >= baseline - 1_pct;
    for (const auto& [mine, stored] : {std::pair{1, 1}, {20, 1}, {5, 0}, {10, 10}, {60, 0}}) {
        CAPTURE(mine);
        const slo_verdict bad = verdict_on_stored(mine, stored, of_errors),
                          good = verdict_on_stored(mine, stored, of_good, 0.005);  // ten times that
        CHECK(good.outcome == bad.outcome);
        CHECK(std::fabs(good.measured + bad.measured) < 1e-9);
        CHECK(std::fabs(good.estimate.low + bad.estimate.high) < 1e-9);
        CHECK(std::fabs(good.estimate.high + bad.estimate.low) < 1e-9);
        CHECK(std::fabs(input(good, "day_to_day_sd") - input(bad, "day_to_day_sd")) < 1e-9);
    }
    CHECK(verdict_on_stored(55, 0, goodput(ttft <= 1_s) >= baseline - 5_pct).outcome == verdict::fail);
    // A day on which all takes 5 % longer is no regression.
    CHECK(input(verdict_on_stored(25, 25, of_good), "day_to_day_sd") == about(0.025));
    CHECK(verdict_on_stored(45, 25, of_good).outcome == verdict::inconclusive);
}

TEST_CASE("right answers pass and fail against a stored run") {
    for (const slo& s : {accuracy >= baseline - 1_pct, accuracy >= 0.98 * baseline}) {
        CAPTURE(str(s.text()));
        CHECK(verdict_on_wrong(0, 0, s).outcome == verdict::pass);
        CHECK(verdict_on_wrong(26, 0, s).outcome == verdict::fail);
        CHECK(verdict_on_wrong(46, 20, s).outcome == verdict::fail);
    }
    CHECK(input(verdict_on_wrong(0, 0, accuracy >= 0.98 * baseline), "day_to_day_sd") == 0);
    // Of 90 % right answers the tenth that is wrong changes, by a twentieth.
    const slo_verdict same = verdict_on_wrong(20, 20, accuracy >= 0.98 * baseline);
    CHECK(same.outcome == verdict::pass);
    CHECK(input(same, "day_to_day_sd") == about(0.05 * 0.1 / 0.9));
    // Where fewer are right than wrong, those change.
    CHECK(input(verdict_on_wrong(160, 160, accuracy >= 0.98 * baseline), "day_to_day_sd") == about(0.05));
}

TEST_CASE("errors of one stored repeat alone are no steady rate to be better than") {
    const slo s = error_rate <= baseline + 0.5_pct;
    const vector<repeat_data> none(5, repeat_with_failures(500, 0));
    vector<kept_counts> kept(5, kept_counts{0, 500, 1});
    kept[2] = {25, 500, 25};  // in a row
    const slo_verdict v = judged(against_counts(none, s, kept), s);
    CHECK(v.outcome == verdict::inconclusive);
    CHECK(v.measured == about(-0.01));
    CHECK(input(v, "independent_of_baseline") == about(100));
    kept[2].effect = 1;  // scattered, and no less of one repeat
    CHECK(judged(against_counts(none, s, kept), s).outcome == verdict::inconclusive);
    CHECK(str(judged(against_counts(none, s, kept), s).method) == "against a stored run, t");
    // The same number in every repeat is one.
    CHECK(judged(against_counts(none, s, vector<kept_counts>(5, kept_counts{5, 500, 1})), s).outcome ==
          verdict::pass);
}

TEST_CASE("goodput is held against a stored run's") {
    const slo s = goodput(ttft <= 60_ms) >= baseline - 5_pct;
    const auto with = [&](int failures) {
        return judged(against_counts(vector<repeat_data>(5, repeat_with_failures(500, failures)), s,
                                     vector<kept_counts>(5, kept_counts{10, 500, 1}), 0.002), s);
    };
    CHECK(with(10).outcome == verdict::pass);
    CHECK(with(10).denominator == about(0.98));
    CHECK(with(100).outcome == verdict::fail);
    CHECK(with(100).measured == about(-0.18));
    CHECK(with(35).outcome == verdict::inconclusive);
}

TEST_CASE("a stored run without counts decides no fraction") {
    const slo s = error_rate <= baseline + 1_pct;
    for (const count_field& lacking : count_fields) {
        measurement m = against_counts(vector<repeat_data>(5, repeat_with_failures(500, 1)), s,
                                       vector<kept_counts>(5, kept_counts{1, 500, 1}));
        m.stored.values[lacking.of(s.statistic)].pop_back();
        CHECK(judged(m, s).outcome == verdict::invalid);
        CHECK(mentions(judged(m, s).reason, "the stored baseline has no finite value of error_rate"));
    }
    const auto kept = [](double misses, double requests, double effect) {
        return counts_kept({{"error_rate", {0.5}}, {"misses(error_rate)", {misses}},
                            {"requests(error_rate)", {requests}},
                            {"design_effect(error_rate)", {effect}}},
                           (error_rate <= 1_pct).statistic).size();
    };
    CHECK(kept(1, 2, 1) == 1);
    for (const double bad : {-1.0, 3.0, not_a_number}) CHECK(kept(bad, 2, 1) == 0);
    for (const double bad : {0.0, 0.5, not_a_number}) CHECK(kept(1, 2, bad) == 0);
    CHECK(kept(0, 0, 1) == 0);
}
