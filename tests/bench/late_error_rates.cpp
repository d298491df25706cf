// What a client that stalls does to verdicts. An engine in virtual time gets each trace twice: as it
// is planned, and from a client that sends what is due in a stall at its end. Beside the shipped bound
// on what late sends may have done, that of the latest send since the server was idle, stands the one
// before it: the latest send of the whole load, for every request.
#include "core/judging/judge.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/planning/planning.hpp"
#include "core/traffic/requests.hpp"
#include "extensions/simulated/core/engine_model.hpp"

#include "../support/sample_measurements.hpp"
#include "support/rates.hpp"
#include "support/virtual_engine.hpp"

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

constexpr std::size_t delayed = 4, bounds_of_late = 2, limits_of_late = 3;
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
/// As the rule before: any late send may have delayed any request.
repeat_data by_latest_of_all(repeat_data d) {
    if (d.late_stretches.empty()) return d;
    late_stretch whole = d.late_stretches.front();
    for (const late_stretch& s : d.late_stretches)
        whole.latest_ns = std::max(whole.latest_ns, s.latest_ns);
    d.late_stretches.clear();
    d.late_stretches.push_back(whole);
    return d;
}

struct stall_cell : tallies<delayed * bounds_of_late * limits_of_late> {
    double runs = 0, late = 0;
    std::array<double, delayed * bounds_of_late> better{};  // as planned, than the bound says
    void operator+=(const stall_cell& o) {
        tallies::operator+=(o);
        runs += o.runs;
        late += o.late;
        for (std::size_t i = 0; i < better.size(); ++i) better[i] += o.better[i];
    }
    tally& at(std::size_t k, std::size_t bound, std::size_t limit) {
        return of[(k * bounds_of_late + bound) * limits_of_late + limit];
    }
};
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
void add_stalled_gate(stall_cell& c, const stalled_load& l, generator& random) {
    const plan p = stalled_traffic(l, random.next());
    const vector<double> truth = planned_truth(p, random.next());
    measurement by[bounds_of_late];
    for (measurement& m : by) {
        m.arrival_cv2 = arrival_cv2_of(p.sent->arrivals);
        m.rule = rule_of({}, first_analysis, last_analysis, 1);
    }
    for (int i = 0; i < last_analysis; ++i) {
        const engine e = stalled_engine(std::exp(0.03 * random.normal()), random.next());
        const stalls client(static_cast<double>(2 * requests_a_run) / l.rate, random);
        const vector<double> planned = evaluate(delayed_statistics(), simulated_run(p, e));
        repeat_data d = simulated_run(p, e, [&](double at) { return client(at); });
        note_lateness(d);
        c.late += late_fraction_of(d, late_send_ns * 1e-9);
        ++c.runs;
        by[0].candidate.push_back(by_latest_of_all(d));
        by[1].candidate.push_back(std::move(d));
        for (std::size_t k = 0; k < delayed; ++k)
            for (std::size_t b = 0; b < bounds_of_late; ++b) {
                const double best = evaluate(delayed_statistics()[k], by[b].candidate.back(),
                                             timing_bound::optimistic);
                c.better[k * bounds_of_late + b] += best > planned[k] * 1.001;
            }
    }
    for (std::size_t k = 0; k < delayed; ++k)
        for (std::size_t b = 0; b < bounds_of_late; ++b)
            for (std::size_t i = 0; i < limits_of_late; ++i) {
                slo s;
                s.statistic = delayed_statistics()[k];
                s.bound = truth[k] / late_ratios[i];
                const slo_verdict v = judged(by[b], s);
                c.at(k, b, i).add(v.outcome, v.repeats);
            }
}
std::string with_invalid(const tally& t) {
    return percent(t.passed()) + "/" + percent(t.failed()) + "/" + percent(t.undecided()) + "/" +
           percent(static_cast<double>(t.invalid) / t.trials());
}

bool study_of_late_sends(const options& o) {
    std::printf("Pass/fail/inconclusive/invalid by the client in %%; %lld gates of %d repeats. "
                "\"Better\": repeats that would\nhave been over 0.1 %% better as planned than the "
                "bound says.\n", o.trials, last_analysis);
    bounds must(o.trials);
    std::uint64_t stream = 900;
    for (const stalled_load& l : stalled_loads) {
        ++stream;
        stall_cell r = over_trials<stall_cell>(o.trials, [&](stall_cell& sum, std::uint64_t trial) {
            generator random(mixed(mixed(o.seed) + trial), stream);
            add_stalled_gate(sum, l, random);
        });
        std::printf("\n%s %% of the sends are over 5 ms late\n", percent(r.late / r.runs).c_str());
        print_head(l.name, {"at the limit", "15 % inside", "30 % over", "better"});
        for (std::size_t k = 0; k < delayed; ++k)
            for (std::size_t b = 0; b < bounds_of_late; ++b) {
                const std::string name =
                    str(delayed_statistics()[k].name) + (b == 0 ? ", latest of all" : "");
                vector<std::string> columns;
                for (std::size_t i = 0; i < limits_of_late; ++i)
                    columns.push_back(with_invalid(r.at(k, b, i)));
                columns.push_back(percent(r.better[k * bounds_of_late + b] / r.runs));
                print_row(name, columns);
                if (b == 0) continue;
                const std::string of = std::string(l.name) + ", " + name;
                must.at_most(of + ", passes at the limit", r.at(k, b, 0).passed(), 0.05);
                must.at_most(of + ", fails at the limit", r.at(k, b, 0).failed(), 0.01);
                if (!l.is_idle_at_times) continue;
                const tally& inside = r.at(k, b, 1);
                must.at_most(of + ", invalid inside",
                             static_cast<double>(inside.invalid) / inside.trials(), 0.05);
            }
    }
    return must.met();
}
const registered late_sends({"late", 600, 40, {"stalls"}, study_of_late_sends});

}  // namespace
