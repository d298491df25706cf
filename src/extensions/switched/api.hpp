// servers that have one GPU in turns
#pragma once

#include "api/side_task.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "api/units.hpp"

namespace llmbench {
inline namespace v1 {

namespace detail {
/// If this is not found, the file with LLMBENCH_MAIN or LLMBENCH_IMPLEMENT lacks the header in the
/// name.
extern const extension* const include_llmbench_switched_hpp_where_LLMBENCH_MAIN_is;
}  // namespace detail

/// The requests by which a server leaves its GPU to another one, and takes it back.
struct sleep_requests {
    types::list<task_step> sleep{}, wake{};  ///< post()s, in this order
    types::text state{};  ///< a path whose GET answers {"is_sleeping": true}; "": nothing tells
    types::whole level = 1;  ///< of vllm_sleep(): 1 or 2
};
/// vLLM with --enable-sleep-mode and VLLM_SERVER_DEV_MODE=1. Level 1 keeps the weights in main
/// memory; level 2 drops them, and a wake reads them again from the disk.
inline sleep_requests vllm_sleep(types::whole level) {
    if (level != 2)
        return {{post("/sleep?level=1")}, {post("/wake_up")}, "/is_sleeping", level};
    return {{post("/sleep?level=2")},
            {post("/wake_up?tags=weights"),
             post("/collective_rpc", R"({"method": "reload_weights"})"),
             post("/wake_up?tags=kv_cache")},
            "/is_sleeping",
            level};
}
/// SGLang with --enable-memory-saver. It does not tell whether it sleeps: see
/// switch_options::is_asleep.
inline sleep_requests sglang_release() {
    return {{post("/release_memory_occupation")}, {post("/resume_memory_occupation")}, {}};
}

struct switch_options {
    /// Of a process: it is started anew after so many pairs or rounds, 2 to 100, so that its luck
    /// is drawn again; 0: never.
    types::whole restart_every = 0;
    /// The server sleeps when the gate begins. For servers that do not tell.
    bool is_asleep = false;
};

namespace detail {
struct switch_settings {
    sleep_requests how{};
    switch_options options{};
    double within_s = 0;  // for a sleep, and for a wake with its first answer
    bool is_endpoint = false, is_process = false;
};
}  // namespace detail

/// A server that shares one GPU with the others of its gate: a live baseline in turns, or the
/// settings of compare(). Before a server is loaded, the others sleep, it wakes, and it answers a
/// first request; none of this is measured. A sleep or wake that fails, or takes longer than
/// `.ready_within` (of an endpoint without one: 120 s), makes the gate invalid, and all that it had
/// found are woken. A gate that ends otherwise leaves endpoints as it found them. With
/// `otherwise{.same = true}` the server sleeps and wakes before the candidate's loads alone.
///     .target = switched(endpoint{.url = "http://127.0.0.1:8001"}, vllm_sleep(1)),
///     .baseline = switched(endpoint{.url = "http://127.0.0.1:8000"}, vllm_sleep(1)),
inline any_target switched(const any_target& server, const sleep_requests& how,
                           const switch_options& options = {}) {
    const endpoint* const e = server.what().get<endpoint>();
    const process* const p = server.what().get<process>();
    const double ready_s = e ? e->ready_within.seconds() : p ? p->ready_within.seconds() : 0;
    return {server,
            {detail::box::make(detail::switch_settings{how, options, ready_s > 0 ? ready_s : 120,
                                                       e != nullptr, p != nullptr}),
             detail::include_llmbench_switched_hpp_where_LLMBENCH_MAIN_is}};
}
/// By two requests of your own: `switched(server, post("/sleep"), post("/wake_up"))`.
inline any_target switched(const any_target& server, const task_step& sleep, const task_step& wake,
                           const switch_options& options = {}) {
    return switched(server, sleep_requests{{sleep}, {wake}, {}}, options);
}

}  // inline namespace v1
}  // namespace llmbench
