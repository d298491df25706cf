// one repeat, whoever sends it, and the files that it leaves
#pragma once

#include "api/result.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/plan.hpp"
#include "effects/system/ranks.hpp"
#include "effects/system/settings.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/ranked_repeat.hpp"
#include "effects/gates/record_files.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/gates/session.hpp"
#include "effects/gates/shared_repeat.hpp"

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One repeat: alone, as a shard, or as a rank among others.
inline repeat_data sent_with_others(const plan& what, live_target& target, run_arm arm, int number,
                                    int gate, const repeat_terms& terms) {
    if (what.shard.is_whole()) return watched_repeat(what, target, arm, number, gate, terms);
#ifdef LLMBENCH_WITH_MPI
    if (!rank_group::of_this_program().is_alone())
        return repeat_of_ranks(what, target, arm, number, gate, terms);
#endif
    return repeat_of_shard(what, target, arm, number, gate, terms);
}

/// One repeat, which leaves its records and what the server tells of itself meanwhile.
inline repeat_data recorded_repeat(const plan& what, live_target& target, run_arm arm, int number,
                                   int gate, long long deadline_ns, progress_meter& meter) {
    session& program = session::of_this_program();
    record_writer writer(program.records(), what.name);
    const repeat_terms terms{deadline_ns, program.room_for_gaps(), &writer.box(), &meter, {},
                             answers_shown_of(environment("LLMBENCH_ANSWERS"))};
    repeat_data d = sent_with_others(what, target, arm, number, gate, terms);
    program.note_gaps(d.gaps.size());
    return d;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
