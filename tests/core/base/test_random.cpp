// Random numbers.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "support/kolmogorov.hpp"

#include <bit>
#include <cmath>
#include <set>

using namespace llmbench;
using namespace llmbench::detail;

namespace {
constexpr int sample_size = 100000;

template <class Draw>
vector<double> sample(Draw&& draw) {
    vector<double> values;
    for (int i = 0; i < sample_size; ++i) values.push_back(draw());
    return values;
}

/// Standard errors by which the sample's mean misses the expected one.
double mean_error(const vector<double>& v, double mean, double variance) {
    return std::fabs(mean_of(v) - mean) / std::sqrt(variance / static_cast<double>(v.size()));
}

/// A generator in a state of our choice.
generator in_state(const std::array<std::uint64_t, 4>& words) {
    return std::bit_cast<generator>(words);
}
}  // namespace

// ---- the same numbers on every platform ---------------------------------------------------------

TEST_CASE("mixed is SplitMix64") {
    // The reference code's outputs from state 0 (prng.di.unimi.it/splitmix64.c) and from state
    // 1234567 (rosettacode.org, "Pseudo-random numbers/Splitmix64").
    constexpr std::uint64_t step = 0x9E3779B97F4A7C15;
    CHECK(mixed(0) == 0xE220A8397B1DCDAF);
    CHECK(mixed(step) == 0x6E789E6AA1B965F4);
    CHECK(mixed(2 * step) == 0x06C45D188009454F);
    CHECK(mixed(1234567) == 6457827717110365317u);
    CHECK(mixed(1234567 + step) == 3203168211198807973u);
    CHECK(mixed(1234567 + 2 * step) == 9817491932198370423u);
}

TEST_CASE("the generator is xoshiro256**") {
    // The reference code's outputs from state 1, 2, 3, 4, as in the tests of Rust's rand_xoshiro.
    generator g = in_state({1, 2, 3, 4});
    for (const std::uint64_t expected :
         {11520ull, 0ull, 1509978240ull, 1215971899390074240ull, 1216172134540287360ull,
          607988272756665600ull, 16172922978634559625ull, 8476171486693032832ull,
          10595114339597558777ull, 2904607092377533576ull})
        CHECK(g.next() == expected);
}

TEST_CASE("a seed's first outputs are the same on every platform") {
    const auto begins_with = [](generator g, std::initializer_list<std::uint64_t> expected) {
        for (const std::uint64_t e : expected) CHECK(g.next() == e);
    };
    begins_with(generator(0), {0x4B5E53214694A344, 0x3E635B8E81D77BEF, 0x373F766DC18978D3});
    begins_with(generator(1), {0xF1CFF23F35D54B72, 0x80D9FCF7413A8BFD, 0xB244441196E7D75A});
    begins_with(generator(42), {0x3D39AB596D5D324E, 0xE81B19EC09F0F409, 0x4A1116D6EE8D9A6E});
    begins_with(generator(1, 2), {0xBE7A263FCA384F6F, 0x632093013AC488C0, 0x265AC364844833B7});
}

TEST_CASE("neighbouring seeds and streams share no first output") {
    std::set<std::uint64_t> seen;
    for (std::uint64_t seed = 0; seed < 100; ++seed)
        for (std::uint64_t stream = 0; stream < 100; ++stream)
            seen.insert(generator(seed, stream).next());
    CHECK(seen.size() == 100 * 100);
}

// ---- uniform ------------------------------------------------------------------------------------

TEST_CASE("uniform numbers are uniform") {
    generator g(1);
    const auto v = sample([&] { return g.uniform(); });
    CHECK(mean_error(v, 0.5, 1.0 / 12) < 4);
    CHECK(sample_variance(v) == doctest::Approx(1.0 / 12).epsilon(0.03));
    CHECK(kolmogorov_distance(v, [](double x) { return x; }) < kolmogorov_bound);
    CHECK(kolmogorov_distance(v, [](double x) { return std::pow(x, 1.05); }) > kolmogorov_bound);
}

TEST_CASE("uniform numbers lie strictly between 0 and 1, even the extreme ones") {
    generator all_zeros = in_state({1, 0, 3, 4});  // the next output is a multiple of word 1
    CHECK(all_zeros.uniform() > 0);
    CHECK(std::isfinite(in_state({1, 0, 3, 4}).exponential()));
    CHECK(std::isfinite(in_state({1, 0, 3, 4}).normal()));

    const std::array<std::uint64_t, 4> before_all_ones = {1, 0x4FC71C71C71C71C7, 3, 4};
    REQUIRE(in_state(before_all_ones).next() == ~0ull);
    CHECK(in_state(before_all_ones).uniform() < 1);
    CHECK(in_state(before_all_ones).below(64) == 63);
    CHECK(in_state(before_all_ones).exponential() > 0);
    CHECK(std::isfinite(in_state(before_all_ones).normal()));
}

TEST_CASE("below draws every number under its bound equally often") {
    generator g(3);
    vector<int> count(10, 0);
    for (int i = 0; i < sample_size; ++i) {
        const std::uint64_t n = g.below(10);
        REQUIRE(n < 10);
        ++count[n];
    }
    double chi_square = 0;
    constexpr double each = sample_size / 10.0;
    for (const int c : count) chi_square += (c - each) * (c - each) / each;
    CHECK(chi_square < 27.88);  // 0.999 quantile at 9 degrees of freedom, NIST/SEMATECH 1.3.6.7.4
    CHECK(g.below(1) == 0);
}

// ---- other distributions ------------------------------------------------------------------------

TEST_CASE("normal numbers have mean 0, variance 1 and the normal distribution") {
    generator g(1);
    const auto v = sample([&] { return g.normal(); });
    CHECK(mean_error(v, 0, 1) < 4);
    CHECK(sample_variance(v) == doctest::Approx(1).epsilon(0.05));
    double cubes = 0, fourths = 0;
    for (const double x : v) {
        cubes += x * x * x / sample_size;
        fourths += x * x * x * x / sample_size;
    }
    CHECK(std::fabs(cubes) < 0.1);
    CHECK(fourths == doctest::Approx(3).epsilon(0.1));
    CHECK(kolmogorov_distance(v, normal_cdf) < kolmogorov_bound);
    CHECK(kolmogorov_distance(v, [](double x) { return normal_cdf(1.1 * x); }) > kolmogorov_bound);
}

TEST_CASE("gamma numbers have the gamma distribution, below shape 1 as above") {
    const auto distance = [](double shape, auto&& cdf) {
        generator g(3);
        return kolmogorov_distance(sample([&] { return g.gamma(shape); }), cdf);
    };
    CHECK(distance(0.5, gamma_half_cdf) < kolmogorov_bound);
    CHECK(distance(1, exponential_cdf) < kolmogorov_bound);
    CHECK(distance(2, [](double x) { return erlang_cdf(2, x); }) < kolmogorov_bound);
    CHECK(distance(9, [](double x) { return erlang_cdf(9, x); }) < kolmogorov_bound);
    CHECK(distance(0.55, gamma_half_cdf) > kolmogorov_bound);
    CHECK(distance(2.1, [](double x) { return erlang_cdf(2, x); }) > kolmogorov_bound);
}
