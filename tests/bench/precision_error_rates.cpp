// How precise verdicts are where the machine is: gates whose repeats spread by 0.1 to 10 %, with what a
// few repeats may hide (odd repeats, two modes, a drift), without and with a calibration of ten repeats.
// The shipped verdict functions judge them with the repeats that a gate would measure; beside them the
// rule before quiet repeats, revision 1.
#include "core/judging/judge.hpp"
#include "core/planning/planning.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/levels.hpp"

#include "../support/sample_measurements.hpp"
#include "support/rates.hpp"
#include "support/twin_loads.hpp"

using namespace llmbench;
using namespace rates;
using sample_measurements::measurement;

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

/// As a gate does: up to five repeats, and eight where it is asked for them.
slo_verdict verdict_of_gate(const vector<double>& logs, double distance, measurement m) {
    slo s = mean(ttft) <= 1_s;
    const auto measure_to = [&](int repeats) {
        for (std::size_t i = m.candidate.size(); i < static_cast<std::size_t>(repeats); ++i)
            m.candidate.push_back(run_with_ttft(std::exp(logs[i] + distance)));
        return sample_measurements::judge_values(m, s);
    };
    slo_verdict v = measure_to(last_analysis);
    if (asks_for_more(m, m, v)) v = measure_to(last_noisy_analysis);
    return v;
}

/// True value over the limit, as logarithms.
constexpr std::array<double, 5> distances = {-0.02, 0, 0.02, 0.04, 0.10};
enum place : std::size_t { under_2, at_limit, over_2, over_4, over_10 };
enum way : std::size_t { before, now, calibrated, ways };
constexpr const char* way_names[] = {"revision 1", "**the rule**", "**the rule**, calibrated"};

struct row {
    std::array<std::array<tally, distances.size()>, ways> of{};
    std::array<std::array<long long, distances.size()>, ways> in_five{};
    void operator+=(const row& o) {
        for (std::size_t w = 0; w < ways; ++w)
            for (std::size_t i = 0; i < distances.size(); ++i) {
                of[w][i] += o.of[w][i];
                in_five[w][i] += o.in_five[w][i];
            }
    }
    double decided_in_five(way w, place at) const {
        return static_cast<double>(in_five[w][at]) / of[w][at].trials();
    }
};

row rates_of(const machine& m, double spread, const options& o, std::uint64_t stream) {
    return over_trials<row>(o.trials, [&](row& sum, std::uint64_t trial) {
        generator random(mixed(mixed(o.seed) + trial), stream);
        const vector<double> logs = logs_of_repeats(m, spread, last_noisy_analysis, random);
        const vector<double> calibration =
            logs_of_repeats(m, spread, repeats_of_calibration, random);
        measurement gate;
        gate.rule = rule_of({}, first_analysis, last_analysis, 1);
        measurement old = gate, known = gate;
        old.rule.revision = 1;
        known.noise = {{"mean(ttft)", std::sqrt(sample_variance(calibration))}};
        known.noise_repeats = calibration.size();
        for (std::size_t i = 0; i < distances.size(); ++i)
            for (const way w : {before, now, calibrated}) {
                const slo_verdict v = verdict_of_gate(
                    logs, distances[i], w == before ? old : w == now ? gate : known);
                sum.of[w][i].add(v.outcome, v.repeats);
                sum.in_five[w][i] +=
                    v.outcome != verdict::inconclusive && v.repeats <= last_analysis;
            }
    });
}

/// Two repeats of a machine with the most noise, at the limit.
tally rates_of_blatant_misses(const options& o) {
    return over_trials<tally>(o.trials, [&](tally& sum, std::uint64_t trial) {
        generator random(mixed(mixed(o.seed) + trial), 99);
        measurement m;
        m.rule = rule_of({}, first_analysis, last_analysis, 1);
        for (int i = 0; i < first_analysis; ++i)
            m.candidate.push_back(run_with_ttft(std::exp(most_noise * random.normal())));
        const slo_verdict v = sample_measurements::judge_values(m, mean(ttft) <= 1_s);
        sum.add(v.outcome, v.repeats);
    });
}

