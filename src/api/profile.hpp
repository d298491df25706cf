// profiles of failed gates
#pragma once

#include "api/text.hpp"
#include "api/units.hpp"

namespace llmbench {
inline namespace v0 {

/// `.on_fail = profile{}`: when an objective is shown to be missed, the server is asked for a
/// profile of a few seconds of the same load, after the measurement and outside of it. By HTTP,
/// POST /start_profile and /stop_profile, which vLLM has where it was started with
/// VLLM_TORCH_PROFILER_DIR or --profiler-config, and SGLang always; else by commands of one's own,
/// both or none. They run in a shell, with the server's URL for `{url}` and in LLMBENCH_URL; what
/// they leave running is ended after `stop`. `start` has 30 s, `stop` 60 s. A profile that cannot
/// be had changes no verdict: reports say why there is none.
struct profile {
    types::text start{};
    types::text stop{};
    time_span duration = time_span::from_seconds(5);  ///< of the load, above 0, at most 60 s
};

}  // inline namespace v0
}  // namespace llmbench
