// the result of a calibration
#pragma once

#include "api/slo.hpp"
#include "core/base/statistics.hpp"

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The calibration of one limit.
struct calibrated {
    slo what{};
    double estimate = not_a_number, sd = not_a_number;  // sd of the log statistic between repeats
    double headroom_sd = not_a_number;                  // distance to the limit in units of sd
    double to_write = not_a_number;  // a limit that is seldom inconclusive
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
