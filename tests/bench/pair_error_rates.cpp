// How often a verdict against a baseline is wrong on a machine that is not quiet: pairs of a server
// with itself whose noise is larger than is believed, whose machine shifts its level within and
// between them, or whose two processes differ for several pairs in a row. The shipped verdict
// functions judge them as a gate does, with the pairs that it would measure; beside them the belief
// about a quiet machine alone.
#include "core/judging/judge.hpp"
#include "core/planning/planning.hpp"

#include "../support/sample_measurements.hpp"
#include "support/rates.hpp"

using namespace llmbench;
using namespace rates;
using sample_measurements::measurement;

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
void add_gate(tally& t, const vector<double>& ratios, const slo& s, bool are_fresh = false) {
    static const auto rule = rule_of({}, first_pair_analysis, last_pair_analysis, 1);
    measurement m;
    m.rule = rule;
    m.pairs_are_fresh = are_fresh;
    const auto measure_to = [&](int pairs) {
        for (std::size_t i = m.candidate.size(); i < static_cast<std::size_t>(pairs); ++i) {
            m.candidate.push_back(run_with_ttft(ratios[i]));
            m.baseline.push_back(run_with_ttft(1));
        }
        return sample_measurements::judge_values(m, s);
    };
    slo_verdict v = measure_to(last_pair_analysis);
    if (asks_for_more(m, m, v)) v = measure_to(last_noisy_pair_analysis);
    t.add(v.outcome, v.repeats);
}
/// By what is believed of a quiet machine, up to eight pairs.
void add_belief(tally& t, const vector<double>& ratios, const slo& s) {
    vector<double> distances;
    const interim_analysis v = judged_in_turn(
        first_pair_analysis, last_pair_analysis,
        [&] { distances.push_back(std::log(ratios[distances.size()] / s.factor)); },
        [&] { return analysis_of(distances, prior_sd * std::sqrt(2.0)); });
    t.add(v.outcome, static_cast<long long>(distances.size()));
}

// ---- rates --------------------------------------------------------------------------------------

/// True ratio over the limit.
constexpr std::array<double, 4> ratios_to_limit = {1, 1 / 1.10, 1 / 1.05, 1.10};
enum place : std::size_t { at_limit, under_110, under_105, over_110 };

struct row {
    std::array<tally, ratios_to_limit.size()> belief{}, gate{};
    void operator+=(const row& o) {
        for (std::size_t i = 0; i < gate.size(); ++i) {
            belief[i] += o.belief[i];
            gate[i] += o.gate[i];
        }
    }
};

row rates_of(const machine& m, long long trials) {
    return over_trials<row>(trials, [&](row& sum, std::uint64_t trial) {
        generator random(mixed(trial), 77);
        const vector<double> ratios = ratios_of(m, last_noisy_pair_analysis, random);
        for (std::size_t k = 0; k < ratios_to_limit.size(); ++k) {
            // The servers are equal: the limit moves instead of the truth.
            const slo s = at_most(1 / ratios_to_limit[k]);
            add_belief(sum.belief[k], ratios, s);
            add_gate(sum.gate[k], ratios, s);
        }
    });
}

/// Gates of fresh pairs and, beside them, of the same pairs between two restarts.
constexpr std::array<double, 5> fresh_ratios = {1 / 1.02, 1, 1.02, 1.04, 1.10};
struct fresh_row {
    std::array<std::array<tally, fresh_ratios.size()>, 2> of{};
    void operator+=(const fresh_row& o) {
        for (std::size_t way = 0; way < of.size(); ++way)
            for (std::size_t i = 0; i < fresh_ratios.size(); ++i) of[way][i] += o.of[way][i];
    }
};
fresh_row rates_of_fresh_pairs(const machine& m, const options& o) {
    return over_trials<fresh_row>(o.trials, [&](fresh_row& sum, std::uint64_t trial) {
        generator random(mixed(mixed(o.seed) + trial), 78);
        const vector<double> ratios = ratios_of(m, last_noisy_pair_analysis, random);
        for (const std::size_t way : {0u, 1u})
            for (std::size_t i = 0; i < fresh_ratios.size(); ++i)
                add_gate(sum.of[way][i], ratios, at_most(1 / fresh_ratios[i]), way == 1);
    });
}
void print_fresh_pairs(const options& o, bounds& must) {
    std::printf("\n");
    print_head("fresh pairs", {"2 % under the limit", "at the limit", "2 % over", "4 % over",
                               "10 % over"});
    for (const machine& m : machines_of_fresh_pairs()) {
        const fresh_row r = rates_of_fresh_pairs(m, o);
        for (const std::size_t way : {0u, 1u}) {
            vector<std::string> columns;
            for (const tally& t : r.of[way])
                columns.push_back(fractions(t) + printed(", %.1f", t.repeats_taken()));
            print_row(m.name + (way == 1 ? ", **restarted**" : ""), columns);
        }
        const tally& limit = r.of[1][1];
        must.valid(m.name, limit);
        if (m.is_promised) {
            must.at_most(m.name + ", fresh, passes at the limit", limit.passed(), 0.05);
            must.at_most(m.name + ", fresh, fails at the limit", limit.failed(), 0.01);
        }
        if (m.name == "run noise of 0.1 %")
            must.at_least(m.name + ", fresh, 2 % under", r.of[1][0].passed(), 0.99);
    }
}

bool study_of_pairs(const options& o) {
    bounds must(o.trials);
    if (o.does("fresh")) print_fresh_pairs(o, must);
    if (!o.does("lasting")) return must.met();
    std::printf(
        "Pass/fail/inconclusive in %%; %lld trials. \"By belief\": what is believed of a "
        "quiet machine alone,\nup to eight pairs. Pairs: unchanged at 1.10, by belief and "
        "by the rule, and the rule at the limit.\n\n",
        o.trials);
    print_head("two equal servers",
               {"at the limit, by belief", "at the limit", "<= 1.10, same", "<= 1.05, same",
                "10 % beyond", "<= 1.10, same, by belief", "pairs"});
    for (const machine& m : machines()) {
        const row r = rates_of(m, o.trials);
        vector<std::string> columns = {fractions(r.belief[at_limit])};
        for (const tally& t : r.gate) columns.push_back(fractions(t));
        columns.push_back(fractions(r.belief[under_110]));
        const tally &same = r.gate[under_110], &limit = r.gate[at_limit];
        columns.push_back(printed("%.1f / %.1f / %.1f", r.belief[under_110].repeats_taken(),
                                  same.repeats_taken(), limit.repeats_taken()));
        print_row(m.name, columns);
        must.valid(m.name, limit);
        if (m.is_promised) {
            must.at_most(m.name + ", passes at the limit", limit.passed(), 0.05);
            must.at_most(m.name + ", fails at the limit", limit.failed(), 0.01);
        }
        if (m.name == "run noise of 1 %")
            must.at_least(m.name + ", same", same.repeats_taken() < 4.1 ? same.passed() : 0, 0.999);
    }
    return must.met();
}
const registered pairs({"pair", 4000, 100, {"fresh", "lasting"}, study_of_pairs});

}  // namespace
