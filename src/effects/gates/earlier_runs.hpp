// what a gate is compared with, if an earlier run measured it
#pragma once

#include "core/base/extension.hpp"
#include "core/base/text.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/planning/target_facts.hpp"
#include "core/stored/stored.hpp"
#include "core/bodies/result_data.hpp"
#include "effects/system/sharing.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/program_reports.hpp"
#include "effects/gates/run_mode.hpp"
#include "effects/gates/session.hpp"

#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Refuses a baseline that could not be written after the load.
inline void check_own_file(const plan& p, const run_mode& mode) {
    if (mode.kind != run_kind::write_baseline) return;
    const std::string file = str(p.judged->stored.file);
    check_writable(file);
    check_own_baseline(file, p.name,
                       session::of_this_program().with_reports(
                           [&](program_reports& r) { return r.baseline_in(file); }));
}
/// Adds what an extension knows of earlier runs, and a stored baseline. Refuses one that is not
/// comparable with this run.
inline void add_earlier_runs(measured_gate& m, const live_target& candidate,
                             const run_mode& mode) {
    const plan& p = m.what;
    const bool judges = rank_of_program() == 0;
    if (const extension* const by = mode.past_of(p); by && judges) {
        m.past = by->past_of(p, candidate, m.target, mode);
        m.judged_by.past = m.past->judge();
    }
    if (!p.judged->has_stored_baseline) return;
    const std::string file = str(p.judged->stored.file);
    m.baseline.kind = target_kind::stored;
    m.baseline.url = file;
    if (mode.kind == run_kind::write_baseline) return;
    if (!mode.model) check_comparable(mode.stored, file, p, m.target);
    m.judged_by.stored = {file, p.judged->stored.day_to_day.value, mode.stored.statistics};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
