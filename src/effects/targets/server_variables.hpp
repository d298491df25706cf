// the variables of the environment for one server
#pragma once

#include "api/result.hpp"
#include "effects/system/environment.hpp"

#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Read once, when the server is named.
struct server_variables {
    const char *url_name = "LLMBENCH_URL", *command_name = "LLMBENCH_SERVER";
    std::string url{}, model{};
    std::string command{};  // that starts it, once in the program
    std::string key{}, baseline_key{};  // LLMBENCH_API_KEY, and the baseline's own
    /// Returns the key in a variable: one of these, or another that a gate names.
    std::string key_in(const std::string& variable) const {
        return variable == "LLMBENCH_API_KEY"            ? key
               : variable == "LLMBENCH_BASELINE_API_KEY" ? baseline_key
                                                         : environment(variable.c_str());
    }
};
inline server_variables variables_of_server(run_variant variant) {
    server_variables v;
    if (variant == run_variant::baseline) {
        v.url_name = "LLMBENCH_BASELINE_URL";
        v.command_name = "LLMBENCH_BASELINE_SERVER";
    }
    v.url = environment(v.url_name);
    v.command = environment(v.command_name);
    v.model = environment("LLMBENCH_MODEL");
    v.key = environment("LLMBENCH_API_KEY");
    v.baseline_key = environment("LLMBENCH_BASELINE_API_KEY");
    return v;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
