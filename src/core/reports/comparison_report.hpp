// what reports tell of several settings
#pragma once

#include "core/comparing/settings.hpp"

#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A comparison as every report shows it, beside the gates of its settings.
struct comparison_report {
    std::string name{}, file{};
    int line = 0;
    settings_comparison found{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
