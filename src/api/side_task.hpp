// side tasks and profiles
#pragma once

#include "api/text.hpp"
#include "api/units.hpp"

#include <initializer_list>  // .steps = {...}

namespace llmbench {
inline namespace v1 {

namespace detail { struct extension; }
/// One step of a side task: a request to the server, or a command of the machine.
struct task_step {
    types::text path{}, body{};
    types::text line{};  ///< of a command
    const detail::extension* by = nullptr;  ///< whose own step it is, which `path` names
};
/// POST to a path of the server, with its key; the answer must be 2xx. `{n}` in the path or the
/// body is the count of this step, from 1 in each repeat.
inline task_step post(const types::text& path, const types::text& body = "{}") {
    return {path, body, {}};
}
/// A line for /bin/sh, which must exit with 0. `{n}` as in post(); `{url}` and LLMBENCH_URL are the
/// server's URL. Processes that it leaves are ended with the gate. A simulated server then has real
/// sockets.
inline task_step command(const types::text& line) { return {{}, {}, line}; }

namespace detail {
template <class T>
struct include_llmbench_faults_hpp;  // which defines it
}  // namespace detail
class task_steps : public types::list<task_step> {
public:
    task_steps() = default;
    template <class Step>
        requires(__is_same(Step, task_step))
    task_steps(std::initializer_list<Step> steps)
        : types::list<task_step>(detail::include_llmbench_faults_hpp<Step>::taken(steps)) {}
    template <class Steps>
        requires requires { typename Steps::allocator_type; }
    task_steps(const Steps& steps)
        : types::list<task_step>(detail::include_llmbench_faults_hpp<Steps>::taken(steps)) {}
};

/// Steps under the measured load, at the same times in each repeat and variant. A round of steps
/// that has begun is finished, even after the load.
struct side_task {
    types::text name{};  ///< as in during("adapters"); up to 60 characters, unique
    time_span every{};   ///< one step after each `every`, in turn; 0: all steps, once
    task_steps steps{};
    types::maybe<time_span> first{};  ///< offset in the measured part; default: `every`
    /// false: a failed step makes the gate invalid, because the load differs; true: it is reported.
    bool may_fail = false;
    /// For a task that disturbs the server: requests that fail within this time of a step count in
    /// no error rate and no latency, and the server may restart.
    time_span excuses{};
};

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

/// A profile, or none.
class any_profile {
public:
    any_profile() = default;
    template <class P>
        requires(__is_same(P, profile))
    any_profile(const P& p)
        : what_(detail::box::make(detail::include_llmbench_faults_hpp<P>::taken(p))) {}
    explicit operator bool() const { return !what_.empty(); }
    const profile& operator*() const { return *what_.get<profile>(); }

private:
    detail::box what_{};
};

}  // inline namespace v1
}  // namespace llmbench
