// what one program does of a plan that several share
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/version.hpp"
#include "core/base/text.hpp"
#include "core/judging/rule.hpp"
#include "core/traffic/load_conditions.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan_text.hpp"
#include "core/traffic/trace_hash.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/ranks.hpp"
#include "effects/system/settings.hpp"
#include "effects/gates/shards.hpp"

#include <cmath>  // fabs
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What one shard of a load does of a plan.
inline plan as_shard(plan p, const scenario& s, const settings& asked, std::size_t gate) {
    check_shard(p, s, asked);
    const long long repeats = s.repeats;
    p.shard = asked.shard;
    p.most_skew_s = most_skew_of_shards_s;
    p.nonce = shard_clock::nonce(asked, gate);
    p = with_judging(std::move(p), [&](planned_judging& j) {
        j.most_repeats = j.first_repeats =
            repeats > 0 ? static_cast<int>(repeats) : repeats_of_shards;
        j.rule = rule_of(s.judging, s.traffic, j.first_repeats, j.most_repeats, false);
    });
    shard_clock::of_this_program().begin_gate(asked.start_at_s);
    const double ahead_s = shard_clock::of_this_program().start_s() - unix_s();
    if (!(ahead_s > 0 && ahead_s < 86400))
        refuse({printed("LLMBENCH_START_AT: the first repeat was to begin %.0f s %s: all shards "
                        "must be there before it, and within a day", std::fabs(ahead_s),
                        ahead_s < 0 ? "ago" : "from now")});
    return p;
}

#ifdef LLMBENCH_WITH_MPI
/// What one rank does of a plan, which must be the same at all of them.
inline plan as_rank(plan p, const scenario& s, const settings& asked) {
    rank_group& ranks = rank_group::of_this_program();
    p.shard = {static_cast<std::size_t>(ranks.index()), static_cast<std::size_t>(ranks.count())};
    if (!asked.shard.is_whole()) refuse({"LLMBENCH_SHARD is set, and MPI shares the load already"});
    check_shard(p, p.shard);
    check_shared_target(s);
    p.most_skew_s = most_skew_of_ranks(p);
    std::string mine = printed("%d.%d.%d ", LLMBENCH_VERSION_MAJOR, LLMBENCH_VERSION_MINOR,
                               LLMBENCH_VERSION_PATCH) +
                       p.name + " " + trace_hash(p) + " " + options_text(p) + " " + limits_text(p);
    for (const slo& x : p.judged->slos) mine += "; " + str(x.text());
    const std::string first = ranks.heard(mine, 10 * ranks.wait_s());
    p.nonce = static_cast<std::uint64_t>(
        ranks.heard(static_cast<long long>(p.nonce), ranks.wait_s()));
    ranks.all_or_none(
        [&] {
            if (mine != first)
                refuse({"its gate is another one than rank 0's: \"", printable(mine),
                        "\" is not \"", printable(first),
                        "\"; all ranks need the same program, arguments and LLMBENCH_ variables"});
            return true;
        },
        ranks.wait_s());
    return p;
}
#endif

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
