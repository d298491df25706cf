// Differences of fractions against a live baseline, in pairs: errors, goodput, right answers.
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
    CHECK(str(v.method) == "counts of both, a score");
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
    CHECK(str(v.method) == "paired answers, Tango's score");
    CHECK(input(v, "only_candidate_right") == about(0.001));
    CHECK(input(v, "only_baseline_right") == about(0.003));
    // The same questions again are no new ones.
    CHECK(input(v, "independent") == about(1000).epsilon(0.01));
    CHECK(input(verdict_on_answers(1, 3, s, 8), "independent") == about(1000).epsilon(0.01));
}
