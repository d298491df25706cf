// profiles of failed gates
#pragma once

#include "api/text.hpp"
#include "api/units.hpp"

namespace llmbench {
inline namespace v0 {

/// `.on_fail = profile{}`: when an objective is missed, the gate asks the server for a profile of a
/// few seconds of the same load, after the measurement. It sends POST /start_profile and
/// /stop_profile: SGLang always has them, vLLM if started with VLLM_TORCH_PROFILER_DIR or
/// --profiler-config. Shell commands (both or none) replace them, with the server's URL as `{url}`
/// and LLMBENCH_URL; processes that they leave are ended after `stop`. `start` has 30 s, `stop` 60
/// s. A profile that fails changes no verdict; reports say why there is none.
struct profile {
    types::text start{};
    types::text stop{};
    time_span duration = time_span::from_seconds(5);  ///< above 0, at most 60 s
};

}  // inline namespace v0
}  // namespace llmbench
