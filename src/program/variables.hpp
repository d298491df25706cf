// options that are read from the environment
#pragma once

#include "program/values.hpp"

#include <cstdlib>  // setenv
#include <string>

namespace llmbench_program {

/// Sets a variable for this program, and for the servers that it starts.
inline void set_variable(const char* name, const std::string& value) {
    if (!value.empty()) ::setenv(name, value.c_str(), 1);
}
inline void set_inconclusive(const std::string& value) {
    if (!value.empty() && value != "warn" && value != "fail" && value != "skip")
        given{"--inconclusive", value}.refuse_as("warn, fail or skip");
    set_variable("LLMBENCH_INCONCLUSIVE", value);
}

}  // namespace llmbench_program
