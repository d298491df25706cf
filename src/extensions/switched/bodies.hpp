// the hooks of switched()
#pragma once

#include "core/base/extension.hpp"
#include "effects/targets/server_switch.hpp"
#include "extensions/switched/api.hpp"
#include "extensions/switched/core/checks.hpp"
#include "extensions/switched/turns.hpp"

#include <memory>  // make_unique, unique_ptr

namespace llmbench {
inline namespace v1 {
namespace detail {

inline std::unique_ptr<server_switch> new_server_in_turns(const box& settings) {
    return std::make_unique<server_in_turns>(*settings.get<switch_settings>());
}
inline constinit const extension servers_in_turns{.name = "switched",
                                                  .new_switch = new_server_in_turns,
                                                  .add_to_plan = check_switches};
constinit const extension* const
    include_llmbench_switched_hpp_where_LLMBENCH_MAIN_is = &servers_in_turns;
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_servers_in_turns() { add(servers_in_turns); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
