// Schedules.
#include "llmbench.hpp"
#include "core/base/bytes.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/lengths.hpp"
#include "support/kolmogorov.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using doctest::Approx;

namespace {

/// What a test asks of a schedule; the rest has defaults.
struct asked {
    long long warmup = 0;
    double warmup_s = 0;
    long long requests = 0;
    double duration_s = 0;
    std::uint64_t seed = 1;
};
schedule made(const open_loop& load, const asked& a) {
    return open_loop_schedule(load.data(), a.warmup, a.warmup_s, a.requests, a.duration_s, a.seed);
}

/// Measured send times, counted from the start of the measured part.
vector<double> measured(const schedule& s) {
    vector<double> t(s.at.begin() + static_cast<std::ptrdiff_t>(s.warmup), s.at.end());
    for (double& x : t) x -= s.measured_from;
    return t;
}

/// Gaps after each measured request; the last one runs to the end of the measured part.
vector<double> measured_gaps(const schedule& s) {
    vector<double> t = measured(s), gaps;
    t.push_back(s.measured_to - s.measured_from);
    for (std::size_t i = 1; i < t.size(); ++i) gaps.push_back(t[i] - t[i - 1]);
    return gaps;
}

long long count_between(const vector<double>& t, double from, double to) {
    return std::count_if(t.begin(), t.end(), [&](double x) { return from <= x && x < to; });
}
/// A Poisson count has its mean as variance: four standard deviations to either side.
bool is_poisson_count(long long count, double mean) {
    return std::fabs(static_cast<double>(count) - mean) < 4 * std::sqrt(mean);
}
double variation(const vector<double>& v) {
    return std::sqrt(sample_variance(v)) / mean_of(v);
}

/// Send times to the microsecond, where no two math libraries differ.
std::string hash_of(const schedule& s) {
    fnv1a h;
    for (const double t : s.at) h.add(std::llround(t * 1e6));
    return h.text();
}

}  // namespace

// ---- constant -----------------------------------------------------------------------------------

TEST_CASE("constant arrivals are exactly even, warm-up included") {
    const schedule s = made(constant(8_rps), {.warmup = 20, .requests = 100});
    REQUIRE(s.at.size() == 120);
    CHECK(s.warmup == 20);
    CHECK(s.measured_from == 2.5);
    CHECK(s.measured_to == 15);
    for (std::size_t i = 0; i < s.at.size(); ++i) CHECK(s.at[i] == static_cast<double>(i) / 8);
}

TEST_CASE("constant arrivals stay even at a rate that binary fractions do not hold") {
    const schedule s = made(constant(7_rps), {.requests = 70000});
    REQUIRE(s.at.size() == 70000);
    double worst = 0;
    for (std::size_t i = 0; i < s.at.size(); ++i)
        worst = std::max(worst, std::fabs(s.at[i] - static_cast<double>(i) / 7));
    CHECK(worst < 1e-6);
}

// ---- poisson and gamma --------------------------------------------------------------------------

TEST_CASE("the measured part of Poisson arrivals lasts exactly number / rate") {
    for (const std::uint64_t seed : {1u, 2u, 3u, 4u, 5u}) {
        const schedule s = made(poisson(50_rps), {.warmup = 20, .requests = 1000, .seed = seed});
        const vector<double> t = measured(s);
        REQUIRE(t.size() == 1000);
        CHECK(s.measured_to - s.measured_from == Approx(20).epsilon(1e-12));
        CHECK(t.front() == 0);
        CHECK(t.back() < 20);
        CHECK(std::is_sorted(s.at.begin(), s.at.end()));
        // The rate a counter of sends would see, from the first to the last.
        CHECK(999 / (t.back() - t.front()) == Approx(50).epsilon(0.005));
    }
}

TEST_CASE("the gaps of Poisson arrivals are exponential") {
    const schedule s = made(poisson(50_rps), {.warmup = 20, .requests = 5000});
    vector<double> gaps = measured_gaps(s);
    REQUIRE(gaps.size() == 5000);
    for (double& g : gaps) g *= 50;
    CHECK(mean_of(gaps) == Approx(1).epsilon(1e-9));
    CHECK(variation(gaps) == Approx(1).epsilon(0.06));
    CHECK(kolmogorov_distance(gaps, exponential_cdf) < kolmogorov_bound);
}

