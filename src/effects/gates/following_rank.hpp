// what another rank than the first does of a gate
#pragma once

#include "api/result.hpp"
#include "core/traffic/plan.hpp"
#include "core/capacity/searched.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/ranks.hpp"
#include "effects/gates/gate_servers.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/ranked_repeat.hpp"
#include "effects/gates/recorded_repeat.hpp"
#include "effects/gates/session.hpp"

#include <exception>
#include <string>

#ifdef LLMBENCH_WITH_MPI
namespace llmbench {
inline namespace v0 {
namespace detail {

/// Sends its part of each repeat, until the gate is over. What went wrong with one is rank 0's to
/// tell.
inline void follow_rank_0(const plan& p, gate_servers& servers, progress_meter& meter) {
    rank_group& ranks = rank_group::of_this_program();
    for (;;) {
        const rank_command c = command_of(ranks.heard(std::string(), 10 * ranks.wait_s()));
        if (c.is_over) return;
        const plan what = c.load > 0 ? at_load(p, c.load, c.answer_s) : plan_of_repeat(p, c.slot);
        const long long deadline_ns = c.left_s > 0 ? now_ns() + ns_of(c.left_s) : 0;
        try {
            recorded_repeat(plan_of_arm(what, c.arm), servers.on(c.arm), c.arm, c.number,
                            session::of_this_program().running_gate(), deadline_ns, meter);
        } catch (const std::exception&) {
            // Rank 0 has heard of it.
        }
    }
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
#endif
