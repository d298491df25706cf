// How often a capacity's ends are wrong, how wide its interval is and what it costs, on the engine
// model in virtual time; beside bisection, as other tools do it, on the same model. Then how the
// gate `capacity >= c` alone is judged.
//   capacity_error_rates [--quick] [--trials N] [--seed N] [--threads N] [--part search|gate]
// A trial: another trace, whose true capacity is the load at which the mean log of the worst
// statistic over the noise of the machine is its limit, within 0.3 %; the first guess of a search
// lies between half and twice of it, in the rows "from afar" between a sixteenth and twice.
#define LLMBENCH_NO_DOCTEST
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/capacity/probes.hpp"
#include "core/capacity/search.hpp"
#include "core/capacity/trend.hpp"

#include "support/virtual_engine.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>

using namespace virtual_engine;

namespace {

/// What the load must keep: a limit where the engine shows it at this share of its throughput.
struct objective {
    const char* name;
    std::vector<statistic_data> what;
    double share;
};

/// A server under a trace, and what it must keep.
struct subject {
    std::vector<slo> slos{};
    std::uint64_t trace = 0;
    double noise = 0;
    double slowness = 1;

    repeat_data run(double rate, double times_as_slow, std::uint64_t seed) const {
        return simulated_run(traffic(rate, trace), machine(slowness * times_as_slow, seed));
    }
    repeat_data noisy_run(double rate, generator& random) const {
        const double wandered = std::exp(noise * random.normal());
        return run(rate, wandered, random.next());
    }
    /// The mean margin at a load, over noise that is spread over its distribution and not drawn,
    /// the same at every load.
    double margin(double rate) const {
        constexpr int runs = 16;
        std::vector<double> sums(slos.size(), 0.0);
        generator same(trace, 7);
        for (int i = 0; i < runs; ++i) {
            const double wandered = std::exp(noise * normal_quantile((i + 0.5) / runs));
            const repeat_data d = run(rate, wandered, same.next());
            for (std::size_t k = 0; k < slos.size(); ++k) sums[k] += margin_of(slos[k], d) / runs;
        }
        return *std::max_element(sums.begin(), sums.end());
    }
    double capacity(double around) const {
        double low = 0.7 * around, high = 1.2 * around;
        double at_low = margin(low), at_high = margin(high);
        for (; at_low >= 0; at_low = margin(low /= 1.4)) { high = low; at_high = at_low; }
        for (; at_high < 0; at_high = margin(high *= 1.3)) { low = high; at_low = at_high; }
        while (high / low > 1.003) {
            const double share = std::clamp(-at_low / (at_high - at_low), 0.1, 0.9);
            const double middle = low * std::pow(high / low, (0.5 + share) / 2), m = margin(middle);
            (m < 0 ? low : high) = middle;
            (m < 0 ? at_low : at_high) = m;
        }
        return low * std::pow(high / low, -at_low / (at_high - at_low));
    }
};
subject subject_of(const objective& o, double most, double noise, std::uint64_t seed) {
    generator first(seed, 5);
    subject s;
    s.noise = noise;
    for (const statistic_data& w : o.what) {
        slo limit;
        limit.what = w;
        double sum = 0;
        for (int i = 0; i < 10; ++i) {
            s.trace = first.next();
            sum += std::log(evaluate(w, s.noisy_run(o.share * most, first))) / 10;
        }
        limit.bound = std::exp(sum);
        s.slos.push_back(limit);
    }
    return s;
}

struct searched {
    double low = 0, high = infinity, estimate = not_a_number;
    int probes = 0;
    double largest = 0;  // load
    bool trend = false;  // was told, though there is none
};
/// `evidence_too`: else bracket and refine alone.
searched search(const subject& on, const judging_rule& rule, double start, generator& random,
                bool evidence_too = true) {
    search_parameters t;
    t.start = start;
    const judging_parameters judged_by{.slos = on.slos, .rule = rule};
    std::vector<probe> probes;
    std::map<double, measurements> at;  // by load
    searched out;
    for (;;) {
        const search_step next = next_step(t, probes);
        const bool shows = next.part == probe_of::low || next.part == probe_of::high;
        if (!next.done.empty() || (shows && !evidence_too)) {
            const search_state s = state_of(probes);
            out.low = s.low;
            out.high = s.high;
            out.estimate = s.capacity.value_or(t.start);
            out.probes = static_cast<int>(probes.size());
            out.trend = trend_of(probes, s.elasticity.value_or(steepest)).has_value();
            return out;
        }
        out.largest = std::max(out.largest, next.load);
        repeat_data d = on.noisy_run(next.load, random);
        probe p{next.part, next.load, worst_margin(on.slos, d), is_over(d, 1)};
        if (shows) {
            measurements& e = at[next.load];
            e.arrival_cv2 = 1;
            e.candidate.push_back(std::move(d));
            p.shown = carried_at(e, judged_by);
        }
        probes.push_back(p);
    }
}
/// Double or halve, then bisect to 5 %, by the mean of `runs` at each load.
searched bisected(const subject& on, double start, int runs, generator& random) {
    searched s;
    const auto misses = [&](double rate) {
        std::vector<double> sums(on.slos.size(), 0.0);
        for (int i = 0; i < runs; ++i) {
            const repeat_data d = on.noisy_run(rate, random);
            for (std::size_t k = 0; k < on.slos.size(); ++k)
                sums[k] += std::exp(margin_of(on.slos[k], d));
        }
        s.probes += runs;
        s.largest = std::max(s.largest, rate);
        return *std::max_element(sums.begin(), sums.end()) / runs > 1;
    };
    double at = start;
    while (s.low == 0 || s.high == infinity) {
        (misses(at) ? s.high : s.low) = at;
        at = s.low == 0 ? at / 2 : at * 2;
    }
    while (s.high / s.low > 1.05) {
        const double middle = std::sqrt(s.low * s.high);
        (misses(middle) ? s.high : s.low) = middle;
    }
    return s;
}

double percent(long long k, long long n) {
    return 100 * static_cast<double>(k) / static_cast<double>(std::max(n, 1ll));
}
double quantile(std::vector<double> v, double q) {
    if (v.empty()) return not_a_number;
    std::sort(v.begin(), v.end());
    return v[static_cast<std::size_t>(q * static_cast<double>(v.size() - 1))];
}

struct search_totals {
    long long n = 0, low_wrong = 0, high_wrong = 0, both = 0, one = 0, probes = 0, trends = 0;
    std::vector<double> widths{}, largest{};
    void add(const searched& s, double truth) {
        ++n;
        low_wrong += s.low > truth;
        high_wrong += s.high < truth;
        probes += s.probes;
        trends += s.trend;
        largest.push_back(s.largest / truth);
        one += (s.low > 0) != (s.high < infinity);
        if (s.low == 0 || s.high == infinity) return;
        ++both;
        widths.push_back(s.high / s.low);
    }
    void print(const std::string& name) const {
        std::printf("| %-34s | %.1f / %.1f %% | %.0f + %.0f %% | %.3f (%.3f) | %.1f | %.2f | %.1f %% |\n",
                    name.c_str(), percent(low_wrong, n), percent(high_wrong, n), percent(both, n),
                    percent(one, n), quantile(widths, 0.5), quantile(widths, 0.9),
                    static_cast<double>(probes) / static_cast<double>(std::max(n, 1ll)),
                    quantile(largest, 0.9), percent(trends, n));
        std::fflush(stdout);
    }
};
struct verdict_totals {
    long long n = 0, passed = 0, failed = 0, runs = 0;
    void add(verdict v, std::size_t cost) {
        ++n;
        passed += v == verdict::pass;
        failed += v == verdict::fail;
        runs += static_cast<long long>(cost);
    }
    void add(const verdict_totals& more) {
        n += more.n;
        passed += more.passed;
        failed += more.failed;
        runs += more.runs;
    }
    void print() const {
        std::printf(" | %.0f / %.0f / %.0f (%.1f)", percent(passed, n), percent(failed, n),
                    percent(n - passed - failed, n),
                    static_cast<double>(runs) / static_cast<double>(std::max(n, 1ll)));
    }
};

/// The gate at one load: the conjunction of its objectives by 2 to 5 repeats.
void judge_gate(const subject& on, const judging_rule& rule, double load, generator& random,
                verdict_totals& to) {
    const judging_parameters judged_by{.slos = on.slos, .rule = rule};
    measurements e;
    e.arrival_cv2 = 1;
    carried shown = carried::open;
    while (shown == carried::open && static_cast<int>(e.candidate.size()) < last_analysis) {
        e.candidate.push_back(on.noisy_run(load, random));
        shown = carried_at(e, judged_by);
    }
    to.add(shown == carried::holds    ? verdict::pass
           : shown == carried::misses ? verdict::fail
                                      : verdict::inconclusive,
           e.candidate.size());
}

/// Every trial once, by so many threads; a trial's numbers depend on none but its own.
template <class F>
void for_each_trial(long long trials, int threads, F&& f) {
    std::vector<std::thread> others;
    const auto work = [&](int which) {
        for (long long i = which; i < trials; i += threads) f(i);
    };
    for (int i = 1; i < threads; ++i) others.emplace_back(work, i);
    work(0);
    for (std::thread& t : others) t.join();
}

/// What all parts are done on.
struct row {
    std::string name{};
    subject on{};
    std::vector<double> truths{};
    std::vector<std::uint64_t> traces{};
    subject of(std::size_t trial) const {
        subject s = on;
        s.trace = traces[trial];
        return s;
    }
};
struct bench_terms {
    long long trials = 200;
    std::uint64_t seed = 1;
    int threads = 2;
    bool quick = false;
    std::string part{};
    bool does(const char* name) const { return part.empty() || part == name; }
    generator random_of(long long trial, std::uint64_t part_of_bench) const {
        return generator(seed + part_of_bench, static_cast<std::uint64_t>(5000 + trial));
    }
};

std::vector<row> rows_of(const bench_terms& b, double most) {
    const std::vector<objective> objectives = {
        {"p90 TTFT, a knee", {p90(ttft).data}, 0.85},
        {"p99 TTFT, a knee", {p99(ttft).data}, 0.8},
        {"mean TPOT, flat", {mean(tpot).data}, 0.6},
        {"both", {p90(ttft).data, mean(tpot).data}, 0.8},
    };
    std::vector<row> rows;
    for (const double noise : {0.01, 0.03})
        for (const objective& o : objectives) {
            if (b.quick && (noise > 0.01 || o.what[0].q == 0.99 || o.what.size() > 1)) continue;
            row r;
            r.name = printed("%s, %.0f %%", o.name, noise * 100);
            r.on = subject_of(o, most, noise, b.seed);
            for (long long i = 0; i < b.trials; ++i)
                r.traces.push_back(generator(b.seed, static_cast<std::uint64_t>(1000 + i)).next());
            r.truths.resize(r.traces.size());
            for_each_trial(b.trials, b.threads, [&](long long i) {
                const auto k = static_cast<std::size_t>(i);
                r.truths[k] = r.of(k).capacity(o.share * most);
            });
            rows.push_back(r);
        }
    return rows;
}

/// False where ends are wrong, or not shown, by more than so few trials can explain.
bool search_row(const bench_terms& b, const row& r) {
    const judging_rule rule = rule_of_a_load(options_of_an_end(), r.on.slos);
    search_totals ours, afar, once, thrice;
    std::mutex lock;
    for_each_trial(b.trials, b.threads, [&](long long i) {
        generator random = b.random_of(i, 100);
        const auto k = static_cast<std::size_t>(i);
        const subject on = r.of(k);
        const double truth = r.truths[k], u = random.uniform();
        const double start = truth * std::exp((2 * u - 1) * std::log(2.0));
        const searched a = search(on, rule, start, random);
        const searched c = search(on, rule, truth / 16 * std::pow(32, u), random);
        const searched one = bisected(on, start, 1, random);
        const searched three = bisected(on, start, 3, random);
        const std::lock_guard hold(lock);
        ours.add(a, truth);
        afar.add(c, truth);
        once.add(one, truth);
        thrice.add(three, truth);
    });
    ours.print(r.name);
    afar.print("  from afar");
    once.print("  bisection, one run");
    thrice.print("  bisection, mean of three");
    const long long wrong = std::max(ours.low_wrong + afar.low_wrong,
                                     ours.high_wrong + afar.high_wrong);
    const bool few_trends = (ours.trends + afar.trends) * 10 <= 2 * b.trials;
    return few_trends && wrong * 10 <= 2 * b.trials && (ours.both + afar.both) * 10 >= 2 * b.trials * 8;
}
void gate_row(const bench_terms& b, const row& r) {
    const judging_rule rule = rule_of_a_load({}, r.on.slos);
    std::printf("| %-24s", r.name.c_str());
    std::mutex lock;
    for (const double at : {0.95, 1.0, 1.05}) {
        verdict_totals all;
        for_each_trial(b.trials, b.threads, [&](long long i) {
            generator random = b.random_of(i, 200 + static_cast<std::uint64_t>(100 * at));
            const auto k = static_cast<std::size_t>(i);
            verdict_totals mine;
            judge_gate(r.of(k), rule, at * r.truths[k], random, mine);
            const std::lock_guard hold(lock);
            all.add(mine);
        });
        all.print();
    }
    std::printf(" |\n");
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    bench_terms b;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--quick") b.quick = true;
        else if (name == "--trials" && i + 1 < argc) b.trials = std::atoll(argv[++i]);
        else if (name == "--seed" && i + 1 < argc) b.seed = std::strtoull(argv[++i], nullptr, 10);
        else if (name == "--threads" && i + 1 < argc) b.threads = std::max(1, std::atoi(argv[++i]));
        else if (name == "--part" && i + 1 < argc) b.part = argv[++i];
        else {
            std::fprintf(stderr, "capacity_error_rates: there are --quick, --trials N, --seed N, "
                                 "--threads N and --part search|gate\n");
            return 2;
        }
    }
    if (b.quick) {
        b.trials = std::min(b.trials, 20ll);
        b.part = "search";
    }
    const double most = measured_capacity(1);
    std::printf("The engine completes %.2f requests/s at most. %lld trials a row.\n", most,
                b.trials);
    const std::vector<row> rows = rows_of(b, most);
    bool met = true;
    if (b.does("search")) {
        std::printf("\n| the search | low / high end wrong | both + one end shown | high/low, "
                    "median (p90) | probes | largest load / capacity, p90 | a trend told |\n"
                    "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
        for (const row& r : rows) met = search_row(b, r) && met;
    }
    if (b.does("gate")) {
        std::printf("\n| capacity >= c alone: pass / fail / inconclusive in %% (runs), c over the "
                    "true capacity | 0.95 | 1 | 1.05 |\n| --- | ---: | ---: | ---: |\n");
        for (const row& r : rows) gate_row(b, r);
    }
    return b.quick && !met ? 1 : 0;
}
