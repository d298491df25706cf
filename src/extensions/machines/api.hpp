// a load that several programs send
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"

namespace llmbench {
inline namespace v1 {

/// Judges a load that several programs sent: LLMBENCH_SHARD (such as 2/8, counted from 0) gives
/// each its part, and LLMBENCH_START_AT (seconds since 1970) the common start. Combines the records
/// of their report directories and judges once. `gate` names one of several. Refuses, by name, a
/// shard that is missing, double, or of another run, trace, version, model or time limit; a shard
/// more than 50 ms late makes all objectives invalid. The error guard is last. Reported and
/// asserted as by gate().
///     judge_shards({"shard-0", "shard-1"}, {p90(ttft) <= 300_ms});
result judge_shards(const types::list<types::text>& directories, const slo_list& slos,
                    const types::text& gate = {}, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE())
    asm("include_llmbench_machines_hpp_where_LLMBENCH_MAIN_is");

}  // inline namespace v1
}  // namespace llmbench
