// how the machines of one series differ, and whether one of them explains slow runs
#pragma once

#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "extensions/history/core/levels.hpp"

#include <algorithm>  // clamp, count, find_if, max, min, sort
#include <cmath>  // exp, fabs, lgamma, pow, sqrt
#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr std::size_t runs_of_known = 3;       // from these on a machine's effect is listed
inline constexpr std::size_t newest_of_machine = 10;  // its effect is from these
inline constexpr std::size_t least_differences = 6;   // that show what its runs differ by
inline constexpr double shown_by_chance = 0.01;       // a machine explains slow runs below this
inline constexpr double alone_by_chance = 0.001;      // below this no other machine runs any more

/// One machine in a series. Logarithms, above 0: slower than the levels.
struct machine_effect {
    std::string name{};
    std::string last{};  // the time of its newest run
    std::size_t first_run = 0, last_run = 0;  // indices of runs
    std::size_t runs = 0;     // that the effect is from
    double own = 0;           // what those show
    double effect = 0;        // shrunk towards none: what runs are corrected by
    double turned = 0;        // its own step, which no other machine took; 0: none
    std::size_t turned_at = 0;  // the run from which on it has the effect
    bool overlaps = false;    // with another machine in time: else it is the level's or its own
    bool is_known() const { return overlaps && runs >= runs_of_known; }
};
struct series_machines {
    vector<machine_effect> all{};
    vector<std::size_t> of_run{};  // of each run; all.size(): its machine is not known
    vector<double> by_run{};       // the effect on each run
    double within = 0, df = 0;     // variance of the runs of one machine
    double between = 0;            // variance of the machines
    double ratio() const { return between > 0 ? within / between : infinity; }
    std::size_t known() const {
        std::size_t n = 0;
        for (const machine_effect& m : all) n += m.is_known();
        return n;
    }
    const machine_effect* named(const std::string& name) const {
        for (const machine_effect& m : all)
            if (m.name == name) return &m;
        return nullptr;
    }
};

inline series_machines machines_of(const history_series& s, const vector<run_level>& runs) {
    series_machines out;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const series_run& r = s.runs[runs[i].run];
        const auto is_it = [&](const machine_effect& m) { return m.name == r.machine; };
        auto at = std::find_if(out.all.begin(), out.all.end(), is_it);
        if (at == out.all.end() && !r.machine.empty()) {
            out.all.push_back({.name = r.machine, .first_run = i});
            at = out.all.end() - 1;
        }
        out.of_run.push_back(r.machine.empty() ? ~std::size_t{0}
                                               : static_cast<std::size_t>(at - out.all.begin()));
        if (r.machine.empty()) continue;
        at->last = r.at;
        at->last_run = i;
    }
    out.by_run.resize(runs.size());
    for (std::size_t& m : out.of_run)  // of unknown ones, when all others are there
        if (m >= out.all.size()) m = out.all.size();
    for (machine_effect& a : out.all)
        a.overlaps = any_of(out.all, [&](const machine_effect& b) {
            return &a != &b && a.first_run < b.last_run && b.first_run < a.last_run;
        });
    return out;
}
inline vector<run_level> without_machines(vector<run_level> runs, const series_machines& of) {
    for (std::size_t i = 0; i < runs.size(); ++i) runs[i].mean -= of.by_run[i];
    return runs;
}

