// side tasks
#pragma once

#include "api/text.hpp"
#include "api/units.hpp"

namespace llmbench {
inline namespace v0 {

/// One thing that is done to the server beside the load: a request, or a command of the machine.
struct task_step {
    types::text path{}, body{};
    types::text line{};  ///< of a command
};
/// POST to a path of the server, with its key: it must be answered with 2xx. `{n}` in the path or
/// the body is how often this step is done, counted from 1 in each repeat.
inline task_step post(const types::text& path, const types::text& body = "{}") {
    return {path, body, {}};
}
/// A line for /bin/sh, which must exit with 0. `{n}` as of post(), `{url}` is the server's, as is
/// LLMBENCH_URL in its environment. What it leaves running is ended with the gate. A simulated
/// server has real sockets then.
inline task_step command(const types::text& line) { return {{}, {}, line}; }

/// Something done under the measured load, at the same offsets in each repeat and arm. A round of
/// its steps that has begun is carried out to its end, if need be after the load.
struct side_task {
    types::text name{};  ///< as in during("adapters"); up to 60 characters, another one for each
    time_span every{};   ///< its steps in turn, one after each `every`; 0: all of them, once
    types::list<task_step> steps{};
    types::maybe<time_span> first{};  ///< after the measured part began; default: `every`
    /// A step that fails makes the gate invalid, as its load was another one; true: it is told.
    bool may_fail = false;
    /// Of a task that hurts: requests that fail within so long of a step are counted apart, in no
    /// error rate and no latency, and the server may restart.
    time_span excuses{};
};

}  // inline namespace v0
}  // namespace llmbench
