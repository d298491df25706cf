// Statistics. Reference values come from published tables or from closed forms; each says so.
#include "llmbench.hpp"
#include "core/base/random.hpp"
#include "core/base/statistics.hpp"

#include <algorithm>
#include <cmath>

using namespace llmbench;
using namespace llmbench::detail;
using doctest::Approx;

namespace {
/// To the digits of a printed table: half a unit of the last one.
bool rounds_to(double value, double printed_value, int decimals) {
    return std::fabs(value - printed_value) <= 0.5000001 * std::pow(10.0, -decimals);
}

/// P(X <= k) of n independent trials with probability p, term by term.
double binomial_cdf(int k, int n, double p) {
    double sum = 0, log_ways = 0;
    for (int i = 0; i <= k; ++i) {
        sum += std::exp(log_ways + i * std::log(p) + (n - i) * std::log1p(-p));
        log_ways += std::log((n - i) / (i + 1.0));
    }
    return sum;
}
}  // namespace

TEST_CASE("the logarithm of the gamma function is that of the standard library") {
    for (const double x : {1e-9, 0.1, 0.5, 1.0, 1.5, 2.0, 9.999, 10.0, 37.25, 1e3, 123456.5, 1e9}) {
        CAPTURE(x);
        CHECK(std::fabs(log_gamma(x) - std::lgamma(x)) <= 4e-15 * std::max(1.0, std::fabs(std::lgamma(x))));
    }
}
TEST_CASE("a quotient by zero, by what is infinite or by no number is none") {
    CHECK(quotient(3, 2) == 1.5);
    CHECK(quotient(infinity, 2) == infinity);
    for (const double by : {0.0, -1.0, infinity, not_a_number}) CHECK(std::isnan(quotient(3, by)));
}

// ---- normal -------------------------------------------------------------------------------------

TEST_CASE("the normal distribution agrees with its printed table") {
    // Abramowitz and Stegun, Handbook of Mathematical Functions (1964), table 26.1.
    CHECK(normal_cdf(0) == 0.5);
    CHECK(rounds_to(normal_cdf(0.5), 0.691462461274013, 15));
    CHECK(rounds_to(normal_cdf(1), 0.841344746068543, 15));
    CHECK(rounds_to(normal_cdf(1.5), 0.933192798731142, 15));
    CHECK(rounds_to(normal_cdf(2), 0.977249868051821, 15));
    CHECK(rounds_to(normal_cdf(-3), 1 - 0.998650101968370, 15));
    CHECK(normal_cdf(-infinity) == 0);
    CHECK(normal_cdf(infinity) == 1);
}

TEST_CASE("the normal quantile agrees with the check values of its paper") {
    // Wichura, Algorithm AS 241, Applied Statistics 37 (1988): one value for each of its branches.
    CHECK(normal_quantile(0.25) == Approx(-0.6744897501960817).epsilon(1e-15));
    CHECK(normal_quantile(0.001) == Approx(-3.090232306167814).epsilon(1e-15));
    CHECK(normal_quantile(1e-20) == Approx(-9.262340089798408).epsilon(1e-15));
}

TEST_CASE("the normal quantile undoes the distribution far into both tails") {
    for (double x = -8; x <= 5; x += 0.125) {
        CAPTURE(x);
        CHECK(normal_quantile(normal_cdf(x)) == Approx(x).epsilon(1e-9));
    }
    CHECK(normal_quantile(0) == -infinity);
    CHECK(normal_quantile(1) == infinity);
}

// ---- incomplete beta, Student -------------------------------------------------------------------

TEST_CASE("the incomplete beta function agrees with its closed forms") {
    for (const double x : {0.001, 0.1, 0.37, 0.5, 0.8, 0.999}) {
        CAPTURE(x);
        for (const double a : {0.3, 1.0, 2.0, 17.5}) {
            CAPTURE(a);
            CHECK(incomplete_beta(a, 1, x) == Approx(std::pow(x, a)).epsilon(1e-12));
            CHECK(incomplete_beta(1, a, x) == Approx(1 - std::pow(1 - x, a)).epsilon(1e-12));
        }
        CHECK(incomplete_beta(2, 2, x) == Approx(x * x * (3 - 2 * x)).epsilon(1e-12));
        const double arcsine = std::asin(std::sqrt(x)) / std::acos(0.0);
        CHECK(incomplete_beta(0.5, 0.5, x) == Approx(arcsine).epsilon(1e-12));
    }
}

