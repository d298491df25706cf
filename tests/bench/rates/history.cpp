// How often a verdict against a history of runs is wrong, how soon a step is found and how often
// one that is none: a Monte Carlo of the shipped functions on drawn runs.
#include "extensions/history/core/learned.hpp"
#include "extensions/history/core/reading.hpp"
#include "extensions/history/core/levels.hpp"
#include "core/judging/rule.hpp"

#include "rates.hpp"

using namespace llmbench;
using namespace rates;

namespace {

const double line = std::log(1.05);  // the limit of most tables
constexpr std::size_t repeats_a_run = 3;

/// What runs and repeats do to the logarithm of a statistic.
struct machine {
    double runs = 0.01, repeats = 0.01;  // standard deviations
    double ar = 0;                       // lag-1 autocorrelation of runs
    bool heavy = false;                  // runs of Student's t, 4 df
    double trouble = 0;                  // the share of runs that are 15 % slower
    double walk = 0, drift = 0;          // of the level, a run
    double step = 0;                     // of the level
    int step_ago = 0;                    // runs
    double today = 1;                    // noise of today's repeats, times the runs'
};
double heavy_tailed(generator& g) {  // of variance 1
    const double chi = 2 * (g.exponential() + g.exponential());
    return g.normal() / std::sqrt(chi / 4) / std::sqrt(2.0);
}

/// Runs one after another, and today.
struct drawn {
    vector<run_level> runs{};
    vector<double> today{};  // logarithms of five repeats
};
drawn runs_of(const machine& m, int count, generator& g) {
    drawn out;
    double effect = 0, level = 0;
    for (int i = 0; i <= count; ++i) {
        const double own = m.runs * (m.heavy ? heavy_tailed(g) : g.normal());
        effect = i == 0 ? own : m.ar * effect + std::sqrt(1 - m.ar * m.ar) * own;
        level += m.drift + m.walk * g.normal();
        if (m.step != 0 && i == count - m.step_ago) level += m.step;
        const double bad = m.trouble > 0 && g.uniform() < m.trouble ? std::log(1.15) : 0;
        vector<double> values;
        const double noise = m.repeats * (i == count ? m.today : 1);
        for (std::size_t k = 0; k < (i == count ? 5 : repeats_a_run); ++k)
            values.push_back(level + effect + bad + noise * g.normal());
        if (i == count) out.today = values;
        else
            out.runs.push_back({static_cast<std::size_t>(i), mean_of(values),
                                sample_variance(values), repeats_a_run});
    }
    return out;
}
learned_history learned_of(const vector<run_level>& runs, bool one_level) {
    return learned_from(
        runs, one_level ? vector<history_segment>{{0, runs.size()}} : segments_of({}, runs),
        run_on::branch);
}

/// Runs of so much slower code, compared with the logarithm of a limit.
struct run_tally : tally {
    long long withheld = 0;

    void add(const learned_history& h, vector<double> run, double slower, double of) {
        for (double& x : run) x += slower;
        const history_analysis l = judged_against(h, run, of, run_on::branch);
        tally::add(l);
        withheld += l.withheld == history_hold::main_moved;
    }
    std::string passes() const { return printed("%.0f", 100 * passed()); }
    std::string fails() const { return printed("%.0f", 100 * failed()); }
    std::string both() const { return printed("%.1f/%.1f", 100 * passed(), 100 * failed()); }
};
/// Texts of several, with a blank or a bar between them.
template <class Text> std::string joined(std::size_t n, const char* between, Text&& text) {
    std::string all;
    for (std::size_t i = 0; i < n; ++i) all += (i > 0 ? between : "") + text(i);
    return all;
}

struct cell {
    run_tally unchanged, wider, at_limit, beyond5, beyond10, beyond20;

