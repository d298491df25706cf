// How often a verdict on a drift is wrong, and how soon a drift is found, in virtual time.
// Without drift: the engine model at 60 % load, other traffic in every trial, and a server of
// another kind that is kept full. With drift: that one becomes slower from its first second to its last.
#include "core/judging/judge.hpp"

#include "../../support/sample_measurements.hpp"
#include "../support/bursty_server.hpp"
#include "../support/virtual_engine.hpp"
#include "rates.hpp"

using namespace llmbench;
using namespace rates;
using sample_measurements::measurement;

namespace {

slo_verdict verdict_on(vector<repeat_data> runs, std::size_t most, const slo& s) {
    measurement m;
    m.rule = rule_of({}, 1, last_analysis);
    if (runs.size() > most) runs.resize(most);
    m.candidate = std::move(runs);
    return sample_measurements::judge_measurements(m, s);
}

/// So many runs of one trace of 300 s, each at a speed of its own: of each objective gates of one run, then
/// of up to five.
template <class Run>
sums measured(long long trials, const vector<slo>& slos, Run&& run) {
    return over_trials(trials, [&](sums& sum, std::uint64_t t) {
        generator random(t + 77);
        vector<repeat_data> runs;
        for (int i = 0; i < last_analysis; ++i) {
            const double slowness = std::exp(0.03 * random.normal());
            runs.push_back(run(t, slowness, random.next()));
        }
        for (std::size_t k = 0; k < slos.size(); ++k) {
            sum.at(2 * k).add(verdict_on(runs, 1, slos[k]));
            sum.at(2 * k + 1).add(verdict_on(runs, runs.size(), slos[k]));
        }
    });
}

/// Rows of one server. `fails`: whether the drift is there, and is to be found.
template <class Run>
void rows_of(study_run& by, const char* name, const vector<slo>& slos, long long trials, bool fails, Run&& run) {
    if (!by.is_next_ours()) return;
    sums m = measured(trials, slos, run);
    bounds must(trials);
    for (std::size_t k = 0; k < slos.size(); ++k) {
        const std::string row = printed("%s, %s", name, slos[k].text().c_str());
        const tally& all = m.at(2 * k + 1);
        print_row(row, {fractions(m.at(2 * k)), fractions(all), printed("%.1f", all.repeats_taken())});
        if (fails) must.at_least(row + ", fails", all.failed(), 0.95);
        else must.at_most(row + ", fails", all.failed(), 0.01);
    }
    by.must.hold(must);
}

void drift_part(study_run& by) {
    by.table("pass/fail/inconclusive in %", {"one run", "up to five", "runs"},
             printed("%lld trials a row, a quarter where the server is kept full; five runs of 300 s at "
                     "most, 3 %% noise from run to run.\n\n",
                     by.trials));
    const double rate = 0.6 * virtual_engine::measured_capacity(1);
    const auto requests = static_cast<long long>(300 * rate);
    rows_of(by, "no drift, 60 % load",
            {drift(mean(tpot)) <= 110_pct, drift(p90(ttft)) <= 110_pct, drift(mean(tpot)) <= 100_pct,
             drift(p90(ttft)) <= 100_pct},
            by.trials, false, [&](std::uint64_t t, double slowness, std::uint64_t seed) {
                return virtual_engine::simulated_run(virtual_engine::traffic(rate, t + 1, requests),
                                                     virtual_engine::machine(slowness, seed));
            });

    // Ten thousand requests each.
    const long long full_trials = std::max(by.quick ? 10ll : 20ll, by.trials / 4);
    const auto kept_full = [](auto&& slower) {
        return [slower](std::uint64_t t, double slowness, std::uint64_t seed) {
            repeat_data d = bursty_server::run_of(bursty_server::backlog(12500, t + 1), slowness, seed, slower,
                                                  bursty_server::fast);
            d.window = time_interval::between(1'005'000'000'000, 1'305'000'000'000);
            for (record& r : d.records)
                if (r.first_token_ns >= d.window.to_ns()) r.phase = run_phase::warmup;
            return d;
        };
    };
    rows_of(by, "no drift, kept full", {drift(output_throughput) >= 95_pct, drift(output_throughput) >= 100_pct},
            full_trials, false, kept_full([](double) { return 1.0; }));
    rows_of(by, "3500 to 3100 tokens/s", {drift(output_throughput) >= 95_pct}, full_trials, true,
            kept_full([](double s) { return 3500 / (3500 - 400 * std::min(s, 305.0) / 300); }));
}
const registered drifts({"drift", 500, 20, {{"drift", drift_part}}});

}  // namespace
