// The rule: one look at the repeats, error levels, how many looks, what noise is believed.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/base/statistics.hpp"
#include "core/judging/rule.hpp"
#include "core/described/verdict_text.hpp"
#include "support/verdicts.hpp"

#include <cmath>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

// ---- one look ----------------------------------------------------------------------------------

TEST_CASE("a look has the bounds worked out by hand") {
    // Variance 0.0002, moderated (8 * 0.04^2 + 0.0002) / 9, so sd 0.0380058 at 9 degrees of
    // freedom; t is 2.497410 to pass and 3.675597 to fail.
    const interim_analysis l = analysis_of({-0.10, -0.12}, 0.04);
    CHECK(l.spread == spread_of::moderated);
    CHECK(l.mean == about(-0.11));
    CHECK(l.df == 9);
    CHECK(l.sd == about(0.0380058475033046));
    CHECK(l.pass_bound == about(-0.04288412806627877));
    CHECK(l.fail_bound == about(-0.2087786922230938));
    CHECK(l.detectable == about(0.1290719505935702));
    CHECK(l.outcome == verdict::pass);

    const interim_analysis missed = analysis_of({0.20, 0.22}, 0.04);
    CHECK(missed.pass_bound == about(0.2771158719337212));
    CHECK(missed.fail_bound == about(0.1112213077769062));
    CHECK(missed.outcome == verdict::fail);

    CHECK(analysis_of({0.01, -0.01}, 0.04).outcome == verdict::inconclusive);
}

TEST_CASE("a single value is believed to be as noisy as the prior says") {
    const interim_analysis l = analysis_of({-0.2}, 0.04);
    CHECK(l.df == 8);
    CHECK(l.sd == about(0.04));
    CHECK(l.pass_bound == about(-0.2 + 0.04 * 2.55317824071153204735457));
    CHECK(l.fail_bound == about(-0.2 - 0.04 * 3.81716781061276658576251));
}

TEST_CASE("noisy repeats are judged by their own spread") {
    // A machine of 5 % shows four repeats with a sd over 0.0807 in one run of twenty. This one is
    // 0.1291, believed with 3 degrees of freedom beside 3 of 5 %: (3 * 0.05^2 + 0.05) / 6.
    const interim_analysis l = analysis_of({-0.1, 0.1, 0.0, 0.2}, 0.04);
    CHECK(l.spread == spread_of::noisy);
    CHECK(l.df == 6);
    CHECK(l.sd == about(0.0978945010372561));
    CHECK(l.pass_bound == about(0.1838207818).epsilon(1e-8));
    CHECK(l.fail_bound == about(-0.1603200367).epsilon(1e-8));
    // Half the spread may be chance; all of it is quiet where the prior expects more.
    CHECK(analysis_of({-0.05, 0.05, 0.0, 0.1}, 0.04).spread == spread_of::moderated);
    CHECK(analysis_of({-0.1, 0.1, 0.0, 0.2}, 0.10).spread == spread_of::moderated);
}

