// What a client that stalls does to verdicts. An engine in virtual time gets each trace twice: as it
// is planned, and from a client that sends what is due in a stall at its end. The bound
// on what late sends may have done is that of the latest send since the server was idle.
#include "core/judging/judge.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/planning/planning.hpp"
#include "core/traffic/requests.hpp"
#include "extensions/simulated/core/engine_model.hpp"

#include "../../support/sample_measurements.hpp"
#include "../support/virtual_engine.hpp"
#include "rates.hpp"

using namespace llmbench;
using namespace rates;
using sample_measurements::measurement;
using namespace virtual_engine;

namespace {

struct stalled_load {
    const char* name;
    double rate, output_tokens;
    bool is_idle_at_times;
};
constexpr stalled_load stalled_loads[] = {
    {"3 req/s of 16 tokens, 0.6 at once", 3, 16, true},
    {"8 req/s of 16 tokens, 1.6 at once", 8, 16, true},
    {"4 req/s of 120 tokens, 7 at once", 4, 120, false}};

constexpr std::size_t delayed = 4, limits_of_late = 3;
const vector<statistic_data>& delayed_statistics() {
    static const vector<statistic_data> all = {mean(ttft).data, p90(ttft).data, mean(e2e).data,
                                               p90(e2e).data};
    return all;
}
/// True value over the limit.
constexpr double late_ratios[limits_of_late] = {1, 1 / 1.15, 1.3};

/// Stalls of 40 ms on the average, one in 1.5 seconds.
class stalls {
public:
    stalls(double seconds, generator& random) {
        for (double t = 0; t < seconds;) {
            t += 1.5 * random.exponential();
            begins_.push_back(t);
            t += 0.04 * random.exponential();
            ends_.push_back(t);
        }
    }
    /// When it sends what is due then.
    double operator()(double at) const {
        const auto after = std::upper_bound(begins_.begin(), begins_.end(), at);
        if (after == begins_.begin()) return at;
        return std::max(at, ends_[static_cast<std::size_t>(after - begins_.begin()) - 1]);
    }

private:
    vector<double> begins_{}, ends_{};
};

plan stalled_traffic(const stalled_load& l, std::uint64_t seed) {
    return with_traffic(traffic(l.rate, seed), [&](planned_traffic& t) {
        t.source = std::make_shared<const synthetic_prompts>(
            synthetic{.prompt_tokens = lognormal(200, sigma),
                      .output_tokens = lognormal(l.output_tokens, sigma)});
    });
}
engine stalled_engine(double slowness, std::uint64_t seed) {
    engine e = machine(slowness, seed);
    e.jitter = 0;  // so that both runs of a trace differ by the client alone
    return e;
}
/// The tally of a statistic at a limit. The numbers are the repeats, the sends that were late and, by
/// statistic, the repeats that would have been better as planned than the bound says.
constexpr std::size_t place(std::size_t k, std::size_t limit) { return k * limits_of_late + limit; }
constexpr std::size_t repeats_seen = 0, late_fraction = 1, better = 2;

/// exp(mean log) of what the machine would do, its noise spread evenly.
vector<double> planned_truth(const plan& p, std::uint64_t seed) {
    constexpr int machines_drawn = 16;
    vector<double> logs(delayed, 0.0);
    for (int i = 0; i < machines_drawn; ++i) {
        const double slowness = std::exp(0.03 * normal_quantile((i + 0.5) / machines_drawn));
        const auto values =
            evaluate(delayed_statistics(), simulated_run(p, stalled_engine(slowness, seed)));
        for (std::size_t k = 0; k < delayed; ++k) logs[k] += std::log(values[k]) / machines_drawn;
    }
    for (double& x : logs) x = std::exp(x);
    return logs;
}
void add_stalled_gate(sums& c, const stalled_load& l, generator& random) {
    const plan p = stalled_traffic(l, random.next());
    const vector<double> truth = planned_truth(p, random.next());
    measurement m;
    m.arrival_cv2 = arrival_cv2_of(p.sent->arrivals);
    m.rule = rule_of({}, first_analysis, last_analysis, 1);
    for (int i = 0; i < last_analysis; ++i) {
        const engine e = stalled_engine(std::exp(0.03 * random.normal()), random.next());
        const stalls client(static_cast<double>(2 * requests_a_run) / l.rate, random);
        const vector<double> planned = evaluate(delayed_statistics(), simulated_run(p, e));
        repeat_data d = simulated_run(p, e, [&](double at) { return client(at); });
        note_lateness(d);
        c.number(late_fraction) += late_fraction_of(d, late_send_ns * 1e-9);
        ++c.number(repeats_seen);
        m.candidate.push_back(std::move(d));
        for (std::size_t k = 0; k < delayed; ++k) {
            const double best =
                evaluate(delayed_statistics()[k], m.candidate.back(), timing_bound::optimistic);
            c.number(better + k) += best > planned[k] * 1.001;
        }
    }
    for (std::size_t k = 0; k < delayed; ++k)
        for (std::size_t i = 0; i < limits_of_late; ++i) {
            slo s;
            s.statistic = delayed_statistics()[k];
            s.bound = truth[k] / late_ratios[i];
            c.at(place(k, i)).add(judged(m, s));
        }
}
std::string with_invalid(const tally& t) {
    return percent(t.passed()) + "/" + percent(t.failed()) + "/" + percent(t.undecided()) + "/" +
           percent(static_cast<double>(t.invalid) / t.trials());
}

void rows_of(study_run& by, const stalled_load& l, std::uint64_t stream) {
    sums r = by.over([&](sums& sum, std::uint64_t trial) {
        generator random = by.random(trial, stream);
        add_stalled_gate(sum, l, random);
    });
    by.table(l.name, {"at the limit", "15 % inside", "30 % over", "better"},
             printed("\n%s %% of the sends are over 5 ms late\n",
                     percent(r.number(late_fraction) / r.number(repeats_seen)).c_str()));
    for (std::size_t k = 0; k < delayed; ++k) {
        const std::string name = str(delayed_statistics()[k].name);
        columns all;
        for (std::size_t i = 0; i < limits_of_late; ++i) all.push_back(with_invalid(r.at(place(k, i))));
        all.push_back(percent(r.number(better + k) / r.number(repeats_seen)));
        print_row(name, all);

        const std::string of = std::string(l.name) + ", " + name;
        by.must.at_limit(of, r.at(place(k, 0)));
        const tally& inside = r.at(place(k, 1));
        if (l.is_idle_at_times)
            by.must.at_most(of + ", invalid inside", static_cast<double>(inside.invalid) / inside.trials(), 0.05);
    }
}

void stalls_part(study_run& by) {
    std::printf("Pass/fail/inconclusive/invalid by the client in %%; %lld gates of %d repeats. "
                "\"Better\": repeats that would\nhave been over 0.1 %% better as planned than the "
                "bound says.\n",
                by.trials, last_analysis);
    std::uint64_t stream = 900;
    for (const stalled_load& l : stalled_loads) {
        ++stream;
        if (by.is_next_ours()) rows_of(by, l, stream);
    }
}
const registered late_sends({"late", 600, 40, {{"stalls", stalls_part}}});

}  // namespace
