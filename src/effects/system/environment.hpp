// variables of the environment
#pragma once

#include "core/base/vector.hpp"

#include <cstdlib>  // getenv
#include <functional>
#include <string>

#include <unistd.h>  // environ

extern "C" char** environ;  // not declared by every system's headers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Returns the value of a variable, "" if not set.
using variable_lookup = std::function<std::string(const char* name)>;

inline std::string environment(const char* name) {
    const char* v = std::getenv(name);
    return v ? v : "";
}
inline vector<std::string> whole_environment() {
    vector<std::string> all;
    for (char** v = ::environ; v && *v; ++v) all.push_back(*v);
    return all;
}
inline bool means_off(const std::string& v) {
    return v.empty() || v == "0" || v == "false" || v == "no" || v == "off";
}
inline bool is_yes(const std::string& v) {
    return v == "1" || v == "true" || v == "yes" || v == "on";
}

/// Returns what a rehearsal is asked for by, "" if there is none: the server is a model then.
inline std::string rehearsal_asked(const variable_lookup& look_up) {
    const std::string by = look_up("LLMBENCH_REHEARSE");
    return means_off(by) ? "" : by;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