TEST_CASE("what is believed may widen what repeats leave open and never narrows it") {
    // Variance 0.0002 with 1 degree of freedom: t is 21.2 to pass, of the score 2.17.
    const judging_rule rule = rule_of({}, 2, 5, 1);
    const interim_analysis two = analysis_of_repeats({-0.10, -0.12}, 0.04, rule);
    CHECK(two.spread == spread_of::measured);
    CHECK(two.df == 1);
    CHECK(two.pass_bound == about(-0.11 + 0.01 * student_t_quantile(normal_cdf(2.17), 1)));
    CHECK(two.outcome == verdict::inconclusive);
    CHECK(analysis_of({-0.10, -0.12}, 0.04, rule).outcome == verdict::pass);
    CHECK(analysis_of_repeats({-0.110, -0.111}, 0.04, rule).spread == spread_of::moderated);
    for (const double sign : {-1.0, 1.0})
        for (const double step : {0.0, 0.005, 0.02, 0.05, 0.1}) {
            CAPTURE(step);
            const double at = 0.3 * sign;
            const vector<double> x = {at, at + step, at - step, at + step};
            const interim_analysis l = analysis_of_repeats(x, 0.04, rule), believed = analysis_of(x, 0.04, rule);
            const double own_se = std::sqrt(sample_variance(x) / 4);
            const bool passes = believed.pass_bound < 0 &&
                                mean_of(x) + student_t_quantile(normal_cdf(2.17), 3) * own_se < 0;
            const bool fails = believed.fail_bound > 0 &&
                               mean_of(x) - student_t_quantile(normal_cdf(2.80), 3) * own_se > 0;
            CHECK((l.outcome == verdict::pass) == passes);
            CHECK((l.outcome == verdict::fail) == fails);
        }
    // A calibration, and a search that measures many loads, trust what they believe.
    judging_rule trusting = rule;
    trusting.trusts_prior = true;
    CHECK(analysis_of_repeats({-0.10, -0.12}, 0.04, trusting).outcome == verdict::pass);
}

TEST_CASE("at its limit a server of any noise passes and fails as seldom as promised") {
    // As a gate looks: at two to five repeats, and at the eighth where it is asked for.
    constexpr int gates = 4000;
    for (const double noise : {0.03, 0.07, 0.12, 0.2}) {
        CAPTURE(noise);
        generator random(5);
        int passed = 0, failed = 0;
        for (int i = 0; i < gates; ++i) {
            const judging_rule rule = rule_of({}, first_analysis, last_analysis, 1);
            vector<double> x = {noise * random.normal()};
            interim_analysis l;
            while (x.size() < last_noisy_analysis && l.outcome == verdict::inconclusive) {
                if (x.size() == last_analysis && l.spread != spread_of::measured) break;
                x.push_back(noise * random.normal());
                if (x.size() > last_analysis && x.size() < last_noisy_analysis) continue;
                l = analysis_of_repeats(x, prior_sd, rule);
                if (x.size() < first_fail && l.outcome == verdict::fail)
                    l.outcome = verdict::inconclusive;
            }
            passed += l.outcome == verdict::pass;
            failed += l.outcome == verdict::fail;
        }
        CHECK(passed < 0.058 * gates);  // 5 % and two standard errors
        CHECK(failed < 0.013 * gates);
    }
}

TEST_CASE("zero and an infinite value have the distances of the least and of the largest value") {
    const slo s = mean(ttft) <= 1_s;  // whose logarithm is 0
    CHECK(distance_of(s, 0, 1) == about(std::log(1e-12)));
    CHECK(distance_of(s, 0.99e-12, 1) == distance_of(s, 0, 1));
    CHECK(distance_of(s, 1.01e-12, 1) > distance_of(s, 0, 1));
    CHECK(distance_of(s, infinity, 1) == about(std::log(1e300)));
    CHECK(distance_of(s, 1.01e300, 1) == distance_of(s, infinity, 1));
    CHECK(distance_of(s, 0.99e300, 1) < distance_of(s, infinity, 1));
    // Of a distance the value is nothing below ten times the least.
    CHECK(at_distance(s, std::log(0.99e-11), 1) == 0);
    CHECK(at_distance(s, std::log(1.01e-11), 1) == about(1.01e-11));
}

// ---- error levels, looks, noise ----------------------------------------------------------------

