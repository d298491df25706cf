// How often a verdict is wrong against a history whose runs are of several machines, and how often
// a machine that turned slow is named: a Monte Carlo of the shipped functions on drawn runs.
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/machines.hpp"
#include "extensions/history/core/reading.hpp"

#include "rates.hpp"

using namespace llmbench;
using namespace rates;

namespace {

const double line = std::log(1.05);  // the limit of all tables
constexpr double runs_sd = 0.01, repeats_sd = 0.01;

struct fleet {
    vector<double> effects{};  // logarithms of its machines
    history_series series{.statistic = "mean(tpot)"};

    fleet(generator& g, std::size_t machines, double spread) {
        for (std::size_t m = 0; m < machines; ++m) effects.push_back(spread * g.normal());
    }
    static std::string name_of(std::size_t m) { return printed("m%zu", m); }
    std::size_t any(generator& g) const { return g.below(effects.size()); }
    /// The logarithms of a run's repeats on one machine.
    vector<double> repeats(generator& g, std::size_t m, std::size_t count) const {
        const double run = effects[m] + runs_sd * g.normal();
        vector<double> logs;
        for (std::size_t k = 0; k < count; ++k) logs.push_back(run + repeats_sd * g.normal());
        return logs;
    }
    /// A run of main, a day after the one before.
    void add_run(generator& g, std::size_t m) {
        const std::size_t n = series.runs.size();
        series_run r;
        r.at = printed("2026-%02zu-%02zuT02:15:04Z", n / 28 + 1, n % 28 + 1);
        r.machine = name_of(m);
        for (const double x : repeats(g, m, 3)) r.repeats.push_back(std::exp(x));
        series.runs.push_back(r);
    }
    void add_runs(generator& g, int count) {
        for (int i = 0; i < count; ++i) add_run(g, any(g));
    }
    std::size_t runs_on(std::size_t m) const {
        std::size_t n = 0;
        for (const series_run& r : series.runs) n += r.machine == name_of(m);
        return n;
    }
    history_read read_for(std::size_t m) const {
        return history_read_as(series, run_on::branch, 0, name_of(m));
    }
    /// The verdict on code that is so much slower.
    static history_analysis judged(const history_read& r, vector<double> run, double slower) {
        for (double& x : run) x += slower;
        return judged_against(r.learned, run, line, run_on::branch);
    }
};
std::string both(const tally& t) {
    return printed("%.1f/%.1f", 100 * t.passed(), 100 * t.failed());
}

// ---- machines that stay as they are

void steady_part(study_run& by) {
    by.table("machines, spread; 40 runs, runs and repeats 1 %",
             {"unchanged: passes/fails", "at the limit", "+10 found", "a new machine: unchanged",
              "at the limit", "+10 found"});
    const double beyond = line + std::log(1.10);
    for (const std::size_t machines : {1, 3, 10})
        for (const double spread : {0.01, 0.05, 0.20}) {
            if (machines == 1 && spread > 0.01) continue;
            const std::string name = printed("%zu, %.0f %%", machines, 100 * spread);
            by.row(name, [&] {
                sums s = by.over([&](sums& to, std::uint64_t trial) {
                    generator g = by.random(trial, machines);
                    fleet f(g, machines, spread);
                    f.add_runs(g, 40);
                    std::size_t m = f.any(g);
                    while (f.runs_on(m) < runs_of_known) m = f.any(g);
                    const vector<double> today = f.repeats(g, m, 5);
                    const history_read r = f.read_for(m);
                    const double slower[] = {0, line, beyond};
                    for (std::size_t k = 0; k < 3; ++k)
                        to.at(k).add(fleet::judged(r, today, slower[k]));
                    f.effects.push_back(spread * g.normal());
                    const vector<double> other = f.repeats(g, machines, 5);
                    const history_read unknown = f.read_for(machines);
                    for (std::size_t k = 0; k < 3; ++k)
                        to.at(3 + k).add(fleet::judged(unknown, other, slower[k]));
                });
                by.must.at_most(name + ": unchanged fails", s.at(0).failed(), 0.01);
                by.must.at_most(name + ", new: unchanged fails", s.at(3).failed(), 0.01);
                by.must.at_limit(name, s.at(1), 0.056, 0.014);
                by.must.at_least(name + ": +10 % is found", s.at(2).failed(), 0.97);
                return columns{both(s.at(0)), both(s.at(1)), percent(s.at(2).failed()),
                               both(s.at(3)), both(s.at(4)), percent(s.at(5).failed())};
            });
        }
}

// ---- one that turns slow

/// Whether a machine is told of as slow: by a verdict on it, or in the list of machines.
bool is_named(const history_read& r, std::size_t m) {
    const machine_effect* const own = r.machines.named(fleet::name_of(m));
    return r.learned.slow.explain() ||
           (own && (own->turned > 0 || own->own - reach_of_effect(r.machines, *own) > 0));
}
void sick_part(study_run& by) {
    by.table("machines, spread; one 20 % slower since so many of its runs",
             {"unchanged on it: passes/fails", "it is named", "unchanged elsewhere"});
    for (const std::size_t machines : {3, 10})
        for (const double spread : {0.01, 0.05, 0.20})
            for (const std::size_t slow : {1, 4, 8}) {
                const std::string name =
                    printed("%zu, %.0f %%, %zu", machines, 100 * spread, slow);
                by.row(name, [&] {
                    sums s = by.over([&](sums& to, std::uint64_t trial) {
                        generator g = by.random(trial, 100 + machines);
                        fleet f(g, machines, spread);
                        f.add_runs(g, 40);
                        f.effects[0] += std::log(1.2);
                        for (const std::size_t had = f.runs_on(0); f.runs_on(0) < had + slow;)
                            f.add_run(g, f.any(g));
                        const history_read r = f.read_for(0);
                        to.at(0).add(fleet::judged(r, f.repeats(g, 0, 5), 0));
                        to.number(0) += is_named(r, 0);
                        to.at(1).add(fleet::judged(f.read_for(1), f.repeats(g, 1, 5), 0));
                    });
                    const double named = s.number(0) / static_cast<double>(by.trials);
                    by.must.at_most(name + ": unchanged elsewhere fails", s.at(1).failed(), 0.01);
                    if (slow >= 4)
                        by.must.at_most(name + ": unchanged fails", s.at(0).failed(), 0.01);
                    if (slow >= 8)
                        by.must.at_least(name + ": it is named", named, spread < 0.2 ? 0.95 : 0.9);
                    return columns{both(s.at(0)), percent(named), both(s.at(1))};
                });
            }
}

// ---- one that is replaced

void replaced_part(study_run& by) {
    by.table("machines, spread; one replaced, after so many runs of the new one",
             {"unchanged on it: passes/fails", "+10 found"});
    for (const std::size_t machines : {1, 3, 10})
        for (const double spread : {0.01, 0.05, 0.20})
            for (const std::size_t after : {0, 1, 5}) {
                const std::string name =
                    printed("%zu, %.0f %%, %zu", machines, 100 * spread, after);
                by.row(name, [&] {
                    sums s = by.over([&](sums& to, std::uint64_t trial) {
                        generator g = by.random(trial, 200 + machines);
                        fleet f(g, machines, spread);
                        f.add_runs(g, 40);
                        f.effects.push_back(spread * g.normal());  // in place of the first
                        const auto any_now = [&] { return 1 + g.below(machines); };
                        while (f.runs_on(machines) < after) f.add_run(g, any_now());
                        const history_read r = f.read_for(machines);
                        const vector<double> today = f.repeats(g, machines, 5);
                        to.at(0).add(fleet::judged(r, today, 0));
                        to.at(1).add(fleet::judged(r, today, line + std::log(1.10)));
                    });
                    by.must.at_most(name + ": unchanged fails", s.at(0).failed(), 0.01);
                    return columns{both(s.at(0)), percent(s.at(1).failed())};
                });
            }
}

const registered fleets({"fleet",
                         2000,
                         100,
                         {{"steady", steady_part},
                          {"sick", sick_part},
                          {"replaced", replaced_part}}});

}  // namespace
