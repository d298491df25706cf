// the variables of the environment for one server
#pragma once

#include "api/result.hpp"
#include "effects/system/environment.hpp"

#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Read once, when the server is named. A key is read where it is sent.
struct server_variables {
    const char *url_name = "LLMBENCH_URL", *command_name = "LLMBENCH_SERVER";
    std::string url{}, model{};
    std::string command{};  // that starts it, once in the program
    bool has_key = false, has_baseline_key = false;  // LLMBENCH_API_KEY, and the baseline's own
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
    v.has_key = !environment("LLMBENCH_API_KEY").empty();
    v.has_baseline_key = !environment("LLMBENCH_BASELINE_API_KEY").empty();
    return v;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