TEST_CASE("a look at a part of a load needs a score that is higher by its root") {
    const judging_rule whole = looking_early(rule_of({}, 1, 1, 0, 1));
    CHECK(whole.pass_z == early_look_constant(2, 0.05));
    CHECK(whole.fail_z == early_look_constant(2, 0.01));
    CHECK(whole.pass_z < 1.75);  // one analysis has 1.645, Pocock's three have 1.99
    const judging_rule half = whole.at_part(0.5);
    CHECK(half.pass_z == about(whole.pass_z * std::sqrt(2.0)));
    CHECK(half.half_fail_z == about(whole.half_fail_z * std::sqrt(2.0)));
    CHECK(half.at_part(1).fail_z == about(whole.fail_z));
    // Holm's levels and repeated analyses are of the same look.
    CHECK(half.failing_at(0.005).fail_z == about(early_look_constant(2, 0.005) * std::sqrt(2.0)));
    CHECK(half.with_made_again(1).pass_z == about(early_look_constant(2, 0.025) * std::sqrt(2.0)));
    CHECK(rule_of({}, 2, 5).at_part(0.5).pass_z == rule_of({}, 2, 5).pass_z);
}

TEST_CASE("the rule's scores are Pocock's for its looks and levels") {
    const judging_rule usual = rule_of({}, 2, 5);
    CHECK(usual.analyses == 5);
    CHECK(usual.most == 5);
    CHECK(usual.pass_z == 2.12);
    CHECK(usual.fail_z == 2.80);
    CHECK(usual.alone_z == 2.17);  // as for one more look
    CHECK(rule_of({}, 2, 7).alone_z == 2.20);
    CHECK(rule_of({}, 2, 7).alone_z > pocock_constant(7, 0.05));
    CHECK(rule_of({.false_pass = 2.5_pct}, 2, 5).alone_z ==
          pocock_constant(6, rule_of({.false_pass = 2.5_pct}, 2, 5).pass_level));
    // Jennison and Turnbull (2000), table 2.1; a two-sided 0.05 is 0.025 on one side.
    const judging_rule strict =
        rule_of({.false_pass = 2.5_pct, .false_fail = 0.5_pct}, 2, 5);
    CHECK(strict.pass_z == about(2.413).epsilon(0.0003));
    CHECK(strict.fail_z == about(2.986).epsilon(0.0003));
    CHECK(strict.pass_level == about(0.025));
    CHECK(strict.fail_level == about(0.005));
    // Fewer looks are judged as five, more as they are.
    CHECK(rule_of({.false_pass = 2.5_pct}, 2, 3).pass_z == strict.pass_z);
    CHECK(rule_of({}, 4, 8).pass_z == 2.12);
    // One more look, at the last pair of a noisy machine.
    const judging_rule pairs = rule_of({}, 4, 8, 1);
    CHECK(pairs.analyses == 6);
    CHECK(pairs.most == 8);
    CHECK(pairs.pass_z > pocock_constant(6, 0.05));
    CHECK(pairs.pass_z < pocock_constant(6, 0.05) + 0.01);
    CHECK(pairs.fail_z > pocock_constant(6, 0.01));
    CHECK(pairs.fail_z < pocock_constant(6, 0.01) + 0.01);
    const judging_rule many = rule_of({.false_pass = 2.5_pct}, 2, 11);
    CHECK(many.analyses == 10);
    CHECK(many.pass_z == about(2.555).epsilon(0.0003));
}

TEST_CASE("a stricter level takes more to decide") {
    const auto outcome_at = [](double ms, const judging_options& o) {
        measurement m = measured(repeats_with_ttft({ms, ms, ms}));
        m.rule = rule_of(o, 2, 5);
        return judged(m, mean(ttft) <= 100_ms).outcome;
    };
    // Three repeats that agree may hide a mode: 1.26 % inside pass, 1.57 % outside fail.
    CHECK(outcome_at(98.7, {}) == verdict::pass);
    CHECK(outcome_at(98.7, {.false_pass = 1_pct}) == verdict::inconclusive);
    CHECK(outcome_at(98.8, {}) == verdict::inconclusive);
    CHECK(outcome_at(98.8, {.false_pass = 15_pct}) == verdict::pass);
    CHECK(outcome_at(101.6, {}) == verdict::fail);
    CHECK(outcome_at(101.6, {.false_fail = 0.1_pct}) == verdict::inconclusive);
    CHECK(outcome_at(101.5, {}) == verdict::inconclusive);
    CHECK(outcome_at(101.5, {.false_fail = 5_pct}) == verdict::fail);
    // Each level has its own side.
    CHECK(outcome_at(98.7, {.false_fail = 0.1_pct}) == verdict::pass);
    CHECK(outcome_at(101.6, {.false_pass = 0.1_pct}) == verdict::fail);
}

