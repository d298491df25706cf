// an engine with a measured server's pace
#pragma once

#include "api/target.hpp"
#include "api/units.hpp"
#include "extensions/simulated/api.hpp"
#include "extensions/simulated/core/engine_model.hpp"

#include <algorithm>  // clamp, max, min
#include <cmath>  // ceil

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A server's mean pace under a load: seconds, tokens of a request, requests a second.
struct measured_pace {
    double ttft = 0, tpot = 0, e2e = 0;
    double queue_time = -1;  // from the server's metrics; below 0: unknown
    double itl_spread = 0;   // p90 over p50, less 1
    double prompt_tokens = 0, output_tokens = 0, requests_a_second = 0;
};

/// An engine that is about as fast under that load. The cost of each running sequence is the same
/// share as in the default engine, because one load does not show it. First-token time that prompts
/// cannot explain, because they would fill most steps, delays every answer.
inline engine engine_at_pace(const measured_pace& m) {
    constexpr double max_prefill = 0.6, little_prefill = 0.05;  // of all steps
    constexpr double max_running = 1e5;  // a file may have any value
    engine e;
    const double sequence_fraction = e.step_per_sequence.seconds() / e.decode_step.seconds();
    const double waited_s = std::max(0.0, m.queue_time);
    const double running =
        std::clamp(m.requests_a_second * std::max(0.0, m.e2e - waited_s), 1.0, max_running);
    // A request is read in one step. An unknown wait is half of another step, if one was running.
    const double unreported = m.queue_time < 0 ? 0.5 * std::min(1.0, running - 1) : 0;
    const double prompt_s = std::max(0.0, m.ttft - waited_s - m.tpot * (1 + unreported));
    const double rate = std::max(m.requests_a_second, 1e-9);
    const double computed_s = std::min(prompt_s, max_prefill / rate);
    const double prefill_fraction = computed_s * rate;
    const double step_s = m.tpot * (1 - prefill_fraction) / (1 + sequence_fraction * running);
    e.decode_step = time_span::from_seconds(step_s);
    e.step_per_sequence = time_span::from_seconds(step_s * sequence_fraction);
    e.prefill_per_token = time_span::from_seconds(computed_s / std::max(1.0, m.prompt_tokens));
    e.faults.delay = time_span::from_seconds(prompt_s - computed_s);
    // With few prompts in between, gaps vary as steps do.
    if (prefill_fraction < little_prefill) e.jitter = std::min(0.5, m.itl_spread / 1.2816);
    e.slots = std::max<long long>(e.slots, static_cast<long long>(std::ceil(4 * running)));
    const double bytes_a_token = e.kv.memory_bytes / kv_capacity_tokens(e.kv);
    const double tokens = 4 * running * (m.prompt_tokens + m.output_tokens);
    e.kv.memory_bytes = std::max(e.kv.memory_bytes, bytes_a_token * tokens);
    e.max_model_len = 1 << 20;  // the measured server accepted the requests
    return e;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
