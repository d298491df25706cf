// statistics
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // max, min, sort
#include <cmath>  // ceil, erfc, sqrt, fabs, log
#include <cstddef>  // size_t
#include <utility>  // swap

namespace llmbench {
inline namespace v1 {
namespace detail {

inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

/// Inverse of the normal distribution: Wichura, AS 241 (PPND16), 1988; about 1e-16 relative.
inline double normal_quantile(double p) {
    if (p <= 0) return -infinity;
    if (p >= 1) return infinity;
    const auto ratio = [](const double (&a)[8], const double (&b)[8], double r) {
        double num = a[7], den = b[7];
        for (int i = 6; i >= 0; --i) { num = num * r + a[i]; den = den * r + b[i]; }
        return num / den;
    };
    static constexpr double a[8] = {3.3871328727963666080e0, 1.3314166789178437745e+2,
        1.9715909503065514427e+3, 1.3731693765509461125e+4, 4.5921953931549871457e+4,
        6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static constexpr double b[8] = {1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2,
        5.3941960214247511077e+3, 2.1213794301586595867e+4, 3.9307895800092710610e+4,
        2.8729085735721942674e+4, 5.2264952788528545610e+3};
    static constexpr double c[8] = {1.42343711074968357734e0, 4.63033784615654529590e0,
        5.76949722146069140550e0, 3.64784832476320460504e0, 1.27045825245236838258e0,
        2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static constexpr double d[8] = {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0,
        6.89767334985100004550e-1, 1.48103976427480074590e-1, 1.51986665636164571966e-2,
        5.47593808499534494600e-4, 1.05075007164441684324e-9};
    static constexpr double e[8] = {6.65790464350110377720e0, 5.46378491116411436990e0,
        1.78482653991729133580e0, 2.96560571828504891230e-1, 2.65321895265761230930e-2,
        1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static constexpr double f[8] = {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
        1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5,
        1.42151175831644588870e-7, 2.04426310338993978564e-15};
    const double q = p - 0.5;
    if (std::fabs(q) <= 0.425) return q * ratio(a, b, 0.180625 - q * q);
    const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
    const double x = r <= 5 ? ratio(c, d, r - 1.6) : ratio(e, f, r - 5);
    return q < 0 ? -x : x;
}

/// NaN unless the divisor is positive and finite.
inline double quotient(double of, double by) {
    return by > 0 && by < infinity ? of / by : not_a_number;
}

/// ln of the gamma function of x > 0, by Stirling's series from 10 on (DLMF 5.11.1). std::lgamma is
/// not thread-safe: it writes a global sign.
inline double log_gamma(double x) {
    double below = 1;
    for (; x < 10; ++x) below *= x;
    const double r = 1 / (x * x);
    const double series =
        (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r * (1.0 / 1188 -
         r * (691.0 / 360360 - r / 156)))))) / x;
    return (x - 0.5) * std::log(x) - x + 0.91893853320467274178 + series - std::log(below);
}

/// Regularised incomplete beta function I_x(a, b) by its continued fraction (DLMF 8.17.22),
/// evaluated with the modified Lentz method.
inline double incomplete_beta(double a, double b, double x) {
    if (!(x > 0)) return 0;
    if (x >= 1) return 1;
    // The fraction converges fast below the mean; above it the symmetric form does.
    if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
    const double front = std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) +
                                  a * std::log(x) + b * std::log1p(-x)) / a;
    constexpr double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (std::fabs(d) < tiny ? tiny : d);
    double h = d;
    for (int m = 1; m <= 10000; ++m) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double change = 1;
        for (const double step : {even, odd}) {
            d = 1 + step * d;
            d = 1 / (std::fabs(d) < tiny ? tiny : d);
            c = 1 + step / c;
            if (std::fabs(c) < tiny) c = tiny;
            change = c * d;
            h *= change;
        }
        if (std::fabs(change - 1) < 1e-15) break;
    }
    return front * h;
}