/// The middle of a machine's distances, whatever a few of them are.
inline double middle_of(vector<double> v) {
    const double center = median_of(v);
    if (v.size() < 5) return center;
    const double reach = 3 * std::max(robust_sd(v, center), least_run_sd);
    for (double& x : v) x = std::clamp(x, center - reach, center + reach);
    return mean_of(v);
}
/// Distances of a machine's runs from the levels, oldest first.
struct machine_distances {
    vector<std::size_t> runs{};
    vector<double> from_level{};
    vector<double> newest(std::size_t first, std::size_t end) const {
        const std::size_t n = std::min(end - first, newest_of_machine);
        const auto at = from_level.begin() + static_cast<std::ptrdiff_t>(end);
        return {at - static_cast<std::ptrdiff_t>(n), at};
    }
};
/// Of each machine. The levels are of runs that are corrected by the effects so far.
inline vector<machine_distances> distances_of(const vector<run_level>& runs,
                                              const vector<history_segment>& segments,
                                              const series_machines& of) {
    vector<machine_distances> out(of.all.size());
    const vector<run_level> corrected = without_machines(runs, of);
    for (const history_segment& s : segments) {
        const double level = median_of(means_of(corrected, s.first, s.end));
        for (std::size_t i = s.first; i < s.end; ++i) {
            const std::size_t m = of.of_run[i];
            if (m == out.size() || !of.all[m].overlaps) continue;
            out[m].runs.push_back(i);
            out[m].from_level.push_back(runs[i].mean - level);
        }
    }
    return out;
}
/// What runs of one machine differ by, whatever steps there are: from differences of successive
/// ones.
struct noise_of_one {
    double sd = 0, df = 0;
};
inline noise_of_one noise_within(const vector<machine_distances>& all) {
    vector<double> steps;
    for (const machine_distances& d : all)
        for (std::size_t i = 1; i < d.from_level.size(); ++i)
            steps.push_back(d.from_level[i] - d.from_level[i - 1]);
    if (steps.size() < least_differences) return {};
    return {std::max(robust_sd(steps, 0) / std::sqrt(2.0), least_run_sd),
            static_cast<double>(steps.size()) / 2};
}
/// A machine's newest distances, those before its own step, and the run of that step.
struct parted_distances {
    vector<double> now{}, before{};
    std::size_t step_at = 0;
};
/// The sum of the distances from the median.
inline double misfit_of(const vector<double>& v) {
    const double center = median_of(v);
    double sum = 0;
    for (const double x : v) sum += std::fabs(x - center);
    return sum;
}
/// The start of a machine's newest state, 0 if no step is shown: the split that fits best, if most of
/// the later runs are farther away than runs of one machine differ, at a level for all splits.
inline std::size_t turn_in(const vector<double>& v, const noise_of_one& noise, double splits) {
    if (!(noise.df > 0)) return 0;
    std::size_t at = 0;
    double least = infinity;
    for (std::size_t k = 1; k + runs_after <= v.size(); ++k) {
        const auto middle = v.begin() + static_cast<std::ptrdiff_t>(k);
        const double misfit = misfit_of({v.begin(), middle}) + misfit_of({middle, v.end()});
        if (misfit >= least) continue;
        least = misfit;
        at = k;
    }
    if (at == 0) return 0;
    const auto middle = v.begin() + static_cast<std::ptrdiff_t>(at);
    const double before = median_of({v.begin(), middle});
    vector<double> after(middle, v.end());
    std::sort(after.begin(), after.end());
    const std::size_t half = (after.size() - 1) / 2;
    const double by = std::max(after[half] - before, before - after[after.size() - 1 - half]);
    const double a = static_cast<double>(at), b = static_cast<double>(after.size());
    const double t = by / (noise.sd * std::sqrt(1 / a + 1 / b));
    return t > student_t_quantile(1 - shown_by_chance / 2 / splits, noise.df) ? at : 0;
}
inline parted_distances parted(const machine_distances& d, const noise_of_one& noise,
                               double splits, std::size_t last_of_others) {
    const std::size_t n = d.runs.size(), from = n - std::min(n, searched_runs);
    const auto first = d.from_level.begin() + static_cast<std::ptrdiff_t>(from);
    const std::size_t step = turn_in({first, d.from_level.end()}, noise, splits), at = from + step;
    // nothing tells its step from one of main, as long as no other machine has run since
    if (step == 0 || last_of_others < d.runs[at]) return {d.newest(0, n), {}, 0};
    return {d.newest(at, n), d.newest(0, at), d.runs[at]};
}
inline std::size_t last_without(const series_machines& of, const machine_effect& one) {
    std::size_t last = 0;
    for (const machine_effect& m : of.all)
        if (&m != &one) last = std::max(last, m.last_run);
    return last;
}
/// Sets the effects by moments: variances of a one-way layout with random machines, whose means
/// are shrunk by n / (n + within / between).
inline void set_effects(series_machines& of, const vector<machine_distances>& distances) {
    vector<double> rest;
    double all = 0, squares = 0, machines = 0, sum = 0, splits = 0;
    for (const machine_distances& d : distances) splits += static_cast<double>(d.runs.size());
    const noise_of_one noise = noise_within(distances);
    for (std::size_t i = 0; i < of.all.size(); ++i) {
        machine_effect& m = of.all[i];
        const parted_distances d = parted(distances[i], noise, splits, last_without(of, m));
        m.runs = d.now.size();
        if (m.runs == 0) continue;
        m.own = middle_of(d.now);
        m.turned_at = d.step_at;
        m.turned = d.before.empty() ? 0 : m.own - middle_of(d.before);
        for (const double x : d.now) rest.push_back(x - m.own);
        const auto n = static_cast<double>(m.runs);
        ++machines;
        all += n;
        squares += n * n;
        sum += n * m.own;
    }
    of.df = all - machines;
    of.between = 0;
    if (machines < 2 || of.df <= 0) return;
    const double reach = 3 * std::max(robust_sd(rest, 0), least_run_sd);
    of.within = 0;
    for (const double x : rest) of.within += std::min(x * x, reach * reach);
    of.within = std::max(of.within / of.df, least_run_sd * least_run_sd);
    double spread = 0;
    for (machine_effect& m : of.all) {
        if (m.runs == 0) continue;
        m.own -= sum / all;
        spread += static_cast<double>(m.runs) * m.own * m.own;
    }
    const double size = (all - squares / all) / (machines - 1);
    of.between = std::max(0.0, (spread / (machines - 1) - of.within) / size);
    const auto shrunk = [&](const machine_effect& m, double own) {
        const auto n = static_cast<double>(m.runs);
        return m.runs == 0 ? 0 : own * n / (n + of.ratio());
    };
    for (machine_effect& m : of.all) m.effect = shrunk(m, m.own);
    for (std::size_t i = 0; i < of.of_run.size(); ++i) {
        if (of.of_run[i] == of.all.size()) continue;
        const machine_effect& m = of.all[of.of_run[i]];
        const bool is_older = i < m.turned_at;
        of.by_run[i] = is_older ? shrunk(m, m.own - m.turned) : m.effect;
    }
}
/// Whether a step is one of main: the runs since then, without those of any one machine, are nearer
/// to the new level than to the old one. While a single machine has run since, nothing tells whose
/// step it is.
inline bool is_of_main(const series_machines& of, const vector<run_level>& runs, std::size_t from,
                       std::size_t at, std::size_t end) {
    const double before = mean_of(means_of(runs, from, at));
    const double step = mean_of(means_of(runs, at, end)) - before;
    vector<double> had(of.all.size() + 1);
    for (std::size_t i = from; i < at; ++i) ++had[of.of_run[i]];
    const auto machines = static_cast<double>(of.all.size()) + 1 -
                          static_cast<double>(std::count(had.begin(), had.end(), 0.0));
    for (std::size_t m = 0; m < of.all.size(); ++m) {
        if (had[m] == 0 && machines < 2) continue;  // another machine in place of the only one
        double sum = 0, others = 0;
        for (std::size_t i = at; i < end; ++i)
            if (of.of_run[i] != m) {
                sum += runs[i].mean - before;
                ++others;
            }
        const double share =
            had[m] > 0 ? had[m] / static_cast<double>(at - from) : 1 / (machines + 1);
        const bool is_alone = others == 0 && share < 1;
        // A machine that ran once, long ago, keeps no step of main from being seen for weeks.
        const double again = std::min(share, 2.0 / 3);
        if (is_alone && std::pow(again, end - at) > alone_by_chance) return false;
        if (others > 0 && sum / others / step < 0.5) return false;
    }
    return true;
}
inline vector<history_segment> levels_of_main(const history_series& s,
                                              const vector<run_level>& runs,
                                              const series_machines& of) {
    return segments_of(s, runs, [&](std::size_t from, std::size_t at, std::size_t end) {
        return is_of_main(of, runs, from, at, end);
    });
}
/// What the first levels are found without: of each machine the median of its runs.
inline void set_medians(series_machines& of, const vector<run_level>& runs) {
    vector<vector<double>> own(of.all.size());
    for (std::size_t i = 0; i < runs.size(); ++i)
        if (of.of_run[i] < of.all.size()) own[of.of_run[i]].push_back(runs[i].mean);
    vector<double> medians;
    for (const vector<double>& v : own) medians.push_back(median_of(v));
    const double center = median_of(medians);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const std::size_t m = of.of_run[i];
        if (m < of.all.size() && of.all[m].overlaps) of.by_run[i] = medians[m] - center;
    }
}
/// Levels and effects together: each is found in the runs without the other.
inline series_machines effects_in(const history_series& s, const vector<run_level>& runs) {
    series_machines of = machines_of(s, runs);
    const bool any = any_of(of.all, [](const machine_effect& m) { return m.overlaps; });
    set_medians(of, runs);
    // Medians may take a step of main for an effect, which a few turns undo slowly.
    for (int i = 0; any && i < 30; ++i) {
        const vector<double> before = of.by_run;
        set_effects(of, distances_of(runs, levels_of_main(s, without_machines(runs, of), of), of));
        double moved = 0;
        for (std::size_t k = 0; k < before.size(); ++k)
            moved = std::max(moved, std::fabs(of.by_run[k] - before[k]));
        if (moved < 1e-6) break;
    }
    return of;
}
/// The degrees of freedom that the effects take from the spread of runs.
inline double fitted_by(const series_machines& of) {
    double all = 0;
    for (const machine_effect& m : of.all) {
        const auto n = static_cast<double>(m.runs);
        if (of.between > 0 && m.runs > 0) all += n / (n + of.ratio());
    }
    return std::max(0.0, all - 1);
}
/// Half of the 95 % interval of what a machine's runs show; infinite if it is not known.
inline double reach_of_effect(const series_machines& of, const machine_effect& m) {
    if (!m.is_known() || of.df <= 0) return infinity;
    return student_t_quantile(0.975, of.df) * std::sqrt(of.within / static_cast<double>(m.runs));
}

