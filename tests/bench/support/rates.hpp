// What the studies of error rates share: options, trials on two threads, counts of verdicts, tables
// in Markdown, and bounds that a rate must keep. error_rates.cpp runs them.
#pragma once

#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

namespace rates {

using namespace llmbench::detail;
using llmbench::record;
using llmbench::verdict;

struct options {
    bool quick = false;
    long long trials = 0;
    std::uint64_t seed = 1;
    std::string only{};  // a part of the study; empty: all
    bool does(std::string_view part) const { return only.empty() || only == part; }
};
/// `error_rates NAME`. `run` returns whether all bounds are met.
struct study {
    const char* name;
    long long trials, quick_trials;
    vector<const char*> parts;
    bool (*run)(const options&);
};
inline vector<study>& studies() {
    static vector<study> all;
    return all;
}
struct registered {
    explicit registered(const study& s) { studies().push_back(s); }
};

// ---- trials -------------------------------------------------------------------------------------

/// The random numbers of a trial: the same whatever other trials there are.
inline generator random_of(std::uint64_t seed, std::uint64_t trial) {
    return generator(mixed(seed ^ mixed(trial)));
}

/// Sums one(sum, trial) over all trials on two threads, in an order that does not depend on them.
template <class Sum, class F> Sum over_trials(long long trials, F&& one) {
    std::array<Sum, 2> sums{};
    const auto half = [&](std::size_t which) {
        for (auto t = static_cast<long long>(which); t < trials; t += 2)
            one(sums[which], static_cast<std::uint64_t>(t));
    };
    std::thread other(half, 1);
    half(0);
    other.join();
    sums[0] += sums[1];
    return sums[0];
}

struct tally {
    long long pass = 0, fail = 0, open = 0, invalid = 0, repeats = 0;
    void add(verdict v, long long taken) {
        ++(v == verdict::pass           ? pass
           : v == verdict::fail         ? fail
           : v == verdict::inconclusive ? open
                                        : invalid);
        repeats += taken;
    }
    void operator+=(const tally& o) {
        pass += o.pass;
        fail += o.fail;
        open += o.open;
        invalid += o.invalid;
        repeats += o.repeats;
    }
    double trials() const { return static_cast<double>(pass + fail + open + invalid); }
    double passed() const { return static_cast<double>(pass) / trials(); }
    double failed() const { return static_cast<double>(fail) / trials(); }
    double undecided() const { return static_cast<double>(open) / trials(); }
    double repeats_taken() const { return static_cast<double>(repeats) / trials(); }
};
template <std::size_t N> struct tallies {
    std::array<tally, N> of{};
    void operator+=(const tallies& o) {
        for (std::size_t i = 0; i < N; ++i) of[i] += o.of[i];
    }
};

/// Measures and judges as a gate with one objective does: until it is decided, `last` repeats at most.
template <class Measure, class Judge>
auto judged_in_turn(int first, int last, Measure&& measure, Judge&& judge) {
    decltype(judge()) v{};
    for (int i = 0; i < last; ++i) {
        measure();
        if (i + 1 < first) continue;
        v = judge();
        if (v.outcome != verdict::inconclusive) break;
    }
    return v;
}

/// Request `index` of a repeat: a second after the one before, failed or answered with 11 tokens.
inline void set_times(record& r, std::size_t index, bool fails, double ttft_s) {
    r.scheduled_ns = r.dispatched_ns = r.sent_ns =
        1'000'000'000 * (static_cast<long long>(index) + 1);
    r.status = fails ? llmbench::request_status::http : llmbench::request_status::ok;
    if (fails) return;
    r.first_token_ns = r.scheduled_ns + std::llround(ttft_s * 1e9);
    r.last_token_ns = r.end_ns = r.first_token_ns + 100'000'000;
    r.output_tokens = r.events = 11;
    r.first_event_tokens = 1;
}

/// A repeat of one request with this ttft.
inline repeat_data run_with_ttft(double seconds) {
    repeat_data d;
    record r;
    r.phase = llmbench::run_phase::measure;
    r.status = llmbench::request_status::ok;
    r.scheduled_ns = r.dispatched_ns = r.connected_ns = r.sent_ns = 1'000'000'000'000;
    r.first_token_ns = r.last_token_ns = r.end_ns = r.sent_ns + std::llround(seconds * 1e9);
    r.events = r.first_event_tokens = r.output_tokens = 1;
    d.records.push_back(r);
    return d;
}

// ---- tables -------------------------------------------------------------------------------------

inline std::string percent(double fraction) {
    const int digits = fraction > 0.0995 ? 0 : fraction > 0.00995 || fraction == 0 ? 1 : 2;
    return printed("%.*f", digits, fraction * 100);
}
/// "pass/fail/inconclusive" in %.
inline std::string fractions(const tally& t) {
    if (t.trials() == 0) return "";
    std::string text =
        percent(t.passed()) + "/" + percent(t.failed()) + "/" + percent(t.undecided());
    if (t.invalid > 0) text += printed(" (%lld invalid)", t.invalid);
    return text;
}
/// Heads of columns: "0.5 %", "1 %" and, where there is one, another.
inline vector<std::string> percents(const vector<double>& fractions,
                                    const char* last = nullptr) {
    vector<std::string> heads;
    for (const double f : fractions) heads.push_back(printed("%g %%", f * 100));
    if (last) heads.push_back(last);
    return heads;
}
inline void print_row(const std::string& name, const vector<std::string>& columns) {
    std::printf("| %-44s |", name.c_str());
    for (const std::string& c : columns) std::printf(" %-14s |", c.c_str());
    std::printf("\n");
    std::fflush(stdout);
}
inline void print_head(const std::string& name, const vector<std::string>& columns) {
    print_row(name, columns);
    print_row("---", vector<std::string>(columns.size(), "---"));
}

/// Whether fractions keep their bounds, up to three standard errors of `trials`; 0: exactly.
class bounds {
public:
    explicit bounds(long long trials) : trials_(static_cast<double>(trials)) {}
    void at_most(const std::string& what, double fraction, double bound) {
        if (!(fraction <= bound + slack(bound))) miss(what, fraction, "most", bound);
    }
    void at_least(const std::string& what, double fraction, double bound) {
        if (!(fraction >= bound - slack(bound))) miss(what, fraction, "least", bound);
    }
    /// A verdict that is none would keep every bound.
    void valid(const std::string& what, const tally& t) {
        if (t.invalid > 0)
            miss(what + ", invalid", static_cast<double>(t.invalid) / t.trials(), "most", 0);
    }
    bool met() const { return met_; }

private:
    double slack(double bound) const {
        const double b = std::clamp(bound, 0.005, 0.995);
        return trials_ > 0 ? 3 * std::sqrt(b * (1 - b) / trials_) : 0;
    }
    void miss(const std::string& what, double fraction, const char* side, double bound) {
        std::printf("NOT MET: %s: %.3f %%, at %s %.3g %%\n", what.c_str(), fraction * 100, side,
                    bound * 100);
        met_ = false;
    }

    double trials_;
    bool met_ = true;
};

}  // namespace rates