TEST_CASE("a run of an earlier rule is judged by that rule") {
    const auto outcome_at = [](double ms, const judging_options& o) {
        measurement m = measured(repeats_with_ttft({ms, ms, ms}));
        m.rule = rule_of(o, 2, 5);
        m.rule.revision = 1;
        return judged(m, mean(ttft) <= 100_ms).outcome;
    };
    // The third look has sd 0.0358, so standard error 0.0207, and 10 degrees of freedom: 4.94 %
    // inside pass, 7.65 % outside fail.
    CHECK(outcome_at(94.5, {}) == verdict::pass);
    CHECK(outcome_at(94.5, {.false_pass = 1_pct}) == verdict::inconclusive);
    CHECK(outcome_at(95.5, {}) == verdict::inconclusive);
    CHECK(outcome_at(95.5, {.false_pass = 15_pct}) == verdict::pass);
    CHECK(outcome_at(108, {}) == verdict::fail);
    CHECK(outcome_at(108, {.false_fail = 0.1_pct}) == verdict::inconclusive);
    CHECK(outcome_at(107, {}) == verdict::inconclusive);
    CHECK(outcome_at(107, {.false_fail = 5_pct}) == verdict::fail);
    measurement blatant = measured(repeats_with_ttft({250, 250}));
    CHECK(judged(blatant, mean(ttft) <= 100_ms).outcome == verdict::fail);
    blatant.rule.revision = 1;
    CHECK(judged(blatant, mean(ttft) <= 100_ms).outcome == verdict::inconclusive);
}

TEST_CASE("repeats beyond five are looked at where they were planned") {
    // 0.753 % inside: seven repeats that agree hide 0.70 % at most, six 0.79 %.
    measurement m = measured(repeats_with_ttft(vector<double>(12, 99.25)));
    m.rule = rule_of({}, 2, 12);
    const slo_verdict v = judged(m, mean(ttft) <= 100_ms);
    CHECK(v.outcome == verdict::pass);
    CHECK(v.repeats == 7);
    m.rule = {};  // planned were five looks, so that after the fourth only the last one counts
    CHECK(judged(m, mean(ttft) <= 100_ms).repeats == 12);
}

TEST_CASE("a look that is made again after a repeat was set aside is one more look") {
    CHECK(judging_rule().with_made_again(0).pass_z == judging_rule().pass_z);
    const judging_rule again = judging_rule().with_made_again(5);
    CHECK(again.pass_z == about(pocock_constant(10, 0.05)));
    CHECK(again.fail_z == about(pocock_constant(10, 0.01)));
    CHECK(again.half_fail_z == about(pocock_constant(10, 0.005)));
    CHECK(again.failing_at(0.001).fail_z == about(pocock_constant(10, 0.001)));
    CHECK(again.has_analysis_after(4) == judging_rule().has_analysis_after(4));
    int fewer = 0;
    for (double ms = 90; ms < 112; ms += fewer == 0 ? 0.25 : 1) {
        measurement m = measured(repeats_with_ttft({0.99 * ms, 1.01 * ms, ms}),
                                 {mean(ttft) <= 100_ms});
        const verdict once = judge_all(m)[0].outcome;
        m.set_aside = {{run_variant::candidate, 0, "late"}, {run_variant::candidate, 3, "late"},
                       {run_variant::baseline, 3, "late"}};
        const verdict repeated = judge_all(m)[0].outcome;
        CHECK((repeated == once || repeated == verdict::inconclusive));
        fewer += repeated != once;
        // A search judges none that it sets aside.
        for (repeat_data& d : m.candidate) d.load = 4;
        CHECK(judge_all(m)[0].outcome == once);
    }
    CHECK(fewer > 0);
}

