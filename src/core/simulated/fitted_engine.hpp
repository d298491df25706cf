// an engine with the pace of a server that was measured
#pragma once

#include "api/target.hpp"
#include "api/units.hpp"
#include "core/simulated/engine_model.hpp"

#include <algorithm>  // clamp, max, min
#include <cmath>  // ceil

namespace llmbench {
inline namespace v0 {
namespace detail {

/// How a server answered a load on the average: seconds, tokens of a request, requests a second.
struct measured_pace {
    double ttft = 0, tpot = 0, e2e = 0;
    double queue_time = -1;  // by the server's own page; below 0: it tells none
    double itl_spread = 0;   // p90 over p50, less 1
    double prompt_tokens = 0, output_tokens = 0, requests_a_second = 0;
};

/// Under that load the engine answers about as fast. What each running sequence adds to a step is
/// the share that it is of the default engine, as one load does not tell it. What of a first
/// token's time prompts cannot have taken, as they would fill most steps, delays every answer.
inline engine engine_at_pace(const measured_pace& m) {
    constexpr double most_prefill = 0.6, little_prefill = 0.05;  // of all steps
    constexpr double most_running = 1e5;  // a file may say anything
    engine e;
    const double sequence_fraction = e.step_per_sequence.seconds() / e.decode_step.seconds();
    const double waited_s = std::max(0.0, m.queue_time);
    const double running =
        std::clamp(m.requests_a_second * std::max(0.0, m.e2e - waited_s), 1.0, most_running);
    // A request is read in one step. Who does not tell what it waited waited for half of another,
    // where one was running.
    const double unreported = m.queue_time < 0 ? 0.5 * std::min(1.0, running - 1) : 0;
    const double prompt_s = std::max(0.0, m.ttft - waited_s - m.tpot * (1 + unreported));
    const double rate = std::max(m.requests_a_second, 1e-9);
    const double computed_s = std::min(prompt_s, most_prefill / rate);
    const double prefill_fraction = computed_s * rate;
    const double step_s = m.tpot * (1 - prefill_fraction) / (1 + sequence_fraction * running);
    e.decode_step = time_span::from_seconds(step_s);
    e.step_per_sequence = time_span::from_seconds(step_s * sequence_fraction);
    e.prefill_per_token = time_span::from_seconds(computed_s / std::max(1.0, m.prompt_tokens));
    e.faults.delay = time_span::from_seconds(prompt_s - computed_s);
    // Where prompts hardly come between them, gaps differ as steps do.
    if (prefill_fraction < little_prefill) e.jitter = std::min(0.5, m.itl_spread / 1.2816);
    e.slots = std::max<long long>(e.slots, static_cast<long long>(std::ceil(4 * running)));
    const double bytes_a_token = e.kv.memory_bytes / kv_capacity_tokens(e.kv);
    const double tokens = 4 * running * (m.prompt_tokens + m.output_tokens);
    e.kv.memory_bytes = std::max(e.kv.memory_bytes, bytes_a_token * tokens);
    e.max_model_len = 1 << 20;  // the server that was measured took what was asked
    return e;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
