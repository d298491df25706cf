// How often verdicts on right answers are wrong: `accuracy >= limit` over repeats of the same
// questions, of which most are always right or always wrong and some flip, and `accuracy >= 0.98 *
// baseline` over pairs. Made-up repeats whose truth is known, judged as a gate does it: after each
// repeat from the second to the fifth, each pair from the fourth to the eighth.
#include "core/judging/judge.hpp"
#include "extensions/answers/api.hpp"

#include "rates.hpp"

using namespace llmbench;
using namespace rates;

namespace {

/// Questions of a server. `flips` is the part of the binomial variance that a run has.
struct question_set {
    int n = 200;
    double accuracy = 0.85, flips = 0.135;
};
/// The chance of each question to be answered rightly, with this accuracy as their mean. Some flip,
/// evenly or leaning to the right answer where there are many; the others are always alike.
using chances = vector<double>;
chances drawn(const question_set& q, generator& random) {
    const double variance = q.flips * q.accuracy * (1 - q.accuracy), wrong = 1 - q.accuracy;
    const double chance = std::max(0.5, variance / wrong);
    const double flipping = variance / (chance * (1 - chance));
    chances c(static_cast<std::size_t>(q.n), chance);
    const auto flippers = static_cast<std::size_t>(std::min(flipping, 1.0) * q.n);
    double sum = q.accuracy * q.n - static_cast<double>(flippers) * chance;
    for (std::size_t i = flippers; i < c.size(); ++i) {
        c[i] = std::clamp(sum, 0.0, 1.0);  // the last one is what is left over of the mean
        sum -= c[i];
    }
    for (std::size_t i = c.size(); i > 1; --i) std::swap(c[i - 1], c[random.below(i)]);
    return c;
}

/// What happens to a run beside flips: it moves as a whole, or a stretch of it is wrong.
struct trouble {
    double moves = 0;  // the most, evenly up or down
    int burst = 0;     // so many in a row are wrong, in each run
};

repeat_data repeat_of(const chances& c, const trouble& t, generator& random) {
    repeat_data d;
    d.records.resize(c.size());
    double mean = 0;
    for (const double x : c) mean += x / static_cast<double>(c.size());
    const double moved = t.moves * (2 * random.uniform() - 1);
    const auto from = static_cast<std::size_t>(random.uniform() * static_cast<double>(c.size()));
    for (std::size_t i = 0; i < c.size(); ++i) {
        record& r = d.records[i];
        set_times(r, i, false, 0.1);
        r.conversation = static_cast<long long>(i);
        r.graded = "x";
        bool right = random.uniform() < c[i];
        if (moved < 0 && right) right = random.uniform() >= -moved / mean;
        if (moved > 0 && !right) right = random.uniform() < moved / (1 - mean);
        const bool is_hit = (i + c.size() - from) % c.size() < static_cast<std::size_t>(t.burst);
        right = right && !is_hit;
        r.right = right;
    }
    d.gap_offsets.assign(c.size(), not_listed);
    return d;
}

tally judged_often(const study_run& by, const question_set& q, double limit, const trouble& t = {}) {
    const slo s = accuracy >= fraction(limit);
    return over_trials<tally>(by.trials, [&](tally& sum, std::uint64_t trial) {
        generator random = by.random(trial);
        const chances c = drawn(q, random);
        measurements e;
        const decision v = judged_in_turn(
            first_analysis, last_analysis, [&] { e.candidate.push_back(repeat_of(c, t, random)); },
            [&] { return decision_without_client(e, judging_parameters{}, validity_checks{}, s, sought::first); });
        sum.add(v.outcome, static_cast<long long>(e.candidate.size()));
    });
}
/// Pairs of the same questions, the candidate's right less often by this part.
tally judged_pairs(const study_run& run, const question_set& q, double loss) {
    const slo s = accuracy >= 0.98 * baseline;
    judging_parameters by;
    by.slos = {s};
    by.rule = rule_of({}, first_pair_analysis, last_pair_analysis, 1);
    return over_trials<tally>(run.trials, [&](tally& sum, std::uint64_t trial) {
        generator random = run.random(trial);
        const chances base = drawn(q, random);
        chances worse = base;  // lost for good, as by a model of fewer bits: those do not flip
        double left = 0;
        for (const double c : base) left += c * loss;
        for (double& c : worse)
            if (c == 1 && left > 0) {
                c -= std::min(1.0, left);
                left -= 1;
            }
        measurements e;
        const decision v = judged_in_turn(
            first_pair_analysis, last_pair_analysis,
            [&] {
                e.candidate.push_back(repeat_of(worse, {}, random));
                e.baseline.push_back(repeat_of(base, {}, random));
            },
            [&] { return decision_without_client(e, by, validity_checks{}, s, sought::first); });
        sum.add(v.outcome, static_cast<long long>(e.candidate.size()));
    });
}

void table_of(study_run& by, const question_set& q, double limit, const vector<double>& truths) {
    by.table("true accuracy", {"the rule", "repeats"},
             printed("\n### %d questions, limit %.4g %%, flips %.4g %%\n\n", q.n, limit * 100, q.flips * 100));
    for (const double truth : truths)
        by.row(printed("%.4g", truth * 100), [&] {
            question_set one = q;
            one.accuracy = truth;
            const tally t = judged_often(by, one, limit);
            by.must.valid("accuracy", t);
            if (truth <= limit) by.must.at_most("a pass below the limit", t.passed(), 0.05);
            if (truth >= limit) by.must.at_most("a fail above the limit", t.failed(), 0.01);
            return columns{fractions(t), printed("%.1f", t.repeats_taken())};
        });
}
void tables_part(study_run& by) {
    table_of(by, {200, 0.85, 0.135}, 0.85, {0.83, 0.84, 0.85, 0.86, 0.87});
    table_of(by, {1319, 0.935, 0.68}, 0.935, {0.925, 0.93, 0.935, 0.9443});
}

/// At the limit, over sizes, flips and limits; or where whole runs move, or bursts go wrong.
void rows_at_limit(study_run& by, const char* title, const trouble& t, const vector<int>& sizes,
                   double most_fail = 0.01) {
    by.table("questions, flips, limit", {"the rule", "repeats"}, printed("\n### %s\n\n", title));
    for (const int n : sizes)
        for (const double flips : {0.02, 0.135, 0.4, 0.9})
            for (const double limit : {0.85, 0.95}) {
                const std::string row = printed("%d, %.4g %%, %.4g %%", n, flips * 100, limit * 100);
                by.row(row, [&] {
                    // What a burst costs is part of the truth.
                    const double truth = limit / (1 - static_cast<double>(t.burst) / n);
                    const tally c = judged_often(by, {n, truth, flips}, limit, t);
                    by.must.valid(row, c);
                    by.must.at_most(row + ", passes", c.passed(), 0.05);
                    by.must.at_most(row + ", fails", c.failed(), most_fail);
                    return columns{fractions(c), printed("%.1f", c.repeats_taken())};
                });
            }
}
vector<int> sizes_of(const study_run& by) {
    return by.quick ? vector{50, 200} : vector{50, 200, 500, 1319};
}
void limit_part(study_run& by) { rows_at_limit(by, "At the limit", {}, sizes_of(by)); }
void runs_part(study_run& by) {
    rows_at_limit(by, "Runs that move as a whole, by up to 1.25 points", {.moves = 0.0125, .burst = 0},
                  sizes_of(by), 0.015);
}
void bursts_part(study_run& by) {
    rows_at_limit(by, "Four answers in a row wrong in each run", {.moves = 0, .burst = 4}, {200, 1319});
}

void pairs_part(study_run& by) {
    by.table("questions, true loss", {"the pair rule", "pairs"},
             "\n### `accuracy >= 0.98 * baseline`, flips 13.5 %\n\n");
    for (const int n : {200, 1319})
        for (const double loss : {0.0, 0.01, 0.02, 0.03, 0.05}) {
            const std::string row = printed("%d, %.3g %%", n, loss * 100);
            by.row(row, [&] {
                const tally t = judged_pairs(by, {n, 0.85, 0.135}, loss);
                by.must.valid(row, t);
                if (loss >= 0.02) by.must.at_most(row + ", passes", t.passed(), 0.05);
                if (loss <= 0.02) by.must.at_most(row + ", fails", t.failed(), 0.01);
                return columns{fractions(t), printed("%.1f", t.repeats_taken())};
            });
        }
}

void begin(study_run& by) {
    std::printf("Two to five repeats, or four to eight pairs; pass/fail/inconclusive in %%, %lld "
                "trials: the\nstandard error is %.2f at 1 %%.\n",
                by.trials, by.error_at_1());
}
const registered answers({"answer",
                          600,
                          30,
                          {{"tables", tables_part},
                           {"limit", limit_part},
                           {"runs", runs_part},
                           {"bursts", bursts_part},
                           {"pairs", pairs_part}},
                          begin});

}  // namespace
