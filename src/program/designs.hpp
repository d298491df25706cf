// which design of a gate finds the smallest regression in a given time, without a load
// The shipped rules judge drawn repeats, so the answer is that of the verdicts themselves.
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/json.hpp"
#include "core/base/random.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "core/judging/rule.hpp"
#include "core/metric/table.hpp"
#include "core/reports/tables.hpp"
#include "core/stored/calibration.hpp"
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/levels.hpp"
#include "extensions/history/core/lines.hpp"

#include <algorithm>  // max, min, sort
#include <array>
#include <cmath>  // expm1, floor, isinf, log1p, sqrt
#include <cstddef>  // ptrdiff_t, size_t
#include <string>

namespace llmbench_program {

using namespace llmbench;
using namespace llmbench::detail;

/// What a design costs, in seconds, and how much the repeats of a gate differ.
struct design_costs {
    double budget_s = 0;
    double repeat_s = 0;         // one repeat, with its warm-up
    double restart_s = 120;      // a server's start
    double switch_s = 7;         // a sleep of one server and the wake of the other
    double sd = 0.03;            // of the logarithm of a statistic, between repeats
    bool is_calibrated = false;  // sd is this gate's, by a calibration
};
/// One design in this time.
struct gate_design {
    std::string name{}, takes{};
    double finds = infinity;  // a fraction beyond the limit, in nine of ten runs; infinity: none
    std::string lacks{};      // what it needs beside the gate; "": nothing
};

inline constexpr int runs_of_designs = 200;
inline constexpr int most_of_design = 32;  // repeats or pairs: more would not be waited for
inline constexpr std::size_t runs_of_main = 30;

inline std::string minutes_text(double s) {
    return s < 60 ? printed("%.3g s", s) : printed("%.3g min", s / 60);
}
inline int how_many(double budget_s, double each_s) {
    if (!(each_s > 0)) return 0;
    return static_cast<int>(std::min<double>(most_of_design, std::floor(budget_s / each_s)));
}

/// The distance from the limit at which nine of ten runs fail. `fails_from` draws one run and
/// returns its own.
template <class FailsFrom> double found_in_nine_of_ten(const FailsFrom& fails_from) {
    vector<double> all;
    for (int i = 0; i < runs_of_designs; ++i) {
        generator random(1, static_cast<std::uint64_t>(i) + 1);
        all.push_back(fails_from(random));
    }
    std::sort(all.begin(), all.end());
    return nearest_rank(all, 0.9);
}
/// Where a run of repeats begins to fail: their spread is the same at every distance.
/// `analysis`: of the first distances, by a rule of the gate.
template <class Analysis>
double fails_from(generator& random, double sd, int fewest, int most, const Analysis& analysis) {
    constexpr double far = 100;
    double from = infinity;
    vector<double> distances;
    for (int n = 1; n <= most; ++n) {
        distances.push_back(far + sd * random.normal());
        if (n >= fewest) from = std::min(from, far - analysis(distances).fail_bound);
    }
    return from;
}

inline gate_design by_fixed_limit(const design_costs& c) {
    const int most = how_many(c.budget_s, c.repeat_s);
    gate_design d{"a fixed limit", printed("%d repeats", most)};
    if (most < first_fail) return d;
    const judging_rule rule = rule_of({}, first_analysis, most);
    d.finds = found_in_nine_of_ten([&](generator& random) {
        return fails_from(random, c.sd, first_fail, most, [&](const vector<double>& distances) {
            return analysis_of_repeats(distances, prior_sd, rule);
        });
    });
    return d;
}
inline gate_design by_calibrated_limit(const design_costs& c) {
    const int most = how_many(c.budget_s, c.repeat_s);
    gate_design d{"calibrated", printed("%d repeats", most)};
    if (!c.is_calibrated)
        d.lacks = printed("LLMBENCH_CALIBRATE=%zu, once, %s", repeats_of_calibration,
                          minutes_text(c.repeat_s * static_cast<double>(repeats_of_calibration)).c_str());
    if (most < first_fail) return d;
    const judging_rule rule = rule_of({}, first_analysis, most);
    d.finds = found_in_nine_of_ten([&](generator& random) {
        double squares = 0;
        for (std::size_t i = 1; i < repeats_of_calibration; ++i) {
            const double z = random.normal();
            squares += z * z;
        }
        const auto df = static_cast<double>(repeats_of_calibration - 1);
        const calibrated_noise known =
            calibrated_noise_of(c.sd * std::sqrt(squares / df), repeats_of_calibration);
        return fails_from(random, c.sd, first_fail, most, [&](const vector<double>& distances) {
            return analysis_by_calibration(distances, known, prior_sd, rule);
        });
    });
    return d;
}

/// Where a run against 30 runs of main begins to fail. Runs differ by as much as their repeats. A run
/// that is noisier than those has two more repeats, where the time is enough for them.
inline double fails_from_history(generator& random, double sd, std::size_t most) {
    constexpr double far = 100;
    vector<run_level> runs;
    const auto run = [&](std::size_t n, double level) {
        level += sd * random.normal();
        vector<double> values;
        for (std::size_t i = 0; i < n; ++i) values.push_back(level + sd * random.normal());
        return values;
    };
    for (std::size_t i = 0; i < runs_of_main; ++i) {
        const vector<double> values = run(std::size_t{first_fail}, 0);
        runs.push_back({i, mean_of(values), sample_variance(values), double{first_fail}});
    }
    const learned_history h = learned_from(runs, {{0, runs.size()}}, run_on::branch);
    const vector<double> today = run(most, far);
    double from = infinity;
    for (const history_analysis_kind kind :
         {history_analysis_kind::whole, history_analysis_kind::late}) {
        const history_analyses planned = analyses_for(h);
        const std::size_t n = kind == history_analysis_kind::late ? planned.late : planned.whole;
        if (n > most) break;
        const history_analysis at = analysis_against(
            h, {today.begin(), today.begin() + static_cast<std::ptrdiff_t>(n)}, 0.0, kind);
        from = std::min(from, far - at.fail_bound);
        if (!at.is_noisier) break;
    }
    return from;
}
inline gate_design by_history(const design_costs& c, bool has_one) {
    const int most = std::min(how_many(c.budget_s, c.repeat_s), last_analysis);
    gate_design d{printed("a history of %zu runs", runs_of_main), printed("%d repeats", most)};
    if (!has_one) d.lacks = printed("%zu runs of main, LLMBENCH_HISTORY=append", runs_of_main);
    if (most < first_fail) return d;
    d.finds = found_in_nine_of_ten([&](generator& random) {
        return fails_from_history(random, c.sd, static_cast<std::size_t>(most));
    });
    return d;
}

/// Pairs with a live baseline, whose servers take `between_s` to be the next one's.
inline gate_design pairs_in_turns(const design_costs& c, const char* name, double between_s,
                            bool are_fresh) {
    const int most = how_many(c.budget_s, 2 * (c.repeat_s + between_s));
    gate_design d{name, printed(most == 1 ? "%d pair" : "%d pairs", most)};
    d.lacks = "a server of the base, on the same machine";
    if (most < first_pair_analysis) return d;
    judging_rule rule = rule_of({}, first_pair_analysis, most);
    rule.pairs_are_fresh = are_fresh;
    const double s0 = prior_sd * std::sqrt(2.0);
    d.finds = found_in_nine_of_ten([&](generator& random) {
        return fails_from(random, c.sd * std::sqrt(2.0), first_pair_analysis, most,
                          [&](const vector<double>& distances) {
                              return analysis_of_pairs(distances, s0, rule);
                          });
    });
    return d;
}

/// The same with servers that stay and sleep. The luck of the two processes lasts for all pairs.
inline gate_design pairs_switched(const design_costs& c) {
    gate_design d = pairs_in_turns(c, "in turns, switched", c.switch_s, false);
    d.lacks = "a server of the base on the same GPU, both switched(...)";
    return d;
}

/// Loads at once have no rule by repeats: the measured regressions of a load of five minutes
/// (tests/bench/rates.md, "What is found"), by the square root of the time.
inline gate_design both_at_once(const design_costs& c) {
    struct found {
        double sd, finds;
    };
    static constexpr std::array<found, 4> measured = {
        {{0.001, 0.01}, {0.01, 0.03}, {0.03, 0.07}, {0.06, 0.14}}};
    constexpr double measured_s = 300;
    gate_design d{"both servers at once", minutes_text(c.budget_s) + " of load"};
    d.lacks = "a second GPU, for the server of the base";
    if (c.budget_s < 2 * c.repeat_s) return d;
    std::size_t i = 1;
    while (i + 1 < measured.size() && measured[i].sd < c.sd) ++i;
    const found &low = measured[i - 1], &high = measured[i];
    const double at_five = low.finds + (high.finds - low.finds) * (std::max(c.sd, low.sd) - low.sd) /
                                           (high.sd - low.sd);
    d.finds = std::log1p(at_five) * std::sqrt(measured_s / c.budget_s);
    return d;
}

/// All of them, the one that finds most first.
inline vector<gate_design> designs_for(const design_costs& c, bool has_history) {
    vector<gate_design> all = {by_fixed_limit(c), by_calibrated_limit(c), by_history(c, has_history),
                               pairs_in_turns(c, "in turns, restarted", c.restart_s, true),
                               pairs_switched(c),
                               both_at_once(c)};
    for (gate_design& d : all) d.finds = std::expm1(d.finds);
    sort_stably(all, [](const gate_design& a, const gate_design& b) { return a.finds < b.finds; });
    return all;
}

/// The designs of one gate for a statistic whose repeats spread by `sd`.
struct statistic_designs {
    std::string statistic{};  // "": of any, as no calibration knows this gate
    double sd = 0;
    vector<gate_design> designs{};
};

/// Whether the rule judges it by the values of repeats, so that their spread decides.
inline bool is_by_repeats(const slo& s) {
    const metric_id m = s.statistic.metric;
    return !is_request_fraction(m) && !is_drift(m) && !is_of_start(m) && !is_of_recovery(m) &&
           !is_of_answers(m);
}
/// One for each blocking objective that the calibration knows; without a calibration one for all.
inline vector<statistic_designs> designs_of(const scenario& s, design_costs c,
                                            const gate_calibration& known) {
    const bool has_history = s.baseline.is_of_extension();
    vector<statistic_designs> all;
    bool is_any = false;
    for (const slo& x : s.slos) {
        if (x.is_advisory || !is_by_repeats(x)) continue;
        is_any = true;
        const auto at = known.noise.find(str(x.statistic.name));
        if (at == known.noise.end()) continue;
        c.sd = std::max(at->second, 1e-4);
        c.is_calibrated = true;
        all.push_back({at->first, c.sd, designs_for(c, has_history)});
    }
    if (all.empty() && is_any) all.push_back({"", c.sd, designs_for(c, has_history)});
    return all;
}

inline std::string designs_text(const statistic_designs& of, double budget_s) {
    std::string t = printed("  in %s, of %s, whose repeats spread by %.2g %%%s\n",
                            minutes_text(budget_s).c_str(),
                            of.statistic.empty() ? "any statistic" : of.statistic.c_str(),
                            of.sd * 100, of.statistic.empty() ? " (assumed)" : "");
    report_table table{{"design", "takes", "nine runs of ten find", "needs"}};
    for (const gate_design& d : of.designs)
        table.add({d.name, d.takes,
                   std::isinf(d.finds) ? std::string("nothing: too few")
                                       : printed("+%.2g %%", d.finds * 100),
                   d.lacks});
    return t + console_table(table, 0);
}
inline void write_designs(json_writer& j, const vector<statistic_designs>& all) {
    j.key("designs").open('[');
    for (const statistic_designs& of : all)
        for (const gate_design& d : of.designs)
            j.open('{').field("statistic", of.statistic).field("sd", of.sd).field("design", d.name)
                .field("takes", d.takes).field("finds", d.finds).field("needs", d.lacks).close();
    j.close();
}

}  // namespace llmbench_program
