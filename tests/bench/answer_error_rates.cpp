// How often verdicts on right answers are wrong: `accuracy >= limit` over repeats of the same
// questions, of which most are always right or always wrong and some flip, and `accuracy >= 0.98 *
// baseline` over pairs. Made-up repeats whose truth is known, judged as a gate does it: after each
// repeat from the second to the fifth, each pair from the fourth to the eighth.
//   answer_error_rates [--quick] [--trials N] [--seed N] [--only tables|limit|runs|bursts|pairs]
// Quick: fewer trials, held against wide bounds, exit code 1 where one is violated.
#define LLMBENCH_NO_DOCTEST
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/judging/judge.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

/// Questions of a server. `flips` is the part of the binomial variance that a run has.
struct question_set {
    int n = 200;
    double accuracy = 0.85, flips = 0.135;
};
/// The chance of each question to be answered rightly, with this accuracy as their mean. Some flip,
/// evenly or leaning to the right answer where there are many; the others are always alike.
using chances = std::vector<double>;
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
        r.scheduled_ns = r.sent_ns = 1'000'000'000 * (static_cast<long long>(i) + 1);
        r.first_token_ns = r.last_token_ns = r.end_ns = r.scheduled_ns + 100'000'000;
        r.status = request_status::ok;
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

struct tally {
    long long pass = 0, fail = 0, undecided = 0, repeats = 0;
    long long pooled_pass = 0, pooled_fail = 0, one_red = 0;
    void add(verdict v, std::size_t taken) {
        ++(v == verdict::pass ? pass : v == verdict::fail ? fail : undecided);
        repeats += static_cast<long long>(taken);
    }
    void operator+=(const tally& o) {
        pass += o.pass; fail += o.fail; undecided += o.undecided; repeats += o.repeats;
        pooled_pass += o.pooled_pass; pooled_fail += o.pooled_fail; one_red += o.one_red;
    }
    double trials() const { return static_cast<double>(pass + fail + undecided); }
    double fraction(long long n) const { return static_cast<double>(n) / trials(); }
};

struct options {
    bool quick = false;
    long long trials = 600;
    std::uint64_t seed = 1;
    std::string only{};
};
template <class Gate>
tally often(const options& o, Gate&& gate) {
    tally sums[2];
    const auto half = [&](std::size_t which) {
        for (auto trial = static_cast<long long>(which); trial < o.trials; trial += 2) {
            generator random(mixed(o.seed ^ mixed(static_cast<std::uint64_t>(trial))));
            gate(sums[which], random);
        }
    };
    std::thread other(half, 1);
    half(0);
    other.join();
    sums[0] += sums[1];
    return sums[0];
}

