// What a sample could have shown, and what to write instead of a limit that is not decided.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/described/verdict_text.hpp"
#include "support/verdicts.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using namespace verdicts;

namespace {

/// Five repeats that spread by 2.5 %, as those of most machines do.
vector<double> noisy(double ms) {
    vector<double> all;
    for (const double by : {-0.025, 0.025, 0.0, -0.025, 0.025}) all.push_back(ms * std::exp(by));
    return all;
}
/// The number behind "<= " or ">= " of an advice.
double advised(const slo_verdict& v, const char* unit = "ms") {
    const std::string advice = str(v.advice);
    const std::size_t at = advice.find(v.objective.at_most ? "<= " : ">= ");
    if (at == std::string::npos) return not_a_number;
    double limit = not_a_number;
    char seen[16] = {};
    if (std::sscanf(advice.c_str() + at + 3, "%lf %15s", &limit, seen) != 2) return not_a_number;
    return std::string(seen).substr(0, std::strlen(unit)) == unit ? limit : not_a_number;
}

}  // namespace

TEST_CASE("a fraction says which fraction of misses it would have shown in four runs of five") {
    const auto at_least = [](double k, double n, double p) {
        double under = 0, log_ways = 0;
        for (double i = 0; i < k; ++i) {
            under += std::exp(log_ways + i * std::log(p) + (n - i) * std::log1p(-p));
            log_ways += std::log((n - i) / (i + 1));
        }
        return 1 - under;
    };
    // 12 of 400 is the fewest that fails a limit of 1 %.
    for (const int failures : {0, 3, 12}) {
        const slo_verdict v = verdict_on_failures(400, failures, error_rate <= 1_pct);
        CHECK(at_least(12, 400, v.detectable) == about(0.8).epsilon(1e-6));
    }
    CHECK(verdict_on_failures(800, 0, error_rate <= 1_pct).detectable <
          verdict_on_failures(400, 0, error_rate <= 1_pct).detectable);
}

TEST_CASE("where no number of misses could fail the line does not name one") {
    const slo_verdict v = verdict_on_failures(8, 0, error_rate <= 50_pct);
    CHECK_FALSE(mentions(verdict_line(v), "e+0"));
}

TEST_CASE("small headroom is told once, with a limit that is decided") {
    CHECK(verdict_on({80, 80}).advice.empty());
    CHECK(verdict_on({90, 90}).advice.empty());
    CHECK(verdict_on({125, 125}).advice.empty());  // that one is decided
    for (const double ms : {95.5, 97.0, 99.0, 99.9}) {
        const slo_verdict v = verdict_on(noisy(ms));
        CAPTURE(ms);
        CHECK(mentions(v.advice, " under noise of "));
        CHECK(mentions(v.advice, " will often be inconclusive"));
        CHECK_FALSE(mentions(verdict_line(v), "often"));
        const double limit = advised(v);
        REQUIRE(limit > ms);
        CHECK(limit < 1.1 * ms);
        CHECK(verdict_on(noisy(ms), ttft_limit(limit)).outcome == verdict::pass);
        // Taken, the advice is not given again.
        CHECK(verdict_on(noisy(ms), ttft_limit(limit)).advice.empty());
    }
}

TEST_CASE("repeats that agree are told what few of them may hide, not noise that they do not have") {
    CHECK(verdict_on(vector<double>(5, 97)).advice.empty());  // decided
    for (const double ms : {99.2, 99.9}) {
        const slo_verdict v = verdict_on(vector<double>(5, ms));
        CAPTURE(ms);
        CHECK(v.outcome == verdict::inconclusive);
        CHECK(mentions(v.advice, "headroom of "));
        CHECK_FALSE(mentions(v.advice, "noise"));
        const double limit = advised(v);
        REQUIRE(limit > ms);
        CHECK(limit < 1.02 * ms);
        CHECK(verdict_on(vector<double>(5, ms), ttft_limit(limit)).outcome == verdict::pass);
        CHECK(verdict_on(vector<double>(5, ms), ttft_limit(limit)).advice.empty());
    }
}

TEST_CASE("the advised limit is decided in most runs of a machine as noisy as expected") {
    generator random(11);
    const auto run_of = [&] {
        vector<repeat_data> repeats;
        for (int i = 0; i < 5; ++i)
            repeats.push_back(steady_repeat(100 * std::exp(0.04 * random.normal()), 10));
        return repeats;
    };
    int advised_runs = 0, decided = 0;
    for (int i = 0; i < 150; ++i) {
        const slo_verdict v = judged(measured(run_of()), ttft_limit(102));
        const double limit = advised(v);
        if (std::isnan(limit) || !mentions(v.advice, "seldom")) continue;
        ++advised_runs;
        decided += judged(measured(run_of()), ttft_limit(limit)).outcome == verdict::pass;
    }
    CHECK(advised_runs > 50);
    CHECK(decided > 0.85 * advised_runs);
}

TEST_CASE("a fraction that is open is told how many requests decide it, and no lower limit") {
    const auto told = [](int failures, const slo& s) {
        const slo_verdict v = verdict_on_failures(400, failures, s);
        REQUIRE(v.outcome == verdict::inconclusive);
        CHECK(std::isnan(advised(v, "%")));
        int n = 0;
        REQUIRE(std::sscanf(v.advice.c_str(), "about %d requests in each repeat", &n) == 1);
        // As many that are like these decide it, half as many do not.
        const auto with = [&](int each) {
            return verdict_on_failures(2 * each, failures * 2 * each / 400, s).outcome;
        };
        CHECK(with(n + n / 10) != verdict::inconclusive);
        CHECK(with(n / 2) == verdict::inconclusive);
        return v.advice;
    };
    told(2, error_rate <= 0.9_pct);
    told(6, error_rate <= 1_pct);
    told(2, goodput(ttft <= 1_s) >= 99_pct);
    told(8, goodput(ttft <= 1_s) >= 99_pct);
    // At the limit no number decides.
    CHECK(verdict_on_failures(400, 4, goodput(ttft <= 1_s) >= 99_pct).advice.empty());
}

TEST_CASE("what is undecided without headroom is told a limit that would pass") {
    const slo_verdict v = verdict_on({101, 101, 101, 101, 101});
    REQUIRE(v.outcome == verdict::inconclusive);
    CHECK(mentions(v.advice, "would pass"));
    CHECK(verdict_on({101, 101, 101, 101, 101}, ttft_limit(advised(v))).outcome == verdict::pass);

    const slo_verdict speed = verdict_on({50, 50, 50, 50, 50}, p50(decode_speed) >= 101_tps);
    REQUIRE(speed.outcome == verdict::inconclusive);
    const double floor = advised(speed, "tok/s");
    REQUIRE(floor > 90);
    CHECK(verdict_on({50, 50, 50, 50, 50}, p50(decode_speed) >= token_rate(floor)).outcome ==
          verdict::pass);

    const vector<double> pairs = {1.14, 1.08, 1.14, 1.08, 1.14, 1.08, 1.14, 1.08};
    const slo_verdict ratio = verdict_on_pairs(pairs);
    REQUIRE(ratio.outcome == verdict::inconclusive);
    const double factor = advised(ratio, "*");
    CHECK(verdict_on_pairs(pairs, mean(ttft) <= factor * baseline).outcome == verdict::pass);
}
