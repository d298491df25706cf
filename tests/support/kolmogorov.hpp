// The Kolmogorov-Smirnov test, for samples of the generators and of the schedules.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

/// The greatest distance between the distribution function `cdf` and that of the sample, times the
/// root of the sample's size. Samples of `cdf` itself exceed 1.95 once in a thousand times (the
/// limit law of Kolmogorov, 1933; tabulated by Smirnov, 1948). Our seeds are fixed, so a test that
/// passes once passes always.
template <class Cdf>
double kolmogorov_distance(llmbench::detail::vector<double> sample, Cdf&& cdf) {
    std::sort(sample.begin(), sample.end());
    const double n = static_cast<double>(sample.size());
    double worst = 0;
    for (std::size_t i = 0; i < sample.size(); ++i) {
        const double expected = cdf(sample[i]);
        const double below = static_cast<double>(i) / n, upto = static_cast<double>(i + 1) / n;
        worst = std::max({worst, expected - below, upto - expected});
    }
    return worst * std::sqrt(n);
}
inline constexpr double kolmogorov_bound = 1.95;

inline double exponential_cdf(double x) { return x > 0 ? 1 - std::exp(-x) : 0; }

/// Gamma distribution of shape 1/2 and scale 1: half the square of a normal variable.
inline double gamma_half_cdf(double x) { return x > 0 ? std::erf(std::sqrt(x)) : 0; }

/// Gamma distribution of a whole shape and scale 1: the time of the shape-th Poisson event.
inline double erlang_cdf(int shape, double x) {
    if (x <= 0) return 0;
    double term = 1, sum = 1;
    for (int k = 1; k < shape; ++k) sum += term *= x / k;
    return 1 - std::exp(-x) * sum;
}