TEST_CASE("Holm divides the level by the objectives that are not shown to be missed") {
    // 1.6 % outside is shown at 0.01 (1.57 %), but not at 0.005 (1.66 %).
    const slo barely = mean(ttft) <= 100_ms, clearly = p75(ttft) <= 50_ms, met = p50(e2e) <= 1_s;
    const auto outcomes = [](const vector<slo>& slos, bool holm) {
        measurement m = measured(repeats_with_ttft({101.61, 101.61, 101.61}), slos);
        m.rule = rule_of({.holm = holm}, 2, 5);
        vector<verdict> out;
        for (const slo_verdict& v : judge_all(m)) out.push_back(v.outcome);
        out.pop_back();  // the guard on errors
        return out;
    };
    using enum verdict;
    using list_of = vector<verdict>;
    CHECK(outcomes({barely, met}, false) == list_of{fail, pass});
    CHECK(outcomes({barely, met}, true) == list_of{inconclusive, pass});
    CHECK(outcomes({met, barely}, true) == list_of{pass, inconclusive});
    CHECK(outcomes({barely}, true) == list_of{fail});
    // What is shown at 0.005 leaves 0.01 to the other.
    CHECK(outcomes({barely, clearly}, true) == list_of{fail, fail});
    CHECK(outcomes({clearly, barely}, true) == list_of{fail, fail});
    CHECK(outcomes({clearly, barely, met}, true) == list_of{fail, inconclusive, pass});
    // Advisory ones change no outcome but their own.
    CHECK(outcomes({barely, advisory(met)}, true) == list_of{fail, pass});
    CHECK(outcomes({barely, advisory(clearly)}, true)[0] == fail);
    CHECK(outcomes({barely, met, advisory(clearly)}, true)[0] == inconclusive);
}

TEST_CASE("with Holm nothing fails that would not without it") {
    for (double ms = 101.4; ms < 101.9; ms += 0.05) {
        measurement m = measured(repeats_with_ttft({ms, ms, ms}), {mean(ttft) <= 100_ms});
        const verdict without = judge_all(m)[0].outcome;
        m.rule.holm = true;
        CAPTURE(ms);
        CHECK_FALSE((judge_all(m)[0].outcome == verdict::fail && without != verdict::fail));
    }
}

TEST_CASE("noise that was calibrated is believed where it is more than usual") {
    measurement m = measured(repeats_with_ttft({80, 80}));
    const slo s = mean(ttft) <= 100_ms;
    const slo_verdict usual = judged(m, s);
    CHECK(usual.outcome == verdict::pass);
    m.noise = {{"mean(ttft)", 0.20}};
    const slo_verdict noisy = judged(m, s);
    CHECK(noisy.outcome == verdict::inconclusive);
    CHECK(noisy.estimate.high == about(0.08 * std::exp(2.49740980860672541 * 0.2 / 1.5)));
    CHECK(judged(m, p50(ttft) <= 100_ms).outcome == verdict::pass);  // a statistic of its own
    m.noise = {{"mean(ttft)", 0.01}};
    CHECK(judged(m, s).estimate.high == usual.estimate.high);
}

TEST_CASE("a spread that the calibration foresaw is not noisy") {
    measurement m = measured(repeats_with_ttft({80, 100, 80, 100}));
    const slo s = mean(ttft) <= 200_ms;
    m.noise_repeats = 10;
    m.noise = {{"mean(ttft)", 0.05}};
    CHECK(str(judged(m, s).method) == "t");
    m.noise = {{"mean(ttft)", 0.12}};
    CHECK(input(judged(m, s), "prior_sd") == about(0.155).epsilon(0.01));
}
