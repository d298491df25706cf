// functions of simulated() in the implementation
#pragma once

#include "core/base/extension.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/console.hpp"
#include "effects/system/signals.hpp"
#include "extensions/simulated/api.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "extensions/simulated/host.hpp"
#include "extensions/simulated/target.hpp"

#include <iostream>  // cerr
#include <exception>

namespace llmbench {
inline namespace v1 {
namespace detail {

constinit const extension* const
    include_llmbench_simulated_hpp_where_LLMBENCH_MAIN_is = &simulated_servers;

}  // namespace detail

int serve_simulated(const engine& e, int port) {
    const detail::interrupt_guard signals;
    try {
        detail::check_engine(e);
        const detail::simulated_host host(e, port);
        detail::say("listening on " + host.url() + "\n");
        while (!detail::stop_asked.load()) detail::sleep_s(0.05);
    } catch (const std::exception& error) {
        std::cerr << "llmbench: cannot serve on port " << std::to_string(port) << ": "
                  << error.what() << "\n";
        return 1;
    }
    return 0;
}

}  // inline namespace v1
}  // namespace llmbench
