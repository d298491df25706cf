// How often settings of a server that are alike differ significantly, and how often a difference is seen:
// a Monte Carlo of the shipped comparison on rounds of drawn statistics, with what a round does to
// all settings and with machines that are noisier than is believed, drift or shift their level.
#include "extensions/compare/core/settings.hpp"

#include "rates.hpp"

using namespace llmbench;
using namespace rates;

namespace {

/// What a machine does to the logarithm of a statistic, turn by turn.
struct machine {
    const char* name = "";
    double noise = 0.02;     // sd of each turn
    double round_sd = 0;     // of what a round does to all of its turns
    double drift = 0;        // of the level, from one turn to the next
    double shift = 0;        // by which the level is higher in every other stretch of time
    double shift_turns = 0;  // how long such a stretch is on the average
    double odd = 0;          // the fraction of turns that are 10 % slow
};

/// Rounds of settings with these true values, in the turns that a comparison takes.
vector<values_in_rounds> drawn(const machine& m, const vector<double>& truth,
                               std::size_t rounds, generator& random, bool is_fresh) {
    vector<values_in_rounds> all(truth.size());
    for (values_in_rounds& v : all) v.is_fresh = is_fresh;
    double level = 0, until = m.shift_turns * random.exponential();
    bool is_high = false;
    double turn = 0;
    for (std::size_t r = 0; r < rounds; ++r) {
        const double round = m.round_sd * random.normal();
        for (const std::size_t i : turns_of_round(truth.size(), static_cast<int>(r))) {
            for (; m.shift > 0 && until < turn; until += m.shift_turns * random.exponential())
                is_high = !is_high;
            level += m.drift;
            all[i].measured.push_back(truth[i] * std::exp(round + level + (is_high ? m.shift : 0) +
                                                          (m.odd > 0 && random.uniform() < m.odd
                                                               ? 0.1 : 0) +
                                                          m.noise * random.normal()));
            ++turn;
        }
    }
    return all;
}

struct shares {
    double any = 0;    // of comparisons that tell two settings apart
    double wrong = 0;  // in which one is called better that is not
    double best = 0;   // in which the best one is found
};
shares shares_of(const machine& m, const vector<double>& truth, std::size_t rounds,
                 long long trials, std::uint64_t seed, bool is_fresh) {
    const statistic_data what = mean(ttft).data;
    generator random(seed);
    shares n;
    for (long long t = 0; t < trials; ++t) {
        const compared_statistic c = compared(what, drawn(m, truth, rounds, random, is_fresh), prior_sd);
        bool any = false, wrong = false;
        for (std::size_t a = 0; a < truth.size(); ++a)
            for (std::size_t b = 0; b < truth.size(); ++b) {
                any = any || c.is_better(a, b);
                wrong = wrong || (c.is_better(a, b) && truth[a] >= truth[b]);
            }
        n.any += any;
        n.wrong += wrong;
        n.best += c.best() == 0u;
    }
    for (double* x : {&n.any, &n.wrong, &n.best}) *x /= static_cast<double>(trials);
    return n;
}

vector<double> ladder(std::size_t settings, double ratio) {
    vector<double> truth;
    for (std::size_t i = 0; i < settings; ++i)
        truth.push_back(std::pow(ratio, static_cast<double>(i)));
    return truth;
}

/// `is_fresh`: each turn has a new process, as those that compare() starts.
void rates_of_settings(study_run& by, bool is_fresh) {
    const machine machines[] = {
        {.name = "0.2 % of noise", .noise = 0.002, .round_sd = 0.05},
        {.name = "0.5 % of noise, 3 in 100 turns are 10 % slow", .noise = 0.005, .odd = 0.03},
        {.name = "2 % of noise", .noise = 0.02, .round_sd = 0.05},
        {.name = "4 % of noise", .noise = 0.04, .round_sd = 0.05},
        {.name = "10 % of noise", .noise = 0.10, .round_sd = 0.05},
        {.name = "30 % of noise", .noise = 0.30, .round_sd = 0.05},
        {.name = "2 %, drifts by 2 % a turn", .noise = 0.02, .drift = 0.02},
        {.name = "2 %, shifts by 20 % for 3 turns", .noise = 0.02, .shift = 0.2, .shift_turns = 3},
        {.name = "2 %, shifts by 20 % for 12 turns",
         .noise = 0.02,
         .shift = 0.2,
         .shift_turns = 12},
    };
    std::uint64_t seed = by.seed;
    std::printf("\n%s\n", is_fresh ? "Fresh processes" : "Servers that run on");
    by.table("machine", {"2 settings, 4 rounds", "3, 4", "8, 4", "3, 2", "3, 8"},
             printed("Settings that are alike: comparisons that tell any two apart, in %% of %lld\n\n", by.trials));
    const struct {
        std::size_t settings, rounds;
    } designs[] = {{2, 4}, {3, 4}, {8, 4}, {3, 2}, {3, 8}};
    for (const machine& m : machines) {
        const std::uint64_t first = std::exchange(seed, seed + std::size(designs));
        by.row(m.name, [&] {
            columns all;
            for (const auto& [settings, rounds] : designs) {
                const std::uint64_t own = first + all.size() + 1;
                const double any = shares_of(m, ladder(settings, 1), rounds, by.trials, own, is_fresh).any;
                all.push_back(printed("%.1f", any * 100));
                by.must.at_most(printed("%s, %zu settings", m.name, settings), any, false_difference);
            }
            return all;
        });
    }

    by.table("machine", {"1.02", "1.05", "1.1", "1.15", "1.2", "1.5"},
             "\nThree settings, each slower by this ratio than the one before, 4 rounds: best "
             "found / any called better that is not, in %\n\n");
    constexpr double ratios[] = {1.02, 1.05, 1.1, 1.15, 1.2, 1.5};
    for (const machine& m : machines) {
        const std::uint64_t first = std::exchange(seed, seed + std::size(ratios));
        by.row(m.name, [&] {
            columns all;
            for (const double ratio : ratios) {
                const std::uint64_t own = first + all.size() + 1;
                const shares r = shares_of(m, ladder(3, ratio), 4, by.trials, own, is_fresh);
                all.push_back(printed("%.0f / %.1f", r.best * 100, r.wrong * 100));
                by.must.at_most(printed("%s, called better that is not", m.name), r.wrong, false_difference);
                if (ratio == 1.2 && m.noise <= 0.02 && m.odd == 0 && m.shift == 0)
                    by.must.at_least(printed("%s, best found", m.name), r.best, 0.95);
            }
            return all;
        });
    }
}

void settings_part(study_run& by) {
    for (const bool is_fresh : {false, true}) rates_of_settings(by, is_fresh);
}
const registered settings({"setting", 4000, 400, {{"settings", settings_part}}});

}  // namespace
