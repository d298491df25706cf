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

// ---- one that turns slow, or is replaced

/// Whether a machine is told of as one that became slow: by a verdict on it, or in the list.
bool is_named(const history_read& r, std::size_t m) {
    const machine_effect* const own = r.machines.named(fleet::name_of(m));
    return r.learned.slow.explain() || (own && own->turned > 0);
}
enum class change { slow, replaced };

/// A fleet whose first machine changed, and has had so many runs since.
struct changed_fleet : fleet {
    std::size_t on = 0;  // the machine that is another one now

    changed_fleet(generator& g, std::size_t machines, double spread, change what,
                  std::size_t since)
        : fleet(g, machines, spread) {
        add_runs(g, 40);
        if (what == change::slow) effects[0] += std::log(1.2);
        else {
            on = machines;
            effects.push_back(spread * g.normal());
        }
        const std::size_t first = what == change::slow ? 0 : 1;
        for (const std::size_t had = runs_on(on); runs_on(on) < had + since;)
            add_run(g, first + g.below(machines));
    }
};
/// The sum's verdicts on one machine: unchanged, and 10 % beyond the limit.
void add_verdicts(sums& to, std::size_t at, const history_read& r, const vector<double>& today) {
    to.at(at).add(fleet::judged(r, today, 0));
    to.at(at + 1).add(fleet::judged(r, today, line + std::log(1.10)));
}
void changed_part(study_run& by) {
    by.table("one is changed; machines, spread, its runs since",
             {"unchanged on it: passes/fails", "+10 found", "it is named, another",
              "unchanged elsewhere", "+10 passes/fails"});
    for (const change what : {change::slow, change::replaced})
        for (const std::size_t machines : {1, 3, 10})
            for (const double spread : {0.01, 0.05, 0.20})
                for (const std::size_t since : {0, 1, 2, 4, 8}) {
                    const bool is_slow = what == change::slow;
                    // nothing tells the first slow run from slower code
                    if (is_slow && (machines == 1 || since == 0)) continue;
                    if (!is_slow && since > 2) continue;
                    const std::string name =
                        printed("%s; %zu, %.0f %%, %zu", is_slow ? "20 % slower" : "replaced",
                                machines, 100 * spread, since);
                    by.row(name, [&] {
                        sums s = by.over([&](sums& to, std::uint64_t trial) {
                            generator g = by.random(trial, (is_slow ? 100 : 200) + machines);
                            const changed_fleet f(g, machines, spread, what, since);
                            const history_read r = f.read_for(f.on);
                            add_verdicts(to, 0, r, f.repeats(g, f.on, 5));
                            to.number(0) += is_named(r, f.on);
                            if (machines == 1) return;
                            const history_read other = f.read_for(1);
                            add_verdicts(to, 2, other, f.repeats(g, 1, 5));
                            to.number(1) += is_named(other, 1);
                        });
                        const auto trials = static_cast<double>(by.trials);
                        const double named = s.number(0) / trials, wrongly = s.number(1) / trials;
                        by.must.at_most(name + ": unchanged fails", s.at(0).failed(), 0.01);
                        if (machines == 1) return columns{both(s.at(0)), percent(s.at(1).failed())};
                        by.must.at_most(name + ": unchanged elsewhere fails", s.at(2).failed(), 0.01);
                        by.must.at_most(name + ": another is named", wrongly, 0.02);
                        if (is_slow && since >= 4)
                            by.must.at_least(name + ": it is named", named, 0.95);
                        return columns{both(s.at(0)), percent(s.at(1).failed()),
                                       percent(named) + ", " + percent(wrongly), both(s.at(2)),
                                       both(s.at(3))};
                    });
                }
}

const registered fleets({"fleet",
                         2000,
                         100,
                         {{"steady", steady_part}, {"changed", changed_part}}});

}  // namespace
