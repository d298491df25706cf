// How often a capacity's ends are wrong, how wide its interval is and what it costs, on the engine
// model in virtual time. Then how the gate `capacity >= c` alone is judged.
// A trial: another trace, whose true capacity is the load at which the mean log of the worst
// statistic over the noise of the machine is its limit, within 0.3 %; the first guess of a search
// lies between half and twice of it, in the rows "from afar" between a sixteenth and twice.
#include "extensions/capacity/api.hpp"
#include "extensions/capacity/core/found.hpp"
#include "extensions/capacity/core/search.hpp"
#include "extensions/capacity/core/searched.hpp"

#include "../support/virtual_engine.hpp"
#include "rates.hpp"

#include <map>

using namespace virtual_engine;
using namespace rates;

namespace {

/// What the load must keep: a limit where the engine shows it at this share of its throughput.
struct objective {
    const char* name;
    vector<statistic_data> what;
    double share;
};

/// Requests whose lengths vary by this much.
planned_traffic varied(double rate, double spread, std::uint64_t trace, long long requests) {
    planned_traffic t = *traffic(rate, trace, requests).sent;
    t.source = std::make_shared<const synthetic_prompts>(synthetic{
        .prompt_tokens = lognormal(400, spread), .output_tokens = lognormal(120, spread)});
    return t;
}
/// A probe of these; `requests`: at least.
planned_traffic varied_probe(double rate, double spread, std::uint64_t trace, long long requests) {
    planned_traffic t = varied(rate, spread, trace, 1);
    t.requests = std::max(requests, std::llround(seconds_of_a_probe * rate));
    t.warmup_requests = std::llround(lead_of_a_probe * rate);
    return t;
}

/// A server under a trace, and what it must keep.
struct subject {
    vector<slo> slos{};
    std::uint64_t trace = 0;
    double noise = 0;
    double slowness = 1;
    std::optional<double> spread{};  // of lengths; none: as in the other studies
    long long requests = 0;          // of a probe of these, at least
    bool has_fresh_traces = false;   // for each probe of these

