// How often verdicts on failed requests are wrong: the guard on errors, a stated error rate, and
// percentiles that failures reach. Made-up repeats of 300 requests whose truth is known, judged as
// a gate does it: after each repeat from the second to the fifth, until everything is decided.
//   count_error_rates [--quick] [--trials N] [--seed N] [--only guard|stated|p99]
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

constexpr int requests_a_repeat = 300;
using failures = std::vector<bool>;  // of one repeat, in order

// ---- servers that fail --------------------------------------------------------------------------

failures independent(double fraction, generator& random) {
    failures f(requests_a_repeat);
    for (std::size_t i = 0; i < f.size(); ++i) f[i] = random.uniform() < fraction;
    return f;
}
/// So many in a row, somewhere.
failures in_a_row(double fraction, generator& random) {
    failures f(requests_a_repeat);
    const auto length = static_cast<std::size_t>(std::llround(fraction * requests_a_repeat));
    const auto from = static_cast<std::size_t>(
        random.uniform() * static_cast<double>(requests_a_repeat - length + 1));
    std::fill_n(f.begin() + static_cast<long>(from), length, true);
    return f;
}
/// A server that begins to fail at any request and then fails so many in a row; this share in the
/// long run. What the row before the repeat's first request has left reaches into it.
failures in_bursts(double fraction, int length, generator& random) {
    failures f(requests_a_repeat);
    const double begins = fraction / (length * (1 - fraction));
    int left = random.uniform() < fraction ? 1 + static_cast<int>(random.uniform() * length) : 0;
    for (std::size_t i = 0; i < f.size(); ++i) {
        if (left == 0 && random.uniform() < begins) left = length;
        f[i] = left > 0;
        left -= left > 0;
    }
    return f;
}

/// The failures of repeat number `index` (from 0).
using server = std::function<failures(int index, generator& random)>;

