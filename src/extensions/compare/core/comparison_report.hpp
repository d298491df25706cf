// reports of several settings
#pragma once

#include "extensions/compare/core/settings.hpp"

#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A comparison in reports, beside the gates of its settings.
struct comparison_report {
    std::string name{}, file{};
    int line = 0;
    settings_comparison found{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
