// How often verdicts on the parts of a mix are wrong: the guard on errors, which speaks of all
// requests and can fail on any label by itself, and objectives that hold one label's latency against
// a multiple of another's. Made-up repeats of 300 requests whose truth is known, judged as a gate
// does it: after each repeat from the second to the fifth, and the eighth where the repeats spread.
//   label_error_rates [--quick] [--trials N] [--seed N] [--only guard|ratios]
// Quick: fewer trials, held against wide bounds, exit code 1 where one is violated.
#define LLMBENCH_NO_DOCTEST
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/judging/judge.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

constexpr std::size_t requests_a_repeat = 300;

/// Weights of the parts; of each block of as many starts as they add up to, each has its own.
using mix_of = std::vector<std::size_t>;
std::vector<unsigned char> parts_of(const mix_of& weights, std::uint64_t seed) {
    std::size_t all = 0;
    for (const std::size_t w : weights) all += w;
    std::vector<unsigned char> parts(requests_a_repeat);
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
using made_up_requests = std::vector<synthetic_request>;

repeat_data repeat_of(const made_up_requests& made, const mix_of& weights,
                      const std::vector<unsigned char>& parts) {
    repeat_data d;
    for (std::size_t i = 0; i < weights.size(); ++i) d.labels.push_back("part" + std::to_string(i));
    d.records.resize(made.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
        record& r = d.records[i];
        r.part = parts[i];
        r.scheduled_ns = r.dispatched_ns = r.sent_ns =
            1'000'000'000 * (static_cast<long long>(i) + 1);
        r.status = made[i].fails ? request_status::http : request_status::ok;
        if (made[i].fails) continue;
        r.first_token_ns = r.scheduled_ns + std::llround(made[i].ttft_s * 1e9);
        r.last_token_ns = r.end_ns = r.first_token_ns + 100'000'000;
        r.output_tokens = 11;
        r.events = 11;
        r.first_event_tokens = 1;
    }
    d.gap_offsets.assign(made.size(), not_listed);
    return d;
}

// ---- gates --------------------------------------------------------------------------------------

struct tally {
    long long pass = 0, fail = 0, undecided = 0, repeats = 0;
    void add(verdict v, std::size_t taken) {
        ++(v == verdict::pass ? pass : v == verdict::fail ? fail : undecided);
        repeats += static_cast<long long>(taken);
    }
    void operator+=(const tally& o) {
        pass += o.pass; fail += o.fail; undecided += o.undecided; repeats += o.repeats;
    }
    double trials() const { return static_cast<double>(pass + fail + undecided); }
    double fraction(long long n) const { return static_cast<double>(n) / trials(); }
};

struct options {
    bool quick = false;
    long long trials = 1000;
    std::uint64_t seed = 1;
    std::string only{};
};

/// Judges an evidence that grows, until it is decided.
using rule_of_gate = std::function<decision(const measurements&, const judging_parameters&)>;
tally judged_often(const options& o, const mix_of& weights, bool may_go_on,
                   const rule_of_gate& verdict_on,
                   const std::function<made_up_requests(generator&)>& measured) {
    tally sums[2];
    judging_parameters by;
    by.rule = rule_of({}, first_analysis, last_analysis, may_go_on);
    const std::vector<unsigned char> parts = parts_of(weights, 1);
    const auto gate = [&](tally& t, generator& random) {
        measurements e;
        decision v;
        const auto measure = [&] { 
            e.candidate.push_back(repeat_of(measured(random), weights, parts));
        };
        while (static_cast<int>(e.candidate.size()) < last_analysis) {
            measure();
            if (static_cast<int>(e.candidate.size()) < first_analysis) continue;
            v = verdict_on(e, by);
            if (v.outcome != verdict::inconclusive) break;
        }
        if (may_go_on && v.outcome == verdict::inconclusive && asks_for_more(e, by, v)) {
            while (static_cast<int>(e.candidate.size()) < last_noisy_analysis) measure();
            v = verdict_on(e, by);
        }
        t.add(v.outcome, e.candidate.size());
    };
    const auto half = [&](std::size_t which) {
        for (auto trial = static_cast<long long>(which); trial < o.trials; trial += 2) {
            generator random(mixed(o.seed ^ mixed(static_cast<std::uint64_t>(trial))));
            gate(sums[which], random);
        }
    };
    std::thread other(half, 1);
    half(0);
    other.join();
    sums[0] += sums[1];
    return sums[0];
}

// ---- tables -------------------------------------------------------------------------------------

std::string percent(double fraction) {
    return printed("%.*f", fraction > 0.0995 ? 0 : fraction > 0.00995 || fraction == 0 ? 1 : 2,
                   fraction * 100);
}
std::string fractions(const tally& t) {
    return percent(t.fraction(t.pass)) + "/" + percent(t.fraction(t.fail)) + "/" +
           percent(t.fraction(t.undecided));
}
void print_row(const std::string& name, const std::vector<std::string>& columns) {
    std::printf("| %-44s |", name.c_str());
    for (const std::string& c : columns) std::printf(" %-14s |", c.c_str());
    std::printf("\n");
    std::fflush(stdout);
}
void print_head(const std::string& name, const std::vector<std::string>& columns) {
    print_row(name, columns);
    print_row("---", std::vector<std::string>(columns.size(), "---"));
}

/// What a rate must be; the program says where it is not.
class bounds {
public:
    explicit bounds(long long trials) : trials_(static_cast<double>(trials)) {}
    void at_most(const std::string& what, double fraction, double bound) {
        if (fraction <= bound + slack(bound)) return;
        std::printf("NOT MET: %s: %.3f %%, at most %.3g %%\n", what.c_str(), fraction * 100,
                    bound * 100);
        met_ = false;
    }
    void at_least(const std::string& what, double fraction, double bound) {
        if (fraction >= bound - slack(bound)) return;
        std::printf("NOT MET: %s: %.3f %%, at least %.3g %%\n", what.c_str(), fraction * 100,
                    bound * 100);
        met_ = false;
    }
    bool met() const { return met_; }

private:
    /// Three standard errors of so many trials.
    double slack(double bound) const { return 3 * std::sqrt(bound * (1 - bound) / trials_); }

    double trials_;
    bool met_ = true;
};

struct named_mix {
    std::string name;
    mix_of weights;
};

// ---- the guard ----------------------------------------------------------------------------------

/// Requests of some parts fail with this probability; others do not.
made_up_requests failing(const std::vector<unsigned char>& parts, double fraction,
                         const std::vector<unsigned char>& which, std::size_t burst,
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

void guard_part(const options& o, bounds& must) {
    const std::vector<named_mix> mixes = {{"one part", {1}},
                                          {"2 parts, 1 : 1", {1, 1}},
                                          {"3 parts, 6 : 3 : 1", {6, 3, 1}},
                                          {"10 parts of 10 %", mix_of(10, 1)}};
    const rule_of_gate guard = [](const measurements& e, const judging_parameters& t) {
        return judged_guard(e, t, validity_checks{}, {});
    };
    const auto rates = [&](const named_mix& m, const std::vector<double>& fractions_that_fail,
                           const std::vector<unsigned char>& which, std::size_t burst,
                           bool is_of_all) {
        const std::vector<unsigned char> parts = parts_of(m.weights, 1);
        std::vector<std::string> columns;
        for (const double f : fractions_that_fail) {
            const tally t = judged_often(o, m.weights, false, guard, [&](generator& g) {
                return failing(parts, f, which, burst, g);
            });
            columns.push_back(fractions(t));
            // All requests and one of the labels are two chances, of 1 % each.
            if (is_of_all && f <= 0.01)
                must.at_most(m.name + ", false fails", t.fraction(t.fail), 0.02);
            if (!is_of_all && f >= 0.3)
                must.at_least(m.name + ", one label of 30 % errors", t.fraction(t.fail), 0.9);
        }
        return columns;
    };
    std::printf("\n### The guard, where all parts fail alike\n\n");
    print_head("errors of each", {"0.5 %", "1 %", "3 %"});
    for (const named_mix& m : mixes)
        print_row(m.name, rates(m, {0.005, 0.01, 0.03}, {}, 1, true));
    for (const named_mix& m : mixes)
        print_row(m.name + ", bursts of 10", rates(m, {0.005, 0.01, 0.03}, {}, 10, true));
    std::printf("\n### The guard, where only the last part fails\n\n");
    print_head("errors of that part", {"1 %", "5 %", "10 %", "30 %"});
    for (const named_mix& m : mixes) {
        if (m.weights.size() == 1) continue;
        const auto last = static_cast<unsigned char>(m.weights.size() - 1);
        print_row(m.name, rates(m, {0.01, 0.05, 0.1, 0.3}, {last}, 1, false));
    }
}

// ---- ratios -------------------------------------------------------------------------------------

/// Lognormal times of sigma 0.5, of which each repeat has its own level, and each part another one.
struct machine {
    double common = 0.02;  // sd of the logarithm of a repeat's level, which all parts have
    double own = 0.02;     // and of each part's
};
made_up_requests timed(const std::vector<unsigned char>& parts, double ratio, const machine& m,
                       generator& random) {
    made_up_requests made(parts.size());
    const double level = m.common * random.normal();
    const double of_part[] = {level + m.own * random.normal(), level + m.own * random.normal()};
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::size_t which = std::min<std::size_t>(parts[i], 1);
        made[i].ttft_s = 0.2 * (which == 1 ? ratio : 1) *
                         std::exp(of_part[which] + 0.5 * random.normal());
    }
    return made;
}
void ratios_part(const options& o, bounds& must) {
    std::printf("\n### `x.of(\"part1\") <= 1.25 * x.of(\"part0\")`\n\n");
    const std::vector<double> truths = {0.8, 0.9, 1.0, 1.1, 1.25};
    print_head("the true ratio over the limit", {"0.8", "0.9", "1", "1.1", "1.25", "repeats"});
    const named_mix mixes[] = {{"1 : 1", {1, 1}}, {"9 : 1", {9, 1}}};
    const auto statistics = {p50(ttft), p90(ttft)};
    for (const machine& m : {machine{0.02, 0.02}, machine{0.15, 0.02}, machine{0.02, 0.08}})
        for (const named_mix& mix : mixes)
            for (const auto& x : statistics) {
                const slo s = x.of("part1") <= 1.25 * x.of("part0");
                const rule_of_gate by = [&](const measurements& e, const judging_parameters& t) {
                    return judged(e, t, validity_checks{}, {}, s);
                };
                const std::vector<unsigned char> parts = parts_of(mix.weights, 1);
                const std::string name =
                    printed("%s, %s, level %.0f %%, of each %.0f %%", str(x.data.name).c_str(),
                            mix.name.c_str(), m.common * 100, m.own * 100);
                std::vector<std::string> columns;
                double repeats = 0;
                for (const double truth : truths) {
                    const tally t = judged_often(o, mix.weights, true, by, [&](generator& g) {
                        return timed(parts, 1.25 * truth, m, g);
                    });
                    columns.push_back(fractions(t));
                    repeats += static_cast<double>(t.repeats) / t.trials() / 5;
                    if (truth == 1) {
                        // A p90 of 30 requests is the 27th, which is low: that bends a ratio.
                        const bool is_small = x.data.q > 0.5 && mix.weights[0] == 9;
                        must.at_most(name + ", false passes", t.fraction(t.pass),
                                     is_small ? 0.15 : 0.065);
                        must.at_most(name + ", false fails", t.fraction(t.fail), 0.02);
                    }
                }
                columns.push_back(printed("%.1f", repeats));
                print_row(name, columns);
            }
}

}  // namespace

int main(int argc, char** argv) {
    options o;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--quick") o.quick = true;
        else if (name == "--trials" && i + 1 < argc) o.trials = std::atoll(argv[++i]);
        else if (name == "--seed" && i + 1 < argc) o.seed = std::strtoull(argv[++i], nullptr, 10);
        else if (name == "--only" && i + 1 < argc) o.only = argv[++i];
        else {
            std::fprintf(stderr, "label_error_rates: there are --quick, --trials N, --seed N and "
                                 "--only guard or ratios\n");
            return 2;
        }
    }
    if (o.quick) o.trials = std::min(o.trials, 60ll);
    std::printf("300 requests a repeat; pass/fail/inconclusive in %%, %lld trials: the standard "
                "error is %.2f at 1 %%.\n",
                o.trials, 100 * std::sqrt(0.01 * 0.99 / static_cast<double>(o.trials)));
    bounds must(o.trials);
    if (o.only.empty() || o.only == "guard") guard_part(o, must);
    if (o.only.empty() || o.only == "ratios") ratios_part(o, must);
    return must.met() ? 0 : 1;
}
