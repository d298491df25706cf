// the directory of reports
#pragma once

#include "effects/system/environment.hpp"
#include "effects/system/sharing.hpp"

#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A rehearsal's are apart from those of a measured run, which its model may be fitted to.
inline std::string report_directory_of(const variable_lookup& look_up) {
    if (const std::string d = look_up("LLMBENCH_REPORT_DIR"); !d.empty()) return d;
    return rehearsal_asked(look_up).empty() ? "llmbench-report" : "llmbench-rehearsal";
}
/// Of this program, with the logs of servers that it started; read once. Each rank has its records.
inline const std::string& report_directory() {
    // Never destroyed: reports may be written after static objects are gone.
    static const std::string* const found = [] {
        const int rank = rank_of_program();
        return new std::string(report_directory_of(environment) +
                               (rank > 0 ? "/rank-" + std::to_string(rank) : ""));
    }();
    return *found;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
