// What the studies of error rates share: the trials of a row on two threads, sums of verdicts, tables in
// Markdown, and bounds that a rate must keep. Each study is a file beside this one, main.cpp runs them.
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

// ---- what trials add up to ----------------------------------------------------------------------

struct tally {
    long long pass = 0, fail = 0, open = 0, invalid = 0, repeats = 0;

    void add(verdict v, long long taken) {
        ++(v == verdict::pass           ? pass
           : v == verdict::fail         ? fail
           : v == verdict::inconclusive ? open
                                        : invalid);
        repeats += taken;
    }
    template <class Verdict> void add(const Verdict& v) { add(v.outcome, static_cast<long long>(v.repeats)); }
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

/// Verdicts and numbers, each at its place.
struct sums {
    vector<tally> tallies{};
    vector<double> numbers{};

    tally& at(std::size_t i) { return grown(tallies, i); }
    double& number(std::size_t i) { return grown(numbers, i); }
    void operator+=(const sums& o) {
        for (std::size_t i = 0; i < o.tallies.size(); ++i) at(i) += o.tallies[i];
        for (std::size_t i = 0; i < o.numbers.size(); ++i) number(i) += o.numbers[i];
    }

private:
    template <class T> static T& grown(vector<T>& v, std::size_t i) {
        if (v.size() <= i) v.resize(i + 1);
        return v[i];
    }
};

/// Sums one(sum, trial) over all trials on two threads, in an order that does not depend on them.
template <class Sum = sums, class F> Sum over_trials(long long trials, F&& one) {
    std::array<Sum, 2> halves{};
    const auto half = [&](std::size_t which) {
        for (auto t = static_cast<long long>(which); t < trials; t += 2)
            one(halves[which], static_cast<std::uint64_t>(t));
    };
    std::thread other(half, 1);
    half(0);
    other.join();
    halves[0] += halves[1];
    return halves[0];
}

// ---- bounds -------------------------------------------------------------------------------------

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
    /// The levels that a gate promises, of a truth that is the limit.
    void at_limit(const std::string& what, const tally& t, double pass = 0.05, double fail = 0.01) {
        at_most(what + ", passes at the limit", t.passed(), pass);
        at_most(what + ", fails at the limit", t.failed(), fail);
    }
    /// A verdict that is none would keep every bound.
    void valid(const std::string& what, const tally& t) {
        if (t.invalid > 0) miss(what + ", invalid", static_cast<double>(t.invalid) / t.trials(), "most", 0);
    }
    void number_at_most(const std::string& what, double value, double bound) {
        if (!(value <= bound)) std::printf("NOT MET: %s is %.2f, at most %.2f\n", what.c_str(), value, bound);
        met_ = met_ && value <= bound;
    }
    void hold(const bounds& others) { met_ = met_ && others.met_; }
    bool met() const { return met_; }

private:
    double slack(double bound) const {
        const double b = std::clamp(bound, 0.005, 0.995);
        return trials_ > 0 ? 3 * std::sqrt(b * (1 - b) / trials_) : 0;
    }
    void miss(const std::string& what, double fraction, const char* side, double bound) {
        std::printf("NOT MET: %s: %.3f %%, at %s %.3g %%\n", what.c_str(), fraction * 100, side, bound * 100);
        met_ = false;
    }

    double trials_;
    bool met_ = true;
};

// ---- columns ------------------------------------------------------------------------------------

using columns = vector<std::string>;

inline std::string percent(double fraction) {
    const int digits = fraction > 0.0995 ? 0 : fraction > 0.00995 || fraction == 0 ? 1 : 2;
    return printed("%.*f", digits, fraction * 100);
}
/// "pass/fail/inconclusive" in %.
inline std::string fractions(const tally& t) {
    if (t.trials() == 0) return "";
    std::string text = percent(t.passed()) + "/" + percent(t.failed()) + "/" + percent(t.undecided());
    if (t.invalid > 0) text += printed(" (%lld invalid)", t.invalid);
    return text;
}
/// The same of `n` tallies from the one at `first` on; `taken`: also the repeats, by this format.
inline columns fractions_of(sums& s, std::size_t first, std::size_t n, const char* taken = nullptr) {
    columns all;
    for (std::size_t i = first; i < first + n; ++i) {
        all.push_back(fractions(s.at(i)));
        if (taken) all.back() += printed(taken, s.at(i).repeats_taken());
    }
    return all;
}
/// Heads of columns: "0.5 %", "1 %" and, where there is one, another.
inline columns percents(const vector<double>& fractions, const char* last = nullptr) {
    columns heads;
    for (const double f : fractions) heads.push_back(printed("%g %%", f * 100));
    if (last) heads.push_back(last);
    return heads;
}
inline void print_row(const std::string& name, const columns& of) {
    std::printf("| %-44s |", name.c_str());
    for (const std::string& c : of) std::printf(" %-14s |", c.c_str());
    std::printf("\n");
    std::fflush(stdout);
}

// ---- studies ------------------------------------------------------------------------------------

struct options {
    bool quick = false;
    long long trials = 0;
    std::uint64_t seed = 1;
    std::string only{};             // a part of the study; empty: all
    long long shard = 1, shards = 1;  // of the rows
};

/// A run of a study: what its parts measure with, print into, and hold to bounds.
struct study_run : options {
    bounds must;

    explicit study_run(const options& o) : options(o), must(o.trials) {}

    /// A table, with what stands above it.
    void table(const std::string& name, const columns& heads, const std::string& above = "\n") {
        std::printf("%s", above.c_str());
        print_row(name, heads);
        print_row("---", columns(heads.size(), "---"));
    }
    /// Whether the next row, or the next rows that are measured together, are of this shard. All shards say where
    /// the row stands, so that measure_rates.sh can put them together.
    bool is_next_ours() {
        if (shards > 1) std::printf("[row %lld]\n", rows_);
        return rows_++ % shards == shard - 1;
    }
    template <class Measure> void row(const std::string& name, Measure&& measured) {
        if (is_next_ours()) print_row(name, measured());
    }
    template <class F> sums over(F&& one) const { return over_trials(trials, one); }
    /// The random numbers of a trial: the same whatever other trials there are.
    generator random(std::uint64_t trial) const { return generator(mixed(seed ^ mixed(trial))); }
    generator random(std::uint64_t trial, std::uint64_t stream) const {
        return generator(mixed(mixed(seed) + trial), stream);
    }
    /// The standard error of a rate of 1 %, in %.
    double error_at_1() const { return 100 * std::sqrt(0.01 * 0.99 / static_cast<double>(trials)); }

private:
    long long rows_ = 0;
};

struct part {
    const char* name;
    void (*measure)(study_run&);
    bool is_asked_for = false;  // measured by --only alone
};
/// `llmbench_rates NAME`.
struct study {
    const char* name;
    long long trials, quick_trials;
    vector<part> parts;
    void (*begin)(study_run&) = nullptr;  // before the parts that are not only measured alone
};
inline vector<study>& studies() {
    static vector<study> all;
    return all;
}
struct registered {
    explicit registered(const study& s) { studies().push_back(s); }
};

// ---- made-up repeats ----------------------------------------------------------------------------

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
    r.scheduled_ns = r.dispatched_ns = r.sent_ns = 1'000'000'000 * (static_cast<long long>(index) + 1);
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

}  // namespace rates
