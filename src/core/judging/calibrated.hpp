// what a calibration tells
#pragma once

#include "api/slo.hpp"
#include "core/base/text.hpp"

#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What a calibration says of one limit.
struct calibrated {
    slo what{};
    double estimate = not_a_number, sd = not_a_number;  // sd of the log statistic between repeats
    double headroom_sd = not_a_number;                  // distance to the limit in such sd
    std::string suggestion{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