TEST_CASE("Student's quantiles agree with the printed table") {
    // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
    const struct { double df, p90, p95, p975, p99, p995; } table[] = {
        {1, 3.078, 6.314, 12.706, 31.821, 63.657}, {2, 1.886, 2.920, 4.303, 6.965, 9.925},
        {3, 1.638, 2.353, 3.182, 4.541, 5.841},    {4, 1.533, 2.132, 2.776, 3.747, 4.604},
        {5, 1.476, 2.015, 2.571, 3.365, 4.032},    {10, 1.372, 1.812, 2.228, 2.764, 3.169},
        {30, 1.310, 1.697, 2.042, 2.457, 2.750},   {100, 1.290, 1.660, 1.984, 2.364, 2.626}};
    for (const auto& row : table) {
        CAPTURE(row.df);
        CHECK(rounds_to(student_t_quantile(0.90, row.df), row.p90, 3));
        CHECK(rounds_to(student_t_quantile(0.95, row.df), row.p95, 3));
        CHECK(rounds_to(student_t_quantile(0.975, row.df), row.p975, 3));
        CHECK(rounds_to(student_t_quantile(0.99, row.df), row.p99, 3));
        CHECK(rounds_to(student_t_quantile(0.995, row.df), row.p995, 3));
    }
}

TEST_CASE("Student's quantiles agree with the printed table far into the tail") {
    // Pearson and Hartley, Biometrika Tables for Statisticians, vol. 1, table 12: the bounds of a
    // verdict lie out there.
    const struct {
        double df, p999, p9995;
    } table[] = {{4, 7.173, 8.610},
                 {8, 4.501, 5.041},
                 {10, 4.144, 4.587},
                 {20, 3.552, 3.850},
                 {30, 3.385, 3.646}};
    for (const auto& row : table) {
        CAPTURE(row.df);
        CHECK(rounds_to(student_t_quantile(0.999, row.df), row.p999, 3));
        CHECK(rounds_to(student_t_quantile(0.9995, row.df), row.p9995, 3));
    }
}

TEST_CASE("the chi-square quantile is near its printed table") {
    // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.4, upper 5 % points.
    const struct {
        double df, q;
    } table[] = {{1, 3.841}, {2, 5.991}, {3, 7.815}, {4, 9.488}, {9, 16.919}, {30, 43.773}};
    for (const auto& [df, q] : table) {
        CAPTURE(df);
        CHECK(chi_square_95(df) == Approx(q).epsilon(0.03));
    }
}

// ---- Clopper-Pearson ----------------------------------------------------------------------------

TEST_CASE("Clopper-Pearson bounds agree with the printed tables") {
    // Documenta Geigy, Scientific Tables, 7th edition (1970), exact confidence limits for a
    // proportion, two-sided 95 %, in per cent.
    const struct {
        double hits, trials, lower, upper;
    } table[] = {{0, 10, 0, 30.85},    {1, 10, 0.25, 44.50},   {5, 10, 18.71, 81.29},
                 {1, 100, 0.03, 5.45}, {10, 100, 4.90, 17.62}, {50, 100, 39.83, 60.17},
                 {10, 10, 69.15, 100}};
    for (const auto& row : table) {
        CAPTURE(row.hits);
        CAPTURE(row.trials);
        CHECK(rounds_to(100 * clopper_pearson_lower(row.hits, row.trials, 0.025), row.lower, 2));
        CHECK(rounds_to(100 * clopper_pearson_upper(row.hits, row.trials, 0.025), row.upper, 2));
    }
}

TEST_CASE("at a Clopper-Pearson bound the observation is exactly as unlikely as asked") {
    for (const int n : {12, 150})
        for (const int k : {1, 5, n - 2}) {
            CAPTURE(n);
            CAPTURE(k);
            const double upper = clopper_pearson_upper(k, n, 0.02);
            const double lower = clopper_pearson_lower(k, n, 0.02);
            CHECK(binomial_cdf(k, n, upper) == Approx(0.02).epsilon(1e-6));
            CHECK(1 - binomial_cdf(k - 1, n, lower) == Approx(0.02).epsilon(1e-6));
            CHECK(lower < static_cast<double>(k) / n);
            CHECK(upper > static_cast<double>(k) / n);
        }
}