/// Judges one objective as a gate that has no other one; beside it the pooled counts alone, and
/// one run against the limit as a script would.
tally judged_often(const options& o, const question_set& q, double limit, const trouble& t = {}) {
    const slo s = accuracy >= fraction(limit);
    return often(o, [&](tally& sums, generator& random) {
        const chances c = drawn(q, random);
        measurements e;
        decision v;
        verdict pooled = verdict::inconclusive, shown = verdict::inconclusive;
        std::size_t taken = 0;
        double k = 0, n = 0;
        const count_levels at = count_levels_of(s, judging_parameters{}.rule);
        for (int i = 0; i < last_analysis; ++i) {
            e.candidate.push_back(repeat_of(c, t, random));
            for (const record& r : e.candidate[e.candidate.size() - 1].records) {
                k += !*r.right;
                ++n;
            }
            if (i == 0) sums.one_red += 1 - k / n < limit;
            if (i + 1 < first_analysis) continue;
            if (pooled == verdict::inconclusive)
                pooled = clopper_pearson_upper(k, n, at.pass) <= 1 - limit  ? verdict::pass
                         : clopper_pearson_lower(k, n, at.fail) > 1 - limit ? verdict::fail
                                                                            : pooled;
            if (taken > 0) continue;
            v = judged(e, judging_parameters{}, validity_checks{}, {}, s, false);
            shown = v.outcome;
            if (shown != verdict::inconclusive) taken = e.candidate.size();
        }
        sums.pooled_pass += pooled == verdict::pass;
        sums.pooled_fail += pooled == verdict::fail;
        sums.add(shown, taken > 0 ? taken : e.candidate.size());
    });
}
/// Pairs of the same questions, the candidate's right less often by this part.
tally judged_pairs(const options& o, const question_set& q, double loss) {
    const slo s = accuracy >= 0.98 * baseline;
    return often(o, [&](tally& sums, generator& random) {
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
        decision v;
        for (int i = 0; i < last_pair_analysis; ++i) {
            e.candidate.push_back(repeat_of(worse, {}, random));
            e.baseline.push_back(repeat_of(base, {}, random));
            if (i + 1 < first_pair_analysis) continue;
            judging_parameters t;
            t.slos = {s};
            t.rule = rule_of({}, first_pair_analysis, last_pair_analysis, 1);
            v = judged(e, t, validity_checks{}, {}, s, false);
            if (v.outcome != verdict::inconclusive) break;
        }
        sums.add(v.outcome, e.candidate.size());
    });
}

std::string percent(double f) { return printed("%.*f", f < 0.0995 && f > 0 ? 1 : 0, f * 100); }
std::string fractions(const tally& t, long long pass, long long fail) {
    return percent(t.fraction(pass)) + "/" + percent(t.fraction(fail)) + "/" +
           percent(1 - t.fraction(pass) - t.fraction(fail));
}
void print_row(const std::vector<std::string>& columns) {
    std::printf("|");
    for (const std::string& c : columns) std::printf(" %s |", c.c_str());
    std::printf("\n");
    std::fflush(stdout);
}

/// What a rate must be; the program says where it is not.
class bounds {
public:
    explicit bounds(bool quick) : slack_(quick ? 0.06 : 0.007) {}
    void at_most(const std::string& what, double fraction, double bound) {
        if (fraction <= bound + slack_) return;
        std::printf("NOT MET: %s: %.3f %%, at most %.3g %%\n", what.c_str(), fraction * 100,
                    bound * 100);
        met_ = false;
    }
    bool met() const { return met_; }

private:
    double slack_;
    bool met_ = true;
};