/// The x in [low, high] where a growing function crosses `target`.
template <class F>
double bisect(double low, double high, double target, F&& f) {
    for (int i = 0; i < 200 && low < high; ++i) {
        const double mid = low + (high - low) / 2;
        if (mid <= low || mid >= high) break;
        (f(mid) < target ? low : high) = mid;
    }
    return low + (high - low) / 2;
}

inline double student_t_cdf(double t, double df) {
    const double tail = 0.5 * incomplete_beta(df / 2, 0.5, df / (df + t * t));
    return t > 0 ? 1 - tail : tail;
}
inline double student_t_quantile(double p, double df) {
    if (p == 0.5) return 0;
    if (p < 0.5) return -student_t_quantile(1 - p, df);
    double high = 2;
    while (student_t_cdf(high, df) < p && high < 1e15) high *= 2;
    return bisect(0, high, p, [&](double t) { return student_t_cdf(t, df); });
}

/// The chi-square quantile at the normal score z, within 3 % above the median (Wilson and Hilferty
/// 1931); too small below it.
inline double chi_square_quantile(double z, double df) {
    const double spread = 2 / (9 * df);
    return df * std::pow(1 - spread + z * std::sqrt(spread), 3);
}
/// The quantile of 1 %, which is too low below 5 degrees of freedom, and 0 for one.
inline double chi_square_1(double df) {
    return std::max(0.0, chi_square_quantile(-2.3263, df));
}
inline double chi_square_95(double df) { return chi_square_quantile(1.6449, df); }
/// The quantile of 20 %, within 1 % from 9 degrees of freedom on.
inline double chi_square_20(double df) { return chi_square_quantile(-0.8416, df); }

/// One-sided Clopper-Pearson (1934) bounds of a fraction after k hits in n trials, each at error
/// level alpha. k and n may be fractional (counts divided by a design effect).
inline double clopper_pearson_upper(double k, double n, double alpha) {
    if (k >= n) return 1;
    return bisect(0, 1, 1 - alpha, [&](double p) { return incomplete_beta(k + 1, n - k, p); });
}
inline double clopper_pearson_lower(double k, double n, double alpha) {
    if (k <= 0) return 0;
    return bisect(0, 1, alpha, [&](double p) { return incomplete_beta(k, n - k + 1, p); });
}

/// Rounds to an integer but ignores binary errors: 0.07 * 100 is slightly over 7, and 1.1 * 100
/// over 110.
inline double rounded_up(double x) { return std::ceil(x - 1e-10 * std::fabs(x)); }

/// Inverse of the empirical CDF: the index of the smallest of `size` values with at least a
/// fraction q of them at or below it.
inline std::size_t nearest_rank_of(std::size_t size, double q) {
    const double n = static_cast<double>(size);
    return static_cast<std::size_t>(std::min(std::max(rounded_up(q * n), 1.0), n) - 1);
}
/// The indices of numbers in rising order, of equal ones in their own order.
template <class Number>
vector<std::size_t> order_of(const vector<Number>& numbers) {
    vector<std::size_t> order(numbers.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return numbers[a] != numbers[b] ? numbers[a] < numbers[b] : a < b;
    });
    return order;
}
/// Sorts items by a whole number of each, equal ones in their own order. Only the numbers are
/// compared, since a sort compiled for each type of large items is much machine code.
template <class Items, class Key>
void sort_by(Items& items, Key&& key) {
    vector<long long> keys;
    for (const auto& item : items) keys.push_back(static_cast<long long>(key(item)));
    const vector<std::size_t> order = order_of(keys);
    for (std::size_t i = 0; i < order.size(); ++i) {
        std::size_t from = order[i];
        while (from < i) from = order[from];  // where a swap has put it
        if (from != i) std::swap(items[i], items[from]);
    }
}

/// The value at that index. `sorted` must not be empty.
inline double nearest_rank(const vector<double>& sorted, double q) {
    return sorted[nearest_rank_of(sorted.size(), q)];
}

