// the simulated server as a target
#pragma once

#include "api/target.hpp"
#include "api/text.hpp"
#include "api/units.hpp"

namespace llmbench {
inline namespace v1 {

/// Memory for attention keys and values. A token takes 2 x layers x kv_heads x head_size x
/// bytes_per_value bytes.
struct kv_cache {
    types::whole layers = 32;
    types::whole kv_heads = 8;
    types::whole head_size = 128;
    types::whole bytes_per_value = 2;
    double memory_bytes = 16e9;
    types::whole block_tokens = 16;  ///< of the prefix cache, which keeps whole blocks
};

/// Faults of the simulated server, off by default.
struct engine_faults {
    time_span delay{};            ///< added to every answer's first byte
    fraction error_rate{};        ///< fraction of requests answered with HTTP 500
    fraction reset_rate{};        ///< fraction of answers cut by a reset after the first content
    fraction stall_rate{};        ///< fraction of answers without further bytes after it
    fraction garbage_rate{};      ///< fraction of answers that continue with bytes that are no HTTP
    fraction wrong_answers{};     ///< of the questions it could answer; always the same ones
    fraction wrong_in_batch{};    ///< the same for those in a batch with others
    types::whole stop_after = 0;  ///< the server ends after so many requests; 0: never
    /// Its metrics restart after so many requests, as after a server's restart; 0: never.
    types::whole restart_after = 0;
    bool metrics_hang = false;  ///< its metrics page is never answered
    bool leaks_slots = false;   ///< a running request whose client leaves keeps its slot
    fraction forgets{};           ///< fraction of requests whose previous response is unknown
    bool ignores_history = false;  ///< previous_response_id means nothing to it
};

/// The simulated server's engine: continuous batching in steps. A step takes `decode_step +
/// step_per_sequence * running + prefill_per_token * prompt tokens`, and gives every running
/// sequence its next token.
struct in_llmbench_simulated_hpp::engine {
    types::whole slots = 32;  ///< maximum of running sequences
    time_span decode_step = time_span::from_seconds(0.012);
    time_span step_per_sequence = time_span::from_seconds(0.0001);
    time_span prefill_per_token = time_span::from_seconds(0.00006);
    types::whole prefill_budget = 2048;  ///< tokens a step, running sequences included
    bool chunked_prefill = true;   ///< false: whole prompts only; one over the budget gets HTTP 400
    bool static_batching = false;  ///< true: a new batch starts when the old one has ended
    types::whole queue_limit = 0;  ///< maximum of waiting requests, HTTP 429 beyond; 0: no limit
    types::whole max_model_len = 32768;  ///< prompt + output tokens of one request
    kv_cache kv{};
    bool prefix_cache = true;  ///< shared starts of prompts are not computed again
    types::whole keeps_responses = 10000;  ///< the last ones that it stores; older are unknown
    types::whole tokens_per_event = 1;   ///< speculative decoding: tokens a sequence gains a step
    fraction reasoning{};                ///< fraction of an answer's tokens, at its start
    /// Time to answer POST /v1/load_lora_adapter; no step begins meanwhile.
    time_span adapter_load{};
    double jitter = 0.02;                ///< relative standard deviation of a step's time
    types::whole seed = 1;
    engine_faults faults{};
};
namespace detail {
/// If this is not found, the file with LLMBENCH_MAIN or LLMBENCH_IMPLEMENT lacks the header in the
/// name.
extern const extension* const include_llmbench_simulated_hpp_where_LLMBENCH_MAIN_is;
}  // namespace detail

struct simulated_server {
    engine settings{};
    operator any_target() const {
        return detail::extension_value{
            detail::box::make(settings),
            detail::include_llmbench_simulated_hpp_where_LLMBENCH_MAIN_is};
    }
};
/// The built-in server with a model of its compute. A load on it runs in virtual time, without
/// waiting, and repeats exactly; beside a baseline or setting that is not simulated, and in
/// serve_simulated(), it uses real sockets.
inline simulated_server simulated(const engine& e = {}) { return {e}; }

/// Serves the simulated engine on 127.0.0.1 until SIGINT or SIGTERM; port 0 takes a free one.
/// Prints its URL to standard output. Returns 0, or 1 if the port is not available.
int serve_simulated(const engine& e, int port)
    asm("include_llmbench_simulated_hpp_where_LLMBENCH_MAIN_is_to_serve_it");

}  // inline namespace v1
}  // namespace llmbench