    void add(const learned_history& h, const vector<double>& today, bool all) {
        unchanged.add(h, today, 0, line);
        at_limit.add(h, today, line, line);
        beyond10.add(h, today, line + std::log(1.10), line);
        if (!all) return;
        wider.add(h, today, 0, std::log(1.10));
        beyond5.add(h, today, line + std::log(1.05), line);
        beyond20.add(h, today, line + std::log(1.20), line);
    }
};
cell cell_of(const machine& m, int runs, long long trials, bool one_level, bool all = true) {
    cell c;
    for (long long i = 0; i < trials; ++i) {
        generator g(static_cast<std::uint64_t>(i) * 7919 + static_cast<std::uint64_t>(runs));
        const drawn d = runs_of(m, runs, g);
        c.add(learned_of(d.runs, one_level), d.today, all);
    }
    return c;
}

// ---- runs and repeats as the rule takes them

/// By runs and repeats of 0.5 to 10 %: what is to be reached of unchanged code, and of +10 %
/// beyond the limit, after 30 runs.
struct promised {
    double runs, repeats, passes, found;
};
constexpr promised cells[] = {{.005, .01, 100, 100}, {.01, .01, 97, 100}, {.03, .01, 44, 64},
                              {.05, .01, 23, 24},    {.10, .01, 12, 7},   {.005, .03, 72, 91},
                              {.01, .03, 64, 87},    {.03, .03, 33, 46},  {.05, .03, 20, 20},
                              {.10, .03, 12, 7}};

void relative_part(study_run& by) {
    by.table("runs, repeats, %",
             {"unchanged passes 1.05 after 3/5/10/30 runs", "passes 1.10", "at the limit: pass/fail, by runs",
              "found +5/+10/+20 after 10; 30", "repeats 1.05; 1.10"},
             "");
    constexpr int counts[] = {3, 5, 10, 30};
    for (const promised& p : cells)
        by.row(printed("%.1f, %.0f", 100 * p.runs, 100 * p.repeats), [&] {
            cell c[4];
            for (std::size_t k = 0; k < 4; ++k)
                c[k] = cell_of({.runs = p.runs, .repeats = p.repeats}, counts[k], by.trials, false, !by.quick || k >= 2);

            const std::string name = "runs " + std::to_string(p.runs) + ", repeats " + std::to_string(p.repeats);
            for (const cell& x : c) by.must.at_limit(name, x.at_limit, 0.056, 0.014);
            by.must.at_least(name + ": unchanged passes", c[3].unchanged.passed(), (p.passes - 3) / 100);
            by.must.at_least(name + ": +10 % is found", c[3].beyond10.failed(), (p.found - 3) / 100);
            return columns{
                joined(4, " ", [&](std::size_t k) { return c[k].unchanged.passes(); }),
                joined(4, " ", [&](std::size_t k) { return c[k].wider.trials() > 0 ? c[k].wider.passes() : "0"; }),
                joined(4, " ", [&](std::size_t k) { return c[k].at_limit.both(); }),
                joined(2, "; ", [&](std::size_t k) {
                    const cell& x = c[k + 2];
                    return x.beyond5.fails() + "/" + x.beyond10.fails() + "/" + x.beyond20.fails();
                }),
                printed("%.1f; %.1f", c[3].unchanged.repeats_taken(), c[3].wider.repeats_taken())};
        });
}

// ---- runs that somebody vouches for

/// A given spread counts as four runs' worth until there are ten: right, and wrong by half or twice.
void given_part(study_run& by) {
    by.table("runs of 1 %, repeats of 1 %; given spread",
             {"after 1/2/5/9 runs: unchanged passes", "at the limit: pass/fail", "+10 found"});
    constexpr int counts[] = {1, 2, 5, 9};
    for (const double given : {0.005, 0.01, 0.02})
        by.row(printed("%.1f %%", 100 * given), [&] {
            cell c[4];
            for (std::size_t k = 0; k < 4; ++k)
                for (long long i = 0; i < by.trials; ++i) {
                    generator g(static_cast<std::uint64_t>(i) * 7919 + k);
                    const drawn d = runs_of({}, counts[k], g);
                    c[k].add(learned_from(d.runs, segments_of({}, d.runs), run_on::branch, given), d.today, false);
                }
            if (given >= 0.01)
                for (const cell& x : c) by.must.at_limit("given spread", x.at_limit, 0.056, 0.014);
            return columns{joined(4, " ", [&](std::size_t k) { return c[k].unchanged.passes(); }),
                           joined(4, " ", [&](std::size_t k) { return c[k].at_limit.both(); }),
                           joined(4, " ", [&](std::size_t k) { return c[k].beyond10.fails(); })};
        });
}

// ---- runs that are not

struct other {
    const char* name;
    machine m;
    int runs;
    double passes, wrong_pass, wrong_fail;  // to be reached, of one level
    bool one_level = true;
};
vector<other> others() {
    vector<other> out;
    const auto with = [](auto&& change) {
        machine m;
        change(m);
        return m;
    };
    for (const int n : {5, 10, 30}) {
        out.push_back({"AR .5", with([](machine& m) { m.ar = 0.5; }), n, 91, 5.5, 1.1});
        out.push_back({"AR .8", with([](machine& m) { m.ar = 0.8; }), n, 95, 5.8, 1.4});
        out.push_back({"t, 4 df", with([](machine& m) { m.heavy = true; }), n, 89, 5.4, 1.6});
    }
    for (const int n : {10, 30})
        out.push_back({"random walk 0.5 %", with([](machine& m) {
                           m.runs = 0;
                           m.walk = 0.005;
                       }),
                       n, n == 10 ? 95. : 86, n == 10 ? 6.3 : 3.0, n == 10 ? 1.5 : 0.7});
    out.push_back({"3 % of runs and runs +15 %", with([](machine& m) { m.trouble = 0.03; }), 30, 91,
                   4.4, 2.2, false});
    out.push_back(
        {"drift 0.1 % a run", with([](machine& m) { m.drift = 0.001; }), 30, 92, 3.9, 2.2, false});
    constexpr double after[2][4][3] = {{{4, 1, 6.3}, {78, 5.1, 2}, {88, 4.2, 2}, {94, 5.3, 1.3}},
                                       {{0, 1, 2.3}, {81, 5.1, 2}, {88, 4.2, 2}, {94, 5.3, 1.3}}};
    constexpr int ago[] = {1, 2, 3, 5};
    for (int big = 0; big < 2; ++big)
        for (int k = 0; k < 4; ++k)
            out.push_back({big ? "step of +10 %" : "step of +5 %", with([&](machine& m) {
                               m.step = std::log(big ? 1.10 : 1.05);
                               m.step_ago = ago[k];
                           }),
                           30, after[big][k][0], after[big][k][1], after[big][k][2], false});
    constexpr double noisier[3][4] = {{2, 83, 5.4, 1.4}, {3, 64, 5.7, 1.5}, {5, 39, 7.7, 1.6}};
    for (const auto& row : noisier)
        out.push_back({"today's repeats noisier", with([&](machine& m) { m.today = row[0]; }), 30,
                       row[1], row[2], row[3]});
    out.push_back({"today's repeats noisier, runs 0.3 %", with([](machine& m) {
                       m.today = 5;
                       m.runs = 0.003;
                   }),
                   30, 0, 9.2, 2.9});
    return out;
}
void others_part(study_run& by) {
    by.table("not as modelled, runs and repeats 1 %",
             {"runs", "unchanged passes / fails / withheld as main moved", "at the limit", "+10 found",
              "segments as found: unchanged, at the limit"});
    for (const other& o : others()) {
        std::string name = o.name;
        if (o.m.step_ago > 0) name += printed(" %d runs ago", o.m.step_ago);
        if (o.m.today > 1) name += printed(", %.0f times", o.m.today);
        by.row(name, [&] {
            const cell c = cell_of(o.m, o.runs, by.trials, o.one_level, false);
            by.must.at_least(name + ": unchanged passes", c.unchanged.passed(), o.passes / 100);
            by.must.at_limit(name, c.at_limit, o.wrong_pass / 100, o.wrong_fail / 100);

            std::string found;
            if (o.one_level && !by.quick) {
                const cell segments = cell_of(o.m, o.runs, by.trials, false, false);
                found = segments.unchanged.passes() + ", " + segments.at_limit.both();
            }
            return columns{printed("%d", o.runs),
                           printed("%.0f / %.1f / %.0f", 100 * c.unchanged.passed(), 100 * c.unchanged.failed(),
                                   100 * static_cast<double>(c.unchanged.withheld) / c.unchanged.trials()),
                           c.at_limit.both(), c.beyond10.fails(), found};
        });
    }
}

// ---- limits that are no baseline's

/// How an absolute limit is judged: by unknown noise, calibrated, with a history of 1 % and of 3 %.
enum absolute : std::size_t { unknown, calibrated, of_1, of_3 };

/// At the limit, and 10 % under it.
void add_absolute(run_tally& at, run_tally& room, absolute how, double sd, std::uint64_t trial) {
    generator g(trial * 31 + 7);
    const double runs_sd = how == of_3 ? 0.03 : 0.01;
    double squares = 0;
    for (int k = 0; k < 60; ++k) squares += std::pow(runs_sd * g.normal(), 2);
    const history_noise known{prior_sd_of({squares / 60, 60, 3}), 60};
    judging_rule rule;
    rule.trusts_prior = how == calibrated;
    vector<double> all;
    for (int k = 0; k < last_analysis; ++k) all.push_back(sd * g.normal());

    for (run_tally* t : {&at, &room}) {
        vector<double> seen;
        const interim_analysis v = judged_in_turn(
            first_analysis, last_analysis, [&] { seen.push_back(all[seen.size()] - (t == &room ? 0.1 : 0)); },
            [&] {
                interim_analysis l = how >= of_1 ? analysis_with_history(seen, known, rule)
                                                 : analysis_of_repeats(seen, prior_sd, rule);
                if (l.outcome == verdict::fail && seen.size() < first_fail) l.outcome = verdict::inconclusive;
                return l;
            });
        t->tally::add(v.outcome, static_cast<long long>(seen.size()));
    }
}
void absolute_part(study_run& by) {
    by.table("today's noise", {"at the limit: unknown noise", "calibrated", "history of 1 %", "of 3 %",
                               "repeats at 10 % headroom"});
    struct row {
        double sd, pass, fail, repeats;
    };
    for (const row& w : {row{.03, 1, .2, 2.3}, row{.06, 6.8, 1.3, 9}, row{.10, 10.7, 2.6, 9}})
        by.row(printed("%.0f %%", 100 * w.sd), [&] {
            columns all;
            std::string taken;
            for (const absolute how : {unknown, calibrated, of_1, of_3}) {
                run_tally at, room;
                for (long long i = 0; i < by.trials; ++i)
                    add_absolute(at, room, how, w.sd, static_cast<std::uint64_t>(i));
                all.push_back(at.both());
                taken += printed(" %.1f", room.repeats_taken());
                if (how < of_1) continue;
                by.must.at_limit("absolute", at, w.pass / 100, w.fail / 100);
                by.must.number_at_most("absolute: repeats", room.repeats_taken(), w.repeats + (by.quick ? 0.1 : 0));
            }
            all.push_back(taken);
            return all;
        });
}

// ---- steps and drift

void steps_part(study_run& by) {
    const long long trials = std::max(100ll, by.trials / 4);
    machine kinds[4];
    kinds[1].heavy = true;
    kinds[2].ar = 0.5;
    kinds[3].trouble = 0.03;
    constexpr double most[] = {0.3, 0.6, 1.5, 0.6};
    by.row("false steps per 100 runs, to run 300: iid / t, 4 df / AR .5 / 3 % trouble", [&] {
        return columns{joined(4, " ", [&](std::size_t k) {
            double steps = 0;
            kinds[k].repeats = 0;
            for (long long i = 0; i < trials; ++i) {
                generator g(static_cast<std::uint64_t>(i) * 31 + k);
                const vector<run_level> runs = runs_of(kinds[k], 300, g).runs;
                steps += static_cast<double>(segments_of({}, runs).size()) - 1;
            }
            const double of_100 = steps / 3 / static_cast<double>(trials);
            by.must.number_at_most("false steps", of_100, most[k] * (by.quick ? 1.3 : 1));
            return printed("%.2f", of_100);
        })};
    });

    constexpr double sizes[] = {1, 1.7, 3, 5}, until[] = {18, 7, 4, 3};
    by.row("runs until a step of 1 / 1.7 / 3 / 5 run sd is found, median", [&] {
        return columns{joined(4, " ", [&](std::size_t k) {
            vector<double> delays;
            for (long long i = 0; i < trials; ++i) {
                generator g(static_cast<std::uint64_t>(i) * 17 + 5);
                machine m;
                m.repeats = 0;
                m.step = sizes[k] * m.runs;
                m.step_ago = 100;
                double delay = 999;
                for (const history_segment& s : segments_of({}, runs_of(m, 130, g).runs))
                    if (s.first > 0 && s.found >= 30) delay = std::min(delay, static_cast<double>(s.found) - 29);
                delays.push_back(delay);
            }
            by.must.number_at_most("runs until a step is found", median_of(delays), until[k]);
            return printed("%.0f", median_of(delays));
        })};
    });
}
void drift_part(study_run& by) {
    if (!by.is_next_ours()) return;
    const long long trials = std::max(20ll, by.trials / 60);
    double reported = 0, runs = 0;
    vector<double> found;
    for (long long i = 0; i < trials; ++i) {
        for (const double drift : {0.0, 0.0005}) {
            generator g(static_cast<std::uint64_t>(i) * 7 + 1);
            machine m;
            m.repeats = 0;
            m.drift = drift;
            const vector<run_level> all = runs_of(m, 120, g).runs;
            bool was = false;
            double first = 999;
            for (std::size_t n = 20; n <= all.size() && first > 200; ++n) {
                const vector<run_level> seen(all.begin(),
                                             all.begin() + static_cast<std::ptrdiff_t>(n));
                const auto segments = with_accepted(segments_of({}, seen), {}, seen);
                const auto spread = learned_from(seen, segments, run_on::main).spread;
                const bool is = drift_of_level(seen, segments, spread).has_value();
                if (drift > 0 && is) first = static_cast<double>(n);
                if (drift == 0) reported += is && !was;
                runs += drift == 0;
                was = is;
            }
            if (drift > 0) found.push_back(first);
        }
    }
    std::printf(
        "\ndrift: told %.2f times in 100 runs of none; of 0.05 run sd a run after "
        "%.0f runs (median)\n",
        100 * reported / runs, median_of(found));
    by.must.number_at_most("drift told where there is none", 100 * reported / runs, 0.2);
    by.must.number_at_most("runs until a drift is told", median_of(found), 50);
}

// ---- lives

/// 60 runs with steps, some of them accepted by a mark some days later: what every day's run
/// of unchanged code finds.
void lives_part(study_run& by) {
    if (!by.is_next_ours()) return;
    const long long trials = std::max(10ll, by.trials / 20);
    run_tally all, later;
    tally main_red;
    for (long long i = 0; i < trials; ++i) {
        generator g(static_cast<std::uint64_t>(i) * 13 + 3);
        struct change {
            std::size_t at;
            double by;
        };
        const change changes[] = {{20, -0.06}, {35, 0.08}, {50, 0.10}};
        history_series s;
        double level = 0;
        std::size_t since = 60;
        for (std::size_t n = 0; n < 60; ++n) {
            for (const change& c : changes)
                if (c.at == n) {
                    level += c.by;
                    since = 0;
                }
            if (n == 45)
                s.annotations.push_back({annotation_kind::accept, "2026-02-05", "known", "me"});
            const double of_this_run = 0.01 * g.normal();
            const auto run = [&](double effect, std::size_t count) {
                vector<double> logs;
                for (std::size_t k = 0; k < count; ++k)
                    logs.push_back(level + effect + 0.01 * g.normal());
                return logs;
            };
            const vector<double> logs = run(of_this_run, repeats_a_run);
            if (n > 55 || (n >= 40 && n < 45)) {  // a regression that nobody mended or marked
                const history_analysis l =
                    judged_against(history_read_as(s, run_on::main).learned, logs, 0,
                                   run_on::main);
                main_red.add(l.outcome, 0);
            }
            series_run appended;
            appended.at = printed("2026-%02zu-%02zuT02:15:04Z", n / 30 + 1, n % 30 + 1);
            for (const double x : logs) appended.repeats.push_back(std::exp(x));
            s.runs.push_back(appended);
            // A branch of today's main, after main's own run of the run.
            if (n + 1 >= fewest_runs) {
                const learned_history h = history_read_as(s, run_on::branch).learned;
                const vector<double> today = run(0.01 * g.normal(), 5);
                all.add(h, today, 0, line);
                if (n >= 10 && since >= 4) later.add(h, today, 0, line);
            }
            ++since;
        }
    }
    std::printf(
        "\nlives of 60 runs, steps of -6, +8 (accepted ten days later) and +10 %%: "
        "unchanged is red in %.2f %% of all days, passes in %.1f %% from the fifth "
        "run after a step; main is red in %.1f %% of the runs of a regression that "
        "nobody accepted\n",
        100 * all.failed(), 100 * later.passed(), 100 * main_red.failed());
    by.must.at_most("lives: unchanged is red", all.failed(), 0.003);
    by.must.at_least("lives: unchanged passes", later.passed(), 0.95);
    by.must.at_least("lives: main stays red", main_red.failed(), 0.95);
}

void begin(study_run& by) {
    std::printf("%lld trials a cell; pass/fail in %%\n\n", by.trials);
    if (!by.quick) by.must = bounds(0);
}
const registered histories({"history",
                            6000,
                            100,
                            {{"relative", relative_part},
                             {"given", given_part},
                             {"others", others_part},
                             {"absolute", absolute_part},
                             {"steps", steps_part},
                             {"drift", drift_part},
                             {"lives", lives_part}},
                            begin});

}  // namespace
