// How often verdicts on the parts of a mix are wrong: the guard on errors, which speaks of all
// requests and can fail on any label by itself, and objectives that hold one label's latency against
// a multiple of another's. Made-up repeats of 300 requests whose truth is known, judged as a gate
// does it: after each repeat from the second to the fifth, and the eighth where the repeats spread.
#include "core/judging/judge.hpp"

#include "rates.hpp"

#include <functional>

using namespace llmbench;
using namespace rates;

namespace {

constexpr std::size_t requests_a_repeat = 300;

/// Weights of the parts; of each block of as many starts as they add up to, each has its own.
using mix_of = vector<std::size_t>;
vector<unsigned char> parts_of(const mix_of& weights, std::uint64_t seed) {
    std::size_t all = 0;
    for (const std::size_t w : weights) all += w;
    vector<unsigned char> parts(requests_a_repeat);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        std::size_t rank = shuffled(mixed(seed) + i / all, i % all, all), which = 0;
        for (; rank >= weights[which]; ++which) rank -= weights[which];
        parts[i] = static_cast<unsigned char>(which);
    }
    return parts;
}

/// Whether a request fails, and how long its first token takes.
struct synthetic_request {
    bool fails = false;
    double ttft_s = 0.1;
};
using made_up_requests = vector<synthetic_request>;

repeat_data repeat_of(const made_up_requests& made, const mix_of& weights,
                      const vector<unsigned char>& parts) {
    repeat_data d;
    for (std::size_t i = 0; i < weights.size(); ++i) d.labels.push_back("part" + std::to_string(i));
    d.records.resize(made.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
        d.records[i].part = parts[i];
        set_times(d.records[i], i, made[i].fails, made[i].ttft_s);
    }
    d.gap_offsets.assign(made.size(), not_listed);
    return d;
}

/// Gates whose objective `verdict_on` judges.
using rule_of_gate = std::function<decision(const measurements&, const judging_parameters&)>;
tally judged_often(const study_run& run, const mix_of& weights, bool may_go_on,
                   const rule_of_gate& verdict_on,
                   const std::function<made_up_requests(generator&)>& measured) {
    judging_parameters by;
    by.rule = rule_of({}, first_analysis, last_analysis, may_go_on);
    const vector<unsigned char> parts = parts_of(weights, 1);
    return over_trials<tally>(run.trials, [&](tally& sum, std::uint64_t trial) {
        generator random = run.random(trial);
        measurements e;
        const auto measure = [&] {
            e.candidate.push_back(repeat_of(measured(random), weights, parts));
        };
        decision v = judged_in_turn(first_analysis, last_analysis, measure,
                                    [&] { return verdict_on(e, by); });
        if (may_go_on && v.outcome == verdict::inconclusive && asks_for_more(e, by, v)) {
            while (static_cast<int>(e.candidate.size()) < last_noisy_analysis) measure();
            v = verdict_on(e, by);
        }
        sum.add(v.outcome, static_cast<long long>(e.candidate.size()));
    });
}

struct named_mix {
    std::string name;
    mix_of weights;
};

// ---- the guard ----------------------------------------------------------------------------------

/// Requests of some parts fail with this probability; others do not.
made_up_requests failing(const vector<unsigned char>& parts, double fraction,
                         const vector<unsigned char>& which, std::size_t burst,
                         generator& random) {
    made_up_requests made(parts.size());
    const auto fails = [&](std::size_t i) {
        return which.empty() || std::find(which.begin(), which.end(), parts[i]) != which.end();
    };
    const double begins =
        burst > 1 ? fraction / (static_cast<double>(burst) * (1 - fraction)) : fraction;
    std::size_t left = 0;
    if (burst > 1 && random.uniform() < fraction) left = 1 + random.below(burst);
    for (std::size_t i = 0; i < made.size(); ++i) {
        if (!fails(i)) continue;
        if (left == 0 && random.uniform() < begins) left = burst;
        made[i].fails = left > 0;
        left -= left > 0;
    }
    return made;
}

/// A row of the guard's verdicts where requests of these parts fail: a column for each share of them.
template <class Bound>
void row_of_guard(study_run& by, const std::string& name, const named_mix& m, const vector<double>& shares,
                  const vector<unsigned char>& which, std::size_t burst, Bound&& bound) {
    const vector<unsigned char> parts = parts_of(m.weights, 1);
    const rule_of_gate guard = [](const measurements& e, const judging_parameters& t) {
        return guard_decision(e, t, validity_checks{});
    };
    by.row(name, [&] {
        columns all;
        for (const double f : shares) {
            const tally t = judged_often(by, m.weights, false, guard, [&](generator& g) {
                return failing(parts, f, which, burst, g);
            });
            all.push_back(fractions(t));
            by.must.valid(m.name, t);
            bound(f, t);
        }
        return all;
    });
}

