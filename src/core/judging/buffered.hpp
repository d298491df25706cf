// verdicts that stand although tokens were buffered
#pragma once

#include "api/result.hpp"
#include "core/metric/table.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/numbers.hpp"
#include "core/judging/server.hpp"
#include "core/judging/terms.hpp"

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Of a stream that mostly streams, a verdict needs to withstand no more than the rest can hide:
/// on a machine that all share, a few answers come in lumps. A pass does where it is one even if
/// tokens that came at once took all the time before them, and so does what is undecided. A miss of
/// a time per token does as it is, since that time only adds to it; gaps that became one may be
/// longer than any was.
inline bool stands_though_buffered(const evidence& e, const terms& t, const answer_counts& arm,
                                   const verdict_numbers& v) {
    const statistic_data& what = v.what.what;
    if (arm.in_a_lump * 2 > arm.paced || arm.read_together * 2 > arm.events) return false;
    const bool of_gaps = concerns(what, &metric_facts::is_of_gaps);
    bool listed = true;
    for_each_repeat(e, [&](const repeat_data& d) { listed = listed && !d.gaps_counted; });
    if (is_throughput(what.metric) || (of_gaps && !listed)) return false;
    if (v.outcome == verdict::fail && of_gaps) return false;
    terms other = t;
    other.read =
        v.outcome == verdict::fail ? timing_bound::baseline_buffered : timing_bound::buffered;
    return decide_evidence(e, other, v.what).outcome == v.outcome;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
