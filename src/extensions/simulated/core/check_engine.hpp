// checks of the simulated server's settings
#pragma once

#include "api/target.hpp"
#include "core/base/text.hpp"
#include "extensions/simulated/api.hpp"

#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Throws std::invalid_argument with the field and the allowed values. A step must take time, or
/// time would not advance.
inline void check_engine(const engine& e) {
    const auto number = [](const char* field, double v, double least, double most,
                           const char* unit = "") {
        if (!(v >= least && v <= most))  // refuses NaN, too
            refuse({"engine.", field, printed(" is %g%s: from %g to %g%s is allowed", v, unit,
                                              least, most, unit)});
    };
    const auto seconds = [&](const char* field, const time_span& t, double least = 0) {
        number(field, t.seconds(), least, 3600, " s");
    };
    const auto count = [&](const char* field, const types::whole& n, double least,
                           double most = 1e9) {
        number(field, static_cast<double>(static_cast<long long>(n)), least, most);
    };
    count("slots", e.slots, 1);
    seconds("decode_step", e.decode_step, 1e-6);
    seconds("step_per_sequence", e.step_per_sequence);
    seconds("prefill_per_token", e.prefill_per_token);
    count("prefill_budget", e.prefill_budget, 1);
    count("queue_limit", e.queue_limit, 0);
    count("max_model_len", e.max_model_len, 2);
    count("kv.layers", e.kv.layers, 1, 1e6);
    count("kv.kv_heads", e.kv.kv_heads, 1, 1e6);
    count("kv.head_size", e.kv.head_size, 1, 1e6);
    count("kv.bytes_per_value", e.kv.bytes_per_value, 1, 1e6);
    number("kv.memory_bytes", e.kv.memory_bytes, 1, 1e18);
    count("tokens_per_event", e.tokens_per_event, 1, 1e6);
    seconds("adapter_load", e.adapter_load);
    number("jitter", e.jitter, 0, 10);
    number("reasoning", e.reasoning.value, 0, 1);
    seconds("faults.delay", e.faults.delay);
    number("faults.error_rate", e.faults.error_rate.value, 0, 1);
    number("faults.reset_rate", e.faults.reset_rate.value, 0, 1);
    number("faults.stall_rate", e.faults.stall_rate.value, 0, 1);
    number("faults.garbage_rate", e.faults.garbage_rate.value, 0, 1);
    number("faults.wrong_answers", e.faults.wrong_answers.value, 0, 1);
    number("faults.wrong_in_batch", e.faults.wrong_in_batch.value, 0, 1);
    count("faults.stop_after", e.faults.stop_after, 0);
    count("faults.restart_after", e.faults.restart_after, 0);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
