// Engines whose capacity is known, and loads that are searched on them.
#pragma once

#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "llmbench_capacity.hpp"

namespace live {

/// An answer takes ten steps; with more users than slots they wait, in proportion.
inline engine engine_with(long long slots) {
    engine e = engine_of(20_ms);
    e.slots = slots;
    return e;
}
inline scenario load_on(const engine& e, const char* name) {
    scenario s = quick_scenario(simulated(e));
    s.name = name;
    s.workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(10)};
    s.warmup = 0;
    s.requests = 20;
    s.duration = 1_s;
    return s;
}
inline scenario users_on(const engine& e, const char* name) {
    scenario s = load_on(e, name);
    s.arrivals = closed_loop(up_to(40));
    s.slos = {p50(ttft) <= 150_ms};
    return s;
}

}  // namespace live