TEST_CASE("Clopper-Pearson bounds move smoothly with fractional counts") {
    double last_lower = 0, last_upper = 0;
    for (double k = 0.25; k < 20; k += 0.25) {
        const double lower = clopper_pearson_lower(k, 20, 0.05),
                     upper = clopper_pearson_upper(k, 20, 0.05);
        CAPTURE(k);
        CHECK(lower > last_lower);
        CHECK(upper > last_upper);
        CHECK(lower < k / 20);
        CHECK(upper > k / 20);
        last_lower = lower;
        last_upper = upper;
    }
    // The same share of fewer effective trials is known less well.
    CHECK(clopper_pearson_upper(2.5, 50, 0.05) > clopper_pearson_upper(5, 100, 0.05));
    CHECK(clopper_pearson_lower(2.5, 50, 0.05) < clopper_pearson_lower(5, 100, 0.05));
}

// ---- Pocock -------------------------------------------------------------------------------------

TEST_CASE("Pocock's constants agree with the published table") {
    // Jennison and Turnbull, Group Sequential Methods (2000), table 2.1, after Pocock, Biometrika
    // 64 (1977): two-sided levels 0.01, 0.05 and 0.10. One side has half the level, since hardly
    // any path crosses both boundaries.
    const struct {
        int analyses;
        double p01, p05, p10;
    } table[] = {{1, 2.576, 1.960, 1.645}, {2, 2.772, 2.178, 1.875}, {3, 2.873, 2.289, 1.992},
                 {4, 2.939, 2.361, 2.067}, {5, 2.986, 2.413, 2.122}, {8, 3.078, 2.512, 2.225},
                 {10, 3.117, 2.555, 2.270}};
    for (const auto& row : table) {
        CAPTURE(row.analyses);
        CHECK(rounds_to(pocock_constant(row.analyses, 0.005), row.p01, 3));
        CHECK(rounds_to(pocock_constant(row.analyses, 0.025), row.p05, 3));
        CHECK(std::fabs(pocock_constant(row.analyses, 0.05) - row.p10) < 0.0011);
    }
}

TEST_CASE("O'Brien and Fleming's constants agree with the published table") {
    // Jennison and Turnbull (2000), table 2.3, four looks: two-sided levels 0.01, 0.05 and 0.10.
    CHECK(rounds_to(early_look_constant(1, 0.005), 2.609, 3));
    CHECK(rounds_to(early_look_constant(1, 0.025), 2.024, 3));
    CHECK(std::fabs(early_look_constant(1, 0.05) - 1.733) < 0.0011);
    // The first quarter is hardly ever over its bound.
    CHECK(early_look_constant(2, 0.05) < early_look_constant(1, 0.05));
    CHECK(early_look_constant(2, 0.05) > early_look_constant(1, 0.05) - 0.005);
}

// ---- quantiles of a sample ----------------------------------------------------------------------

TEST_CASE("a whole number that was computed stays what it is") {
    for (const double x : {0.07 * 100, 1.1 * 100, 1.15 * 100, 0.29 * 100, 1.1 * 1e9}) {
        CAPTURE(x);
        CHECK(rounded_up(x) == std::round(x));
    }
    CHECK(rounded_up(110.01) == 111);
    CHECK(rounded_up(0) == 0);
}

TEST_CASE("quantiles of a small sample agree with their definition") {
    const vector<double> v = {1, 2, 3, 4};
    CHECK(nearest_rank(v, 0.01) == 1);
    CHECK(nearest_rank(v, 0.25) == 1);
    CHECK(nearest_rank(v, 0.26) == 2);
    CHECK(nearest_rank(v, 0.5) == 2);
    CHECK(nearest_rank(v, 0.75) == 3);
    CHECK(nearest_rank(v, 0.999) == 4);
    CHECK(nearest_rank({7}, 0.001) == 7);
    CHECK(nearest_rank({7}, 0.999) == 7);
    CHECK(nearest_rank({1, infinity}, 0.5) == 1);
    CHECK(nearest_rank({1, infinity}, 0.51) == infinity);
}

