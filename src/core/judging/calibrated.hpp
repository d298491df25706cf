// what a calibration finds
#pragma once

#include "api/slo.hpp"
#include "core/base/statistics.hpp"

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What a calibration says of one limit.
struct calibrated {
    slo what{};
    double estimate = not_a_number, sd = not_a_number;  // sd of the log statistic between repeats
    double headroom_sd = not_a_number;                  // distance to the limit in such sd
    double to_write = not_a_number;  // a limit that would seldom be inconclusive
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
