// What a client that stalls does to verdicts. An engine in virtual time gets each trace twice: as it
// is planned, and from a client that sends what is due in a stall at its end. How far that moves a
// value is held against the bound by which a gate judges: the delay of the latest send since the
// server was idle. No repeat is measured again, as a gate would do first.
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
using sample_measurements::judged;
using sample_measurements::measurement;
using namespace virtual_engine;

namespace {

struct stalled_load {
    const char* name;
    double rate, output_tokens;
};
constexpr stalled_load stalled_loads[] = {{"3 req/s of 16 tokens, 0.6 at once", 3, 16},
                                          {"8 req/s of 16 tokens, 1.6 at once", 8, 16},
                                          {"4 req/s of 120 tokens, 7 at once", 4, 120}};

const vector<statistic_data>& delayed_statistics() {
    static const vector<statistic_data> all = {mean(ttft).data, p90(ttft).data, mean(e2e).data,
                                               p90(e2e).data};
    return all;
}
constexpr std::size_t delayed = 4;
/// True value over the limit.
constexpr std::array<double, 3> late_ratios = {1, 1 / 1.15, 1.3};

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

/// The tallies of a statistic: as sent at each limit, then as planned at each.
constexpr std::size_t place(std::size_t k, std::size_t limit, bool planned = false) {
    return (2 * k + planned) * late_ratios.size() + limit;
}
/// The numbers: sends that were late, by repeats; for each statistic how far the value of a gate
/// moved and may have moved, in logs, and the gates that moved by 0.1 % more than that.
constexpr std::size_t late_sends = 0;
enum moved : std::size_t { truly, at_most, beyond, numbers_of_moved };
constexpr std::size_t number_of(std::size_t k, moved which) { return 1 + numbers_of_moved * k + which; }

void add_stalled_gate(sums& c, const stalled_load& l, generator& random) {
    const plan p = stalled_traffic(l, random.next());
    const vector<double> truth = planned_truth(p, random.next());
    measurement planned;
    planned.arrival_cv2 = arrival_cv2_of(p.sent->arrivals);
    planned.rule = rule_of({}, first_analysis, last_analysis, 1);
    measurement sent = planned;
    vector<double> moves(delayed, 0.0), bounds_of_moves(delayed, 0.0);
    for (int i = 0; i < last_analysis; ++i) {
        const engine e = stalled_engine(std::exp(0.03 * random.normal()), random.next());
        const stalls client(static_cast<double>(2 * requests_a_run) / l.rate, random);
        planned.candidate.push_back(simulated_run(p, e));
        repeat_data d = simulated_run(p, e, client);
        note_lateness(d);
        c.number(late_sends) += late_fraction_of(d, late_send_ns * 1e-9) / last_analysis;
        for (std::size_t k = 0; k < delayed; ++k) {
            const statistic_data& what = delayed_statistics()[k];
            const double value = evaluate(what, d);
            moves[k] += std::log(value / evaluate(what, planned.candidate.back())) / last_analysis;
            bounds_of_moves[k] +=
                std::log(value / evaluate(what, d, timing_bound::optimistic)) / last_analysis;
        }
        sent.candidate.push_back(std::move(d));
    }
    for (std::size_t k = 0; k < delayed; ++k) {
        c.number(number_of(k, truly)) += moves[k];
        c.number(number_of(k, at_most)) += bounds_of_moves[k];
        c.number(number_of(k, beyond)) += moves[k] > bounds_of_moves[k] + 0.001;
        for (std::size_t i = 0; i < late_ratios.size(); ++i) {
            slo s;
            s.statistic = delayed_statistics()[k];
            s.bound = truth[k] / late_ratios[i];
            sent.slos = {s};
            c.at(place(k, i)).add(judged(sent, s));
            c.at(place(k, i, true)).add(judged(planned, s));
        }
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
    const auto n = static_cast<double>(by.trials);
    by.table(l.name, {"at the limit", "15 % inside", "as planned", "30 % over", "moved by", "at most", "by more"},
             printed("\n%s %% of the sends are over 5 ms late\n", percent(r.number(late_sends) / n).c_str()));
    for (std::size_t k = 0; k < delayed; ++k) {
        const std::string name = str(delayed_statistics()[k].name);
        const auto mean_move = [&](moved which) {
            const double part = std::expm1(r.number(number_of(k, which)) / n);
            return part < 10 ? percent(part) + " %" : "any";
        };
        print_row(name, {with_invalid(r.at(place(k, 0))), with_invalid(r.at(place(k, 1))),
                         with_invalid(r.at(place(k, 1, true))), with_invalid(r.at(place(k, 2))),
                         mean_move(truly), mean_move(at_most), percent(r.number(number_of(k, beyond)) / n)});

        const std::string of = std::string(l.name) + ", " + name;
        const tally& inside = r.at(place(k, 1));
        by.must.at_limit(of, r.at(place(k, 0)));
        by.must.at_most(of + ", invalid inside", static_cast<double>(inside.invalid) / inside.trials(), 0.05);
    }
}

void stalls_part(study_run& by) {
    std::printf("Pass/fail/inconclusive/invalid by the client in %%; %lld gates of %d repeats. \"As planned\": 15 %% "
                "inside,\nfrom a client that never stalls. \"Moved by\": the value, on average; \"at most\": the bound, "
                "which \"by more\" %%\nof the gates exceed by 0.1 %%.\n",
                by.trials, last_analysis);
    std::uint64_t stream = 900;
    for (const stalled_load& l : stalled_loads) {
        ++stream;
        if (by.is_next_ours()) rows_of(by, l, stream);
    }
}
const registered late_studies({"late", 600, 40, {{"stalls", stalls_part}}});

}  // namespace