TEST_CASE("gaps of gamma arrivals have the gamma distribution of their burstiness") {
    const auto gaps_of = [](double burstiness) {
        const schedule s = made(gamma(50_rps, burstiness), {.requests = 5000});
        vector<double> gaps = measured_gaps(s);
        for (double& g : gaps) g *= 50 * burstiness;  // to scale 1
        CHECK(s.measured_to - s.measured_from == Approx(100).epsilon(1e-12));
        return gaps;
    };
    CHECK(kolmogorov_distance(gaps_of(0.5), gamma_half_cdf) < kolmogorov_bound);
    CHECK(kolmogorov_distance(gaps_of(1), exponential_cdf) < kolmogorov_bound);
    CHECK(kolmogorov_distance(gaps_of(4), [](double x) { return erlang_cdf(4, x); }) <
          kolmogorov_bound);
    CHECK(kolmogorov_distance(gaps_of(0.5), exponential_cdf) > kolmogorov_bound);
    for (const double burstiness : {0.25, 1.0, 9.0}) {
        CAPTURE(burstiness);
        CHECK(variation(gaps_of(burstiness)) == Approx(1 / std::sqrt(burstiness)).epsilon(0.1));
    }
}

// ---- ramps and steps ----------------------------------------------------------------------------

TEST_CASE("a ramp's rate moves linearly and then stays") {
    // 4 req/s at 0 s, 36 req/s from 100 s on: 4 t + 0.16 t^2 requests until t.
    const schedule s = made(ramp(4_rps, 36_rps, 100_s), {.duration_s = 150});
    const vector<double> t = measured(s);
    CHECK(std::is_sorted(t.begin(), t.end()));
    CHECK(s.measured_to == 150);
    CHECK(is_poisson_count(count_between(t, 0, 25), 200));
    CHECK(is_poisson_count(count_between(t, 25, 50), 400));
    CHECK(is_poisson_count(count_between(t, 50, 75), 600));
    CHECK(is_poisson_count(count_between(t, 75, 100), 800));
    CHECK(is_poisson_count(count_between(t, 100, 125), 900));
    CHECK(is_poisson_count(count_between(t, 125, 150), 900));
    CHECK(count_between(t, 0, 150) == static_cast<long long>(t.size()));
    const auto cdf = [](double x) {
        return (x < 100 ? 4 * x + 0.16 * x * x : 2000 + 36 * (x - 100)) / 3800;
    };
    CHECK(kolmogorov_distance(t, cdf) < kolmogorov_bound);
    CHECK(kolmogorov_distance(t, [](double x) { return x / 150; }) > kolmogorov_bound);
}

TEST_CASE("every stage of steps has its own rate and length") {
    const open_loop load = steps({{50_rps, 20_s}, {10_rps, 50_s}, {100_rps, 5_s}});
    const schedule s = made(load, {});
    const vector<double> t = measured(s);
    CHECK(s.measured_to == 75);
    CHECK(is_poisson_count(count_between(t, 0, 20), 1000));
    CHECK(is_poisson_count(count_between(t, 20, 70), 500));
    CHECK(is_poisson_count(count_between(t, 70, 75), 500));
    CHECK(count_between(t, 0, 75) == static_cast<long long>(t.size()));
}

TEST_CASE("the time of an arrival of ramps and steps is the inverse of those expected") {
    for (const open_loop& load :
         {ramp(4_rps, 36_rps, 100_s), ramp(36_rps, 4_rps, 100_s), ramp(5_rps, 5_rps, 9_s),
          ramp(1e6_rps, 1e-6_rps, 1_s), steps({{50_rps, 20_s}, {10_rps, 50_s}, {100_rps, 5_s}})}) {
        const arrival_data a = load.data();
        CHECK(time_of_arrivals(a, 0) == 0);
        for (double t = 0.01; t < planned_length(a); t *= 1.07)
            CHECK(time_of_arrivals(a, expected_arrivals(a, t)) == doctest::Approx(t).epsilon(1e-9));
        const double beyond = expected_arrivals(a, planned_length(a)) + 1;
        const double later = time_of_arrivals(a, beyond);
        if (a.kind == arrival_kind::steps) CHECK(std::isinf(later));
        else CHECK(later == doctest::Approx(planned_length(a) + 1 / a.rate_to));
    }
}

TEST_CASE("the arrivals expected of ramps and steps are areas under the rate") {
    const arrival_data up = ramp(4_rps, 36_rps, 100_s).data();
    CHECK(expected_arrivals(up, 0) == 0);
    CHECK(expected_arrivals(up, 50) == Approx(4 * 50 + 0.16 * 2500));
    CHECK(expected_arrivals(up, 100) == Approx(2000));
    CHECK(expected_arrivals(up, 110) == Approx(2360));
    CHECK(planned_length(up) == 100);

    const arrival_data stages = steps({{50_rps, 20_s}, {10_rps, 50_s}}).data();
    CHECK(expected_arrivals(stages, 10) == Approx(500));
    CHECK(expected_arrivals(stages, 30) == Approx(1100));
    CHECK(expected_arrivals(stages, 70) == Approx(1500));
    CHECK(expected_arrivals(stages, 1000) == Approx(1500));
    CHECK(planned_length(stages) == 70);
}