// ---- calibrations of few repeats, and of another day ----------------------------------------------

/// Gates of 3 or 10 % noise after a calibration of so many repeats, on a day with as much noise, a
/// third of it or three times as much.
bool study_of_calibrations(const options& o) {
    constexpr std::size_t calibrated[] = {0, 3, 9, 10, 30};
    constexpr double noises[] = {0.03, 0.10};
    struct calibrated_on {
        const char* name;
        double noise = 1;
    };
    constexpr calibrated_on days[] = {{"the same noise"}, {"a third of it", 1 / 3.0},
                                      {"three times as much", 3}};
    std::printf("\nPass/fail/inconclusive in %%, repeats; calibrated on a day of other noise.\n");
    bounds must(o.trials);
    for (const double noise : noises) {
        std::printf("\n");
        print_head(printed("%.0f %% noise, calibrated with", noise * 100),
                   {"10 % under the limit", "at the limit", "10 % over"});
        for (const calibrated_on& day : days)
            for (const std::size_t repeats : calibrated) {
                if (repeats == 0 && &day != days) continue;
                std::string name = printed("%zu repeats, %s", repeats, day.name);
                if (repeats == 0) name = "none";
                vector<std::string> columns;
                for (const double off : {-0.10, 0.0, 0.10}) {
                    const tally t = over_trials<tally>(o.trials, [&](tally& sum, std::uint64_t trial) {
                        generator random(mixed(mixed(o.seed) + trial), 300);
                        measurement gate;
                        gate.rule = rule_of({}, first_analysis, last_analysis, 1);
                        if (repeats > 0) {
                            generator of_day(mixed(mixed(o.seed) + trial), 301);
                            gate.noise = {{"mean(ttft)",
                                           std::sqrt(sample_variance(logs_of_repeats(
                                               machines[0], noise * day.noise, repeats, of_day)))}};
                            gate.noise_repeats = repeats;
                        }
                        const slo_verdict v = verdict_of_gate(
                            logs_of_repeats(machines[0], noise, last_noisy_analysis, random), off,
                            gate);
                        sum.add(v.outcome, v.repeats);
                    });
                    columns.push_back(fractions(t) + printed(", %.1f", t.repeats_taken()));
                    if (off != 0) continue;
                    must.at_most(name + ", passes at the limit", t.passed(), 0.05);
                    must.at_most(name + ", fails at the limit", t.failed(), 0.01);
                }
                print_row(name, columns);
            }
    }
    return must.met();
}

// ---- what a gate finds: the table of README -----------------------------------------------------