void guard_part(study_run& by) {
    const vector<named_mix> mixes = {{"one part", {1}},
                                     {"2 parts, 1 : 1", {1, 1}},
                                     {"3 parts, 6 : 3 : 1", {6, 3, 1}},
                                     {"10 parts of 10 %", mix_of(10, 1)}};
    // Quick: only what has a bound.
    const vector<double> all_alike = by.quick ? vector{0.005, 0.01} : vector{0.005, 0.01, 0.03};
    const vector<double> one_alone = by.quick ? vector{0.3} : vector{0.01, 0.05, 0.1, 0.3};

    by.table("errors of each", percents(all_alike), "\n### The guard, where all parts fail alike\n\n");
    for (const std::size_t burst : {1u, 10u})
        for (const named_mix& m : mixes)
            row_of_guard(by, m.name + (burst > 1 ? ", bursts of 10" : ""), m, all_alike, {}, burst,
                         [&](double f, const tally& t) {
                             // All requests and one of the labels are two chances, of 1 % each.
                             if (f <= 0.01) by.must.at_most(m.name + ", false fails", t.failed(), 0.02);
                         });

    by.table("errors of that part", percents(one_alone), "\n### The guard, where only the last part fails\n\n");
    for (const named_mix& m : mixes) {
        if (m.weights.size() == 1) continue;
        const auto last = static_cast<unsigned char>(m.weights.size() - 1);
        row_of_guard(by, m.name, m, one_alone, {last}, 1, [&](double f, const tally& t) {
            if (f >= 0.3) by.must.at_least(m.name + ", one label of 30 % errors", t.failed(), 0.9);
        });
    }
}

// ---- ratios -------------------------------------------------------------------------------------

/// Lognormal times of sigma 0.5, of which each repeat has its own level, and each part another one.
struct machine {
    double common = 0.02;  // sd of the logarithm of a repeat's level, which all parts have
    double own = 0.02;     // and of each part's
};
made_up_requests timed(const vector<unsigned char>& parts, double ratio, const machine& m,
                       generator& random) {
    made_up_requests made(parts.size());
    const double level = m.common * random.normal();
    const double of_part[] = {level + m.own * random.normal(), level + m.own * random.normal()};
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::size_t which = std::min<std::size_t>(parts[i], 1);
        made[i].ttft_s =
            0.2 * (which == 1 ? ratio : 1) * std::exp(of_part[which] + 0.5 * random.normal());
    }
    return made;
}
void ratios_part(study_run& run) {
    const vector<double> truths = run.quick ? vector{1.0} : vector{0.8, 0.9, 1.0, 1.1, 1.25};
    columns heads;
    for (const double truth : truths) heads.push_back(printed("%g", truth));
    heads.push_back("repeats");
    run.table("the true ratio over the limit", heads, "\n### `x.of(\"part1\") <= 1.25 * x.of(\"part0\")`\n\n");

    const named_mix mixes[] = {{"1 : 1", {1, 1}}, {"9 : 1", {9, 1}}};
    const auto statistics = {p50(ttft), p90(ttft)};
    for (const machine& m : {machine{0.02, 0.02}, machine{0.15, 0.02}, machine{0.02, 0.08}})
        for (const named_mix& mix : mixes)
            for (const auto& x : statistics) {
                const slo s = x.of("part1") <= 1.25 * x.of("part0");
                const rule_of_gate by = [&](const measurements& e, const judging_parameters& t) {
                    return decision_without_client(e, t, validity_checks{}, s);
                };
                const vector<unsigned char> parts = parts_of(mix.weights, 1);
                // A p90 of 30 requests is the 27th, which is low: that bends a ratio.
                const bool is_small = x.data.q > 0.5 && mix.weights[0] == 9;
                const std::string name = printed("%s, %s, level %.0f %%, of each %.0f %%", str(x.data.name).c_str(),
                                                 mix.name.c_str(), m.common * 100, m.own * 100);
                run.row(name, [&] {
                    columns all;
                    double repeats = 0;
                    for (const double truth : truths) {
                        const tally t = judged_often(run, mix.weights, true, by, [&](generator& g) {
                            return timed(parts, 1.25 * truth, m, g);
                        });
                        all.push_back(fractions(t));
                        run.must.valid(name, t);
                        repeats += t.repeats_taken() / static_cast<double>(truths.size());
                        if (truth != 1) continue;
                        run.must.at_most(name + ", false passes", t.passed(), is_small ? 0.15 : 0.065);
                        run.must.at_most(name + ", false fails", t.failed(), 0.02);
                    }
                    all.push_back(printed("%.1f", repeats));
                    return all;
                });
            }
}

void begin(study_run& by) {
    std::printf("300 requests a repeat; pass/fail/inconclusive in %%, %lld trials: the standard "
                "error is %.2f at 1 %%.\n",
                by.trials, by.error_at_1());
}
const registered labels({"label", 1000, 30, {{"guard", guard_part}, {"ratios", ratios_part}}, begin});

}  // namespace
