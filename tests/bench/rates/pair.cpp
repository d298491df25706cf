// How often a verdict against a baseline is wrong on a machine that is not quiet: pairs of a server
// with itself whose noise is larger than is believed, whose machine shifts its level within and
// between them, or whose two processes differ for several pairs in a row. The shipped verdict
// functions judge them as a gate does, with the pairs that it would measure.
#include "gate_repeats.hpp"
#include "rates.hpp"

using namespace llmbench;
using namespace rates;

namespace {

// ---- what a machine does to two equal servers ---------------------------------------------------

/// Time is counted in pairs; a run takes half of one.
struct machine {
    std::string name{};
    double noise = 0.03;     // sd of the logarithm of each run, independent
    double shift_lasts = 0;  // pairs on the average, exponential; 0: the level does not shift
    double shift_least = 0.05, shift_most = 0.30;  // how much slower it is in every other stretch
    double lasting_sd = 0;                         // of what the two processes differ by
    double lasting_rho = 0;   // correlation of that between a pair and the next
    double modes = 0;         // distance of two modes, of which each process has one
    double odd = 0;           // the fraction of runs that are 10 % slow
    double drift = 0;         // of the level, from one run to the next
    bool is_promised = true;  // the levels are to hold
};

/// The mean level of each run, over a machine that is slower in every other stretch of time.
vector<double> levels_of(const machine& m, std::size_t runs, generator& random) {
    vector<double> levels(runs, 1.0);
    if (m.shift_lasts == 0) return levels;
    const auto next_level = [&](bool slow) {
        return slow ? 1 + m.shift_least + (m.shift_most - m.shift_least) * random.uniform() : 1.0;
    };
    bool slow = random.uniform() < 0.5;
    double level = next_level(slow), until = m.shift_lasts * random.exponential();
    for (std::size_t i = 0; i < runs; ++i) {
        const double begin = 0.5 * static_cast<double>(i), end = begin + 0.5;
        double sum = 0;
        for (double t = begin; t < end;) {
            if (until <= t) {
                slow = !slow;
                level = next_level(slow);
                until = t + m.shift_lasts * random.exponential();
            }
            const double stop = std::min(until, end);
            sum += level * (stop - t);
            t = stop;
        }
        levels[i] = sum / 0.5;
    }
    return levels;
}

/// The ratios of pairs, in blocks ABBA or BAAB as a gate measures them.
vector<double> ratios_of(const machine& m, std::size_t pairs, generator& random) {
    const vector<double> levels = levels_of(m, 2 * pairs, random);
    double lasting = m.lasting_sd * random.normal();
    bool flipped = false;
    vector<double> ratios;
    for (std::size_t i = 0; i < pairs; ++i) {
        if (i % 2 == 0) flipped = random.uniform() < 0.5;
        std::array<double, 2> run{};
        for (std::size_t k = 0; k < 2; ++k)
            run[k] = std::log(levels[2 * i + k]) + m.drift * static_cast<double>(2 * i + k) +
                     m.noise * random.normal() +
                     (m.modes > 0 && random.uniform() < 0.5 ? m.modes : 0) +
                     (m.odd > 0 && random.uniform() < m.odd ? std::log(1.1) : 0);
        const bool baseline_first = flipped != (i % 2 == 1);
        ratios.push_back(std::exp((baseline_first ? run[1] - run[0] : run[0] - run[1]) + lasting));
        lasting = m.lasting_rho * lasting +
                  m.lasting_sd * std::sqrt(1 - m.lasting_rho * m.lasting_rho) * random.normal();
    }
    return ratios;
}

vector<machine> machines() {
    vector<machine> all;
    const auto add = [&](const machine& m) { all.push_back(m); };
    for (const double noise : {0.01, 0.03, 0.05, 0.07, 0.10, 0.15})
        add({.name = printed("run noise of %.0f %%", noise * 100), .noise = noise});
    for (const double noise : {0.01, 0.03})
        for (const double lasts : {0.5, 1.0, 2.0, 5.0, 10.0})
            add({.name = printed("shifts of 5 to 30 %%, each for %g pairs; noise %.0f %%", lasts,
                                 noise * 100),
                 .noise = noise,
                 .shift_lasts = lasts});
    add({.name = "shifts of 20 to 60 %, each for 1 pair; noise 3 %",
         .shift_lasts = 1,
         .shift_least = 0.2,
         .shift_most = 0.6});
    add({.name = "a drift of 1 % from run to run; noise 3 %", .drift = 0.01});
    for (const double rho : {0.5, 0.7, 0.9})
        for (const double sd : {0.01, 0.02, 0.03, 0.05})
            add({.name = printed("processes differ by %.0f %%, correlation %.1f; noise 1 %%",
                                 sd * 100, rho),
                 .noise = 0.01,
                 .lasting_sd = sd,
                 .lasting_rho = rho,
                 .is_promised = rho < 0.8 && sd < 0.04});
    for (const double sd : {0.03, 0.05})
        add({.name = printed("the same by %.0f %%, restarted between pairs", sd * 100),
             .noise = 0.01,
             .lasting_sd = sd});
    return all;
}
/// Machines of pairs whose processes are fresh.
vector<machine> machines_of_fresh_pairs() {
    vector<machine> all;
    const auto add = [&](const char* name, const machine& m, std::initializer_list<double> noises) {
        for (const double noise : noises) {
            machine one = m;
            one.noise = noise;
            one.name = printed("run noise of %g %%", noise * 100) + name;
            all.push_back(one);
        }
    };
    add("", {}, {0.001, 0.005, 0.01, 0.03, 0.06});
    add(", processes differ by 0.5 %", {.lasting_sd = 0.005}, {0.001});
    add(", processes differ by 3 %", {.lasting_sd = 0.03}, {0.001});
    add(", two modes of processes, 2 % apart", {.modes = 0.02}, {0.001, 0.01, 0.03});
    add(", two modes of processes, 3 % apart", {.modes = 0.03, .is_promised = false}, {0.001});
    add(", 3 in 100 runs are 10 % slow", {.odd = 0.03}, {0.001, 0.01, 0.03});
    add(", shifts of 5 to 30 %, each for 2 pairs", {.shift_lasts = 2}, {0.001, 0.01});
    add(", shifts of 5 to 30 %, each for 10 pairs", {.shift_lasts = 10}, {0.001, 0.01});
    add(", a drift of 0.2 % from run to run", {.drift = 0.002}, {0.001, 0.01});
    return all;
}

// ---- verdicts -----------------------------------------------------------------------------------

slo at_most(double factor) {
    slo s;
    s.statistic = mean(ttft).data;
    s.factor = factor;
    return s;
}

/// As a gate does: up to eight pairs, and up to twelve where it is asked for them.
slo_verdict verdict_of_gate(const vector<double>& ratios, const slo& s, bool are_fresh = false) {
    measurement empty;
    empty.pairs_are_fresh = are_fresh;
    gate_repeats pairs(empty, true);
    for (const double ratio : ratios) pairs.add(run_with_ttft(1), run_with_ttft(ratio));
    return pairs.judged_by(sample_measurements::judge_values, s);
}
// ---- rates --------------------------------------------------------------------------------------

/// True ratio over the limit.
constexpr std::array<double, 4> ratios_to_limit = {1, 1 / 1.10, 1 / 1.05, 1.10};
enum place : std::size_t { at_limit, under_110, under_105, over_110 };

sums rates_of(const machine& m, const study_run& by) {
    return by.over([&](sums& sum, std::uint64_t trial) {
        generator random(mixed(trial), 77);
        const vector<double> ratios = ratios_of(m, last_noisy_pair_analysis, random);
        // The servers are equal: the limit moves instead of the truth.
        for (std::size_t k = 0; k < ratios_to_limit.size(); ++k)
            sum.at(k).add(verdict_of_gate(ratios, at_most(1 / ratios_to_limit[k])));
    });
}

void lasting_part(study_run& by) {
    by.table("two equal servers", {"at the limit", "<= 1.10, same", "<= 1.05, same", "10 % beyond", "pairs"},
             printed("Pass/fail/inconclusive in %%; %lld trials. Pairs: unchanged at 1.10, and at the limit.\n\n",
                     by.trials));
    for (const machine& m : machines())
        by.row(m.name, [&] {
            sums r = rates_of(m, by);
            const tally same = r.at(under_110), limit = r.at(at_limit);
            by.must.valid(m.name, limit);
            if (m.is_promised) by.must.at_limit(m.name, limit);
            if (m.name == "run noise of 1 %")
                by.must.at_least(m.name + ", same", same.repeats_taken() < 4.1 ? same.passed() : 0, 0.999);

            columns all = fractions_of(r, 0, ratios_to_limit.size());
            all.push_back(printed("%.1f / %.1f", same.repeats_taken(), limit.repeats_taken()));
            return all;
        });
}

/// Gates of pairs between two restarts and, beside them, of the same pairs, fresh.
void fresh_part(study_run& by) {
    constexpr std::array<double, 5> ratios = {1 / 1.02, 1, 1.02, 1.04, 1.10};
    by.table("fresh pairs", {"2 % under the limit", "at the limit", "2 % over", "4 % over", "10 % over"});
    for (const machine& m : machines_of_fresh_pairs())
        for (const bool are_fresh : {false, true})
            by.row(m.name + (are_fresh ? ", **restarted**" : ""), [&] {
                sums r = by.over([&](sums& sum, std::uint64_t trial) {
                    generator random = by.random(trial, 78);
                    const vector<double> of = ratios_of(m, last_noisy_pair_analysis, random);
                    for (std::size_t i = 0; i < ratios.size(); ++i)
                        sum.at(i).add(verdict_of_gate(of, at_most(1 / ratios[i]), are_fresh));
                });
                if (are_fresh) {
                    by.must.valid(m.name, r.at(1));
                    if (m.is_promised) by.must.at_limit(m.name + ", fresh", r.at(1));
                    if (m.name == "run noise of 0.1 %")
                        by.must.at_least(m.name + ", fresh, 2 % under", r.at(0).passed(), 0.99);
                }
                return fractions_of(r, 0, ratios.size(), ", %.1f");
            });
}

const registered pairs({"pair", 4000, 100, {{"fresh", fresh_part}, {"lasting", lasting_part}}});

}  // namespace
