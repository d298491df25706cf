// How often a verdict on a drift is wrong, and how soon a drift is found, in virtual time.
//   drift_error_rates [--quick] [--trials N]
// Without drift: the engine model at 60 % load, other traffic in every trial, and a server of
// another kind that is kept full. With drift: that one becomes slower from its first second to its last.
// Quick: few trials, held against wide bounds, exit code 1 where one is violated.
#define LLMBENCH_NO_DOCTEST
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/judging/judge.hpp"

#include "../support/sample_measurements.hpp"
#include "support/bursty_server.hpp"
#include "support/virtual_engine.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;
using sample_measurements::measurement;

namespace {

struct tally {
    int pass = 0, fail = 0, open = 0, repeats = 0;
    void add(const slo_verdict& v) {
        pass += v.outcome == verdict::pass;
        fail += v.outcome == verdict::fail;
        open += v.outcome != verdict::pass && v.outcome != verdict::fail;
        repeats += v.repeats;
    }
    int trials() const { return pass + fail + open; }
    double fraction(int n) const { return 100.0 * n / trials(); }
};

void print_row(const std::string& name, const tally& one, const tally& all) {
    std::printf("| %-58s | %.1f/%.1f/%.1f | %.1f/%.1f/%.1f | %.1f |\n", name.c_str(),
                one.fraction(one.pass), one.fraction(one.fail), one.fraction(one.open),
                all.fraction(all.pass), all.fraction(all.fail), all.fraction(all.open),
                static_cast<double>(all.repeats) / all.trials());
    std::fflush(stdout);
}

slo_verdict verdict_on(std::vector<repeat_data> runs, std::size_t most, const slo& s) {
    measurement m;
    m.rule = rule_of({}, 1, last_analysis);
    if (runs.size() > most) runs.resize(most);
    m.candidate = std::move(runs);
    return sample_measurements::judge_measurements(m, s);
}

/// So many runs of one trace of 300 s, each at a speed of its own.
template <class Run>
void measure(int trials, const std::vector<slo>& slos, std::vector<tally>& one,
             std::vector<tally>& all, Run&& run) {
    one.resize(slos.size());
    all.resize(slos.size());
    for (int t = 0; t < trials; ++t) {
        generator random(static_cast<std::uint64_t>(t) + 77);
        std::vector<repeat_data> runs;
        for (int i = 0; i < last_analysis; ++i)
            runs.push_back(run(static_cast<std::uint64_t>(t), std::exp(0.03 * random.normal()),
                               random.next()));
        for (std::size_t k = 0; k < slos.size(); ++k) {
            one[k].add(verdict_on(runs, 1, slos[k]));
            all[k].add(verdict_on(runs, runs.size(), slos[k]));
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    int trials = 500;
    bool quick = false;
    for (int i = 1; i < argc; ++i) {
        if (std::string(argv[i]) == "--quick") quick = true;
        else if (std::string(argv[i]) == "--trials" && i + 1 < argc) trials = std::atoi(argv[++i]);
        else trials = 0;
    }
    if (trials < 1) {
        std::fprintf(stderr, "drift_error_rates: there are --quick and --trials N\n");
        return 2;
    }
    if (quick) trials = 40;
    std::printf("%d trials a row, a quarter where the server is kept full; five runs of 300 s at "
                "most, 3 %% noise from run to run.\n\n",
                trials);
    std::printf("| pass/fail/inconclusive in %% | one run | up to five | runs |\n"
                "| --- | --- | --- | --- |\n");
    bool met = true;
    const double rate = 0.6 * virtual_engine::measured_capacity(1);
    const auto requests = static_cast<long long>(300 * rate);
    std::vector<tally> one, all;
    const std::vector<slo> calm = {drift(mean(tpot)) <= 110_pct, drift(p90(ttft)) <= 110_pct,
                                   drift(mean(tpot)) <= 100_pct, drift(p90(ttft)) <= 100_pct};
    measure(trials, calm, one, all, [&](std::uint64_t t, double slowness, std::uint64_t seed) {
        return virtual_engine::simulated_run(virtual_engine::traffic(rate, t + 1, requests),
                                             virtual_engine::machine(slowness, seed));
    });
    for (std::size_t k = 0; k < calm.size(); ++k) {
        print_row("no drift, 60 % load, " + std::string(calm[k].text().c_str()), one[k], all[k]);
        met &= all[k].fraction(all[k].fail) <= (quick ? 6 : 1.01);
    }
    const std::vector<slo> full = {drift(output_throughput) >= 95_pct};
    const std::vector<slo> exact = {drift(output_throughput) >= 95_pct,
                                    drift(output_throughput) >= 100_pct};
    const int full_trials = std::max(20, trials / 4);  // ten thousand requests each
    const auto kept_full = [&](std::uint64_t t, double slowness, std::uint64_t seed,
                               const std::function<double(double)>& slower) {
        repeat_data d = bursty_server::run_of(bursty_server::backlog(12500, t + 1), slowness, seed,
                                              slower, bursty_server::fast);
        d.window = time_interval::between(1'005'000'000'000, 1'305'000'000'000);
        for (record& r : d.records)
            if (r.first_token_ns >= d.window.to_ns()) r.phase = run_phase::warmup;
        return d;
    };
    one.clear();
    all.clear();
    measure(full_trials, exact, one, all,
            [&](std::uint64_t t, double slowness, std::uint64_t seed) {
                return kept_full(t, slowness, seed, {});
            });
    for (std::size_t k = 0; k < exact.size(); ++k) {
        print_row("no drift, kept full, " + std::string(exact[k].text().c_str()), one[k], all[k]);
        met &= all[k].fraction(all[k].fail) <= (quick ? 6 : 1.01);
    }
    one.clear();
    all.clear();
    measure(full_trials, full, one, all, [&](std::uint64_t t, double slowness, std::uint64_t seed) {
        return kept_full(t, slowness, seed,
                         [](double s) { return 3500 / (3500 - 400 * std::min(s, 305.0) / 300); });
    });
    print_row("3500 to 3100 tokens/s, " + std::string(full[0].text().c_str()), one[0], all[0]);
    met &= all[0].fraction(all[0].fail) >= (quick ? 80 : 95);
    return quick && !met ? 1 : 0;
}