/// Pairs of a machine with this spread, of fresh processes, as a gate measures them.
slo_verdict verdict_of_pairs(const vector<double>& logs, double distance) {
    slo s = mean(ttft) <= 1_s;
    s.factor = 1;
    measurement m;
    m.rule = rule_of({}, first_pair_analysis, last_pair_analysis, 1);
    m.pairs_are_fresh = true;
    const auto measure_to = [&](int pairs) {
        for (std::size_t i = m.candidate.size(); i < static_cast<std::size_t>(pairs); ++i) {
            m.candidate.push_back(run_with_ttft(std::exp(logs[2 * i] + distance)));
            m.baseline.push_back(run_with_ttft(std::exp(logs[2 * i + 1])));
        }
        return sample_measurements::judge_values(m, s);
    };
    slo_verdict v = measure_to(last_pair_analysis);
    if (asks_for_more(m, m, v)) v = measure_to(last_noisy_pair_analysis);
    return v;
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

tally findings_of(found_by way, double spread, double distance, const options& o) {
    return over_trials<tally>(o.trials, [&](tally& sum, std::uint64_t trial) {
        generator random(mixed(mixed(o.seed) + trial), 200);
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
        measurement gate;
        gate.rule = rule_of({}, first_analysis, last_analysis, 1);
        if (way == by_calibration) {
            gate.noise = {{"mean(ttft)", std::sqrt(sample_variance(logs(repeats_of_calibration)))}};
            gate.noise_repeats = repeats_of_calibration;
        }
        const slo_verdict v =
            way == in_turns ? verdict_of_pairs(logs(2 * last_noisy_pair_analysis), distance)
                            : verdict_of_gate(logs(last_noisy_analysis), distance, gate);
        sum.add(v.outcome, v.repeats);
    });
}
/// The smallest regression in whole percent that nine of ten gates find, and its repeats or pairs.
bool print_findings(const options& o) {
    std::printf("\n");
    vector<std::string> heads;
    for (const double s : found_spreads) heads.push_back(printed("%g %%", s * 100));
    print_head("repeats spread by", heads);
    bool all = true;
    for (const found_by way : {fixed_limit, by_calibration, by_history, in_turns, both_at_once}) {
        vector<std::string> columns;
        for (const double spread : found_spreads) {
            int regression = 0;
            tally t;
            do t = findings_of(way, spread, std::log1p(++regression * 0.01), o);
            while (t.failed() < 0.9 && regression < 40);
            all &= t.failed() >= 0.9;
            const double taken = t.repeats_taken() / (way == both_at_once ? 40 : 1);
            columns.push_back(printed("%d %%, %.1f, %s %%", regression, taken,
                                      percent(t.failed()).c_str()));
        }
        print_row(names_of_ways[way], columns);
    }
    return all;
}

bool study_of_precision(const options& o) {
    if (o.does("found") && !print_findings(o)) return false;
    if (o.does("calibrations") && !study_of_calibrations(o)) return false;
    if (!o.does("machines")) return true;
    std::printf("Pass/fail/inconclusive in %%, repeats; %lld trials.\n", o.trials);
    bounds must(o.trials);
    std::uint64_t stream = 0;
    for (const machine& m : machines) {
        std::printf("\n");
        print_head(m.name, {"2 % under the limit", "at the limit", "2 % over", "4 % over",
                            "10 % over", "decided in five, 2 % under / over"});
        for (const double spread : spreads) {
            const row r = rates_of(m, spread, o, ++stream);
            for (const way w : {before, now, calibrated}) {
                vector<std::string> columns;
                for (const tally& t : r.of[w])
                    columns.push_back(fractions(t) + printed(", %.1f", t.repeats_taken()));
                columns.push_back(percent(r.decided_in_five(w, under_2)) + " / " +
                                  percent(r.decided_in_five(w, over_2)));
                print_row(printed("%.1f %%, ", spread * 100) + way_names[w], columns);
            }
            const std::string name = printed("%s, %.1f %%", m.name, spread * 100);
            for (const way w : {now, calibrated}) {
                must.valid(name, r.of[w][at_limit]);
                if (!m.is_promised) continue;
                must.at_most(name + ", passes at the limit", r.of[w][at_limit].passed(), 0.05);
                must.at_most(name + ", fails at the limit", r.of[w][at_limit].failed(), 0.01);
            }
            if (&m != machines) continue;
            if (spread <= 0.001) {
                must.at_least(name + ", 2 % over in five", r.decided_in_five(now, over_2), 0.99);
                must.at_least(name + ", 2 % under in five", r.decided_in_five(now, under_2), 0.99);
            }
            if (spread <= 0.01)
                must.at_least(name + ", 4 % over", r.of[now][over_4].failed(), 0.95);
        }
    }
    const tally blatant = rates_of_blatant_misses(o);
    std::printf("\nTwo repeats at the limit, %.0f %% noise: %s\n", most_noise * 100,
                fractions(blatant).c_str());
    must.at_most("blatant misses at the limit", blatant.failed(), 0.001);
    return must.met();
}
const registered precision({"precision", 4000, 200, {"machines", "found", "calibrations"}, study_of_precision});

}  // namespace