/// The machine of a run that is judged: what it adds to the level and to the interval.
struct machine_of_run {
    std::string name{};  // "": it does not matter
    double effect = 0;
    double variance = 0, df = 0;  // of the effect, or of the machines where it is not known
    std::string only{};  // another machine, the only one of the level: nothing compares the two
};
/// `level`: the runs that it is held against.
inline machine_of_run machine_for(const series_machines& of, const std::string& name,
                                  const history_segment& level) {
    const machine_effect* const own = of.named(name);
    if (name.empty() || of.all.empty() || (own && of.all.size() == 1)) return {};
    machine_of_run m{.name = name};
    if (own && own->overlaps && own->runs > 0 && of.df > 0) {
        m.effect = own->effect;
        m.variance = of.between > 0 ? of.within / (static_cast<double>(own->runs) + of.ratio()) : 0;
        m.df = of.df;
        return m;
    }
    bool is_one = true, has_own = false;
    for (std::size_t i = level.first; i < level.end; ++i) {
        is_one = is_one && of.of_run[i] == of.of_run[level.first];
        has_own = has_own || (own && &of.all[0] + of.of_run[i] == own);
    }
    const std::size_t first = level.first < level.end ? of.of_run[level.first] : of.all.size();
    if (is_one && !has_own && first < of.all.size()) m.only = of.all[first].name;
    const auto known = static_cast<double>(of.known());
    if (known < 2) return m;  // what runs differ by has the machines in it
    m.variance = of.between * (1 + 1 / known);
    m.df = known - 1;
    return m;
}

