// the simulated server's settings as text
#pragma once

#include "core/base/text.hpp"
#include "extensions/simulated/api.hpp"

#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// All settings that its speed depends on, except seed and faults.
inline std::string engine_text(const engine& e) {
    return printed("simulated, %lld slots, steps of %g s + %g s a sequence + %g s a prompt token, "
                   "%lld tokens a step, ", static_cast<long long>(e.slots), e.decode_step.seconds(),
                   e.step_per_sequence.seconds(), e.prefill_per_token.seconds(),
                   static_cast<long long>(e.prefill_budget)) +
           printed("%s%s%s%lld tokens an event, jitter %g",
                   e.chunked_prefill ? "" : "whole prompts, ",
                   e.static_batching ? "static batches, " : "",
                   e.prefix_cache ? "" : "no prefix cache, ",
                   static_cast<long long>(e.tokens_per_event), e.jitter);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
