// How often verdicts on failed requests are wrong: the guard on errors, a stated error rate, and
// percentiles that failures reach. Made-up repeats of 300 requests whose truth is known, judged as
// a gate does it: after each repeat from the second to the fifth, until everything is decided.
#include "core/judging/judge.hpp"

#include "rates.hpp"

#include <functional>

using namespace llmbench;
using namespace rates;

namespace {

constexpr int requests_a_repeat = 300;
using failures = vector<bool>;  // of one repeat, in order

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
    const auto from = static_cast<std::size_t>(random.uniform() *
                                               static_cast<double>(requests_a_repeat - length + 1));
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
        // Exponential latencies; a share `slow_fraction` of them is over 1 s at slowness 1.
        const double latency = f[i] || slow_fraction == 0
                                   ? 0.1
                                   : slowness * random.exponential() / -std::log(slow_fraction);
        set_times(d.records[i], i, f[i], latency);
    }
    d.gap_offsets.assign(f.size(), not_listed);
    return d;
}

/// Gates with one objective.
tally judged_often(const study_run& by, const slo& s, bool is_guard, const server& fails,
                   double slow_fraction = 0, double noise = 0) {
    return over_trials<tally>(by.trials, [&](tally& sum, std::uint64_t trial) {
        generator random = by.random(trial);
        measurements e;
        const decision v = judged_in_turn(
            first_analysis, last_analysis,
            [&] {
                e.candidate.push_back(repeat_of(fails(static_cast<int>(e.candidate.size()), random),
                                                slow_fraction, noise, random));
            },
            [&] { return decision_without_client(e, judging_parameters{}, validity_checks{}, s,
                                                is_guard ? sought::guards_first : sought::first); });
        sum.add(v.outcome, static_cast<long long>(e.candidate.size()));
    });
}

struct named_server {
    std::string name;
    std::function<server(double fraction)> of;
    bool recurs = true;  // the share is what the server fails in the long run
};
vector<named_server> servers() {
    vector<named_server> all = {
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
         [](double fraction) { return [=](int, generator& g) { return in_a_row(fraction, g); }; }}};
    for (const int length : {5, 10, 20, 30, 60})
        all.push_back({printed("bursts of %d, at any time", length), [=](double fraction) {
                           return [=](int, generator& g) { return in_bursts(fraction, length, g); };
                       }});
    return all;
}

/// A row of columns, one for each share of failed requests, and the repeats of each: rates(share).
template <class Rates>
void row_of(study_run& by, const std::string& name, const vector<double>& shares, Rates&& rates) {
    by.row(name, [&] {
        columns all;
        std::string repeats;
        for (const double share : shares) {
            const tally t = rates(share);
            all.push_back(fractions(t));
            repeats += printed(repeats.empty() ? "%.1f" : "/%.1f", t.repeats_taken());
        }
        all.push_back(repeats);
        return all;
    });
}

void errors_part(study_run& by, bool is_guard) {
    const slo s = error_rate <= (is_guard ? 1_pct : 0.9_pct);
    // Quick: only what has a bound.
    const vector<double> shares = by.quick ? vector{s.bound, 0.05} : vector{0.0, 0.005, s.bound, 0.02, 0.05};
    by.table("errors", percents(shares, "repeats"),
             printed("\n### %s\n\n", is_guard ? "The guard, `error_rate <= 1 %`, written by nobody"
                                               : "`error_rate <= 0.9_pct`, stated"));
    for (const named_server& n : servers())
        row_of(by, n.name, shares, [&](double fraction) {
            const tally t = judged_often(by, s, is_guard, n.of(fraction));
            // One burst of 60 is a tenth of two repeats, ten times the limit: no green, and no fail.
            if (n.name.find("60") == std::string::npos) by.must.valid(n.name, t);
            if (n.recurs && fraction <= s.bound) by.must.at_most(n.name + ", false fails", t.failed(), 0.01);
            if (fraction == 0.05 && n.name.find("at any time") == std::string::npos)
                by.must.at_most(n.name + ", 5 % passes", t.passed(), 0.01);
            if (fraction == 0.05 && n.name == "independent")
                by.must.at_least(n.name + ", 5 % fails", t.failed(), 0.95);
            return t;
        });
}
void guard_part(study_run& by) { errors_part(by, true); }
void stated_part(study_run& by) { errors_part(by, false); }

/// p99(ttft) <= 1 s over exponential latencies of a machine with 3 % noise; of those that complete
/// a share `slow` is over 1 s.
void p99_part(study_run& by) {
    const slo s = p99(ttft) <= 1_s;
    const vector<double> shares =
        by.quick ? vector{0.005, 0.01} : vector{0.005, 0.009, 0.01, 0.015, 0.03};
    by.table("failed", percents(shares, "repeats"),
             "\n### `p99(ttft) <= 1_s` with failed requests, 3 % run noise\n\n");
    for (const double slow : {0.0, 0.001, 0.005})
        for (const named_server& n : servers()) {
            if (n.name.find("row") != std::string::npos || n.name.find("60") != std::string::npos) continue;
            row_of(by, printed("%s, %g %% slow", n.name.c_str(), slow * 100), shares, [&](double fraction) {
                const tally t = judged_often(by, s, false, n.of(fraction), slow, slow > 0 ? 0.03 : 0);
                by.must.valid(n.name + ", p99", t);
                if (fraction + slow <= 0.0101) by.must.at_most(n.name + ", p99", t.failed(), 0.01);
                return t;
            });
        }
}

void begin(study_run& by) {
    std::printf("300 requests a repeat, two to five repeats; pass/fail/inconclusive in %%, %lld "
                "trials: the\nstandard error is %.2f at 1 %%.\n",
                by.trials, by.error_at_1());
    if (!by.quick) by.must = bounds(0);
}
const registered counts(
    {"count", 20000, 60, {{"guard", guard_part}, {"stated", stated_part}, {"p99", p99_part}}, begin});

}  // namespace