TEST_CASE("a rank does not jump because q times n is a hair over a whole number") {
    vector<double> one_to_n;
    int awkward = 0, wrong = 0;
    for (int n = 1; n <= 3000; ++n) {
        one_to_n.push_back(n);
        for (int percent = 1; percent < 100; ++percent) {
            const double q = percent / 100.0;
            const int rank = (percent * n + 99) / 100;  // in whole numbers
            awkward += std::ceil(q * n) != rank;
            wrong += nearest_rank(one_to_n, q) != rank;
        }
    }
    CHECK(awkward > 0);  // the question does arise, first at 0.07 * 100
    CHECK(wrong == 0);
    const auto first = [&](int n) {
        return vector<double>(one_to_n.begin(), one_to_n.begin() + n);
    };
    CHECK(nearest_rank(first(10), 0.9) == 9);
    CHECK(nearest_rank(first(20), 0.95) == 19);
    CHECK(nearest_rank(first(300), 0.99) == 297);
    CHECK(nearest_rank(first(100), 0.07) == 7);
    CHECK(nearest_rank(one_to_n, 0.999) == 2997);
}

// ---- moments, design effect ---------------------------------------------------------------------

TEST_CASE("mean and variance of a sample are the textbook's") {
    CHECK(mean_of({1, 2, 3, 10}) == 4);
    CHECK(sample_variance({1, 2, 3, 10}) == Approx(50.0 / 3));
    CHECK(sample_variance({5, 5, 5}) == 0);
    CHECK(std::isnan(mean_of({})));
    CHECK(sample_variance({5}) == 0);
    // A large offset must not eat the variance, as the sum of squares would let it.
    CHECK(sample_variance({1e9 + 1, 1e9 + 2, 1e9 + 3}) == Approx(1));
}

TEST_CASE("bisection finds where a growing function crosses its target") {
    CHECK(bisect(0, 10, 9, [](double x) { return x * x; }) == Approx(3).epsilon(1e-14));
    CHECK(bisect(0, 10, 200, [](double x) { return x * x; }) == Approx(10));
    CHECK(bisect(0, 10, -1, [](double x) { return x * x; }) < 1e-12);
}

namespace {
/// Hits and misses in runs of `run` equal ones, so that only every run-th trial is new.
vector<bool> clustered(generator& g, std::size_t n, std::size_t run, double p) {
    vector<bool> hits;
    bool hit = false;
    for (std::size_t i = 0; i < n; ++i) {
        if (i % run == 0) hit = g.uniform() < p;
        hits.push_back(hit);
    }
    return hits;
}
double mean_design_effect(std::size_t run) {
    generator g(9);
    double sum = 0;
    for (int i = 0; i < 50; ++i) {
        vector<vector<bool>> repeats;
        for (int r = 0; r < 4; ++r) repeats.push_back(clustered(g, 2000, run, 0.1));
        sum += design_effect(repeats) / 50;
    }
    return sum;
}
}  // namespace

TEST_CASE("the design effect of independent trials is about one") {
    CHECK(mean_design_effect(1) > 1);  // it is never below one, so its mean lies a little above
    CHECK(mean_design_effect(1) < 1.15);
}

TEST_CASE("the design effect of clustered trials is the length of their clusters") {
    CHECK(mean_design_effect(10) == Approx(10).epsilon(0.15));
    CHECK(mean_design_effect(4) == Approx(4).epsilon(0.15));
}

TEST_CASE("the design effect of one block of failures is large") {
    vector<bool> outage(1000, false);
    for (std::size_t i = 500; i < 550; ++i) outage[i] = true;
    // One batch of 50 has all hits, 19 have none: 50 (1 - p)^2 + 19 * 50 p^2 over 20 p (1 - p).
    CHECK(design_effect({outage}) ==
          Approx((50 * 0.95 * 0.95 + 950 * 0.05 * 0.05) / (20 * 0.05 * 0.95)));
}

TEST_CASE("the design effect is one where there is nothing to learn it from") {
    CHECK(design_effect({}) == 1);
    CHECK(design_effect({vector<bool>(500, false)}) == 1);
    CHECK(design_effect({vector<bool>(500, true)}) == 1);
    CHECK(design_effect({{true, false, true, false}}) == 1);  // too few for two batches of five
    vector<bool> alternating;
    for (int i = 0; i < 1000; ++i) alternating.push_back(i % 2 == 0);
    CHECK(design_effect({alternating}) == 1);  // steadier than chance counts as chance
}