// ---- slow runs of one machine

inline double log_choose(double n, double k) {
    return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}
/// The chance that of `slow` runs at least `on_it` are among `its_runs` of all runs, if slow runs
/// fall on machines at random: Fisher's exact test, one-sided.
inline double chance_of_slow(std::size_t runs, std::size_t its_runs, std::size_t slow,
                             std::size_t on_it) {
    const auto n = static_cast<double>(runs), m = static_cast<double>(its_runs);
    const auto s = static_cast<double>(slow);
    double chance = 0;
    for (std::size_t k = on_it; k <= std::min(slow, its_runs); ++k) {
        const auto x = static_cast<double>(k);
        if (s - x > n - m) continue;
        chance += std::exp(log_choose(m, x) + log_choose(n - m, s - x) - log_choose(n, s));
    }
    return std::min(chance, 1.0);
}
/// Slow runs of a level, and those of one machine.
struct slow_runs {
    std::size_t runs = 0, slow = 0, on_it = 0, machines = 0;
    double chance = 1;
    double farthest = 0;  // from the level, of those on it
    bool explain() const { return on_it >= 2 && chance <= shown_by_chance; }
};
/// `rest`: distances of the newest runs from their levels; those beyond `reach` are slow.
inline slow_runs slow_runs_on(const series_machines& of, const std::string& name,
                              const vector<double>& rest, double reach) {
    slow_runs out;
    std::size_t its_runs = 0;
    vector<bool> has_run(of.all.size());
    const std::size_t from = of.of_run.size() - rest.size();
    for (std::size_t i = 0; i < rest.size(); ++i) {
        const std::size_t m = of.of_run[from + i];
        if (m == of.all.size()) continue;  // it may have been on any
        const bool is_its = of.all[m].name == name, is_slow = rest[i] > reach;
        has_run[m] = true;
        ++out.runs;
        its_runs += is_its;
        out.slow += is_slow;
        out.on_it += is_slow && is_its;
        if (is_slow && is_its) out.farthest = std::max(out.farthest, rest[i]);
    }
    for (const bool has : has_run) out.machines += has;
    if (out.machines > 1 && out.on_it > 0)
        out.chance = chance_of_slow(out.runs, its_runs, out.slow, out.on_it);
    return out;
}

/// Why a step from one level to the next is the change of a machine, "" if it is not.
inline std::string machine_of_step(const series_machines& of, const history_segment& before,
                                   const history_segment& after) {
    const std::size_t m = of.of_run[after.first];
    if (m == of.all.size()) return {};
    for (std::size_t i = after.first; i < after.end; ++i)
        if (of.of_run[i] != m) return {};
    const std::size_t slow = after.end - after.first;
    std::size_t its = slow, unknown = 0;
    for (std::size_t i = before.first; i < before.end; ++i) {
        its += of.of_run[i] == m;
        unknown += of.of_run[i] == of.all.size();
    }
    if (unknown > 0) return {};
    const std::string& name = of.all[m].name;
    if (its == slow) return "the runs since then were on " + name + ", and none before";
    const std::size_t runs = after.end - before.first;
    const double chance = chance_of_slow(runs, its, slow, slow);
    if (chance > shown_by_chance) return {};
    return printed("all %zu slow runs of %zu were on ", slow, runs) + name +
           printed(" (chance: %.2g)", chance);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