void tables_part(const options& o, bounds& must) {
    const auto table = [&](const question_set& q, double limit, const std::vector<double>& truths) {
        std::printf("\n### %d questions, limit %.4g %%, flips %.4g %%\n\n", q.n, limit * 100,
                    q.flips * 100);
        print_row({"true accuracy", "one run red", "pooled alone", "the rule", "repeats"});
        print_row({"---", "---", "---", "---", "---"});
        for (const double truth : truths) {
            question_set one = q;
            one.accuracy = truth;
            const tally t = judged_often(o, one, limit);
            print_row({printed("%.4g", truth * 100), percent(t.fraction(t.one_red)),
                       fractions(t, t.pooled_pass, t.pooled_fail), fractions(t, t.pass, t.fail),
                       printed("%.1f", static_cast<double>(t.repeats) / t.trials())});
            if (truth <= limit) must.at_most("a pass below the limit", t.fraction(t.pass), 0.05);
            if (truth >= limit) must.at_most("a fail above the limit", t.fraction(t.fail), 0.01);
        }
    };
    table({200, 0.85, 0.135}, 0.85, {0.83, 0.84, 0.85, 0.86, 0.87});
    table({1319, 0.935, 0.68}, 0.935, {0.925, 0.93, 0.935, 0.9443});
}
/// At the limit, over sizes, flips and limits; or where whole runs move, or bursts go wrong.
void limit_part(const options& o, bounds& must, const char* title, const trouble& t,
                const std::vector<int>& sizes, double most_pass, double most_fail) {
    std::printf("\n### %s\n\n", title);
    print_row({"questions", "flips", "limit", "pooled alone", "the rule", "repeats"});
    print_row({"---", "---", "---", "---", "---", "---"});
    for (const int n : sizes)
        for (const double flips : {0.02, 0.135, 0.4, 0.9})
            for (const double limit : {0.85, 0.95}) {
                // What a burst costs is part of the truth.
                const tally c = judged_often(o, {n, limit / (1 - static_cast<double>(t.burst) / n), flips}, limit, t);
                print_row({printed("%d", n), printed("%.4g %%", flips * 100),
                           printed("%.4g %%", limit * 100), fractions(c, c.pooled_pass, c.pooled_fail),
                           fractions(c, c.pass, c.fail),
                           printed("%.1f", static_cast<double>(c.repeats) / c.trials())});
                const std::string where = printed("%d questions, flips %.3g, limit %.3g", n, flips, limit);
                must.at_most(where + ", passes", c.fraction(c.pass), most_pass);
                must.at_most(where + ", fails", c.fraction(c.fail), most_fail);
            }
}
void pairs_part(const options& o, bounds& must) {
    std::printf("\n### `accuracy >= 0.98 * baseline`, flips 13.5 %%\n\n");
    print_row({"questions", "true loss", "the pair rule", "pairs"});
    print_row({"---", "---", "---", "---"});
    for (const int n : {200, 1319})
        for (const double loss : {0.0, 0.01, 0.02, 0.03, 0.05}) {
            const tally t = judged_pairs(o, {n, 0.85, 0.135}, loss);
            print_row({printed("%d", n), printed("%.3g %%", loss * 100),
                       fractions(t, t.pass, t.fail),
                       printed("%.1f", static_cast<double>(t.repeats) / t.trials())});
            const std::string where = printed("%d questions, a loss of %.3g", n, loss);
            if (loss >= 0.02) must.at_most(where + ", passes", t.fraction(t.pass), 0.05);
            if (loss <= 0.02) must.at_most(where + ", fails", t.fraction(t.fail), 0.01);
        }
}

}  // namespace

int main(int argc, char** argv) {
    options o;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--quick") o.quick = true;
        else if (name == "--trials" && i + 1 < argc) o.trials = std::atoll(argv[++i]);
        else if (name == "--seed" && i + 1 < argc) o.seed = std::strtoull(argv[++i], nullptr, 10);
        else if (name == "--only" && i + 1 < argc) o.only = argv[++i];
        else {
            std::fprintf(stderr, "answer_error_rates: there are --quick, --trials N, --seed N and "
                                 "--only tables, limit, runs, bursts or pairs\n");
            return 2;
        }
    }
    if (o.quick) o.trials = std::min(o.trials, 60ll);
    std::printf("Two to five repeats, or four to eight pairs; pass/fail/inconclusive in %%, %lld "
                "trials: the\nstandard error is %.2f at 1 %%.\n",
                o.trials, 100 * std::sqrt(0.01 * 0.99 / static_cast<double>(o.trials)));
    bounds must(o.quick);
    const std::vector<int> sizes = o.quick ? std::vector<int>{50, 200} : std::vector<int>{50, 200, 500, 1319};
    const auto asked = [&](const char* part) { return o.only.empty() || o.only == part; };
    if (asked("tables")) tables_part(o, must);
    if (asked("limit")) limit_part(o, must, "At the limit", {}, sizes, 0.05, 0.01);
    if (asked("runs"))
        limit_part(o, must, "Runs that move as a whole, by up to 1.25 points",
                   {.moves = 0.0125, .burst = 0}, sizes, 0.05, 0.015);
    if (asked("bursts"))
        limit_part(o, must, "Four answers in a row wrong in each run", {.moves = 0, .burst = 4},
                   {200, 1319}, 0.05, 0.01);
    if (asked("pairs")) pairs_part(o, must);
    return must.met() ? 0 : 1;
}
