// points and round steps of drawings
#pragma once

#include <cmath>  // floor, log10, pow

namespace llmbench {
inline namespace v0 {
namespace detail {

struct curve_point {
    double x = 0, y = 0;
};

/// 1, 2 or 5 times a power of ten, at least `least`.
inline double round_step(double least) {
    const double power = std::pow(10, std::floor(std::log10(least)));
    for (const double digit : {1.0, 2.0, 5.0})
        if (digit * power >= least * (1 - 1e-9)) return digit * power;
    return 10 * power;
}
/// The smallest step of at least `least` seconds that reads well on a time axis.
inline double elapsed_step(double least) {
    for (const double step : {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0,
                              600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14400.0})
        if (step >= least) return step;
    return round_step(least);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