repeat_data repeat_of(const failures& f, double slow_fraction, double noise, generator& random) {
    repeat_data d;
    d.records.resize(f.size());
    const double slowness = std::exp(noise * random.normal());
    for (std::size_t i = 0; i < f.size(); ++i) {
        record& r = d.records[i];
        r.scheduled_ns = r.dispatched_ns = r.sent_ns = 1'000'000'000 * (static_cast<long long>(i) + 1);
        r.status = f[i] ? request_status::http : request_status::ok;
        if (f[i]) continue;
        // Exponential latencies; a share `slow_fraction` of them is over 1 s at slowness 1.
        const double latency =
            slow_fraction > 0 ? slowness * random.exponential() / -std::log(slow_fraction) : 0.1;
        r.first_token_ns = r.scheduled_ns + std::llround(latency * 1e9);
        r.last_token_ns = r.end_ns = r.first_token_ns + 100'000'000;
        r.output_tokens = 11;
        r.events = 11;
        r.first_event_tokens = 1;
    }
    d.gap_offsets.assign(f.size(), not_listed);
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

/// Judges one objective as a gate that has no other one: until it is decided.
void add_gate(tally& t, const judging_parameters& judged_by, const slo& s, bool is_guard,
              const std::function<repeat_data(int)>& measured) {
    measurements e;
    decision v;
    while (static_cast<int>(e.candidate.size()) < last_analysis) {
        e.candidate.push_back(measured(static_cast<int>(e.candidate.size())));
        if (static_cast<int>(e.candidate.size()) < first_analysis) continue;
        v = judged(e, judged_by, validity_checks{}, {}, s, is_guard);
        if (v.outcome != verdict::inconclusive) break;
    }
    t.add(v.outcome, e.candidate.size());
}

struct options {
    bool quick = false;
    long long trials = 20000;
    std::uint64_t seed = 1;
    std::string only{};
};

tally judged_often(const options& o, const slo& s, bool is_guard, const server& fails,
                   double slow_fraction = 0, double noise = 0) {
    tally sums[2];
    const auto half = [&](std::size_t which) {
        for (auto trial = static_cast<long long>(which); trial < o.trials; trial += 2) {
            generator random(mixed(o.seed ^ mixed(static_cast<std::uint64_t>(trial))));
            add_gate(sums[which], judging_parameters{}, s, is_guard, [&](int i) {
                return repeat_of(fails(i, random), slow_fraction, noise, random);
            });
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
    return printed("%.*f", fraction > 0.0995 ? 0 : fraction > 0.00995 || fraction == 0 ? 1 : 2, fraction * 100);
}
std::string fractions(const tally& t) {
    return percent(t.fraction(t.pass)) + "/" + percent(t.fraction(t.fail)) + "/" +
           percent(t.fraction(t.undecided));
}
void print_row(const std::string& name, const std::vector<std::string>& columns) {
    std::printf("| %-36s |", name.c_str());
    for (const std::string& c : columns) std::printf(" %-14s |", c.c_str());
    std::printf("\n");
    std::fflush(stdout);
}

/// What a rate must be; the program says where it is not.
class bounds {
public:
    explicit bounds(bool quick) : slack_(quick ? 0.03 : 0) {}
    void at_most(const char* what, double fraction, double bound) {
        if (fraction <= bound + slack_) return;
        std::printf("NOT MET: %s: %.3f %%, at most %.3g %%\n", what, fraction * 100, bound * 100);
        met_ = false;
    }
    bool met() const { return met_; }

private:
    double slack_;
    bool met_ = true;
};

struct named_server {
    std::string name;
    std::function<server(double fraction)> of;
    bool recurs = true;  // the share is what the server fails in the long run
};
std::vector<named_server> servers() {
    std::vector<named_server> all = {
        {"independent",
         [](double fraction) {
             return [=](int, generator& g) { return independent(fraction, g); };
         }},
        {"one row, in the first repeat",
         [](double fraction) {
             return [=](int i, generator& g) { return in_a_row(i == 0 ? fraction : 0, g); };
         },
         false},
        {"one row in each repeat",
         [](double fraction) {
             return [=](int, generator& g) { return in_a_row(fraction, g); };
         }}};
    for (const int length : {5, 10, 20, 30, 60})
        all.push_back({printed("bursts of %d, at any time", length), [=](double fraction) {
                           return [=](int, generator& g) { return in_bursts(fraction, length, g); };
                       }});
    return all;
}

void errors_part(const options& o, bool is_guard, bounds& must) {
    const slo s = error_rate <= 1_pct;
    std::printf("\n### %s\n\n", is_guard ? "The guard, `error_rate <= 1 %`, written by nobody"
                                         : "`error_rate <= 1_pct`, stated");
    print_row("errors", {"0 %", "0.5 %", "1 %", "2 %", "5 %", "repeats"});
    print_row("---", std::vector<std::string>(6, "---"));
    for (const named_server& n : servers()) {
        std::vector<std::string> columns;
        std::string repeats;
        for (const double fraction : {0.0, 0.005, 0.01, 0.02, 0.05}) {
            const tally t = judged_often(o, s, is_guard, n.of(fraction));
            columns.push_back(fractions(t));
            repeats += printed(repeats.empty() ? "%.1f" : "/%.1f",
                               static_cast<double>(t.repeats) / t.trials());
            if (n.recurs && fraction <= 0.01)
                must.at_most((n.name + ", false fails").c_str(), t.fraction(t.fail), 0.01);
            if (fraction == 0.05 && n.name.find("at any time") == std::string::npos)
                must.at_most((n.name + ", 5 % passes").c_str(), t.fraction(t.pass), 0.01);
        }
        columns.push_back(repeats);
        print_row(n.name, columns);
    }
}

/// p99(ttft) <= 1 s over exponential latencies of a machine with 3 % noise; of those that complete
/// a share `slow` is over 1 s.
void p99_part(const options& o, bounds& must) {
    const slo s = p99(ttft) <= 1_s;
    std::printf("\n### `p99(ttft) <= 1_s` with failed requests, 3 %% run noise\n\n");
    print_row("failed", {"0.5 %", "0.9 %", "1 %", "1.5 %", "3 %", "repeats"});
    print_row("---", std::vector<std::string>(6, "---"));
    for (const double slow : {0.0, 0.001, 0.005})
        for (const named_server& n : servers()) {
            if (n.name.find("row") != std::string::npos || n.name.find("60") != std::string::npos)
                continue;
            std::vector<std::string> columns;
            std::string repeats;
            for (const double fraction : {0.005, 0.009, 0.01, 0.015, 0.03}) {
                const tally t = judged_often(o, s, false, n.of(fraction), slow, slow > 0 ? 0.03 : 0);
                columns.push_back(fractions(t));
                repeats += printed(repeats.empty() ? "%.1f" : "/%.1f",
                                   static_cast<double>(t.repeats) / t.trials());
                if (fraction + slow <= 0.0101)
                    must.at_most((n.name + ", p99").c_str(), t.fraction(t.fail), 0.01);
            }
            columns.push_back(repeats);
            print_row(printed("%s, %g %% slow", n.name.c_str(), slow * 100), columns);
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
            std::fprintf(stderr, "count_error_rates: there are --quick, --trials N, --seed N and "
                                 "--only guard, stated or p99\n");
            return 2;
        }
    }
    if (o.quick) o.trials = std::min(o.trials, 100ll);
    std::printf("300 requests a repeat, two to five repeats; pass/fail/inconclusive in %%, %lld "
                "trials: the\nstandard error is %.2f at 1 %%.\n",
                o.trials, 100 * std::sqrt(0.01 * 0.99 / static_cast<double>(o.trials)));
    bounds must(o.quick);
    const auto asked = [&](const char* part) { return o.only.empty() || o.only == part; };
    if (asked("guard")) errors_part(o, true, must);
    if (asked("stated")) errors_part(o, false, must);
    if (asked("p99")) p99_part(o, must);
    return must.met() ? 0 : 1;
}
