// How precise verdicts are where the machine is: gates whose repeats spread by 0.1 to 10 %, with what a
// few repeats may hide (odd repeats, two modes, a drift), without and with a calibration of ten repeats.
// The shipped verdict functions judge them with the repeats that a gate would measure.
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/levels.hpp"

#include "../support/twin_loads.hpp"
#include "gate_repeats.hpp"
#include "rates.hpp"

using namespace llmbench;
using namespace rates;

namespace {

/// What a machine does to the logarithms of its repeats, besides the spread.
struct machine {
    const char* name;
    double odd = 0;           // the fraction of repeats that are 10 % slow; the others are the truth
    double odd_in_truth = 0;  // the same, and the truth is the mean of all
    double modes = 0, slow = 0.5;  // distance of two modes, and the fraction of repeats in the slow one
    double drift = 0;         // from repeat to repeat, in spreads
    bool is_promised = true;  // the levels are to hold
};
constexpr machine machines[] = {
    {.name = "normal"},
    {.name = "3 in 100 repeats are 10 % slow", .odd = 0.03},
    {.name = "the same, on the average of all", .odd_in_truth = 0.03},
    {.name = "two modes, 2 % apart, half of the repeats", .modes = 0.02},
    {.name = "two modes, 2 % apart, a third slow", .modes = 0.02, .slow = 1 / 3.0},
    {.name = "two modes, 3 % apart, half of the repeats", .modes = 0.03, .is_promised = false},
    {.name = "a drift of half the spread a repeat", .drift = 0.5},
};
constexpr double spreads[] = {0.001, 0.005, 0.01, 0.03, 0.06, 0.10};

vector<double> logs_of_repeats(const machine& m, double spread, std::size_t n, generator& random) {
    vector<double> logs;
    for (std::size_t i = 0; i < n; ++i) {
        const double fate = random.uniform();
        double x = spread * random.normal() +
                   m.drift * spread * (static_cast<double>(i) - 0.5 * (last_analysis - 1));
        if (fate < m.odd + m.odd_in_truth) x += std::log(1.1);
        x -= m.odd_in_truth * std::log(1.1);
        if (m.modes > 0) x += (fate < m.slow ? m.modes : 0) - m.slow * m.modes;
        logs.push_back(x);
    }
    return logs;
}

/// As a gate does: up to five repeats, and eight where it is asked for them. `known`: its calibration.
slo_verdict verdict_of_gate(const vector<double>& logs, double distance, const measurement& known = {}) {
    gate_repeats repeats(known);
    for (const double x : logs) repeats.add(run_with_ttft(std::exp(x + distance)));
    return repeats.judged_by(sample_measurements::judge_values, mean(ttft) <= 1_s);
}
measurement calibrated_by(const vector<double>& logs) {
    measurement known;
    known.noise = {{"mean(ttft)", std::sqrt(sample_variance(logs))}};
    known.noise_repeats = logs.size();
    return known;
}

/// True value over the limit, as logarithms.
constexpr std::array<double, 5> distances = {-0.02, 0, 0.02, 0.04, 0.10};
enum place : std::size_t { under_2, at_limit, over_2, over_4, over_10 };
enum way : std::size_t { now, calibrated };
constexpr const char* way_names[] = {"**the rule**", "**the rule**, calibrated"};

/// Of each way at each distance; the numbers are those decided in five repeats.
sums rates_of(const machine& m, double spread, const study_run& by, std::uint64_t stream) {
    return by.over([&](sums& sum, std::uint64_t trial) {
        generator random = by.random(trial, stream);
        const vector<double> logs = logs_of_repeats(m, spread, last_noisy_analysis, random);
        const measurement known = calibrated_by(logs_of_repeats(m, spread, repeats_of_calibration, random));

        for (std::size_t i = 0; i < distances.size(); ++i)
            for (const way w : {now, calibrated}) {
                const slo_verdict v = verdict_of_gate(logs, distances[i], w == now ? measurement{} : known);
                sum.at(w * distances.size() + i).add(v);
                sum.number(w * distances.size() + i) +=
                    v.outcome != verdict::inconclusive && v.repeats <= last_analysis;
            }
    });
}

/// Two repeats of a machine with the most noise, at the limit.
tally rates_of_blatant_misses(const study_run& by) {
    return over_trials<tally>(by.trials, [&](tally& sum, std::uint64_t trial) {
        generator random = by.random(trial, 99);
        measurement m;
        m.rule = rule_of_gate(false);
        for (int i = 0; i < first_analysis; ++i)
            m.candidate.push_back(run_with_ttft(std::exp(most_noise * random.normal())));
        sum.add(sample_measurements::judge_values(m, mean(ttft) <= 1_s));
    });
}

void rows_of(const machine& m, double spread, study_run& by, std::uint64_t stream) {
    sums r = rates_of(m, spread, by, stream);
    const std::string name = printed("%s, %.1f %%", m.name, spread * 100);
    for (const way w : {now, calibrated}) {
        const std::size_t from = w * distances.size();
        const auto in_five = [&](place at) { return r.number(from + at) / r.at(from + at).trials(); };
        columns all = fractions_of(r, from, distances.size(), ", %.1f");
        all.push_back(percent(in_five(under_2)) + " / " + percent(in_five(over_2)));
        print_row(printed("%.1f %%, ", spread * 100) + way_names[w], all);
        by.must.valid(name, r.at(from + at_limit));
        if (m.is_promised) by.must.at_limit(name, r.at(from + at_limit));
        if (&m != machines || w != now) continue;
        if (spread <= 0.001) {
            by.must.at_least(name + ", 2 % over in five", in_five(over_2), 0.99);
            by.must.at_least(name + ", 2 % under in five", in_five(under_2), 0.99);
        }
        if (spread <= 0.01) by.must.at_least(name + ", 4 % over", r.at(from + over_4).failed(), 0.95);
    }
}

void machines_part(study_run& by) {
    std::printf("Pass/fail/inconclusive in %%, repeats; %lld trials.\n", by.trials);
    std::uint64_t stream = 0;
    for (const machine& m : machines) {
        by.table(m.name, {"2 % under the limit", "at the limit", "2 % over", "4 % over", "10 % over",
                          "decided in five, 2 % under / over"});
        for (const double spread : spreads) {
            ++stream;
            if (by.quick && stream % 3 != 0) continue;  // of each machine 1 and 10 %
            if (by.is_next_ours()) rows_of(m, spread, by, stream);
        }
    }
    const tally blatant = rates_of_blatant_misses(by);
    std::printf("\nTwo repeats at the limit, %.0f %% noise: %s\n", most_noise * 100, fractions(blatant).c_str());
    by.must.at_most("blatant misses at the limit", blatant.failed(), 0.001);
}

// ---- calibrations of few repeats, and of another day ----------------------------------------------

/// Gates of 3 or 10 % noise after a calibration of so many repeats, on a day with as much noise, a
/// third of it or three times as much.
void calibrations_part(study_run& by) {
    if (by.quick) return;
    constexpr std::size_t calibrated[] = {0, 3, 9, 10, 30};
    struct calibrated_on {
        const char* name;
        double noise = 1;
    };
    constexpr calibrated_on days[] = {{"the same noise"}, {"a third of it", 1 / 3.0},
                                      {"three times as much", 3}};
    std::printf("\nPass/fail/inconclusive in %%, repeats; calibrated on a day of other noise.\n");
    for (const double noise : {0.03, 0.10}) {
        by.table(printed("%.0f %% noise, calibrated with", noise * 100),
                 {"10 % under the limit", "at the limit", "10 % over"});
        for (const calibrated_on& day : days)
            for (const std::size_t repeats : calibrated) {
                if (repeats == 0 && &day != days) continue;
                const std::string name = repeats == 0 ? "none" : printed("%zu repeats, %s", repeats, day.name);
                by.row(name, [&] {
                    sums r = by.over([&](sums& sum, std::uint64_t trial) {
                        generator of_day = by.random(trial, 301), random = by.random(trial, 300);
                        const measurement known =
                            repeats == 0 ? measurement{}
                                         : calibrated_by(logs_of_repeats(machines[0], noise * day.noise, repeats, of_day));
                        const vector<double> logs = logs_of_repeats(machines[0], noise, last_noisy_analysis, random);
                        for (const std::size_t i : {0u, 1u, 2u})
                            sum.at(i).add(verdict_of_gate(logs, 0.10 * (static_cast<double>(i) - 1), known));
                    });
                    by.must.at_limit(name, r.at(1));
                    return fractions_of(r, 0, 3, ", %.1f");
                });
            }
    }
}

// ---- what a gate finds: the table of README -----------------------------------------------------

/// Pairs of a machine with this spread, of fresh processes, as a gate measures them.
slo_verdict verdict_of_pairs(const vector<double>& logs, double distance) {
    slo s = mean(ttft) <= 1_s;
    s.factor = 1;
    measurement fresh;
    fresh.pairs_are_fresh = true;
    gate_repeats pairs(fresh, true);
    for (std::size_t i = 0; i < logs.size(); i += 2)
        pairs.add(run_with_ttft(std::exp(logs[i + 1])), run_with_ttft(std::exp(logs[i] + distance)));
    return pairs.judged_by(sample_measurements::judge_values, s);
}
/// A run after thirty of main, which differ as much as their repeats do.
tally verdict_by_history(double spread, double distance, generator& random) {
    const auto run_of = [&](std::size_t repeats) {
        vector<double> logs = logs_of_repeats(machines[0], spread, repeats, random);
        const double day = spread * random.normal();
        for (double& x : logs) x += day;
        return logs;
    };
    vector<run_level> runs;
    constexpr std::size_t repeats = 3;
    for (std::size_t i = 0; i < 30; ++i) {
        const vector<double> logs = run_of(repeats);
        runs.push_back({i, mean_of(logs), sample_variance(logs), repeats});
    }
    vector<double> today = run_of(last_analysis);
    for (double& x : today) x += distance;
    const history_analysis l = judged_against(
        learned_from(runs, segments_of({}, runs), run_on::branch), today, 0, run_on::branch);
    tally t;
    t.add(l.outcome, static_cast<long long>(l.repeats));
    return t;
}

/// Both servers at once for five minutes, whose repeats of 40 s would spread by this: half of the
/// variance is the machine's, which both have, and each lasts for 3 s. The pace of an answer of 2.5 s
/// is its average in that time; requests differ by as much as repeats. Counted in repeats.
tally verdict_at_once(double spread, double distance, generator& random) {
    constexpr double seconds = 300, repeat_s = 40, lasts_s = 3;
    const double each = spread / std::sqrt(2 * lasts_s / repeat_s) / std::sqrt(2.0);
    const twins::noise noise{.name = "", .shared_sd = each, .shared_s = lasts_s, .own_sd = each,
                             .own_s = lasts_s};
    const twins::machine on = twins::machine_of(noise, seconds, random);
    const twins::looked_at load(twins::load_of(on, {.own_sd = spread}, seconds, random), seconds);
    const auto found = load.at(mean(tpot) <= 1.0 * baseline, std::exp(-distance));
    tally t;
    t.add(found.outcome, std::llround(found.seconds));
    return t;
}

enum found_by : std::size_t { fixed_limit, by_calibration, by_history, in_turns, both_at_once };
constexpr const char* names_of_ways[] = {"a fixed limit", "calibrated", "history", "in turns",
                                         "at once"};
constexpr double found_spreads[] = {0.001, 0.01, 0.03, 0.06};

tally findings_of(found_by way, double spread, double distance, const study_run& by) {
    return over_trials<tally>(by.trials, [&](tally& sum, std::uint64_t trial) {
        generator random = by.random(trial, 200);
        if (way == by_history) {
            sum += verdict_by_history(spread, distance, random);
            return;
        }
        if (way == both_at_once) {
            sum += verdict_at_once(spread, distance, random);
            return;
        }
        const auto logs = [&](std::size_t n) {
            return logs_of_repeats(machines[0], spread, n, random);
        };
        const measurement known = way == by_calibration ? calibrated_by(logs(repeats_of_calibration)) : measurement{};
        sum.add(way == in_turns ? verdict_of_pairs(logs(2 * last_noisy_pair_analysis), distance)
                                : verdict_of_gate(logs(last_noisy_analysis), distance, known));
    });
}
/// The smallest regression in whole percent that nine of ten gates find, and its repeats or pairs.
void found_part(study_run& by) {
    columns heads;
    for (const double s : found_spreads) heads.push_back(printed("%g %%", s * 100));
    by.table("repeats spread by", heads);
    for (const found_by way : {fixed_limit, by_calibration, by_history, in_turns, both_at_once})
        by.row(names_of_ways[way], [&] {
            columns all;
            for (const double spread : found_spreads) {
                int regression = 0;
                tally t;
                do t = findings_of(way, spread, std::log1p(++regression * 0.01), by);
                while (t.failed() < 0.9 && regression < 40);
                by.must.number_at_most("the smallest regression that is found, in %", regression, t.failed() >= 0.9 ? 40 : 39);
                const double taken = t.repeats_taken() / (way == both_at_once ? 40 : 1);
                all.push_back(printed("%d %%, %.1f, %s %%", regression, taken, percent(t.failed()).c_str()));
            }
            return all;
        });
}

const registered precision({"precision",
                            4000,
                            200,
                            {{"found", found_part}, {"calibrations", calibrations_part}, {"machines", machines_part}}});

}  // namespace