// ---- where a schedule ends ----------------------------------------------------------------------

TEST_CASE("of requests and duration the first reached ends the measured part") {
    const auto length = [](const open_loop& load, long long requests, double duration_s) {
        return measured(made(load, {.warmup = 7, .requests = requests, .duration_s = duration_s}))
            .size();
    };
    for (const open_loop& load : {constant(10_rps), poisson(10_rps), gamma(10_rps, 0.5)}) {
        CHECK(length(load, 100, 0) == 100);
        CHECK(length(load, 0, 5) == 50);
        CHECK(length(load, 100, 5) == 50);
        CHECK(length(load, 30, 5) == 30);
    }
    for (const open_loop& load :
         {ramp(10_rps, 20_rps, 5_s), steps({{10_rps, 5_s}, {20_rps, 5_s}})}) {
        const std::size_t in_five_seconds = length(load, 0, 5);
        CHECK(in_five_seconds > 20);
        CHECK(length(load, 10, 0) == 10);
        CHECK(length(load, 10, 5) == 10);
        CHECK(length(load, 1000000, 5) == in_five_seconds);
    }
}

TEST_CASE("steps end with their last stage, even where more is asked for") {
    const open_loop load = steps({{10_rps, 5_s}, {20_rps, 5_s}});
    const schedule whole = made(load, {});
    for (const asked& more : {asked{.requests = 100000}, asked{.duration_s = 1000}}) {
        const schedule s = made(load, more);
        CHECK(s.at == whole.at);
        CHECK(s.at.back() < 10);
    }
}

TEST_CASE("a ramp that ends by a number of requests is measured until the last one") {
    const schedule s = made(ramp(10_rps, 20_rps, 5_s), {.warmup = 20, .requests = 400});
    REQUIRE(measured(s).size() == 400);
    CHECK(s.measured_from == 2);
    CHECK(s.measured_to == s.at.back());
    CHECK(s.measured_to - s.measured_from == Approx(5 + (400 - 75) / 20.0).epsilon(0.2));
}

// ---- warm-up ------------------------------------------------------------------------------------

TEST_CASE("the warm-up comes first and has the rate at which the measured part starts") {
    const struct { open_loop load; double rate; } loads[] = {
        {constant(25_rps), 25}, {poisson(25_rps), 25}, {gamma(25_rps, 0.5), 25},
        {ramp(25_rps, 100_rps, 10_s), 25}, {steps({{25_rps, 10_s}, {50_rps, 10_s}}), 25}};
    for (const auto& [load, rate] : loads) {
        CAPTURE(arrival_text(load.data()));
        const schedule by_count = made(load, {.warmup = 50, .duration_s = 10});
        CHECK(by_count.warmup == 50);
        CHECK(by_count.measured_from == 50 / rate);
        CHECK(by_count.at[0] == 0);
        CHECK(by_count.at[49] < by_count.measured_from);
        CHECK(by_count.at[50] >= by_count.measured_from);

        const schedule by_time = made(load, {.warmup_s = 4, .duration_s = 10});
        CHECK(by_time.warmup == 100);
        CHECK(by_time.measured_from == 4);
    }
}

TEST_CASE("the warm-up of ramps and steps is made of Poisson arrivals, as what follows it") {
    for (const open_loop& load : {ramp(25_rps, 100_rps, 10_s), steps({{25_rps, 10_s}})}) {
        const schedule s = made(load, {.warmup = 1000, .requests = 10});
        vector<double> gaps;
        for (std::size_t i = 1; i < s.warmup; ++i) gaps.push_back((s.at[i] - s.at[i - 1]) * 25);
        CHECK(kolmogorov_distance(gaps, exponential_cdf) < kolmogorov_bound);
    }
}

TEST_CASE("the measured part does not depend on the warm-up") {
    for (const open_loop& load : {poisson(25_rps), gamma(25_rps, 3), ramp(25_rps, 50_rps, 4_s)}) {
        const auto without = measured(made(load, {.requests = 200}));
        const auto with = measured(made(load, {.warmup = 64, .requests = 200}));
        REQUIRE(with.size() == without.size());
        for (std::size_t i = 0; i < with.size(); ++i) CHECK(std::fabs(with[i] - without[i]) < 1e-9);
    }
}

// ---- seeds --------------------------------------------------------------------------------------

