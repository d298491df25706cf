// one repeat and its files, whoever sends it
#pragma once

#include "api/result.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/plan.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/sharing.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/record_files.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/gates/session.hpp"

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Runs one repeat, writes its records and reads the server's metrics meanwhile.
inline repeat_data recorded_repeat(const plan& what, live_target& target, run_arm variant,
                                   int number, int gate, long long deadline_ns,
                                   progress_meter& meter) {
    session& program = session::of_this_program();
    record_writer writer(program.records(), what.name);
    const repeat_parameters parameters{deadline_ns, program.room_for_gaps(), &writer.box(), &meter,
                                       {}, answers_shown_of(environment("LLMBENCH_ANSWERS"))};
    repeat_data d = what.shard.is_whole()
                        ? watched_repeat(what, target, variant, number, gate, parameters)
                        : load_sharing_of_program->sent(what, target, variant, number, gate,
                                                        parameters);
    program.note_gaps(d.gaps.size());
    return d;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
