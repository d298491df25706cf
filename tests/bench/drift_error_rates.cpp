// How often a verdict on a drift is wrong, and how soon a drift is found, in virtual time.
// Without drift: the engine model at 60 % load, other traffic in every trial, and a server of
// another kind that is kept full. With drift: that one becomes slower from its first second to its last.
#include "core/judging/judge.hpp"

#include "../support/sample_measurements.hpp"
#include "support/bursty_server.hpp"
#include "support/rates.hpp"
#include "support/virtual_engine.hpp"

using namespace llmbench;
using namespace rates;
using sample_measurements::measurement;

namespace {

/// Of gates of one run, and of up to five.
struct one_and_all {
    vector<tally> one{}, all{};
    void operator+=(const one_and_all& o) {
        if (one.empty()) *this = o;
        else
            for (std::size_t k = 0; k < o.one.size(); ++k) {
                one[k] += o.one[k];
                all[k] += o.all[k];
            }
    }
};

slo_verdict verdict_on(vector<repeat_data> runs, std::size_t most, const slo& s) {
    measurement m;
    m.rule = rule_of({}, 1, last_analysis);
    if (runs.size() > most) runs.resize(most);
    m.candidate = std::move(runs);
    return sample_measurements::judge_measurements(m, s);
}

/// So many runs of one trace of 300 s, each at a speed of its own.
template <class Run>
one_and_all measured(long long trials, const vector<slo>& slos, Run&& run) {
    return over_trials<one_and_all>(trials, [&](one_and_all& sum, std::uint64_t t) {
        sum.one.resize(slos.size());
        sum.all.resize(slos.size());
        generator random(t + 77);
        vector<repeat_data> runs;
        for (int i = 0; i < last_analysis; ++i)
            runs.push_back(run(t, std::exp(0.03 * random.normal()), random.next()));
        for (std::size_t k = 0; k < slos.size(); ++k) {
            const slo_verdict one = verdict_on(runs, 1, slos[k]);
            const slo_verdict all = verdict_on(runs, runs.size(), slos[k]);
            sum.one[k].add(one.outcome, one.repeats);
            sum.all[k].add(all.outcome, all.repeats);
        }
    });
}

bool study_of_drift(const options& o) {
    std::printf(
        "%lld trials a row, a quarter where the server is kept full; five runs of 300 s at "
        "most, 3 %% noise from run to run.\n\n",
        o.trials);
    print_head("pass/fail/inconclusive in %", {"one run", "up to five", "runs"});
    bool met = true;
    const auto rows = [&](const char* name, const vector<slo>& slos, long long trials,
                          auto&& run, auto&& check) {
        const one_and_all m = measured(trials, slos, run);
        for (std::size_t k = 0; k < slos.size(); ++k) {
            const std::string row = printed("%s, %s", name, slos[k].text().c_str());
            print_row(row, {fractions(m.one[k]), fractions(m.all[k]),
                            printed("%.1f", m.all[k].repeats_taken())});
            bounds must(trials);
            check(must, row, m.all[k]);
            met &= must.met();
        }
    };
    const auto no_fails = [](bounds& must, const std::string& row, const tally& t) {
        must.at_most(row + ", fails", t.failed(), 0.01);
    };
    const double rate = 0.6 * virtual_engine::measured_capacity(1);
    const auto requests = static_cast<long long>(300 * rate);
    rows(
        "no drift, 60 % load",
        {drift(mean(tpot)) <= 110_pct, drift(p90(ttft)) <= 110_pct, drift(mean(tpot)) <= 100_pct,
         drift(p90(ttft)) <= 100_pct},
        o.trials,
        [&](std::uint64_t t, double slowness, std::uint64_t seed) {
            return virtual_engine::simulated_run(virtual_engine::traffic(rate, t + 1, requests),
                                                 virtual_engine::machine(slowness, seed));
        },
        no_fails);
    // Ten thousand requests each.
    const long long full_trials = std::max(o.quick ? 10ll : 20ll, o.trials / 4);
    const auto kept_full = [](auto&& slower) {
        return [slower](std::uint64_t t, double slowness, std::uint64_t seed) {
            repeat_data d = bursty_server::run_of(bursty_server::backlog(12500, t + 1), slowness,
                                                  seed, slower, bursty_server::fast);
            d.window = time_interval::between(1'005'000'000'000, 1'305'000'000'000);
            for (record& r : d.records)
                if (r.first_token_ns >= d.window.to_ns()) r.phase = run_phase::warmup;
            return d;
        };
    };
    rows("no drift, kept full",
         {drift(output_throughput) >= 95_pct, drift(output_throughput) >= 100_pct}, full_trials,
         kept_full([](double) { return 1.0; }), no_fails);
    rows("3500 to 3100 tokens/s", {drift(output_throughput) >= 95_pct}, full_trials,
         kept_full([](double s) { return 3500 / (3500 - 400 * std::min(s, 305.0) / 300); }),
         [](bounds& must, const std::string& row, const tally& t) {
             must.at_least(row + ", fails", t.failed(), 0.95);
         });
    return met;
}
const registered drifts({"drift", 500, 20, {}, study_of_drift});

}  // namespace
