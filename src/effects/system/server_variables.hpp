// the variables of the environment for one server
#pragma once

#include "api/result.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "effects/system/environment.hpp"

#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

struct server_variables {
    const char *url_name = "LLMBENCH_URL", *command_name = "LLMBENCH_SERVER";
    std::string url{}, model{}, api{};
    std::string command{};  // that starts it, once in the program
    std::string key{}, baseline_key{};  // LLMBENCH_API_KEY, and the baseline's own
    std::string named_key{};            // of the variable that the gate names
    const std::string& key_in(const std::string& variable) const {
        return variable == "LLMBENCH_API_KEY"            ? key
               : variable == "LLMBENCH_BASELINE_API_KEY" ? baseline_key
                                                         : named_key;
    }
};
inline server_variables variables_of_server(run_variant variant, const variable_lookup& look_up) {
    server_variables v;
    if (variant == run_variant::baseline) {
        v.url_name = "LLMBENCH_BASELINE_URL";
        v.command_name = "LLMBENCH_BASELINE_SERVER";
    }
    v.url = look_up(v.url_name);
    v.command = look_up(v.command_name);
    v.model = look_up("LLMBENCH_MODEL");
    v.api = look_up("LLMBENCH_API");
    v.key = look_up("LLMBENCH_API_KEY");
    v.baseline_key = look_up("LLMBENCH_BASELINE_API_KEY");
    return v;
}

/// The API of a target, from the gate or else LLMBENCH_API.
inline const api_traits& api_of(const endpoint& e, const server_variables& variables) {
    if (!e.api.own().empty()) {
        const api_traits& own = traits_of(e.api);
        const std::string why = own_api_problem(own);
        if (!why.empty()) refuse({"endpoint.api is refused: ", why});
        return own;
    }
    const api_traits& given = traits_of(e.api);
    const std::string& name = variables.api;
    if (name.empty() || e.api.ours() != openai_chat) return given;
    const api_traits* const api = api_named(name);
    if (api == nullptr)
        refuse({"LLMBENCH_API is \"", printable(name), "\": it is one of ", api_names()});
    return *api;
}

/// The same for any target, before it starts.
inline const api_traits& api_of(const any_target& t, const server_variables& variables) {
    const box& what = t.what();
    if (const auto* e = what.get<endpoint>()) return api_of(*e, variables);
    endpoint at;
    if (const auto* p = what.get<process>()) at.api = p->api;
    return api_of(at, variables);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