TEST_CASE("a schedule is the same on every platform") {
    const asked a = {.requests = 500, .seed = 42};
    asked warmed_up = a;
    warmed_up.warmup = 20;
    CHECK(hash_of(made(constant(7_rps), warmed_up)) == "0696f6b746c8bd4b");
    CHECK(hash_of(made(poisson(8_rps), warmed_up)) == "7301a13bfd991fa7");
    CHECK(hash_of(made(gamma(8_rps, 0.3), warmed_up)) == "664202b876555902");
    CHECK(hash_of(made(gamma(8_rps, 5), warmed_up)) == "246390fe302a8bef");
    CHECK(hash_of(made(ramp(2_rps, 20_rps, 30_s), a)) == "d023eb6860bc8d2c");
    CHECK(hash_of(made(steps({{8_rps, 20_s}, {16_rps, 40_s}}), a)) == "53adc569eb309ec1");
}

// ---- lengths ------------------------------------------------------------------------------------

namespace {
vector<double> lengths(const length_distribution& d, int n, int least = 1,
                       const vector<double>& values = {}) {
    generator g(5);
    vector<double> drawn;
    for (int i = 0; i < n; ++i) drawn.push_back(drawn_length(d, g, least, values));
    return drawn;
}
}  // namespace

TEST_CASE("fixed lengths are always the same, and no number at all needs a name") {
    for (const double n : lengths(fixed(128), 10)) CHECK(n == 128);
    for (const double n : lengths(fixed(64_tokens), 10)) CHECK(n == 64);
    for (const double n : lengths(length_distribution(32), 10)) CHECK(n == 32);
}

TEST_CASE("uniform lengths take every value of their range, ends included, equally often") {
    vector<int> count(16, 0);
    for (const double n : lengths(uniform(10, 15), 6000)) {
        REQUIRE((n >= 10 && n <= 15));
        ++count[static_cast<std::size_t>(n)];
    }
    for (std::size_t n = 10; n <= 15; ++n) CHECK(is_poisson_count(count[n], 1000));
    for (const double n : lengths(uniform(7, 7), 10)) CHECK(n == 7);
}

TEST_CASE("normal and lognormal lengths have their distributions") {
    // So long that rounding to whole tokens does not show.
    const auto normals = lengths(normal(1e5, 1e4), 5000);
    CHECK(kolmogorov_distance(normals, [](double x) { return normal_cdf((x - 1e5) / 1e4); }) <
          kolmogorov_bound);
    CHECK(kolmogorov_distance(normals, [](double x) { return normal_cdf((x - 1e5) / 1.1e4); }) >
          kolmogorov_bound);
    const auto logs = lengths(lognormal(1e5, 0.6), 5000);
    CHECK(kolmogorov_distance(logs, [](double x) { return normal_cdf(std::log(x / 1e5) / 0.6); }) <
          kolmogorov_bound);
    CHECK(kolmogorov_distance(logs, [](double x) { return normal_cdf(std::log(x / 1e5) / 0.66); }) >
          kolmogorov_bound);
}

TEST_CASE("empirical lengths are drawn from the values of their file") {
    const length_distribution d = empirical("lengths.txt");
    CHECK(str(d.file) == "lengths.txt");
    vector<int> count(10, 0);
    for (const double n : lengths(d, 3000, 1, {3, 5, 9})) {
        REQUIRE((n == 3 || n == 5 || n == 9));
        ++count[static_cast<std::size_t>(n)];
    }
    for (const std::size_t n : {3u, 5u, 9u}) CHECK(is_poisson_count(count[n], 1000));
}

TEST_CASE("lengths are whole and kept between the least and ten million") {
    const auto bounded = lengths(normal(2, 10), 2000);
    CHECK(*std::min_element(bounded.begin(), bounded.end()) == 1);
    CHECK(std::all_of(bounded.begin(), bounded.end(), [](double n) { return n == std::floor(n); }));
    const auto with_none = lengths(normal(2, 10), 2000, 0);
    CHECK(*std::min_element(with_none.begin(), with_none.end()) == 0);
    const auto huge = lengths(lognormal(1e6, 5), 1000);
    CHECK(*std::max_element(huge.begin(), huge.end()) == 1e7);
}

TEST_CASE("lengths are the same on every platform") {
    CHECK(lengths(uniform(1, 1000), 5) == vector<double>{102, 840, 964, 657, 207});
    CHECK(lengths(normal(500, 100), 5) == vector<double>{373, 599, 679, 540, 418});
    CHECK(lengths(lognormal(512, 0.6), 5) == vector<double>{239, 928, 1499, 652, 314});
}