    repeat_data run(double rate, double times_as_slow, std::uint64_t seed) const {
        const engine e = machine(slowness * times_as_slow, seed);
        if (!spread) return simulated_run(traffic(rate, trace), e);
        return simulated_run(varied_probe(rate, *spread, has_fresh_traces ? seed : trace, requests), e);
    }
    repeat_data noisy_run(double rate, generator& random) const {
        const double wandered = std::exp(noise * random.normal());
        return run(rate, wandered, random.next());
    }
    /// The mean margin at a load, over noise that is spread over its distribution and not drawn,
    /// the same at every load.
    double margin(double rate) const {
        constexpr int runs = 16;
        vector<double> sums(slos.size(), 0.0);
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
        for (; at_low >= 0; at_low = margin(low /= 1.4)) {
            high = low;
            at_high = at_low;
        }
        for (; at_high < 0; at_high = margin(high *= 1.3)) {
            low = high;
            at_low = at_high;
        }
        while (high / low > 1.003) {
            const double share = std::clamp(-at_low / (at_high - at_low), 0.1, 0.9);
            const double middle = low * std::pow(high / low, (0.5 + share) / 2), m = margin(middle);
            (m < 0 ? low : high) = middle;
            (m < 0 ? at_low : at_high) = m;
        }
        return low * std::pow(high / low, -at_low / (at_high - at_low));
    }
};
judging_parameters parameters_of(const subject& on, const judging_rule& rule) {
    judging_parameters p;
    p.slos = on.slos;
    p.rule = rule;
    return p;
}
subject subject_of(const objective& o, double most, double noise, std::uint64_t seed) {
    generator first(seed, 5);
    subject s;
    s.noise = noise;
    for (const statistic_data& w : o.what) {
        slo limit;
        limit.statistic = w;
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
    double low = 0, high = infinity;
    int probes = 0;
    double largest = 0;  // load
    bool trend = false;  // was told, though there is none
};
searched search(const subject& on, const judging_rule& rule, double start, generator& random) {
    const search_parameters t{.start = start};
    const judging_parameters judged_by = parameters_of(on, rule);
    vector<probe> probes;
    std::map<double, measurements> at;  // by load
    searched out;
    for (;;) {
        const std::optional<double> load = next_load(t, probes);
        if (!load) {
            const search_state s = state_of(probes);
            out.low = s.low;
            out.high = s.high;
            out.probes = static_cast<int>(probes.size());
            out.trend = trend_of(probes, s).has_value();
            return out;
        }
        out.largest = std::max(out.largest, *load);
        repeat_data d = on.noisy_run(*load, random);
        probes.push_back({{}, *load, worst_margin(on.slos, d), is_over(d, 1)});
        measurements& e = at[*load];
        e.arrival_cv2 = 1;
        e.candidate.push_back(std::move(d));
        probes.back().shown = carried_at(e, judged_by, least_of_an_end);
    }
}
double quantile(vector<double> v, double q) {
    if (v.empty()) return not_a_number;
    std::sort(v.begin(), v.end());
    return v[static_cast<std::size_t>(q * static_cast<double>(v.size() - 1))];
}

struct search_totals {
    long long n = 0, low_wrong = 0, high_wrong = 0, both = 0, one = 0, probes = 0, trends = 0;
    vector<double> widths{}, largest{};
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
    void operator+=(const search_totals& o) {
        n += o.n;
        low_wrong += o.low_wrong;
        high_wrong += o.high_wrong;
        both += o.both;
        one += o.one;
        probes += o.probes;
        trends += o.trends;
        widths.insert(widths.end(), o.widths.begin(), o.widths.end());
        largest.insert(largest.end(), o.largest.begin(), o.largest.end());
    }
    double share(long long k) const { return static_cast<double>(k) / static_cast<double>(n); }
    columns row() const {
        return {percent(share(low_wrong)) + " / " + percent(share(high_wrong)),
                         percent(share(both)) + " + " + percent(share(one)),
                printed("%.3f (%.3f)", quantile(widths, 0.5), quantile(widths, 0.9)),
                printed("%.1f", share(probes)), printed("%.2f", quantile(largest, 0.9)),
                percent(share(trends))};
    }
};

columns heads_of_searches() {
    return {"low / high end wrong, %", "both + one end shown, %", "high/low, median (p90)", "probes",
            "largest load / capacity, p90", "a trend told, %"};
}

verdict verdict_of(carried shown) {
    return shown == carried::holds    ? verdict::pass
           : shown == carried::misses ? verdict::fail
                                      : verdict::inconclusive;
}
/// The gate at one load: the conjunction of its objectives by 2 to 5 repeats.
void judge_gate(const subject& on, const judging_rule& rule, double load, generator& random, tally& to) {
    const judging_parameters judged_by = parameters_of(on, rule);
    measurements e;
    e.arrival_cv2 = 1;
    carried shown = carried::open;
    while (shown == carried::open && static_cast<int>(e.candidate.size()) < last_analysis) {
        e.candidate.push_back(on.noisy_run(load, random));
        shown = carried_at(e, judged_by);
    }
    to.add(verdict_of(shown), static_cast<long long>(e.candidate.size()));
}

/// What all parts are done on.
struct row {
    std::string name{};
    subject on{};
    vector<double> truths{};
    vector<std::uint64_t> traces{};
    subject of(std::size_t trial) const {
        subject s = on;
        s.trace = traces[trial];
        return s;
    }
};
generator random_of_part(const study_run& o, std::uint64_t trial, std::uint64_t part) {
    return generator(o.seed + part, 5000 + trial);
}

vector<row> rows_of(const study_run& b) {
    const double most = measured_capacity(1);
    const vector<objective> objectives = {
        {"p90 TTFT, a knee", {p90(ttft).data}, 0.85},
        {"p99 TTFT, a knee", {p99(ttft).data}, 0.8},
        {"mean TPOT, flat", {mean(tpot).data}, 0.6},
        {"both", {p90(ttft).data, mean(tpot).data}, 0.8},
    };
    vector<row> rows;
    for (const double noise : {0.01, 0.03})
        for (const objective& o : objectives) {
            if (b.quick && (noise > 0.01 || o.what[0].q == 0.99 || o.what.size() > 1)) continue;
            row r;
            r.name = printed("%s, %.0f %%", o.name, noise * 100);
            r.on = subject_of(o, most, noise, b.seed);
            for (long long i = 0; i < b.trials; ++i)
                r.traces.push_back(generator(b.seed, static_cast<std::uint64_t>(1000 + i)).next());
            r.truths.resize(r.traces.size());
            over_trials<tally>(b.trials, [&](tally&, std::uint64_t i) {
                r.truths[i] = r.of(i).capacity(o.share * most);
            });
            rows.push_back(r);
        }
    return rows;
}

/// The search, and another look at it: from afar, or with wider ends.
struct searches {
    search_totals of[2]{};
    void operator+=(const searches& o) {
        for (std::size_t i = 0; i < 2; ++i) of[i] += o.of[i];
    }
};
void search_rows(study_run& o, const row& r) {
    const judging_rule rule = rule_of_a_load(options_of_an_end(), r.on.slos);
    const searches all = over_trials<searches>(o.trials, [&](searches& sum, std::uint64_t i) {
        generator random = random_of_part(o, i, 100);
        const subject on = r.of(i);
        const double truth = r.truths[i], u = random.uniform();
        const double start = truth * std::exp((2 * u - 1) * std::log(2.0));
        sum.of[0].add(search(on, rule, start, random), truth);
        sum.of[1].add(search(on, rule, truth / 16 * std::pow(32, u), random), truth);
    });
    search_totals ours = all.of[0];
    print_row(r.name, all.of[0].row());
    print_row("  from afar", all.of[1].row());
    ours += all.of[1];
    o.must.at_most(r.name + ", low end wrong", ours.share(ours.low_wrong), 0.05);
    o.must.at_most(r.name + ", high end wrong", ours.share(ours.high_wrong), 0.05);
    o.must.at_most(r.name + ", trends", ours.share(ours.trends), 0.05);
    o.must.at_least(r.name + ", both ends shown", ours.share(ours.both), 0.9);
}
columns gate_row(const study_run& o, const row& r) {
    const judging_rule rule = rule_of_a_load({}, r.on.slos);
    sums all = o.over([&](sums& sum, std::uint64_t i) {
        for (std::size_t k = 0; k < 3; ++k) {
            const double at = std::array{0.95, 1.0, 1.05}[k];
            generator random = random_of_part(o, i, 200 + static_cast<std::uint64_t>(100 * at));
            judge_gate(r.of(i), rule, at * r.truths[i], random, sum.at(k));
        }
    });
    return fractions_of(all, 0, 3, " (%.1f)");
}

// ---- lengths that vary: the capacity of the workload, not of a trace

/// Requests a second that the engine completes of these lengths.
double most_of_varied(double spread) {
    constexpr std::size_t n = 20000;
    planned_traffic t = varied(1, spread, 77, n);
    t.arrivals = all_at_once().data();
    t.warmup_requests = 0;
    vector<double> ends;
    for (const record& r : simulated_run(t, machine(1, 1)).records)
        ends.push_back(static_cast<double>(r.end_ns) * 1e-9);
    std::sort(ends.begin(), ends.end());
    return 0.8 * n / (ends[n * 9 / 10] - ends[n / 10]);
}
/// A capacity by its limit: what the engine shows there over several long traces.
struct varied_server {
    double capacity = 0;
    subject on{};
};
varied_server varied_server_of(double spread) {
    varied_server v{0.85 * most_of_varied(spread), {}};
    slo limit;
    limit.statistic = p90(ttft).data;
    constexpr int traces = 4;
    double sum = 0;
    for (int i = 0; i < traces; ++i) {
        const auto trace = static_cast<std::uint64_t>(900 + i);
        const repeat_data d = simulated_run(varied(v.capacity, spread, trace, 30000), machine(1, 1));
        sum += std::log(evaluate(limit.statistic, d));
    }
    limit.bound = std::exp(sum / traces);
    v.on.slos = {limit};
    v.on.noise = 0.01;
    v.on.spread = spread;
    return v;
}
/// The gate of one objective at loads around the capacity. Each trial has a trace of its own.
void varied_row(study_run& o, double spread, long long asked) {
    varied_server v = varied_server_of(spread);
    const judging_rule rule = rule_of_a_load({}, v.on.slos);
    columns all_loads;
    long long requests = 0;
    for (const double at : {0.9, 0.95, 1.0, 1.05, 1.1, 1.2}) {
        const tally all = over_trials<tally>(o.trials, [&](tally& to, std::uint64_t i) {
            generator random = random_of_part(o, i, 300);
            planned_traffic t = varied_probe(at * v.capacity, spread, random.next(), requests_of_a_probe);
            t.requests = asked > 0 ? asked : std::max(t.requests, requests_for_work(t));
            if (i == 0) requests = t.requests;
            measurements e;
            e.arrival_cv2 = 1;
            load_result shown;
            while (shown.is == carried::open && shown.requests == 0 &&
                   static_cast<int>(e.candidate.size()) < last_analysis) {
                const double wandered = std::exp(v.on.noise * random.normal());
                e.candidate.push_back(simulated_run(t, machine(wandered, random.next())));
                shown = result_at(e, parameters_of(v.on, rule));
            }
            to.add(verdict_of(shown.is), static_cast<long long>(e.candidate.size()));
        });
        all_loads.push_back(printed("%s (%.1f)", fractions(all).c_str(), all.repeats_taken()));
        if (at == 1.2 && asked == 0) o.must.at_most("varied lengths, 20 % over", all.passed(), 0.05);
        if (at == 0.9 && asked == 0) o.must.at_most("varied lengths, 10 % under", all.failed(), 0.05);
    }
    print_row(printed("%g, probes of %lld requests", spread, requests), all_loads);
}

void varied_part(study_run& o) {
    o.table("spread of lengths", {"0.9", "0.95", "1", "1.05", "1.1", "1.2"}, "");
    for (const double spread : {0.0, 0.6, 1.0})
        for (const long long asked : {0, 200})
            if (o.is_next_ours()) varied_row(o, spread, asked);
}

/// The search, against the capacity of the workload. `asked`: requests of a probe, at least; 0: until the mean of
/// the lengths is known as in a gate.
void workload_row(study_run& o, double spread, long long asked, bool has_fresh_traces) {
    varied_server v = varied_server_of(spread);
    v.on.requests = asked > 0 ? asked : requests_for_work(varied(1, spread, 1, 1));
    v.on.has_fresh_traces = has_fresh_traces;
    const judging_rule rule = rule_of_a_load(options_of_an_end(), v.on.slos);
    const long long requests = varied_probe(v.capacity, spread, 1, v.on.requests).requests;
    const double luck = luck_of_traces(1, std::expm1(spread * spread), static_cast<double>(requests));
    const searches all = over_trials<searches>(o.trials, [&](searches& sum, std::uint64_t i) {
        generator random = random_of_part(o, i, 400);
        subject on = v.on;
        on.trace = random.next();
        const double start = v.capacity * std::exp((2 * random.uniform() - 1) * std::log(2.0));
        searched s = search(on, rule, start, random);
        sum.of[0].add(s, v.capacity);
        s.low /= 1 + luck;
        s.high *= 1 + luck;
        sum.of[1].add(s, v.capacity);
    });
    const search_totals& widened = all.of[1];
    print_row(printed("%g, %lld requests%s", spread, requests, has_fresh_traces ? ", a trace each" : ""), all.of[0].row());
    print_row(printed("  with %.0f %% more or less", 100 * luck), widened.row());
    o.must.at_most(printed("spread %g, low end wrong", spread), widened.share(widened.low_wrong), 0.025);
    o.must.at_most(printed("spread %g, high end wrong", spread), widened.share(widened.high_wrong), 0.025);
}
void workload_part(study_run& o) {
    o.table("spread of lengths", heads_of_searches(), "");
    for (const double spread : {0.0, 0.6, 1.0}) {
        for (const bool has_fresh_traces : {false, true})
            if (o.is_next_ours()) workload_row(o, spread, requests_of_a_probe, has_fresh_traces);
        if (spread > 0 && o.is_next_ours()) workload_row(o, spread, 0, false);
    }
}

/// The rows of the search and of the gate, made once.
const vector<row>& rows(const study_run& o) {
    static const vector<row> made = rows_of(o);
    return made;
}
void search_part(study_run& o) {
    o.must = bounds(2 * o.trials);
    o.table("the search", heads_of_searches());
    for (const row& r : rows(o))
        if (o.is_next_ours()) search_rows(o, r);
}
void gate_part(study_run& o) {
    if (o.quick) return;
    o.table("c over the true capacity", {"0.95", "1", "1.05"},
            "\n`capacity >= c` alone: pass/fail/inconclusive in % (runs)\n\n");
    for (const row& r : rows(o)) o.row(r.name, [&] { return gate_row(o, r); });
}
void begin(study_run& o) {
    std::printf("The engine completes %.2f requests/s at most. %lld trials a row.\n", measured_capacity(1), o.trials);
}
const registered capacities({"capacity",
                             200,
                             10,
                             {{"search", search_part}, {"gate", gate_part}, {"varied", varied_part, true}, {"workload", workload_part, true}},
                             begin});

}  // namespace