inline double mean_of(const vector<double>& v) {
    double sum = 0;
    for (const double x : v) sum += x;
    return v.empty() ? not_a_number : sum / static_cast<double>(v.size());
}
/// Of pairs of a value and its weight; pairs without either are skipped.
template <class Pairs>
double weighted_mean(const Pairs& pairs) {
    double sum = 0, weights = 0;
    for (const auto& [value, weight] : pairs) {
        if (std::isnan(value) || !(weight > 0)) continue;
        sum += value * weight;
        weights += weight;
    }
    return weights > 0 ? sum / weights : not_a_number;
}
inline double sample_variance(const vector<double>& v) {
    if (v.size() < 2) return 0;
    const double m = mean_of(v);
    double sum = 0;
    for (const double x : v) sum += (x - m) * (x - m);
    return sum / static_cast<double>(v.size() - 1);
}

/// How much more a fraction varies than with independent trials: the variance of batch sums in
/// arrival order over the binomial one, at least 1 (Kish's design effect from batch means).
inline double design_effect(const vector<vector<bool>>& repeats, std::size_t most_batches = 20) {
    double hits = 0, trials = 0;
    for (const auto& r : repeats)
        for (const bool hit : r) { hits += hit; ++trials; }
    if (hits == 0 || hits == trials) return 1;
    const double p = hits / trials;
    double squares = 0, expected = 0;
    for (const auto& r : repeats) {
        const std::size_t count = std::min(most_batches, r.size() / 5);
        if (count < 2) continue;
        for (std::size_t b = 0; b < count; ++b) {
            const std::size_t from = b * r.size() / count, to = (b + 1) * r.size() / count;
            const double n = static_cast<double>(to - from);
            double sum = 0;
            for (std::size_t i = from; i < to; ++i) sum += r[i];
            squares += (sum - n * p) * (sum - n * p);
            expected += n * p * (1 - p);
        }
    }
    return expected > 0 ? std::max(1.0, squares / expected) : 1;
}

/// The bound that the score of a random walk of normal steps exceeds with probability alpha at any
/// of its equal parts from `first` to `last`, where the bound after n of them is scale(n) times it:
/// one-sided, by the recursive integration of Armitage, McPherson and Rowe (1969).
template <class Scale>
double crossing_constant(int first, int last, double alpha, Scale&& scale) {
    constexpr std::size_t cells = 60;  // of Simpson's rule, for four decimals
    const auto crossed = [&](double c) {
        // The density of paths that stayed below the bound, on a grid up to it.
        const auto grid = [&](int n, std::size_t i) {
            return (-7 + (c * scale(n) + 7) * static_cast<double>(i) / cells) * std::sqrt(n);
        };
        vector<double> weight(cells + 1), next(cells + 1);
        const auto simpson = [&](int n, std::size_t i) {
            return (grid(n, 1) - grid(n, 0)) / 3 * (i == 0 || i == cells ? 1 : i % 2 ? 4 : 2);
        };
        const auto density = [](double x) { return 0.39894228040143268 * std::exp(-x * x / 2); };
        const double spread = std::sqrt(first);
        for (std::size_t i = 0; i <= cells; ++i)
            weight[i] = simpson(first, i) * density(grid(first, i) / spread) / spread;
        double sum = 1 - normal_cdf(c * scale(first));
        for (int n = first + 1; n <= last; ++n) {
            for (std::size_t j = 0; j <= cells; ++j) {
                sum +=
                    weight[j] * (1 - normal_cdf(c * scale(n) * std::sqrt(n) - grid(n - 1, j)));
                next[j] = 0;
                for (std::size_t i = 0; i <= cells; ++i)
                    next[j] += weight[i] * density(grid(n, j) - grid(n - 1, i));
                next[j] *= simpson(n, j);
            }
            weight = next;
        }
        return -sum;
    };
    return bisect(0, 10, -alpha, crossed);
}
/// The same bound at all analyses (Pocock 1977).
inline double pocock_constant(int analyses, double alpha) {
    return crossing_constant(1, analyses, alpha, [](int) { return 1.0; });
}
/// The bound at the end, after looks at quarters from `first` on, whose bounds are higher by one
/// over the root of their part of the whole (O'Brien and Fleming 1979): the end loses little.
inline double early_look_constant(int first, double alpha) {
    return crossing_constant(first, 4, alpha, [](int n) { return std::sqrt(4.0 / n); });
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
